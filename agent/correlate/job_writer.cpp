#include "agent/correlate/job_writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

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

/// A Rpc table with both halves, as large as it gets; FlatBufferBuilder asserts at 2 GiB, so the size is known before.
constexpr std::size_t kRpcBytes = 160;

std::optional<fbs::HalfRef> half_ref(std::span<const NodeCapture> nodes,
                                     const std::optional<HalfIndex>& at) {
    if (!at) return std::nullopt;
    const Half& half = nodes[at->node].halves[at->half];
    return fbs::HalfRef(at->node, half.process, half.lane.index, half.lane.generation,
                        half.position);
}

Offset<fbs::Rpc> add_rpc(FlatBufferBuilder& builder, std::span<const NodeCapture> nodes,
                         const Call& call) {
    const std::optional<fbs::HalfRef> client = half_ref(nodes, call.client);
    const std::optional<fbs::HalfRef> server = half_ref(nodes, call.server);
    fbs::RpcBuilder rpc(builder);
    rpc.add_trace_hi(call.trace.hi);
    rpc.add_trace_lo(call.trace.lo);
    rpc.add_span(call.span.value);
    rpc.add_parent(call.parent);
    rpc.add_state(static_cast<fbs::RpcState>(call.state));
    rpc.add_unfinished(call.unfinished);
    rpc.add_reply(call.reply);
    if (client) rpc.add_client(&*client);
    if (server) rpc.add_server(&*server);
    rpc.add_client_begin_ns(call.client_begin_ns);
    rpc.add_server_begin_ns(call.server_begin_ns);
    rpc.add_server_end_ns(call.server_end_ns);
    rpc.add_client_end_ns(call.client_end_ns);
    return rpc.Finish();
}

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
                  const std::vector<Offset<fbs::Node>>& nodes,
                  const std::vector<Offset<fbs::Rpc>>& rpcs,
                  const std::vector<Offset<fbs::ProcessVerdict>>& verdicts) {
    const auto job = builder.CreateString(header.job);
    const auto leader = builder.CreateString(header.leader);
    const auto nodes_at = builder.CreateVector(nodes);
    const auto rpcs_at = builder.CreateVector(rpcs);
    const auto verdicts_at = builder.CreateVector(verdicts);
    fbs::JobIndexBuilder index(builder);
    index.add_version(schema::kJobVersion);
    index.add_min_reader(1);
    index.add_job(job);
    index.add_leader(leader);
    index.add_capture_id(header.capture_id);
    index.add_corrected(header.corrected);
    index.add_nodes(nodes_at);
    index.add_rpcs(rpcs_at);
    index.add_verdicts(verdicts_at);
    index.add_joined_requests(counts.joined_requests);
    index.add_joined_replies(counts.joined_replies);
    index.add_orphans(counts.orphans);
    index.add_cut(counts.cut);
    index.add_unfinished(counts.unfinished);
    index.add_ambiguous(counts.ambiguous);
    index.add_order_violations(counts.order_violations);
    fbs::FinishJobIndexBuffer(builder, index.Finish());
}

Error too_large(std::size_t requests) {
    return {ErrorCode::kInput, "make the job index: " + std::to_string(requests) +
                                   " requests are more than a frame of " +
                                   std::to_string(schema::kMaxFrameBytes >> 20) +
                                   " MiB holds; the dumps are whole: capture for a shorter time, "
                                   "or fewer processes (--pid)"};
}

/// A descriptor that closes itself.
class File {
public:
    explicit File(int fd) : fd_(fd) {}
    ~File() { close(); }
    File(const File&) = delete;
    File& operator=(const File&) = delete;
    int fd() const { return fd_; }
    int close() {
        const int result = fd_ < 0 ? 0 : ::close(fd_);
        fd_ = -1;
        return result;
    }

private:
    int fd_;
};

bool write_all(int fd, const void* data, std::size_t size) {
    const auto* at = static_cast<const std::uint8_t*>(data);
    while (size > 0) {
        const ssize_t n = ::write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        size -= static_cast<std::size_t>(n);
    }
    return true;
}

Error write_error(const std::string& path, int cause) {
    return {ErrorCode::kInternal,
            "write the job index " + path + ": " + std::strerror(cause) +
                "; make room or choose another --output, the dumps can be joined again"};
}

}  // namespace

schema::Result<std::vector<std::uint8_t>> build_job_index(const JobHeader& header,
                                                          std::span<const NodeCapture> nodes,
                                                          const JoinResult& joined) {
    if (joined.calls.size() * kRpcBytes > schema::kMaxFrameBytes * std::size_t{4})
        return too_large(joined.calls.size());
    FlatBufferBuilder builder(1 << 16);
    std::vector<Offset<fbs::Rpc>> rpcs;
    rpcs.reserve(joined.calls.size());
    for (const Call& call : joined.calls) rpcs.push_back(add_rpc(builder, nodes, call));
    std::vector<Offset<fbs::Node>> node_offsets;
    std::vector<Offset<fbs::ProcessVerdict>> verdicts;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
        node_offsets.push_back(add_node(builder, nodes[n], header.corrected));
        for (const ProcessOutcome& process : nodes[n].processes)
            verdicts.push_back(add_verdict(builder, n, process));
    }
    finish_index(builder, header, joined.counts, node_offsets, rpcs, verdicts);
    if (builder.GetSize() > schema::kMaxFrameBytes) return too_large(joined.calls.size());
    return std::vector<std::uint8_t>(builder.GetBufferPointer(),
                                     builder.GetBufferPointer() + builder.GetSize());
}

schema::Result<std::string> write_job_index(const std::string& directory,
                                            std::span<const std::uint8_t> index) {
    const std::string path = directory + "/" + schema::kJobFileName;
    const std::string temporary = path + ".partial";
    if (index.size() > schema::kMaxFrameBytes) return too_large(0);
    ::unlink(temporary.c_str());
    File file(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (file.fd() < 0) return write_error(path, errno);
    const auto length = static_cast<std::uint32_t>(index.size());
    const schema::FrameHeader frame{schema::kJobFrameMagic, length,
                                    XXH3_64bits(index.data(), index.size())};
    const char padding[8] = {};
    const bool written = write_all(file.fd(), &frame, sizeof frame) &&
                         write_all(file.fd(), index.data(), index.size()) &&
                         write_all(file.fd(), padding, schema::frame_padding(length));
    if (!written || file.close() != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
        const int cause = errno;
        ::unlink(temporary.c_str());
        return write_error(path, cause);
    }
    return path;
}

}  // namespace ringside::agent
