#include "agent/control/message_walk.hpp"

#include <flatbuffers/minireflect.h>

#include <bit>
#include <cstring>

namespace ringside::agent {
namespace {

using flatbuffers::TypeCode;
using flatbuffers::TypeTable;

static_assert(std::endian::native == std::endian::little);

constexpr std::size_t kOffsetBytes = sizeof(flatbuffers::uoffset_t);
constexpr std::size_t kFirstSlot = 2 * sizeof(flatbuffers::voffset_t);
/// Of the fields of Message.
constexpr std::size_t kVersion = 0, kId = 1, kKind = 2;

/// Bytes that nobody has verified: each number in them is copied once, and followed only where it leads to others of them.
class Bytes {
public:
    explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    template <class Number>
    bool read(std::size_t at, Number& number) const {
        if (!holds(at, sizeof number)) return false;
        std::memcpy(&number, bytes_.data() + at, sizeof number);
        return true;
    }
    bool holds(std::size_t at, std::size_t size) const {
        return at <= bytes_.size() && size <= bytes_.size() - at;
    }
    /// From an offset to what it leads to.
    bool follow(std::size_t& at) const {
        flatbuffers::uoffset_t offset = 0;
        if (!read(at, offset)) return false;
        at += offset;
        return true;
    }

private:
    std::span<const std::uint8_t> bytes_;
};

/// A table's place, and where its fields are.
class TableAt {
public:
    static std::optional<TableAt> find(const Bytes& bytes, std::size_t at) {
        flatbuffers::soffset_t back = 0;
        if (!bytes.read(at, back)) return std::nullopt;
        const auto slots = static_cast<std::int64_t>(at) - back;
        if (slots < 0) return std::nullopt;
        TableAt table;
        table.at_ = at;
        table.slots_ = static_cast<std::size_t>(slots);
        if (!bytes.read(table.slots_, table.slots_bytes_) ||
            !bytes.read(table.slots_ + sizeof table.slots_bytes_, table.bytes_) ||
            table.bytes_ < kOffsetBytes || !bytes.holds(at, table.bytes_) ||
            !bytes.holds(table.slots_, table.slots_bytes_))
            return std::nullopt;
        return table;
    }

    std::size_t bytes() const { return bytes_; }
    /// @return 0: it is absent
    std::size_t field(const Bytes& bytes, std::size_t number) const {
        const std::size_t slot = kFirstSlot + number * sizeof(flatbuffers::voffset_t);
        flatbuffers::voffset_t offset = 0;
        if (slot + sizeof offset > slots_bytes_ || !bytes.read(slots_ + slot, offset)) return 0;
        return offset == 0 ? 0 : at_ + offset;
    }
    /// @return 0 where it is absent, or lies outside
    template <class Number>
    Number number(const Bytes& bytes, std::size_t which) const {
        Number value{};
        const std::size_t at = field(bytes, which);
        return at != 0 && bytes.read(at, value) ? value : Number{};
    }

private:
    std::size_t at_ = 0;
    std::size_t slots_ = 0;
    flatbuffers::voffset_t slots_bytes_ = 0;
    flatbuffers::voffset_t bytes_ = 0;
};

class Walk {
public:
    Walk(std::span<const std::uint8_t> bytes, std::size_t most) : bytes_(bytes), left_(most) {}

    bool all() {
        std::size_t at = 0;
        return bytes_.follow(at) && table(at, *fbs::MessageTypeTable(), 1);
    }

private:
    bool take(std::size_t bytes) {
        if (bytes > left_) return false;
        left_ -= bytes;
        return true;
    }

    // NOLINTNEXTLINE(misc-no-recursion): as deep as kMostDepth
    bool table(std::size_t at, const TypeTable& type, int depth) {
        const auto found = TableAt::find(bytes_, at);
        if (depth > kMostDepth || !found || !take(found->bytes())) return false;
        std::size_t fields = kOffsetBytes;
        for (std::size_t i = 0; i < type.num_elems; ++i) {
            const std::size_t field = found->field(bytes_, i);
            if (field == 0) continue;
            const TypeCode code = type.type_codes[i];
            const TypeTable* const of = type_of(type, code);
            const auto kind = static_cast<flatbuffers::ElementaryType>(code.base_type);
            fields += code.is_repeating != 0 ? kOffsetBytes : flatbuffers::InlineSize(kind, of);
            if (code.is_repeating == 0 && kind != flatbuffers::ET_STRING &&
                kind != flatbuffers::ET_SEQUENCE)
                continue;
            if (code.is_repeating != 0) {
                if (!vector(field, code, of, depth)) return false;
            } else if (of != nullptr && of->st == flatbuffers::ST_UNION) {
                // Its kind is the field before it.
                if (!member(field, found->number<std::uint8_t>(bytes_, i - 1), *of, depth))
                    return false;
            } else if (!value(field, code, of, depth)) {
                return false;
            }
        }
        // They may lie over each other, and outside of it.
        return fields <= found->bytes() || take(fields - found->bytes());
    }

    // NOLINTNEXTLINE(misc-no-recursion): as deep as kMostDepth
    bool vector(std::size_t at, TypeCode code, const TypeTable* of, int depth) {
        flatbuffers::uoffset_t count = 0;
        if (!bytes_.follow(at) || !bytes_.read(at, count)) return false;
        const auto type = static_cast<flatbuffers::ElementaryType>(code.base_type);
        const std::size_t each = flatbuffers::InlineSize(type, of);
        at += sizeof count;
        if (!take(sizeof count + count * each)) return false;
        if (type != flatbuffers::ET_STRING && type != flatbuffers::ET_SEQUENCE) return true;
        if (of != nullptr && of->st == flatbuffers::ST_STRUCT) return true;
        for (std::size_t i = 0; i < count; ++i) {
            if (!value(at + i * each, code, of, depth)) return false;
        }
        return true;
    }

    /// A text, a table or a struct.
    // NOLINTNEXTLINE(misc-no-recursion): as deep as kMostDepth
    bool value(std::size_t at, TypeCode code, const TypeTable* of, int depth) {
        if (code.base_type == flatbuffers::ET_STRING) return text(at);
        if (of == nullptr) return false;
        switch (of->st) {
            case flatbuffers::ST_TABLE:
                return bytes_.follow(at) && table(at, *of, depth + 1);
            case flatbuffers::ST_STRUCT:
            case flatbuffers::ST_ENUM:
                return true;
            case flatbuffers::ST_UNION:
                return false;  // a list of them: the schema has none
        }
        return false;
    }

    /// @param of  the union's; its first member is none
    // NOLINTNEXTLINE(misc-no-recursion): as deep as kMostDepth
    bool member(std::size_t at, std::uint8_t kind, const TypeTable& of, int depth) {
        if (kind == 0 || kind >= of.num_elems) return true;
        return value(at, of.type_codes[kind], type_of(of, of.type_codes[kind]), depth);
    }

    bool text(std::size_t at) {
        flatbuffers::uoffset_t length = 0;
        return bytes_.follow(at) && bytes_.read(at, length) &&
               take(sizeof length + std::size_t{length} + 1);
    }

    static const TypeTable* type_of(const TypeTable& type, TypeCode code) {
        return code.sequence_ref < 0 ? nullptr : type.type_refs[code.sequence_ref]();
    }

    const Bytes bytes_;
    std::size_t left_;
};

}  // namespace

std::optional<MessageHead> head_of(std::span<const std::uint8_t> bytes) {
    if (bytes.size() < 2 * kOffsetBytes || !fbs::MessageBufferHasIdentifier(bytes.data()))
        return std::nullopt;
    const Bytes all(bytes);
    std::size_t at = 0;
    if (!all.follow(at)) return std::nullopt;
    const auto message = TableAt::find(all, at);
    if (!message) return std::nullopt;
    return MessageHead{message->number<std::uint32_t>(all, kVersion),
                       message->number<std::uint64_t>(all, kId),
                       static_cast<fbs::Content>(message->number<std::uint8_t>(all, kKind))};
}

bool tells_at_most(std::span<const std::uint8_t> bytes, std::size_t most) {
    return Walk(bytes, most).all();
}

}  // namespace ringside::agent
