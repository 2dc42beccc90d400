// Variables that each process writes at its start, on the page that the loader writes anyway: in .bss, beside the sources' big tables, each of them would
// cost a page fault and a page.
#pragma once

#define RINGSIDE_START_DATA __attribute__((section(".data.start")))
