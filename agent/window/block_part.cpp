#include "agent/window/block_part.hpp"

#include <algorithm>
#include <cstring>

#include "schema/block_codec.hpp"

namespace ringside::agent {
namespace {

using schema::RecordHeader;
using schema::RecordKind;

LaneContext context_after(const std::uint64_t* words) {
    schema::ContextRecord record;
    std::memcpy(&record, words, sizeof record);
    const auto detail = schema::record_detail(RecordHeader::unpack(record.header).flags);
    if ((detail & schema::kContextOn) == 0) return {};
    return {schema::ContextState::kServing, record.key, record.trace_hi, record.trace_lo,
            record.span};
}

/// Encodes what is kept, record by record.
class Part {
public:
    explicit Part(const Block& whole) : whole_(whole), context_(whole.context) {
        data_.reserve(whole.data.size());
    }

    /// @param inlined  the NameInline before the record, else null
    void keep(const schema::DecodedRecord* inlined, const schema::DecodedRecord& record,
              std::uint64_t position) {
        if (records_ == 0) {
            first_ = last_ = position;
            base_ticks_ = record.words[1];
            encoder_ = schema::BlockEncoder(base_ticks_);
            first_context_ = context_;
        }
        if (position != last_) {
            append([&](std::uint8_t* out) {
                return schema::BlockEncoder::pad(position - last_, out);
            });
        }
        if (inlined != nullptr)
            append([&](std::uint8_t* out) { return encoder_.record(inlined->words, out); });
        append([&](std::uint8_t* out) { return encoder_.record(record.words, out); });
        last_ = position + record.cells + (inlined != nullptr ? inlined->cells : 0);
        ++records_;
    }
    void follow(const schema::DecodedRecord& record) {
        if (record.header().kind == RecordKind::kContext && record.cells >= 2)
            context_ = context_after(record.words);
    }
    void give(Block& block) && {
        block.first = records_ != 0 ? first_ : whole_.last;
        block.last = records_ != 0 ? last_ : whole_.last;
        block.base_ticks = records_ != 0 ? base_ticks_ : block.base_ticks;
        block.context = records_ != 0 ? first_context_ : context_;
        block.records = records_;
        block.data = std::move(data_);
    }

private:
    template <class Write>
    void append(Write&& write) {
        std::uint8_t bytes[schema::kMaxEncodedRecordBytes];
        data_.insert(data_.end(), bytes, write(bytes));
    }

    const Block& whole_;
    LaneContext context_;
    LaneContext first_context_;
    schema::BlockEncoder encoder_{0};
    std::vector<std::uint8_t> data_;
    std::uint64_t first_ = 0, last_ = 0, base_ticks_ = 0;
    std::uint32_t records_ = 0;
};

}  // namespace

void keep_open_part(Block& block, const TickRange& range) {
    std::erase_if(block.open, [&](const OpenRange& open) { return !range.contains(open.begin); });
}

bool keep_part(Block& block, const TickRange& range, std::uint64_t& outside) {
    schema::BlockDecoder decoder(block.data.data(), block.data.size(), block.base_ticks);
    Part part(block);
    schema::DecodedRecord record{}, inlined{};
    bool has_inlined = false;
    std::uint64_t position = block.first, left_out = 0;
    while (decoder.next(record)) {
        const RecordKind kind = record.header().kind;
        const std::uint64_t begins = position - (has_inlined ? inlined.cells : 0);
        position += record.cells;
        if (kind == RecordKind::kNameInline) {
            inlined = record;
            has_inlined = true;
            continue;
        }
        if (kind != RecordKind::kPad) {
            if (range.contains(record.words[1])) {
                part.keep(has_inlined ? &inlined : nullptr, record, begins);
            } else {
                ++left_out;
            }
            part.follow(record);
        }
        has_inlined = false;
    }
    if (decoder.damaged()) return false;
    std::move(part).give(block);
    keep_open_part(block, range);
    outside += left_out;
    return true;
}

}  // namespace ringside::agent
