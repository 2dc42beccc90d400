"""What MPI programs say that they have done (workloads/mpi/said.h) against what a dump holds, as the independent reader reads it.

A message is a number that its sender made and its receiver has read: the k-th half of a rank's channel in the dump is the k-th line of that channel in its
log, and the two halves that stand for one number must have one span id, which no other number has.
"""
import collections

from harness import check

kMpi, kCollective, kSent = 4, 1, 5

Message = collections.namedtuple("Message", "payload tag label function sender receiver received_by")


class Said:
    """The logs of all ranks. sent, received: by rank, [(function, label, tag, payload)]; collectives: by rank, [(function, label, number, kind)]."""

    def __init__(self, path, ranks, lines=None):
        self.ranks = ranks
        self.sent, self.received, self.collectives = ([[] for _ in range(ranks)] for _ in range(3))
        for rank in range(ranks):
            for line in (lines[rank] if lines else lines_of(path, rank)):
                kind, function, label, third, fourth = line.split()
                {"S": self.sent, "R": self.received, "C": self.collectives}[kind][rank].append(
                    (function, label, int(third), fourth if kind == "C" else int(fourth)))

    def messages(self):
        """{payload: Message}: who has sent and received it, by what the receiver has read alone."""
        arrived = {}
        for rank, lines in enumerate(self.received):
            for function, label, tag, payload in lines:
                check(payload not in arrived, "the program has received %d twice", payload)
                arrived[payload] = (rank, function, label, tag)
        found = {}
        for rank, lines in enumerate(self.sent):
            for function, label, tag, payload in lines:
                check(payload in arrived, "%d was sent and not received", payload)
                receiver, by, its_label, its_tag = arrived.pop(payload)
                check((label, tag) == (its_label, its_tag), "%d was sent as %s, received as %s", payload, (label, tag), (its_label, its_tag))
                found[payload] = Message(payload, tag, label, function, rank, receiver, by)
        check(not arrived, "received and not sent: %s", arrived)
        return found


def lines_of(path, rank):
    with open("%s.%d" % (path, rank)) as file:
        return file.read().splitlines()


class Labels:
    """What a log calls a communicator, and what the records do: the same, or for one that begins with ? whatever, but one to one."""

    def __init__(self):
        self.names = {}

    def fits(self, said, recorded):
        if not said.startswith("?"):
            return said == recorded
        if recorded == "" or recorded in [name for label, name in self.names.items() if label != said]:
            return False
        return self.names.setdefault(said, recorded) == recorded


class Recorded:
    """Of each rank what the dumps hold of MPI. halves, collectives: by rank, in the order of their begins."""

    def __init__(self, job, ranks):
        self.halves, self.collectives, self.calls = ([[] for _ in range(ranks)] for _ in range(3))
        for dump, events in zip(job.dumps, job.events):
            ranks_of = {p.index: p.rank for p in dump.processes.values()}
            for half in events.halves:
                if half.source == kMpi:
                    self.halves[ranks_of[half.process]].append(half)
            for one in events.ranges:
                if one.source == kMpi:
                    (self.collectives if one.detail & kCollective else self.calls)[ranks_of[one.process]].append(one)
        for each in self.halves + self.collectives + self.calls:
            each.sort(key=lambda one: (one.begin, one.lane, one.position))


def tag_of(half):
    return half.wire_type - (1 << 32) if half.wire_type >> 31 else half.wire_type


def pair_sends(rank, lines, halves, messages, labels):
    """The halves of a rank that sends, one by one beside its log. @return {payload: half}"""
    check(len(halves) == len(lines), "rank %d has sent %d messages, %d are recorded", rank, len(lines), len(halves))
    found, channels = {}, collections.Counter()
    for (function, label, tag, payload), half in zip(lines, halves):
        receiver = messages[payload].receiver
        channels[label, tag, receiver] += 1
        was = (half.name, tag_of(half), half.peer, half.wire_id, half.status, half.end is None)
        said = (function, tag, "rank %d" % receiver, channels[label, tag, receiver], kSent, False)
        check(was == said and labels.fits(label, half.module), "rank %d, message %d: recorded %s on %s, said %s on %s", rank, payload, was, half.module,
              said, label)
        found[payload] = half
    return found


def pair_receives(rank, lines, halves, messages, labels):
    """The halves of a rank that receives: channel by channel in the order in which they were seen to complete. @return {payload: half}"""
    check(len(halves) == len(lines), "rank %d has received %d messages, %d are recorded", rank, len(lines), len(halves))
    channels = collections.defaultdict(list)
    for half in halves:
        channels[half.peer, half.module, tag_of(half)].append(half)
    found = {}
    for function, label, tag, payload in lines:
        peer = "rank %d" % messages[payload].sender
        known = label if not label.startswith("?") else labels.names.get(label, "")
        waiting = channels[peer, known, tag]
        check(waiting, "rank %d has received %d of %s by %s on %s, tag %d; no such half is left", rank, payload, peer, function, label, tag)
        found[payload] = waiting.pop(0)
    return found


def check_messages(job, said):
    """Every message on exactly two ranks, with what the program knows of it. @return {payload: span id}"""
    messages, recorded, labels = said.messages(), Recorded(job, said.ranks), Labels()
    sent, arrived = {}, {}
    for rank in range(said.ranks):
        sent.update(pair_sends(rank, said.sent[rank], [h for h in recorded.halves[rank] if not h.server], messages, labels))
    for rank in range(said.ranks):
        arrived.update(pair_receives(rank, said.received[rank], [h for h in recorded.halves[rank] if h.server], messages, labels))
    for payload, half in sent.items():
        check(half.span == arrived[payload].span and half.wire_id == arrived[payload].wire_id,
              "message %s: sent as %016x, number %d, received as %016x, number %d", messages[payload], half.span, half.wire_id, arrived[payload].span,
              arrived[payload].wire_id)
        check(half.begin <= arrived[payload].end, "message %s arrived before it was sent", messages[payload])
    spans = {payload: half.span for payload, half in sent.items()}
    check(len(set(spans.values())) == len(spans), "span ids are not unique")
    check_joined(job, len(spans))
    return spans


def check_joined(job, count=None):
    """The index has them all, joined. @param count  None: as many as there are"""
    calls = [call for call in job.calls if call.either and call.either.source == kMpi]
    states = collections.Counter(call.state for call in calls)
    check(states == {"Joined": count if count is not None else len(calls)}, "of %s messages the index says %s", count, dict(states))
    for call in calls:
        check((call.client.peer, call.client.name and call.client.module) == (call.server.self_name, call.server.module),
              "%s joined with %s", vars(call.client), vars(call.server))


def check_collectives(job, said):
    """Each rank's collectives in its order, with communicator and number. @return how many"""
    recorded, labels = Recorded(job, said.ranks), Labels()
    members = collections.defaultdict(set)
    for rank, lines in enumerate(said.collectives):
        check(len(recorded.collectives[rank]) == len(lines), "rank %d was in %d collectives, %d are recorded", rank, len(lines), len(recorded.collectives[rank]))
        for (function, label, number, kind), one in zip(lines, recorded.collectives[rank]):
            was = (one.name, one.payload, one.kind, one.end is None)
            check(was == (function, number, kind, False) and labels.fits(label, one.attributes.category), "rank %d: recorded %s on %s, said %s on %s", rank,
                  was, one.attributes.category, (function, number, kind), label)
            members[label, number].add(rank)
    for (label, number), ranks in members.items():
        check(ranks == members[label, 1], "collective %d on %s: of %s, others of %s", number, label, ranks, members[label, 1])
    return len(members)
