#include "viewer_export/load/builder.hpp"

#include <algorithm>

#include "viewer_export/load/open_calls.hpp"

namespace ringside::viewer_export::load {

namespace {

/// More than a segment's table ever holds: an id beyond it is damage, not a reason to allocate.
constexpr std::uint32_t kMaxNameId = 1u << 20;
/// Notes of one kind of damage: the first tell the story.
constexpr std::size_t kMaxNotes = 16;

std::string text_of(const flatbuffers::String* text) {
    return text == nullptr ? std::string{} : text->str();
}

std::optional<model::Iterations> iterations_of(const fbs::Iterations* table) {
    if (table == nullptr) return std::nullopt;
    return model::Iterations{text_of(table->name()), table->asked(),       table->count(),
                             table->first(),         table->begin_ticks(), table->end_ticks(),
                             table->beside()};
}

bool tells_of_processes(const fbs::Chunk& chunk) {
    return chunk.body_type() == fbs::Body::Process || chunk.body_type() == fbs::Body::Footer;
}

}  // namespace

void JobBuilder::note_damage(std::string text) {
    const Dump& dump = dumps_.back();
    if (job_.damage.size() >= kMaxNotes) return;
    job_.damage.push_back(
        {dump.path, dump.chunk_offset, "read dump " + dump.path + ": " + std::move(text)});
}

schema::Result<void> JobBuilder::add_dump(DumpReader& reader) {
    const fbs::FileHeader& header = reader.header();
    const Index node = node_of(header);
    if (job_.nodes[node].dump.empty()) job_.nodes[node].dump = reader.path();
    const std::string boot = text_of(header.boot_id());
    if (job_.nodes[node].boot_id != boot) {
        return schema::Error{schema::ErrorCode::kInput,
                             "load " + reader.path() + " beside " + job_.nodes[node].dump +
                                 ": both are of node " + job_.nodes[node].name +
                                 " but of different boots, their clocks don't compare; "
                                 "load them one at a time"};
    }
    dumps_.push_back({node, header.capture_id(), reader.path(), {}, 0});
    job_.nodes[node].complete = false;
    if (depth_ == Depth::kProcesses) reader.pass_over_packed();
    while (const fbs::Chunk* chunk = reader.next()) {
        if (depth_ == Depth::kProcesses && !tells_of_processes(*chunk)) continue;
        if (const auto* blocks = chunk->body_as_Blocks()) {
            if (blocks->blocks() == nullptr) continue;
            for (const fbs::Block* block : *blocks->blocks()) add_block(*block);
        } else if (const auto* process = chunk->body_as_Process()) {
            add_process(*process);
        } else if (const auto* names = chunk->body_as_Names()) {
            add_names(*names);
        } else if (const auto* footer = chunk->body_as_Footer()) {
            add_footer(*footer);
        }
        dumps_.back().chunk_offset = reader.offset();
        if (tell_) tell_("reading dumps", bytes_read_ + reader.offset(), bytes_);
    }
    bytes_read_ += reader.offset();
    if (auto damage = reader.damage()) job_.damage.push_back(std::move(*damage));
    return {};
}

Index JobBuilder::node_of(const fbs::FileHeader& header) {
    const std::string name = text_of(header.node());
    for (Index i = 0; i < job_.nodes.size(); ++i) {
        if (job_.nodes[i].name == name) return i;
    }
    model::Node node;
    node.name = name;
    node.host = text_of(header.host());
    node.boot_id = text_of(header.boot_id());
    node.agent_version = text_of(header.agent_version());
    node.capture_id = header.capture_id();
    node.options = header.options();
    node.start_ticks = header.start_ticks();
    node.calibration = calibration_of(header);
    if (job_.name.empty()) job_.name = text_of(header.job());
    if (job_.capture_id == 0) job_.capture_id = header.capture_id();
    job_.nodes.push_back(std::move(node));
    return static_cast<Index>(job_.nodes.size() - 1);
}

Index JobBuilder::process_of(std::uint32_t index) {
    auto& known = dumps_.back().processes;
    const auto found = known.find(index);
    if (found != known.end()) return found->second;
    model::Process process;
    process.node = dumps_.back().node;
    process.index = index;
    job_.processes.push_back(std::move(process));
    processes_.emplace_back();
    const auto result = static_cast<Index>(job_.processes.size() - 1);
    known.emplace(index, result);
    return result;
}

Index JobBuilder::lane_of(Index process, std::uint32_t index, std::uint32_t generation) {
    const auto [entry, added] = lane_table_.try_emplace({process, index, generation}, kNone);
    if (added) {
        model::Lane lane;
        lane.process = process;
        lane.index = index;
        lane.generation = generation;
        entry->second = static_cast<Index>(job_.lanes.size());
        job_.lanes.push_back(std::move(lane));
        lanes_.emplace_back();
    }
    return entry->second;
}

void JobBuilder::add_process(const fbs::Process& process) {
    Dump& dump = dumps_.back();
    if (!dump.processes.contains(process.index())) {
        // The same process in another dump of its node: positions tell what has been seen.
        for (Index i = 0; i < job_.processes.size(); ++i) {
            const model::Process& other = job_.processes[i];
            if (other.node == dump.node && other.pid_namespace == process.pid_namespace() &&
                other.pid == process.pid() && other.start_ticks == process.start_ticks() &&
                other.pid != 0 &&
                std::none_of(dump.processes.begin(), dump.processes.end(),
                             [&](const auto& known) { return known.second == i; })) {
                dump.processes.emplace(process.index(), i);
            }
        }
    }
    model::Process& to = job_.processes[process_of(process.index())];
    to.pid_namespace = process.pid_namespace();
    to.pid = process.pid();
    to.host_pid = process.host_pid();
    to.parent_pid = process.parent_pid();
    to.start_ticks = process.start_ticks();
    to.rank = process.rank();
    to.worker_name = text_of(process.worker_name());
    to.worker_id = process.worker_id();
    to.executable = text_of(process.executable());
    to.command_line.clear();
    if (process.command_line() != nullptr) {
        for (const auto* word : *process.command_line()) to.command_line.push_back(word->str());
    }
    to.sources.clear();
    if (process.sources() != nullptr) {
        for (const fbs::Source* source : *process.sources()) {
            to.sources.push_back({static_cast<schema::SourceId>(source->id()),
                                  static_cast<model::SourceLevel>(source->level()),
                                  text_of(source->reason())});
        }
    }
}

void JobBuilder::add_names(const fbs::Names& names) {
    const Index process = process_of(names.process());
    if (names.names() == nullptr) return;
    std::vector<Index>& table = processes_[process].names;
    for (const fbs::Name* name : *names.names()) {
        if (name->id() == 0 || name->id() > kMaxNameId) {
            note_damage("name id " + std::to_string(name->id()) +
                        " is out of range; it is left out");
            continue;
        }
        if (table.size() <= name->id()) table.resize(name->id() + 1, kNone);
        const auto text = text_of(name->text());
        table[name->id()] = job_.names.add(text.empty() ? model::kUnnamed : text);
    }
    add_attributes(process, names);
}

/// A set's names stand in its chunk or an earlier one, and so does the set of a name.
void JobBuilder::add_attributes(Index process, const fbs::Names& names) {
    ProcessState& state = processes_[process];
    const auto label = [&](std::uint32_t id) { return id == 0 ? kNone : name_of(process, id); };
    if (names.attributes() != nullptr) {
        for (const fbs::Attribute* attribute : *names.attributes()) {
            const model::Attributes set{label(attribute->domain()), label(attribute->category()),
                                        attribute->colour(),
                                        static_cast<schema::PayloadType>(attribute->payload())};
            const auto [known, added] =
                attribute_table_.try_emplace({set.domain, set.category, set.colour, set.payload},
                                             static_cast<Index>(job_.attributes.size()));
            if (added) job_.attributes.push_back(set);
            state.attributes[attribute->id()] = known->second;
        }
    }
    for (const fbs::Name* name : *names.names()) {
        const auto found = state.attributes.find(name->attribute());
        if (found == state.attributes.end() || name->id() > kMaxNameId) continue;
        if (state.name_attributes.size() <= name->id())
            state.name_attributes.resize(name->id() + 1, kNone);
        state.name_attributes[name->id()] = found->second;
    }
}

Index JobBuilder::attributes_of(Index process, std::uint32_t name_id) const {
    const std::vector<Index>& table = processes_[process].name_attributes;
    return name_id < table.size() ? table[name_id] : kNone;
}

void JobBuilder::add_footer(const fbs::Footer& footer) {
    model::Node& node = job_.nodes[dumps_.back().node];
    node.complete = true;
    node.start_ticks = footer.start_ticks();
    node.stop_ticks = std::max(node.stop_ticks, footer.stop_ticks());
    node.record_cost_ns = footer.record_cost_ns();
    if (const fbs::Perturbation* cost = footer.perturbation(); cost != nullptr) {
        node.perturbation = {cost->records(),          cost->cost_ns(),      cost->job_time_ns(),
                             cost->slowest_start_ns(), cost->agent_cpu_ns(), true};
    }
    node.footer_records += footer.records();
    node.unknown_records += footer.unknown_records();
    if (footer.lanes() != nullptr) {
        for (const fbs::LaneTotals* totals : *footer.lanes()) {
            const Index lane =
                lane_of(process_of(totals->process()), totals->lane(), totals->generation());
            if (job_.lanes[lane].tid == 0) job_.lanes[lane].tid = totals->tid();
            job_.lanes[lane].account = {totals->written(),
                                        totals->kept(),
                                        totals->outside(),
                                        totals->lost(),
                                        totals->first_lost_ticks(),
                                        totals->last_lost_ticks(),
                                        true};
        }
    }
    if (footer.processes() == nullptr) return;
    for (const fbs::ProcessEnd* end : *footer.processes()) {
        model::Process& process = job_.processes[process_of(end->process())];
        const auto iterations = iterations_of(end->iterations());
        // Of two captures in one view both are shown whole.
        if (!process.ended) process.iterations = iterations;
        if (process.iterations != iterations) process.iterations.reset();
        process.fate = static_cast<model::Fate>(end->fate());
        process.ended = true;
        process.end_ticks = end->ticks();
        process.violations = end->violations();
        process.start_delay_ns = end->start_delay_ns();
        add_open_calls(*end, process);
        process.losses.clear();
        if (end->losses() != nullptr) {
            process.losses.assign(end->losses()->begin(), end->losses()->end());
        }
    }
}

}  // namespace ringside::viewer_export::load
