"""What torch's own code makes of a dump's events: torch_cuda_table.py FILE. Run by a Python that has torch 2; FILE is JSON:

    threads   ranges and calls of CUDA: name, thread, begin, end (ns), shapes
    works     kernels, copies, memsets: name, device, stream, begin, end, around (which of `threads` they count for, null: none)

Builds torch's FunctionEvents, has torch nest them, add them up and print its table. Torch counts what runs at once more than once; so the table
is made twice, and Self CUDA and its share are those of work that is as long as its share of the time that its device was busy, counted here moment by
moment.
"""
import json
import sys

from torch.autograd import DeviceType
from torch.autograd.profiler_util import EventList, FunctionEvent, _rewrite_name


def made(name, thread, begin, end, device=DeviceType.CPU, shapes=()):
    return FunctionEvent(id=0, name=_rewrite_name(name, with_wildcard=True), thread=thread, start_us=begin / 1000, end_us=end / 1000, use_device="cuda",
                         device_type=device, input_shapes=list(shapes), stack=[], overload_name="")


def shares(works):
    """Of each moment, each piece that is under way on a device has an equal part: ns of each."""
    found = [0.0] * len(works)
    for device in {w["device"] for w in works}:
        here = [i for i, w in enumerate(works) if w["device"] == device]
        times = sorted({works[i][edge] for i in here for edge in ("begin", "end")})
        for begin, end in zip(times, times[1:]):
            busy = [i for i in here if works[i]["begin"] <= begin and end <= works[i]["end"]]
            for i in busy:
                found[i] += (end - begin) / len(busy)
    return found


def table(told, lengths):
    events = [made(e["name"], e["thread"], e["begin"], e["end"], shapes=e["shapes"]) for e in told["threads"]]
    for work, length in zip(told["works"], lengths):
        if work["around"] is not None:
            events[work["around"]].append_kernel(work["name"], work["device"], length / 1000)
        events.append(made(work["name"], work["stream"], work["begin"], work["begin"] + length, DeviceType.CUDA))
    events.sort(key=lambda e: [e.time_range.start, -e.time_range.end])
    listed = EventList(events, use_device="cuda")
    listed._build_tree()
    return listed.key_averages(group_by_input_shapes=True).table(row_limit=-1, max_name_column_width=None).splitlines()


def main():
    with open(sys.argv[1]) as text:
        told = json.load(text)
    lines = table(told, [w["end"] - w["begin"] for w in told["works"]])
    at, spans = 0, []
    for dashes in lines[0].split():
        spans.append((at, at + len(dashes)))
        at += len(dashes) + 2
    columns = [lines[1][a:b].strip() for a, b in spans]
    for line, of_shares in zip(lines, table(told, shares(told["works"]))):
        if len(line) == len(lines[0]):
            for column in ("Self CUDA", "Self CUDA %"):
                a, b = spans[columns.index(column)]
                line = line[:a] + of_shares[a:b] + line[b:]
        elif line.startswith("Self CUDA"):
            line = of_shares
        print(line)


main()
