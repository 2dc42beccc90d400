#include "inject/sources/mpi/messages.hpp"

#include "inject/core/attributes.hpp"
#include "inject/core/intern.hpp"
#include "inject/core/pools.hpp"
#include "inject/sources/mpi/channels.hpp"
#include "inject/sources/mpi/functions.hpp"
#include "inject/sources/mpi/library.hpp"

namespace ringside::inject::mpi {

namespace {

// Programs use the tag as the number of an iteration, so there may be any number: 2^12 channels at first, 2^19 in all, which are 8 MiB.
using Counts = ChannelCounts<12, 7>;
constinit Counts g_channels;

constinit EntryPool<Posted, 16384> g_posted;

// Ids of names, as find_kept_name() takes them.
constinit std::atomic<std::uint64_t> g_function_names[kFunctionCount];
constexpr std::uint32_t kKeptRanks = 4096;
constinit std::atomic<std::uint64_t> g_rank_names[kKeptRanks];

std::uint64_t receive_hash(const Communicator& comm, std::int32_t source, std::int32_t tag) {
    return channel_hash({comm.id, source, g_world.rank, tag});
}

std::uint64_t number_receive(const Communicator& comm, std::int32_t source, std::int32_t tag) {
    return g_channels.next(receive_hash(comm, source, tag), Counts::End::kReceive);
}

NameId rank_name(ThreadLane& lane, std::int32_t rank) {
    const auto index = static_cast<std::uint32_t>(rank);
    NameId name;
    if (index < kKeptRanks &&
        find_kept_name(g_rank_names[index].load(std::memory_order_relaxed), name))
        return name;
    FixedText<24> text;
    text.append("rank ").append_number(index);
    name = lane.intern_cached(text.c_str());
    if (index < kKeptRanks) g_rank_names[index].store(keep_name(name), std::memory_order_relaxed);
    return label_of(name);
}

NameId label_name(ThreadLane& lane, Communicator& comm) {
    NameId name;
    if (find_kept_name(comm.label_name.load(std::memory_order_relaxed), name)) return name;
    name = lane.intern_cached(comm.label.c_str());
    comm.label_name.store(keep_name(name), std::memory_order_relaxed);
    return label_of(name);
}

/// Keys of this thread: taken from the process's by the dozen, for its counter is a line that all threads write.
struct Keys {
    std::uint64_t next, end;
};
__thread Keys t_keys __attribute__((tls_model("initial-exec")));

std::uint64_t half_key() {
    constexpr std::uint64_t kTaken = 64;
    if (t_keys.next == t_keys.end) [[unlikely]] {
        t_keys.next = g_process.header->next_key.fetch_add(kTaken, std::memory_order_relaxed) + 1;
        t_keys.end = t_keys.next + kTaken;
    }
    return t_keys.next++;
}

struct Half {
    schema::RpcSide side;
    schema::RpcStatus status;
    std::uint64_t hash, number;
    std::int32_t peer, tag;
    std::uint16_t function;
    std::uint64_t bytes;
    Ticks begin, end;  ///< 0: now
};

void record_half(ThreadLane& lane, Communicator& comm, const Half& half) {
    RpcBegin begin;
    begin.source = SourceId::kMpi;
    begin.side = half.side;
    begin.ticks = half.begin;
    begin.key = half_key();
    begin.parent_key = half.side == schema::RpcSide::kClient ? lane.context().key : 0;
    begin.id = {{g_world.seed, g_world.seed}, message_span(half.hash, half.number)};
    begin.bytes = half.bytes;
    begin.module = label_name(lane, comm);
    begin.self = rank_name(lane, g_world.rank);
    begin.peer = rank_name(lane, half.peer);
    begin.function = function_name(lane, half.function);
    begin.wire_type = static_cast<std::uint32_t>(half.tag);
    begin.wire_id = half.number;
    lane.rpc_whole(begin, half.status, half.end);
}

void record_received(ThreadLane& lane, Communicator& comm, std::int32_t source, std::int32_t tag,
                     std::uint64_t number, std::uint16_t function, std::uint64_t bytes,
                     Ticks ticks) {
    record_half(lane, comm,
                {schema::RpcSide::kServer, schema::RpcStatus::kOk, receive_hash(comm, source, tag),
                 number, source, tag, function, bytes, ticks, ticks});
}

void give_back(Posted* posted) {
    auto* const comm = static_cast<Communicator*>(posted->comm);
    g_posted.release(posted);
    let_go(comm);
}

/// Those that could be numbered at last.
void finish(ThreadLane* lane, Posted* posted) {
    while (posted != nullptr) {
        Posted* const next = posted->next;
        if (lane != nullptr && posted->number != 0)
            record_received(*lane, *static_cast<Communicator*>(posted->comm), posted->source,
                            posted->tag, posted->number, posted->function, posted->bytes,
                            posted->ticks);
        give_back(posted);
        posted = next;
    }
}

}  // namespace

NameId function_name(ThreadLane& lane, std::uint16_t function) {
    std::atomic<std::uint64_t>& kept = g_function_names[function];
    NameId name;
    if (find_kept_name(kept.load(std::memory_order_relaxed), name)) return name;
    name = lane.intern_cached(kFunctions[function].name);
    kept.store(keep_name(name), std::memory_order_relaxed);
    return name;
}

NameId collective_name(ThreadLane& lane, std::uint16_t function, Communicator& comm) {
    // The word of another function in this place is no id.
    const std::uint64_t mark = static_cast<std::uint64_t>(function + 1) << 16;
    static_assert(schema::kNameEntries < 1 << 16 && kFunctionCount < 1 << 15);
    std::atomic<std::uint64_t>& kept = comm.names[function % Communicator::kKeptNames];
    NameId name;
    if (find_kept_name(kept.load(std::memory_order_relaxed) ^ mark, name)) return name;
    AttributeSet set;
    set.category = label_name(lane, comm);
    set.domain = intern_label(lane, comm.name.c_str());
    set.payload = schema::PayloadType::kUnsigned;
    name = lane.intern_cached(kFunctions[function].name, intern_attributes(set));
    // With a label that is unknown it is not kept: that is counted with each record.
    const bool unknown = set.category == unknown_name() || set.domain == unknown_name();
    kept.store(unknown || keep_name(name) == 0 ? 0 : keep_name(name) ^ mark,
               std::memory_order_relaxed);
    return name;
}

Sent post_send(Communicator* comm, std::int32_t rank, std::int32_t tag, std::uint16_t function) {
    if (comm == nullptr || rank == g_abi.proc_null) return {};
    const std::int32_t peer = comm->world_rank(rank);
    if (peer < 0) return {};
    Sent sent{comm, channel_hash({comm->id, g_world.rank, peer, tag}), 0, peer, tag, function};
    sent.number = g_channels.next(sent.hash, Counts::End::kSend);
    if (sent.number == 0) count_loss(schema::Loss::kTableFull);
    return sent;
}

Receipt post_receive(Communicator* comm, std::int32_t rank, std::int32_t tag,
                     std::uint16_t function) {
    if (comm == nullptr || rank == g_abi.proc_null) return {};
    Receipt receipt{comm, 0, nullptr, kAny, tag == g_abi.any_tag ? kAny : tag, function};
    if (rank != g_abi.any_source) {
        receipt.peer = comm->world_rank(rank);
        if (receipt.peer < 0) return {};
    }
    if (!receipt.any() && comm->receives.empty()) [[likely]] {
        receipt.number = number_receive(*comm, receipt.peer, receipt.tag);
        if (receipt.number == 0) count_loss(schema::Loss::kTableFull);
        return receipt;
    }
    Posted* const posted = g_posted.acquire();
    if (posted != nullptr) {
        hold(comm);
        *posted = {};
        posted->comm = comm;
        posted->function = function;
    }
    bool listed = false;
    receipt.number = comm->receives.post(
        receipt.peer, receipt.tag, posted,
        [&](std::int32_t source, std::int32_t its_tag) {
            return number_receive(*comm, source, its_tag);
        },
        &listed);
    if (listed) {
        receipt.posted = posted;
        return receipt;
    }
    if (posted != nullptr) give_back(posted);
    if (receipt.number == 0) count_loss(schema::Loss::kTableFull);
    return receipt;
}

void complete_receive(ThreadLane* lane, const Receipt& receipt, const std::byte* status, bool ok,
                      Ticks ticks) {
    Communicator* const comm = receipt.comm;
    if (comm == nullptr) return;
    const auto number = [&](std::int32_t source, std::int32_t tag) {
        return number_receive(*comm, source, tag);
    };
    const bool cancelled = ok && status != nullptr && g_abi.cancelled(status);
    std::int32_t source = receipt.peer, tag = receipt.tag;
    if (status != nullptr && receipt.any()) {
        source = comm->world_rank(g_abi.source(status));
        tag = g_abi.tag(status);
    }
    if (!ok || cancelled || source < 0 || tag < 0) {
        if (receipt.posted != nullptr) {
            Posted* done = nullptr;
            if (!comm->receives.drop(receipt.posted, number, &done)) return;
            finish(lane, done);
            if (cancelled && receipt.posted->number != 0)
                g_channels.take_back(
                    receive_hash(*comm, receipt.posted->source, receipt.posted->tag),
                    Counts::End::kReceive, receipt.posted->number);
            give_back(receipt.posted);
        } else if (cancelled) {
            g_channels.take_back(receive_hash(*comm, source, tag), Counts::End::kReceive,
                                 receipt.number);
        }
        return;
    }
    const std::uint64_t bytes = status != nullptr ? g_abi.bytes(status) : 0;
    if (receipt.posted != nullptr) {
        finish(lane, comm->receives.complete(receipt.posted, source, tag, ticks, bytes, number));
    } else if (lane != nullptr && receipt.number != 0) {
        record_received(*lane, *comm, source, tag, receipt.number, receipt.function, bytes, ticks);
    }
}

void record_sent(ThreadLane& lane, const Sent& sent, Ticks begin, Ticks end, std::uint64_t bytes,
                 bool ok) {
    if (sent.number == 0) return;
    record_half(
        lane, *sent.comm,
        {schema::RpcSide::kClient, ok ? schema::RpcStatus::kSent : schema::RpcStatus::kError,
         sent.hash, sent.number, sent.peer, sent.tag, sent.function, bytes, begin, end});
}

}  // namespace ringside::inject::mpi
