#include "agent/dump/frame_file.hpp"

#include <sys/uio.h>
#include <xxhash.h>

#include <array>
#include <cerrno>

#include "schema/frame.hpp"

namespace ringside::agent {

std::uint64_t FrameFile::frame_bytes(std::size_t body_bytes) {
    return sizeof(schema::FrameHeader) + body_bytes +
           schema::frame_padding(static_cast<std::uint32_t>(body_bytes));
}

/// Cuts off what stands behind the last whole frame.
bool FrameFile::take_back() const {
    const auto end = static_cast<off_t>(bytes_);
    return ::ftruncate(file_.get(), end) == 0 && ::lseek(file_.get(), end, SEEK_SET) == end;
}

int FrameFile::append(std::span<const std::uint8_t> body) {
    if (body.size() > schema::kMaxFrameBytes) return EMSGSIZE;
    if (torn_ && !take_back()) return errno;
    torn_ = false;
    const auto length = static_cast<std::uint32_t>(body.size());
    schema::FrameHeader header{magic_, length, XXH3_64bits(body.data(), body.size())};
    std::array<std::uint8_t, 8> zeros{};
    std::array<iovec, 3> parts{{
        {&header, sizeof header},
        {const_cast<std::uint8_t*>(body.data()), body.size()},
        {zeros.data(), schema::frame_padding(length)},
    }};
    std::size_t part = 0;
    while (part < parts.size()) {
        const ssize_t wrote =
            ::writev(file_.get(), parts.data() + part, static_cast<int>(parts.size() - part));
        if (wrote < 0) {
            if (errno == EINTR) continue;
            const int error = errno;
            torn_ = !take_back();
            return error;
        }
        auto left = static_cast<std::size_t>(wrote);
        while (part < parts.size() && left >= parts[part].iov_len) left -= parts[part++].iov_len;
        if (part < parts.size()) {
            parts[part].iov_base = static_cast<std::uint8_t*>(parts[part].iov_base) + left;
            parts[part].iov_len -= left;
        }
    }
    bytes_ += frame_bytes(body.size());
    return 0;
}

int FrameFile::sync() {
    return ::fsync(file_.get()) == 0 ? 0 : errno;
}

}  // namespace ringside::agent
