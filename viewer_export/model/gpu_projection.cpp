#include "viewer_export/model/gpu_projection.hpp"

#include <algorithm>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace ringside::viewer_export::model {

namespace {

struct Span {
    std::int64_t begin_ns = std::numeric_limits<std::int64_t>::max();
    std::int64_t end_ns = std::numeric_limits<std::int64_t>::min();
    std::uint32_t kernels = 0;
    std::uint32_t copies = 0;

    void add(const Span& other) {
        begin_ns = std::min(begin_ns, other.begin_ns);
        end_ns = std::max(end_ns, other.end_ns);
        kernels += other.kernels;
        copies += other.copies;
    }
};

using Wanted = std::function<bool(const Range&)>;

/// By device (high half) and stream.
using Spans = std::unordered_map<std::uint64_t, Span>;

void add(Spans& to, const Spans& from) {
    for (const auto& [key, span] : from) to[key].add(span);
}

/// The smaller into the larger: what nests deep is not copied at each level.
void move(Spans& to, Spans&& from) {
    if (to.size() < from.size()) to.swap(from);
    add(to, from);
}

/// A thread's ranges as time goes on. Each open one has the spans of what was launched since it began, less what those above it have; they hand theirs
/// down when they end. One that ends beneath others (ranges that overlap in part) has theirs, too, and they go on.
class Thread {
public:
    Thread(const std::vector<Range>& ranges, Index lane, const Wanted& wanted)
        : ranges_(ranges), lane_(lane), wanted_(wanted) {}

    /// In the order of the calls' begins. @param range  around it; it has begun by then, and not ended
    Spans& at(std::int64_t ns, Index range, std::vector<Projection>& out) {
        for (; next_ < ranges_.size() && ranges_[next_].begin_ns <= ns; ++next_) {
            // Else all that ended since the last call would pile up.
            close(ranges_[next_].begin_ns, out);
            if (open_.size() == kMostOpen) continue;
            const std::int64_t end_ns = ranges_[next_].end_ns;
            open_.push_back({next_, end_ns, std::min(end_ns, first_end(open_.size())), {}});
        }
        close(ns, out);
        const auto found =
            std::lower_bound(open_.begin(), open_.end(), range,
                             [](const Open& each, Index sought) { return each.range < sought; });
        return found != open_.end() && found->range == range ? found->spans : nobodys_;
    }

    /// The rest has ended.
    void finish(std::vector<Projection>& out) {
        while (!open_.empty()) {
            tell(open_.back(), {}, out);
            Spans spans = std::move(open_.back().spans);
            open_.pop_back();
            if (!open_.empty()) move(open_.back().spans, std::move(spans));
        }
    }

private:
    /// Far beyond a thread's open stack: where a damaged dump claims more at once, the inner ones have no spans.
    static constexpr std::size_t kMostOpen = 1024;

    struct Open {
        Index range;
        std::int64_t end_ns;
        std::int64_t first_end_ns;  ///< of this one and all beneath it
        Spans spans;
        bool closed = false;
    };

    /// The first end beneath the n-th.
    std::int64_t first_end(std::size_t n) const {
        return n == 0 ? std::numeric_limits<std::int64_t>::max() : open_[n - 1].first_end_ns;
    }

    /// Ends what ended before `ns`.
    void close(std::int64_t ns, std::vector<Projection>& out) {
        Spans above;
        std::size_t lowest = open_.size();
        while (first_end(lowest) < ns) {
            Open& one = open_[--lowest];
            if (one.end_ns >= ns) {
                add(above, one.spans);
                continue;
            }
            tell(one, above, out);
            one.closed = true;
            if (lowest > 0) move(open_[lowest - 1].spans, std::move(one.spans));
        }
        const auto from = open_.begin() + static_cast<std::ptrdiff_t>(lowest);
        open_.erase(std::remove_if(from, open_.end(), [](const Open& one) { return one.closed; }),
                    open_.end());
        for (; lowest < open_.size(); ++lowest)
            open_[lowest].first_end_ns = std::min(open_[lowest].end_ns, first_end(lowest));
    }

    void tell(const Open& one, const Spans& above, std::vector<Projection>& out) const {
        if (wanted_ && !wanted_(ranges_[one.range])) return;
        const auto push = [&](std::uint64_t key, const Span& span) {
            out.push_back({span.begin_ns, span.end_ns, lane_, one.range,
                           static_cast<std::uint32_t>(key >> 32), static_cast<std::uint32_t>(key),
                           span.kernels, span.copies});
        };
        if (above.empty()) {
            for (const auto& [key, span] : one.spans) push(key, span);
            return;
        }
        Spans all = one.spans;
        add(all, above);
        for (const auto& [key, span] : all) push(key, span);
    }

    const std::vector<Range>& ranges_;
    Index lane_;
    const Wanted& wanted_;
    Index next_ = 0;
    std::vector<Open> open_;
    Spans nobodys_;  ///< of a hostile clock, by which a range is over at its own call
};

}  // namespace

std::vector<Projection> project_ranges(const Job& job, const Tell& tell, const Wanted& wanted) {
    constexpr std::size_t kBetween = 1 << 14;
    std::unordered_map<Index, Thread> threads;
    std::vector<Projection> all;
    for (Index i = 0; i < job.gpu_calls.size(); ++i) {
        if (tell && i % kBetween == 0) tell("projecting ranges", i, job.gpu_calls.size());
        const GpuCall& call = job.gpu_calls[i];
        if (call.range == kNone || call.first_work == kNone) continue;
        const auto& ranges = job.lanes[call.thread_lane].ranges;
        auto& thread =
            threads.try_emplace(call.thread_lane, ranges, call.thread_lane, wanted).first->second;
        Spans& spans = thread.at(call.begin_ns, call.range, all);
        for (Index k = call.first_work; k != kNone; k = job.gpu_work[k].next_work) {
            const GpuWork& work = job.gpu_work[k];
            const bool kernel = work.kind == schema::RecordKind::kGpuKernel;
            spans[std::uint64_t{work.device} << 32 | work.stream].add(
                {work.begin_ns, std::max(work.begin_ns, work.end_ns), kernel, !kernel});
        }
    }
    for (auto& [lane, thread] : threads) thread.finish(all);
    std::sort(all.begin(), all.end(), [&](const Projection& a, const Projection& b) {
        const auto place = [&](const Projection& each) {
            return std::tuple(job.lanes[each.lane].process, each.device, each.stream, each.begin_ns,
                              -each.end_ns, each.lane, each.range);
        };
        return place(a) < place(b);
    });
    return all;
}

}  // namespace ringside::viewer_export::model
