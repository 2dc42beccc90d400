// What an agent gives away of its files: parts of the dumps and job indexes that lie whole beneath its output root, to those who share no
// directory with its host. Nothing else of this host is read, whatever a request calls it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/control/messages.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

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
