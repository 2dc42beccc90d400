#include "tools/ringside/signal_twin.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>

namespace ringside::tools {

namespace {

using Clock = std::chrono::steady_clock;

/// Whoever signals a tree of processes is through with it long before; who signals us alone waits this long for the command to hear of it.
constexpr std::chrono::milliseconds kPatience{100};

}  // namespace

SignalTwin::SignalTwin(const SignalGuard& signals) {
    std::array<int, 2> words{}, life{};
    if (::pipe2(words.data(), O_CLOEXEC) != 0) {
        return;
    }
    words_ = Descriptor(words[0]);
    Descriptor telling(words[1]);
    if (::pipe2(life.data(), O_CLOEXEC) != 0) {
        return;
    }
    Descriptor living(life[0]);
    life_ = Descriptor(life[1]);
    pid_ = ::fork();
    if (pid_ == 0) {
        life_.close();
        tell(signals.descriptor(), telling.number(), living.number());
    }
}

SignalTwin::~SignalTwin() {
    life_.close();
    if (pid_ > 0) {
        ::waitpid(pid_, nullptr, 0);
    }
}

/// The twin's whole life. The signals are blocked in it as they are in us; its descriptor reads those of the process that reads.
void SignalTwin::tell(int signals, int words, int life) {
    while (true) {
        std::array<pollfd, 2> waiting = {pollfd{signals, POLLIN, 0}, pollfd{life, POLLIN, 0}};
        ::poll(waiting.data(), waiting.size(), -1);
        if (waiting[1].revents != 0) {
            ::_exit(0);
        }
        signalfd_siginfo info{};
        while (::read(signals, &info, sizeof info) == sizeof info) {
            const auto number = static_cast<unsigned char>(info.ssi_signo);
            [[maybe_unused]] const ssize_t told = ::write(words, &number, 1);
        }
    }
}

bool SignalTwin::got_it_too(int signal) {
    const auto deadline = Clock::now() + kPatience;
    while (pid_ > 0) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd word{words_.number(), POLLIN, 0};
        if (left.count() <= 0 || ::poll(&word, 1, static_cast<int>(left.count())) <= 0) {
            return false;
        }
        unsigned char number = 0;
        if (::read(words_.number(), &number, 1) != 1) {
            return false;
        }
        if (number == signal) {
            return true;
        }
    }
    return false;
}

}  // namespace ringside::tools
