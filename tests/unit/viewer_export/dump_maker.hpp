// Makes dumps and indices for the tests, chunk by chunk, from schema/ alone. One tick is one nanosecond; node time is ticks + kEpochNs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "files.hpp"
#include "schema/block_codec.hpp"
#include "schema/dump_generated.h"
#include "schema/job_generated.h"
#include "schema/names.hpp"
#include "schema/record.hpp"

namespace ringside::tests {

inline constexpr std::int64_t kEpochNs = 1'700'000'000'000'000'000;

/// Two numbers in one word of a record.
constexpr std::uint64_t pair(std::uint64_t low, std::uint64_t high) {
    return low | high << 32;
}

class DumpMaker;

/// One half, as the shim writes it.
struct HalfSpec {
    bool server = false;
    std::uint64_t key = 0;
    std::uint64_t span = 0;
    std::uint64_t parent_key = 0;
    std::string function;
    std::string module;
    std::string self;
    std::string peer;
    schema::RpcMode mode = schema::RpcMode::kUnknown;
    std::uint64_t wire_id = 0;
    int self_id = -1;
    bool message = false;  ///< of MPI; else of torch
    std::uint32_t wire_type = 0;
};

/// The records of one lane. Each call returns the record's position.
class LaneMaker {
public:
    LaneMaker(DumpMaker& dump, std::uint32_t process, std::uint32_t lane, std::uint32_t generation,
              int tid);

    std::uint64_t range(const std::string& name, std::uint64_t begin, std::uint64_t end,
                        int scope = 0);
    std::uint64_t op(const std::string& name, std::uint64_t begin, std::uint64_t end,
                     std::int64_t sequence, std::uint32_t thread, std::uint32_t forward_thread = 0,
                     int scope = 0, const std::string& shapes = {});
    /// Torch's mark of memory that came, or went (negative).
    std::uint64_t memory(std::uint64_t ticks, std::uint64_t address, std::int64_t bytes,
                         bool cuda = false);
    std::uint64_t serve(std::uint64_t ticks, std::uint64_t key, bool again = false);
    std::uint64_t stop_serving(std::uint64_t ticks, bool again = false);
    std::uint64_t rpc_begin(std::uint64_t ticks, const HalfSpec& half);
    std::uint64_t rpc_end(std::uint64_t ticks, std::uint64_t key,
                          schema::RpcStatus status = schema::RpcStatus::kOk);
    std::uint64_t async_begin(const std::string& name, std::uint64_t ticks, std::uint64_t key);
    std::uint64_t async_end(std::uint64_t ticks, std::uint64_t key);
    std::uint64_t value(schema::RecordKind kind, const std::string& name, std::uint64_t ticks,
                        std::uint64_t value);
    /// A record of the GPU's: `words` from word 1 on, what it has beyond them is 0.
    std::uint64_t gpu(schema::RecordKind kind, const std::string& name,
                      std::vector<std::uint64_t> words, int detail = 0);
    /// Of a range without a scope: for raw().
    std::uint64_t range_header(const std::string& name) const {
        return header(schema::RecordKind::kRange, 0, name);
    }
    std::uint64_t inline_name(const std::string& text);
    std::uint64_t raw(std::vector<std::uint64_t> words);
    /// Cells that are not in this dump.
    void pad(std::uint64_t cells) { position_ += cells; }
    /// A range that stays open.
    void open(const std::string& name, std::uint64_t begin, bool torch_user = false);
    /// What the lane serves at its first record.
    void context(std::uint64_t key);
    /// The records of [from, the end) once more, as a second block: what a restarted agent may write.
    void repeat_from(std::uint64_t position) { repeat_from_ = position; }
    void lose(std::uint64_t records, std::uint64_t first_ticks, std::uint64_t last_ticks);
    /// Writes what there is as a block in a chunk of its own.
    void flush();

    std::uint64_t position() const { return position_; }

private:
    friend class DumpMaker;
    struct Record {
        std::uint64_t position;
        std::vector<std::uint64_t> words;
    };
    std::uint64_t header(schema::RecordKind kind, int detail, const std::string& name,
                         int cells = 0) const;
    void block(const std::vector<Record>& records, std::uint64_t first);

    DumpMaker& dump_;
    fbs::LaneTotalsT totals_;
    int tid_;
    std::uint64_t position_ = 0;
    std::uint64_t first_ = 0;
    std::uint64_t repeat_from_ = ~0ull;
    std::vector<Record> records_;
    std::vector<fbs::OpenRange> open_;
    std::unique_ptr<fbs::ContextT> context_;
};

class DumpMaker {
public:
    explicit DumpMaker(const std::string& node, std::uint32_t min_reader = 1,
                       std::uint32_t options = 0);

    void process(std::uint32_t index, int pid, int rank = -1, const std::string& worker = {},
                 int worker_id = -1, fbs::SourceLevel level = fbs::SourceLevel::Full);
    LaneMaker& lane(std::uint32_t process, std::uint32_t lane, int tid,
                    std::uint32_t generation = 0);
    void end(std::uint32_t process, fbs::Fate fate, std::uint64_t ticks,
             std::int64_t start_delay_ns = -1);
    /// The process has its end now, with these iterations.
    void end(std::uint32_t process, std::uint64_t ticks, std::vector<std::uint64_t> losses) {
        end(process, fbs::Fate::Running, ticks);
        ends_.back()->losses = std::move(losses);
    }
    void end(std::uint32_t process, std::uint64_t ticks, const fbs::IterationsT& iterations) {
        end(process, fbs::Fate::Running, ticks);
        ends_.back()->iterations = std::make_unique<fbs::IterationsT>(iterations);
    }
    /// The same, with a group that it is in.
    void end(std::uint32_t process, std::uint64_t ticks, const fbs::GroupT& group) {
        end(process, fbs::Fate::Running, ticks);
        ends_.back()->groups.push_back(std::make_unique<fbs::GroupT>(group));
    }
    /// The process that had its end last was in this call then, of this group.
    void waits(const fbs::OpenCallT& call, const fbs::GroupT& group) {
        ends_.back()->open_calls.push_back(std::make_unique<fbs::OpenCallT>(call));
        ends_.back()->groups.push_back(std::make_unique<fbs::GroupT>(group));
    }
    std::uint32_t name(std::uint32_t process, const std::string& text);
    /// Gives a name its extras: of the records that bear it, from the next flush on.
    void attributes(std::uint32_t process, const std::string& text, const std::string& domain,
                    const std::string& category, std::uint32_t colour, schema::PayloadType payload);
    void chunk(fbs::BodyUnion body);
    /// The footer's receipt; a dump of before there was one has none.
    void perturbation(const fbs::PerturbationT& cost) {
        perturbation_ = std::make_unique<fbs::PerturbationT>(cost);
    }
    /// Flushes the lanes and ends the dump.
    void footer(std::uint64_t stop_ticks);

    const std::vector<std::uint8_t>& bytes() const { return bytes_; }
    /// Byte offsets at which chunks begin, and the file's end.
    const std::vector<std::size_t>& edges() const { return edges_; }
    void write(const std::filesystem::path& path) const { write_file(path, bytes_); }

private:
    friend class LaneMaker;
    void flush_names();

    std::map<std::pair<std::uint32_t, std::string>, std::uint32_t> names_;
    std::map<std::uint32_t, std::uint32_t> next_name_;
    std::map<std::uint32_t, std::vector<std::pair<std::uint32_t, std::string>>> new_names_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, fbs::AttributeT>
        attributes_;  ///< by process, name
    std::vector<std::unique_ptr<LaneMaker>> lanes_;
    std::vector<std::unique_ptr<fbs::ProcessEndT>> ends_;
    std::unique_ptr<fbs::PerturbationT> perturbation_;
    std::vector<std::uint8_t> bytes_;
    std::vector<std::size_t> edges_{0};
};

/// A job index of nodes with no clock difference, unless one is set.
class IndexMaker {
public:
    explicit IndexMaker(std::vector<std::string> nodes);
    void clock(std::size_t node, std::int64_t offset_ns, double drift_ppb = 0);
    /// @return the call's index
    int joined(fbs::HalfRef client, fbs::HalfRef server, int parent = -1, bool unfinished = false,
               bool reply = true);
    int single(fbs::HalfRef half, bool server, fbs::RpcState state, bool unfinished = false);
    fbs::JobIndexT index;

    /// The whole file.
    std::vector<std::uint8_t> bytes() const;
    void write(const std::filesystem::path& path) const { write_file(path, bytes()); }
    /// As version 2 has it: these calls, so many in a frame, and the rest.
    void write_calls(const std::filesystem::path& path, const std::vector<fbs::Call>& calls,
                     std::size_t in_frame);
};

}  // namespace ringside::tests
