#include "inject/sources/torch/pickle_walk.hpp"

namespace ringside::inject::torch {
namespace {

// Opcodes by their letters, as in Python's pickletools.
enum Opcode : std::uint8_t {
    kStop = '.',
    kProto = 0x80,
    kFrame = 0x95,
    kShortBinUnicode = 0x8c,
    kBinUnicode = 'X',
    kBinUnicode8 = 0x8d,
    kShortBinString = 'U',
    kBinString = 'T',
    kShortBinBytes = 'C',
    kBinBytes = 'B',
    kBinBytes8 = 0x8e,
    kByteArray8 = 0x96,
    kMemoize = 0x94,
    kBinPut = 'q',
    kLongBinPut = 'r',
    kBinGet = 'h',
    kLongBinGet = 'j',
    kStackGlobal = 0x93,
    kGlobal = 'c',
    kInst = 'i',
    kBinInt = 'J',
    kBinInt1 = 'K',
    kBinInt2 = 'M',
    kLong1 = 0x8a,
    kLong4 = 0x8b,
    kBinFloat = 'G',
    kExt1 = 0x82,
    kExt2 = 0x83,
    kExt4 = 0x84,
};

// Opcodes without an argument, protocol 0 to 5.
bool has_no_argument(std::uint8_t opcode) {
    constexpr std::string_view kPlain = "(0123NQR]abdeost)lu}";
    if (kPlain.find(static_cast<char>(opcode)) != std::string_view::npos) return true;
    // NEWOBJ, TUPLE1-3, NEWTRUE, NEWFALSE; EMPTY_SET, ADDITEMS, FROZENSET, NEWOBJ_EX; NEXT_BUFFER, READONLY_BUFFER.
    return opcode == 0x81 || (opcode >= 0x85 && opcode <= 0x89) ||
           (opcode >= 0x8f && opcode <= 0x92) || opcode == 0x97 || opcode == 0x98;
}

// Opcodes followed by a line of text: INT, FLOAT, LONG, STRING, UNICODE, PERSID, PUT, GET.
bool has_line(std::uint8_t opcode) {
    constexpr std::string_view kLines = "IFLSVPpg";
    return kLines.find(static_cast<char>(opcode)) != std::string_view::npos;
}

}  // namespace

PickleToken PickleWalk::next() {
    if (left() == 0 || ++opcodes_ > kMaxOpcodes) return end();
    const auto opcode = static_cast<std::uint8_t>(*at_++);
    std::string_view module, name;
    switch (opcode) {
        case kStop:
            stopped_ = true;
            return end();
        case kShortBinUnicode:
        case kShortBinString:
            return sized_string(1);
        case kBinUnicode:
        case kBinString:
            return sized_string(4);
        case kBinUnicode8:
            return sized_string(8);
        case kShortBinBytes:
            return sized_skip(1);
        case kBinBytes:
            return sized_skip(4);
        case kBinBytes8:
        case kByteArray8:
            return sized_skip(8);
        case kMemoize:
            if (memoized_ < kMemoEntries) memo_[memoized_] = top_;
            ++memoized_;
            return PickleToken::kOther;
        case kBinPut:
            return memo_put(1);
        case kLongBinPut:
            return memo_put(4);
        case kBinGet:
            return memo_get(1);
        case kLongBinGet:
            return memo_get(4);
        case kStackGlobal:
            return global(below_, top_);
        case kGlobal:
        case kInst:
            if (!read_line(&module) || !read_line(&name)) return end();
            return global(module, name);
        case kBinInt:
            return small_integer(4, true);
        case kBinInt1:
            return small_integer(1, false);
        case kBinInt2:
            return small_integer(2, false);
        case kLong1:
            return long_integer();
        case kLong4:
            return sized_skip(4);
        case kProto:
        case kExt1:
            return skip(1);
        case kExt2:
            return skip(2);
        case kExt4:
            return skip(4);
        case kFrame:
        case kBinFloat:
            return skip(8);
        default:
            if (has_no_argument(opcode)) return other();
            if (has_line(opcode) && read_line(&name)) return other();
            return end();
    }
}

PickleToken PickleWalk::end() {
    at_ = end_;
    return PickleToken::kEnd;
}

PickleToken PickleWalk::other() {
    top_ = below_ = {};
    return PickleToken::kOther;
}

PickleToken PickleWalk::push(std::string_view text) {
    below_ = top_;
    top_ = text_ = text;
    return PickleToken::kString;
}

PickleToken PickleWalk::global(std::string_view module, std::string_view name) {
    if (module.data() == nullptr || name.data() == nullptr) return end();
    module_ = module;
    text_ = name;
    top_ = below_ = {};
    return PickleToken::kGlobal;
}

PickleToken PickleWalk::sized_string(std::uint32_t length_bytes) {
    std::uint64_t length = 0;
    if (!read_number(length_bytes, &length) || length > left()) return end();
    const std::string_view text(at_, length);
    at_ += length;
    return push(text);
}

PickleToken PickleWalk::sized_skip(std::uint32_t length_bytes) {
    std::uint64_t length = 0;
    if (!read_number(length_bytes, &length) || length > left()) return end();
    at_ += length;
    return other();
}

PickleToken PickleWalk::skip(std::uint32_t bytes) {
    if (left() < bytes) return end();
    at_ += bytes;
    return other();
}

PickleToken PickleWalk::small_integer(std::uint32_t bytes, bool is_signed) {
    std::uint64_t value = 0;
    if (!read_number(bytes, &value)) return end();
    integer_ = is_signed ? static_cast<std::int32_t>(value) : static_cast<std::int64_t>(value);
    top_ = below_ = {};
    return PickleToken::kInteger;
}

PickleToken PickleWalk::long_integer() {
    std::uint64_t length = 0, value = 0;
    if (!read_number(1, &length)) return end();
    if (length > 8) return skip(static_cast<std::uint32_t>(length));
    read_number(static_cast<std::uint32_t>(length), &value);
    integer_ = static_cast<std::int64_t>(value);
    top_ = below_ = {};
    return PickleToken::kInteger;
}

PickleToken PickleWalk::memo_put(std::uint32_t index_bytes) {
    std::uint64_t index = 0;
    if (!read_number(index_bytes, &index)) return end();
    if (index < kMemoEntries) memo_[index] = top_;
    return PickleToken::kOther;
}

PickleToken PickleWalk::memo_get(std::uint32_t index_bytes) {
    std::uint64_t index = 0;
    if (!read_number(index_bytes, &index)) return end();
    if (index >= kMemoEntries || memo_[index].data() == nullptr) return other();
    return push(memo_[index]);
}

bool PickleWalk::read_number(std::uint32_t bytes, std::uint64_t* out) {
    if (left() < bytes) return false;
    std::uint64_t value = 0;
    for (std::uint32_t i = 0; i < bytes; ++i)
        value |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(at_[i])) << (8 * i);
    at_ += bytes;
    *out = value;
    return true;
}

bool PickleWalk::read_line(std::string_view* out) {
    for (const char* p = at_; p < end_; ++p) {
        if (*p != '\n') continue;
        *out = std::string_view(at_, static_cast<std::size_t>(p - at_));
        at_ = p + 1;
        return true;
    }
    return false;
}

}  // namespace ringside::inject::torch
