// Field numbers of perfetto/trace/*.proto, as far as perfetto_writer needs them.
#pragma once

#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>

namespace ringside::viewer_export::trace::perfetto {

namespace trace_packet {
enum : std::uint32_t {
    kClockSnapshot = 6,
    kTimestamp = 8,
    kSequenceId = 10,
    kTrackEvent = 11,
    kInternedData = 12,
    kSequenceFlags = 13,
    kDefaults = 59,
    kTimestampClockId = 58,
    kTrackDescriptor = 60
};
}
namespace track_event {
enum : std::uint32_t {
    kCategoryIids = 3,
    kDebugAnnotations = 4,
    kType = 9,
    kNameIid = 10,
    kTrackUuid = 11,
    kName = 23,
    kCounterValue = 30,
    kDoubleCounterValue = 44,
    kFlowIds = 47
};
}
namespace debug_annotation {
enum : std::uint32_t {
    kNameIid = 1,
    kUint = 3,
    kInt = 4,
    kDouble = 5,
    kString = 6,
    kArray = 12,
    kStringIid = 17
};
}
namespace interned_data {
enum : std::uint32_t { kCategories = 1, kNames = 2, kKeys = 3, kStrings = 29 };
}
namespace descriptor {
enum : std::uint32_t {
    kUuid = 1,
    kName = 2,
    kProcess = 3,
    kThread = 4,
    kParent = 5,
    kCounter = 8,
    kOrder = 11,
    kRank = 12,
    kDescription = 14,
    kMerging = 15
};
}
enum EventType : std::uint32_t {
    kSliceBegin = 1,
    kSliceEnd = 2,
    kInstantEvent = 3,
    kCounterEvent = 4
};
enum SequenceFlags : std::uint32_t { kStateCleared = 1 };
enum Clock : std::uint32_t { kRealtime = 1, kBoottime = 6, kIncremental = 64 };

inline void add_message(std::string& to, std::uint32_t field, const std::string& message) {
    protozero::pbf_writer(to).add_message(field, message);
}

}  // namespace ringside::viewer_export::trace::perfetto
