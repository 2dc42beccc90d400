// Tasks that no process speaks for: by the notes that their launcher's side has left.
#include "agent/capture/unseen_tasks.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "agent/attach/file_handle.hpp"
#include "tests/unit/agent_data/engine_rig.hpp"

using namespace ringside;
using namespace ringside::agent;
using namespace ringside::agent::testing;

namespace {

constexpr std::int64_t kOld = 60'000;

FoundNote found(int pid, int rank, const std::string& why, std::vector<std::int32_t> ranks_here) {
    return {{pid, kForeignNamespace, rank, std::move(ranks_here), why, "/bin/task"}, true, kOld};
}

/// Nobody has a segment but those of these ranks.
std::vector<ProcessReport> unseen(const std::vector<FoundNote>& notes, std::vector<int> seen) {
    return unseen_tasks(notes, [&](const Selection& task) {
        return std::any_of(seen.begin(), seen.end(), [&](int rank) {
            return task.fits({0, 0, rank, "", true}) && !task.ranks.empty();
        });
    });
}

/// A note as `ringside wrap` leaves it, under its lock while it lives.
struct Note {
    FileHandle file;
    Note(const std::string& directory, const schema::TaskNote& note)
        : file(::open((directory + "/" + schema::task_note_name(note.pid, "0")).c_str(),
                      O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
        const std::string text = schema::text_of(note);
        REQUIRE(::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()));
        struct flock lock {};
        lock.l_type = F_WRLCK;
        REQUIRE(::fcntl(file.get(), F_OFD_SETLK, &lock) == 0);
    }
};

}  // namespace

TEST_CASE("note: it comes back as it was written") {
    const schema::TaskNote note{12, 4026531836, 7, {6, 7}, "static", "/opt/a program"};
    CHECK(schema::task_note_of(schema::text_of(note)) == note);
    CHECK(schema::task_note_of("nonsense\nrank x\n") == schema::TaskNote{});
    CHECK(schema::is_task_note("task-12.0"));
    CHECK_FALSE(schema::is_task_note("task-12.0.new"));
    CHECK_FALSE(schema::is_task_note("12.0.5"));
    CHECK(schema::is_task_note_of("task-12.0", "0"));
    CHECK(schema::is_task_note_of("task-12.0.new", "0"));
    CHECK_FALSE(schema::is_task_note_of("task-12.10", "0"));
    CHECK(schema::task_note_step("task-12.batch") == "batch");
}

TEST_CASE("unseen: a task that no preload reaches is told with its reason, at once") {
    FoundNote task = found(12, 7, "static", {7});
    task.age_ms = 0;
    const auto reports = unseen({task}, {});
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].verdict == Verdict::kNotInjected);
    CHECK(reports[0].reason == "static");
    CHECK(reports[0].pid == 12);
    CHECK(reports[0].rank == 7);
    CHECK(reports[0].executable == "/bin/task");
}

TEST_CASE(
    "unseen: a task without a word is told when it has had its time; seen or ended it is not") {
    CHECK(unseen({found(12, 7, "", {})}, {}).size() == 1);
    CHECK(unseen({found(12, 7, "", {})}, {7}).empty());
    FoundNote young = found(12, 7, "", {});
    young.age_ms = 500;
    CHECK(unseen({young}, {}).empty());
    FoundNote ended = found(12, 7, "static", {6, 7});
    ended.runs = false;
    CHECK(unseen({ended}, {}).empty());
}

TEST_CASE("unseen: a rank that its step has here and that left no note is told") {
    FoundNote ended = found(11, 5, "", {5, 6, 7});
    ended.runs = false;
    const auto reports = unseen({ended, found(12, 6, "", {5, 6, 7})}, {6});
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].rank == 7);
    CHECK(reports[0].reason.find("another user's?") != std::string::npos);
}

TEST_CASE("unseen: a task that records under another rank than its launcher's is no missing one") {
    const auto reports = unseen_tasks({found(12, 0, "", {0})}, [](const Selection& task) {
        return task.fits({12, 0, 8, "/bin/task", true});
    });
    CHECK(reports.empty());
}

TEST_CASE("unseen: a note of one step says nothing of the other's ranks") {
    FoundNote ended = found(11, 1, "", {0, 1}), other = found(12, 0, "", {0, 1});
    ended.runs = false;
    ended.step = "0";
    other.step = "1";
    const auto reports = unseen({ended, other}, {0});
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].rank == 1);
}

TEST_CASE("engine: a static task is in ps and in the capture, by its rank too, until it ends") {
    Node node;
    node.open();
    FakeSegment other(node.job, {.pid = 1});
    REQUIRE(node.sees(1));
    std::optional<Note> note;
    note.emplace(node.job, schema::TaskNote{12, kForeignNamespace, 7, {7}, "static", "/bin/task"});
    REQUIRE(node.engine->processes().size() == 2);
    CHECK(node.engine->processes()[1].verdict == Verdict::kNotInjected);
    CaptureRequest request = Node::request();
    request.selection.ranks = {7};
    REQUIRE(node.engine->prepare(request));
    const CaptureReport report = node.stop();
    REQUIRE(report.processes.size() == 1);
    CHECK(report.processes[0].rank == 7);
    CHECK(report.processes[0].reason == "static");
    note.reset();
    CHECK(node.engine->processes().size() == 1);
    request.id = 8;
    CHECK_FALSE(node.engine->prepare(request));
}
