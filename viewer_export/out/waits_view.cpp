#include "viewer_export/out/waits_view.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace ringside::viewer_export {
namespace {

using model::JobWaits;
using model::Party;
using model::Standing;
using model::Wait;

constexpr std::size_t kMostLines = 20;
/// Of one line: parties that do the same are one.
constexpr std::size_t kMostParties = 8;

std::string seconds(std::int64_t ns) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ns) / 1e9);
    return text;
}

/// What a dump says may be anything: one line, valid.
std::string line_of(std::string_view text) {
    std::string line = valid_utf8(text);
    std::replace_if(
        line.begin(), line.end(), [](unsigned char byte) { return byte < 0x20 || byte == 0x7f; },
        '?');
    return line;
}

std::string pid_on(const model::Job& job, const model::Process& process) {
    return "pid " + std::to_string(process.pid) + " on " + line_of(job.nodes[process.node].name);
}

std::string process_name(const model::Job& job, model::Index index) {
    const model::Process& process = job.processes[index];
    const std::int32_t rank = model::job_rank_of(process);
    return rank >= 0 ? "rank " + std::to_string(rank) : pid_on(job, process);
}

std::string party_name(const model::Job& job, const Party& party) {
    if (party.process != model::kNone) return process_name(job, party.process);
    return party.member >= 0 ? "member " + std::to_string(party.member)
                             : "rank " + std::to_string(party.job_rank);
}

/// "from rank 3", as the function's name says whom it waits for.
std::string with_whom(const model::OpenCall& call) {
    if (call.peer == schema::kNoPeer) return "";
    const auto has = [&](const char* part) {
        return call.function.find(part) != std::string::npos;
    };
    const bool both = has("Sendrecv");
    const char* const way = !both && (has("Recv") || has("Probe") || has("recv")) ? " from "
                            : !both && (has("end"))                               ? " to "
                                                                                  : " with ";
    std::string text = way;
    text += call.peer == schema::kAnyPeer ? "any rank" : "rank " + std::to_string(call.peer);
    if (call.tag != schema::kAnyTag) text += " with tag " + std::to_string(call.tag);
    return text;
}

std::string call_name(const model::OpenCall& call) {
    std::string text = line_of(call.function);
    if (call.sequence != 0) text += " #" + std::to_string(call.sequence);
    return text + with_whom(call);
}

bool has_ended(const model::Job& job, const Party& party) {
    return job.processes[party.process].fate == model::Fate::kExited;
}

/// What a party does, without its name.
std::string standing_text(const model::Job& job, const Party& party, bool of_collective) {
    const bool seen = party.process != model::kNone;
    const std::string where = seen ? pid_on(job, job.processes[party.process]) : "";
    std::string last;
    if (of_collective && party.standing != Standing::kNotSeen) {
        last = party.last == 0 ? "it has begun none; "
                               : "its last was #" + std::to_string(party.last) + "; ";
    }
    switch (party.standing) {
        case Standing::kNotSeen:
            return "not in this capture: unknown";
        case Standing::kDied:
            return last + (has_ended(job, party) ? "it has ended, " : "it died, ") + where;
        case Standing::kElsewhere:
            return last + "it is in " + call_name(party.call) + " for " + seconds(party.age_ns) +
                   ", " + where;
        case Standing::kFree:
            return last + "it is alive, " + where + ", in no call that we see";
        case Standing::kPassed:
            return "it has begun it, and is not seen in it, " + where;
        case Standing::kInIt:
            return "in it for " + seconds(party.age_ns) + ", " + where;
    }
    return "";
}

/// "ranks 0, 1, 3"; pids where ranks are unknown.
std::string who_waits(const model::Job& job, const Wait& wait) {
    std::string ranks, others;
    std::size_t count = 0;
    for (const model::Waiting& one : wait.waiting) {
        const std::int32_t rank = model::job_rank_of(job.processes[one.process]);
        if (rank < 0) {
            others += (others.empty() ? "" : ", ") + pid_on(job, job.processes[one.process]);
            continue;
        }
        ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
        ++count;
    }
    std::string text = count == 0 ? "" : (count == 1 ? "rank " : "ranks ") + ranks;
    if (!others.empty()) text += (text.empty() ? "" : ", ") + others;
    if (wait.waiting.size() == 1 && count == 1)
        text += " (" + pid_on(job, job.processes[wait.waiting[0].process]) + ")";
    return text;
}

std::string how_long(const Wait& wait) {
    const auto [least, most] =
        std::minmax_element(wait.waiting.begin(), wait.waiting.end(),
                            [](const auto& a, const auto& b) { return a.age_ns < b.age_ns; });
    const std::string from = seconds(least->age_ns), to = seconds(most->age_ns);
    return from == to ? from : from.substr(0, from.size() - 2) + " to " + to;
}

std::string parties_text(const model::Job& job, const Wait& wait) {
    const bool collective = wait.sequence != 0;
    std::string text;
    std::size_t told = 0, left = 0;
    for (const Party& party : wait.others) {
        if (told == kMostParties) {
            ++left;
            continue;
        }
        ++told;
        const bool away = collective && party.standing != Standing::kPassed &&
                          party.standing != Standing::kInIt && party.standing != Standing::kNotSeen;
        text += "; " + party_name(job, party) + (away ? " never came" : "") + " (" +
                standing_text(job, party, collective) + ")";
    }
    if (left != 0) text += "; " + std::to_string(left) + " more";
    return text;
}

/// Who is in another function where the others are in that collective: it ends for nobody.
std::string differing_text(const model::Job& job, const Wait& wait) {
    std::string text;
    for (const model::Waiting& one : wait.waiting) {
        if (one.call.function == wait.function) continue;
        text += "; " + process_name(job, one.process) + " is in " + line_of(one.call.function);
    }
    return text;
}

std::string wait_line(const model::Job& job, const Wait& wait) {
    std::string text = "waiting: ";
    if (wait.sequence != 0) {
        text += line_of(wait.function) + " #" + std::to_string(wait.sequence);
    } else {
        text += call_name(wait.waiting[0].call);
    }
    if (!wait.label.empty()) {
        text += " of group " + line_of(wait.label);
        if (wait.sequence != 0) text += " (" + std::to_string(wait.size) + " members)";
    }
    return text + ": " + who_waits(job, wait) + " for " + how_long(wait) +
           differing_text(job, wait) + parties_text(job, wait) + "\n";
}

std::string label_of(const model::Job& job, const model::Waiting& one) {
    const model::Group* const group = model::group_of(job.processes[one.process], one.call.group);
    return group != nullptr ? group->label : "";
}

std::string death_line(const model::Job& job, const model::Waiting& one) {
    const model::Process& process = job.processes[one.process];
    const std::string label = label_of(job, one);
    std::string text = "killed: " + process_name(job, one.process);
    if (model::job_rank_of(process) >= 0) text += " (" + pid_on(job, process) + ")";
    text += " in " + call_name(one.call);
    if (!label.empty()) text += " of group " + line_of(label);
    return text + ", in it for " + seconds(one.age_ns) + "\n";
}

void write_process(JsonWriter& json, const model::Job& job, model::Index index) {
    const model::Process& process = job.processes[index];
    const model::Node& node = job.nodes[process.node];
    json.field("rank", model::job_rank_of(process));
    json.field("node", node.name);
    json.field("host", node.host);
    json.field("pid", process.pid);
}

void write_call(JsonWriter& json, const model::OpenCall& call, std::int64_t age_ns) {
    json.field("function", call.function);
    json.field("tid", call.tid);
    json.field("sequence", call.sequence);
    json.field("peer", call.peer);
    json.field("tag", call.tag);
    json.field("age_s", static_cast<double>(age_ns) / 1e9);
}

const char* standing_word(Standing standing) {
    switch (standing) {
        case Standing::kInIt:
            return "in it";
        case Standing::kElsewhere:
            return "in another call";
        case Standing::kFree:
            return "in no call";
        case Standing::kPassed:
            return "passed";
        case Standing::kDied:
            return "died";
        case Standing::kNotSeen:
            break;
    }
    return "not seen";
}

void write_party(JsonWriter& json, const model::Job& job, const Party& party) {
    json.begin_object();
    json.field("standing", standing_word(party.standing));
    json.field("member", party.member);
    if (party.process != model::kNone) {
        write_process(json, job, party.process);
        json.field("last", party.last);
    } else {
        json.field("rank", party.job_rank);
    }
    if (party.standing == Standing::kElsewhere || party.standing == Standing::kInIt) {
        json.key("call");
        json.begin_object();
        write_call(json, party.call, party.age_ns);
        json.end_object();
    }
    json.end_object();
}

void write_parties(JsonWriter& json, const model::Job& job, const std::vector<Party>& parties) {
    json.begin_array();
    for (const Party& party : parties) write_party(json, job, party);
    json.end_array();
}

void write_wait(JsonWriter& json, const model::Job& job, const Wait& wait) {
    json.begin_object();
    json.field("function", wait.function);
    json.field("group", wait.label);
    json.field("size", wait.size);
    json.field("sequence", wait.sequence);
    json.field("peer", wait.peer);
    json.field("tag", wait.tag);
    json.key("waiting");
    json.begin_array();
    for (const model::Waiting& one : wait.waiting) {
        json.begin_object();
        write_process(json, job, one.process);
        write_call(json, one.call, one.age_ns);
        json.end_object();
    }
    json.end_array();
    json.key("others");
    write_parties(json, job, wait.others);
    json.end_object();
}

}  // namespace

std::string render_waits(const model::Job& job, const JobWaits& waits) {
    std::string text;
    std::size_t lines = 0;
    for (const Wait& wait : waits.waits) {
        if (++lines <= kMostLines) text += wait_line(job, wait);
    }
    if (lines > kMostLines)
        text += "waiting: " + std::to_string(lines - kMostLines) + " more, in --json\n";
    std::size_t circles = 0;
    for (const auto& cycle : waits.cycles) {
        if (++circles > kMostLines) continue;
        text += "waiting in a circle: " + process_name(job, cycle[0]);
        for (std::size_t i = 1; i <= cycle.size(); ++i)
            text += " waits for " + process_name(job, cycle[i % cycle.size()]);
        text += "\n";
    }
    if (circles > kMostLines)
        text +=
            "waiting in a circle: " + std::to_string(circles - kMostLines) + " more, in --json\n";
    if (!waits.never_came.empty()) {
        text += "waited for, and in no call that we see: ";
        for (std::size_t i = 0; i < waits.never_came.size(); ++i) {
            if (i == kMostLines) {
                text += ", ...";
                break;
            }
            text += (i == 0 ? "" : ", ") + party_name(job, waits.never_came[i]);
        }
        text += "\n";
    }
    for (std::size_t i = 0; i < waits.died.size(); ++i) {
        if (i == kMostLines) {
            text += "killed: " + std::to_string(waits.died.size() - i) + " more, in --json\n";
            break;
        }
        text += death_line(job, waits.died[i]);
    }
    if (!waits.waits.empty())
        text += "(calls that were open for more than " + seconds(model::kLeastWaitNs) +
                " at the capture's end)\n";
    return text;
}

void write_waits(JsonWriter& json, const model::Job& job, const JobWaits& waits) {
    json.begin_object();
    json.field("threshold_s", static_cast<double>(model::kLeastWaitNs) / 1e9);
    json.key("waits");
    json.begin_array();
    for (const Wait& wait : waits.waits) write_wait(json, job, wait);
    json.end_array();
    json.key("cycles");
    json.begin_array();
    for (const auto& cycle : waits.cycles) {
        json.begin_array();
        for (const model::Index index : cycle) {
            json.begin_object();
            write_process(json, job, index);
            json.end_object();
        }
        json.end_array();
    }
    json.end_array();
    json.key("never_came");
    write_parties(json, job, waits.never_came);
    json.key("died");
    json.begin_array();
    for (const model::Waiting& one : waits.died) {
        json.begin_object();
        write_process(json, job, one.process);
        json.field("group", label_of(job, one));
        write_call(json, one.call, one.age_ns);
        json.end_object();
    }
    json.end_array();
    json.end_object();
}

}  // namespace ringside::viewer_export
