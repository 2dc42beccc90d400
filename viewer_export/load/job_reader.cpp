#include "viewer_export/load/job_reader.hpp"

#include <cstring>
#include <string>

#include "schema/frame.hpp"
#include "viewer_export/load/frames.hpp"
#include "viewer_export/load/mapped_file.hpp"

namespace ringside::viewer_export::load {

namespace {

schema::Error failure(const std::string& name, const std::string& cause,
                      schema::ErrorCode code = schema::ErrorCode::kInput) {
    return {code, "read job index " + name + ": " + cause};
}

}  // namespace

schema::Result<JobIndexFile> JobIndexFile::open(const std::filesystem::path& path) {
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    FrameReader frames(file->bytes(), schema::kJobFrameMagic);
    std::span<const std::uint8_t> payload;
    if (!frames.next(payload)) {
        return failure(path.string(),
                       (frames.problem().empty() ? "the file is empty" : frames.problem()) +
                           "; copy the file again, or leave it out: dumps are readable without");
    }
    return parse(payload, path.string());
}

schema::Result<JobIndexFile> JobIndexFile::from_memory(std::span<const std::uint8_t> flatbuffer) {
    return parse(flatbuffer, "in memory");
}

schema::Result<JobIndexFile> JobIndexFile::parse(std::span<const std::uint8_t> flatbuffer,
                                                 const std::string& name) {
    JobIndexFile file;
    file.storage_.resize(flatbuffer.size() / 8 + 1);
    if (!flatbuffer.empty())
        std::memcpy(file.storage_.data(), flatbuffer.data(), flatbuffer.size());
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file.storage_.data());
    flatbuffers::Verifier verifier(bytes, flatbuffer.size(), 64,
                                   static_cast<flatbuffers::uoffset_t>(flatbuffer.size() / 4 + 1));
    if (!fbs::VerifyJobIndexBuffer(verifier)) {
        return failure(name, "its content is malformed; leave it out: dumps are readable without");
    }
    file.index_ = fbs::GetJobIndex(bytes);
    if (file.index_->min_reader() > schema::kJobVersion) {
        return failure(name,
                       "its version " + std::to_string(file.index_->version()) +
                           " needs a reader of version " +
                           std::to_string(file.index_->min_reader()) + ", this one reads up to " +
                           std::to_string(schema::kJobVersion) + "; install a newer ringside",
                       schema::ErrorCode::kRefused);
    }
    return file;
}

}  // namespace ringside::viewer_export::load
