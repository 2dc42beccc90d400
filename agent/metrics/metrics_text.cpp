#include "agent/metrics/metrics_text.hpp"

#include <array>
#include <cstdio>

namespace ringside::agent {
namespace {

using Status = fbs::StatusReplyT;
using Value = std::optional<double>;

struct Metric {
    const char* name;
    const char* type;
    const char* help;
    Value (*of)(const Status&);
};

double seconds(std::int64_t ns) {
    return static_cast<double>(ns) / 1e9;
}

constexpr std::array kMetrics = {
    Metric{"ringside_processes", "gauge", "Processes of the job that live on this node.",
           [](const Status& s) -> Value { return s.processes; }},
    Metric{"ringside_capturing", "gauge", "Whether a capture runs.",
           [](const Status& s) -> Value { return s.capturing; }},
    Metric{"ringside_events_total", "counter", "Records that captures and windows have kept.",
           [](const Status& s) -> Value { return static_cast<double>(s.total_events); }},
    Metric{"ringside_lost_events_total", "counter", "Records that captures and windows have lost.",
           [](const Status& s) -> Value { return static_cast<double>(s.total_lost); }},
    Metric{"ringside_recorded_bytes_total", "counter",
           "Bytes of the records that were kept, before compression.",
           [](const Status& s) -> Value { return static_cast<double>(s.total_bytes); }},
    Metric{"ringside_window_armed", "gauge", "Whether a window is kept.",
           [](const Status& s) -> Value { return s.window != nullptr; }},
    Metric{"ringside_window_bytes", "gauge", "Bytes that the window holds.",
           [](const Status& s) -> Value {
               return s.window ? Value(static_cast<double>(s.window->bytes)) : Value();
           }},
    Metric{"ringside_window_records", "gauge", "Records that the window holds.",
           [](const Status& s) -> Value {
               return s.window ? Value(static_cast<double>(s.window->records)) : Value();
           }},
    Metric{"ringside_window_seconds", "gauge", "How far back the window holds everything.",
           [](const Status& s) -> Value {
               return s.window ? Value(seconds(s.window->holds_ns)) : Value();
           }},
    Metric{"ringside_window_aged_records_total", "counter",
           "Records that have gone from the window since it was armed.",
           [](const Status& s) -> Value {
               return s.window ? Value(static_cast<double>(s.window->aged_records)) : Value();
           }},
    Metric{"ringside_window_lost_records", "gauge", "Records lost in the time that is held.",
           [](const Status& s) -> Value {
               return s.window ? Value(static_cast<double>(s.window->lost)) : Value();
           }},
    Metric{"ringside_iterations_total", "counter", "Iterations of all processes, while recorded.",
           [](const Status& s) -> Value { return static_cast<double>(s.total_iterations); }},
    Metric{"ringside_last_iteration_seconds", "gauge", "The last iteration of the slowest process.",
           [](const Status& s) -> Value {
               return s.iteration_ns < 0 ? Value() : Value(seconds(s.iteration_ns));
           }},
    Metric{"ringside_requests_total", "counter", "Requests that were read.",
           [](const Status& s) -> Value { return static_cast<double>(s.requests); }},
    Metric{"ringside_refused_requests_total", "counter", "Requests that were refused.",
           [](const Status& s) -> Value { return static_cast<double>(s.refused); }},
    Metric{"ringside_damaged_messages_total", "counter", "Messages that were no requests.",
           [](const Status& s) -> Value { return static_cast<double>(s.damaged); }},
    Metric{
        "ringside_agent_cpu_seconds_total", "counter", "Processor time of the agent.",
        [](const Status& s) -> Value { return s.cpu_ns < 0 ? Value() : Value(seconds(s.cpu_ns)); }},
    Metric{"ringside_agent_resident_memory_bytes", "gauge", "Memory of the agent.",
           [](const Status& s) -> Value {
               return s.resident_bytes == 0 ? Value()
                                            : Value(static_cast<double>(s.resident_bytes));
           }},
};

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') out += '\\';
        out += c == '\n' ? ' ' : c;
    }
    return out + '"';
}

std::string number(double value) {
    std::array<char, 40> text{};
    std::snprintf(text.data(), text.size(), "%.16g", value);
    return text.data();
}

std::string head(const char* name, const char* type, const char* help) {
    return std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

}  // namespace

std::string metrics_text(std::span<const AgentAnswer> agents) {
    constexpr const char* kUp = "ringside_agent_up";
    std::string text = head(kUp, "gauge", "Whether the job directory's agent answers.");
    for (const AgentAnswer& agent : agents)
        text +=
            std::string(kUp) + "{job=" + quoted(agent.job) + "} " + (agent.status ? "1\n" : "0\n");
    for (const Metric& metric : kMetrics) {
        std::string samples;
        for (const AgentAnswer& agent : agents) {
            const Value value = agent.status ? metric.of(*agent.status) : Value();
            if (!value) continue;
            samples += std::string(metric.name) + "{job=" + quoted(agent.job) +
                       ",node=" + quoted(agent.status->node) + "} " + number(*value) + "\n";
        }
        if (!samples.empty()) text += head(metric.name, metric.type, metric.help) + samples;
    }
    return text;
}

}  // namespace ringside::agent
