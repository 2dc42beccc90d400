#include "viewer_export/load/job_reader.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>

#include "schema/aligned.hpp"
#include "schema/frame.hpp"
#include "viewer_export/load/frames.hpp"

namespace ringside::viewer_export::load {

namespace {

schema::Error failure(const std::string& name, const std::string& cause,
                      schema::ErrorCode code = schema::ErrorCode::kInput) {
    return {code, "read job index " + name + ": " + cause};
}

const fbs::HalfRef kNoHalf{~0u, 0, 0, 0, 0};

std::int64_t begin_of(const fbs::Call& call) {
    return call.client().node() != ~0u ? call.client_begin_ns() : call.server_begin_ns();
}

std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint64_t> place_of(
    const fbs::Call& call) {
    const fbs::HalfRef& half = call.client().node() != ~0u ? call.client() : call.server();
    return {half.node(), half.process(), half.lane(), half.generation(), half.position()};
}

}  // namespace

schema::Result<JobIndexFile> JobIndexFile::open(const std::filesystem::path& path) {
    auto mapped = MappedFile::open(path);
    if (!mapped) return mapped.error();
    JobIndexFile file;
    file.file_ = std::move(*mapped);
    const auto bytes = file.file_.bytes();
    return parse(std::move(file), bytes, path.string());
}

schema::Result<JobIndexFile> JobIndexFile::from_memory(std::span<const std::uint8_t> bytes) {
    JobIndexFile file;
    file.storage_.resize(bytes.size() / 8 + 1);
    if (!bytes.empty()) std::memcpy(file.storage_.data(), bytes.data(), bytes.size());
    const auto* at = reinterpret_cast<const std::uint8_t*>(file.storage_.data());
    return parse(std::move(file), {at, bytes.size()}, "in memory");
}

schema::Result<JobIndexFile> JobIndexFile::parse(JobIndexFile file,
                                                 std::span<const std::uint8_t> bytes,
                                                 const std::string& name) {
    FrameReader frames(bytes, schema::kJobFrameMagic);
    std::span<const std::uint8_t> payload;
    while (frames.next(payload)) {
        if (auto added = file.add_frame(payload, name); !added) return added.error();
    }
    std::string problem = frames.problem();
    if (frames.frames() == 0 && problem.empty()) problem = "the file is empty";
    if (problem.empty() && std::max<std::uint64_t>(file.index_->frames(), 1) != frames.frames())
        problem =
            "it ends after " + std::to_string(frames.frames()) + " frames without its last one";
    if (!problem.empty()) {
        return failure(
            name, problem + "; copy the file again, or leave it out: dumps are readable without");
    }
    file.add_rpcs();
    if (file.parents_.empty()) file.sort_calls();
    return file;
}

schema::Result<void> JobIndexFile::add_frame(std::span<const std::uint8_t> payload,
                                             const std::string& name) {
    flatbuffers::Verifier verifier(payload.data(), payload.size(), 64,
                                   static_cast<flatbuffers::uoffset_t>(payload.size() / 4 + 1));
    if (!fbs::VerifyJobIndexBuffer(verifier) ||
        !schema::is_aligned(fbs::GetJobIndex(payload.data())->calls())) {
        return failure(name, "its content is malformed; leave it out: dumps are readable without");
    }
    index_ = fbs::GetJobIndex(payload.data());
    if (index_->min_reader() > schema::kJobVersion) {
        return failure(name,
                       "its version " + std::to_string(index_->version()) +
                           " needs a reader of version " + std::to_string(index_->min_reader()) +
                           ", this one reads up to " + std::to_string(schema::kJobVersion) +
                           "; install a newer ringside",
                       schema::ErrorCode::kRefused);
    }
    if (index_->calls() != nullptr)
        calls_.insert(calls_.end(), index_->calls()->begin(), index_->calls()->end());
    return {};
}

/// Version 1's requests as calls; their trees are told already.
void JobIndexFile::add_rpcs() {
    if (index_->rpcs() == nullptr || index_->rpcs()->size() == 0 || !calls_.empty()) return;
    converted_.reserve(index_->rpcs()->size());
    for (const fbs::Rpc* rpc : *index_->rpcs()) {
        converted_.emplace_back(rpc->trace_hi(), rpc->trace_lo(), rpc->span(),
                                rpc->client() == nullptr ? kNoHalf : *rpc->client(),
                                rpc->server() == nullptr ? kNoHalf : *rpc->server(), 0, 0,
                                rpc->client_begin_ns(), rpc->server_begin_ns(),
                                rpc->server_end_ns(), rpc->client_end_ns(), rpc->state(),
                                rpc->unfinished(), rpc->reply());
        parents_.push_back(rpc->parent());
    }
    for (const fbs::Call& call : converted_) calls_.push_back(&call);
}

/// They were written as they ended.
void JobIndexFile::sort_calls() {
    std::sort(calls_.begin(), calls_.end(), [](const fbs::Call* a, const fbs::Call* b) {
        const std::int64_t begin = begin_of(*a), other = begin_of(*b);
        return begin != other ? begin < other : place_of(*a) < place_of(*b);
    });
}

}  // namespace ringside::viewer_export::load
