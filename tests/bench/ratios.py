"""What the benches of ratios share: the verdict, the table, the exit status. README.md, "Ratios", says what they stand for.

A result is a dict: ratio, bound, control; and, where the control is no ratio near 1, `aim` (what it ought to be) and `margin` (how far it may be
off; else the bound's distance from 1). Without a bound it is there for comparison alone. Control None: what is no time has none.
"""
import json
import math
import os
import statistics

kMissed, kNotPossible = 1, 77
kUsualProbe = 1.12
kFewestRounds = 15


def cpu_seconds(pid):
    """Processor time of all threads of a process, to the nanosecond."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, task)) as file:
            total += int(file.read().split()[0])
    return total / 1e9


def lower_decile(values):
    """Of many short blocks: what a block takes while nobody else wants the core."""
    values = sorted(value for value in values if value is not None)
    return values[len(values) // 10] if values else math.nan


def undisturbed(values, probes, least=None):
    """The blocks beside which a probe of the core (core_probe.hpp) took its usual time; None in place of the others. On a machine whose cores are halves
    of a host's the other half belongs to somebody, and for some milliseconds or seconds everything takes 1.7 times as long, but for reading the ticks:
    where a floor of that is the base, a ratio is another one then.
    @param least  of the probes of the whole process, where these are some of them"""
    limit = kUsualProbe * (min(probes) if least is None else least)
    return [value if probe <= limit else None for value, probe in zip(values, probes)]


def paired(values, *bases):
    """The median over rounds of a block's time over that of the blocks beside it (their mean), of the rounds in which all of them were undisturbed."""
    return _median_of_rounds(lambda value, base: value / base, values, bases)


def paired_difference(values, *bases):
    """The same of what a block took more than those beside it: where a base is subtracted, a decile of the one and of the other would come from
    different moments."""
    return _median_of_rounds(lambda value, base: value - base, values, bases)


def _median_of_rounds(compare, values, bases):
    rounds = [(value, base) for value, *base in zip(values, *bases) if value is not None and None not in base]
    if len(rounds) < min(kFewestRounds, len(values)):
        return math.nan
    return statistics.median(compare(value, statistics.mean(base)) for value, base in rounds)


def median(numbers):
    """Of those processes that had enough rounds with the core to themselves."""
    numbers = [number for number in numbers if not math.isnan(number)]
    return statistics.median(numbers) if numbers else math.nan


def verdict(result):
    # Too few rounds were undisturbed.
    if math.isnan(result["ratio"]) or (result["control"] is not None and math.isnan(result["control"])):
        return "inconclusive"
    if result.get("bound") is None:
        return ""
    margin = result.get("margin", abs(result["bound"] - 1))
    if result["control"] is not None and abs(result["control"] - result.get("aim", 1)) > margin:
        return "inconclusive"
    return "met" if result["ratio"] <= result["bound"] else "MISSED"


def _number(value):
    if value is None:
        return " " * 8
    return "%8s" % ("-" if math.isnan(value) else "%.3f" % value)


def print_table(results):
    width = max(map(len, results))
    print("%-*s %8s %8s %8s  %s" % (width, "ratio", "measured", "control", "bound", "verdict"))
    for name, result in results.items():
        numbers = [_number(result.get(key)) for key in ("ratio", "control", "bound")]
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
