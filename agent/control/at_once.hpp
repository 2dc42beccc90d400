// Many agents at the same time, for each may keep silent for seconds. Public: what the command and the metrics ask with.
#pragma once

#include <cstddef>
#include <functional>

namespace ringside::agent {

/// So many wait at the same time: a stopped agent costs whoever asks a hundred of them what it costs to ask one.
inline constexpr std::size_t kMostAtOnce = 128;

/// Does `work(n)` for each n below `count`, up to kMostAtOnce at the same time; returns when all are done. Where no more threads can be made, those
/// that there are do it, the caller's at the least. What a `work` throws is thrown here, once all are done.
/// @param work  called from several threads
/// @param told  after each: how many are done; from several threads, one at a time; may be empty
void at_once(std::size_t count, const std::function<void(std::size_t)>& work,
             const std::function<void(std::size_t done)>& told = {});

}  // namespace ringside::agent
