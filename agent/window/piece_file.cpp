#include "agent/window/piece_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "schema/aligned.hpp"
#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

constexpr std::string_view kPrefix = "window.";

/// Reads exactly `size` bytes. @return false where the file ends before
bool read_exactly(int file, std::uint8_t* out, std::size_t size, std::uint64_t offset) {
    while (size != 0) {
        const ssize_t got = ::pread(file, out, size, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        out += got;
        offset += static_cast<std::uint64_t>(got);
        size -= static_cast<std::size_t>(got);
    }
    return true;
}

}  // namespace

std::string piece_name(std::uint64_t sequence) {
    return std::string(kPrefix) + std::to_string(sequence);
}

std::optional<std::uint64_t> parse_piece_name(const std::string& name) {
    if (name.compare(0, kPrefix.size(), kPrefix) != 0) return std::nullopt;
    std::uint64_t sequence = 0;
    const char* const end = name.data() + name.size();
    const auto [rest, error] = std::from_chars(name.data() + kPrefix.size(), end, sequence);
    if (error != std::errc() || rest != end || sequence == 0 || piece_name(sequence) != name)
        return std::nullopt;
    return sequence;
}

std::vector<FoundPiece> find_pieces(int directory) {
    std::vector<FoundPiece> found;
    const int descriptor = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = descriptor < 0 ? nullptr : ::fdopendir(descriptor);
    if (stream == nullptr) {
        const FileHandle unused(descriptor);
        return found;
    }
    while (const dirent* entry = ::readdir(stream)) {
        const auto sequence = parse_piece_name(entry->d_name);
        struct stat status {};
        if (!sequence || ::fstatat(directory, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
            continue;
        found.push_back({*sequence, static_cast<std::uint64_t>(status.st_size)});
    }
    ::closedir(stream);
    std::sort(found.begin(), found.end(),
              [](const FoundPiece& a, const FoundPiece& b) { return a.sequence < b.sequence; });
    return found;
}

std::size_t remove_pieces(int directory) {
    const std::vector<FoundPiece> found = find_pieces(directory);
    for (const FoundPiece& piece : found)
        ::unlinkat(directory, piece_name(piece.sequence).c_str(), 0);
    return found.size();
}

FileHandle open_piece(int directory, std::uint64_t sequence) {
    FileHandle file(::openat(directory, piece_name(sequence).c_str(),
                             O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    if (file && (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
                 status.st_uid != ::geteuid())) {
        errno = EPERM;
        return FileHandle();
    }
    return file;
}

const fbs::Chunk* read_frame(int file, std::uint64_t offset, std::vector<std::uint8_t>& buffer,
                             std::uint64_t& frame_bytes) {
    schema::FrameHeader header{};
    if (!read_exactly(file, reinterpret_cast<std::uint8_t*>(&header), sizeof header, offset))
        return nullptr;
    if (header.magic != schema::kDumpFrameMagic || header.length > schema::kMaxFrameBytes)
        return nullptr;
    buffer.resize(header.length + schema::frame_padding(header.length));
    if (!read_exactly(file, buffer.data(), buffer.size(), offset + sizeof header)) return nullptr;
    if (XXH3_64bits(buffer.data(), header.length) != header.checksum) return nullptr;
    flatbuffers::Verifier verifier(buffer.data(), header.length);
    if (!fbs::VerifyChunkBuffer(verifier) ||
        !schema::is_aligned_chunk(*fbs::GetChunk(buffer.data())))
        return nullptr;
    frame_bytes = sizeof header + buffer.size();
    return fbs::GetChunk(buffer.data());
}

void read_pieces(int directory,
                 const std::function<bool(std::uint64_t sequence, const fbs::Chunk& chunk)>& take) {
    std::vector<std::uint8_t> buffer;
    for (const FoundPiece& piece : find_pieces(directory)) {
        const FileHandle file = open_piece(directory, piece.sequence);
        if (!file) continue;
        std::uint64_t offset = 0, bytes = 0;
        while (const fbs::Chunk* chunk = read_frame(file.get(), offset, buffer, bytes)) {
            if (!take(piece.sequence, *chunk)) return;
            offset += bytes;
        }
    }
}

}  // namespace ringside::agent
