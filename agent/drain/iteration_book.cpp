#include "agent/drain/iteration_book.hpp"

#include <algorithm>

namespace ringside::agent {
namespace {

using schema::RecordKind;

/// Ends without a begin are of other names, as a rule: their records bear none. So many, the latest, are remembered at least: some full lanes of them
/// may be drained before the lane of the begin.
constexpr std::size_t kEarlyEnds = 32'768;

}  // namespace

void IterationBook::start(const IterationWish& wish, std::uint64_t since_ticks) {
    *this = {};
    wish_ = wish;
    wish_.roundup = std::max(wish.roundup, 1u);
    since_ticks_ = since_ticks;
    watching_ = wish.count != 0;
}

void IterationBook::take(const std::uint64_t* words,
                         const std::function<std::string_view()>& name) {
    const auto header = schema::RecordHeader::unpack(words[0]);
    switch (header.kind) {
        case RecordKind::kIteration: {
            if (words[1] < since_ticks_) return;
            const std::string_view text = name();
            if (!wish_.name.empty() && text != wish_.name) return;
            auto series = boundaries_.find(text);
            if (series == boundaries_.end()) series = boundaries_.emplace(text, Series{}).first;
            return add(series->second, {words[1], words[2], 0, 0});
        }
        case RecordKind::kRange:
        case RecordKind::kOperator:
        case RecordKind::kAsyncBegin:
            if (watches_ranges() && words[1] >= since_ticks_ && is_sought(header.name, name))
                take_range(header, words);
            return;
        case RecordKind::kAsyncEnd:
            if (watches_ranges()) take_end(words);
            return;
        default:
            return;
    }
}

bool IterationBook::is_sought(schema::NameId id, const std::function<std::string_view()>& name) {
    if (id == schema::kInlineName) return name() == wish_.name;
    const auto known = sought_.find(id.value);
    if (known != sought_.end()) return known->second;
    return sought_[id.value] = name() == wish_.name;
}

void IterationBook::take_range(const schema::RecordHeader& header, const std::uint64_t* words) {
    if (header.kind != RecordKind::kAsyncBegin) return add(ranges_, {words[1], 0, words[2], 0});
    Boundary range{words[1], 0, 0, words[2]};
    for (EarlyEnds* ends : {&early_ends_, &earlier_ends_}) {
        if (const auto early = ends->find(range.key); early != ends->end()) {
            range.end = early->second;
            ends->erase(early);
            break;
        }
    }
    add(ranges_, range);
}

void IterationBook::take_end(const std::uint64_t* words) {
    const std::uint64_t key = words[2];
    const auto begun = std::find_if(ranges_.rbegin(), ranges_.rend(), [&](const Boundary& range) {
        return range.key == key && range.end == 0;
    });
    if (begun != ranges_.rend()) {
        begun->end = words[1];
        return;
    }
    if (early_ends_.size() >= kEarlyEnds) {
        earlier_ends_.swap(early_ends_);
        early_ends_.clear();
    }
    early_ends_[key] = words[1];
}

/// Those that can be among the N, and no more: what comes later than all of them is not kept, so that a process which is done costs nothing while
/// others are waited for. Where records were lost the first may lie beyond its round number, or behind the gap: hence twice.
void IterationBook::add(Series& series, const Boundary& boundary) const {
    const std::size_t most = 2 * (std::size_t{wish_.count} + wish_.roundup);
    if (series.size() > most && boundary.ticks >= series.back().ticks) return;
    const auto at =
        std::upper_bound(series.begin(), series.end(), boundary,
                         [](const Boundary& a, const Boundary& b) { return a.ticks < b.ticks; });
    series.insert(at, boundary);
    if (series.size() > most + 1) series.pop_back();
}

/// A boundary that a full lane dropped lies within no iteration that counts: the N are the first in a row, else the most.
IterationsSeen IterationBook::boundaries_seen(const Series& series) const {
    IterationsSeen most;
    most.shown = !series.empty();
    for (std::size_t first = 0, next = 0; first < series.size(); first = next) {
        next = first + 1;
        if (series[first].number % wish_.roundup != 0) continue;
        IterationsSeen seen;
        seen.shown = seen.begun = true;
        seen.first = series[first].number;
        seen.begin_ticks = series[first].ticks;
        const auto follows = [&](std::size_t by) {
            return first + by < series.size() && series[first + by].number == seen.first + by;
        };
        if (follows(wish_.count)) {
            seen.count = wish_.count;
            seen.end_ticks = series[first + wish_.count].ticks;
            return seen;
        }
        while (follows(seen.count + 1)) ++seen.count;
        next = first + seen.count + 1;
        if (!most.begun || seen.count > most.count) most = seen;
    }
    return most;
}

IterationsSeen IterationBook::ranges_seen() const {
    const Series& series = ranges_;
    IterationsSeen seen;
    seen.shown = true;
    const std::size_t first = wish_.roundup - 1;
    if (first >= series.size()) return seen;
    seen.begun = true;
    seen.first = wish_.roundup;
    seen.begin_ticks = series[first].ticks;
    const std::size_t left = series.size() - first;
    while (seen.count < std::min<std::size_t>(wish_.count, left) &&
           series[first + seen.count].end != 0)
        ++seen.count;
    if (seen.count != wish_.count) return seen;
    const Boundary& last = series[first + seen.count - 1];
    // One without a length lies in it, too.
    seen.end_ticks = std::max(last.end, last.ticks + 1);
    return seen;
}

IterationsSeen IterationBook::seen() const {
    const std::pair<const std::string, Series>* earliest = nullptr;
    for (const auto& named : boundaries_) {
        if (earliest == nullptr || named.second.front().ticks < earliest->second.front().ticks)
            earliest = &named;
    }
    IterationsSeen seen =
        earliest == nullptr ? IterationsSeen{} : boundaries_seen(earliest->second);
    // torch's optimizers end a range and then mark a boundary of the same name.
    if (!ranges_.empty()) {
        IterationsSeen of_ranges = ranges_seen();
        if (of_ranges.count > seen.count || !seen.shown) seen = of_ranges;
    }
    if (seen.shown) seen.name = earliest == nullptr ? wish_.name : earliest->first;
    return seen;
}

}  // namespace ringside::agent
