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
    if (::pipe2(words.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
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

void SignalTwin::read_words() {
    std::array<unsigned char, 64> numbers{};
    ssize_t count = 0;
    while ((count = ::read(words_.number(), numbers.data(), numbers.size())) > 0) {
        for (ssize_t i = 0; i < count; ++i) {
            told_[numbers[static_cast<std::size_t>(i)] % told_.size()] = Clock::now();
        }
    }
}

void SignalTwin::forget() {
    read_words();
    told_.fill({});
}

bool SignalTwin::got_it_too(int signal) {
    // An older word is of another one: signals of one number are merged where they wait.
    constexpr std::chrono::seconds kOld{1};
    const auto deadline = Clock::now() + kPatience;
    Time& told = told_.at(static_cast<std::size_t>(signal));
    while (pid_ > 0) {
        read_words();
        if (told != Time() && Clock::now() - told < kOld) {
            told = {};
            return true;
        }
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        pollfd word{words_.number(), POLLIN, 0};
        if (left.count() <= 0 || ::poll(&word, 1, static_cast<int>(left.count())) <= 0 ||
            (word.revents & POLLIN) == 0) {
            return false;
        }
    }
    return false;
}

}  // namespace ringside::tools
