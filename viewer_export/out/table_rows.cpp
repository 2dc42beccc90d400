// Groups of the table: every range once, every call once, by (name with its chain, node id, what became of it).
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "schema/control_page.hpp"
#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/memory.hpp"
#include "viewer_export/model/nesting.hpp"
#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/out/table.hpp"

namespace ringside::viewer_export {

using model::Call;
using model::CallState;
using model::End;
using model::Half;
using model::Index;
using model::kNone;

namespace {

/// Of torch's `_filter_name`: its profiler leaves these out, their time stays with what called them.
constexpr std::array<std::string_view, 8> kLeftOut = {
    "[memory]",
    "[OutOfMemory]",
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
};

enum Suffix : std::uint8_t {
    kNoSuffix = 0,
    kOpen = 1,
    kUnfinished = 2,
    kOrphan = 3,
    kCut = 4,
    kRequestUnknown = 8  ///< beside one of the others
};

std::string suffix_text(std::uint8_t suffix) {
    static constexpr std::array<const char*, 5> kTexts = {"", " [open]", " [unfinished]",
                                                          " [orphan]", " [cut]"};
    std::string result = (suffix & kRequestUnknown) != 0 ? " [request unknown]" : "";
    return result + kTexts[suffix & 7];
}

Suffix suffix_of(End end) {
    if (end == End::kOpen) return kOpen;
    return end == End::kUnfinished ? kUnfinished : kNoSuffix;
}

/// What of a call the row tells: the index's verdict first, then how its shown half ends.
Suffix suffix_of(const Call& call, const Half& shown) {
    if (call.state == CallState::kOrphan) return kOrphan;
    if (call.state == CallState::kCut) return kCut;
    return call.unfinished ? kUnfinished : suffix_of(shown.end);
}

struct Key {
    Index chain;  ///< of RpcNames; kNone
    Index name;   ///< of Job::names; kNone: the chain is the whole name
    int node_id;
    std::uint8_t suffix;
    Index shapes = kNone;  ///< of Job::names
    bool operator==(const Key&) const = default;
};

struct KeyHash {
    std::size_t operator()(const Key& key) const {
        const std::uint64_t names = static_cast<std::uint64_t>(key.chain) << 32 | key.name;
        const auto node = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.node_id));
        const std::uint64_t shapes = static_cast<std::uint64_t>(key.shapes) << 40;
        return schema::mix64(names ^ schema::mix64(shapes ^ (node << 8 | key.suffix)));
    }
};

/// Few differ in one row: most have one set or none.
void note_attributes(TableRow& row, Index attributes) {
    if (attributes == kNone || (!row.attributes.empty() && row.attributes.back() == attributes))
        return;
    if (std::find(row.attributes.begin(), row.attributes.end(), attributes) == row.attributes.end())
        row.attributes.push_back(attributes);
}

class Grouping {
public:
    Grouping(const model::Job& job, const TableOptions& options)
        : job_(job), options_(options), names_(job), node_ids_(job.processes.size(), -1) {
        for (Index i = 0; i < job.processes.size(); ++i) node_ids_[i] = job.processes[i].worker_id;
        for (const Half& half : job.halves) {
            if (node_ids_[half.process] < 0) node_ids_[half.process] = half.self_id;
        }
    }

    std::vector<TableRow> rows() {
        memory_ = model::memory_events(job_);
        const std::uint64_t all = job_.ranges();
        std::uint64_t done = 0;
        for (Index i = 0; i < job_.lanes.size(); ++i) {
            if (options_.tell) options_.tell("adding up", done, all);
            add_lane(i);
            done += job_.lanes[i].ranges.size();
        }
        for (const model::AsyncRange& range : job_.asyncs) add_async(range);
        for (Index i = 0; i < job_.calls.size(); ++i) add_call(i);
        return merged();
    }

private:
    struct Group {
        TableRow row;
        Key key;
        std::int64_t first_end_ns;
    };

    Group& group(const Key& key, std::int64_t begin_ns, std::int64_t end_ns) {
        const auto [entry, added] = known_.try_emplace(key, groups_.size());
        if (added) {
            groups_.push_back({{}, key, end_ns});
            groups_.back().row.first_begin_ns = begin_ns;
            groups_.back().row.node_id = key.node_id;
        }
        Group& group = groups_[entry->second];
        // Torch registers in order of begin, longer first.
        if (begin_ns < group.row.first_begin_ns ||
            (begin_ns == group.row.first_begin_ns && end_ns > group.first_end_ns)) {
            group.row.first_begin_ns = begin_ns;
            group.first_end_ns = end_ns;
        }
        return group;
    }

    Key key_of(Index request, Index name, Index process, std::uint8_t suffix) const {
        Key key{kNone, name, node_ids_[process], suffix};
        if (request == model::kUnknownRequest) {
            key.suffix |= kRequestUnknown;
        } else if (request != kNone) {
            key.chain = names_.chain_of_half(request);
        }
        return key;
    }

    void add_lane(Index index) {
        const model::Lane& lane = job_.lanes[index];
        const model::Nesting nesting = model::nest(lane.ranges, &left_out());
        model::MemoryUse memory;
        if (!memory_.empty()) memory = model::memory_use(lane.ranges, nesting, memory_[index]);
        for (std::size_t i = 0; i < lane.ranges.size(); ++i) {
            const model::Range& range = lane.ranges[i];
            if (nesting.folded[i] || left_out()[range.name]) continue;
            Key key = key_of(range.request, range.name, lane.process, suffix_of(range.end));
            key.shapes = range.shapes;
            TableRow& row = group(key, range.begin_ns, range.end_ns).row;
            ++row.count;
            model::add_to(row.cpu_ns, range.duration_ns());
            if (!memory_.empty()) {
                model::add_to(row.cpu_memory_bytes, memory.total_bytes[i]);
                model::add_to(row.self_cpu_memory_bytes, memory.self_bytes[i]);
            }
            model::add_to(row.self_cpu_ns, nesting.self_ns[i]);
            row.is_async = range.end != End::kEnded;
            note_attributes(row, range.attributes);
        }
        for (const model::MemoryEvent& event : memory.outside) add_memory(event, lane.process);
    }

    /// As torch: what no operator took or gave back is a row of its own.
    void add_memory(const model::MemoryEvent& event, Index process) {
        const Key key =
            key_of(event.request, job_.names.find(schema::kMemoryName), process, kNoSuffix);
        TableRow& row = group(key, event.ns, event.ns).row;
        ++row.count;
        model::add_to(row.cpu_memory_bytes, event.bytes);
        model::add_to(row.self_cpu_memory_bytes, event.bytes);
    }

    void add_async(const model::AsyncRange& range) {
        const Key key =
            key_of(range.request, range.name, job_.lanes[range.lane].process, suffix_of(range.end));
        TableRow& row = group(key, range.begin_ns, range.end_ns).row;
        ++row.count;
        model::add_to(row.cpu_ns, range.duration_ns());
        row.is_async = true;
        note_attributes(row, range.attributes);
    }

    void add_call(Index index) {
        const Call& call = job_.calls[index];
        if (!model::is_real(job_, call)) return;
        const Half& half = job_.halves[call.client != kNone ? call.client : call.server];
        if (!options_.internal && (model::is_internal(job_, call) || half.inside_fetch_range))
            return;
        const Key key{names_.chain(index), kNone, node_ids_[half.process], suffix_of(call, half)};
        TableRow& row = group(key, half.begin_ns, half.end_ns).row;
        ++row.count;
        model::add_to(row.cpu_ns, half.duration_ns());
        row.is_async = true;
    }

    const std::vector<bool>& left_out() {
        if (left_out_.size() != job_.names.size()) {
            left_out_.assign(job_.names.size(), false);
            for (const std::string_view name : kLeftOut) {
                if (const Index index = job_.names.find(name); index != kNone)
                    left_out_[index] = true;
            }
        }
        return left_out_;
    }

    std::string text_of(const Key& key) const {
        if (key.name == kNone) return names_.text(key.chain) + suffix_text(key.suffix);
        const std::string& name = job_.names[key.name];
        // As torch: steps are one row.
        return names_.text(key.chain, name.starts_with("ProfilerStep#") ? "ProfilerStep*" : name) +
               suffix_text(key.suffix);
    }

    /// Groups as rows in order of registration. Texts that are equal are one row, however they came about: a range may carry the
    /// name of a call.
    std::vector<TableRow> merged() {
        std::stable_sort(groups_.begin(), groups_.end(), [](const Group& a, const Group& b) {
            if (a.row.first_begin_ns != b.row.first_begin_ns)
                return a.row.first_begin_ns < b.row.first_begin_ns;
            return a.first_end_ns > b.first_end_ns;
        });
        std::vector<TableRow> rows;
        std::unordered_map<std::string, std::size_t> known;
        for (Group& group : groups_) {
            group.row.name = text_of(group.key);
            if (group.key.shapes != kNone) group.row.input_shapes = job_.names[group.key.shapes];
            const auto [entry, added] = known.try_emplace(
                group.row.name + '\n' + std::to_string(group.row.node_id) + group.row.input_shapes,
                rows.size());
            if (added) {
                rows.push_back(std::move(group.row));
                continue;
            }
            TableRow& row = rows[entry->second];
            row.count += group.row.count;
            model::add_to(row.cpu_ns, group.row.cpu_ns);
            model::add_to(row.self_cpu_ns, group.row.self_cpu_ns);
            model::add_to(row.cpu_memory_bytes, group.row.cpu_memory_bytes);
            model::add_to(row.self_cpu_memory_bytes, group.row.self_cpu_memory_bytes);
            row.is_async = row.is_async && group.row.is_async;
            for (const Index attributes : group.row.attributes) note_attributes(row, attributes);
        }
        return rows;
    }

    const model::Job& job_;
    const TableOptions& options_;
    model::RpcNames names_;
    std::vector<int> node_ids_;
    std::vector<bool> left_out_;
    std::vector<std::vector<model::MemoryEvent>> memory_;  ///< by lane; empty: none recorded
    std::unordered_map<Key, std::size_t, KeyHash> known_;
    std::vector<Group> groups_;
};

double average_ns(const TableRow& row) {
    return row.count == 0 ? 0.0 : static_cast<double>(row.cpu_ns) / static_cast<double>(row.count);
}

using Less = bool (*)(const TableRow&, const TableRow&);

/// Numbers descend as torch's do; names and node ids ascend.
constexpr std::array<std::pair<std::string_view, Less>, 9> kSortKeys = {{
    {"cpu_time_total", [](const TableRow& a, const TableRow& b) { return a.cpu_ns > b.cpu_ns; }},
    {"self_cpu_time_total",
     [](const TableRow& a, const TableRow& b) { return a.self_cpu_ns > b.self_cpu_ns; }},
    {"cpu_time",
     [](const TableRow& a, const TableRow& b) { return average_ns(a) > average_ns(b); }},
    {"cpu_memory_usage",
     [](const TableRow& a, const TableRow& b) { return a.cpu_memory_bytes > b.cpu_memory_bytes; }},
    {"self_cpu_memory_usage",
     [](const TableRow& a, const TableRow& b) {
         return a.self_cpu_memory_bytes > b.self_cpu_memory_bytes;
     }},
    {"count", [](const TableRow& a, const TableRow& b) { return a.count > b.count; }},
    {"name", [](const TableRow& a, const TableRow& b) { return a.name < b.name; }},
    {"key", [](const TableRow& a, const TableRow& b) { return a.name < b.name; }},
    {"node_id", [](const TableRow& a, const TableRow& b) { return a.node_id < b.node_id; }},
}};

}  // namespace

bool has_memory(const model::Job& job) {
    constexpr auto kBit = static_cast<std::uint32_t>(schema::CaptureOption::kProfileMemory);
    return std::any_of(job.nodes.begin(), job.nodes.end(),
                       [](const model::Node& node) { return (node.options & kBit) != 0; });
}

const std::vector<std::string_view>& table_sort_keys() {
    static const std::vector<std::string_view> kKeys = [] {
        std::vector<std::string_view> result;
        result.reserve(kSortKeys.size());
        for (const auto& [name, less] : kSortKeys) result.push_back(name);
        return result;
    }();
    return kKeys;
}

schema::Result<std::vector<TableRow>> table_rows(const model::Job& job,
                                                 const TableOptions& options) {
    const auto key = std::find_if(kSortKeys.begin(), kSortKeys.end(), [&](const auto& entry) {
        return entry.first == options.sort_by;
    });
    if (key == kSortKeys.end() && !options.sort_by.empty()) {
        std::string text =
            "sort the table by '" + options.sort_by + "': no such column; use one of";
        for (const std::string_view name : table_sort_keys()) text.append(" ").append(name);
        return schema::Error{schema::ErrorCode::kUsage, std::move(text)};
    }
    std::vector<TableRow> rows = Grouping(job, options).rows();
    if (key != kSortKeys.end()) std::stable_sort(rows.begin(), rows.end(), key->second);
    return rows;
}

}  // namespace ringside::viewer_export
