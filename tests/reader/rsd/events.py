"""Events out of a dump's records: ranges (nested, asynchronous, open), RPC halves, and the request that each belongs to."""
import bisect
import struct

from . import codec
from .dump import kNoAttributes, payload_value
from .gpu import GpuEvents, kNames as kGpuKinds
from .shapes import kFates

kOn, kRepeated = 1, 2
kKilled = kFates.index("Killed")


class Range:
    """kind: "range", "operator", "async", "open"; end None: it had not ended. `context`: key of the served request's half, None, or "unknown".
    `attributes`, `payload`: what its name has beside the text, and what its argument then means (None: nothing).
    `shapes`: the text of an operator's input shapes, None where nobody asked for them."""

    def __init__(self, kind, process, lane, generation, tid, position, name, begin, end, flags, argument, context, record=None,
                 attributes=kNoAttributes):
        self.kind, self.process, self.lane, self.generation, self.tid = kind, process, lane, generation, tid
        self.position, self.name, self.begin, self.end = position, name, begin, end
        self.source, self.detail, self.argument, self.context = flags >> 4, flags & 15, argument, context
        self.attributes, self.payload = attributes, payload_value(attributes, argument)
        self.end_tid = tid if end is not None else None
        self.sequence = self.thread = self.forward_thread = None
        self.shapes = None
        if record is not None and record.kind == codec.kOperator:
            sequence = record.words[3]
            self.sequence = sequence - (1 << 64) if sequence >> 63 else sequence
            self.thread, self.forward_thread = record.words[4] & 0xFFFFFFFF, record.words[4] >> 32


class Half:
    """One side of an RPC: its RpcBegin's fields; end, status and answer bytes None while it is open."""

    def __init__(self, dump, process, lane, block, record, name, context):
        w = record.words
        self.process, self.lane, self.generation, self.tid = process, lane, block.generation, block.tid
        self.position, self.name, self.context, self.source = record.position, name, context, record.flags >> 4
        self.begin, self.key, self.request_bytes = w[1], w[2], w[3]
        self.trace_hi, self.trace_lo, self.span, self.parent_key = w[4], w[5], w[6], w[7]
        self.peer = dump.name(process, w[8] & 0xFFFFFFFF)
        self.self_name = dump.name(process, w[8] >> 32)
        if not self.self_name and self.message and dump.processes[process].rank >= 0:
            self.self_name = "rank %d" % dump.processes[process].rank  # as the other side names it
        self.module = dump.name(process, w[9] & 0xFFFFFFFF)
        self.wire_type, self.wire_id = w[9] >> 32, w[10]
        self.mode, self.side, self.self_id, self.peer_id = struct.unpack_from("<BBhh", w[11].to_bytes(8, "little"))
        self.end = self.status = self.answer_bytes = None

    @property
    def server(self):
        return self.side == 1

    @property
    def message(self):
        return self.source == 4  # MPI's

    def finish(self, record):
        self.end, self.status, self.answer_bytes = record.words[1], record.words[3] >> 56, record.words[3] & ((1 << 56) - 1)


class LaneContexts:
    """Which request a lane served when: switches in order of time; after a drop it is unknown until it is told again."""

    def __init__(self, lane):
        self.times, self.states = [], []
        last_time = 0
        block_seen = None
        for record, block, _ in lane.records:
            if block is not block_seen and block_seen is None:
                self._switch(block.base_ticks, _state_of(block.context))
            block_seen = block
            if record.kind == codec.kContext:
                if record.detail & kRepeated and last_time < record.words[1]:
                    self._switch(last_time, "unknown")
                self._switch(record.words[1], record.words[2] if record.detail & kOn else None)
            last_time = max(last_time, record.words[1], record.words[2] if record.kind in (codec.kRange, codec.kOperator) else 0)
        if not lane.records and lane.blocks:
            self._switch(lane.blocks[-1].base_ticks, _state_of(lane.blocks[-1].context))
        self.first = self.states[0] if self.states else None

    def _switch(self, ticks, state):
        self.times.append(max(ticks, self.times[-1]) if self.times else ticks)
        self.states.append(state)

    def at(self, ticks):
        """The context at that instant; what began before the first record belongs to the block's context, as the first does."""
        place = bisect.bisect_right(self.times, ticks)
        return self.states[place - 1] if place else self.first


def _state_of(context):
    if context is None or context.state == 0:
        return None
    return context.key if context.state == 1 else "unknown"


class Events:
    """All of one dump: ranges, halves, marks (mark, iteration, counter), the GPU's, and counts of what stands alone."""

    def __init__(self, dump):
        self.dump = dump
        self.ranges, self.halves, self.marks, self.gpu = [], [], [], GpuEvents()
        self.contexts = {key: LaneContexts(lane) for key, lane in dump.lanes.items()}
        self.unknown = 0
        self.ends_alone = 0       # an end whose begin lies before the capture
        self._begun = {}
        for (process, index), lane in sorted(dump.lanes.items()):
            for record, block, inline in lane.records:
                self._take(process, index, block, record, inline)
            self._open_ranges(process, index, lane)
        self._pair_ends()
        self.ranges += [r for kind, r in self._begun.values() if kind == "async"]
        self.halves.sort(key=lambda h: (h.begin, h.key))
        self.by_key = {(h.process, h.key): h for h in self.halves}
        self.fates = {p.process: p.fate for p in dump.footer.processes} if dump.footer else {}
        # Of a capture of N iterations: by process, where they lie.
        self.iterations = {p.process: p.iterations for p in dump.footer.processes if p.iterations} if dump.footer else {}

    def _take(self, process, lane, block, record, inline):
        context = self.contexts[process, lane].at(record.words[1])
        if record.kind in (codec.kRange, codec.kOperator, codec.kAsyncBegin):
            name = self.dump.name(process, record.name, inline)
            kind = {codec.kRange: "range", codec.kOperator: "operator", codec.kAsyncBegin: "async"}[record.kind]
            end = None if kind == "async" else record.words[2]
            made = Range(kind, process, lane, block.generation, block.tid, record.position, name, record.words[1], end, record.flags,
                         record.words[3], context, record, self.dump.attributes_of(process, record.name))
            if kind == "operator" and record.words[7] & 0xFFFFFFFF:
                made.shapes = self.dump.name(process, record.words[7] & 0xFFFFFFFF)
            if kind == "async":
                self._begun[process, record.words[2]] = ("async", made)
            else:
                self.ranges.append(made)
        elif record.kind == codec.kRpcBegin:
            half = Half(self.dump, process, lane, block, record, self.dump.name(process, record.name, inline), context)
            self.halves.append(half)
            self._begun[process, half.key] = ("rpc", half)
        elif record.kind in (codec.kMark, codec.kIteration, codec.kCounter):
            kind = {codec.kMark: "mark", codec.kIteration: "iteration", codec.kCounter: "counter"}[record.kind]
            attributes = self.dump.attributes_of(process, record.name)
            self.marks.append((kind, process, lane, self.dump.name(process, record.name, inline), record.words[1], record.words[2],
                               record.words[3], attributes, payload_value(attributes, record.words[3]), record.flags >> 4))
        elif record.kind in kGpuKinds:
            self.gpu.take(process, lane, record, self.dump.name(process, record.name, inline))
        elif record.kind not in (codec.kAsyncEnd, codec.kRpcEnd, codec.kContext):
            self.unknown += 1

    def _pair_ends(self):
        """Ends may stand on any lane, so they are paired once every begin is known."""
        for (process, _), lane in sorted(self.dump.lanes.items()):
            for record, block, _ in lane.records:
                if record.kind not in (codec.kAsyncEnd, codec.kRpcEnd):
                    continue
                kind, begun = self._begun.get((process, record.words[2]), (None, None))
                if kind == ("async" if record.kind == codec.kAsyncEnd else "rpc") and begun.end is None:
                    if kind == "async":
                        begun.end, begun.end_tid = record.words[1], block.tid
                    else:
                        begun.finish(record)
                else:
                    self.ends_alone += 1

    def _open_ranges(self, process, index, lane):
        if not lane.blocks:
            return
        ended = {(r.words[1], r.name) for r, _, _ in lane.records if r.kind in (codec.kRange, codec.kOperator)}
        block = lane.blocks[-1]
        for place, entry in enumerate(block.open):
            name = entry.what >> 32
            if (entry.begin, name) not in ended:
                flags = (entry.what >> 24) & 255
                self.ranges.append(Range("open", process, index, block.generation, block.tid, block.last + place,
                                         self.dump.name(process, name), entry.begin, None, flags, entry.argument,
                                         self.contexts[process, index].at(entry.begin),
                                         attributes=self.dump.attributes_of(process, name)))

    def outside(self, process, begin, end):
        """Whether a range or half lies outside of the iterations of its process. end None: it has none."""
        kept = self.iterations.get(process)
        if kept is None:
            return False
        return begin >= kept.end_ticks or (begin < kept.begin_ticks and end is not None and end <= kept.begin_ticks)

    def trim(self):
        """Leaves out the ranges and marks that lie outside of the iterations that the capture was asked for. Halves are the job's (Job.trim)."""
        def mark_outside(mark):
            kind, process, ticks = mark[0], mark[1], mark[4]
            kept = self.iterations.get(process)
            if kept is None or (kind == "iteration" and ticks == kept.end_ticks):
                return False
            return not kept.begin_ticks <= ticks < kept.end_ticks

        self.ranges = [r for r in self.ranges if not self.outside(r.process, r.begin, r.end)]
        self.marks = [m for m in self.marks if not mark_outside(m)]
        self.gpu.trim(self.outside)

    def killed(self, process):
        return self.fates.get(process) == kKilled

    def served_by(self, context, process):
        """The server half whose request an event of `context` belongs to; None if it belongs to none or to an unknown one."""
        return self.by_key.get((process, context)) if isinstance(context, int) else None

    def forward_of(self, backward):
        """The forward operator of a backward one, by (forward thread, sequence): scope 0, the latest begin."""
        if backward.sequence is None or backward.sequence < 0:
            return None
        found = [r for r in self.ranges if r.kind == "operator" and r.process == backward.process and r.detail == 0 and
                 r.thread == backward.forward_thread and r.sequence == backward.sequence]
        return max(found, key=lambda r: r.begin, default=None)
