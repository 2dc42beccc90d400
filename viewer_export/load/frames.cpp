#include "viewer_export/load/frames.hpp"

#include <xxhash.h>

#include <cstring>
#include <utility>

#include "schema/frame.hpp"

namespace ringside::viewer_export::load {

bool FrameReader::fail(std::string why) {
    problem_ = std::move(why);
    return false;
}

void FrameReader::reject(std::string why) {
    offset_ = previous_;
    --frames_;
    problem_ = std::move(why);
}

bool FrameReader::next(std::span<const std::uint8_t>& payload) {
    if (!problem_.empty() || offset_ == bytes_.size()) return false;
    const auto left = bytes_.subspan(offset_);
    schema::FrameHeader header{};
    if (left.size() < sizeof header) {
        return fail("its header is cut off after " + std::to_string(left.size()) + " of 16 bytes");
    }
    std::memcpy(&header, left.data(), sizeof header);
    if (header.magic != magic_) return fail("it does not begin with the frame's magic");
    if (header.length > schema::kMaxFrameBytes) {
        return fail("it claims " + std::to_string(header.length) +
                    " bytes, more than any writer makes");
    }
    const auto body = left.subspan(sizeof header);
    if (body.size() < header.length) {
        return fail("it is cut off after " + std::to_string(body.size()) + " of " +
                    std::to_string(header.length) + " bytes");
    }
    if (XXH3_64bits(body.data(), header.length) != header.checksum) {
        return fail("its checksum does not match: bytes in it have changed");
    }
    const std::uint64_t padded = header.length + schema::frame_padding(header.length);
    if (body.size() < padded) return fail("its padding is cut off");
    payload = body.first(header.length);
    previous_ = offset_;
    offset_ += sizeof header + padded;
    ++frames_;
    return true;
}

}  // namespace ringside::viewer_export::load
