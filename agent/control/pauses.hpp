// When to try again: what ends again and again, or can't be started, gets ever longer pauses. Public.
#pragma once

#include <algorithm>
#include <chrono>

namespace ringside::agent {

class Pauses {
public:
    using Clock = std::chrono::steady_clock;

    bool over(Clock::time_point now = Clock::now()) const { return now >= next_; }
    int left_ms(Clock::time_point now = Clock::now()) const {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next_ - now);
        return std::max(0, static_cast<int>(left.count()) + 1);
    }
    void begin(Clock::time_point now = Clock::now()) {
        pause_ = now - next_ > kLong ? kShort : std::min(2 * pause_, kLong);
        next_ = now + pause_;
    }

private:
    static constexpr std::chrono::seconds kShort{1}, kLong{64};

    std::chrono::seconds pause_ = kShort;
    Clock::time_point next_ = Clock::now();
};

}  // namespace ringside::agent
