// A job index as its frames, each of them checked.
#pragma once

#include <doctest/doctest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "schema/frame.hpp"
#include "schema/job_generated.h"

namespace ringside::agent::test {

inline std::vector<std::uint8_t> read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The frames of an index, each whole and verified.
inline std::vector<const fbs::JobIndex*> frames_of(const std::vector<std::uint8_t>& file) {
    std::vector<const fbs::JobIndex*> frames;
    std::size_t at = 0;
    while (at < file.size()) {
        schema::FrameHeader frame{};
        REQUIRE(file.size() - at > sizeof frame);
        std::memcpy(&frame, file.data() + at, sizeof frame);
        const std::uint8_t* body = file.data() + at + sizeof frame;
        CHECK(frame.magic == schema::kJobFrameMagic);
        REQUIRE(file.size() - at - sizeof frame >= frame.length);
        CHECK(frame.checksum == XXH3_64bits(body, frame.length));
        flatbuffers::Verifier verifier(body, frame.length);
        REQUIRE(fbs::VerifyJobIndexBuffer(verifier));
        frames.push_back(fbs::GetJobIndex(body));
        at += sizeof frame + frame.length + schema::frame_padding(frame.length);
    }
    CHECK(at == file.size());
    return frames;
}

}  // namespace ringside::agent::test
