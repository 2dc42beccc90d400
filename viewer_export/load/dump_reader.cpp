#include "viewer_export/load/dump_reader.hpp"

#include <zstd.h>

#include <cstring>
#include <utility>

#include "schema/aligned.hpp"
#include "schema/frame.hpp"

namespace ringside::viewer_export::load {

namespace {

schema::Error failure(const std::string& path, const std::string& cause) {
    return {schema::ErrorCode::kInput, "read dump " + path + ": " + cause};
}

bool begins_with_magic(std::span<const std::uint8_t> bytes) {
    const std::uint32_t magic = schema::kDumpFrameMagic;
    return bytes.size() >= sizeof magic && std::memcmp(bytes.data(), &magic, sizeof magic) == 0;
}

bool whole_chunk(std::span<const std::uint8_t> bytes) {
    // The library's own limit of a million tables is a message's, not a file's: a table takes at least 4 bytes.
    flatbuffers::Verifier verifier(bytes.data(), bytes.size(), 64,
                                   static_cast<flatbuffers::uoffset_t>(bytes.size() / 4 + 1));
    // The verifier lets a kind without a body pass.
    return fbs::VerifyChunkBuffer(verifier) && fbs::GetChunk(bytes.data())->body() != nullptr &&
           schema::is_aligned_chunk(*fbs::GetChunk(bytes.data()));
}

}  // namespace

model::Calibration calibration_of(const fbs::FileHeader& header) {
    const fbs::Calibration* stored = header.calibration();
    if (stored == nullptr) return {};
    model::Calibration calibration{stored->reference_ticks(), stored->reference_ns(),
                                   stored->ticks_per_second(), stored->error_ppb(),
                                   static_cast<std::uint8_t>(stored->ticks_source())};
    // A rate of zero or less would turn every time into nonsense; ticks then show as they are.
    if (!(calibration.ticks_per_second > 0)) calibration.ticks_per_second = 1e9;
    return calibration;
}

DumpReader::DumpReader(std::string path, MappedFile file)
    : path_(std::move(path)),
      file_(std::move(file)),
      frames_(file_.bytes(), schema::kDumpFrameMagic) {}

schema::Result<DumpReader> DumpReader::open(const std::filesystem::path& path) {
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    if (!begins_with_magic(file->bytes())) {
        return failure(path.string(),
                       file->bytes().empty()
                           ? "the file is empty; its agent wrote nothing, capture again"
                           : "not a dump (it does not begin with RSDF); name a file that "
                             "ringside wrote (.rsd)");
    }
    DumpReader reader(path.string(), std::move(*file));
    const fbs::Chunk* first = reader.verified();
    if (first == nullptr) {
        return failure(reader.path_, "nothing of it is readable: its first chunk is damaged (" +
                                         reader.frames_.problem() +
                                         "); copy the file again, or capture again");
    }
    reader.header_ = first->body_as_FileHeader();
    if (reader.header_ == nullptr) {
        return failure(
            reader.path_,
            "its first chunk is no header; the file's beginning is missing, copy it again");
    }
    if (reader.header_->min_reader() > schema::kDumpVersion) {
        return failure(reader.path_, "its version " + std::to_string(reader.header_->version()) +
                                         " needs a reader of version " +
                                         std::to_string(reader.header_->min_reader()) +
                                         ", this one reads up to " +
                                         std::to_string(schema::kDumpVersion) +
                                         "; install a newer ringside");
    }
    return reader;
}

const fbs::Chunk* DumpReader::verified() {
    std::span<const std::uint8_t> payload;
    if (!frames_.next(payload)) return nullptr;
    const fbs::Chunk* chunk = whole_chunk(payload) ? fbs::GetChunk(payload.data()) : nullptr;
    if (const auto* packed = chunk == nullptr || !unpacks_ ? nullptr : chunk->body_as_Packed())
        chunk = unpacked(*packed);
    if (chunk == nullptr) {
        frames_.reject(
            "its content is malformed although its checksum matches: written by faulty software");
    }
    return chunk;
}

/// @return null where it unpacks to no whole chunk
const fbs::Chunk* DumpReader::unpacked(const fbs::Packed& packed) {
    if (packed.packing() != fbs::Packing::Zstd || packed.data() == nullptr ||
        packed.bytes() > schema::kMaxFrameBytes)
        return nullptr;
    unpacked_.resize(packed.bytes());
    const std::size_t size = ZSTD_decompress(unpacked_.data(), unpacked_.size(),
                                             packed.data()->data(), packed.data()->size());
    if (size != unpacked_.size() || !whole_chunk(unpacked_)) return nullptr;
    const fbs::Chunk* chunk = fbs::GetChunk(unpacked_.data());
    return chunk->body_type() == fbs::Body::Packed ? nullptr : chunk;
}

std::shared_ptr<const std::vector<std::uint8_t>> DumpReader::take_unpacked() {
    if (unpacked_.empty()) return nullptr;
    return std::make_shared<const std::vector<std::uint8_t>>(std::exchange(unpacked_, {}));
}

const fbs::Chunk* DumpReader::next() {
    if (footer_) {
        after_footer_ = frames_.offset() != frames_.size();
        return nullptr;
    }
    const fbs::Chunk* chunk = verified();
    if (chunk != nullptr && chunk->body_type() == fbs::Body::Footer) footer_ = true;
    return chunk;
}

std::optional<model::Damage> DumpReader::damage() const {
    const std::string at = "byte " + std::to_string(frames_.offset());
    if (after_footer_) {
        return model::Damage{path_, frames_.offset(),
                             "read dump " + path_ + ": " +
                                 std::to_string(frames_.size() - frames_.offset()) +
                                 " bytes follow its last chunk at " + at + "; they are left out"};
    }
    if (footer_) return std::nullopt;
    std::string text = "read dump " + path_ + ": whole up to " + at + " of " +
                       std::to_string(frames_.size()) + " (" + std::to_string(frames_.frames()) +
                       " chunks), ";
    text +=
        frames_.problem().empty()
            ? "then it ends without its footer: the agent was stopped before it was done"
            : "chunk " + std::to_string(frames_.frames() + 1) + " is damaged: " + frames_.problem();
    text += "; what stands before is loaded, copy the file again if there is a whole one";
    return model::Damage{path_, frames_.offset(), std::move(text)};
}

}  // namespace ringside::viewer_export::load
