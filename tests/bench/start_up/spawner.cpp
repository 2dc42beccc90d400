// Starts a command thousands of times and waits for each, under one preload after the other: A B C A B C ... posix_spawn() and nothing
// between it and the wait, since a launcher that is slower than the program hides what is looked for.
//
//   spawner ROUNDS PRELOAD... -- COMMAND...        PRELOAD: a library, or - for none
//
// Prints a line for each round: microseconds from the spawn to the end, one column for each preload. Each round has an order of its own, since
// whoever comes after a big program finds cold caches.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr int kWarmUp = 20;

class Variant {
public:
    explicit Variant(const char* preload) {
        for (char** entry = environ; *entry != nullptr; ++entry) {
            if (std::strncmp(*entry, "LD_PRELOAD=", 11) != 0) environment_.push_back(*entry);
        }
        preload_ = std::string("LD_PRELOAD=") + preload;
        if (std::strcmp(preload, "-") != 0) environment_.push_back(preload_.data());
        environment_.push_back(nullptr);
    }
    Variant(const Variant&) = delete;
    Variant& operator=(const Variant&) = delete;

    /// @return microseconds, or a negative number where the command did not run and end with 0
    double run(char** command, const posix_spawn_file_actions_t& files) {
        const auto start = std::chrono::steady_clock::now();
        pid_t pid = 0;
        int status = 0;
        if (posix_spawn(&pid, command[0], &files, nullptr, command, environment_.data()) != 0 ||
            waitpid(pid, &status, 0) != pid)
            return -1;
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - start;
        return status == 0 ? took.count() : -1;
    }

private:
    std::string preload_;
    std::vector<char*> environment_;
};

}  // namespace

int main(int count, char** arguments) {
    int divider = 2;
    while (divider < count && std::strcmp(arguments[divider], "--") != 0) ++divider;
    if (count < 5 || divider + 1 >= count) {
        std::fprintf(stderr, "usage: spawner ROUNDS PRELOAD... -- COMMAND...\n");
        return 2;
    }
    const int rounds = std::atoi(arguments[1]);
    char** command = arguments + divider + 1;
    std::vector<std::unique_ptr<Variant>> variants;
    for (int i = 2; i < divider; ++i) variants.push_back(std::make_unique<Variant>(arguments[i]));
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);

    std::vector<double> took(variants.size());
    std::vector<std::size_t> order(variants.size());
    std::iota(order.begin(), order.end(), 0u);
    std::mt19937 random(1);
    for (int round = -kWarmUp; round < rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        for (const std::size_t which : order) {
            took[which] = variants[which]->run(command, files);
            if (took[which] < 0) {
                std::fprintf(stderr, "spawner: %s did not run well under %s\n", command[0],
                             arguments[2 + which]);
                return 1;
            }
        }
        if (round < 0) continue;
        for (std::size_t i = 0; i < took.size(); ++i)
            std::printf("%s%.2f", i == 0 ? "" : " ", took[i]);
        std::printf("\n");
    }
    return 0;
}
