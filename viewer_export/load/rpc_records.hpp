// The RPC records of one node's dumps and nothing else of them, for a join that keeps no dump in memory. Read twice: once to learn the
// processes, their names and how far each chunk reaches back; then in the order of time, as far as is asked for.
// The command turns them into the join's own types: this folder doesn't know the agent's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "schema/block_codec.hpp"
#include "schema/result.hpp"
#include "viewer_export/load/dump_reader.hpp"
#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export {

/// As `ProcessResult` in control.fbs.
struct JoinProcess {
    std::uint32_t index = 0;
    std::int32_t pid = 0;
    std::int32_t rank = -1;
    std::string command;
    model::Fate fate = model::Fate::kRunning;
    std::uint64_t end_ticks = 0;       ///< 0: the dump doesn't say
    std::vector<std::string> workers;  ///< every RPC name that it went by
    bool has_mpi = false;
    std::uint64_t events = 0;  ///< records kept
    std::uint64_t lost = 0;
    std::int64_t start_delay_ns = -1;
};

struct RpcRecord {
    bool begin = false;
    std::uint32_t process = 0;  ///< a place in RpcRecords::processes()
    std::uint32_t lane = 0;
    std::uint32_t generation = 0;
    std::uint64_t position = 0;
    const std::uint64_t* words =
        nullptr;  ///< 12 of a begin, 4 of an end (schema/README.md, "The records")
};

class RpcRecords {
public:
    using Tell = std::function<void(const RpcRecord&)>;
    static constexpr std::uint64_t kEnd = ~0ull;

    RpcRecords();
    RpcRecords(RpcRecords&&) noexcept;
    ~RpcRecords();

    /// Another dump of this node.
    /// @errors as DumpReader::open()
    schema::Result<void> add(const std::filesystem::path& path);

    /// Reads all of it, once; what is damaged and what comes after it is left out.
    /// @param tell  each record, in the order of the file
    void scan(const Tell& tell);

    /// After scan(): the records before `limit_ticks` that have not been told yet, those of a lane in its order.
    /// @return no later than when the next one is; kEnd: there is none
    std::uint64_t read_until(std::uint64_t limit_ticks, const Tell& tell);

    std::string node;
    std::string host;
    std::string job;
    std::string path;  ///< of the first dump
    std::uint64_t capture_id = 0;
    model::Calibration calibration;
    std::uint64_t start_ticks = 0;
    std::uint64_t stop_ticks = 0;  ///< 0: the dump was cut short
    const std::vector<JoinProcess>& processes() const { return processes_; }
    /// @return a name of a process; none for id 0
    std::string name(std::uint32_t process, std::uint32_t id) const;
    /// Ids from 0 to below this have been given to names of a process.
    std::size_t names(std::uint32_t process) const { return tables_[process].names.size(); }

private:
    class Cursor;
    struct Dump {
        load::DumpReader reader;
        std::unordered_map<std::uint32_t, std::uint32_t> processes;  ///< its own index -> place
    };
    /// A chunk that holds RPC records.
    struct Chunk {
        std::uint32_t dump;
        std::uint64_t offset;
        std::uint64_t earliest_ticks;  ///< of the records in it and in all that follow
    };
    struct Tables {
        std::vector<std::string> names;  ///< by id
        std::vector<bool> is_worker;     ///< by id
        std::uint64_t pid_namespace = 0;
        std::uint64_t start_ticks = 0;
    };

    std::uint32_t process_of(Dump& dump, std::uint32_t index);
    void add_process(Dump& dump, const fbs::Process& process);
    void add_names(Dump& dump, const fbs::Names& names);
    void add_footer(Dump& dump, const fbs::Footer& footer);
    void add_worker(const RpcRecord& begin);
    std::unique_ptr<Cursor> cursor(Dump& dump, const fbs::Block& block);
    void open_chunk();

    std::vector<Dump> dumps_;
    std::vector<JoinProcess> processes_;
    std::vector<Tables> tables_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t>
        next_position_;  ///< by process and lane: positions go on from one generation to the next
    std::vector<Chunk> chunks_;
    std::size_t next_chunk_ = 0;
    std::vector<std::unique_ptr<Cursor>> cursors_;
};

/// The nodes of these dumps, in the order of their first ones.
/// @errors as DumpReader::open()
schema::Result<std::vector<RpcRecords>> rpc_records(
    const std::vector<std::filesystem::path>& dumps);

}  // namespace ringside::viewer_export
