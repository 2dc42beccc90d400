// Dumps of a job that never ran: requests between nodes, each half as the shim writes it and each block as an agent does. Written as they
// are made, so that their number is bounded by the disk alone.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ringside::tests {

struct SyntheticJob {
    std::uint32_t nodes = 2;
    std::uint64_t halves = 100'000;  ///< of all dumps together
    std::uint32_t open = 256;        ///< requests that are under way at once, over all nodes
    std::uint32_t depth = 3;         ///< requests within requests: so many in a chain
    std::uint32_t lanes = 8;         ///< of a process
    std::int64_t skew_ns = 0;        ///< a node's clock is off by up to this
    double loss = 0;                 ///< part of the halves that are in no dump
    double messages = 0;             ///< part of the chains that are as many messages between ranks
    std::uint64_t ids =
        ~0ull;  ///< a pair of workers numbers its requests from 0 again after so many
    std::int64_t gap_ns = 10'000;         ///< between the begins of two chains
    std::int64_t flush_ns = 200'000'000;  ///< an agent writes what it has as often
    bool packed = false;                  ///< chunks are compressed
};

/// What must come of them.
struct SyntheticTruth {
    std::uint64_t halves = 0;
    std::uint64_t whole = 0;     ///< requests with both halves
    std::uint64_t single = 0;    ///< with one
    std::uint64_t messages = 0;  ///< of the whole ones
};

/// Writes `<directory>/nodeNN.rsd` for each node.
SyntheticTruth write_synthetic(const SyntheticJob& job, const std::filesystem::path& directory);

}  // namespace ringside::tests
