// Chunks of dumps become a model: the state that lives between chunks. Times stay raw ticks until finish(), so that nothing that depends
// on order (nesting, contexts, pairs) is decided on rounded values. Used by job_loader alone.
//
//   Process, Names -> ProcessState      Blocks -> LaneState (lane_builder.cpp)      Footer -> accounts, fates
//   finish: pairs (pairing.cpp) -> requests of events -> last evidence (finish.cpp) -> left out (trim.cpp) -> the GPU's work tied to ranges (gpu.cpp)
//           -> nanoseconds -> index (apply_index.cpp)
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "schema/block_codec.hpp"
#include "schema/dump_generated.h"
#include "schema/result.hpp"
#include "viewer_export/load/dump_reader.hpp"
#include "viewer_export/load/job_reader.hpp"
#include "viewer_export/model/context.hpp"
#include "viewer_export/model/job.hpp"
#include "viewer_export/model/progress.hpp"

namespace ringside::viewer_export::load {

using model::Index;
using model::kNone;

/// An end that waits for its begin, by key.
struct PendingEnd {
    std::uint64_t ticks;
    std::uint64_t key;
    std::uint64_t argument;  ///< RpcEnd: status and bytes
    Index lane;
};

/// One process while dumps are read. Begins carry ticks in their _ns fields.
struct ProcessState {
    std::vector<Index> names;            ///< Job::names by the process's own name id
    std::vector<Index> name_attributes;  ///< Job::attributes by name id; shorter where none has any
    std::unordered_map<std::uint16_t, Index> attributes;  ///< Job::attributes by attribute id
    std::vector<model::AsyncRange> asyncs;
    std::vector<PendingEnd> async_ends;
    std::vector<model::Half> halves;
    std::vector<PendingEnd> rpc_ends;
    std::unordered_map<std::uint64_t, Index> server_halves;  ///< key -> Job::halves, at finish
};

/// One lane index of one process: positions go on from one generation to the next.
struct LaneIndexState {
    std::uint64_t next_position = 0;  ///< the greatest `last` read so far
    Index lane = kNone;               ///< Job::lanes: the generation read last
};

struct LaneState {
    model::ContextTrack contexts;
    std::uint64_t last_ticks = 0;  ///< of the record written last
    std::uint64_t blocks_end = 0;  ///< `last` of its last block
    bool started = false;
    std::string inline_name;  ///< of the NameInline record right before
    bool has_inline_name = false;
    std::vector<fbs::OpenRange> open;  ///< of its last block
};

/// How much of the dumps is read.
enum class Depth : std::uint8_t { kAll, kProcesses };

class JobBuilder {
public:
    /// @param tell   borrowed
    /// @param bytes  of all dumps that will be read
    JobBuilder(const model::Tell& tell, std::uint64_t bytes, Depth depth = Depth::kAll)
        : tell_(tell), bytes_(bytes), depth_(depth) {}

    /// Reads a dump's chunks into the job.
    /// @errors Input: it and another dump of the same node are of different boots
    schema::Result<void> add_dump(DumpReader& reader);

    /// Joins, corrects and sums up what was read.
    /// @param index      null: none
    /// @param corrected  whether node times become the leader's
    model::Job finish(const JobIndexFile* index, bool corrected);

private:
    /// The dump being read.
    struct Dump {
        Index node = kNone;
        std::uint64_t capture_id = 0;
        std::string path;
        std::unordered_map<std::uint32_t, Index> processes;  ///< its own index -> Job::processes
        std::uint64_t chunk_offset = 0;
    };

    // builder.cpp: tables
    Index node_of(const fbs::FileHeader& header);
    Index process_of(std::uint32_t index);
    Index lane_of(Index process, std::uint32_t index, std::uint32_t generation);
    void add_process(const fbs::Process& process);
    void add_names(const fbs::Names& names);
    void add_attributes(Index process, const fbs::Names& names);
    Index attributes_of(Index process, std::uint32_t name_id) const;
    void add_footer(const fbs::Footer& footer);
    void note_damage(std::string text);

    // lane_builder.cpp: records
    void add_block(const fbs::Block& block);
    void add_record(const schema::DecodedRecord& record, std::uint64_t position, Index lane);
    void add_range(const schema::DecodedRecord& record, std::uint64_t position, Index lane);
    void add_rpc_begin(const schema::DecodedRecord& record, std::uint64_t position, Index lane);
    void add_context(const schema::DecodedRecord& record, std::uint64_t position, Index lane);
    Index record_name(const schema::RecordHeader& header, Index lane);
    Index name_of(Index process, std::uint32_t id);

    // gpu.cpp
    void add_gpu(const schema::DecodedRecord& record, std::uint64_t position, Index lane);
    void add_gpu_device(const schema::DecodedRecord& record, Index lane);
    void settle_gpu_devices();
    void find_gpu_calls();
    void tie_gpu_calls();
    void tie_gpu_waits();

    // pairing.cpp
    void pair_process(Index process);

    // finish.cpp: still in ticks, then in nanoseconds
    void finish_lanes();
    void finish_lane(Index lane);
    void add_open_ranges(Index lane);
    Index request_of(Index process, model::Context context);
    void finish_events();
    void settle_ends();
    void to_nanoseconds(bool corrected);
    void sort_values();
    void mark_fetches();
    void sum_up();

    // trim.cpp
    void leave_out_events();
    void leave_out_gpu();
    void leave_out_calls();

    // servings.cpp: in ticks
    void find_servings();

    // apply_index.cpp
    void apply_nodes(const fbs::JobIndex& index);
    void apply_calls(const JobIndexFile& file);
    void link_calls(const JobIndexFile& file);
    void apply_verdicts(const fbs::JobIndex& index);
    void call_the_rest();
    const Dump* dump_of(const fbs::JobIndex& index, std::uint32_t node) const;

    model::Job job_;
    std::vector<ProcessState> processes_;
    std::vector<LaneState> lanes_;
    std::map<std::pair<Index, std::uint32_t>, LaneIndexState> lane_indices_;
    std::map<std::tuple<Index, std::uint32_t, std::uint32_t>, Index> lane_table_;
    std::map<std::tuple<Index, Index, std::uint32_t, schema::PayloadType>, Index> attribute_table_;
    std::vector<Dump> dumps_;
    std::uint64_t damaged_blocks_ = 0;
    const model::Tell& tell_;
    std::uint64_t bytes_;
    Depth depth_;
    std::uint64_t bytes_read_ = 0;  ///< of the dumps before the one being read
};

}  // namespace ringside::viewer_export::load
