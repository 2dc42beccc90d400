// Collectives, and what makes and ends communicators.
#include "inject/sources/mpi/calls.hpp"
#include "inject/sources/mpi/library.hpp"

namespace ringside::inject::mpi {

void begin_collective(Frame& frame) {
    Communicator* const comm = communicator_of(frame);
    if (comm != nullptr) frame.sequence = next_collective(*comm);
    begin_waiting(frame, comm != nullptr ? comm->group : 0, schema::kNoPeer, schema::kAnyTag);
}

void end_collective(Frame& frame, int) {
    const Ending ending(frame);
}

void begin_icollective(Frame& frame) {
    Communicator* const comm = communicator_of(frame);
    if (comm == nullptr) return;
    frame.sequence = next_collective(*comm);
    if (!is_on()) return;
    const HookScope hook(SourceId::kMpi);
    if (!hook) return;
    Request begun;
    begun.function = frame.index;
    begun.comm = comm;
    begun.sequence = frame.sequence;
    begin_async(hook.lane(), begun, hook.word());
    frame.async_key = begun.key;
    frame.async_word = begun.word;
}

void end_icollective(Frame& frame, int result) {
    Communicator* const comm = frame.comm;
    if (comm == nullptr) return;
    const Places& at = frame.at();
    Request request;
    request.kind = RequestKind::kCollective;
    request.function = frame.index;
    request.comm = comm;
    request.sequence = frame.sequence;
    request.key = frame.async_key;
    request.word = frame.async_word;
    if (frame.function().kind == Kind::kCommImake) {
        request.kind = RequestKind::kNewCommunicator;
        // The handle is there by now. Not where it stands: Open MPI's Fortran has it on a stack that is gone when the request completes.
        if (result == 0) request.new_comm = frame.handle_behind(at.out);
        request.made = comm->made.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    if (result == 0) keep_request(frame.handle_behind(at.request), request);
}

void begin_resolved(Frame& frame) {
    communicator_of(frame);
    begin_waiting(frame, frame.comm != nullptr ? frame.comm->group : 0, schema::kNoPeer,
                  schema::kAnyTag);
}

void end_comm_make(Frame& frame, int result) {
    if (frame.comm != nullptr) {
        const std::uint64_t nth = frame.comm->made.fetch_add(1, std::memory_order_relaxed) + 1;
        const bool duplicate = frame.index == kComm_dup || frame.index == kComm_dup_with_info;
        if (result == 0)
            learn_child(frame.handle_behind(frame.at().out), frame.comm, nth, duplicate);
    }
    const Ending ending(frame);
}

void end_comm_make_group(Frame& frame, int result) {
    if (frame.comm != nullptr && result == 0)
        learn_group_child(frame.handle_behind(frame.at().out), frame.comm,
                          frame.number(frame.at().tag));
    const Ending ending(frame);
}

void end_intercomm(Frame& frame, int result) {
    if (frame.comm != nullptr && result == 0)
        learn_intercommunicator(frame.handle_behind(frame.at().out), frame.number(frame.at().tag));
    const Ending ending(frame);
}

void begin_comm_free(Frame& frame) {
    begin_plain(frame);
    // Before the call: another thread may be given the handle while it returns.
    forget_communicator(frame.handle_behind(frame.at().out));
}

void end_comm_set_name(Frame& frame, int result) {
    Communicator* const comm = communicator_of(frame);
    end_short(frame, result);
    if (comm == nullptr || result != 0) return;
    comm->name.clear();
    comm->name.append(pointer_of<const char>(frame.argument(frame.at().out)));
    for (auto& name : comm->names) name.store(0, std::memory_order_relaxed);
}

}  // namespace ringside::inject::mpi
