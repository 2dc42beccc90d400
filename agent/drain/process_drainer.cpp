#include "agent/drain/process_drainer.hpp"

#include <algorithm>

namespace ringside::agent {

DrainScope ProcessDrainer::scope(DrainBuffers& buffers, const TickRange& range,
                                 std::uint64_t now_ticks) {
    return DrainScope{*segment_, buffers,   names_,   halves_,          iterations_,
                      pace_,     accounts_, sealed_,  unknown_records_, index_,
                      keeping_,  range,     now_ticks};
}

void ProcessDrainer::start(std::uint32_t index) {
    index_ = index;
    keeping_ = true;
    names_.clear();
    halves_.clear();
    iterations_ = {};
    pace_ = {};
    accounts_.clear();
    forgotten_kept_ = forgotten_lost_ = bytes_ = 0;
    sealed_.clear();
    carries_.clear();
    unknown_records_ = 0;
    for (const auto& lane : lanes_) {
        if (lane) lane->start();
    }
}

void ProcessDrainer::resume(std::uint32_t index, std::vector<LaneAccount> accounts,
                            std::map<std::uint32_t, LaneCarry> carries, std::uint64_t bytes) {
    start(index);
    bytes_ = bytes;
    accounts_ = std::move(accounts);
    carries_ = std::move(carries);
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
        const auto carry = carries_.find(i);
        if (!lanes_[i] || carry == carries_.end()) continue;
        lanes_[i]->resume(carry->second, *segment_);
        carries_.erase(carry);
    }
}

void ProcessDrainer::adopt_lane(std::uint32_t index, const LaneView& view, bool fresh) {
    lanes_[index] = std::make_unique<LaneDrainer>(index, view, fresh, *segment_);
    const auto carry = carries_.find(index);
    if (carry == carries_.end()) return;
    lanes_[index]->resume(carry->second, *segment_);
    carries_.erase(carry);
}

void ProcessDrainer::adopt_lanes(bool fresh) {
    const auto pulse = segment_->pulse();
    if (!pulse) return;
    if (lanes_.size() < pulse->lanes_in_use) {
        lanes_.resize(pulse->lanes_in_use);
        refused_.resize(pulse->lanes_in_use);
    }
    if (lane_count_ == lanes_.size()) return;
    for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
        if (lanes_[i] || refused_[i]) continue;
        const auto view = segment_->lane(i);
        if (view && view->header == nullptr) continue;
        ++lane_count_;
        if (view) {
            adopt_lane(i, *view, fresh);
        } else {
            refused_[i] = true;
        }
    }
}

ProcessDrainer::Pass ProcessDrainer::drain(DrainBuffers& buffers, const TickRange& range,
                                           std::uint64_t now_ticks, bool fresh_lanes,
                                           std::size_t enough_bytes) {
    Pass pass;
    if (segment_ == nullptr) return pass;
    adopt_lanes(fresh_lanes);
    DrainScope shared = scope(buffers, range, now_ticks);
    shared.enough_bytes = enough_bytes;
    for (const auto& lane : lanes_) {
        if (!lane) continue;
        const std::uint32_t cells = lane->drain(shared);
        pass.cells += cells;
        pass.fullest =
            lane->pending_bytes() >= enough_bytes
                ? 1
                : std::max(pass.fullest, double(cells) / static_cast<double>(lane->room_cells()));
        pass.most_held =
            std::max(pass.most_held, double(lane->held_cells()) / double(lane->capacity_cells()));
        pass.waits |= lane->waits();
    }
    return pass;
}

void ProcessDrainer::drain_all(DrainBuffers& buffers, const TickRange& range,
                               std::uint64_t now_ticks, bool fresh_lanes) {
    // A lane holds one ring's worth, which one pass takes; a second finds what a wrap or a late word left. A third would mean that
    // somebody still writes, who is not there any more: hostile, and not waited for.
    constexpr int kPasses = 3;
    for (int i = 0; i < kPasses; ++i) {
        if (drain(buffers, range, now_ticks, fresh_lanes).cells == 0) break;
    }
}

void ProcessDrainer::seal(DrainBuffers& buffers, const TickRange& range, std::uint64_t now_ticks,
                          bool last) {
    if (segment_ == nullptr) return;
    DrainScope shared = scope(buffers, range, now_ticks);
    for (const auto& lane : lanes_) {
        if (lane) lane->seal(shared, last);
    }
}

std::size_t ProcessDrainer::pending_bytes() const {
    std::size_t bytes = 0;
    for (const Block& block : sealed_) bytes += block.data.size();
    for (const auto& lane : lanes_) {
        if (lane) bytes += lane->pending_bytes();
    }
    return bytes;
}

void ProcessDrainer::stop(DrainBuffers& buffers) {
    keeping_ = false;
    carries_.clear();
    iterations_.stop();
    settle_all(buffers, false, 0);
    if (segment_ == nullptr) return;
    for (const auto& lane : lanes_) {
        if (lane) lane->stop(*segment_);
    }
}

void ProcessDrainer::settle(DrainBuffers& buffers, std::span<const std::uint8_t> kept,
                            std::uint64_t now_ticks) {
    bool all = true;
    for (std::size_t i = 0; i < sealed_.size(); ++i) {
        Block& block = sealed_[i];
        LaneAccount& account = accounts_[block.account];
        all = all && kept[i] != 0;
        if (kept[i] != 0) {
            account.kept += block.records;
            bytes_ += block.data.size();
        } else {
            account.lose(block.records, block.base_ticks, now_ticks);
        }
        if (segment_ != nullptr) lanes_[block.lane.index]->settled(block, *segment_);
        buffers.spares.give(std::move(block.data));
    }
    sealed_.clear();
    halves_.settle(all);
}

void ProcessDrainer::begin_piece(std::uint64_t oldest_ticks) {
    names_.announce_again();
    halves_.forget_before(oldest_ticks);
    if (!sealed_.empty()) return;
    std::vector<LaneAccount> current;
    std::vector<bool> stays(accounts_.size());
    for (const auto& lane : lanes_) {
        if (!lane) continue;
        lane->renumber_account([&](std::size_t account) {
            stays[account] = true;
            current.push_back(accounts_[account]);
            return current.size() - 1;
        });
    }
    for (std::size_t i = 0; i < accounts_.size(); ++i) {
        if (stays[i]) continue;
        forgotten_kept_ += accounts_[i].kept;
        forgotten_lost_ += accounts_[i].lost;
    }
    accounts_ = std::move(current);
}

void ProcessDrainer::take_losses(
    const std::function<void(const LaneAccount&, const LossSpan&)>& take) {
    for (LaneAccount& account : accounts_) {
        if (account.recent.records != 0) take(account, account.recent);
        account.recent = {};
    }
}

std::uint64_t ProcessDrainer::kept() const {
    std::uint64_t kept = forgotten_kept_;
    for (const LaneAccount& account : accounts_) kept += account.kept;
    return kept;
}

std::uint64_t ProcessDrainer::lost() const {
    std::uint64_t lost = forgotten_lost_;
    for (const LaneAccount& account : accounts_) lost += account.lost;
    return lost;
}

bool ProcessDrainer::has_unread(bool fresh_lanes) {
    adopt_lanes(fresh_lanes);
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [&](const auto& lane) { return lane && lane->has_unread(*segment_); });
}

void ProcessDrainer::release_segment() {
    violations_ = segment_->violations();
    segment_ = nullptr;
    lanes_.clear();
}

}  // namespace ringside::agent
