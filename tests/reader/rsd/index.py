"""A job: its dumps, and what joins them (.rsj)."""
import os

from . import Damaged, frames
from .dump import Dump, find_dumps
from .events import Events
from .flat import Row
from .shapes import kJobReader, kModes, kRpcStates

kVersion = 2
kNoNode = 0xFFFFFFFF


def read_index(path):
    """The JobIndex of a .rsj file: its last frame's, with `rpcs` for the calls of all of them.
    @errors Damaged: no whole file, or a newer version
    """
    with open(path, "rb") as file:
        read = frames.Frames(file.read(), frames.kJobMagic)
    if not read.payloads or read.problem:
        raise Damaged("read %s: %d frames (%s)" % (path, len(read.payloads), read.problem or "nothing after them"))
    parts = [kJobReader.root(payload, b"RSJ1", "JobIndex") for payload in read.payloads]
    for index in parts:
        if index.min_reader > kVersion:
            raise Damaged("read %s: version %d wants a reader of %d, this one knows %d" % (path, index.version, index.min_reader, kVersion))
    index = parts[-1]
    if max(index.frames, 1) != len(parts):
        raise Damaged("read %s: %d frames, the last one says %d" % (path, len(parts), index.frames))
    calls = [call for part in parts for call in part.calls]
    if calls:
        index.rpcs = as_rpcs(calls)
    return index


def as_rpcs(calls):
    """Calls as Rpcs: in the order of their begins, each with its parent's number and its root's trace id."""
    def half(call, side):
        values = {name: getattr(call, "%s_%s" % (side, name)) for name in ("node", "process", "lane", "generation", "position")}
        return None if values["node"] == kNoNode else Row("HalfRef", values)

    rpcs = []
    for call in calls:
        client, server = half(call, "client"), half(call, "server")
        rpcs.append(Row("Rpc", {**call.as_dict(), "client": client, "server": server, "parent": -1,
                                "unfinished": bool(call.unfinished), "reply": bool(call.reply)}))
    rpcs.sort(key=lambda r: (r.client_begin_ns if r.client else r.server_begin_ns, tuple((r.client or r.server).as_dict().values())))
    served = {}
    for number, rpc in enumerate(rpcs):
        if rpc.key:
            served.setdefault((rpc.server.node, rpc.server.process, rpc.key), number)
    for number, rpc in enumerate(rpcs):
        if rpc.client and rpc.parent_key:
            rpc.parent = served.get((rpc.client.node, rpc.client.process, rpc.parent_key), -1)
    for number, rpc in enumerate(rpcs):
        walked, at = set(), number
        while rpcs[at].parent >= 0 and at not in walked:
            walked.add(at)
            at = rpcs[at].parent
        if rpcs[at].parent >= 0:
            raise Damaged("call %d is its own parent's parent" % number)
        rpc.trace_hi, rpc.trace_lo = rpcs[at].trace_hi, rpcs[at].trace_lo
    return rpcs


class Call:
    """One request of the index with its halves: client, server (Half or None), their nodes' names, and times in leader_ns."""

    def __init__(self, job, number, rpc):
        self.number, self.rpc = number, rpc
        self.state, self.unfinished, self.parent = kRpcStates[rpc.state], rpc.unfinished, rpc.parent
        self.client_node, self.client = job.half(rpc.client)
        self.server_node, self.server = job.half(rpc.server)

    @property
    def either(self):
        return self.client or self.server

    @property
    def function(self):
        return self.either.name

    @property
    def caller(self):
        return self.client.self_name if self.client else self.server.peer

    @property
    def callee(self):
        return self.client.peer if self.client else self.server.self_name

    @property
    def mode(self):
        return kModes[self.client.mode] if self.client else "unknown"


class Job:
    """Dumps and index of a directory (or of files). index None: there is none, and `calls` is empty."""

    def __init__(self, inputs):
        inputs = [inputs] if isinstance(inputs, str) else list(inputs)
        self.dumps = [Dump(path) for path in find_dumps(inputs)]
        if not self.dumps:
            raise Damaged("read %s: no dump (.rsd) there" % ", ".join(inputs))
        self.events = [Events(dump) for dump in self.dumps]
        indexes = [os.path.join(i, f) for i in inputs if os.path.isdir(i) for f in sorted(os.listdir(i)) if f.endswith(".rsj")]
        indexes += [i for i in inputs if i.endswith(".rsj")]
        self.index = read_index(indexes[0]) if indexes else None
        self._order = {os.path.basename(d.path): (d, e) for d, e in zip(self.dumps, self.events)}
        self._halves = {id(e): {(h.process, h.lane, h.generation, h.position): h for h in e.halves} for e in self.events}
        self.calls = [Call(self, n, rpc) for n, rpc in enumerate(self.index.rpcs)] if self.index else []

    def of_node(self, number):
        """Dump and events of the index's node `number`; (None, None) if its dump is not here."""
        return self._order.get(os.path.basename(self.index.nodes[number].dump), (None, None))

    def half(self, ref):
        """(node's name, Half) for a HalfRef.
        @errors Damaged: a reference to no RpcBegin
        """
        if ref is None:
            return None, None
        if ref.node >= len(self.index.nodes):
            raise Damaged("the index names node %d of %d" % (ref.node, len(self.index.nodes)))
        dump, events = self.of_node(ref.node)
        if dump is None:
            return self.index.nodes[ref.node].name, None
        found = self._halves[id(events)].get((ref.process, ref.lane, ref.generation, ref.position))
        if found is None:
            raise Damaged("the index names a half at %r of node %s: no RpcBegin stands there" % (ref, dump.node))
        return dump.node, found

    def leader_ns(self, node_number, ticks, corrected=True):
        """An instant of a node in the leader's clock; without the correction: in the node's own."""
        dump, _ = self.of_node(node_number)
        node_ns = dump.node_ns(ticks)
        clock = self.index.nodes[node_number].clock
        if not corrected or clock is None:
            return node_ns
        return node_ns + clock.offset_ns + round(clock.drift_ppb * (node_ns - clock.reference_node_ns) / 1e9)

    def trim(self):
        """Leaves out what lies outside of the iterations that the capture was asked for (schema/README.md, "Iterations")."""
        gone, shown = set(), set()
        for call in self.calls:
            half, node = (call.client, call.rpc.client.node) if call.client else (call.server, call.rpc.server and call.rpc.server.node)
            if half is None:
                continue
            away = self.of_node(node)[1].outside(half.process, half.begin, half.end)
            (gone if away else shown).update(id(h) for h in (call.client, call.server) if h)
        for events in self.events:
            events.trim()
            events.halves = [h for h in events.halves if id(h) not in gone and
                             (id(h) in shown or not events.outside(h.process, h.begin, h.end))]
        self.calls = [c for c in self.calls if c.either is None or id(c.either) not in gone]

    def counts(self):
        """The numbers that other readers must reproduce."""
        ranges = [r for e in self.events for r in e.ranges]
        halves = [h for e in self.events for h in e.halves]
        counts = {
            "nodes": len(self.dumps), "processes": sum(len(d.processes) for d in self.dumps),
            "lanes": sum(len(d.lanes) for d in self.dumps), "records": sum(len(l.records) for d in self.dumps for l in d.lanes.values()),
            "ranges": len(ranges), "open_ranges": sum(r.end is None for r in ranges), "async_ranges": sum(r.kind == "async" for r in ranges),
            "client_halves": sum(not h.server for h in halves), "server_halves": sum(h.server for h in halves),
            "open_halves": sum(h.end is None for h in halves), "marks": sum(len(e.marks) for e in self.events),
            "ends_alone": sum(e.ends_alone for e in self.events), "unknown_records": sum(e.unknown for e in self.events),
            "lost": sum(d.lost() for d in self.dumps),
        }
        gpu = {"gpu_work": sum(len(e.gpu.work) for e in self.events), "gpu_calls": sum(len(e.gpu.calls) for e in self.events)}
        counts.update({what: count for what, count in gpu.items() if count})
        if self.index:
            states = [c.state for c in self.calls]
            counts.update(joined=states.count("Joined"), orphans=states.count("Orphan"), cut=states.count("Cut"),
                          unfinished=sum(c.unfinished for c in self.calls),
                          joined_replies=sum(c.state == "Joined" and c.rpc.reply for c in self.calls))
        return counts

    def problems(self):
        """Everything that is not as it should be, as sentences."""
        wrong = [d.problem for d in self.dumps if d.problem]
        for dump in self.dumps:
            wrong += ["%s: %s" % (dump.path, w) for w in dump.accounts()]
        if self.index:
            counts = self.counts()
            for field, count in (("joined_requests", "joined"), ("joined_replies", "joined_replies"), ("orphans", "orphans"),
                                 ("cut", "cut"), ("unfinished", "unfinished")):
                if getattr(self.index, field) != counts[count]:
                    wrong.append("the index says %d %s, its rpcs show %d" % (getattr(self.index, field), field, counts[count]))
            wrong += self._reference_problems()
        return wrong

    def _reference_problems(self):
        """Each half of the dumps stands in exactly one entry of the index, on its own side; both halves of one have one span id."""
        wrong, seen = [], {}
        for call in self.calls:
            for side, half in (("client", call.client), ("server", call.server)):
                if half is None:
                    continue
                seen[id(half)] = seen.get(id(half), 0) + 1
                if half.server != (side == "server"):
                    wrong.append("call %d: its %s half is of the other side" % (call.number, side))
                if half.span != call.rpc.span:
                    wrong.append("call %d: span %016x, its %s half has %016x" % (call.number, call.rpc.span, side, half.span))
            if call.parent >= len(self.calls):
                wrong.append("call %d: parent %d of %d" % (call.number, call.parent, len(self.calls)))
        halves = [h for e in self.events for h in e.halves]
        missing = sum(seen.get(id(h), 0) == 0 for h in halves)
        if missing or any(n > 1 for n in seen.values()):
            wrong.append("%d halves are in no entry of the index, %d in more than one" % (missing, sum(n > 1 for n in seen.values())))
        return wrong
