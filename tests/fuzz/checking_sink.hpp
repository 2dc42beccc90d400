// Takes what the agent would write into a dump: makes the chunks with its own code, reads them back as a reader does, and counts what
// is in them. Anything that a reader would not take ends the program.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "agent/drain/accounts.hpp"
#include "agent/drain/sink.hpp"
#include "schema/dump_generated.h"

namespace ringside::tests::fuzz {

/// Says `what` and aborts, so that the fuzzer keeps the input, where `holds` is false.
void check(bool holds, const char* what);

class CheckingSink final : public agent::Sink {
public:
    void process(const agent::ProcessFacts& facts) override;
    void names(const agent::NamesBatch& batch) override;
    bool blocks(std::span<const agent::Block* const> blocks) override;

    /// What the next blocks() answers.
    void keep(bool keeps) { keeps_ = keeps; }
    bool refused_any() const { return refused_any_; }
    /// Another capture, or another agent: positions and counts begin anew.
    void restart();
    /// kept is what the blocks hold, lane by lane, and nothing else is in them.
    void check_accounts(std::span<const agent::LaneAccount> accounts) const;

private:
    using LaneKey = std::pair<std::uint32_t, std::uint32_t>;  ///< index, generation

    const fbs::Chunk& chunk();
    void check_block(const fbs::Block& block);

    flatbuffers::FlatBufferBuilder builder_;
    std::map<LaneKey, std::uint64_t> kept_;
    std::map<std::uint32_t, std::uint64_t> ends_;  ///< of each lane's last block
    bool keeps_ = true;
    bool refused_any_ = false;
    std::uint64_t name_bytes_ = 0;
};

}  // namespace ringside::tests::fuzz
