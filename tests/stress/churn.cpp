// Processes and threads that come and go in every way, and number what they record. Nothing in here knows of captures.
//
//   churn root BOARD PLUGIN STEADY     starts STEADY steady processes, then makes and ends others while the board says so; README.md
//   churn steady BOARD PLUGIN          lives through all rounds; its threads come and go
//   churn leaf BOARD PLUGIN LIFE       one short life
#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "inject/sources/api/ringside.h"
#include "tests/stress/board.hpp"

extern char** environ;

namespace ringside::stress {
namespace {

Board* board;
const char* self;
const char* board_path;
const char* plugin_path;

enum Life : std::uint32_t {
    kReturns,        // from main
    kExits,          // by _exit()
    kKilled,         // by SIGKILL
    kThreads,        // that it joins
    kLeavesThreads,  // which record while it exits
    kExecutes,       // itself
    kExecutesAmongThreads,
    kPlugins,  // dlopen(), dlclose()
    kFloods,   // more than a small lane holds
    kForks,    // a child of its own
    kNothing,
    kLives
};

ringside_attributes with(std::uint64_t payload) {
    ringside_attributes attributes{};
    attributes.size = sizeof attributes;
    attributes.payload_type = RINGSIDE_UNSIGNED;
    attributes.payload.u = payload;
    return attributes;
}

void mark(std::uint64_t payload) {
    const ringside_attributes attributes = with(payload);
    ringside_mark_with("churn mark", &attributes);
}

void range(std::uint64_t payload) {
    const ringside_attributes attributes = with(payload);
    ringside_range_push_with("churn range", &attributes);
    ringside_range_pop();
}

void burst(Recorder& recorder, std::uint32_t count) {
    recorder.record(count, mark, range);
}

void pause_us(std::uint32_t us) {
    const timespec time{0, static_cast<long>(us) * 1000};
    nanosleep(&time, nullptr);
}

bool going() {
    return board->round.load() == 1;
}

void short_thread() {
    Recorder recorder(board);
    burst(recorder, 1 + recorder.random(40));
    recorder.rest();
}

/// Records until the process ends under it; not for ever.
void left_thread() {
    Recorder recorder(board);
    for (int i = 0; i < 200; ++i) {
        burst(recorder, 4);
        pause_us(100);
    }
    recorder.rest();
}

void use_plugin(Recorder& recorder) {
    void* const plugin = dlopen(plugin_path, RTLD_NOW);
    if (plugin == nullptr) {
        std::fprintf(stderr, "%s\n", dlerror());
        std::_Exit(3);
    }
    void (*plugin_mark)(std::uint64_t) = nullptr;
    void (*plugin_range)(std::uint64_t) = nullptr;
    void* symbol = dlsym(plugin, "plugin_mark");
    std::memcpy(&plugin_mark, &symbol, sizeof symbol);
    symbol = dlsym(plugin, "plugin_range");
    std::memcpy(&plugin_range, &symbol, sizeof symbol);
    recorder.record(1 + recorder.random(10), plugin_mark, plugin_range);
    dlclose(plugin);
}

std::vector<char*> leaf_words(std::string& life) {
    return {const_cast<char*>(self),
            const_cast<char*>("leaf"),
            const_cast<char*>(board_path),
            const_cast<char*>(plugin_path),
            life.data(),
            nullptr};
}

[[noreturn]] void execute(Life life) {
    std::string text = std::to_string(life);
    execv(self, leaf_words(text).data());
    std::_Exit(3);
}

void await(pid_t child) {
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    const bool well = (WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
                      (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    if (!well) {
        std::fprintf(stderr, "pid %d ended with status %#x\n", child, status);
        std::_Exit(4);
    }
}

/// One life, from its first record to its end.
[[noreturn]] void live(std::uint32_t life) {
    board->lives.fetch_add(1);
    if (life == kNothing) std::exit(0);
    Recorder recorder(board);
    burst(recorder, 1 + recorder.random(100));
    std::vector<std::thread> threads;
    if (life == kThreads || life == kLeavesThreads || life == kExecutesAmongThreads) {
        for (std::uint32_t i = 0; i < 1 + recorder.random(4); ++i) {
            threads.emplace_back(life == kThreads ? short_thread : left_thread);
        }
    }
    if (life == kPlugins) {
        for (int i = 0; i < 5; ++i) use_plugin(recorder);
    }
    if (life == kFloods) burst(recorder, 4000);
    if (life == kForks) {
        const pid_t child = fork();
        if (child == 0) live(kReturns + recorder.random(3));
        await(child);
        burst(recorder, 10);
    }
    recorder.rest();
    if (life == kThreads) {
        for (std::thread& thread : threads) thread.join();
    }
    for (std::thread& thread : threads) {
        if (thread.joinable()) thread.detach();
    }
    if (life == kExits) std::_Exit(0);
    if (life == kKilled) raise(SIGKILL);
    if (life == kExecutes || life == kExecutesAmongThreads) execute(kReturns);
    std::exit(0);
}

/// Until the end: records while a round is on, rests between two.
template <typename Turn>
void turns(Turn turn) {
    Recorder recorder(board);
    while (board->round.load() != 2) {
        if (!going()) {
            recorder.rest();
            board->resting.fetch_add(1);
            while (board->round.load() == 0) pause_us(1000);
            board->resting.fetch_sub(1);
            continue;
        }
        turn(recorder);
    }
    recorder.rest();
}

void steady_turn(Recorder& recorder) {
    burst(recorder, 1 + recorder.random(20));
    if (recorder.random(100) == 0) burst(recorder, 2000);
    pause_us(500 + recorder.random(4000));
}

void threads_turn(Recorder& recorder) {
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < 1 + recorder.random(6); ++i) threads.emplace_back(short_thread);
    burst(recorder, 3);
    for (std::thread& thread : threads) thread.join();
    use_plugin(recorder);
    pause_us(2000 + recorder.random(10000));
}

int steady() {
    // Whatever ends the root, or the test that started it: nobody goes on without it.
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() == 1) return 5;
    board->lives.fetch_add(1);
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) threads.emplace_back([] { turns(steady_turn); });
    turns(threads_turn);
    for (std::thread& thread : threads) thread.join();
    return 0;
}

/// Begins one other process, somehow.
pid_t begin_life(Recorder& recorder) {
    const std::uint32_t life = recorder.random(kLives);
    std::string text = std::to_string(life);
    const std::vector<char*> words = leaf_words(text);
    pid_t child = 0;
    switch (recorder.random(4)) {
        case 0:
            child = fork();
            if (child == 0) live(life);
            return child;
        case 1:
            child = vfork();
            if (child == 0) {
                execv(self, words.data());
                _exit(3);
            }
            return child;
        case 2:
            return posix_spawn(&child, self, nullptr, nullptr, words.data(), environ) == 0 ? child
                                                                                           : -1;
        default: {
            char* none[] = {const_cast<char*>("true"), nullptr};
            return posix_spawn(&child, "/bin/true", nullptr, nullptr, none, environ) == 0 ? child
                                                                                          : -1;
        }
    }
}

void root_turn(Recorder& recorder) {
    pid_t children[3] = {};
    for (pid_t& child : children) {
        child = begin_life(recorder);
        if (child < 0) std::_Exit(5);
        burst(recorder, 1 + recorder.random(5));
    }
    for (const pid_t child : children) await(child);
}

int root(int steadies) {
    const std::vector<char*> words = {const_cast<char*>(self), const_cast<char*>("steady"),
                                      const_cast<char*>(board_path), const_cast<char*>(plugin_path),
                                      nullptr};
    std::vector<pid_t> children(static_cast<std::size_t>(steadies));
    for (pid_t& child : children) {
        if (posix_spawn(&child, self, nullptr, nullptr, words.data(), environ) != 0) return 5;
        std::printf("steady %d\n", child);
    }
    std::fflush(stdout);
    // Forks come from among threads.
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back([] { turns(steady_turn); });
    turns(root_turn);
    for (std::thread& thread : threads) thread.join();
    for (const pid_t child : children) await(child);
    return 0;
}

}  // namespace
}  // namespace ringside::stress

int main(int count, char** words) {
    using namespace ringside::stress;
    if (count < 4) return 2;
    self = words[0];
    board_path = words[2];
    plugin_path = words[3];
    board = map_board(board_path);
    if (std::strcmp(words[1], "steady") == 0) return steady();
    if (count < 5) return 2;
    const int number = std::atoi(words[4]);
    if (std::strcmp(words[1], "root") == 0) return root(number);
    live(static_cast<std::uint32_t>(number));
}
