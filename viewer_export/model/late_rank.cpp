#include "viewer_export/model/late_rank.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace ringside::viewer_export::model {
namespace {

/// Where a member came last.
struct Times {
    Durations gaps;
    Durations excess;
};

/// The last one's own time less the median of the others'. @return none where one is unknown
std::optional<std::int64_t> excess(const Arrival* first, const Arrival* last) {
    if (last->own_ns < 0) return {};
    Durations others;
    for (const Arrival* each = first; each != last; ++each) {
        if (each->own_ns < 0) return {};
        others.add(each->own_ns);
    }
    return last->own_ns - *others.percentile(50);
}

/// In how many of the parts one is found most often. @param found  of each complete collective the member; -1: undetermined
std::uint64_t parts_of(const std::vector<std::int32_t>& found, std::size_t parts,
                       std::int32_t one) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < parts; ++i) {
        std::map<std::int32_t, std::size_t> times;
        for (std::size_t k = i * found.size() / parts; k < (i + 1) * found.size() / parts; ++k)
            ++times[found[k]];
        count += std::all_of(times.begin(), times.end(), [&](const auto& each) {
            return each.first == one || each.second < times[one];
        });
    }
    return count;
}

Late verdict_of(const CollectiveGroup& group) {
    const LateRank& late = group.late;
    if (group.size < 2) return Late::kAlone;
    if (late.complete == 0) return Late::kIncomplete;
    // The same rank is last now and again in a row for no reason but its core's other work: that makes parts of a capture, and few of them.
    if (2 * late.parts_last <= late.parts ||
        at_least(late.parts_last, late.parts, 1.0 / group.size) * group.size > kChance)
        return 2 * late.undetermined > late.complete ? Late::kClocks : Late::kChance;
    if (static_cast<double>(late.gap_ns) < kShare * static_cast<double>(late.period_ns))
        return Late::kSmall;
    return 2 * late.excess_ns < late.gap_ns ? Late::kCameOut : Late::kNamed;
}

}  // namespace

double at_least(std::uint64_t hits, std::uint64_t trials, double chance) {
    if (hits == 0) return 1;
    if (hits > trials) return 0;
    const auto n = static_cast<double>(trials);
    const auto k = static_cast<double>(hits);
    if (k <= n * chance) return 1;  // as good as: it is above a third then
    // Beyond the mean each term is less than the one before.
    double term = std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                           k * std::log(chance) + (n - k) * std::log1p(-chance));
    double sum = 0;
    for (double i = k; i <= n && term > sum * 1e-12; ++i) {
        sum += term;
        term *= (n - i) / (i + 1) * chance / (1 - chance);
    }
    return std::min(sum, 1.0);
}

void find_late_ranks(Collectives& collectives) {
    auto at = collectives.all.begin();
    for (Index i = 0; i < collectives.groups.size(); ++i) {
        CollectiveGroup& group = collectives.groups[i];
        std::vector<Times> times(group.members.size());
        std::vector<std::int64_t> arrivals;
        std::vector<std::int32_t> found;
        for (; at != collectives.all.end() && at->group == i; ++at) {
            arrivals.push_back((collectives.end(*at) - 1)->begin_ns);
            group.late.complete += at->complete;
            const Arrival* const last = collectives.last(*at);
            if (last == nullptr) {
                group.late.undetermined += at->complete;
                if (at->complete) found.push_back(-1);
                continue;
            }
            const auto member =
                static_cast<std::size_t>(std::find_if(group.members.begin(), group.members.end(),
                                                      [&](const MemberSums& each) {
                                                          return each.process == last->process;
                                                      }) -
                                         group.members.begin());
            found.push_back(static_cast<std::int32_t>(member));
            ++group.members[member].last;
            group.members[member].wait_ns += *collectives.wait_ns(*at);
            times[member].gaps.add(at->gap_ns);
            times[member].excess.add(excess(collectives.begin(*at), last));
        }
        const auto most = std::max_element(
            group.members.begin(), group.members.end(),
            [](const MemberSums& a, const MemberSums& b) { return a.last < b.last; });
        if (most == group.members.end()) continue;
        group.late.member = static_cast<std::size_t>(most - group.members.begin());
        group.late.parts = std::min(kParts, found.size());
        group.late.parts_last =
            parts_of(found, group.late.parts, static_cast<std::int32_t>(group.late.member));
        Times& of_most = times[group.late.member];
        group.late.gap_ns = of_most.gaps.percentile(50).value_or(0);
        group.late.excess_ns = of_most.excess.percentile(50).value_or(0);
        Durations periods;
        for (std::size_t k = 1; k < arrivals.size(); ++k)
            periods.add(arrivals[k] - arrivals[k - 1]);
        group.late.period_ns = periods.percentile(50).value_or(0);
        group.late.verdict = verdict_of(group);
    }
}

}  // namespace ringside::viewer_export::model
