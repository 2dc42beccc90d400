// Records: 1 to 8 cells of 32 bytes, what a source writes into a lane. The first word of each is the same:
//
//   bits   0-15 kind   16-23 cells   24-31 flags (source << 4 | detail)   32-63 name id
//
//   word     0        1        2          3            | 4 ...
//   Range    header   begin    end        argument     |
//   Operator header   begin    end        sequence     | threads   scope     correlation  shapes
//   Async    header   ticks    key        argument     |
//   RpcBegin header   ticks    key        bytes        | trace hi  trace lo  span         parent span
//                                                      | peer,self module,type wire id    mode, side, ids
//   RpcEnd   header   ticks    key        status,bytes |
//   Context  header   ticks    key        reserved     | trace hi  trace lo  span         reserved
//   Mark ... header   ticks    value      argument     |
//   Name     header   length   hash       bytes ...    |
//
// Word 1 is a time in every kind but Pad and NameInline; word 2 of Range, Operator and most of the GPU's (gpu_record.hpp) is a second one.
// An unknown kind is skipped by its cell count and counted. A nested range is one record, written when it ends; what may end
// on another thread is a begin and an end with one key (unique in the segment).
#pragma once

#include <cstddef>
#include <cstdint>

#include "schema/ids.hpp"

namespace ringside::schema {

inline constexpr std::uint32_t kCellBytes = 32;
inline constexpr std::uint32_t kCellWords = 4;
inline constexpr std::uint32_t kMaxRecordCells = 8;

struct alignas(32) Cell {
    std::uint64_t words[kCellWords];
};
static_assert(sizeof(Cell) == kCellBytes);

enum class RecordKind : std::uint16_t {
    kPad = 0,    ///< fills a lane's end, or stands in a block for what was left out; cells only
    kRange = 1,  ///< 1 cell
    kOperator =
        2,  ///< 2 cells: a range with a sequence number (forward and backward find each other by it)
    kAsyncBegin = 3,   ///< 1 cell
    kAsyncEnd = 4,     ///< 1 cell
    kRpcBegin = 5,     ///< 3 cells: one half of an RPC begins
    kRpcEnd = 6,       ///< 1 cell
    kContext = 7,      ///< 2 cells: from here on the lane serves this request (or none)
    kMark = 8,         ///< 1 cell
    kIteration = 9,    ///< 1 cell: a boundary; value = n-th of its name in this process, from 1
    kCounter = 10,     ///< 1 cell: value
    kNameInline = 11,  ///< 1 to 8 cells: the name of the record that follows
    // 16 to 31 are the GPU's: gpu_record.hpp. Written when the work is done, in any order, by whichever thread hears of it.
    kGpuKernel = 16,  ///< 3 cells
    kGpuCopy = 17,    ///< 3 cells: between any two memories, peer copies too
    kGpuMemset = 18,  ///< 2 cells
    kGpuApi =
        19,  ///< 2 cells: a call of the CUDA runtime or the driver, on a thread of the program
    kGpuSync = 20,      ///< 2 cells: what a thread waited for
    kGpuOverhead = 21,  ///< 2 cells: what CUPTI and the driver took for themselves
    kGpuEvent = 22,     ///< 2 cells: a CUDA event was recorded
    kGpuLink = 23,      ///< 1 cell: a number that the program's own tools gave a call
    kGpuDevice = 24,    ///< 3 cells: what a device is
};

/// Cells of a record of this kind, 0 where they vary or the kind is unknown.
constexpr std::uint32_t record_cells(RecordKind kind) {
    switch (kind) {
        case RecordKind::kRange:
        case RecordKind::kAsyncBegin:
        case RecordKind::kAsyncEnd:
        case RecordKind::kRpcEnd:
        case RecordKind::kMark:
        case RecordKind::kIteration:
        case RecordKind::kCounter:
        case RecordKind::kGpuLink:
            return 1;
        case RecordKind::kOperator:
        case RecordKind::kContext:
        case RecordKind::kGpuMemset:
        case RecordKind::kGpuApi:
        case RecordKind::kGpuSync:
        case RecordKind::kGpuOverhead:
        case RecordKind::kGpuEvent:
            return 2;
        case RecordKind::kRpcBegin:
        case RecordKind::kGpuKernel:
        case RecordKind::kGpuCopy:
        case RecordKind::kGpuDevice:
            return 3;
        default:
            return 0;
    }
}

/// The first word of a record, taken apart.
struct RecordHeader {
    RecordKind kind = RecordKind::kPad;
    std::uint8_t cells = 0;
    std::uint8_t flags = 0;
    NameId name;

    constexpr std::uint64_t pack() const {
        return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(cells) << 16 |
               static_cast<std::uint64_t>(flags) << 24 |
               static_cast<std::uint64_t>(name.value) << 32;
    }
    static constexpr RecordHeader unpack(std::uint64_t word) {
        return {static_cast<RecordKind>(word & 0xffff), static_cast<std::uint8_t>(word >> 16),
                static_cast<std::uint8_t>(word >> 24),
                NameId{static_cast<std::uint32_t>(word >> 32)}};
    }
};

/// Flags byte: the source in the high half, a detail of that source in the low half.
constexpr std::uint8_t record_flags(SourceId source, std::uint8_t detail) {
    return static_cast<std::uint8_t>(static_cast<std::uint8_t>(source) << 4 | (detail & 15));
}
constexpr SourceId record_source(std::uint8_t flags) {
    return static_cast<SourceId>(flags >> 4);
}
constexpr std::uint8_t record_detail(std::uint8_t flags) {
    return flags & 15;
}

/// Details of the torch source's ranges: torch's RecordScope.
enum class TorchScope : std::uint8_t {
    kFunction = 0,
    kBackward = 1,
    kTorchScript = 2,
    kUser = 7,
};

/// An allocation or deallocation of torch, on request: a Mark of this name. detail: TorchDevice; value: the address; argument: bytes, negative when
/// they go; the name's attribute set says that the argument is signed.
inline constexpr char kMemoryName[] = "[memory]";

/// Details of those marks: torch's DeviceType.
enum class TorchDevice : std::uint8_t { kCpu = 0, kCuda = 1 };

/// Details of MPI's ranges. A collective's name has an attribute set: its category is the communicator's label (GroupState), its payload,
/// unsigned, the argument: the collective's sequence number there, from 1. Those of torch's process groups are async ranges named
/// `gloo:*`, alike.
inline constexpr std::uint8_t kMpiCall = 0;
inline constexpr std::uint8_t kMpiCollective = 1;

/// Details of a Context record. "Again" repeats the context after a drop: between the two it is unknown.
inline constexpr std::uint8_t kContextOn = 1;
inline constexpr std::uint8_t kContextAgain = 2;

/// Which end of an RPC a half is.
enum class RpcSide : std::uint8_t { kClient = 0, kServer = 1 };

/// How the caller called; known at the client only, and in torch only through the Python part.
enum class RpcMode : std::uint8_t {
    kUnknown = 0,
    kSync = 1,
    kAsync = 2,
    kAsyncJit = 3,
    kRemote = 4,
    kFetch = 5,     ///< to_here()
    kInternal = 6,  ///< RRef and autograd bookkeeping, named by its type
};

/// How a half ended.
enum class RpcStatus : std::uint8_t {
    kOk = 0,
    kError = 1,
    kTimeout = 2,
    kPeerGone = 3,
    kCancelled = 4,
    kSent = 5,  ///< of a client's half: a message was handed over, and nobody answers
};

struct RangeRecord {
    std::uint64_t header;
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t argument;
};
static_assert(sizeof(RangeRecord) == kCellBytes);

struct OperatorRecord {
    std::uint64_t header;
    std::uint64_t begin;
    std::uint64_t end;
    std::int64_t sequence;      ///< -1: none
    std::uint64_t threads;      ///< pack_threads()
    std::uint64_t scope;        ///< TorchScope
    std::uint64_t correlation;  ///< reserved for GPU work, 0
    std::uint64_t shapes;       ///< NameId of the input shapes' text, on request; 0: none

    /// @param thread   the framework's own number of this thread
    /// @param forward  of the forward operator, for a backward one; 0: none
    static constexpr std::uint64_t pack_threads(std::uint32_t thread, std::uint32_t forward) {
        return thread | static_cast<std::uint64_t>(forward) << 32;
    }
};
static_assert(sizeof(OperatorRecord) == 2 * kCellBytes && offsetof(OperatorRecord, threads) == 32);

struct AsyncRecord {
    std::uint64_t header;
    std::uint64_t ticks;
    std::uint64_t key;
    std::uint64_t argument;
};
static_assert(sizeof(AsyncRecord) == kCellBytes);

struct RpcBeginRecord {
    std::uint64_t header;  ///< name: the function, as the user knows it
    std::uint64_t ticks;
    std::uint64_t key;    ///< of this half, unique in the segment
    std::uint64_t bytes;  ///< of the request's payload
    std::uint64_t trace_hi;
    std::uint64_t trace_lo;    ///< both 0: given at the join
    std::uint64_t span;        ///< equal at both halves
    std::uint64_t parent_key;  ///< the server half in this segment that was being served; 0: none
    std::uint32_t peer;        ///< NameId of the other side's worker or address; 0: unknown
    std::uint32_t self;        ///< NameId of the own worker
    std::uint32_t module;      ///< NameId of the function's module or service; 0: none
    std::uint32_t wire_type;   ///< the framework's own message type
    std::uint64_t wire_id;     ///< the framework's own message id
    std::uint8_t mode;         ///< RpcMode
    std::uint8_t side;         ///< RpcSide
    std::int16_t self_id;      ///< the own worker's id, -1: unknown
    std::int16_t peer_id;      ///< the other worker's id, -1: unknown
    std::uint16_t reserved;
};
static_assert(sizeof(RpcBeginRecord) == 3 * kCellBytes && offsetof(RpcBeginRecord, peer) == 64 &&
              offsetof(RpcBeginRecord, mode) == 88);

struct RpcEndRecord {
    std::uint64_t header;
    std::uint64_t ticks;
    std::uint64_t key;
    std::uint64_t status_bytes;  ///< status in the high 8 bits, bytes of the answer in the rest

    static constexpr std::uint64_t pack(RpcStatus status, std::uint64_t bytes) {
        return static_cast<std::uint64_t>(status) << 56 | (bytes & 0x00ffffffffffffffull);
    }
};
static_assert(sizeof(RpcEndRecord) == kCellBytes);

struct ContextRecord {
    std::uint64_t header;  ///< detail: kContextOn, kContextAgain
    std::uint64_t ticks;
    std::uint64_t key;  ///< of the server half that is served; 0 when off
    std::uint64_t reserved0;
    std::uint64_t trace_hi;
    std::uint64_t trace_lo;
    std::uint64_t span;
    std::uint64_t reserved1;
};
static_assert(sizeof(ContextRecord) == 2 * kCellBytes);

/// Mark, Iteration, Counter.
struct ValueRecord {
    std::uint64_t header;
    std::uint64_t ticks;
    std::uint64_t value;
    std::uint64_t argument;
};
static_assert(sizeof(ValueRecord) == kCellBytes);

/// Followed by `length` bytes from word 3 on; the record it names follows at once, published with it.
struct NameInlineRecord {
    std::uint64_t header;
    std::uint64_t length;
    std::uint64_t hash;
    char bytes[8];
};
static_assert(sizeof(NameInlineRecord) == kCellBytes);
inline constexpr std::uint32_t kMaxInlineNameBytes = kMaxRecordCells * kCellBytes - 24;

/// Cells that a NameInline record of `length` bytes takes.
constexpr std::uint32_t name_inline_cells(std::uint32_t length) {
    return (24 + length + kCellBytes - 1) / kCellBytes;
}

}  // namespace ringside::schema
