// A thread where there can be one: the limit of the user's processes, or of the job's cgroup, is the job's to use up, and nothing that the agent should die of.
#pragma once

#include <system_error>
#include <thread>
#include <utility>

#include "schema/result.hpp"

namespace ringside::agent {

/// Has `work` run by `thread`, which runs nothing yet.
/// @errors Refused: no thread can be made; `work` is not run
template <class Work>
schema::Result<void> run_beside(std::thread& thread, Work&& work) {
    try {
        thread = std::thread(std::forward<Work>(work));
    } catch (const std::system_error& error) {
        return schema::Error{schema::ErrorCode::kRefused,
                             std::string("this agent can make no thread (") + error.what() +
                                 "): the processes of its user or its cgroup are at their limit; "
                                 "ask again later"};
    }
    return {};
}

}  // namespace ringside::agent
