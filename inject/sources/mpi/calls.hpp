// What is done before and after each kind of call. The wrappers (hooks.cpp) hold the frame on their stack; the original runs between the two.
#pragma once

#include "inject/sources/mpi/functions.hpp"
#include "inject/sources/mpi/requests.hpp"

namespace ringside::inject::mpi {

/// One call, on the wrapper's stack.
struct Frame {
    std::uint16_t index;
    bool large;           ///< the form whose counts are 64 bits wide
    Word* arguments;      ///< a copy: what is changed here is what the original gets
    Ticks begin{};        ///< 0: not looked at
    bool ranged = false;  ///< a range of it is on the open stack
    Communicator* comm = nullptr;
    schema::OpenCall* open = nullptr;
    std::uint64_t sequence = 0;
    Sent sent{};
    Receipt receipt{};
    Word handle = 0;              ///< of a request or a message, as it was before the call
    std::uint64_t async_key = 0;  ///< of a collective that does not block
    std::uint32_t async_word = 0;
    alignas(8) std::byte status[kMostStatusBytes];

    const Function& function() const { return kFunctions[index]; }
    const Places& at() const { return function().at; }
    Word argument(std::int8_t place) const { return arguments[place]; }
    std::uint64_t count() const {
        const Word count = arguments[at().count];
        return large ? count : static_cast<std::uint32_t>(count);
    }
    std::int32_t number(std::int8_t place) const { return int_of(arguments[place]); }
    /// What an int* or a handle's address points to.
    std::int32_t number_behind(std::int8_t place) const {
        return *pointer_of<const std::int32_t>(arguments[place]);
    }
    Word handle_behind(std::int8_t place) const { return g_abi_handle_at(arguments[place]); }

private:
    static Word g_abi_handle_at(Word address);
};

/// A call on an array of requests: what the handles were before it, and statuses where the program wants none.
struct ManyFrame : Frame {
    static constexpr std::uint32_t kFew = 64;
    std::uint32_t count = 0;
    Word* handles = nullptr;        ///< null: there is no room, and nothing is followed
    std::byte* statuses = nullptr;  ///< null: the program's are not looked at
    void* mapped = nullptr;         ///< room for more than kFew
    std::size_t mapped_bytes = 0;
    Word few_handles[kFew];
    std::byte few_statuses[kFew * kMostStatusBytes];
};

using Before = void(Frame&);
using After = void(Frame&, int result);

void begin_plain(Frame& frame);
void end_plain(Frame& frame, int result);
void end_init(Frame& frame, int result);
void begin_look(Frame& frame);
void end_look(Frame& frame, int result);

void begin_send(Frame& frame);
void begin_isend(Frame& frame);
void end_send(Frame& frame, int result);
void end_send_init(Frame& frame, int result);
void begin_recv(Frame& frame);
void end_recv(Frame& frame, int result);
void begin_irecv(Frame& frame);
void end_irecv(Frame& frame, int result);
void end_recv_init(Frame& frame, int result);
void begin_sendrecv(Frame& frame);
void end_sendrecv(Frame& frame, int result);
void begin_isendrecv(Frame& frame);
void end_isendrecv(Frame& frame, int result);

void begin_probe(Frame& frame);
void begin_mprobe(Frame& frame);
void end_mprobe(Frame& frame, int result);
void begin_improbe(Frame& frame);
void end_improbe(Frame& frame, int result);
void begin_mrecv(Frame& frame);
void end_mrecv(Frame& frame, int result);
void begin_imrecv(Frame& frame);
void end_imrecv(Frame& frame, int result);

void begin_short(Frame& frame);
void end_start(Frame& frame, int result);
void begin_start(Frame& frame);
void begin_startall(ManyFrame& frame);
void end_startall(ManyFrame& frame, int result);
void begin_wait(Frame& frame);
void end_wait(Frame& frame, int result);
void begin_test(Frame& frame);
void end_test(Frame& frame, int result);
void begin_wait_many(ManyFrame& frame);
void begin_test_many(ManyFrame& frame);
void end_many(ManyFrame& frame, int result);
void begin_cancel(Frame& frame);
void begin_request_free(Frame& frame);
void end_short(Frame& frame, int result);

void begin_collective(Frame& frame);
void end_collective(Frame& frame, int result);
void begin_icollective(Frame& frame);
void end_icollective(Frame& frame, int result);
void begin_resolved(Frame& frame);
void end_collective_init(Frame& frame, int result);
void end_comm_make(Frame& frame, int result);
void end_comm_make_group(Frame& frame, int result);
void end_intercomm(Frame& frame, int result);
void begin_comm_free(Frame& frame);
void end_comm_set_name(Frame& frame, int result);

// --- what they share ---

/// The communicator that the call is on, or null. Learns the world where MPI was initialised before we came.
Communicator* communicator_of(Frame& frame);

/// The call begins. With a wait: it shows as this thread's open call.
void begin_range(Frame& frame);
void begin_waiting(Frame& frame, std::uint64_t group, std::int32_t peer, std::int32_t tag);
/// The same of a wait, which shows what its request is: the collective `sequence` of a group, or a message.
void begin_waiting_for(Frame& frame, std::uint64_t group, std::uint64_t sequence, std::int32_t peer,
                       std::int32_t tag);

/// The time after a call, inside of which its records are written.
class Ending {
public:
    /// @param write  whether there is anything to write
    explicit Ending(Frame& frame);
    ~Ending();
    Ending(const Ending&) = delete;
    Ending& operator=(const Ending&) = delete;
    /// Null: nothing is recorded.
    ThreadLane* lane() { return hook_ ? &hook_.lane() : nullptr; }
    std::uint32_t word() const { return hook_.word(); }
    Ticks ticks() const { return ticks_; }
    /// The call's range, which has not been begun: it is one only because something came of it.
    void record_range();

private:
    Frame& frame_;
    Ticks ticks_;
    HookScope hook_;
};

inline bool is_on() {
    return (capture_word() & 1) != 0;
}

}  // namespace ringside::inject::mpi
