// CUPTI's and the driver's binary interface: what we read and call, as NVIDIA's headers lay it down. Written down here because the plugin is built
// without those headers; a field lies where it does in every release from 11.7 to 13.5, whatever the record's version, and tests/cupti checks
// each of these against the headers of five of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ringside::inject::cupti {

/// CUptiResult, CUresult.
using Result = std::int32_t;
inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorMaxLimitReached = 12;
inline constexpr Result kErrorMultipleSubscribers = 39;

/// CUpti_ActivityKind: those that we ask for.
enum Kind : std::uint32_t {
    kMemcpy = 1,
    kMemset = 2,
    kDriver = 4,
    kRuntime = 5,
    kConcurrentKernel = 10,
    kOverhead = 17,
    kMemcpyPeer = 22,
    kCudaEvent = 36,
    kSynchronization = 38,
    kExternalCorrelation = 39,
};

/// CUpti_CallbackDomain.
inline constexpr std::uint32_t kDomainDriver = 1;
inline constexpr std::uint32_t kDomainRuntime = 2;
/// CUpti_ActivityThreadIdType: tids, as the kernel has them.
inline constexpr std::uint32_t kThreadIdSystem = 1;
inline constexpr std::uint32_t kFlushForced = 1;
/// CUpti_ActivityAttribute, from 13.4 on a subscriber's own.
inline constexpr std::uint32_t kAttributeEventTimestamps = 17;
inline constexpr std::uint32_t kAttributeThreadIdType = 21;
inline constexpr std::uint32_t kAttributeTimestampCallback = 22;

// cuptiGetVersion() from which on ...
inline constexpr std::uint32_t kOverheadHasCorrelation = 21;  // 12.3
inline constexpr std::uint32_t kSyncHasResult = 26;           // 12.8
inline constexpr std::uint32_t kEventHasTimestamp = 26;
inline constexpr std::uint32_t kMayDeclineBuffers = 27;
inline constexpr std::uint32_t kSharesWithOurClock = 130400;

/// A field of a record: its type and where it lies.
template <class Type>
struct Field {
    std::size_t offset;

    Type of(const void* record) const {
        Type value;
        std::memcpy(&value, static_cast<const char*>(record) + offset, sizeof value);
        return value;
    }
};
using U8 = Field<std::uint8_t>;
using U16 = Field<std::uint16_t>;
using U32 = Field<std::uint32_t>;
using U64 = Field<std::uint64_t>;

inline constexpr U32 kKindOf{0};

/// CUpti_ActivityKernel7 and later.
namespace kernel {
inline constexpr U16 kRegisters{6};
inline constexpr U64 kStart{16}, kEnd{24}, kQueued{120}, kGraphNode{144};
inline constexpr U32 kDevice{40}, kContext{44}, kStream{48};
inline constexpr U32 kGridX{52}, kGridY{56}, kGridZ{60}, kBlockX{64}, kBlockY{68}, kBlockZ{72};
inline constexpr U32 kStaticShared{76}, kDynamicShared{80}, kCorrelation{92}, kGraph{156};
inline constexpr Field<const char*> kName{104};
}  // namespace kernel

/// CUpti_ActivityMemcpy5 and later, and the first part of CUpti_ActivityMemcpyPtoP4.
namespace copy {
inline constexpr U8 kCopyKind{4}, kSource{5}, kDestination{6}, kFlags{7};
inline constexpr U64 kBytes{8}, kStart{16}, kEnd{24}, kGraphNode{64};
inline constexpr U32 kDevice{32}, kContext{36}, kStream{40}, kCorrelation{44}, kGraph{72};
}  // namespace copy

/// The rest of CUpti_ActivityMemcpyPtoP4: its correlation lies elsewhere.
namespace peer {
inline constexpr U32 kSourceDevice{44}, kSourceContext{48}, kDestinationDevice{52};
inline constexpr U32 kDestinationContext{56}, kCorrelation{60}, kGraph{80};
inline constexpr U64 kGraphNode{72};
}  // namespace peer

/// CUpti_ActivityMemset4 and later.
namespace memset {
inline constexpr U32 kValue{4}, kDevice{32}, kContext{36}, kStream{40}, kCorrelation{44};
inline constexpr U32 kGraph{72};
inline constexpr U64 kBytes{8}, kStart{16}, kEnd{24}, kGraphNode{64};
inline constexpr U16 kMemory{50};
}  // namespace memset

/// CUpti_ActivityAPI.
namespace api {
inline constexpr U32 kCallback{4}, kThread{28}, kCorrelation{32}, kResult{36};
inline constexpr U64 kStart{8}, kEnd{16};
}  // namespace api

/// CUpti_ActivitySynchronization; the result is of its second version.
namespace sync {
inline constexpr U32 kType{4}, kCorrelation{24}, kContext{28}, kStream{32}, kEvent{36};
inline constexpr U32 kResult{48};
inline constexpr U64 kStart{8}, kEnd{16};
}  // namespace sync

/// CUpti_ActivityOverhead; the correlation is of its second version.
namespace overhead {
inline constexpr U32 kKind{4}, kObjectKind{8}, kProcess{12}, kThread{16}, kStream{20};
inline constexpr U32 kCorrelation{40};
inline constexpr U64 kStart{24}, kEnd{32};
}  // namespace overhead

/// CUpti_ActivityCudaEvent; device and timestamp are of its second version.
namespace event {
inline constexpr U32 kCorrelation{4}, kContext{8}, kStream{12}, kEvent{16}, kDevice{24};
inline constexpr U64 kTimestamp{40};
}  // namespace event

/// CUpti_ActivityExternalCorrelation.
namespace external {
inline constexpr U32 kKind{4}, kCorrelation{16};
inline constexpr U64 kId{8};
}  // namespace external

/// CUpti_SubscriberParams of 13.0; the last field is of 13.2.
struct SubscriberParameters {
    std::size_t size;
    const char* name;
    char* old_name;
    std::size_t old_name_size;
    std::uint8_t allow_others;
    std::uint8_t padding[7];
};
inline constexpr std::size_t kFirstSubscriberParametersSize = 32;
inline constexpr std::size_t kOldNameBytes = 64;
static_assert(sizeof(SubscriberParameters) == 40 &&
              offsetof(SubscriberParameters, allow_others) == kFirstSubscriberParametersSize);

using Subscriber = void*;
using SubscriberCallback = void (*)(void*, std::uint32_t, std::uint32_t, const void*);
using TimestampCallback = std::uint64_t (*)();
using BufferRequested = void (*)(std::uint8_t**, std::size_t*, std::size_t*);
using BufferCompleted = void (*)(void*, std::uint32_t, std::uint8_t*, std::size_t, std::size_t);
// The second interface of 13.2: the last arguments tell more than we ask.
using BufferRequested2 = void (*)(std::uint8_t**, std::size_t*, std::size_t*, void*);
using BufferCompleted2 = void (*)(std::uint8_t*, std::size_t, std::size_t, void*);

/// CUdevice_attribute.
enum DeviceAttribute : std::int32_t {
    kBlockThreads = 1,
    kBlockShared = 8,
    kWarp = 10,
    kBlockRegisters = 12,
    kProcessors = 16,
    kProcessorThreads = 39,
    kCapabilityMajor = 75,
    kCapabilityMinor = 76,
    kProcessorShared = 81,
    kProcessorRegisters = 82,
    kBlockSharedMost = 97,
    kProcessorBlocks = 106,
};

}  // namespace ringside::inject::cupti
