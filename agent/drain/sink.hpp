// Where drained records go: a dump, or an armed window. The drain side hands over finished pieces, in the order in which a
// reader needs them: a process before its names, names before the blocks that use them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "agent/attach/open_calls.hpp"
#include "agent/attach/segment_facts.hpp"
#include "agent/capture/engine.hpp"
#include "agent/drain/accounts.hpp"

namespace ringside::agent {

/// A piece of one lane, encoded (schema/README.md, "The block").
struct Block {
    std::uint32_t process = 0;
    schema::LaneId lane;
    LaneFacts thread;
    std::uint64_t first = 0;
    std::uint64_t last =
        0;  ///< all before it has been taken: once the block is kept, a successor begins here
    std::uint64_t base_ticks = 0;
    std::uint64_t earliest_ticks = ~0ull;  ///< the least begin of its records; not stored
    std::uint32_t records = 0;
    LaneContext context;
    LaneContext end_context;  ///< at `last`
    LaneTally tally;          ///< at `last`
    std::vector<OpenRange> open;
    std::vector<std::uint8_t> data;
    std::size_t account = 0;  ///< whose records these are: an index into the drainer's accounts
};

/// How a process's part of a capture ended.
struct ProcessEndFacts {
    std::uint32_t process = 0;
    Fate fate = Fate::kRunning;
    std::uint64_t ticks = 0;
    std::vector<std::uint64_t> losses{};
    std::uint64_t violations = 0;
    std::int64_t start_delay_ns = -1;
    std::optional<IterationReport> iterations{};
    OpenFacts open{};
};

/// A process as the dump tells of it.
struct ProcessFacts {
    std::uint32_t index = 0;
    int host_pid = 0;
    std::string worker_name;
    SegmentFacts segment;
    std::vector<std::uint64_t> losses_before{};  ///< the capture: none of them belongs to it
    std::int64_t start_delay_ns = -1;
    std::optional<ProcessEndFacts> end{};
    std::string end_reason{};
};

struct NamesBatch {
    std::uint32_t process = 0;
    std::vector<NameFacts> names;
    std::vector<AttributeFacts> attributes;
};

class Sink {
public:
    virtual ~Sink() = default;
    virtual void process(const ProcessFacts& facts) = 0;
    virtual void names(const NamesBatch& batch) = 0;
    /// @return false where the blocks were not kept (the bound is reached, a write failed): their records are lost
    virtual bool blocks(std::span<const Block* const> blocks) = 0;
};

}  // namespace ringside::agent
