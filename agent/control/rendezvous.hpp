// How a job's agents are found from other hosts. Each notes where it listens in a directory of its user's home; where hosts share no home, its port
// is one of a few that follow from the job's name. What they are asked with is a key that follows from the user's (key.hpp), so that nothing
// secret lies here.
//
//   ~/.ringside/jobs/<family>/<member>@<node>      0700, 0600: the agent's endpoint, an IP literal
//
// Public: the command uses it too.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/control/member.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// The address by which other hosts reach this one, an IP literal (IPv6 in brackets): RINGSIDE_ADDRESS; else the one that speaks to where the job was
/// launched (SLURM_LAUNCH_NODE_IPADDR, MASTER_ADDR); else the first that is not loopback; else 127.0.0.1.
std::string own_address();

struct NotedAgent {
    std::string member;
    std::string node;
    std::string endpoint;
};

/// Those that are noted for `member`, or for all members of the family that it names; by member and node. An agent that was killed leaves its note.
/// @return none where there is no home, or nothing is noted
/// @errors Refused: the directory is another user's, or others may write to it
schema::Result<std::vector<NotedAgent>> noted_agents(const std::string& member);

/// An agent's note, for as long as this lives.
/// @thread main thread
class RendezvousNote {
public:
    /// Over a note that another agent of this node has left.
    /// @errors Usage: no home, or it can't be written; Refused: as noted_agents()
    static schema::Result<RendezvousNote> write(const NotedAgent& agent);
    ~RendezvousNote();
    std::string path() const { return directory_ + "/" + file_; }
    RendezvousNote(RendezvousNote&& other) noexcept
        : directory_(std::move(other.directory_)),
          file_(std::exchange(other.file_, "")),
          text_(std::move(other.text_)) {}
    RendezvousNote(const RendezvousNote&) = delete;
    RendezvousNote& operator=(const RendezvousNote&) = delete;
    RendezvousNote& operator=(RendezvousNote&&) = delete;

private:
    RendezvousNote(std::string directory, std::string file, std::string text)
        : directory_(std::move(directory)), file_(std::move(file)), text_(std::move(text)) {}

    std::string directory_;
    std::string file_;  ///< empty: moved from
    std::string text_;
};

/// To be called of a note now and then: one that is a day old is passed over, and removed: its agent's node has died.
void keep_noted(const std::string& path);

/// Removes the note of an agent that has died, for nobody else will.
void forget_agent(const std::string& member, const std::string& node);

}  // namespace ringside::agent
