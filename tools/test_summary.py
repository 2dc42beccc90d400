"""Tells a suite's results from meson's log: one line a test, the output of what failed, the reason of what was skipped, the time.

    test_summary.py --failed LOG.json                    the names of those that failed, a line each
    test_summary.py SUITE SECONDS LOG.json AGAIN.json    one suite; its counts and what failed are appended to counts.txt and failed.txt beside the log.
                                                         AGAIN.json, where there is one, says what became of those that were run again
    test_summary.py --total COUNTS.txt FAILED.txt        what failed, by name and with its last lines, and the closing line; exit status 1 when anything failed
"""
import json
import os
import sys

kPassed = ("OK", "EXPECTEDFAIL")
kSkipped = ("SKIP", "IGNORED")
kMostLines = 80
kLastLines = 15


def read_log(path):
    if not os.path.exists(path):
        return []
    with open(path) as lines:
        return [json.loads(line) for line in lines if line.strip()]


def outcome(test):
    return "passed" if test["result"] in kPassed else "skipped" if test["result"] in kSkipped else "failed"


def name_of(test):
    return test["name"].split(" / ")[-1]


def output(test, most_lines):
    return "".join("    | %s\n" % line for line in (test.get("stdout", "") + test.get("stderr", "")).splitlines()[-most_lines:])


def reason(test):
    """The line in which a test says why it was skipped."""
    for line in (test.get("stdout", "") + "\n" + test.get("stderr", "")).splitlines():
        if line.startswith("SKIPPED:"):
            return line[len("SKIPPED:"):].strip()
    return "it gave no reason"


def tell(test):
    word = outcome(test)
    print("  %-7s %-42s %6.1f s%s" % (word, name_of(test), test["duration"], "  (%s)" % reason(test) if word == "skipped" else ""))
    for line in test.get("stdout", "").splitlines():
        if line.startswith("NOTE:"):
            print("          " + line)
    if word == "failed":
        print("    result %s, command: %s" % (test["result"], " ".join(test.get("command", []))))
        print(output(test, kMostLines), end="")
    return word


def suite(name, seconds, log, again_log):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    tests = read_log(log)
    again = {test["name"]: test for test in read_log(again_log)}
    failed = ""
    print("suite %s" % name)
    for test in tests:
        word = tell(test)
        if word == "failed":
            if test["name"] in again:
                print("  and once more, alone:")
                word = tell(again[test["name"]])
            failed += "%s: %s: %s\n%s" % (name, name_of(test), "passed only when run again, alone; at first" if word == "passed" else word, output(test, kLastLines))
        counts[word] += 1
    if not tests:
        print("  failed  no test ran: see build/meson-logs/run-%s.txt" % name)
        failed += "%s: no test ran\n" % name
        counts["failed"] = 1
    print("suite %s: %d s, %d passed, %d failed, %d skipped" % (name, seconds, counts["passed"], counts["failed"], counts["skipped"]), flush=True)
    folder = os.path.dirname(log)
    with open(os.path.join(folder, "counts.txt"), "a") as out:
        out.write("%d %d %d\n" % (counts["passed"], counts["failed"], counts["skipped"]))
    with open(os.path.join(folder, "failed.txt"), "a") as out:
        out.write(failed)


def total(counts, failed):
    sums = [0, 0, 0]
    with open(counts) as lines:
        for line in lines:
            sums = [a + int(b) for a, b in zip(sums, line.split())]
    with open(failed) as text:
        print(text.read(), end="")
    print("%d passed, %d failed, %d skipped" % tuple(sums), flush=True)
    return 1 if sums[1] else 0


def main():
    if sys.argv[1] == "--total":
        return total(sys.argv[2], sys.argv[3])
    if sys.argv[1] == "--failed":
        print("".join(name_of(test) + "\n" for test in read_log(sys.argv[2]) if outcome(test) == "failed"), end="")
        return 0
    suite(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4])
    return 0


if __name__ == "__main__":
    sys.exit(main())
