// What all kinds of calls share; and those that are a range and no more.
#include "inject/sources/mpi/calls.hpp"

#include "inject/core/source.hpp"
#include "inject/sources/mpi/library.hpp"

namespace ringside::inject::mpi {

Word Frame::g_abi_handle_at(Word address) {
    return g_abi.handle_at(address);
}

namespace {

/// Of a range on the open stack: unique among those of its thread.
std::uint64_t key_of(const Frame& frame) {
    return reinterpret_cast<std::uint64_t>(&frame);
}

[[gnu::cold]] void learn_late() {
    if (learn_world())
        announce_source(schema::SourceId::kMpi, schema::SourceLevel::kDegraded,
                        "hooked after MPI_Init: what was made and sent before is not known");
}

}  // namespace

Communicator* communicator_of(Frame& frame) {
    const Word handle = frame.argument(frame.at().comm);
    frame.comm = find_communicator(handle);
    if (frame.comm == nullptr && !world_known()) [[unlikely]] {
        learn_late();
        frame.comm = find_communicator(handle);
    }
    return frame.comm;
}

void begin_range(Frame& frame) {
    const HookScope hook(SourceId::kMpi, Writes::kNothing);
    if (!hook) return;
    ThreadLane& lane = hook.lane();
    const bool collective = frame.sequence != 0;
    if (frame.begin.value == 0) frame.begin = now();
    lane.begin_range_at({SourceId::kMpi, collective ? schema::kMpiCollective : schema::kMpiCall,
                         collective ? collective_name(lane, frame.index, *frame.comm)
                                    : function_name(lane, frame.index),
                         key_of(frame), frame.sequence},
                        frame.begin);
    frame.ranged = true;
}

void begin_waiting_for(Frame& frame, std::uint64_t group, std::uint64_t sequence, std::int32_t peer,
                       std::int32_t tag) {
    frame.begin = now();
    frame.open = own_open_call();
    begin_open_call(frame.open,
                    {SourceId::kMpi, frame.function().name, group, sequence, peer, tag, true},
                    frame.begin);
    if (is_on()) begin_range(frame);
}

void begin_waiting(Frame& frame, std::uint64_t group, std::int32_t peer, std::int32_t tag) {
    begin_waiting_for(frame, group, frame.sequence, peer, tag);
}

Ending::Ending(Frame& frame) : frame_(frame), hook_(SourceId::kMpi) {
    end_open_call(frame.open);
    if (hook_) ticks_ = now();
}

Ending::~Ending() {
    if (hook_ && frame_.ranged) hook_.lane().end_range(key_of(frame_));
}

void Ending::record_range() {
    if (!hook_ || frame_.begin.value == 0) return;
    const NameId name = function_name(hook_.lane(), frame_.index);
    const schema::RangeRecord record{
        schema::RecordHeader{schema::RecordKind::kRange, 1,
                             schema::record_flags(SourceId::kMpi, schema::kMpiCall),
                             name == schema::kInlineName ? schema::kNoName : name}
            .pack(),
        frame_.begin.value, ticks_.value, 0};
    hook_.lane().put_whole(&record, 1, frame_.begin);
}

void begin_plain(Frame& frame) {
    begin_waiting(frame, 0, schema::kNoPeer, schema::kAnyTag);
}

void end_plain(Frame& frame, int) {
    const Ending ending(frame);
}

void end_init(Frame& frame, int result) {
    if (result == 0) learn_world();
    end_plain(frame, result);
}

// --- calls that don't wait ---

void begin_short(Frame& frame) {
    if (is_on()) begin_range(frame);
}

void end_short(Frame& frame, int) {
    if (frame.ranged) const Ending ending(frame);
}

void begin_look(Frame& frame) {
    if (is_on()) frame.begin = now();
}

void end_look(Frame& frame, int result) {
    if (frame.begin.value == 0 || result != 0 || frame.number_behind(frame.at().out) == 0) return;
    Ending ending(frame);
    ending.record_range();
}

}  // namespace ringside::inject::mpi
