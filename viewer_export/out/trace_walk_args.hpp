// Part of trace_walk.hpp: what events say beside their name.
#pragma once

#include "viewer_export/out/trace_walk.hpp"

namespace ringside::viewer_export::trace {

/// `[[5, 8], [], [16]]`, `[]`: valid JSON as it is.
bool is_list_of_lists(std::string_view text);

/// The payload as its kind says.
template <class Writer>
void Walk<Writer>::payload(schema::PayloadType type, std::uint64_t argument) {
    if (type == schema::PayloadType::kDouble) {
        writer_.arg("Payload", std::bit_cast<double>(argument));
    } else if (type == schema::PayloadType::kSigned) {
        writer_.arg("Payload", static_cast<std::int64_t>(argument));
    } else {
        writer_.arg("Payload", argument);
    }
}

/// What a framework said of an event (NVTX's and ITT's domains, categories, colours, payloads).
template <class Writer>
void Walk<Writer>::attributes(Index index, std::uint64_t argument) {
    if (index >= job_.attributes.size()) {
        if (argument != 0) writer_.arg("Argument", static_cast<std::int64_t>(argument));
        return;
    }
    const model::Attributes& set = job_.attributes[index];
    writer_.shared(Shared::kAttributes, index, [&](auto& args) {
        if (set.domain != model::kNone) args.text("Domain", job_.names[set.domain]);
        if (set.category != model::kNone) args.text("Category", job_.names[set.category]);
        if (set.colour == 0) return;
        char hex[8];
        schema::write_hex(hex, set.colour, 8);
        args.text("Colour", "#" + std::string(hex, 8));
    });
    if (set.payload != schema::PayloadType::kNone) {
        payload(set.payload, argument);
    } else if (argument != 0) {
        writer_.arg("Argument", static_cast<std::int64_t>(argument));
    }
}

/// Which request it served.
template <class Writer>
void Walk<Writer>::request(Index request) {
    if (request == model::kUnknownRequest)
        return writer_.arg("Request", std::string_view("unknown: records were lost"));
    const Index index = job_.halves[request].call;
    const model::Call& call = job_.calls[index];
    writer_.shared(Shared::kRequest, request, [&](auto& args) {
        char id[32];
        args.text("Request", plan_.names.text(plan_.names.chain(index)));
        schema::write_hex(id, call.trace.hi, 16);
        schema::write_hex(id + 16, call.trace.lo, 16);
        args.text("Trace id", std::string(id, 32));
        schema::write_hex(id, call.span, 16);
        args.text("Span id", std::string(id, 16));
    });
}

/// Of a part in a collective.
template <class Writer>
void Walk<Writer>::collective(Index arrival) {
    if (arrival == model::kNone) return;
    const TraceCollectives& all = plan_.collectives;
    writer_.arg("Collective", std::string_view(all.id(arrival)));
    writer_.arg("Late ns", all.late_ns(arrival));
    if (const std::string last = all.last(arrival); !last.empty())
        writer_.arg("Last", std::string_view(last));
    all.flows(arrival, [&](const Flow& flow) {
        writer_.flow(flow);
        counts_.collectives += flow.leaves;
    });
}

template <class Writer>
void Walk<Writer>::ended(model::End end, Index process) {
    if (end != model::End::kEnded) writer_.arg("Ended", end_text(job_, end, process));
}

/// As Kineto's: lists where the text is one of lists of numbers; it comes from the job, and may be anything.
template <class Writer>
void Walk<Writer>::shapes(Index shapes) {
    const std::string& text = job_.names[shapes];
    if (is_list_of_lists(text)) {
        writer_.verbatim("Input Dims", text);
    } else {
        writer_.arg("Input Dims", std::string_view(text));
    }
}

/// The numbers of `ringside rpc`, at both halves.
template <class Writer>
void Walk<Writer>::call_times(const model::Call& call) {
    const model::CallTimes times = model::call_times(job_, call);
    if (times.caller_ns) writer_.arg("Caller ns", *times.caller_ns);
    if (times.queued_ns) writer_.arg("Queued ns", *times.queued_ns);
    if (times.service_ns) writer_.arg("Service ns", *times.service_ns);
    if (times.rest_ns) writer_.arg("Rest ns", *times.rest_ns);
    if (times.request_ns) writer_.arg("Request ns", *times.request_ns);
    if (times.reply_ns) writer_.arg("Reply ns", *times.reply_ns);
    if (times.request_ns) writer_.arg("Bound ns", times.bound_ns);
}

template <class Writer>
void Walk<Writer>::half_args(const model::Half& half, const model::Call& call) {
    writer_.arg("Side", std::string_view(half.server() ? "server" : "client"));
    writer_.arg("State", state_text(call));
    writer_.hex("Trace id", call.trace.hi, call.trace.lo);
    writer_.hex("Span id", half.span);
    writer_.arg("Wire id", half.wire_id);
    if (half.of_message()) {
        writer_.arg("Communicator", std::string_view(job_.names[half.module]));
        writer_.arg("Tag", std::uint64_t{half.wire_type});
    } else {
        writer_.arg("Wire type", std::uint64_t{half.wire_type});
    }
    writer_.arg("Peer", std::string_view(job_.names[half.peer]));
    writer_.arg("Node", std::string_view(job_.nodes[job_.processes[half.process].node].name));
    writer_.arg("Node ID", std::int64_t{half.self_id});
    if (half.ended()) writer_.arg("Status", status_text(half.status));
    call_times(call);
    writer_.arg("Request bytes", half.request_bytes);
    writer_.arg("Reply bytes", half.reply_bytes);
    if (call.parent != model::kNone)
        writer_.arg("Parent", std::string_view(plan_.names.text(plan_.names.chain(call.parent))));
    writer_.record(half.lane, half.position);
    ended(half.end, half.process);
}

}  // namespace ringside::viewer_export::trace
