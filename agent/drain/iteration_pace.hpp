// How fast a process iterates, for who watches it: boundaries of the name that came first, as they are drained, captured or armed alike. What a
// capture of N iterations needs, and that is exact, is iteration_book's.
#pragma once

#include <cstdint>

#include "schema/ids.hpp"

namespace ringside::agent {

class IterationPace {
public:
    /// A boundary that is kept. @param number  n-th of its name in the process
    void take(schema::NameId name, std::uint64_t ticks, std::uint64_t number) {
        if (last_number_ == 0) name_ = name;
        if (name != name_) return;
        // One that was dropped lies between its neighbours. Another thread's may come late, and one that numbers anew begins anew.
        if (last_number_ != 0 && number > last_number_ && ticks > last_ticks_) {
            count_ += number - last_number_;
            length_ticks_ = (ticks - last_ticks_) / (number - last_number_);
        }
        last_ticks_ = ticks;
        last_number_ = number;
    }

    std::uint64_t count() const { return count_; }
    /// Of the last one; 0: none has been whole yet.
    std::uint64_t length_ticks() const { return length_ticks_; }

private:
    schema::NameId name_{};
    std::uint64_t last_ticks_ = 0;
    std::uint64_t last_number_ = 0;
    std::uint64_t count_ = 0;
    std::uint64_t length_ticks_ = 0;
};

}  // namespace ringside::agent
