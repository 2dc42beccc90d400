#include "inject/sources/torch/worker_info.hpp"

#include <cstring>

namespace ringside::inject::torch {
namespace {

constexpr std::uint16_t kOffsets[] = {16, 24};
constexpr std::uint64_t kMaxCapacity = 4096;
constexpr std::uint16_t kNewStringBytes = 32;
constexpr std::uint16_t kOldStringBytes = 8;

std::uint64_t word_at(const char* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word;
}

// A user-space address that is no small number.
bool is_address(std::uint64_t word) {
    return word > 0xffff && word >> 47 == 0;
}

bool is_length(std::uint64_t word) {
    return word >= 1 && word <= kMaxWorkerName;
}

}  // namespace

StringShape string_shape(const char* at) {
    const std::uint64_t first = word_at(at);
    if (!is_address(first)) return StringShape::kNone;
    const char* const text = reinterpret_cast<const char*>(first);
    // cxx11: {pointer, length, capacity or the short text itself}
    std::uint64_t length = word_at(at + 8);
    std::uint64_t capacity = word_at(at + 16);
    const bool in_place = text == at + 16;
    if (is_length(length) &&
        (in_place ? length < 16 : capacity >= length && capacity <= kMaxCapacity) &&
        strnlen(text, length + 1) == length)
        return StringShape::kNewAbi;
    // Before: one pointer; {length, capacity, references} stand before the text. Aligned: a vtable's address never comes here.
    if ((first & 7) != 0) return StringShape::kNone;
    length = word_at(text - 24);
    capacity = word_at(text - 16);
    if (is_length(length) && capacity >= length && capacity <= kMaxCapacity &&
        strnlen(text, length + 1) == length)
        return StringShape::kOldAbi;
    return StringShape::kNone;
}

WorkerLayout find_worker_layout(const char* info, std::uint16_t skip) {
    for (const std::uint16_t offset : kOffsets) {
        if (offset == skip) continue;
        const StringShape shape = string_shape(info + offset);
        if (shape == StringShape::kNone) continue;
        const std::uint16_t size =
            shape == StringShape::kNewAbi ? kNewStringBytes : kOldStringBytes;
        return {offset, static_cast<std::uint16_t>(offset + size)};
    }
    return {};
}

std::string_view worker_name(const char* info, WorkerLayout layout) {
    if (info == nullptr || layout.name_offset == 0) return {};
    return string_text(reinterpret_cast<const char* const*>(info + layout.name_offset));
}

std::int16_t worker_id(const char* info, WorkerLayout layout) {
    if (info == nullptr || layout.id_offset == 0) return -1;
    std::int16_t id = -1;
    std::memcpy(&id, info + layout.id_offset, sizeof id);
    return id;
}

std::string_view string_text(const char* const* string) {
    if (string == nullptr || *string == nullptr) return {};
    return {*string, strnlen(*string, kMaxWorkerName)};
}

}  // namespace ringside::inject::torch
