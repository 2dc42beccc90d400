// Groups of the table: every range once, every call once, by (name with its chain, node id, what became of it).
#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/cuda_time.hpp"
#include "viewer_export/model/memory.hpp"
#include "viewer_export/model/nesting.hpp"
#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/model/work_name.hpp"
#include "viewer_export/out/table.hpp"
#include "viewer_export/out/table_order.hpp"

namespace ringside::viewer_export {

using model::Call;
using model::CallState;
using model::End;
using model::Half;
using model::Index;
using model::kNone;

namespace {

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
    Index
        name;  ///< of Job::names, a device's of Grouping::work_names_; kNone: the chain is the whole name
    int node_id;
    std::uint8_t suffix;
    Index shapes = kNone;  ///< of Job::names
    bool on_device = false;
    bool operator==(const Key&) const = default;
};

struct KeyHash {
    std::size_t operator()(const Key& key) const {
        const std::uint64_t names = static_cast<std::uint64_t>(key.chain) << 32 | key.name;
        const auto node = static_cast<std::uint64_t>(static_cast<std::uint32_t>(key.node_id));
        const std::uint64_t shapes = static_cast<std::uint64_t>(key.shapes) << 40;
        return schema::mix64(names ^ schema::mix64(shapes ^ (node << 8 | key.suffix) ^
                                                   static_cast<std::uint64_t>(key.on_device) << 7));
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
        : job_(job),
          options_(options),
          names_(job),
          cuda_(job),
          left_out_(model::left_out(job)),
          spelt_(job.names),
          node_ids_(job.processes.size(), -1) {
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
        for (const model::ThreadCalls& thread : cuda_.other_threads())
            add_thread(thread.process, cuda_.with_calls({}, thread.calls), {});
        for (Index i = 0; i < job_.gpu_work.size(); ++i) add_work(i);
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
            groups_.back().row.on_device = key.on_device;
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
        std::span<const model::MemoryEvent> memory;
        if (!memory_.empty()) memory = memory_[index];
        if (const auto calls = cuda_.calls_of(index); !calls.empty()) {
            add_thread(lane.process, cuda_.with_calls(lane.ranges, calls), memory);
        } else {
            add_ranges(lane.process, lane.ranges, model::nest(lane.ranges, &left_out_), {}, memory);
        }
    }

    void add_thread(Index process, const model::ThreadRanges& thread,
                    std::span<const model::MemoryEvent> memory) {
        const model::Nesting nesting = model::nest(thread.ranges, &left_out_);
        add_ranges(process, thread.ranges, nesting, cuda_.of_ranges(thread, nesting), memory);
    }

    /// @param times   by range; empty: of a thread without CUDA
    /// @param events  empty too where memory was not asked for
    void add_ranges(Index process, std::span<const model::Range> ranges,
                    const model::Nesting& nesting, const std::vector<model::CudaTime>& times,
                    std::span<const model::MemoryEvent> events) {
        model::MemoryUse memory;
        if (!events.empty()) memory = model::memory_use(ranges, nesting, events);
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            const model::Range& range = ranges[i];
            if (nesting.folded[i] || left_out_[range.name]) continue;
            Key key = key_of(range.request, range.name, process, suffix_of(range.end));
            key.shapes = range.shapes;
            TableRow& row = group(key, range.begin_ns, range.end_ns).row;
            ++row.count;
            model::add_to(row.cpu_ns, range.duration_ns());
            if (!events.empty()) {
                model::add_to(row.memory, memory.total[i]);
                model::add_to(row.self_memory, memory.self[i]);
            }
            if (!times.empty()) {
                model::add_to(row.cuda_ns, times[i].total_ns);
                model::add_to(row.self_cuda_ns, times[i].self_ns);
            }
            model::add_to(row.self_cpu_ns, nesting.self_ns[i]);
            row.is_async = range.end != End::kEnded;
            note_attributes(row, range.attributes);
        }
        for (const model::MemoryEvent& event : memory.outside) add_memory(event, process);
    }

    /// As torch: what no operator took or gave back is a row of its own.
    void add_memory(const model::MemoryEvent& event, Index process) {
        const Key key =
            key_of(event.request, job_.names.find(schema::kMemoryName), process, kNoSuffix);
        TableRow& row = group(key, event.ns, event.ns).row;
        ++row.count;
        model::add_to(row.memory, event.bytes);
        model::add_to(row.self_memory, event.bytes);
    }

    /// What ran on a device has a row of its own beside its operator's, under the chain of the request that its call was made for.
    void add_work(Index index) {
        const model::GpuWork& work = job_.gpu_work[index];
        if (!work.on_device()) return;
        const Index request = work.call == kNone ? kNone : job_.gpu_calls[work.call].request;
        Key key = key_of(request, work_name(work), work.process, kNoSuffix);
        key.on_device = true;
        TableRow& row = group(key, work.begin_ns, work.end_ns).row;
        ++row.count;
        model::add_to(row.cuda_ns, cuda_.of_work(index).total_ns);
        model::add_to(row.self_cuda_ns, cuda_.of_work(index).self_ns);
    }

    /// Each distinct one is spelt once.
    Index work_name(const model::GpuWork& work) {
        const auto kind = static_cast<std::uint64_t>(work.kind) << 32;
        const std::uint64_t what = work.kind == schema::RecordKind::kGpuKernel
                                       ? work.name
                                       : std::uint64_t{work.detail} << 16 |
                                             static_cast<std::uint64_t>(work.source_memory) << 8 |
                                             static_cast<std::uint64_t>(work.destination_memory);
        const auto [known, added] = known_works_.try_emplace(kind | what, kNone);
        if (added) known->second = work_names_.add(spelt_.of(work));
        return known->second;
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
        model::add_to(row.cuda_ns, cuda_.of_request(index));
        row.is_async = true;
    }

    std::string text_of(const Key& key) const {
        if (key.name == kNone) return names_.text(key.chain) + suffix_text(key.suffix);
        const std::string& name = (key.on_device ? work_names_ : job_.names)[key.name];
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
            const auto [entry, added] =
                known.try_emplace(group.row.name + '\n' + std::to_string(group.row.node_id) +
                                      (group.row.on_device ? "\n" : "") + group.row.input_shapes,
                                  rows.size());
            if (added) {
                rows.push_back(std::move(group.row));
                continue;
            }
            TableRow& row = rows[entry->second];
            row.count += group.row.count;
            model::add_to(row.cpu_ns, group.row.cpu_ns);
            model::add_to(row.self_cpu_ns, group.row.self_cpu_ns);
            model::add_to(row.cuda_ns, group.row.cuda_ns);
            model::add_to(row.self_cuda_ns, group.row.self_cuda_ns);
            model::add_to(row.memory, group.row.memory);
            model::add_to(row.self_memory, group.row.self_memory);
            row.is_async = row.is_async && group.row.is_async;
            for (const Index attributes : group.row.attributes) note_attributes(row, attributes);
        }
        return rows;
    }

    const model::Job& job_;
    const TableOptions& options_;
    model::RpcNames names_;
    model::CudaTimes cuda_;
    std::vector<bool> left_out_;
    model::WorkNames spelt_;
    model::Names work_names_;
    std::unordered_map<std::uint64_t, Index> known_works_;
    std::vector<int> node_ids_;
    std::vector<std::vector<model::MemoryEvent>> memory_;  ///< by lane; empty: none recorded
    std::unordered_map<Key, std::size_t, KeyHash> known_;
    std::vector<Group> groups_;
};

}  // namespace

schema::Result<std::vector<TableRow>> table_rows(const model::Job& job,
                                                 const TableOptions& options) {
    const auto order = table_order(options.sort_by);
    if (!order) return order.error();
    std::vector<TableRow> rows = Grouping(job, options).rows();
    if (*order != nullptr) std::stable_sort(rows.begin(), rows.end(), *order);
    return rows;
}

}  // namespace ringside::viewer_export
