// What the resident agent goes by: locks, what lies in a directory, when to try again. Its processes: tests/integration/resident.py.
#include "agent/resident/resident.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "agent/resident/unused.hpp"
#include "folder.hpp"
#include "schema/control_page.hpp"

namespace fs = std::filesystem;

namespace ringside::agent::test {
namespace {

FileHandle opened(const std::string& path) {
    return FileHandle(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// A job directory with files in it.
class Job {
public:
    Job() : handle_(opened(folder_.path())) {}
    void put(const std::string& name) const { std::ofstream(folder_.path() + "/" + name) << "x"; }
    FileLock hold(const std::string& name, bool shared = false) const {
        auto lock = FileLock::open(handle_.get(), name);
        REQUIRE(lock);
        REQUIRE(lock->take(shared) == FileLock::Answer::kTaken);
        return std::move(*lock);
    }
    FolderState state() const { return look_at_folder(handle_.get()); }
    bool goes() const {
        remove_job_folder(handle_.get(), folder_.path());
        return !fs::exists(folder_.path());
    }
    int descriptor() const { return handle_.get(); }
    const std::string& path() const { return folder_.path(); }

private:
    Folder folder_;
    FileHandle handle_;
};

TEST_CASE("resident: the root is one agent's, and the next is told whose") {
    const Folder root;
    auto first = Resident::open(root.path(), "a");
    REQUIRE(first);
    const auto second = Resident::open(root.path(), "b");
    REQUIRE_FALSE(second);
    CHECK(second.error().code == schema::ErrorCode::kRefused);
    CHECK(second.error().message.find("pid " + std::to_string(::getpid()) + " of node a is it") !=
          std::string::npos);
}

TEST_CASE("resident: a root that others may write to is refused") {
    const Folder root;
    fs::permissions(root.path(), fs::perms::all);
    const auto resident = Resident::open(root.path(), "a");
    REQUIRE_FALSE(resident);
    CHECK(resident.error().code == schema::ErrorCode::kRefused);
}

TEST_CASE("resident: one that ends leaves nothing, and the root is free") {
    const Folder root;
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    const FileHandle reading(ends[0]);
    FileHandle(ends[1]).reset();  // so that it is to stop at once
    auto first = Resident::open(root.path(), "a");
    REQUIRE(first);
    const auto job = first->serve(reading.get());
    REQUIRE(job);
    CHECK_FALSE(*job);
    CHECK(fs::is_empty(root.path()));
    CHECK(Resident::open(root.path(), "b"));
}

TEST_CASE("resident: what `ringside run` makes for itself is not its") {
    CHECK(is_residents_job("4711"));
    CHECK(is_residents_job("4711.n1"));
    CHECK(is_residents_job("default"));
    CHECK(is_residents_job("run-prte-host-1"));
    CHECK_FALSE(is_residents_job("run-4711"));
    CHECK_FALSE(is_residents_job("a job"));
}

TEST_CASE("job folder: who uses it is told by locks and segments") {
    const Job job;
    job.put(schema::kControlFileName);
    job.put(schema::kLockFileName);
    CHECK_FALSE(job.state().agent);
    {
        const FileLock agents = job.hold(schema::kLockFileName);
        CHECK(job.state().agent);
    }
    job.put("step-0");
    CHECK(job.state().steps);
    CHECK_FALSE(job.state().tasks);
    {
        const FileLock task = job.hold("step-0", true);
        CHECK(job.state().tasks);
    }
    CHECK_FALSE(job.state().segments);
    job.put("1.2.3");
    CHECK(job.state().segments);
    CHECK_FALSE(job.state().others);
    job.put(schema::kCaptureNoteName);
    CHECK(job.state().others);
}

TEST_CASE("job folder: it goes when it is nobody's") {
    const Job job;
    for (const char* name : {"election", "agent.step", "agent.log", "agent.wish", "agent.sock",
                             "lock", "control", "budget", "step-0", "task-1.0"})
        job.put(name);
    CHECK(job.goes());
}

TEST_CASE("job folder: it stays with an agent, a task, a segment, a capture") {
    const Job job;
    {
        const FileLock agents = job.hold(schema::kLockFileName);
        CHECK_FALSE(job.goes());
    }
    {
        const FileLock task = job.hold("task-1.0");
        CHECK_FALSE(job.goes());
    }
    for (const char* name : {"1.2.3", "capture", "window.1"}) {
        job.put(name);
        CHECK_FALSE(job.goes());
        CHECK(fs::exists(job.path() + "/" + schema::kLockFileName));  // nothing of it has gone
        fs::remove(job.path() + "/" + name);
    }
    CHECK(job.goes());
}

TEST_CASE("job folder: a wish is read as it was written, and what does not check is left out") {
    const Job job;
    CHECK(read_wish(job.descriptor()) == AgentWish{});
    const AgentWish wish{"4242_7", "n1_7", "/var/tmp/my dumps"};
    write_wish(job.descriptor(), wish);
    CHECK(read_wish(job.descriptor()) == wish);
    write_wish(job.descriptor(), {"../x", "a/b", "here"});
    CHECK(read_wish(job.descriptor()) == AgentWish{});
}

TEST_CASE("unused: a wrapped job is over with its tasks, another with its capture") {
    EngineStatus engine;
    FolderState folder;
    CHECK(is_unused(engine, folder));
    engine.capturing = true;
    CHECK_FALSE(is_unused(engine, folder));
    folder.steps = true;
    CHECK(is_unused(engine, folder));
    folder.tasks = true;
    CHECK_FALSE(is_unused(engine, folder));
    folder.tasks = false;
    folder.segments = true;
    CHECK_FALSE(is_unused(engine, folder));
    folder.segments = false;
    engine.processes = 1;  // in a directory that somebody has emptied
    CHECK_FALSE(is_unused(engine, folder));
    engine = {};
    engine.window.emplace();
    folder.steps = false;
    CHECK_FALSE(is_unused(engine, folder));
}

TEST_CASE("pauses: ever longer, up to a minute, and short again after a good while") {
    using std::chrono::seconds;
    Pauses pauses;
    auto now = Pauses::Clock::now();
    CHECK(pauses.over(now));
    seconds before{0};
    for (int i = 0; i < 10; ++i) {
        pauses.begin(now);
        CHECK_FALSE(pauses.over(now));
        const seconds pause{pauses.left_ms(now) / 1000};
        CHECK(pause >= before);
        CHECK(pause <= seconds(64));
        before = pause;
        now += pause;
        CHECK(pauses.over(now));
    }
    CHECK(before == seconds(64));
    now += seconds(65);
    pauses.begin(now);
    CHECK(pauses.left_ms(now) == 1001);
}

}  // namespace
}  // namespace ringside::agent::test
