// Which of a node's processes a request means: by pid, rank and executable, and how many of them at most. Values; part of the seam
// (engine.hpp), asked by the engine about each process.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/ids.hpp"

namespace ringside::agent {

/// What of a process a selection looks at.
struct Candidate {
    int pid = 0;       ///< in its own namespace
    int host_pid = 0;  ///< as the agent sees it; 0: unknown
    int rank = -1;
    std::string_view executable;  ///< its path
    bool has_framework = false;

    bool has_pid(int asked) const { return asked == pid || (asked != 0 && asked == host_pid); }
    /// @param asked  a file's name, or a whole path
    bool is_executable(std::string_view asked) const {
        return asked == executable || asked == executable.substr(executable.rfind('/') + 1);
    }
};

/// The three lists combine by AND; an empty one means all.
struct Selection {
    std::vector<int> pids;
    std::vector<int> ranks;
    std::vector<std::string> executables;
    std::uint32_t limit = 0;  ///< 0: none

    bool operator==(const Selection&) const = default;
    /// Whether anybody may be left out.
    bool selects_some() const { return names_some() || limit != 0; }
    /// Whether it asks for some by number or name.
    bool names_some() const { return !pids.empty() || !ranks.empty() || !executables.empty(); }
    /// Whether the lists mean a process; the limit is Choice's.
    bool fits(const Candidate& candidate) const;
    /// "with pid 12, 13, of rank 3": what the lists ask for.
    std::string text() const;
};

/// A selection, and whom its limit lets in: as many as it says, those with a framework first (launchers and shells, which record nothing,
/// use none of it up), then by rank, then by pid. Decided again as processes come, find their frameworks and end: who has a framework and a
/// place keeps it; one without has none but what nobody with a framework needs.
class Choice {
public:
    explicit Choice(Selection selection) : selection_(std::move(selection)) {}

    const Selection& selection() const { return selection_; }
    /// @param there  the living, and those of the chosen that have ended and had a framework
    void decide(std::span<const std::pair<schema::SegmentId, Candidate>> there);
    bool means(const schema::SegmentId& id, const Candidate& candidate) const {
        return selection_.limit != 0 ? chosen_.contains(id) : selection_.fits(candidate);
    }
    /// How many the limit has left out that have a framework.
    std::uint32_t left_out() const { return static_cast<std::uint32_t>(left_out_.size()); }

private:
    Selection selection_;
    std::set<schema::SegmentId> chosen_;
    std::set<schema::SegmentId> left_out_;
};

}  // namespace ringside::agent
