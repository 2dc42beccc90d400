// What processes that ended without a word have left, and who removes it.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "inject/core/chosen.hpp"
#include "inject/core/process.hpp"
#include "inject/core/segment_file.hpp"
#include "sandbox.hpp"

using namespace ringside;
using inject::HookScope;
using schema::SourceId;
using test::Sandbox;
using test::SegmentView;

namespace {

void record_one() {
    HookScope hook;
    EXPECT(static_cast<bool>(hook));
    hook.lane().mark(SourceId::kApi, 0, hook.lane().intern_cached("one"), 1, 0);
}

/// A process that is killed after it has loaded.
void be_killed(const Sandbox& box, bool record) {
    box.run_killed(SIGKILL, [&] {
        EXPECT(box.load());
        if (record) record_one();
        raise(SIGKILL);
    });
}

void load_and_leave(const Sandbox& box) {
    box.run([&] {
        EXPECT(box.load());
        inject::close_segment();
    });
}

/// As large as the other, and with its first page: all of it would be gigabytes of zeros.
void copy_header(const std::string& from, const std::string& to) {
    char page[schema::kPageBytes];
    const int source = open(from.c_str(), O_RDONLY | O_CLOEXEC);
    const int target = open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    EXPECT(read(source, page, sizeof page) == static_cast<ssize_t>(sizeof page));
    EXPECT(write(target, page, sizeof page) == static_cast<ssize_t>(sizeof page));
    EXPECT(ftruncate(target, lseek(source, 0, SEEK_END)) == 0);
    close(source);
    close(target);
}

}  // namespace

TEST_CASE("stale segments: a killed process's goes when the next one starts") {
    Sandbox box;
    box.control();
    be_killed(box, false);
    CHECK(box.segments().size() == 1);
    load_and_leave(box);
    CHECK(box.segments().empty());
}

TEST_CASE("stale segments: one with a record in it stays for an agent") {
    Sandbox box;
    box.set_capture(true);
    be_killed(box, true);
    load_and_leave(box);
    CHECK(box.segments().size() == 1);
}

TEST_CASE("stale segments: a living process's stays") {
    Sandbox box;
    box.run([&] {
        EXPECT(box.load());
        load_and_leave(box);
        EXPECT(box.segments().size() == 1);
    });
}

TEST_CASE("stale segments: where an agent holds the directory others' are left to it") {
    Sandbox box;
    box.control();
    const int lock = open((box.job_directory() + "/lock").c_str(), O_RDWR | O_CREAT, 0600);
    REQUIRE(lock >= 0);
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    REQUIRE(fcntl(lock, F_OFD_SETLK, &whole) == 0);
    be_killed(box, false);
    load_and_leave(box);
    CHECK(box.segments().size() == 1);
    close(lock);
    load_and_leave(box);
    CHECK(box.segments().empty());
}

TEST_CASE("stale segments: the process's own of before an exec goes, agent or not") {
    Sandbox box;
    box.control();
    box.run([&] {
        const std::string mine =
            std::to_string(inject::pid_namespace()) + "." + std::to_string(getpid()) + ".7";
        EXPECT(box.load());
        // As exec leaves it: whole, with our pid, and no mapping of it any more.
        const auto before = box.segments();
        EXPECT(before.size() == 1);
        copy_header(before[0], box.job_directory() + "/" + mine);
        EXPECT(box.segments().size() == 2);
        EXPECT(box.load());
        EXPECT(!std::filesystem::exists(box.job_directory() + "/" + mine));
    });
}

TEST_CASE("stale segments: other namespaces' and other files are not touched") {
    Sandbox box;
    box.control();
    const std::string names[] = {"1.1.1", "1.2", "note", "99999999999999999999999.1.1", "1..1"};
    for (const std::string& name : names)
        close(open((box.job_directory() + "/" + name).c_str(), O_RDWR | O_CREAT, 0600));
    load_and_leave(box);
    for (const std::string& name : names)
        CHECK(std::filesystem::exists(box.job_directory() + "/" + name));
}

TEST_CASE("chosen: patterns match the last part, or with a slash the whole path") {
    using inject::matches_one;
    const char* path = "/usr/bin/python3.11";
    for (const char* yes :
         {"python3.11", "*", "python*", "*3.11", "py?hon*1", "/usr/bin/python3.11", "/usr/*",
          "a:b,python3.11", "*/python*", "*p*t*3*1*"}) {
        CAPTURE(yes);
        CHECK(matches_one(yes, path));
    }
    for (const char* no : {"", ":", "python3.1", "ython3.11", "python3.11?", "/python*",
                           "bin/python3.11", "a:b", "?"}) {
        CAPTURE(no);
        CHECK(!matches_one(no, path));
    }
    CHECK(!matches_one("a*", ""));
    CHECK(matches_one("*", ""));
}
