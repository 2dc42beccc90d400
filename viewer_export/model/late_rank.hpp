// Who of a group is late: one that is last more often than chance would have it, whose lateness is time that the others lose, and is of its own making.
#pragma once

#include "viewer_export/model/collectives.hpp"

namespace ringside::viewer_export::model {

/// A capture's parts, each of as many collectives: what happens in one says little of the next collective's chances, but of the next part's.
inline constexpr std::size_t kParts = 20;
/// One in so many captures in which all ranks are alike may have its verdict by chance.
inline constexpr double kChance = 1.0 / 1000;
/// Lateness counts from this share of the time between two collectives on.
inline constexpr double kShare = 0.05;

/// Sums up each group's collectives, and gives its verdict.
void find_late_ranks(Collectives& collectives);

}  // namespace ringside::viewer_export::model
