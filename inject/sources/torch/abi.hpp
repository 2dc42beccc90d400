// What we rely on of torch's binary interface, 1.13 to 2.15, without its headers: names of exported functions, and the few layouts that
// are fixed by the Itanium C++ ABI, libstdc++'s std::function, and RecordFunctionCallback. A hook may have several manglings (same
// calling convention): each is an entry of its own, and the ones that a process has get slots.
//
//              1.13 (Debian)   2.0 - 2.5       2.6         2.7, 2.8    2.9 - 2.15
//   strings    cxx11           old             old         cxx11       cxx11
//   pipeWrite  intrusive_ptr   intrusive_ptr   const&      const&      const&
//   before     (char*, long)   the same        the same    the same    (variant<string_view, schema>, long)
//
// Everything else that differs between versions (offsets in RecordFunction and WorkerInfo) is found at run time: calibrate.hpp,
// worker_info.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject::torch {

#define RS_RPC "_ZN5torch11distributed3rpc"
#define RS_RPC_CONST "_ZNK5torch11distributed3rpc"
#define RS_AGENT RS_RPC "15TensorPipeAgent"
#define RS_NULL_TYPE "6detail34intrusive_target_default_null_type"

/// c10::intrusive_ptr<Future> send(const WorkerInfo&, intrusive_ptr<Message>, float, const unordered_map<Device, Device>&)
inline constexpr char kSend[] = RS_AGENT
    "4sendERKNS1_10WorkerInfoEN3c1013intrusive_ptrINS1_7MessageENS6_" RS_NULL_TYPE
    "IS8_EEEEfRKSt13unordered_mapINS6_6DeviceESE_St4hashISE_ESt8equal_toISE_ESaISt4pairIKSE_SE_"
    "EEE";

/// void pipeWrite(const shared_ptr<Pipe>&, intrusive_ptr<Message>, vector<Device>&&, vector<Stream>, function<void(const Error&)>)
inline constexpr char kPipeWriteByValue[] = RS_AGENT
    "9pipeWriteERKSt10shared_ptrIN10tensorpipe4PipeEEN3c1013intrusive_ptrINS1_"
    "7MessageENS9_" RS_NULL_TYPE
    "ISB_EEEEOSt6vectorINS9_6DeviceESaISH_EESG_INS9_6StreamESaISL_EESt8functionIFvRKNS4_5ErrorEEE";
/// The same with const intrusive_ptr<Message>&: both pass a pointer.
inline constexpr char kPipeWriteByReference[] = RS_AGENT
    "9pipeWriteERKSt10shared_ptrIN10tensorpipe4PipeEERKN3c1013intrusive_ptrINS1_"
    "7MessageENS9_" RS_NULL_TYPE
    "ISB_EEEEOSt6vectorINS9_6DeviceESaISJ_EESI_INS9_6StreamESaISN_EESt8functionIFvRKNS4_5ErrorEEE";

/// void pipeRead(const shared_ptr<Pipe>&, function<void(const Error&, intrusive_ptr<Message>, vector<Stream>)>)
inline constexpr char kPipeRead[] = RS_AGENT
    "8pipeReadERKSt10shared_ptrIN10tensorpipe4PipeEESt8functionIFvRKNS4_5ErrorEN3c1013intrusive_"
    "ptrINS1_7MessageENSD_" RS_NULL_TYPE "ISF_EEEESt6vectorINSD_6StreamESaISL_EEEE";

/// intrusive_ptr<Future> RequestCallback::operator()(Message&, vector<Stream>) const
inline constexpr char kServe[] =
    RS_RPC_CONST "15RequestCallbackclERNS1_7MessageESt6vectorIN3c106StreamESaIS7_EE";

/// void markFutureWithError(shared_ptr<AtomicJitFuture>, string)
inline constexpr char kMarkErrorNewString[] = RS_AGENT
    "19markFutureWithErrorESt10shared_ptrINS2_15AtomicJitFutureEENSt7__cxx1112basic_"
    "stringIcSt11char_traitsIcESaIcEEE";
inline constexpr char kMarkErrorOldString[] =
    RS_AGENT "19markFutureWithErrorESt10shared_ptrINS2_15AtomicJitFutureEESs";

/// void markFutureAsComplete(shared_ptr<AtomicJitFuture>, intrusive_ptr<Message>, vector<Stream>)
inline constexpr char kMarkComplete[] = RS_AGENT
    "20markFutureAsCompleteESt10shared_ptrINS2_15AtomicJitFutureEEN3c1013intrusive_ptrINS1_"
    "7MessageENS6_" RS_NULL_TYPE "IS8_EEEESt6vectorINS6_6StreamESaISE_EE";

/// void sendCompletedResponseMessage(shared_ptr<Pipe>&, Future&, uint64_t message id, vector<Stream>)
inline constexpr char kRespond[] = RS_AGENT
    "28sendCompletedResponseMessageERSt10shared_ptrIN10tensorpipe4PipeEERN3c106ivalue6FutureEmSt"
    "6vectorINS8_6StreamESaISD_EE";

/// void c10::ThreadPool::run(function<void()>)
inline constexpr char kPoolRun[] = "_ZN3c1010ThreadPool3runESt8functionIFvvEE";

/// The agent's vtable: there wherever torch was built with TensorPipe, whatever else is named.
inline constexpr char kAgentVtable[] = "_ZTVN5torch11distributed3rpc15TensorPipeAgentE";

// Accessors: all exported, so no offset of Message, Pipe or the agent is needed.
inline constexpr char kMessageId[] = RS_RPC_CONST "7Message2idEv";
inline constexpr char kMessageType[] = RS_RPC_CONST "7Message4typeEv";
inline constexpr char kMessagePayload[] = RS_RPC "7Message7payloadEv";
inline constexpr char kWorkerInfo[] = RS_RPC_CONST "8RpcAgent13getWorkerInfoEv";
inline constexpr char kRemoteNameNewString[] = "_ZN10tensorpipe4Pipe13getRemoteNameB5cxx11Ev";
inline constexpr char kRemoteNameOldString[] = "_ZN10tensorpipe4Pipe13getRemoteNameEv";

// RecordFunction, named alike in all versions but for `before`.
inline constexpr char kAddCallback[] = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE";
inline constexpr char kRemoveCallback[] = "_ZN2at14removeCallbackEm";
inline constexpr char kHasCallbacks[] = "_ZN2at18hasGlobalCallbacksEv";
inline constexpr char kRangeName[] = "_ZNK2at14RecordFunction4nameEv";
inline constexpr char kRangeIsAsync[] = "_ZNK2at14RecordFunction7isAsyncEv";
inline constexpr char kRangeConstructor[] = "_ZN2at14RecordFunctionC1ENS_11RecordScopeE";
inline constexpr char kRangeDestructor[] = "_ZN2at14RecordFunctionD1Ev";
inline constexpr char kRangeThreadId[] = "_ZN2at14RecordFunction15currentThreadIdEv";
inline constexpr char kRangeBeforeText[] = "_ZN2at14RecordFunction6beforeEPKcl";
inline constexpr char kRangeBeforeVariant[] =
    "_ZN2at14RecordFunction6beforeESt7variantIJSt17basic_string_viewIcSt11char_"
    "traitsIcEESt17reference_wrapperIKN3c1014FunctionSchemaEEEEl";

// The callbacks of a thread alone: what a ThreadLocalState carries from one thread to the next.
/// const RecordFunctionTLS& get_record_function_tls_(), void set_record_function_tls_(const RecordFunctionTLS&)
inline constexpr char kThreadCallbacks[] = "_ZN2at24get_record_function_tls_Ev";
inline constexpr char kSetThreadCallbacks[] =
    "_ZN2at24set_record_function_tls_ERKNS_17RecordFunctionTLSE";
inline constexpr char kEnableCallbacks[] = "_ZN2at20enableRecordFunctionEb";
inline constexpr char kAddThreadCallback[] =
    "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE";

// c10d's gloo.
#define RS_GLOO "_ZN4c10d16ProcessGroupGloo"
/// void enqueue(intrusive_ptr<AsyncWork>)
inline constexpr char kGlooEnqueue[] =
    RS_GLOO "7enqueueEN3c1013intrusive_ptrINS0_9AsyncWorkENS1_" RS_NULL_TYPE "IS3_EEEE";
/// static void AsyncWork::execute(intrusive_ptr<AsyncWork>), later const intrusive_ptr<AsyncWork>&: both pass a pointer.
inline constexpr char kGlooExecuteByValue[] =
    RS_GLOO "9AsyncWork7executeEN3c1013intrusive_ptrIS1_NS2_" RS_NULL_TYPE "IS1_EEEE";
inline constexpr char kGlooExecuteByReference[] =
    RS_GLOO "9AsyncWork7executeERKN3c1013intrusive_ptrIS1_NS2_" RS_NULL_TYPE "IS1_EEEE";
inline constexpr char kGlooSequenceNumber[] = RS_GLOO "25getSequenceNumberForGroupEv";
#undef RS_GLOO

/// std::vector<std::vector<std::int64_t>> torch::profiler::impl::inputSizes(const RecordFunction&, bool)
inline constexpr char kInputSizes[] =
    "_ZN5torch8profiler4impl10inputSizesERKN2at14RecordFunctionEb";
// c10::ProfiledCPUMemoryReporter: void New(void*, std::size_t), void Delete(void*)
inline constexpr char kMemoryNew[] = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm";
inline constexpr char kMemoryDelete[] = "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv";
/// void c10::reportMemoryUsageToProfiler(void*, std::int64_t bytes, std::size_t allocated, std::size_t reserved, Device), once std::int64_t all
/// three: one wrapper. A Device is two bytes in a register, its type the first.
inline constexpr char kReportMemory[] = "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE";
inline constexpr char kReportMemorySigned[] =
    "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE";

#undef RS_RPC
#undef RS_RPC_CONST
#undef RS_AGENT
#undef RS_NULL_TYPE

/// at::RecordFunctionCallback, 1.13 to 2.15. Trivially copyable and larger than two words: by value it lies on the stack.
struct RecordFunctionCallback {
    void* (*start)(
        void** context_out,
        const char*
            range);  ///< returns unique_ptr<ObserverContext>: a hidden result pointer comes first
    void (*end)(const char* range, void* context);
    double sampling_probability;
    std::uint8_t scopes[10];
    std::uint8_t needs_inputs;
    std::uint8_t needs_outputs;
    std::uint8_t needs_ids;
};
static_assert(sizeof(RecordFunctionCallback) == 40);

/// at::RecordFunctionTLS {std::vector<entry> callbacks; bool enabled}, 1.13 to 2.15: confirmed at run time before it is relied on.
struct ThreadCallbacks {
    const void* begin;
    const void* end;
    const void* capacity;
    std::uint8_t enabled;

    bool empty() const { return begin == end; }
};
static_assert(offsetof(ThreadCallbacks, enabled) == 24);

/// std::variant<std::string_view, std::reference_wrapper<const FunctionSchema>>: trivially copyable, on the stack by value.
struct NameVariant {
    std::size_t length;
    const char* text;
    std::uint8_t index;
};
static_assert(sizeof(NameVariant) == 24);

/// Where the Future's pointer lies in AtomicJitFuture {atomic_flag; intrusive_ptr<Future>}.
inline constexpr std::size_t kFutureOffset = 8;

/// c10d::Backend {vptr, counts, int rank_, int size_, DebugLevel, std::string pg_uid_, ...} of those versions that name their groups.
inline constexpr std::size_t kBackendRank = 16;
/// c10d::ProcessGroup {vptr, two counts, int rank_, int size_, ...} of 1.13.
inline constexpr std::size_t kOldBackendRank = 24;
inline constexpr std::size_t kBackendGroupName = 32;

/// MessageType, the same numbers in all versions: requests have bit 8, responses bit 9.
enum MessageType : std::int32_t {
    kScriptCall = 0x100,
    kPythonCall = 0x102,
    kScriptRemoteCall = 0x104,
    kPythonRemoteCall = 0x105,
    kScriptFetch = 0x107,
    kPythonFetch = 0x108,
    kRrefUserDelete = 0x10b,
    kRrefForkRequest = 0x10c,
    kRrefChildAccept = 0x10d,
    kForwardAutograd = 0x10f,  ///< wraps another request
    kBackwardAutograd = 0x111,
    kCleanupAutograd = 0x113,
    kWithProfiling = 0x115,  ///< wraps another request
    kRrefBackward = 0x117,
    kException = 0x237,
};
inline constexpr std::int32_t kRequestBit = 0x100;

}  // namespace ringside::inject::torch
