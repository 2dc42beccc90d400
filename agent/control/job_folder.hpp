// A job's directory beside what an agent's engine has in it: made before there is an agent, looked at by who starts one, taken away when it is nobody's any
// more. Public.
//
//   election    an exclusive lock, held for the moments in which an agent is looked for, started or ended
//   step-ID     a shared lock of each task of a step, for as long as it lives
//   agent.wish  what the job's tasks want of an agent that they don't start themselves
//   agent.step  whose agent it is: the step, and the agent's pid. agent.log: what it says
#pragma once

#include <string>
#include <string_view>

#include "schema/result.hpp"

namespace ringside::agent {

inline constexpr const char* kElectionName = "election";
inline constexpr const char* kOwnerName = "agent.step";
inline constexpr const char* kLogName = "agent.log";
inline constexpr const char* kWishName = "agent.wish";
inline constexpr std::string_view kStepPrefix = "step-";
/// Beneath the root: the resident agent's lock (agent/resident).
inline constexpr const char* kResidentName = "resident";

/// Opens `<root>/<job>`; what is missing is made (0700).
/// @return its descriptor, the caller's from now on
/// @errors Usage: it can't be made, or is not this user's alone
schema::Result<int> open_job_folder(const std::string& root, const std::string& job);

/// Whether a file of that name is a process's segment: three numbers with dots between them.
bool is_segment(std::string_view name);

struct FolderState {
    bool agent = false;     ///< one holds it
    bool segments = false;  ///< of living processes, or of dead ones that no agent has reaped
    bool steps = false;     ///< tasks of `ringside wrap` have been here
    bool tasks = false;     ///< and one lives
    bool others = false;    ///< captures and windows, and what is not known
};
FolderState look_at_folder(int directory);

/// Where nothing in it is anybody's any more: no agent, no task, no segment, no capture. Under the election.
/// @param path  the name of `directory`
void remove_job_folder(int directory, const std::string& path);

/// What an agent can't tell from the job directory's name. Empty: its default.
struct AgentWish {
    std::string member;       ///< the job, as other hosts look for its agents (member.hpp)
    std::string node;         ///< what the agent is to call its node
    std::string output_root;  ///< where it may write dumps
    bool operator==(const AgentWish&) const = default;
};
/// Where it can't be written an agent takes its defaults, and that is all.
void write_wish(int directory, const AgentWish& wish);
/// What does not check (check_member(), check_name(), an absolute path) is left empty.
AgentWish read_wish(int directory);

}  // namespace ringside::agent
