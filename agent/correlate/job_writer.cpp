#include "agent/correlate/job_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "agent/correlate/iteration_table.hpp"
#include "schema/frame.hpp"
#include "schema/job_generated.h"

namespace ringside::agent {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;
using schema::Error;
using schema::ErrorCode;

/// 1 MiB of them.
constexpr std::size_t kCallsInFrame = 8192;
constexpr char kPartialName[] = "job.rsj.partial";

Offset<fbs::Node> add_node(FlatBufferBuilder& builder, const NodeCapture& node, bool corrected) {
    const ClockCorrection& clock = node.clock;
    const fbs::ClockCorrection stored(clock.reference_node_ns.value,
                                      corrected ? clock.offset_ns : 0,
                                      corrected ? clock.drift_ppb : 0, clock.bound_ns);
    const auto name = builder.CreateString(node.name);
    const auto host = builder.CreateString(node.host);
    const auto endpoint = builder.CreateString(node.endpoint);
    const auto dump = builder.CreateString(node.dump);
    const auto error = builder.CreateString(node.error);
    return fbs::CreateNode(builder, name, host, endpoint, dump, &stored, node.best_rtt_ns,
                           node.pings, node.start_delay_ns, error);
}

Offset<fbs::ProcessVerdict> add_verdict(FlatBufferBuilder& builder, std::uint32_t node,
                                        const ProcessOutcome& process) {
    const auto command = builder.CreateString(process.command);
    const auto reason = builder.CreateString(process.reason);
    Offset<fbs::Iterations> iterations;
    if (process.iterations) {
        const fbs::IterationsT table = iterations_table(*process.iterations);
        iterations = fbs::CreateIterations(builder, &table);
    }
    const auto executable = builder.CreateString(process.executable);
    std::vector<Offset<fbs::Source>> sources;
    for (const SourceReport& source : process.sources) {
        sources.push_back(fbs::CreateSource(builder, static_cast<std::uint8_t>(source.id),
                                            static_cast<fbs::SourceLevel>(source.level),
                                            builder.CreateString(source.reason)));
    }
    const auto sources_at = builder.CreateVector(sources);
    return fbs::CreateProcessVerdict(builder, node, process.index, process.pid, process.rank,
                                     command, static_cast<fbs::Verdict>(process.verdict), reason,
                                     process.events, process.lost, process.start_delay_ns,
                                     iterations, process.host_pid, process.bytes, sources_at,
                                     executable);
}

void finish_index(FlatBufferBuilder& builder, const JobHeader& header, const JoinCounts& counts,
                  std::span<const NodeCapture> captures,
                  Offset<flatbuffers::Vector<const fbs::Call*>> calls, bool any_calls,
                  std::uint32_t frames) {
    std::vector<Offset<fbs::Node>> nodes;
    std::vector<Offset<fbs::ProcessVerdict>> verdicts;
    for (std::uint32_t n = 0; n < captures.size(); ++n) {
        nodes.push_back(add_node(builder, captures[n], header.corrected));
        for (const ProcessOutcome& process : captures[n].processes)
            verdicts.push_back(add_verdict(builder, n, process));
    }
    const auto job = builder.CreateString(header.job);
    const auto leader = builder.CreateString(header.leader);
    const auto nodes_at = builder.CreateVector(nodes);
    const auto verdicts_at = builder.CreateVector(verdicts);
    fbs::JobIndexBuilder index(builder);
    index.add_version(schema::kJobVersion);
    index.add_min_reader(any_calls ? schema::kJobVersion : schema::kPlainJobVersion);
    index.add_job(job);
    index.add_leader(leader);
    index.add_capture_id(header.capture_id);
    index.add_corrected(header.corrected);
    index.add_nodes(nodes_at);
    index.add_verdicts(verdicts_at);
    index.add_joined_requests(counts.joined_requests);
    index.add_joined_replies(counts.joined_replies);
    index.add_orphans(counts.orphans);
    index.add_cut(counts.cut);
    index.add_unfinished(counts.unfinished);
    index.add_ambiguous(counts.ambiguous);
    index.add_order_violations(counts.order_violations);
    index.add_calls(calls);
    index.add_frames(frames);
    fbs::FinishJobIndexBuffer(builder, index.Finish());
}

std::span<const std::uint8_t> bytes_of(const FlatBufferBuilder& builder) {
    return {builder.GetBufferPointer(), builder.GetSize()};
}

Error write_error(const std::string& path, int cause) {
    return {ErrorCode::kInternal,
            "write the job index " + path + ": " + std::strerror(cause) +
                "; make room or choose another --output, the dumps can be joined again"};
}

}  // namespace

schema::Result<std::unique_ptr<IndexWriter>> IndexWriter::create(int directory,
                                                                 const std::string& shown) {
    auto writer = std::make_unique<IndexWriter>();
    writer->path_ = shown + "/" + schema::kJobFileName;
    writer->directory_ = ::fcntl(directory, F_DUPFD_CLOEXEC, 0);
    if (writer->directory_ < 0) return write_error(writer->path_, errno);
    ::unlinkat(writer->directory_, kPartialName, 0);
    writer->fd_ = ::openat(writer->directory_, kPartialName,
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (writer->fd_ < 0) return write_error(writer->path_, errno);
    return writer;
}

schema::Result<std::unique_ptr<IndexWriter>> IndexWriter::create(const std::string& directory) {
    const int opened = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0) return write_error(directory + "/" + schema::kJobFileName, errno);
    auto writer = create(opened, directory);
    ::close(opened);
    return writer;
}

IndexWriter::~IndexWriter() {
    if (fd_ >= 0) {
        ::close(fd_);
        ::unlinkat(directory_, kPartialName, 0);
    }
    if (directory_ >= 0) ::close(directory_);
}

bool IndexWriter::write(const void* data, std::size_t size) {
    const auto* at = static_cast<const std::uint8_t*>(data);
    if (path_.empty()) bytes_.insert(bytes_.end(), at, at + size);
    while (!path_.empty() && size > 0) {
        const ssize_t n = ::write(fd_, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

void IndexWriter::append(std::span<const std::uint8_t> body) {
    if (error_ != 0) return;
    const auto length = static_cast<std::uint32_t>(body.size());
    const schema::FrameHeader frame{schema::kJobFrameMagic, length,
                                    XXH3_64bits(body.data(), body.size())};
    const char padding[8] = {};
    const bool written = write(&frame, sizeof frame) && write(body.data(), body.size()) &&
                         write(padding, schema::frame_padding(length));
    if (!written) error_ = errno;
    ++frames_;
}

void IndexWriter::add(const fbs::Call& call) {
    if (waiting_.size() == kCallsInFrame) flush();
    waiting_.push_back(call);
    ++calls_;
}

void IndexWriter::flush() {
    FlatBufferBuilder builder((kCallsInFrame + 1) * sizeof(fbs::Call));
    const auto calls = builder.CreateVectorOfStructs(waiting_);
    fbs::JobIndexBuilder index(builder);
    index.add_version(schema::kJobVersion);
    index.add_min_reader(schema::kJobVersion);
    index.add_calls(calls);
    fbs::FinishJobIndexBuffer(builder, index.Finish());
    append(bytes_of(builder));
    waiting_.clear();
}

schema::Result<std::string> IndexWriter::finish(const JobHeader& header,
                                                std::span<const NodeCapture> nodes,
                                                const JoinCounts& counts) {
    FlatBufferBuilder builder(1 << 16);
    const auto calls = builder.CreateVectorOfStructs(waiting_);
    finish_index(builder, header, counts, nodes, calls, calls_ > 0, frames_ + 1);
    if (builder.GetSize() > schema::kMaxFrameBytes) {
        return Error{
            ErrorCode::kInput,
            "make the job index: what is to be said of its processes is more than a frame of " +
                std::to_string(schema::kMaxFrameBytes >> 20) +
                " MiB holds; the dumps are whole: capture fewer processes (--pid)"};
    }
    append(bytes_of(builder));
    if (path_.empty()) return std::string();
    if (error_ == 0 && ::close(std::exchange(fd_, -1)) != 0) error_ = errno;
    if (error_ == 0 && ::renameat(directory_, kPartialName, directory_, schema::kJobFileName) != 0)
        error_ = errno;
    if (error_ == 0) return path_;
    ::unlinkat(directory_, kPartialName, 0);
    return write_error(path_, error_);
}

}  // namespace ringside::agent
