#include "viewer_export/model/rpc_load.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "viewer_export/model/bounded_sum.hpp"

namespace ringside::viewer_export::model {

namespace {

/// What happens at one instant, in this order: who is served back to back is not served twice at once, and who comes does not count itself.
enum class What : std::uint8_t { kEnd, kArrival, kBegin };

struct Point {
    std::int64_t ns;
    What what;
    Index call;  ///< of an arrival
};

/// One request's stretches as one set: two threads at once are one request in service.
void add_points(std::span<const Serving> servings, std::vector<Point>& points) {
    std::int64_t begin = servings.front().begin_ns;
    std::int64_t end = servings.front().end_ns;
    const auto add = [&] {
        if (begin >= end) return;  // ticks that are one nanosecond, or a damaged clock
        points.push_back({begin, What::kBegin, kNone});
        points.push_back({end, What::kEnd, kNone});
    };
    for (const Serving& next : servings.subspan(1)) {
        if (next.begin_ns > end) {
            add();
            begin = next.begin_ns;
        }
        end = std::max(end, next.end_ns);
    }
    add();
}

void add_level(ServiceLoad& load, std::size_t level, std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    if (load.at_once_ns.size() <= level) load.at_once_ns.resize(level + 1);
    load.at_once_ns[level] += to - from;
    constexpr auto kParts = static_cast<std::int64_t>(ServiceLoad::kParts);
    const std::int64_t width = load.duration_ns() / kParts + 1;
    const auto last = static_cast<std::size_t>((to - 1 - load.begin_ns) / width);
    for (auto part = static_cast<std::size_t>((from - load.begin_ns) / width); part <= last; ++part)
        load.parts[part] = std::max(load.parts[part], static_cast<std::uint32_t>(level));
}

bool is_service(const Point& point) {
    return point.what != What::kArrival;
}

void sweep(const Job& job, std::vector<Point>& points, ServiceLoad& load) {
    std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) {
        return std::tie(a.ns, a.what) < std::tie(b.ns, b.what);
    });
    load.begin_ns = std::find_if(points.begin(), points.end(), is_service)->ns;
    load.end_ns = std::find_if(points.rbegin(), points.rend(), is_service)->ns;
    load.parts.assign(ServiceLoad::kParts, 0);
    load.at_once_ns.assign(1, 0);
    std::size_t level = 0;
    std::int64_t from = load.begin_ns;
    std::vector<std::pair<Index, std::size_t>> arrivals;  // call, served at once when it came
    for (const Point& point : points) {
        if (point.what == What::kArrival) {
            arrivals.emplace_back(point.call, level);
            continue;
        }
        add_level(load, level, from, point.ns);
        from = point.ns;
        if (point.what == What::kBegin) {
            ++level;
        } else {
            --level;
        }
    }
    for (const auto& [call, at_once] : arrivals) {
        Waits& waits = at_once >= load.most() ? load.at_max : load.below;
        const CallTimes times = call_times(job, job.calls[call]);
        ++waits.requests;
        waits.queued.add(times.queued_ns);
        waits.rest.add(times.rest_ns);
    }
}

}  // namespace

double ServiceLoad::mean() const {
    double weighted = 0;
    for (std::size_t n = 1; n < at_once_ns.size(); ++n)
        weighted += static_cast<double>(n) * static_cast<double>(at_once_ns[n]);
    return duration_ns() == 0 ? 0 : weighted / static_cast<double>(duration_ns());
}

std::vector<ServiceLoad> service_loads(const Job& job,
                                       const std::function<bool(const Call&)>& counts) {
    std::map<Index, std::pair<ServiceLoad, std::vector<Point>>> processes;
    for (Index i = 0; i < job.calls.size(); ++i) {
        const Call& call = job.calls[i];
        if (call.server == kNone || !counts(call)) continue;
        const auto servings = servings_of(job, call.server);
        if (servings.empty()) continue;
        const Half& half = job.halves[call.server];
        auto& [load, points] = processes[half.process];
        load.process = half.process;
        ++load.requests;
        add_points(servings, points);
        if (half.shown()) points.push_back({half.begin_ns, What::kArrival, i});
    }
    for (const Serving& unknown : servings_of(job, kUnknownRequest)) {
        const auto of = processes.find(job.lanes[unknown.lane].process);
        if (of != processes.end())
            add_to(of->second.first.unknown_ns, unknown.end_ns - unknown.begin_ns);
    }
    std::vector<ServiceLoad> loads;
    for (auto& [process, each] : processes) {
        if (std::none_of(each.second.begin(), each.second.end(), is_service)) continue;
        sweep(job, each.second, each.first);
        loads.push_back(std::move(each.first));
    }
    return loads;
}

}  // namespace ringside::viewer_export::model
