#include "agent/resident/unused.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <utility>

#include "agent/attach/file_handle.hpp"
#include "agent/control/job_folder.hpp"

namespace ringside::agent {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};
constexpr int kLooksWithoutTasks = 5;

}  // namespace

bool is_unused(const EngineStatus& engine, const FolderState& folder) {
    return engine.processes == 0 && !folder.segments && !folder.tasks &&
           (folder.steps || !(engine.capturing || engine.window));
}

Unused::Unused(const Engine& engine)
    : engine_(engine),
      path_(engine.options().root + "/" + engine.options().job),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Unused::run(const std::stop_token& stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    int looks = 0;
    while (!never.wait_for(lock, stop, kBetweenLooks, [&] { return stop.stop_requested(); })) {
        // Gone: the engine makes it again.
        const FileHandle folder(
            ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
        if (!folder) continue;
        const FolderState state = look_at_folder(folder.get());
        looks = is_unused(engine_.status(), state) ? looks + 1 : 0;
        if (looks < (state.steps ? 1 : kLooksWithoutTasks)) continue;
        auto election = FileLock::open(folder.get(), kElectionName);
        if (!election || election->take(false) != FileLock::Answer::kTaken ||
            !is_unused(engine_.status(), look_at_folder(folder.get())))
            continue;
        election_ = std::move(*election);
        ::kill(::getpid(), SIGTERM);
        return;
    }
}

FileLock Unused::end() {
    thread_ = std::jthread();  // ends it and waits
    return std::move(election_);
}

}  // namespace ringside::agent
