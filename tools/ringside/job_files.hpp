// What lies in a job directory, as a task's wrapper reads it.
#pragma once

#include <sys/types.h>

#include <string>

namespace ringside::tools {

/// The first bytes of a small file; empty where there is none.
std::string read_small(int directory, const char* name);

/// Who holds or held the directory, by what stands in its lock's file: "agent with pid N of node X".
/// @return -1: nobody
pid_t holder_pid(int directory);

/// Whether that process is an agent, by the kernel's name for it.
bool is_agent(pid_t pid);

}  // namespace ringside::tools
