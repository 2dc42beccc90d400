#include "tools/ringside/job_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "schema/control_page.hpp"
#include "tools/ringside/process.hpp"

namespace ringside::tools {

std::string read_small(int directory, const char* name) {
    std::array<char, 256> text{};
    const Descriptor file(::openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    const ssize_t size = ::read(file.number(), text.data(), text.size());
    return size > 0 ? std::string(text.data(), static_cast<std::size_t>(size)) : "";
}

pid_t holder_pid(int directory) {
    const std::string text = read_small(directory, schema::kLockFileName);
    const std::string mark = "pid ";
    const std::size_t at = text.find(mark);
    return at == std::string::npos ? -1
                                   : static_cast<pid_t>(std::atol(text.c_str() + at + mark.size()));
}

bool is_agent(pid_t pid) {
    std::array<char, 32> name{};
    const Descriptor file(
        ::open(("/proc/" + std::to_string(pid) + "/comm").c_str(), O_RDONLY | O_CLOEXEC));
    const ssize_t size = ::read(file.number(), name.data(), name.size() - 1);
    // The kernel keeps fifteen characters. In a bundle it is started by the loader that came with it (tools/README.md, 10).
    const std::string text = size > 0 ? name.data() : "";
    return text.rfind("ringside-agent", 0) == 0 || text.rfind("ld-linux", 0) == 0;
}

}  // namespace ringside::tools
