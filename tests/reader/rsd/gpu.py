"""The GPU's records of one dump: work, calls, links, devices; and which call, range and request work belongs to."""
from . import codec

kKinds = {codec.kGpuKernel: "kernel", codec.kGpuCopy: "copy", codec.kGpuMemset: "memset", codec.kGpuSync: "sync", codec.kGpuOverhead: "overhead",
          codec.kGpuEvent: "event"}
# Behind words 1 and 2: each field's word and half (0 low, 1 high, None: all of it).
kPlace = {"correlation": (3, 0), "device": (3, 1), "context": (4, 0), "stream": (4, 1)}
kFields = {
    "kernel": dict(kPlace, grid_x=(5, 0), grid_y=(5, 1), grid_z=(6, 0), block_x=(6, 1), block_y=(7, 0), block_z=(7, 1), static_shared=(8, 0),
                   dynamic_shared=(8, 1), registers=(9, 0), graph=(9, 1), graph_node=(10, None), queued=(11, None)),
    "copy": dict(kPlace, bytes=(5, None), graph=(6, 1), graph_node=(7, None), source_device=(8, 0), destination_device=(8, 1),
                 source_context=(9, 0), destination_context=(9, 1)),
    "memset": dict(kPlace, bytes=(5, None), value=(6, 0), graph=(6, 1), graph_node=(7, None)),
    "sync": dict(correlation=(3, 0), event=(3, 1), context=(4, 0), stream=(4, 1), result=(5, 0)),
    "overhead": dict(correlation=(3, 0), kind=(3, 1), object=(4, 0), owner=(4, 1), thread=(5, 0), stream=(5, 1)),
    "event": dict(kPlace, event=(2, None)),
    "call": dict(correlation=(3, 0), result=(3, 1), thread=(4, 0), callback=(4, 1)),
    "link": dict(id=(2, None), correlation=(3, 0)),
    "device": dict(memory=(2, None), device=(3, 0), processors=(3, 1), major=(4, 0), minor=(4, 1), block_threads=(5, 0), processor_threads=(5, 1),
                   block_registers=(6, 0), processor_registers=(6, 1), block_shared=(7, 0), processor_shared=(7, 1), block_shared_most=(8, 0),
                   warp=(8, 1), processor_blocks=(9, 0)),
}
kNames = {**kKinds, codec.kGpuApi: "call", codec.kGpuLink: "link", codec.kGpuDevice: "device"}


class Gpu:
    """One record: what ("kernel", ...), its fields by name; begin, end (None where the kind has none)."""

    def __init__(self, process, lane, record, name):
        self.what, self.process, self.lane, self.position, self.name, self.detail = (
            kNames[record.kind], process, lane, record.position, name, record.flags & 15)
        self.begin, self.end = record.words[1], record.words[2] if record.kind <= codec.kGpuOverhead else None
        for field, (word, half) in kFields[self.what].items():
            value = record.words[word]
            setattr(self, field, value if half is None else (value >> 32 * half) & 0xFFFFFFFF)
        if self.what == "copy":
            self.source_memory, self.destination_memory, self.asynchronous = (
                record.words[6] & 255, record.words[6] >> 8 & 255, bool(record.words[6] >> 16 & 1))


class GpuEvents:
    """All of one dump. work, calls, links: lists; devices: by (process, device)."""

    def __init__(self):
        self.work, self.calls, self.links, self.devices = [], [], [], {}

    def take(self, process, lane, record, name):
        made = Gpu(process, lane, record, name)
        if made.what == "device":
            self.devices[process, made.device] = made
        else:
            {"call": self.calls, "link": self.links}.get(made.what, self.work).append(made)

    def call_of(self, work):
        """What asked for it: of the calls with its correlation the one that began first; None where there is none."""
        found = [c for c in self.calls if (c.process, c.correlation) == (work.process, work.correlation) and work.correlation]
        return min(found, key=lambda c: c.begin, default=None)

    @staticmethod
    def range_of(events, call):
        """The innermost range around the call's begin on its thread; None where there is none."""
        around = [r for r in events.ranges if r.process == call.process and r.tid == call.thread and r.kind != "async" and
                  r.begin <= call.begin and (r.end is None or call.begin <= r.end)]
        return max(around, key=lambda r: (r.begin, -(r.end or 0)), default=None)

    @staticmethod
    def context_of(events, call):
        """As Range.context: the request that the call's thread served at its begin."""
        for (process, _), lane in events.dump.lanes.items():
            if process == call.process and any(b.tid == call.thread for b in lane.blocks):
                return events.contexts[process, lane.blocks[0].lane].at(call.begin)
        return None

    def trim(self, outside):
        """outside: (process, begin, end) -> whether it lies outside of the iterations of its process."""
        def goes(event):
            call = self.call_of(event) if event.what != "call" else None
            decides = call or event
            return outside(decides.process, decides.begin, decides.begin if decides.end is None else decides.end)

        self.work = [w for w in self.work if not goes(w)]
        self.calls = [c for c in self.calls if not goes(c)]
