// RPC halves as slices on virtual rows, and the arrows between them.
#include <algorithm>

#include "viewer_export/out/chrome_events.hpp"

namespace ringside::viewer_export::chrome {

using model::Call;
using model::CallState;
using model::Half;
using model::Index;
using model::kNone;

namespace {

const char* status_text(schema::RpcStatus status) {
    switch (status) {
        case schema::RpcStatus::kOk:
            return "ok";
        case schema::RpcStatus::kError:
            return "error";
        case schema::RpcStatus::kTimeout:
            return "timeout";
        case schema::RpcStatus::kPeerGone:
            return "peer gone";
    }
    return "unknown";
}

const char* state_text(const Call& call) {
    switch (call.state) {
        case CallState::kJoined:
            return call.unfinished ? "joined, unfinished" : "joined";
        case CallState::kOrphan:
            return "orphan";
        case CallState::kCut:
            return "cut";
        case CallState::kUnjoined:
            return "not joined (no job index)";
    }
    return "unknown";
}

/// A point inside a half for an arrow that leaves or arrives at its end.
std::int64_t before_end(const Half& half) {
    return std::max(half.begin_ns, half.end_ns - 1);
}

}  // namespace

void EventWriter::halves() {
    std::string head;
    for (Index i = 0; i < job_.halves.size(); ++i) {
        const Half& half = job_.halves[i];
        if (!half.shown()) continue;
        head = "{\"ph\":\"X\",\"cat\":\"rpc\",\"name\":\"";
        append_json_escaped(names_.own(half.call), head);
        head += '"';
        slice_head(head, tracks_.half_track(i), half.begin_ns, half.end_ns);
        half_args(half, job_.calls[half.call]);
        ++counts_.rpc_halves;
    }
}

void EventWriter::half_args(const Half& half, const Call& call) {
    const model::Process& process = job_.processes[half.process];
    json_.text(half.server() ? ",\"args\":{\"Side\":\"server\",\"State\":\""
                             : ",\"args\":{\"Side\":\"client\",\"State\":\"");
    json_.text(state_text(call));
    json_.text("\",\"Trace id\":\"");
    hex(call.trace.hi, 16);
    hex(call.trace.lo, 16);
    json_.text("\",\"Span id\":\"");
    hex(half.span, 16);
    json_.text("\",\"Wire id\":");
    json_.number(half.wire_id);
    json_.text(",\"Wire type\":");
    json_.number(static_cast<std::uint64_t>(half.wire_type));
    json_.text(",\"Peer\":");
    json_.quoted(job_.names[half.peer]);
    json_.text(",\"Node\":");
    json_.quoted(job_.nodes[process.node].name);
    json_.text(",\"Node ID\":");
    json_.number(static_cast<std::int64_t>(half.self_id));
    if (half.ended()) {
        json_.text(",\"Status\":\"");
        json_.text(status_text(half.status));
        json_.text("\"");
    }
    json_.text(",\"Request bytes\":");
    json_.number(half.request_bytes);
    json_.text(",\"Reply bytes\":");
    json_.number(half.reply_bytes);
    if (call.parent != kNone) {
        json_.text(",\"Parent\":");
        json_.quoted(names_.text(names_.chain(call.parent)));
    }
    json_.text(",\"Record\":\"");
    json_.number(static_cast<std::uint64_t>(process.node));
    json_.text(".");
    json_.number(static_cast<std::uint64_t>(process.index));
    json_.text(".");
    json_.number(static_cast<std::uint64_t>(job_.lanes[half.lane].index));
    json_.text(".");
    json_.number(half.position);
    json_.text("\"");
    end_args(half.end, half.process);
    json_.text("}}");
}

const std::string& EventWriter::request_args(Index request) {
    static const std::string kUnknownArgs = ",\"Request\":\"unknown: records were lost\"";
    if (request == model::kUnknownRequest) return kUnknownArgs;
    std::string& args = requests_[request];
    if (!args.empty()) return args;
    const Index index = job_.halves[request].call;
    const Call& call = job_.calls[index];
    char id[32];
    args = ",\"Request\":\"";
    append_json_escaped(names_.text(names_.chain(index)), args);
    args += "\",\"Trace id\":\"";
    schema::write_hex(id, call.trace.hi, 16);
    schema::write_hex(id + 16, call.trace.lo, 16);
    args.append(id, 32) += "\",\"Span id\":\"";
    schema::write_hex(id, call.span, 16);
    args.append(id, 16) += '"';
    return args;
}

void EventWriter::rpc_flows() {
    for (const Call& call : job_.calls) {
        if (call.state != CallState::kJoined || !call.both() || !model::is_real(job_, call))
            continue;
        const Half& client = job_.halves[call.client];
        const Half& server = job_.halves[call.server];
        rpc_flow(client, client.begin_ns, call.client, server, server.begin_ns, call.server);
        ++counts_.rpc_requests;
        if (!model::reply_joined(job_, call)) continue;
        rpc_flow(server, before_end(server), call.server, client, before_end(client), call.client);
        ++counts_.rpc_replies;
    }
}

bool EventWriter::rpc_flow(const Half& from, std::int64_t from_ns, Index from_index, const Half& to,
                           std::int64_t to_ns, Index to_index) {
    // Readers drop an arrow that points back in time, which clocks of two nodes can make of any arrow. Within the bound it is drawn a
    // little later or earlier inside its slices; beyond that (uncorrected clocks) from the later to the earlier.
    std::uint32_t from_track = tracks_.half_track(from_index);
    std::uint32_t to_track = tracks_.half_track(to_index);
    if (to_ns <= from_ns) to_ns = std::max(to_ns, std::min(from_ns + 1, before_end(to)));
    if (to_ns <= from_ns) from_ns = std::min(from_ns, std::max(to_ns - 1, from.begin_ns));
    const bool reversed = to_ns < from_ns;
    if (reversed) {
        std::swap(from_ns, to_ns);
        std::swap(from_track, to_track);
    }
    const std::uint64_t id = next_flow_++;
    flow('s', "rpc", id, from_track, from_ns);
    flow('f', "rpc", id, to_track, to_ns);
    return !reversed;
}

}  // namespace ringside::viewer_export::chrome
