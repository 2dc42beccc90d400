#include "agent/dump/dump_writer.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "agent/dump/chunks.hpp"
#include "agent/dump/partial_dump.hpp"
#include "schema/frame.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

constexpr std::uint64_t kMostOwedBytes = std::uint64_t{16} << 20;

std::string final_name(const std::string& node) {
    return node + schema::kDumpExtension;
}
std::string partial_name(const std::string& node) {
    return final_name(node) + ".partial";
}

}  // namespace

DumpWriter::DumpWriter(OutputFolder folder, FrameFile file, DumpRequest request)
    : folder_(std::move(folder)), file_(std::move(file)), request_(std::move(request)) {
    if (request_.compress) packer_.emplace();
    reserve_end(0, 0, 0);
}

schema::Result<std::unique_ptr<DumpWriter>> DumpWriter::create(const DumpRequest& request) {
    if (!is_path_component(request.node)) {
        return Error{ErrorCode::kUsage, "write dump of node '" + request.node +
                                            "': a node's name is one component of a path; give "
                                            "another --node"};
    }
    auto folder = OutputFolder::open(request.output_root, request.name);
    if (!folder) return folder.error();
    const int directory = folder->directory.get();
    const std::string path = folder->path + "/" + final_name(request.node);
    if (::faccessat(directory, final_name(request.node).c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
        return Error{ErrorCode::kRefused,
                     "write dump " + path + ": it is there already; give another --name"};
    }
    constexpr mode_t kPrivate = 0600;
    FileHandle file(::openat(directory, partial_name(request.node).c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (!file) {
        if (errno == EEXIST) {
            return Error{ErrorCode::kRefused, "write dump " + path +
                                                  ".partial: a capture that did not end left it; "
                                                  "remove it or give another --name"};
        }
        return Error{ErrorCode::kUsage, "write dump " + path + ".partial: " + error_text(errno) +
                                            "; give another --output"};
    }
    return std::unique_ptr<DumpWriter>(new DumpWriter(
        std::move(*folder), FrameFile(std::move(file), schema::kDumpFrameMagic), request));
}

schema::Result<std::unique_ptr<DumpWriter>> DumpWriter::resume(const DumpRequest& request,
                                                               std::uint64_t capture_id,
                                                               PartialDump& partial) {
    auto folder = OutputFolder::open(request.output_root, request.name);
    if (!folder) return folder.error();
    const std::string path = folder->path + "/" + partial_name(request.node);
    const auto open_file = [&](const std::string& name, int flags) {
        return FileHandle(
            ::openat(folder->directory.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
    };
    FileHandle file = open_file(partial_name(request.node), O_RDWR);
    const bool named = !file && errno == ENOENT;
    if (named) file = open_file(final_name(request.node), O_RDONLY);
    if (!file) {
        return Error{errno == ENOENT ? ErrorCode::kNothingMatched : ErrorCode::kUsage,
                     "go on with dump " + path + ": " + error_text(errno)};
    }
    auto read = read_partial(file.get(), path);
    if (!read) return read.error();
    partial = std::move(*read);
    if (partial.has_header && partial.header.capture_id != capture_id) {
        return Error{ErrorCode::kInput,
                     "go on with dump " + path + ": it is another capture's; it stays as it is"};
    }
    if (named) return std::unique_ptr<DumpWriter>();
    const auto end = static_cast<off_t>(partial.bytes);
    if (::ftruncate(file.get(), end) != 0 || ::lseek(file.get(), end, SEEK_SET) != end)
        return Error{ErrorCode::kUsage, "go on with dump " + path + ": " + error_text(errno)};
    std::unique_ptr<DumpWriter> writer(new DumpWriter(
        std::move(*folder), FrameFile(std::move(file), schema::kDumpFrameMagic, partial.bytes),
        request));
    if (!partial.has_footer) return writer;
    DumpReceipt receipt;
    writer->take_final_name(receipt);
    if (writer->error_ == 0) return std::unique_ptr<DumpWriter>();
    return Error{ErrorCode::kUsage, writer->failure()};
}

std::string DumpWriter::path() const {
    return folder_.path + "/" + final_name(request_.node);
}

void DumpWriter::reserve_end(std::size_t lanes, std::size_t processes, std::size_t untold) {
    // Upper bounds of a LaneTotals and a ProcessEnd (its iterations' name of some 100 bytes) as FlatBuffers write them, and the rest of the chunk.
    constexpr std::size_t kLane = 112, kProcess = 448, kRest = 512;
    // A process's last word is its first with an end, and perhaps another source's level.
    constexpr std::size_t kLastWord = 512;
    end_reserve_ =
        kRest + lanes * kLane + processes * kProcess + untold * (process_bytes_ + kLastWord);
}

/// Builds a chunk with make(builder) and appends it.
template <class Make>
bool DumpWriter::append(Make&& make, Part part) {
    if (part.bounded && full_) return false;
    if (!part.needed && given_up_) return false;
    builder_.Clear();
    make(builder_);
    return write(builder_, part);
}

bool DumpWriter::write(const flatbuffers::FlatBufferBuilder& chunk, Part part) {
    const std::uint64_t size = FrameFile::frame_bytes(chunk.GetSize());
    if (part.bounded && request_.max_bytes != 0 &&
        file_.bytes() + owed_bytes_ + size + end_reserve_ > request_.max_bytes) {
        full_ = true;
        return false;
    }
    const bool written =
        !given_up_ && pay() && succeeded(file_.append({chunk.GetBufferPointer(), chunk.GetSize()}));
    resumed_ = resumed_ || (written && error_ != 0 && !part.needed);
    if (written) return true;
    if (part.needed) owe(chunk);
    return false;
}

bool DumpWriter::succeeded(int error) {
    if (error_ == 0) error_ = error;
    return error == 0;
}

/// @return whether the file now has all that what follows needs
bool DumpWriter::pay() {
    for (; !owed_.empty(); owed_.pop_front()) {
        const std::vector<std::uint8_t>& chunk = owed_.front();
        if (!succeeded(file_.append(chunk))) return false;
        owed_bytes_ -= FrameFile::frame_bytes(chunk.size());
    }
    return true;
}

void DumpWriter::owe(const flatbuffers::FlatBufferBuilder& chunk) {
    owed_bytes_ += FrameFile::frame_bytes(chunk.GetSize());
    given_up_ = given_up_ || owed_bytes_ > kMostOwedBytes;
    if (given_up_) return owed_.clear();
    owed_.emplace_back(chunk.GetBufferPointer(), chunk.GetBufferPointer() + chunk.GetSize());
}

void DumpWriter::header(const DumpHeader& header) {
    DumpHeader said = header;
    said.packed = packer_.has_value();
    append([&](auto& builder) { build_header(builder, said, request_.node); }, kFacts);
}

void DumpWriter::process(const ProcessFacts& facts) {
    // Not bounded: a footer that speaks of a process which no chunk names would be worth little.
    append([&](auto& builder) { build_process(builder, facts); }, kFacts);
    process_bytes_ = std::max(process_bytes_, FrameFile::frame_bytes(builder_.GetSize()));
}

void DumpWriter::names(const NamesBatch& batch) {
    append([&](auto& builder) { build_names(builder, batch); }, kNames);
}

bool DumpWriter::blocks(std::span<const Block* const> blocks) {
    if (!packer_) return append([&](auto& builder) { build_blocks(builder, blocks); }, kBlocks);
    return append(
        [&](auto& builder) {
            build_blocks(builder, blocks);
            const std::size_t bytes = builder.GetSize();
            const auto packed = packer_->pack({builder.GetBufferPointer(), bytes});
            if (packed.empty()) return;
            builder.Clear();
            build_packed(builder, bytes, packed);
        },
        kBlocks);
}

std::string DumpWriter::failure() const {
    if (error_ != 0) {
        return "write dump " + folder_.path + "/" + partial_name(request_.node) + ": " +
               error_text(error_) +
               (!resumed_
                    ? "; what came before is in that file; free space and capture again"
                    : "; when there was room again it went on; what came in between is counted "
                      "as lost; free space and capture again for all of it");
    }
    if (full_) {
        return "write dump " + folder_.path + "/" + final_name(request_.node) + ": the bound of " +
               std::to_string(request_.max_bytes) +
               " bytes is reached; what came later is counted as lost; give a greater --max-bytes";
    }
    return "";
}

void DumpWriter::take_final_name(DumpReceipt& receipt) {
    const int directory = folder_.directory.get();
    const std::string partial = partial_name(request_.node);
    const std::string final = final_name(request_.node);
    error_ = file_.sync();
    if (error_ == 0 && ::syscall(SYS_renameat2, directory, partial.c_str(), directory,
                                 final.c_str(), 1u /* RENAME_NOREPLACE */) != 0) {
        // Some file systems (NFS) don't know the flag. A link replaces nothing either.
        const bool known = errno != EINVAL && errno != ENOSYS;
        if (known || ::linkat(directory, partial.c_str(), directory, final.c_str(), 0) != 0)
            error_ = errno;
        else
            static_cast<void>(::unlinkat(directory, partial.c_str(), 0));
    }
    if (error_ != 0) return;
    static_cast<void>(::fsync(directory));
    receipt.path = folder_.path + "/" + final;
}

DumpReceipt DumpWriter::finish(const DumpFooter& footer) {
    DumpReceipt receipt;
    receipt.path = folder_.path + "/" + partial_name(request_.node);
    const bool paid = !given_up_ && pay();
    builder_.Clear();
    build_footer(builder_, footer, file_.bytes());
    if (request_.max_bytes != 0 &&
        file_.bytes() + FrameFile::frame_bytes(builder_.GetSize()) > request_.max_bytes) {
        // No room was kept for what waits: it is told only where there is some.
        DumpFooter without = footer;
        for (ProcessEndFacts& end : without.processes) end.open = {};
        builder_.Clear();
        build_footer(builder_, without, file_.bytes());
    }
    const bool ended =
        paid && succeeded(file_.append({builder_.GetBufferPointer(), builder_.GetSize()}));
    receipt.bytes = file_.bytes();
    // After a failed write the file keeps the name that says so, footer or not.
    if (ended && error_ == 0) take_final_name(receipt);
    receipt.complete = ended && !closed();
    receipt.error = failure();
    return receipt;
}

}  // namespace ringside::agent
