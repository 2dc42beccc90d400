"""A .pftrace read packet by packet with Perfetto's own message classes: what is in it, and what is wrong with it, as one JSON object. Run by
tools/setup_oracles' Python.

    pftrace_packets.py FILE
"""
import collections
import json
import sys

from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TracePacket, TrackEvent

kCleared, kNeeds = TracePacket.SEQ_INCREMENTAL_STATE_CLEARED, TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
kTables = {"event_categories": "name", "event_names": "name", "debug_annotation_names": "name", "debug_annotation_string_values": "str"}


def unknown(message):
    """Numbers of fields that are not in their message's definition, in it and in all beneath it."""
    found = [field.field_number for field in UnknownFieldSet(message)]
    for field, value in message.ListFields():
        if field.message_type:
            for each in value if isinstance(value, (list, tuple)) or hasattr(value, "append") else (value,):
                found += unknown(each)
    return found


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    trace = Trace.FromString(data)
    told, wrong = collections.Counter(packets=len(trace.packet)), []
    if trace.ByteSize() != len(data):
        wrong.append("written again it is %d bytes, not %d" % (trace.ByteSize(), len(data)))
    sequences, tracks, depth, flows = {}, set(), collections.Counter(), collections.Counter()
    for number, packet in enumerate(trace.packet):
        def complain(what):
            if len(wrong) < 10:
                wrong.append("packet %d: %s" % (number, what))
        if unknown(packet):
            complain("fields that Perfetto does not know: %s" % unknown(packet))
        if packet.HasField("track_descriptor"):
            tracks.add(packet.track_descriptor.uuid)
        sequence = packet.trusted_packet_sequence_id
        if packet.sequence_flags & kCleared:
            sequences[sequence] = {"track": None, **{table: set() for table in kTables}}
        if packet.sequence_flags & kNeeds and sequence not in sequences:
            complain("needs a state that nothing began")
        state = sequences.get(sequence)
        if packet.HasField("trace_packet_defaults"):
            state["track"] = packet.trace_packet_defaults.track_event_defaults.track_uuid
        for table in kTables:
            for entry in getattr(packet.interned_data, table):
                if entry.iid in state[table]:
                    complain("%s %d told twice" % (table, entry.iid))
                state[table].add(entry.iid)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        track = event.track_uuid or state["track"]
        if track not in tracks:
            complain("a track %s that nothing described" % track)
        told[TrackEvent.Type.Name(event.type)] += 1
        depth[track] += {TrackEvent.TYPE_SLICE_BEGIN: 1, TrackEvent.TYPE_SLICE_END: -1}.get(event.type, 0)
        if depth[track] < 0:
            complain("an end without a begin")
        if event.type in (TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_INSTANT) and not event.name and event.name_iid not in state["event_names"]:
            complain("name %d before it was told" % event.name_iid)
        for annotation in event.debug_annotations:
            if annotation.name_iid not in state["debug_annotation_names"]:
                complain("key %d before it was told" % annotation.name_iid)
            if annotation.string_value_iid and annotation.string_value_iid not in state["debug_annotation_string_values"]:
                complain("text %d before it was told" % annotation.string_value_iid)
        flows.update(event.flow_ids)
    told["flows"] = len(flows)
    wrong += ["%d slices of track %s never end" % (n, track) for track, n in depth.items() if n]
    wrong += ["flow %d has %d ends" % (flow, n) for flow, n in flows.items() if n != 2][:10]
    return {"told": told, "wrong": wrong}


if __name__ == "__main__":
    print(json.dumps(read(sys.argv[1])))
