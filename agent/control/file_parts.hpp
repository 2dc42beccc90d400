// What an agent gives away of its files: parts of the dumps and job indexes that lie whole beneath its output root, to those who share no
// directory with its host. Nothing else of this host is read, whatever a request calls it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "agent/control/messages.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// Bounds what is read and not yet on the network, whoever asked for it.
/// @thread thread-safe
class UnsentBytes {
public:
    /// @return what holds the place, until it is released by whichever thread; null: there is none
    std::shared_ptr<void> hold(std::size_t bytes);

    static constexpr std::size_t kMost = std::size_t{8} << 20;

private:
    // It outlives us: libzmq's thread may be the last one to release.
    std::shared_ptr<std::atomic<std::size_t>> held_ = std::make_shared<std::atomic<std::size_t>>(0);
};

/// @thread one caller at a time, but for end()
class FileParts {
public:
    /// @param output_root  the agent's; need not exist yet
    explicit FileParts(std::string output_root) : root_(std::move(output_root)) {}

    /// One part, or a digest.
    /// @errors Refused: not beneath the root, a link, no dump or index of ours that is whole; NothingMatched: no such file; Input: it has
    /// no so many bytes
    schema::Result<fbs::FetchReplyT> read(const fbs::FetchRequestT& request) const;
    /// Gives up the digest that is being made: the agent ends.
    /// @thread thread-safe
    void end() { ends_ = true; }

private:
    std::string root_;
    std::atomic<bool> ends_{false};
};

}  // namespace ringside::agent
