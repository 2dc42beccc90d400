// A pickle's opcodes, one token at a time: only strings, globals and integers are told; everything else is skipped by its length.
// Bounded by the bytes given and by a number of opcodes, since it runs in a hook. Used by payload_name alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ringside::inject::torch {

enum class PickleToken {
    kEnd,      ///< STOP, the bytes' end, an unknown opcode, or too many opcodes
    kOther,    ///< an opcode that is none of the following
    kString,   ///< text() is a string that was pushed
    kGlobal,   ///< module() and text() name a global
    kInteger,  ///< integer(); of more than 8 bytes: kOther, of less, unsigned
};

class PickleWalk {
public:
    PickleWalk(const char* bytes, std::size_t size) : at_(bytes), end_(bytes + size) {}

    PickleToken next();

    std::string_view text() const { return text_; }
    std::string_view module() const { return module_; }
    std::int64_t integer() const { return integer_; }
    /// True after kEnd by a STOP opcode: the pickle was read wholly.
    bool stopped() const { return stopped_; }

private:
    static constexpr std::uint32_t kMaxOpcodes = 4096;
    static constexpr std::uint32_t kMemoEntries = 16;

    PickleToken end();
    PickleToken other();
    PickleToken push(std::string_view text);
    PickleToken global(std::string_view module, std::string_view name);
    PickleToken sized_string(std::uint32_t length_bytes);
    PickleToken sized_skip(std::uint32_t length_bytes);
    PickleToken skip(std::uint32_t bytes);
    PickleToken small_integer(std::uint32_t bytes, bool is_signed);
    PickleToken long_integer();
    PickleToken memo_put(std::uint32_t index_bytes);
    PickleToken memo_get(std::uint32_t index_bytes);
    bool read_number(std::uint32_t bytes, std::uint64_t* out);
    bool read_line(std::string_view* out);
    std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

    const char* at_;
    const char* end_;
    std::uint32_t opcodes_ = 0;
    std::uint32_t memoized_ = 0;
    bool stopped_ = false;
    // The two topmost stack items where they are strings: what STACK_GLOBAL takes.
    std::string_view top_, below_;
    std::string_view text_, module_;
    std::int64_t integer_ = 0;
    std::string_view memo_[kMemoEntries];
};

}  // namespace ringside::inject::torch
