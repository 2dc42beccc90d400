// Requests: persistent ones are made and started, and all are waited for.
#include <errno.h>
#include <sys/mman.h>

#include "inject/sources/mpi/calls.hpp"
#include "inject/sources/mpi/library.hpp"

namespace ringside::inject::mpi {

namespace {

void keep_persistent(Frame& frame, int result, RequestKind kind) {
    const Places& at = frame.at();
    Communicator* const comm = communicator_of(frame);
    if (comm == nullptr || result != 0) return;
    Request request;
    request.kind = kind;
    request.persistent = true;
    request.idle = true;
    request.function = frame.index;
    request.comm = comm;
    if (kind != RequestKind::kCollective) {
        request.rank = frame.number(at.peer);
        request.tag = frame.number(at.tag);
        // Now: the program may free the type before it starts the request.
        if (kind == RequestKind::kSend && request.rank != g_abi.proc_null)
            request.bytes = frame.count() * type_bytes(frame.argument(at.type));
    }
    keep_request(frame.handle_behind(at.request), request);
}

}  // namespace

void end_send_init(Frame& frame, int result) {
    keep_persistent(frame, result, RequestKind::kSend);
    end_short(frame, result);
}

void end_recv_init(Frame& frame, int result) {
    keep_persistent(frame, result, RequestKind::kReceive);
    end_short(frame, result);
}

void end_collective_init(Frame& frame, int result) {
    keep_persistent(frame, result, RequestKind::kCollective);
    end_short(frame, result);
}

// --- starting ---

namespace {

/// One of a call's requests, before the call: the order of posts is that of the starts.
void start_one(Frame& frame, Word handle) {
    const HookScope hook(SourceId::kMpi);
    ThreadLane* const lane = hook ? &hook.lane() : nullptr;
    std::uint64_t bytes = 0;
    const Sent sent = start_request(lane, handle, &bytes);
    if (lane != nullptr && frame.begin.value != 0)
        record_sent(*lane, sent, frame.begin, {}, bytes, true);
}

}  // namespace

void begin_start(Frame& frame) {
    if (is_on()) {
        frame.begin = now();
        begin_range(frame);
    }
    start_one(frame, frame.handle_behind(frame.at().request));
}

void end_start(Frame& frame, int result) {
    end_short(frame, result);
}

void begin_startall(ManyFrame& frame) {
    if (is_on()) {
        frame.begin = now();
        begin_range(frame);
    }
    const std::int32_t count = frame.number(frame.at().count);
    for (std::int32_t i = 0; i < count; ++i)
        start_one(frame,
                  g_abi.handle_at(frame.argument(frame.at().request), static_cast<std::size_t>(i)));
}

void end_startall(ManyFrame& frame, int result) {
    end_short(frame, result);
}

// --- one request ---

namespace {

/// Whom this request waits for, as its thread's open call.
struct Awaited {
    std::uint64_t group = 0, sequence = 0;
    std::int32_t peer = schema::kNoPeer, tag = schema::kAnyTag;
};

Awaited awaited(const Request& request) {
    Awaited out;
    if (request.idle || request.comm == nullptr) return out;
    out.group = request.comm->group;
    out.sequence = request.sequence;
    if (request.kind == RequestKind::kReceive) {
        out.peer = request.receipt.peer;
        out.tag = request.receipt.tag;
    }
    return out;
}

/// @return whether anything is known of the request
bool look_at_one(Frame& frame, Request* request) {
    frame.handle = frame.handle_behind(frame.at().request);
    const bool known = frame.handle != g_abi.request_null && look_at_request(frame.handle, request);
    const std::int8_t place = frame.at().status;
    // For a wildcard, for the bytes, and to see whether it was cancelled.
    if (known && request->kind == RequestKind::kReceive && frame.arguments[place] == g_abi.ignore &&
        (request->receipt.any() || request->cancelling || is_on()))
        frame.arguments[place] = reinterpret_cast<Word>(frame.status);
    return known;
}

void complete_one(Frame& frame, Ending& ending, int result) {
    const Word status = frame.argument(frame.at().status);
    complete_request(ending.lane(), frame.handle,
                     status == g_abi.ignore ? nullptr : pointer_of<const std::byte>(status),
                     result == 0, ending.ticks());
}

}  // namespace

void begin_wait(Frame& frame) {
    Request request;
    Awaited what;
    if (look_at_one(frame, &request)) what = awaited(request);
    begin_waiting_for(frame, what.group, what.sequence, what.peer, what.tag);
}

void end_wait(Frame& frame, int result) {
    if (result == 0) learn_made(frame.handle);
    Ending ending(frame);
    complete_one(frame, ending, result);
}

void begin_test(Frame& frame) {
    Request request;
    look_at_one(frame, &request);
    if (is_on()) frame.begin = now();
}

void end_test(Frame& frame, int result) {
    if (result == 0 && frame.number_behind(frame.at().out) == 0) return;
    if (result == 0) learn_made(frame.handle);
    Ending ending(frame);
    complete_one(frame, ending, result);
    ending.record_range();
}

void begin_cancel(Frame& frame) {
    begin_short(frame);
    cancel_request(frame.handle_behind(frame.at().request));
}

void begin_request_free(Frame& frame) {
    begin_short(frame);
    forget_request(frame.handle_behind(frame.at().request));
}

// --- many ---

namespace {

bool make_room(ManyFrame& frame) {
    frame.handles = frame.few_handles;
    frame.statuses = frame.few_statuses;
    if (frame.count <= ManyFrame::kFew) return true;
    const int saved_errno = errno;
    frame.mapped_bytes = std::size_t{frame.count} * (sizeof(Word) + g_abi.status_bytes);
    void* const mapped = mmap(nullptr, frame.mapped_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    frame.handles = nullptr;
    if (mapped == MAP_FAILED) return false;
    frame.mapped = mapped;
    frame.handles = static_cast<Word*>(mapped);
    frame.statuses = reinterpret_cast<std::byte*>(frame.handles + frame.count);
    return true;
}

/// Whether the call's status is one of an array: Waitany and Testany have a single one.
bool has_array(const Frame& frame) {
    const Kind kind = frame.function().kind;
    return kind != Kind::kWaitany && kind != Kind::kTestany;
}

/// @return whom the one pending receive waits for. Of several nobody knows which have long completed: then, as where there is none, the first request's
/// group, and nobody.
Awaited look_at_many(ManyFrame& frame) {
    const Places& at = frame.at();
    const std::int32_t count = frame.number(at.count);
    frame.count = count > 0 ? static_cast<std::uint32_t>(count) : 0;
    Awaited first;
    if (!make_room(frame)) {
        count_loss(schema::Loss::kTableFull);
        return first;
    }
    bool wanted = false, any = false;
    std::uint32_t receives = 0;
    for (std::uint32_t i = 0; i < frame.count; ++i) {
        frame.handles[i] = g_abi.handle_at(frame.argument(at.request), i);
        Request request;
        if (frame.handles[i] == g_abi.request_null || !look_at_request(frame.handles[i], &request))
            continue;
        const bool is_receive = !request.idle && request.kind == RequestKind::kReceive;
        wanted |= is_receive && (request.receipt.any() || request.cancelling || is_on());
        if ((is_receive && receives == 0) || !any) first = awaited(request);
        receives += is_receive ? 1 : 0;
        any = true;
    }
    if (receives > 1) {
        first.peer = schema::kNoPeer;
        first.tag = schema::kAnyTag;
    }
    if (wanted && frame.arguments[at.status] == g_abi.ignore)
        frame.arguments[at.status] = reinterpret_cast<Word>(frame.statuses);
    return first;
}

/// Calls `each(index of the request, index of its status)` for those that the call has completed.
template <class Each>
void for_completed(ManyFrame& frame, int result, Each each) {
    const Places& at = frame.at();
    const Kind kind = frame.function().kind;
    if (result != 0) {
        // After an error those have ended whose handle is gone.
        for (std::uint32_t i = 0; i < frame.count; ++i) {
            if (g_abi.handle_at(frame.argument(at.request), i) == g_abi.request_null) each(i, i);
        }
        return;
    }
    switch (kind) {
        case Kind::kTestall:
        case Kind::kWaitall:
            if (kind == Kind::kTestall && frame.number_behind(at.out) == 0) return;
            for (std::uint32_t i = 0; i < frame.count; ++i) each(i, i);
            return;
        case Kind::kTestany:
            if (frame.number_behind(at.out2) == 0) return;
            [[fallthrough]];
        case Kind::kWaitany: {
            const std::int32_t index = frame.number_behind(at.out);
            if (index >= 0 && static_cast<std::uint32_t>(index) < frame.count)
                each(static_cast<std::uint32_t>(index), 0u);
            return;
        }
        default: {
            const std::int32_t done = frame.number_behind(at.out);
            const auto* const indices = pointer_of<const std::int32_t>(frame.argument(at.out2));
            for (std::int32_t i = 0; i < done; ++i) {
                if (indices[i] >= 0 && static_cast<std::uint32_t>(indices[i]) < frame.count)
                    each(static_cast<std::uint32_t>(indices[i]), static_cast<std::uint32_t>(i));
            }
        }
    }
}

}  // namespace

void begin_wait_many(ManyFrame& frame) {
    const Awaited what = look_at_many(frame);
    begin_waiting_for(frame, what.group, what.sequence, what.peer, what.tag);
}

void begin_test_many(ManyFrame& frame) {
    look_at_many(frame);
    if (is_on()) frame.begin = now();
}

void end_many(ManyFrame& frame, int result) {
    bool any = false;
    if (frame.handles != nullptr) {
        for_completed(frame, result, [&](std::uint32_t i, std::uint32_t) {
            any |= frame.handles[i] != g_abi.request_null;
            if (result == 0) learn_made(frame.handles[i]);
        });
    }
    // A wait has its range and its open call to end; a test has nothing to say where nothing came of it.
    if (any || frame.ranged || frame.open != nullptr) {
        Ending ending(frame);
        const Word statuses = frame.argument(frame.at().status);
        if (any) {
            for_completed(frame, result, [&](std::uint32_t i, std::uint32_t nth) {
                if (frame.handles[i] == g_abi.request_null) return;
                const std::size_t offset =
                    has_array(frame) ? std::size_t{nth} * g_abi.status_bytes : 0;
                complete_request(ending.lane(), frame.handles[i],
                                 result != 0 || statuses == g_abi.ignore
                                     ? nullptr
                                     : pointer_of<const std::byte>(statuses) + offset,
                                 result == 0, ending.ticks());
            });
        }
        if (any && !frame.ranged) ending.record_range();
    }
    if (frame.mapped != nullptr) {
        const int saved_errno = errno;
        munmap(frame.mapped, frame.mapped_bytes);
        errno = saved_errno;
    }
}

}  // namespace ringside::inject::mpi
