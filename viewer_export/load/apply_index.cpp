// The job index on what was read: clocks, joins, verdicts. What it doesn't tell stays unjoined.
#include <algorithm>
#include <unordered_map>

#include "viewer_export/load/builder.hpp"
#include "viewer_export/model/rpc_tree.hpp"

namespace ringside::viewer_export::load {

using model::Call;
using model::CallState;
using model::Half;

namespace {

std::string text_of(const flatbuffers::String* text) {
    return text == nullptr ? std::string{} : text->str();
}

}  // namespace

void JobBuilder::apply_nodes(const fbs::JobIndex& index) {
    job_.has_index = true;
    if (job_.name.empty()) job_.name = text_of(index.job());
    job_.leader = text_of(index.leader());
    job_.ambiguous = index.ambiguous();
    job_.order_violations = index.order_violations();
    if (index.nodes() == nullptr) return;
    for (const fbs::Node* from : *index.nodes()) {
        const std::string name = text_of(from->name());
        auto node = std::find_if(job_.nodes.begin(), job_.nodes.end(),
                                 [&](const model::Node& other) { return other.name == name; });
        if (node == job_.nodes.end()) {
            node = job_.nodes.insert(job_.nodes.end(), model::Node{});
            node->name = name;
            node->host = text_of(from->host());
            if (from->dump() != nullptr && from->dump()->size() > 0) {
                job_.damage.push_back(
                    {from->dump()->str(), 0,
                     "load node " + name + ": its dump " + from->dump()->str() +
                         " is not among the inputs; its events are missing, add the file"});
            }
        }
        node->error = text_of(from->error());
        if (const fbs::ClockCorrection* clock = from->clock()) {
            node->clock = {clock->reference_node_ns(), clock->offset_ns(), clock->drift_ppb(),
                           clock->bound_ns()};
            node->has_clock = true;
        }
    }
}

const JobBuilder::Dump* JobBuilder::dump_of(const fbs::JobIndex& index, std::uint32_t node) const {
    if (index.nodes() == nullptr || node >= index.nodes()->size()) return nullptr;
    const std::string name = text_of(index.nodes()->Get(node)->name());
    const Dump* result = nullptr;
    for (const Dump& dump : dumps_) {
        if (job_.nodes[dump.node].name != name) continue;
        // With dumps of several captures of one node, process numbers are those of the index's own.
        if (result == nullptr || dump.capture_id == index.capture_id()) result = &dump;
    }
    return result;
}

void JobBuilder::apply_calls(const JobIndexFile& file) {
    const fbs::JobIndex& index = file.index();
    using Place = std::tuple<Index, std::uint64_t>;  // lane, position
    std::vector<std::pair<Place, Index>> places;
    for (Index i = 0; i < job_.halves.size(); ++i) {
        const Half& half = job_.halves[i];
        if (half.position != model::kNoPosition) places.push_back({{half.lane, half.position}, i});
    }
    std::sort(places.begin(), places.end());
    std::vector<const Dump*> dumps;
    for (std::uint32_t i = 0; index.nodes() != nullptr && i < index.nodes()->size(); ++i) {
        dumps.push_back(dump_of(index, i));
    }
    const auto find = [&](const fbs::HalfRef& ref) {
        if (ref.node() >= dumps.size() || dumps[ref.node()] == nullptr) return kNone;
        const auto& processes = dumps[ref.node()]->processes;
        const auto process = processes.find(ref.process());
        if (process == processes.end()) return kNone;
        const auto lane = lane_table_.find({process->second, ref.lane(), ref.generation()});
        if (lane == lane_table_.end()) return kNone;
        const Place place{lane->second, ref.position()};
        const auto half =
            std::lower_bound(places.begin(), places.end(), std::pair{place, Index{0}});
        return half != places.end() && half->first == place ? half->second : kNone;
    };
    job_.calls.reserve(file.calls().size());
    for (const fbs::Call* from : file.calls()) {
        Call call{{from->trace_hi(), from->trace_lo()},
                  from->span(),
                  kNone,
                  find(from->client()),
                  find(from->server()),
                  static_cast<CallState>(
                      std::min<std::uint8_t>(static_cast<std::uint8_t>(from->state()), 2)),
                  from->unfinished(),
                  from->reply()};
        const auto self = static_cast<Index>(job_.calls.size());
        // A half belongs to one call; an index that says otherwise is wrong, the first claim stands.
        for (Index* half : {&call.client, &call.server}) {
            if (*half == kNone) continue;
            if (job_.halves[*half].call != kNone) {
                *half = kNone;
            } else {
                job_.halves[*half].call = self;
            }
        }
        job_.calls.push_back(call);
    }
    link_calls(file);
}

/// Whose parent is which: by its place in version 1, else by the key of what was being served.
void JobBuilder::link_calls(const JobIndexFile& file) {
    const auto& calls = file.calls();
    for (Index i = 0; i < file.parents().size(); ++i) {
        const std::int32_t parent = file.parents()[i];
        if (parent >= 0 && static_cast<std::size_t>(parent) < calls.size())
            job_.calls[i].parent = static_cast<Index>(parent);
    }
    if (!file.parents().empty()) return;
    const auto process_of = [](const fbs::HalfRef& half) {
        return std::uint64_t{half.node()} << 32 | half.process();
    };
    std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, Index>> servers;
    for (Index i = 0; i < calls.size(); ++i) {
        if (calls[i]->key() != 0)
            servers[process_of(calls[i]->server())].emplace(calls[i]->key(), i);
    }
    for (Index i = 0; i < calls.size(); ++i) {
        if (calls[i]->parent_key() == 0) continue;
        const auto& of_process = servers[process_of(calls[i]->client())];
        const auto found = of_process.find(calls[i]->parent_key());
        if (found != of_process.end() && found->second != i) job_.calls[i].parent = found->second;
    }
    model::break_parent_cycles(job_.calls);
    model::take_roots_trace(job_.calls);
}

void JobBuilder::call_the_rest() {
    for (Index i = 0; i < job_.halves.size(); ++i) {
        Half& half = job_.halves[i];
        if (half.call != kNone) continue;
        const bool dead =
            half.end == model::End::kUnfinished && half.position != model::kNoPosition;
        Call call{half.trace,
                  half.span,
                  kNone,
                  half.server() ? kNone : i,
                  half.server() ? i : kNone,
                  half.position == model::kNoPosition ? CallState::kCut : CallState::kUnjoined,
                  dead,
                  false};
        half.call = static_cast<Index>(job_.calls.size());
        job_.calls.push_back(call);
    }
    // Parents that the index doesn't give: the server half of the same process that was being served.
    for (Call& call : job_.calls) {
        if (call.parent != kNone || call.client == kNone) continue;
        const Half& client = job_.halves[call.client];
        if (client.parent_key == 0) continue;
        const auto& servers = processes_[client.process].server_halves;
        const auto server = servers.find(client.parent_key);
        if (server != servers.end()) call.parent = job_.halves[server->second].call;
    }
    model::break_parent_cycles(job_.calls);
}

void JobBuilder::apply_verdicts(const fbs::JobIndex& index) {
    if (index.verdicts() == nullptr) return;
    for (const fbs::ProcessVerdict* verdict : *index.verdicts()) {
        const Dump* dump = dump_of(index, verdict->node());
        if (dump == nullptr) continue;
        const auto found = dump->processes.find(verdict->process());
        if (found == dump->processes.end()) continue;
        model::Process& process = job_.processes[found->second];
        process.has_verdict = true;
        process.verdict = static_cast<model::Verdict>(verdict->verdict());
        process.reason = text_of(verdict->reason());
    }
}

}  // namespace ringside::viewer_export::load
