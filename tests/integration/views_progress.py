#!/usr/bin/python3
"""`ringside table` and `ringside export` of a dump that takes seconds: a bar that fills on a terminal, a line a stage elsewhere, nothing with --quiet.

    views_progress.py BIG_DUMP        tests/unit/viewer_export/big_dump_main.cpp
"""
import re
import sys
import time

from choices import on_a_terminal
from harness import check, kCommand, main, OffInTime, skip

kRanges = (8_000_000, 16_000_000, 32_000_000)  # the first that takes long enough here
kLongS = 1.6  # more than that second after which progress is shown, and some bars
kStages = {"table": ["reading dumps", "putting events in order", "adding up"], "export": ["reading dumps", "putting events in order", "writing events"]}
kBar = re.compile(r"ringside: ([a-z ]+) \[([#-]{24})\] +(\d+) %, (\d+\.\d) s")


def check_bars(name, text, took):
    check("\n" not in text and text.endswith("\r\033[K"), "%s on a terminal: %r", name, text)
    bars = [kBar.fullmatch(each) for each in text.split("\r\033[K") if each]
    check(all(bars), "%s: no bars: %r", name, text)
    check(len(bars) >= 3, "%s, %.1f s: too few bars: %r", name, took, text, failure=OffInTime)
    shown = [(kStages[name].index(bar[1]), int(bar[3]), float(bar[4])) for bar in bars]
    check(shown == sorted(shown) and shown[0][2] >= 1, "%s: it goes back: %s", name, shown)
    check(all(0 <= bar[2].count("#") - int(bar[3]) * 24 // 100 <= 1 for bar in bars), "%s: bars are not as full as they say: %r", name, text)
    check(max(percent for _, percent, _ in shown) >= 50, "%s: no bar gets on: %s", name, shown, failure=OffInTime)


def lines_of(workspace, verb, *words):
    """@return what it says where stderr is no terminal, and how long it took"""
    began = time.monotonic()
    child = workspace.run("%s-lines-%d" % (verb, len(workspace.children)), [kCommand, verb, *words])
    return child.err().splitlines(), time.monotonic() - began


def test(workspace):
    dump = workspace.path("big.rsd")
    for ranges in kRanges:
        workspace.run("big_dump-%d" % ranges, [sys.argv[1], str(ranges), dump])
        _, took = lines_of(workspace, "table", dump)
        if took >= kLongS:
            break
    else:
        skip("a table of %d ranges takes %.1f s here: too short for progress" % (ranges, took))
    for verb, more in (("table", []), ("export", ["-o", workspace.path("trace.json")])):
        lines, took = lines_of(workspace, verb, dump, *more)
        said = [line[len("ringside: "):-len(" ...")] for line in lines]
        check(said and said == [stage for stage in kStages[verb] if stage in said] and said[-1] == kStages[verb][-1], "%s, lines: %s", verb, lines)
        words = [kCommand, verb, dump, *more]
        check_bars(verb, on_a_terminal(workspace, *words), took)
        check(on_a_terminal(workspace, *words, "--quiet") == "", "%s --quiet is not", verb)
        check(workspace.run(verb + "-quiet", words + ["--quiet"]).err() == "", "%s --quiet is not, into a file", verb)
        print("%s of %d ranges: %.1f s, %s" % (verb, ranges, took, said), flush=True)


if __name__ == "__main__":
    main(test, "views-progress", limit_s=200)
