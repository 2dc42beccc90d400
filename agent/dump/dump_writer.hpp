// Writes one node's dump while its capture runs: `<node>.rsd.partial`, which becomes `<node>.rsd` when its footer is on the disk. A
// sink of the drain side. Bounded. Where the disk is full it keeps what it has, says why, and goes on when there is room again.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/capture/engine.hpp"
#include "agent/drain/accounts.hpp"
#include "agent/drain/sink.hpp"
#include "agent/dump/frame_file.hpp"
#include "agent/dump/output_folder.hpp"
#include "agent/dump/packer.hpp"

namespace ringside::agent {

struct DumpRequest {
    std::string output_root;
    std::string name;  ///< the folder beneath it
    std::string node;  ///< the file in that
    std::uint64_t max_bytes = 0;
    bool compress = false;
};

struct DumpHeader {
    std::string job;
    std::uint64_t capture_id = 0;
    Calibration calibration;
    std::uint64_t start_ticks = 0;
    std::uint32_t options = 0;
    bool packed = false;  ///< Packed chunks may follow
};

struct DumpFooter {
    struct Lane {
        std::uint32_t process = 0;
        LaneAccount account;
    };
    std::uint64_t start_ticks = 0;
    std::uint64_t stop_ticks = 0;
    std::vector<Lane> lanes;
    std::vector<ProcessEndFacts> processes;
    std::uint64_t unknown_records = 0;
    double record_cost_ns = 0;
    Perturbation perturbation;
};

struct DumpReceipt {
    std::string path;  ///< absolute; under the final name only where everything is in it that fits
    std::uint64_t bytes = 0;
    bool complete = false;
    std::string error;
};

struct PartialDump;

class DumpWriter final : public Sink {
public:
    /// Makes the folder and the partial file.
    /// @errors Refused: the name leaves the output root, or a dump of that name is there; Usage: can't be written
    static schema::Result<std::unique_ptr<DumpWriter>> create(const DumpRequest& request);

    /// Goes on with the partial file that an agent left when it died: what stands behind its last whole chunk is cut off.
    /// @param partial  what stands in the file
    /// @return a writer; null where that agent had named the dump already, or had ended it: then it has its name now
    /// @errors NothingMatched: there is none; Refused: it is another capture's; Input: see read_partial(); Usage: can't be written
    static schema::Result<std::unique_ptr<DumpWriter>> resume(const DumpRequest& request,
                                                              std::uint64_t capture_id,
                                                              PartialDump& partial);

    /// First, once.
    void header(const DumpHeader& header);
    void process(const ProcessFacts& facts) override;
    void names(const NamesBatch& batch) override;
    bool blocks(std::span<const Block* const> blocks) override;
    /// Room that the bound keeps free, so that the footer always fits, and what is still to be told of processes.
    /// @param untold  processes of which there is a last word to come: process() once more each
    void reserve_end(std::size_t lanes, std::size_t processes, std::size_t untold);
    /// The footer, the disk, the final name. Last, once.
    DumpReceipt finish(const DumpFooter& footer);

    std::uint64_t bytes() const { return file_.bytes(); }
    /// Where the dump will lie.
    std::string path() const;
    /// True once something was not kept. Beyond the bound nothing more will be; after a failed write more may.
    bool closed() const { return full_ || error_ != 0; }
    /// Why a write has failed, and what to do; only where one has.
    std::string failure() const;

private:
    /// What a chunk is to the dump.
    struct Part {
        bool bounded;  ///< it counts against the bound: where it does not fit, the dump is full
        bool needed;   ///< without it what follows can't be read
    };
    static constexpr Part kFacts{false, true}, kNames{true, true}, kBlocks{true, false};

    DumpWriter(OutputFolder folder, FrameFile file, DumpRequest request);
    template <class Make>
    bool append(Make&& make, Part part);
    bool write(const flatbuffers::FlatBufferBuilder& chunk, Part part);
    bool pay();
    void owe(const flatbuffers::FlatBufferBuilder& chunk);
    bool succeeded(int error);
    void take_final_name(DumpReceipt& receipt);

    OutputFolder folder_;
    FrameFile file_;
    DumpRequest request_;
    flatbuffers::FlatBufferBuilder builder_{std::size_t{512} << 10};
    std::optional<Packer> packer_;
    std::uint64_t end_reserve_ = 0;
    std::uint64_t process_bytes_ = 0;  ///< of the greatest Process chunk so far
    bool full_ = false;                ///< the bound is reached
    int error_ = 0;                    ///< errno of the first write that failed
    bool resumed_ = false;             ///< records were written after a write that failed
    bool given_up_ = false;            ///< more is owed than is kept in memory
    /// Header, processes and names that there was no room for: they come before anything else.
    std::deque<std::vector<std::uint8_t>> owed_;
    std::uint64_t owed_bytes_ = 0;
};

}  // namespace ringside::agent
