#include "inject/sources/nvtx/record.hpp"

#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/core/push_depth.hpp"
#include "inject/core/wide_text.hpp"

namespace ringside::inject::nvtx {
namespace {

using schema::PayloadType;

/// Ids of ours bear a mark, for another tool's come back by the same way. Keys of the others' are told apart by the highest bit.
constexpr RangeId kOwnMark = 0x5253ull << 48;
constexpr RangeId kMarkBits = 0xffffull << 48;
constexpr std::uint64_t kForeignKey = 1ull << 63;

struct Payload {
    PayloadType type = PayloadType::kNone;
    std::uint64_t value = 0;
};

Payload read_payload(const EventAttributes& event) {
    switch (event.payload_type) {
        case kPayloadUnsigned64:
            return {PayloadType::kUnsigned, event.payload};
        case kPayloadUnsigned32:
            return {PayloadType::kUnsigned, static_cast<std::uint32_t>(event.payload)};
        case kPayloadSigned64:
            return {PayloadType::kSigned, event.payload};
        case kPayloadSigned32: {
            const auto value = static_cast<std::int32_t>(event.payload);
            return {PayloadType::kSigned,
                    static_cast<std::uint64_t>(static_cast<std::int64_t>(value))};
        }
        case kPayloadDouble:
            return {PayloadType::kDouble, event.payload};
        case kPayloadFloat: {
            float narrow = 0;
            std::memcpy(&narrow, &event.payload, sizeof narrow);
            const double value = narrow;
            Payload payload{PayloadType::kDouble, 0};
            std::memcpy(&payload.value, &value, sizeof value);
            return payload;
        }
        default:
            return {};
    }
}

NameId message_name(ThreadLane& lane, const EventAttributes& event,
                    schema::AttributeId attributes) {
    if (event.message != nullptr) {
        if (event.message_type == kMessageRegistered) {
            return lane.intern_cached(static_cast<const RegisteredString*>(event.message)->text,
                                      attributes);
        }
        if (event.message_type == kMessageAscii)
            return lane.intern_cached(static_cast<const char*>(event.message), attributes);
        if (event.message_type == kMessageUnicode) {
            const WideText text(static_cast<const wchar_t*>(event.message));
            return lane.intern(text.c_str(), text.length(), attributes);
        }
    }
    // Nameless, but not without attributes.
    return attributes.value == 0 ? schema::kNoName : lane.intern("", 0, attributes);
}

/// For find_known_name(): of an event that has nothing beside its registered string.
void keep_plain_name(const Domain* domain, const EventAttributes& event, NameId name) {
    if (event.message_type != kMessageRegistered || event.message == nullptr ||
        event.category != 0 || event.colour_type != 0 || event.payload_type != 0)
        return;
    const auto* string = static_cast<const RegisteredString*>(event.message);
    if (string->domain != domain) return;
    string->plain_name.store(keep_name(name), std::memory_order_relaxed);
}

std::uint64_t number_of(const Domain* domain) {
    return domain != nullptr ? domain->number : 0;
}

bool is_own(RangeId id) {
    return (id & kMarkBits) == kOwnMark;
}

std::uint64_t key_of(RangeId id) {
    return is_own(id) ? id & ~kMarkBits : schema::mix64(id) | kForeignKey;
}

}  // namespace

Event read_event(ThreadLane& lane, const Domain* domain, const EventAttributes* attributes) {
    EventAttributes event{};
    if (attributes != nullptr) {
        const std::size_t bytes = attributes->size < sizeof event ? attributes->size : sizeof event;
        std::memcpy(&event, attributes, bytes);
    }
    const Payload payload = read_payload(event);
    AttributeSet set;
    if (domain != nullptr) set.domain = intern_label(lane, domain->name);
    set.category = intern_label(lane, category_text(domain, event.category));
    set.colour = event.colour_type == kColourArgb ? event.colour : 0;
    set.payload = payload.type;
    const NameId name = message_name(lane, event, intern_attributes(set));
    keep_plain_name(domain, event, name);
    return {name, payload.value};
}

Event read_event(ThreadLane& lane, const char* message) {
    return {message != nullptr ? lane.intern_cached(message) : schema::kNoName, 0};
}

Event read_event(ThreadLane& lane, const wchar_t* message) {
    const WideText text(message);
    return {lane.intern(text.c_str(), text.length()), 0};
}

void record_push(ThreadLane& lane, const Domain* domain, const Event& event) {
    lane.begin_range(SourceId::kNvtx, 0, event.name, push_key(SourceId::kNvtx, number_of(domain)),
                     event.payload);
}

void record_pop(ThreadLane& lane, const Domain* domain) {
    const std::uint64_t key = pop_key(SourceId::kNvtx, number_of(domain));
    if (key != 0) lane.end_range(key);
}

void record_mark(ThreadLane& lane, const Event& event) {
    lane.mark(SourceId::kNvtx, 0, event.name, 0, event.payload);
}

RangeId record_start(ThreadLane& lane, const Event& event, RangeId next_id) {
    const RangeId id = next_id != 0 ? next_id : next_key() | kOwnMark;
    lane.async_begin(SourceId::kNvtx, 0, event.name, key_of(id), event.payload);
    return id;
}

RangeId id_for_next(RangeId id) {
    return is_own(id) ? 0 : id;
}

void record_end(ThreadLane& lane, RangeId id) {
    if (id != 0) lane.async_end(SourceId::kNvtx, 0, schema::kNoName, key_of(id), 0);
}

}  // namespace ringside::inject::nvtx
