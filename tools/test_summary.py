"""Tells a suite's results from meson's log: one line a test, the output of what failed, the reason of what was skipped, the time.

    test_summary.py SUITE SECONDS TESTLOG.json     one suite; its counts are appended to counts.txt beside the log
    test_summary.py --total COUNTS.txt             the closing line; exit status 1 when anything failed
"""
import json
import os
import sys

kPassed = ("OK", "EXPECTEDFAIL")
kSkipped = ("SKIP", "IGNORED")
kMostLines = 80


def outcome(result):
    return "passed" if result in kPassed else "skipped" if result in kSkipped else "failed"


def reason(test):
    """The line in which a test says why it was skipped."""
    for line in (test.get("stdout", "") + "\n" + test.get("stderr", "")).splitlines():
        if line.startswith("SKIPPED:"):
            return line[len("SKIPPED:"):].strip()
    return "it gave no reason"


def tell(test):
    word = outcome(test["result"])
    print("  %-7s %-42s %6.1f s%s" % (word, test["name"].split(" / ")[-1], test["duration"], "  (%s)" % reason(test) if word == "skipped" else ""))
    for line in test.get("stdout", "").splitlines():
        if line.startswith("NOTE:"):
            print("          " + line)
    if word == "failed":
        text = (test.get("stdout", "") + test.get("stderr", "")).splitlines()
        print("    result %s, command: %s" % (test["result"], " ".join(test.get("command", []))))
        for line in text[-kMostLines:]:
            print("    | " + line)
    return word


def suite(name, seconds, log):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    tests = []
    if os.path.exists(log):
        with open(log) as lines:
            tests = [json.loads(line) for line in lines if line.strip()]
    print("suite %s" % name)
    for test in tests:
        counts[tell(test)] += 1
    if not tests:
        print("  failed  no test ran: see build/meson-logs/run-%s.txt" % name)
        counts["failed"] = 1
    print("suite %s: %d s, %d passed, %d failed, %d skipped" % (name, seconds, counts["passed"], counts["failed"], counts["skipped"]), flush=True)
    with open(os.path.join(os.path.dirname(log), "counts.txt"), "a") as out:
        out.write("%d %d %d\n" % (counts["passed"], counts["failed"], counts["skipped"]))


def total(path):
    sums = [0, 0, 0]
    with open(path) as lines:
        for line in lines:
            sums = [a + int(b) for a, b in zip(sums, line.split())]
    print("%d passed, %d failed, %d skipped" % tuple(sums), flush=True)
    return 1 if sums[1] else 0


def main():
    if sys.argv[1] == "--total":
        return total(sys.argv[2])
    suite(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    return 0


if __name__ == "__main__":
    sys.exit(main())
