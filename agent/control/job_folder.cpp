#include "agent/control/job_folder.hpp"

#include <fcntl.h>

#include <cerrno>

#include "agent/attach/file_handle.hpp"

namespace ringside::agent {

schema::Result<int> open_job_folder(const std::string& root, const std::string& job) {
    const FileHandle parent = open_private_directory(AT_FDCWD, root.c_str());
    const FileHandle folder =
        parent ? open_private_directory(parent.get(), job.c_str()) : FileHandle();
    const int opened = folder ? ::fcntl(folder.get(), F_DUPFD_CLOEXEC, 0) : -1;
    if (opened >= 0) return opened;
    return schema::Error{schema::ErrorCode::kUsage, "make the job directory " + root + "/" + job +
                                                        ": " + error_text(errno) +
                                                        "; name a root of yours with RINGSIDE_DIR"};
}

}  // namespace ringside::agent
