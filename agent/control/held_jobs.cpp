#include "agent/control/held_jobs.hpp"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "agent/attach/file_handle.hpp"
#include "agent/control/file_lock.hpp"
#include "schema/control_page.hpp"

namespace ringside::agent {

std::vector<std::string> held_jobs(const std::string& root) {
    std::vector<std::string> jobs;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
        const FileHandle job(
            ::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (job && is_held(job.get(), schema::kLockFileName))
            jobs.push_back(entry.path().filename().string());
    }
    std::sort(jobs.begin(), jobs.end());
    return jobs;
}

}  // namespace ringside::agent
