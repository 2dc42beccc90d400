// Buffers of blocks that have been written, for those to come: one pool for all lanes of all processes, so that what lies idle has a bound however many there
// are. Header only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ringside::agent {

class SpareBuffers {
public:
    /// What lies idle at most; what is given beyond that is freed.
    static constexpr std::size_t kMostBytes = std::size_t{4} << 20;

    /// @return an empty one, with room where there was a spare
    std::vector<std::uint8_t> take() {
        if (spares_.empty()) return {};
        std::vector<std::uint8_t> buffer = std::move(spares_.back());
        spares_.pop_back();
        bytes_ -= buffer.capacity();
        return buffer;
    }
    void give(std::vector<std::uint8_t> buffer) {
        if (buffer.capacity() == 0 || bytes_ + buffer.capacity() > kMostBytes) return;
        buffer.clear();
        bytes_ += buffer.capacity();
        spares_.push_back(std::move(buffer));
    }
    /// Frees them all.
    void release() {
        spares_ = {};
        bytes_ = 0;
    }
    /// Of their capacities.
    std::size_t bytes() const { return bytes_; }

private:
    std::vector<std::vector<std::uint8_t>> spares_;
    std::size_t bytes_ = 0;
};

}  // namespace ringside::agent
