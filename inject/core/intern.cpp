#include "inject/core/intern.hpp"

#include <errno.h>

#include <cstring>

#include "inject/core/attributes.hpp"
#include "inject/core/budget.hpp"
#include "inject/core/name_cache.hpp"
#include "inject/core/start_data.hpp"

namespace ringside::inject {

using schema::NameEntry;
using schema::NameId;
using schema::NameState;

RINGSIDE_START_DATA constinit std::atomic<std::uint64_t> g_names_epoch{1ull << 32};

namespace {

/// Text is made real in parts of this size; most processes have a few hundred names.
constexpr std::uint32_t kTextPartBytes = 64 * 1024;
/// Bytes of text that are real; 0: not even the entries.
RINGSIDE_START_DATA constinit std::atomic<std::uint32_t> real_text_bytes{0};
/// As find_kept_name() takes it.
constinit std::atomic<std::uint64_t> unknown{0};

constexpr auto kFree = static_cast<std::uint16_t>(NameState::kFree);
constexpr auto kFilling = static_cast<std::uint16_t>(NameState::kFilling);
constexpr auto kReady = static_cast<std::uint16_t>(NameState::kReady);

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load(const char* bytes, std::size_t count) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes, count);
    return word;
}

/// Sixteen bytes a step (after wyhash): names that the cache does not have are hashed on the hot path. Private to this process.
std::uint32_t content_hash(const char* text, std::uint32_t length, std::uint16_t attribute) {
    std::uint64_t hash = (length + 1ull) * 0x9e3779b97f4a7c15ull + attribute;
    while (length >= 16) {
        hash = mix(load(text, 8) ^ hash ^ 0xa0761d6478bd642full,
                   load(text + 8, 8) ^ 0xe7037ed1a0b428dbull);
        text += 16;
        length -= 16;
    }
    if (length >= 8) {
        hash = mix(load(text, 8) ^ hash, load(text + length - 8, 8) ^ 0x8ebc6af09c88c6e3ull);
    } else if (length > 0) {
        hash = mix(load(text, length) ^ hash, 0x589965cc75374cc3ull);
    }
    return static_cast<std::uint32_t>(mix(hash, 0x9fb21c651e98df25ull));
}

NameEntry* entries_of(std::byte* segment) {
    return reinterpret_cast<NameEntry*>(segment + schema::kNamesOffset);
}

bool make_text_real(std::uint32_t bytes) {
    if (bytes <= real_text_bytes.load(std::memory_order_relaxed)) return true;
    const int saved_errno = errno;
    const bool made = populate_names(segment_base(), bytes);
    errno = saved_errno;
    return made;
}

/// @return the bytes' offset, kNameBytes where the area is full, or memory is refused
std::uint32_t take_bytes(std::uint32_t count) {
    std::atomic<std::uint32_t>& used = g_process.header->name_bytes_used;
    std::uint32_t offset = used.load(std::memory_order_relaxed);
    do {
        // Real first, taken second: a name that is refused is tried again with its next record, and would eat the area without a byte in it.
        if (count > schema::kNameBytes - offset || !make_text_real(offset + count))
            return schema::kNameBytes;
    } while (!used.compare_exchange_weak(offset, offset + count, std::memory_order_relaxed));
    return offset;
}

bool fill(NameEntry& entry, std::uint32_t hash, const char* text, std::uint32_t length,
          std::uint16_t attribute) {
    const std::uint32_t offset = take_bytes(length + 1);
    if (offset == schema::kNameBytes) {
        entry.state.store(kFree, std::memory_order_release);  // SYNC(name)
        return false;
    }
    std::byte* bytes = segment_base() + schema::kNameBytesOffset + offset;
    std::memcpy(bytes, text, length);
    bytes[length] = std::byte{0};
    entry.hash.store(hash, std::memory_order_relaxed);
    entry.offset.store(offset, std::memory_order_relaxed);
    entry.length.store(static_cast<std::uint16_t>(length), std::memory_order_relaxed);
    entry.flags.store(0, std::memory_order_relaxed);
    entry.attribute.store(attribute, std::memory_order_relaxed);
    // SYNC(name): publishes the entry and its bytes; pairs with the acquires here and in the agent.
    entry.state.store(kReady, std::memory_order_release);
    g_process.header->names_used.fetch_add(1, std::memory_order_relaxed);
    return true;
}

bool matches(const NameEntry& entry, std::uint32_t hash, const char* text, std::uint32_t length,
             std::uint16_t attribute) {
    if (entry.hash.load(std::memory_order_relaxed) != hash ||
        entry.length.load(std::memory_order_relaxed) != length ||
        entry.attribute.load(std::memory_order_relaxed) != attribute) {
        return false;
    }
    const std::byte* bytes =
        segment_base() + schema::kNameBytesOffset + entry.offset.load(std::memory_order_relaxed);
    return std::memcmp(bytes, text, length) == 0;
}

}  // namespace

bool populate_names(std::byte* segment, std::uint32_t text_bytes) {
    const std::uint32_t wanted =
        (text_bytes + kTextPartBytes - 1) / kTextPartBytes * kTextPartBytes;
    std::uint32_t real = real_text_bytes.load(std::memory_order_relaxed);
    // The entries lie right before the text: the first part comes with them.
    std::byte* start =
        segment + (real == 0 ? schema::kNamesOffset : schema::kNameBytesOffset + real);
    std::byte* end = segment + schema::kNameBytesOffset + wanted;
    if (start >= end) return true;
    if (!populate_within_limits(start, static_cast<std::size_t>(end - start))) return false;
    // Another thread was faster: it has counted them. What lies beyond its part comes with the next call.
    if (!real_text_bytes.compare_exchange_strong(real, wanted, std::memory_order_relaxed)) {
        count_again_less(static_cast<std::size_t>(end - start));
        return real >= wanted || populate_names(segment, text_bytes);
    }
    return true;
}

bool names_ready() {
    return real_text_bytes.load(std::memory_order_relaxed) != 0;
}

bool make_names_ready() {
    if (!names_ready() && !populate_names(segment_base(), 1)) return false;
    NameId name;
    if (!find_kept_name(unknown.load(std::memory_order_relaxed), name))
        unknown.store(keep_name(intern_name("?", 1, {})), std::memory_order_relaxed);
    return true;
}

NameId unknown_name() {
    NameId name;
    const bool known = find_kept_name(unknown.load(std::memory_order_relaxed), name);
    return known ? name : schema::kNoName;
}

void forget_names() {
    g_names_epoch.fetch_add(1ull << 32, std::memory_order_relaxed);
    real_text_bytes.store(0, std::memory_order_relaxed);
    forget_attributes();
    g_name_cache.clear();
    g_address_cache.clear();
}

NameId intern_name(const char* text, std::uint32_t length, schema::AttributeId attribute) {
    const std::uint32_t hash = content_hash(text, length, attribute.value);
    NameEntry* entries = entries_of(segment_base());
    for (std::uint32_t probe = 0; probe < schema::kNameProbes; ++probe) {
        const std::uint32_t index = (hash + probe) % schema::kNameEntries;
        NameEntry& entry = entries[index];
        // SYNC(name): pairs with the release in fill().
        std::uint16_t state = entry.state.load(std::memory_order_acquire);
        if (state == kFree &&
            entry.state.compare_exchange_strong(state, kFilling, std::memory_order_acquire)) {
            return fill(entry, hash, text, length, attribute.value) ? NameId{index + 1}
                                                                    : schema::kNoName;
        }
        // Another thread is filling this one, maybe with the same name. To wait is not for a hook: go on, and let one text have two
        // ids. Readers compare texts.
        if (state == kReady && matches(entry, hash, text, length, attribute.value))
            return NameId{index + 1};
    }
    return schema::kNoName;
}

void copy_names(std::byte* to_segment, const std::byte* from_segment) {
    const auto* from = reinterpret_cast<const schema::SegmentHeader*>(from_segment);
    auto* to = reinterpret_cast<schema::SegmentHeader*>(to_segment);
    const std::uint32_t text_bytes = from->name_bytes_used.load(std::memory_order_relaxed);
    if (text_bytes == 0 || !populate_names(to_segment, text_bytes)) return;
    std::memcpy(to_segment + schema::kNamesOffset, from_segment + schema::kNamesOffset,
                schema::kNameEntries * sizeof(NameEntry) + text_bytes);
    NameEntry* entries = entries_of(to_segment);
    std::uint32_t used = 0;
    for (std::uint32_t i = 0; i < schema::kNameEntries; ++i) {
        if (entries[i].state.load(std::memory_order_relaxed) == kReady) {
            ++used;
        } else {
            entries[i].state.store(kFree, std::memory_order_relaxed);
        }
    }
    const std::size_t attribute_bytes = copy_attributes(to_segment, from_segment);
    to->names_used.store(used, std::memory_order_relaxed);
    to->name_bytes_used.store(text_bytes, std::memory_order_relaxed);
    to->real_bytes.store(schema::kNameEntries * sizeof(NameEntry) +
                             real_text_bytes.load(std::memory_order_relaxed) + attribute_bytes,
                         std::memory_order_relaxed);
    to->worker_name.store(from->worker_name.load(std::memory_order_relaxed),
                          std::memory_order_relaxed);
}

}  // namespace ringside::inject
