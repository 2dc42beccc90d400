// Sends, receives and probes.
#include "inject/sources/mpi/calls.hpp"
#include "inject/sources/mpi/library.hpp"

namespace ringside::inject::mpi {

namespace {

std::uint64_t group_of(const Communicator* comm) {
    return comm != nullptr ? comm->group : 0;
}

// Of a call whose communicator has been looked up.
void post_send(Frame& frame) {
    const Places& at = frame.at();
    frame.sent = post_send(frame.comm, frame.number(at.peer), frame.number(at.tag), frame.index);
}

void post_receive(Frame& frame, std::int8_t peer, std::int8_t tag) {
    frame.receipt = post_receive(frame.comm, frame.number(peer), frame.number(tag), frame.index);
}

/// A status of ours where the program wants none and we want one: for a wildcard, or for the bytes.
void want_status(Frame& frame, bool needed) {
    const std::int8_t place = frame.at().status;
    if (frame.arguments[place] == g_abi.ignore && (needed || is_on()))
        frame.arguments[place] = reinterpret_cast<Word>(frame.status);
}

const std::byte* status_of(const Frame& frame) {
    const Word status = frame.argument(frame.at().status);
    return status == g_abi.ignore ? nullptr : pointer_of<const std::byte>(status);
}

/// What is sent; asks the library, so outside of a scope.
std::uint64_t bytes_sent(const Frame& frame) {
    if (frame.sent.number == 0 || !is_on()) return 0;
    return frame.count() * type_bytes(frame.argument(frame.at().type));
}

}  // namespace

void begin_send(Frame& frame) {
    communicator_of(frame);
    post_send(frame);
    begin_waiting(frame, group_of(frame.comm), frame.sent.peer, frame.sent.tag);
}

void begin_isend(Frame& frame) {
    communicator_of(frame);
    post_send(frame);
    if (!is_on()) return;
    frame.begin = now();
    begin_range(frame);
}

void end_send(Frame& frame, int result) {
    const std::uint64_t bytes = result == 0 ? bytes_sent(frame) : 0;
    Ending ending(frame);
    if (ending.lane() != nullptr && frame.begin.value != 0)
        record_sent(*ending.lane(), frame.sent, frame.begin, ending.ticks(), bytes, result == 0);
}

namespace {

void begin_receiving(Frame& frame) {
    if (frame.receipt.comm == nullptr)
        begin_waiting(frame, group_of(frame.comm), schema::kNoPeer, schema::kAnyTag);
    else
        begin_waiting(frame, group_of(frame.comm), frame.receipt.peer, frame.receipt.tag);
}

}  // namespace

void begin_recv(Frame& frame) {
    communicator_of(frame);
    post_receive(frame, frame.at().peer, frame.at().tag);
    want_status(frame, frame.receipt.any());
    begin_receiving(frame);
}

void end_recv(Frame& frame, int result) {
    Ending ending(frame);
    complete_receive(ending.lane(), frame.receipt, status_of(frame), result == 0, ending.ticks());
}

void begin_irecv(Frame& frame) {
    communicator_of(frame);
    post_receive(frame, frame.at().peer, frame.at().tag);
    begin_short(frame);
}

void end_irecv(Frame& frame, int result) {
    if (frame.receipt.comm != nullptr) {
        Request request;
        request.function = frame.index;
        request.comm = frame.comm;
        request.receipt = frame.receipt;
        if (result == 0)
            keep_request(frame.handle_behind(frame.at().request), request);
        else
            complete_receive(nullptr, frame.receipt, nullptr, false, {});
    }
    end_short(frame, result);
}

void begin_sendrecv(Frame& frame) {
    communicator_of(frame);
    post_receive(frame, frame.at().source, frame.at().source_tag);
    post_send(frame);
    want_status(frame, frame.receipt.any());
    if (frame.receipt.comm != nullptr)
        begin_receiving(frame);
    else
        begin_waiting(frame, group_of(frame.comm), frame.sent.peer, frame.sent.tag);
}

void end_sendrecv(Frame& frame, int result) {
    const std::uint64_t bytes = result == 0 ? bytes_sent(frame) : 0;
    Ending ending(frame);
    if (ending.lane() != nullptr)
        record_sent(*ending.lane(), frame.sent, frame.begin, ending.ticks(), bytes, result == 0);
    complete_receive(ending.lane(), frame.receipt, status_of(frame), result == 0, ending.ticks());
}

void begin_isendrecv(Frame& frame) {
    communicator_of(frame);
    post_receive(frame, frame.at().source, frame.at().source_tag);
    begin_isend(frame);
}

void end_isendrecv(Frame& frame, int result) {
    end_send(frame, result);
    frame.ranged = false;
    end_irecv(frame, result);
}

// --- probes ---

void begin_probe(Frame& frame) {
    const Places& at = frame.at();
    Communicator* const comm = communicator_of(frame);
    const std::int32_t rank = frame.number(at.peer), tag = frame.number(at.tag);
    const std::int32_t peer = comm == nullptr            ? schema::kNoPeer
                              : rank == g_abi.any_source ? kAny
                                                         : comm->world_rank(rank);
    begin_waiting(frame, group_of(comm), peer, tag == g_abi.any_tag ? kAny : tag);
}

void begin_mprobe(Frame& frame) {
    want_status(frame, true);
    begin_probe(frame);
}

namespace {

/// A message was taken out of the queue: it is a receive that was posted and matched now.
void keep_matched(Frame& frame, Word message) {
    Communicator* const comm = frame.comm;
    const std::byte* const status = status_of(frame);
    if (comm == nullptr || status == nullptr) return;
    Request matched;
    matched.kind = RequestKind::kMatched;
    matched.comm = comm;
    matched.receipt = post_receive(comm, g_abi.source(status), g_abi.tag(status), frame.index);
    if (matched.receipt.comm != nullptr) keep_request(message, matched);
}

}  // namespace

void end_mprobe(Frame& frame, int result) {
    if (result == 0) keep_matched(frame, frame.handle_behind(frame.at().out));
    const Ending ending(frame);
}

void begin_improbe(Frame& frame) {
    communicator_of(frame);
    want_status(frame, true);
    if (is_on()) frame.begin = now();
}

void end_improbe(Frame& frame, int result) {
    if (result != 0 || frame.number_behind(frame.at().out) == 0) return;
    keep_matched(frame, frame.handle_behind(frame.at().out2));
    Ending ending(frame);
    ending.record_range();
}

namespace {

/// The frame has the message's hold on its communicator, which the program may have freed: until let_go(frame.comm).
void take_matched(Frame& frame) {
    Request matched;
    if (!take_request(frame.handle_behind(frame.at().out), &matched)) return;
    frame.comm = matched.comm;
    frame.receipt = matched.receipt;
    frame.receipt.function = frame.index;
}

}  // namespace

void begin_mrecv(Frame& frame) {
    take_matched(frame);
    want_status(frame, false);
    begin_receiving(frame);
}

void end_mrecv(Frame& frame, int result) {
    end_recv(frame, result);
    let_go(frame.comm);
}

void begin_imrecv(Frame& frame) {
    take_matched(frame);
    begin_short(frame);
}

void end_imrecv(Frame& frame, int result) {
    end_irecv(frame, result);
    let_go(frame.comm);  // the request, which waits, has a hold of its own
}

}  // namespace ringside::inject::mpi
