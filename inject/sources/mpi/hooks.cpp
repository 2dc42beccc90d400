#include "inject/sources/mpi/hooks.hpp"

#include <type_traits>
#include <utility>

#include "inject/sources/mpi/calls.hpp"

namespace ringside::inject::mpi {

namespace {

/// How a function is named: plainly, with 64-bit counts (`_c`), as Open MPI's Fortran bindings call it (`PMPI_*`).
enum Form { kPlainForm, kLargeForm, kFortranForm, kFormCount };

void* g_originals[kFormCount][kFunctionCount];

/// The frame of the call that this thread is in: what the library, or another tool, calls from in there is not the program's call. An address, so
/// that one which was left by an exception is seen to be over.
__thread std::uintptr_t t_call __attribute__((tls_model("initial-exec")));

template <Kind kKind>
struct Steps;

template <class FrameType, void (*kBefore)(FrameType&), void (*kAfter)(FrameType&, int)>
struct StepsOf {
    using CallFrame = FrameType;
    static void before(FrameType& frame) { kBefore(frame); }
    static void after(FrameType& frame, int result) { kAfter(frame, result); }
};

#define RINGSIDE_STEPS(kind, frame, before, after) \
    template <>                                    \
    struct Steps<Kind::kind> : StepsOf<frame, before, after> {}

RINGSIDE_STEPS(kPlain, Frame, begin_plain, end_plain);
RINGSIDE_STEPS(kInit, Frame, begin_plain, end_init);
RINGSIDE_STEPS(kFinalize, Frame, begin_plain, end_plain);
RINGSIDE_STEPS(kSend, Frame, begin_send, end_send);
RINGSIDE_STEPS(kIsend, Frame, begin_isend, end_send);
RINGSIDE_STEPS(kSendInit, Frame, begin_short, end_send_init);
RINGSIDE_STEPS(kRecv, Frame, begin_recv, end_recv);
RINGSIDE_STEPS(kIrecv, Frame, begin_irecv, end_irecv);
RINGSIDE_STEPS(kRecvInit, Frame, begin_short, end_recv_init);
RINGSIDE_STEPS(kSendrecv, Frame, begin_sendrecv, end_sendrecv);
RINGSIDE_STEPS(kIsendrecv, Frame, begin_isendrecv, end_isendrecv);
RINGSIDE_STEPS(kStart, Frame, begin_start, end_start);
RINGSIDE_STEPS(kStartall, ManyFrame, begin_startall, end_startall);
RINGSIDE_STEPS(kWait, Frame, begin_wait, end_wait);
RINGSIDE_STEPS(kWaitall, ManyFrame, begin_wait_many, end_many);
RINGSIDE_STEPS(kWaitany, ManyFrame, begin_wait_many, end_many);
RINGSIDE_STEPS(kWaitsome, ManyFrame, begin_wait_many, end_many);
RINGSIDE_STEPS(kTest, Frame, begin_test, end_test);
RINGSIDE_STEPS(kTestall, ManyFrame, begin_test_many, end_many);
RINGSIDE_STEPS(kTestany, ManyFrame, begin_test_many, end_many);
RINGSIDE_STEPS(kTestsome, ManyFrame, begin_test_many, end_many);
RINGSIDE_STEPS(kLook, Frame, begin_look, end_look);
RINGSIDE_STEPS(kProbe, Frame, begin_probe, end_plain);
RINGSIDE_STEPS(kMprobe, Frame, begin_mprobe, end_mprobe);
RINGSIDE_STEPS(kImprobe, Frame, begin_improbe, end_improbe);
RINGSIDE_STEPS(kMrecv, Frame, begin_mrecv, end_mrecv);
RINGSIDE_STEPS(kImrecv, Frame, begin_imrecv, end_imrecv);
RINGSIDE_STEPS(kCancel, Frame, begin_cancel, end_short);
RINGSIDE_STEPS(kRequestFree, Frame, begin_request_free, end_short);
RINGSIDE_STEPS(kCollective, Frame, begin_collective, end_collective);
RINGSIDE_STEPS(kIcollective, Frame, begin_icollective, end_icollective);
RINGSIDE_STEPS(kCollectiveInit, Frame, begin_short, end_collective_init);
RINGSIDE_STEPS(kCommMake, Frame, begin_collective, end_comm_make);
RINGSIDE_STEPS(kCommImake, Frame, begin_icollective, end_icollective);
RINGSIDE_STEPS(kCommMakeGroup, Frame, begin_resolved, end_comm_make_group);
RINGSIDE_STEPS(kIntercomm, Frame, begin_collective, end_intercomm);
RINGSIDE_STEPS(kCommFree, Frame, begin_comm_free, end_plain);
RINGSIDE_STEPS(kCommSetName, Frame, begin_short, end_comm_set_name);
#undef RINGSIDE_STEPS

template <std::uint16_t kIndex, Form kForm, class Nth>
struct Wrapper;

template <std::size_t>
using WordOf = Word;

template <std::uint16_t kIndex, Form kForm, std::size_t... kNth>
struct Wrapper<kIndex, kForm, std::index_sequence<kNth...>> {
    using Original = int(WordOf<kNth>...);

    static int call(WordOf<kNth>... words) {
        auto* const original = reinterpret_cast<Original*>(g_originals[kForm][kIndex]);
        const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
        const std::uintptr_t outer = t_call;
        if (here < outer) [[unlikely]]
            return original(words...);
        t_call = here;
        Word arguments[sizeof...(kNth) + 1] = {words...};
        typename Steps<kFunctions[kIndex].kind>::CallFrame frame;
        frame.index = kIndex;
        frame.large = kForm == kLargeForm;
        frame.arguments = arguments;
        Steps<kFunctions[kIndex].kind>::before(frame);
        const int result = original(arguments[kNth]...);
        Steps<kFunctions[kIndex].kind>::after(frame, result);
        t_call = 0;
        return result;
    }
};

#define RINGSIDE_HOOK(symbol, index, form, arity)                                               \
    *hook++ = {                                                                                 \
        symbol,                                                                                 \
        reinterpret_cast<void*>(Wrapper<index, form, std::make_index_sequence<(arity)>>::call), \
        &g_originals[form][index], 0};
#define RINGSIDE_PLAIN(name, arity, ...) RINGSIDE_HOOK("MPI_" #name, k##name, kPlainForm, arity)
#define RINGSIDE_LARGE(name, arity, ...) \
    RINGSIDE_HOOK("MPI_" #name "_c", k##name, kLargeForm, arity)
#define RINGSIDE_FORTRAN(name, arity, ...) \
    RINGSIDE_HOOK("PMPI_" #name, k##name, kFortranForm, arity)
#define RINGSIDE_PLAIN_COLLECTIVE(name, lower, arity, ...)            \
    RINGSIDE_PLAIN(name, arity)                                       \
    RINGSIDE_HOOK("MPI_I" #lower, kI##lower, kPlainForm, (arity) + 1) \
    RINGSIDE_PLAIN(name##_init, (arity) + 2)
#define RINGSIDE_LARGE_COLLECTIVE(name, lower, arity, ...)                 \
    RINGSIDE_LARGE(name, arity)                                            \
    RINGSIDE_HOOK("MPI_I" #lower "_c", kI##lower, kLargeForm, (arity) + 1) \
    RINGSIDE_LARGE(name##_init, (arity) + 2)
#define RINGSIDE_FORTRAN_COLLECTIVE(name, lower, arity, ...)             \
    RINGSIDE_FORTRAN(name, arity)                                        \
    RINGSIDE_HOOK("PMPI_I" #lower, kI##lower, kFortranForm, (arity) + 1) \
    RINGSIDE_FORTRAN(name##_init, (arity) + 2)

// NOLINTBEGIN(bugprone-macro-parentheses): terms of a sum
#define RINGSIDE_ONE(...) +1
#define RINGSIDE_THREE(...) +3
// NOLINTEND(bugprone-macro-parentheses)
constexpr std::uint32_t kLargeHooks =
    0 RINGSIDE_MPI_LARGE(RINGSIDE_ONE) RINGSIDE_MPI_LARGE_COLLECTIVES(RINGSIDE_THREE);
constexpr std::uint32_t kSmallHooks = 0 RINGSIDE_MPI_SMALL(RINGSIDE_ONE);
#undef RINGSIDE_ONE
#undef RINGSIDE_THREE

// Filled where MPI is mapped, by code: in a table of the compiler's each pointer would be the loader's to relocate, at the start of every program.
constinit SlotHook g_program_hooks[2 * kLargeHooks + kSmallHooks]{};
constinit SlotHook g_fortran_hooks[kLargeHooks + kSmallHooks]{};

[[gnu::cold]] void fill_program_hooks(SlotHook* hook) {
    RINGSIDE_MPI_LARGE(RINGSIDE_PLAIN)
    RINGSIDE_MPI_LARGE(RINGSIDE_LARGE)
    RINGSIDE_MPI_LARGE_COLLECTIVES(RINGSIDE_PLAIN_COLLECTIVE)
    RINGSIDE_MPI_LARGE_COLLECTIVES(RINGSIDE_LARGE_COLLECTIVE)
    RINGSIDE_MPI_SMALL(RINGSIDE_PLAIN)
}

[[gnu::cold]] void fill_fortran_hooks(SlotHook* hook){
    RINGSIDE_MPI_LARGE(RINGSIDE_FORTRAN) RINGSIDE_MPI_LARGE_COLLECTIVES(RINGSIDE_FORTRAN_COLLECTIVE)
        RINGSIDE_MPI_SMALL(RINGSIDE_FORTRAN)}

// Cray's are named after the compiler that they are for.
#define RINGSIDE_MPI_LIBRARIES \
    "libmpi.so", "libmpich.so", "libmpi_gnu_", "libmpi_cray.so", "libmpi_nvidia.so"

SlotSet g_program = {
    .providers = {RINGSIDE_MPI_LIBRARIES, "libmpi_ibm.so"},
    .objects = {},
    .hooks = g_program_hooks,
    .hook_count = std::extent_v<decltype(g_program_hooks)>,
    .symbol_prefix = "MPI_",
    .except = {RINGSIDE_MPI_LIBRARIES, "libopen-", "mca_", "libpmpi.so"},
    .any_target = true,
};
SlotSet g_fortran = {
    .providers = {RINGSIDE_MPI_LIBRARIES},
    .objects = {"libmpi_mpifh.so", "libmpichfort.so", "libmpifort.so", "libmpifort_"},
    .hooks = g_fortran_hooks,
    .hook_count = std::extent_v<decltype(g_fortran_hooks)>,
    .symbol_prefix = "PMPI_",
    .any_target = true,
};

#undef RINGSIDE_MPI_LIBRARIES

}  // namespace

SlotSet& program_slots() {
    if (g_program_hooks[0].symbol == nullptr) fill_program_hooks(g_program_hooks);
    return g_program;
}
SlotSet& fortran_slots() {
    if (g_fortran_hooks[0].symbol == nullptr) fill_fortran_hooks(g_fortran_hooks);
    return g_fortran;
}

}  // namespace ringside::inject::mpi
