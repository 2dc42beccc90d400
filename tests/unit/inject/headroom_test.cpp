// A memory cgroup's headroom, in files of the test's own.
#include "inject/core/headroom.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

using ringside::inject::cgroups_allow;

namespace {

constexpr std::uint64_t kMib = 1u << 20;

/// A mount with groups, and a membership file.
class Groups {
public:
    Groups() {
        char name[] = "/tmp/rs-headroom-XXXXXX";
        root_ = mkdtemp(name);
    }
    ~Groups() { std::filesystem::remove_all(root_); }
    Groups(const Groups&) = delete;
    Groups& operator=(const Groups&) = delete;

    void write(const std::string& path, const std::string& text) const {
        std::filesystem::create_directories(
            (root_ + "/" + path).substr(0, (root_ + "/" + path).rfind('/')));
        std::ofstream(root_ + "/" + path) << text;
    }
    void belongs_to(const std::string& lines) const { write("membership", lines); }
    void v2(const std::string& group, const std::string& limit, std::uint64_t used,
            std::uint64_t inactive) const {
        write("mount" + group + "/memory.max", limit + "\n");
        write("mount" + group + "/memory.current", std::to_string(used) + "\n");
        // As long as the kernel's: what is looked for stands beyond one read.
        std::string stat = "anon 1\nfile 2\n";
        for (int i = 0; i < 40; ++i) stat += "workingset_something_" + std::to_string(i) + " 7\n";
        write("mount" + group + "/memory.stat", stat + "total_inactive_file 1\ninactive_file " +
                                                    std::to_string(inactive) + "\nactive_file 9\n");
    }
    bool allow(std::uint64_t bytes) const {
        return cgroups_allow(bytes, (root_ + "/mount").c_str(), (root_ + "/membership").c_str());
    }

private:
    std::string root_;
};

std::string number(std::uint64_t value) {
    return std::to_string(value);
}

}  // namespace

TEST_CASE("headroom: without a membership, or without a limit, all is allowed") {
    const Groups groups;
    CHECK(groups.allow(1ull << 40));
    groups.belongs_to("0::/job\n");
    CHECK(groups.allow(1ull << 40));
    groups.v2("/job", "max", 5 * kMib, 0);
    CHECK(groups.allow(1ull << 40));
}

TEST_CASE("headroom: up to the limit less its margin, and not a byte more") {
    const Groups groups;
    groups.belongs_to("3:cpu,cpuacct:/job/step\n2:name=systemd:/job\n0::/job\n");
    groups.v2("/job", number(64 * kMib), 40 * kMib, 0);
    CHECK(groups.allow(20 * kMib));
    CHECK_FALSE(groups.allow(20 * kMib + 1));
    groups.v2("/job", number(64 * kMib), 65 * kMib, 0);
    CHECK_FALSE(groups.allow(0));
}

TEST_CASE("headroom: page cache that the kernel would give up does not count") {
    const Groups groups;
    groups.belongs_to("0::/job\n");
    groups.v2("/job", number(64 * kMib), 60 * kMib, 20 * kMib);
    CHECK(groups.allow(20 * kMib));
    CHECK_FALSE(groups.allow(20 * kMib + 1));
}

TEST_CASE("headroom: each group above counts, up to the mount") {
    const Groups groups;
    groups.belongs_to("0::/user/job//step/\n");
    groups.v2("/user/job/step", "max", kMib, 0);
    groups.v2("/user/job", number(512 * kMib), kMib, 0);
    CHECK(groups.allow(100 * kMib));
    groups.v2("/user", number(64 * kMib), kMib, 0);
    CHECK_FALSE(groups.allow(100 * kMib));
    groups.v2("/user", "max", kMib, 0);
    groups.v2("", number(64 * kMib), kMib, 0);
    CHECK_FALSE(groups.allow(100 * kMib));
}

TEST_CASE("headroom: the first version's controller, with its own names") {
    const Groups groups;
    groups.belongs_to("5:devices:/\n4:memory:/job\n0::/\n");
    groups.write("mount/memory/job/memory.limit_in_bytes", number(64 * kMib));
    groups.write("mount/memory/job/memory.usage_in_bytes", number(60 * kMib));
    CHECK_FALSE(groups.allow(20 * kMib));
    groups.write("mount/memory/job/memory.stat",
                 "inactive_file 0\ntotal_inactive_file " + number(20 * kMib) + "\n");
    CHECK(groups.allow(20 * kMib));
    CHECK_FALSE(groups.allow(20 * kMib + 1));
}
