// What we rely on of gRPC's binary interface, without its headers: names of exported functions, the C API's structs, and three layouts
// inside the core (a registered call and method, a slice's count). All of it is that of core 29 (gRPC 1.51); library.cpp looks at
// grpc_version_string() and leaves every other version alone.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject::grpc {

/// What grpc_version_string() of a known version begins with: it names the core.
inline constexpr char kKnownCore[] = "29.";

// Opaque.
struct Call;
struct Channel;
struct Queue;
struct Server;
struct ByteBuffer;

/// A count, and who is called when it reaches zero; grpc_slice_refcount of core 29. library.cpp compares it with a slice of gRPC's own.
struct SliceCount {
    std::size_t references;
    void (*destroy)(SliceCount*);
};

struct Slice {
    struct Counted {
        std::size_t length;
        const char* bytes;
    };
    struct Inlined {
        std::uint8_t length;
        char bytes[23];
    };
    SliceCount* count;  ///< null: the bytes are in here; 1: nobody counts
    union {
        Counted counted;
        Inlined inlined;
    };
};
static_assert(sizeof(Slice) == 32 && offsetof(Slice, inlined) == 8);

struct Metadata {
    Slice key, value;
    void* internal[4];
};
static_assert(sizeof(Metadata) == 96);

struct MetadataArray {
    std::size_t count, capacity;
    Metadata* metadata;
};

struct TimeSpec {
    std::int64_t seconds;
    std::int32_t nanoseconds;
    std::int32_t clock;
};
static_assert(sizeof(TimeSpec) == 16);
inline constexpr std::int32_t kMonotonicClock = 0;

struct CallDetails {
    Slice method, host;
    TimeSpec deadline;
};

struct Event {
    std::int32_t type;
    std::int32_t success;
    void* tag;
};
static_assert(sizeof(Event) == 16);
inline constexpr std::int32_t kOpComplete = 2;

enum OpType : std::int32_t {
    kSendInitialMetadata = 0,
    kSendMessage = 1,
    kSendCloseFromClient = 2,
    kSendStatusFromServer = 3,
    kRecvInitialMetadata = 4,
    kRecvMessage = 5,
    kRecvStatusOnClient = 6,
    kRecvCloseOnServer = 7,
};

struct Op {
    struct InitialMetadata {
        std::size_t count;
        Metadata* metadata;
    };
    struct SentStatus {
        std::size_t count;
        Metadata* metadata;
        std::int32_t status;
    };
    struct ReceivedStatus {
        MetadataArray* metadata;
        const std::int32_t* status;
    };
    std::int32_t type;
    std::uint32_t flags;
    void* reserved;
    union {
        void* words[8];
        InitialMetadata initial_metadata;
        ByteBuffer* sent;
        ByteBuffer** received;
        SentStatus sent_status;
        ReceivedStatus received_status;
        const int* cancelled;
    };
};
static_assert(sizeof(Op) == 80 && offsetof(Op, words) == 16);

/// Which operations a batch may hold: one of each kind.
inline constexpr std::size_t kMostOps = 8;

struct QueueAttributes {
    std::int32_t version;
    std::int32_t completion;
};
inline constexpr std::int32_t kCompletionPluck = 1;
inline constexpr std::int32_t kCompletionCallback = 2;

/// grpc_channel_register_call()'s handle, as far as we read it.
struct RegisteredCall {
    Slice path;
};
/// grpc_server_register_method()'s handle: a std::string comes first.
struct RegisteredMethod {
    const char* text;
    std::size_t length;
};

// grpc_core::Server's: what its C++ servers (sync and callback) return for each request.
struct RegisteredAllocation {
    void* tag;
    Call** call;
    MetadataArray* metadata;
    TimeSpec* deadline;
    ByteBuffer** payload;
    Queue* queue;
};
struct BatchAllocation {
    void* tag;
    Call** call;
    MetadataArray* metadata;
    CallDetails* details;
    Queue* queue;
};
static_assert(sizeof(RegisteredAllocation) == 48 && sizeof(BatchAllocation) == 40);

/// void Server::SetRegisteredMethodAllocator(grpc_completion_queue*, void*, std::function<RegisteredCallAllocation()>)
inline constexpr char kSetRegisteredAllocator[] =
    "_ZN9grpc_core6Server28SetRegisteredMethodAllocatorEP21grpc_completion_queue"
    "PvSt8functionIFNS0_24RegisteredCallAllocationEvEE";
/// void Server::SetBatchMethodAllocator(grpc_completion_queue*, std::function<BatchCallAllocation()>)
inline constexpr char kSetBatchAllocator[] =
    "_ZN9grpc_core6Server23SetBatchMethodAllocatorEP21grpc_completion_queue"
    "St8functionIFNS0_19BatchCallAllocationEvEE";

/// grpc_status_code, as far as it is told apart.
enum StatusCode : std::int32_t {
    kCodeOk = 0,
    kCodeCancelled = 1,
    kCodeDeadlineExceeded = 4,
    kCodeUnavailable = 14,
};

}  // namespace ringside::inject::grpc
