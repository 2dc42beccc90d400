#include "agent/control/unsent_letters.hpp"

#include <mutex>
#include <unordered_map>

namespace ringside::agent {

struct UnsentLetters::State {
    std::mutex mutex;
    std::unordered_map<std::string, std::size_t> of;
    std::size_t all = 0;
};

UnsentLetters::UnsentLetters() : state_(std::make_shared<State>()) {}

std::shared_ptr<void> UnsentLetters::hold(const std::string& identity, std::size_t bytes) {
    {
        const std::lock_guard lock(state_->mutex);
        std::size_t& own = state_->of[identity];
        if (own > (state_->all > kMostUnsentOfAll ? kUnsentInACrowd : kMostUnsent)) return nullptr;
        own += bytes;
        state_->all += bytes;
    }
    return {state_.get(), [state = state_, identity, bytes](void*) {
                const std::lock_guard lock(state->mutex);
                const auto own = state->of.find(identity);
                state->all -= bytes;
                if ((own->second -= bytes) == 0) state->of.erase(own);
            }};
}

std::shared_ptr<void> UnsentBytes::hold(std::size_t bytes) {
    if (held_->fetch_add(bytes, std::memory_order_relaxed) + bytes > most_) {
        held_->fetch_sub(bytes, std::memory_order_relaxed);
        return nullptr;
    }
    return {held_.get(),
            [held = held_, bytes](void*) { held->fetch_sub(bytes, std::memory_order_relaxed); }};
}

}  // namespace ringside::agent
