#include "inject/sources/mpi/requests.hpp"

#include "inject/core/pools.hpp"
#include "inject/sources/mpi/library.hpp"

namespace ringside::inject::mpi {

namespace {

constinit KeyedTable<Request, 4096> g_requests;
/// Communicators that are being made: where there are none nobody looks for them.
constinit std::atomic<std::uint32_t> g_being_made{0};

void end_async(ThreadLane* lane, const Request& request) {
    if (lane == nullptr || request.key == 0 || request.word != capture_word()) return;
    lane->async_end(SourceId::kMpi, schema::kMpiCollective,
                    collective_name(*lane, request.function, *request.comm), request.key,
                    request.sequence);
}

/// What was still known of a handle that another request has now, or that was freed.
void abandon(const Request& request) {
    if (request.kind == RequestKind::kNewCommunicator)
        g_being_made.fetch_sub(1, std::memory_order_relaxed);
    // It may take a message all the same, and nobody knows which.
    if (!request.idle && request.receipt.posted != nullptr) {
        request.comm->receives.give_up();
        complete_receive(nullptr, request.receipt, nullptr, false, {});
    }
    let_go(request.comm);
}

}  // namespace

void keep_request(Word handle, const Request& request) {
    handle = g_abi.handle(handle);
    if (handle == g_abi.request_null) return;
    forget_request(handle);
    hold(request.comm);
    if (request.kind == RequestKind::kNewCommunicator)
        g_being_made.fetch_add(1, std::memory_order_relaxed);
    if (g_requests.put(handle, request)) return;
    count_loss(schema::Loss::kTableFull);
    abandon(request);
}

bool look_at_request(Word handle, Request* out) {
    bool found = false;
    // A request is waited for by one thread at a time, which is this one.
    g_requests.peek(g_abi.handle(handle), [&](const Request& request) {
        *out = request;
        found = true;
    });
    return found;
}

bool take_request(Word handle, Request* out) {
    return g_requests.take(g_abi.handle(handle), out);
}

Sent start_request(ThreadLane* lane, Word handle, std::uint64_t* bytes) {
    Sent sent;
    g_requests.peek(g_abi.handle(handle), [&](Request& request) {
        if (!request.idle) return;
        request.idle = false;
        if (request.kind == RequestKind::kSend) {
            sent = post_send(request.comm, request.rank, request.tag, request.function);
            *bytes = request.bytes;
        } else if (request.kind == RequestKind::kReceive) {
            request.receipt =
                post_receive(request.comm, request.rank, request.tag, request.function);
        } else if (request.comm != nullptr) {
            request.sequence = next_collective(*request.comm);
            request.key = 0;
            if (lane != nullptr) begin_async(*lane, request, capture_word());
        }
    });
    return sent;
}

void begin_async(ThreadLane& lane, Request& request, std::uint32_t word) {
    request.key = next_key();
    request.word = word;
    lane.async_begin(SourceId::kMpi, schema::kMpiCollective,
                     collective_name(lane, request.function, *request.comm), request.key,
                     request.sequence);
}

void complete_request(ThreadLane* lane, Word handle, const std::byte* status, bool ok,
                      Ticks ticks) {
    Request done;
    bool found = false, persistent = false;
    g_requests.peek(g_abi.handle(handle), [&](Request& request) {
        persistent = request.persistent;
        if (!persistent || request.idle) return;
        done = request;
        request.idle = true;
        found = true;
    });
    if (!persistent) found = g_requests.take(g_abi.handle(handle), &done);
    if (!found) return;
    if (done.kind == RequestKind::kReceive)
        complete_receive(lane, done.receipt, status, ok, ticks);
    else if (done.kind == RequestKind::kCollective || done.kind == RequestKind::kNewCommunicator)
        end_async(lane, done);
    if (persistent) return;
    if (done.kind == RequestKind::kNewCommunicator)
        g_being_made.fetch_sub(1, std::memory_order_relaxed);
    let_go(done.comm);
}

void learn_made(Word handle) {
    if (g_being_made.load(std::memory_order_relaxed) == 0) return;
    Request made;
    if (look_at_request(handle, &made) && made.kind == RequestKind::kNewCommunicator)
        learn_child(made.new_comm, made.comm, made.made, true);
}

void forget_request(Word handle) {
    Request gone;
    if (g_requests.take(g_abi.handle(handle), &gone)) abandon(gone);
}

void cancel_request(Word handle) {
    g_requests.peek(g_abi.handle(handle), [](Request& request) { request.cancelling = true; });
}

std::uint64_t next_collective(Communicator& comm) {
    const std::uint64_t sequence = comm.collectives.fetch_add(1, std::memory_order_relaxed) + 1;
    schema::GroupState* state = comm.state.load(std::memory_order_relaxed);
    if (!advance_group(state, comm.group, sequence)) [[unlikely]] {
        state = claim_state(comm);
        advance_group(state, comm.group, sequence);
    }
    return sequence;
}

}  // namespace ringside::inject::mpi
