"""What the benches of ratios share: the verdict, the table, the exit status. README.md, "Ratios", says what they stand for.

A result is a dict: ratio, bound, control; and, where the control is no ratio near 1, `aim` (what it ought to be) and `margin` (how far it may be
off; else the bound's distance from 1). Without a bound it is there for comparison alone.
"""
import json
import statistics

kMissed, kNotPossible = 1, 77


def lower_decile(values):
    """Of many short blocks: what a block takes while nobody else wants the core."""
    return sorted(values)[len(values) // 10]


def paired(values, *bases):
    """The median over rounds of a block's time over that of the blocks beside it (their mean). On a machine whose cores are halves of a
    host's the other half belongs to somebody, and for some milliseconds or seconds everything takes 1.7 times as long: a round's blocks alike.
    """
    return statistics.median(value / statistics.mean(base) for value, *base in zip(values, *bases))


def verdict(result):
    if result.get("bound") is None:
        return ""
    margin = result.get("margin", abs(result["bound"] - 1))
    if abs(result["control"] - result.get("aim", 1)) > margin:
        return "inconclusive"
    return "met" if result["ratio"] <= result["bound"] else "MISSED"


def print_table(results):
    width = max(map(len, results))
    print("%-*s %8s %8s %8s  %s" % (width, "ratio", "measured", "control", "bound", "verdict"))
    for name, result in results.items():
        numbers = ["%8.3f" % result[key] if result.get(key) is not None else " " * 8 for key in ("ratio", "control", "bound")]
        print("%-*s %s  %s" % (width, name, " ".join(numbers), result["verdict"]))


def report(results, json_path=None, more=None):
    """@param more  prints what a bench has to say beside its table
    @return the exit status
    """
    for result in results.values():
        result["verdict"] = verdict(result)
    print_table(results)
    if more is not None:
        more(results)
    if json_path:
        with open(json_path, "w") as file:
            json.dump(results, file, indent=1)
    return kMissed if any(result["verdict"] == "MISSED" for result in results.values()) else 0
