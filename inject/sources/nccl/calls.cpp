#include "inject/sources/nccl/calls.hpp"

#include "inject/core/attributes.hpp"
#include "inject/core/source.hpp"
#include "schema/request_id.hpp"
#include "schema/sources.hpp"

namespace ringside::inject::nccl {

namespace {

// ncclSuccess, ncclInProgress (of communicators that do not block).
constexpr int kSuccess = 0, kInProgress = 7;
constexpr std::int32_t kNoColor = -1;

/// What this thread's ncclGroupEnd() does at last: the calls before it have only been noted by the library.
struct Group {
    std::uint32_t depth = 0;
    std::uint64_t id = 0, sequence = 0;  ///< of the last collective in it
    Communicator* made = nullptr;        ///< the communicators, by Communicator::next
};
__thread Group t_group __attribute__((tls_model("initial-exec")));

[[gnu::cold]] void tell_unknown() {
    static constinit std::atomic<bool> told{false};
    if (!told.exchange(true, std::memory_order_relaxed))
        announce_source(schema::kNccl, schema::SourceLevel::kDegraded,
                        "a communicator was made where no hook was: its collectives have no ids");
}

/// A collective begins.
std::uint64_t number(Communicator* comm) {
    const std::uint64_t sequence = next_collective(*comm);
    if (t_group.depth != 0) {
        t_group.id = comm->id;
        t_group.sequence = sequence;
    }
    return sequence;
}

NameId name_of(ThreadLane& lane, const Function& function, const Communicator* numbered) {
    AttributeSet set;
    if (numbered != nullptr) {
        set.category = intern_label(lane, numbered->label.c_str());
        set.payload = schema::PayloadType::kUnsigned;
    }
    return lane.intern_cached(function.name, intern_attributes(set));
}

std::uint64_t key_of(const Frame& frame) {
    return reinterpret_cast<std::uint64_t>(&frame);
}

/// @param comm  of a collective, which has a number
void begin(Frame& frame, const Communicator* comm, std::uint64_t group, std::uint64_t sequence) {
    const Ticks ticks = now();
    const Function& function = frame.function();
    frame.open = own_open_call();
    begin_open_call(frame.open, {schema::kNccl, function.name, group, sequence}, ticks);
    const HookScope hook(schema::kNccl, Writes::kNothing);
    if (!hook) return;
    ThreadLane& lane = hook.lane();
    lane.begin_range_at(
        {schema::kNccl, comm != nullptr ? schema::kNcclCollective : schema::kNcclCall,
         name_of(lane, function, comm), key_of(frame), comm != nullptr ? sequence : 0},
        ticks);
    frame.ranged = true;
}

void begin_collective(Frame& frame, Communicator* comm) {
    if (comm == nullptr) return begin(frame, nullptr, 0, 0);
    const std::uint64_t sequence = number(comm);
    begin(frame, comm, comm->id, sequence);
}

std::uint64_t id_by(const void* unique_ids, std::size_t count) {
    return schema::hash_bytes(static_cast<const char*>(unique_ids), count * kUniqueIdBytes);
}

/// Its making is a communicator's first collective: all members wait for each other in it.
void begin_init(Frame& frame, const void* unique_ids, std::size_t count, std::uint8_t rank_at) {
    frame.made =
        make_communicator(id_by(unique_ids, count), static_cast<std::uint32_t>(frame.number(1)),
                          frame.number(rank_at));
    begin_collective(frame, frame.made);
}

/// The members of `parent` that pass the same `which` make one.
void begin_child(Frame& frame, Communicator* parent, std::uint64_t nth, std::uint64_t which) {
    if (parent != nullptr) frame.made = make_communicator(mix(mix(parent->id, nth), which), 0, -1);
}

void begin_split(Frame& frame, Communicator* parent) {
    if (parent == nullptr) return;
    const std::uint64_t nth = parent->splits.fetch_add(1, std::memory_order_relaxed) + 1;
    if (frame.number(1) != kNoColor)
        begin_child(frame, parent, nth, static_cast<std::uint32_t>(frame.number(1)));
}

/// Those that are left out do not call it: no collective of the parent's.
void begin_shrink(Frame& frame, Communicator* parent) {
    if (parent == nullptr) return;
    const auto* const left_out = reinterpret_cast<const char*>(frame.argument(1));
    const auto bytes = static_cast<std::size_t>(frame.number(2)) * sizeof(std::int32_t);
    const std::uint64_t nth = parent->shrinks.fetch_add(1, std::memory_order_relaxed) + 1;
    begin_child(frame, parent, nth, schema::hash_bytes(left_out, bytes, ~nth));
}

/// All ranks are here: of the job they are one member.
void keep_all(const Frame& frame) {
    const std::uint64_t id = mix(now().value, reinterpret_cast<std::uint64_t>(&frame));
    const auto* const handles = reinterpret_cast<const Word*>(frame.argument(0));
    for (std::int32_t i = 0; i < frame.number(1); ++i) {
        Communicator* const comm = make_communicator(id, 1, 0);
        if (comm == nullptr) return;
        comm->handle = handles + i;
        keep_communicator(comm);
    }
}

void end_making(Frame& frame, bool good) {
    Communicator* const comm = frame.made;
    if (comm == nullptr) return;
    if (!good) return drop_communicator(comm);
    const std::uint8_t place = frame.function().made;
    comm->handle = reinterpret_cast<const Word*>(frame.argument(place == kNone ? 0 : place));
    if (t_group.depth == 0) return keep_communicator(comm);
    comm->next = t_group.made;
    t_group.made = comm;
}

/// @return whether it was the outermost one
bool leave_group() {
    return t_group.depth == 0 || --t_group.depth == 0;
}

void end_group(bool good) {
    if (!leave_group()) return;
    Communicator* comm = t_group.made;
    t_group = {};
    while (comm != nullptr) {
        Communicator* const next = comm->next;
        good ? keep_communicator(comm) : drop_communicator(comm);
        comm = next;
    }
}

}  // namespace

void before_call(Frame& frame) {
    const Function& function = frame.function();
    Communicator* comm = nullptr;
    switch (function.kind) {
        case Kind::kGroupStart:
            return;
        case Kind::kGroupEnd:
            return t_group.depth > 1 ? void() : begin(frame, nullptr, t_group.id, t_group.sequence);
        case Kind::kInit:
            return begin_init(frame, frame.arguments + kUniqueId, 1, 2);
        case Kind::kInitScalable:
            return begin_init(frame, reinterpret_cast<const void*>(frame.argument(4)),
                              static_cast<std::size_t>(frame.number(3)), 2);
        case Kind::kInitAll:
            return begin(frame, nullptr, 0, 0);
        default:
            comm = find_communicator(frame.argument(function.comm));
    }
    if (comm == nullptr && frame.argument(function.comm) != 0) [[unlikely]]
        tell_unknown();
    const std::uint64_t group = comm != nullptr ? comm->id : 0;
    switch (function.kind) {
        case Kind::kSplit:
            begin_split(frame, comm);
            [[fallthrough]];
        case Kind::kCollective:
            return begin_collective(frame, comm);
        case Kind::kShrink:
            begin_shrink(frame, comm);
            break;
        case Kind::kFree:
            // Before the call: another thread may be given the handle while it returns.
            forget_communicator(frame.argument(function.comm));
            break;
        default:
            break;
    }
    begin(frame, nullptr, group, 0);
}

void after_call(Frame& frame, int result) {
    const bool good = result == kSuccess || result == kInProgress;
    switch (frame.function().kind) {
        case Kind::kGroupStart:
            t_group.depth += good;
            return;
        case Kind::kGroupEnd:
            end_group(good);
            break;
        case Kind::kInitAll:
            if (good) keep_all(frame);
            break;
        default:
            end_making(frame, good);
    }
    end_open_call(frame.open);
    if (!frame.ranged) return;
    const HookScope hook(schema::kNccl);
    if (hook) hook.lane().end_range(key_of(frame));
}

}  // namespace ringside::inject::nccl
