// NVTX 3's binary interface, as its headers lay it down (nvtxDetail/nvtxTypes.h, nvToolsExt.h): what an injection library is handed, and
// what programs pass. Written down here because the shim is built without those headers; numbers and layouts have not changed since 3.0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringside::inject::nvtx {

using AnyFunction = void (*)();

/// Each copy of NVTX (one a library that uses it) hands us a way to its tables.
using GetExportTable = const void* (*)(std::uint32_t id);
inline constexpr std::uint32_t kCallbacksTable = 1;

struct CallbacksTable {
    std::size_t struct_size;
    /// @param out_table  entries are pointers to the function pointers that NVTX calls through; null where it has none
    int (*module_table)(std::uint32_t module, AnyFunction*** out_table, std::uint32_t* out_size);
};
inline constexpr std::uint32_t kCoreModule = 1;
inline constexpr std::uint32_t kCore2Module = 5;

/// Indices of the core module's table.
enum Core : std::uint32_t {
    kMarkEx = 1,
    kMarkA,
    kMarkW,
    kRangeStartEx,
    kRangeStartA,
    kRangeStartW,
    kRangeEnd,
    kRangePushEx,
    kRangePushA,
    kRangePushW,
    kRangePop,
    kNameCategoryA,
    kNameCategoryW,
    kNameOsThreadA,
    kNameOsThreadW,
    kCoreCount
};

/// Indices of the core2 module's table: the same for domains.
enum Core2 : std::uint32_t {
    kDomainMarkEx = 1,
    kDomainRangeStartEx,
    kDomainRangeEnd,
    kDomainRangePushEx,
    kDomainRangePop,
    kDomainResourceCreate,
    kDomainResourceDestroy,
    kDomainNameCategoryA,
    kDomainNameCategoryW,
    kDomainRegisterStringA,
    kDomainRegisterStringW,
    kDomainCreateA,
    kDomainCreateW,
    kDomainDestroy,
    kInitialize,
    kCore2Count
};

/// Places of a table that we know, at most.
inline constexpr std::uint32_t kPlaces = 16;
static_assert(kCoreCount <= kPlaces && kCore2Count <= kPlaces);

enum ColourType : std::int32_t { kColourArgb = 1 };
enum MessageType : std::int32_t {
    kMessageNone = 0,
    kMessageAscii = 1,
    kMessageUnicode = 2,
    kMessageRegistered = 3
};
enum PayloadKind : std::int32_t {
    kPayloadNone = 0,
    kPayloadUnsigned64 = 1,
    kPayloadSigned64 = 2,
    kPayloadDouble = 3,
    kPayloadUnsigned32 = 4,
    kPayloadSigned32 = 5,
    kPayloadFloat = 6
};

/// nvtxEventAttributes_t. Later versions may be longer: `size` says how long.
struct EventAttributes {
    std::uint16_t version;
    std::uint16_t size;
    std::uint32_t category;
    std::int32_t colour_type;
    std::uint32_t colour;
    std::int32_t payload_type;
    std::int32_t reserved;
    std::uint64_t payload;
    std::int32_t message_type;
    const void* message;
};
static_assert(sizeof(EventAttributes) == 48 && offsetof(EventAttributes, payload) == 24 &&
              offsetof(EventAttributes, message) == 40);

/// What a push returns where nobody tracks depths, as without any tool.
inline constexpr int kNoPushPopTracking = -2;

using RangeId = std::uint64_t;

}  // namespace ringside::inject::nvtx
