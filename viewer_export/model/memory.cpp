#include "viewer_export/model/memory.hpp"
#include "viewer_export/model/bounded_sum.hpp"

#include <algorithm>

namespace ringside::viewer_export::model {

void add_to(MemoryBytes& sum, const MemoryBytes& more) {
    add_to(sum.cpu, more.cpu);
    add_to(sum.cuda, more.cuda);
}

std::vector<std::vector<MemoryEvent>> memory_events(const Job& job) {
    const Index name = job.names.find(schema::kMemoryName);
    if (name == kNone) return {};
    std::vector<std::vector<MemoryEvent>> lanes(job.lanes.size());
    for (const Value& value : job.values) {
        if (value.name != name || value.source != schema::SourceId::kTorch) continue;
        const auto bytes = static_cast<std::int64_t>(value.argument);
        MemoryEvent event{value.ns, {}, value.request};
        if (value.detail == static_cast<std::uint8_t>(schema::TorchDevice::kCpu)) {
            event.bytes.cpu = bytes;
        } else if (value.detail == static_cast<std::uint8_t>(schema::TorchDevice::kCuda)) {
            event.bytes.cuda = bytes;
        }
        lanes[value.lane].push_back(event);
    }
    for (std::vector<MemoryEvent>& events : lanes) {
        std::stable_sort(events.begin(), events.end(),
                         [](const auto& a, const auto& b) { return a.ns < b.ns; });
    }
    return lanes;
}

MemoryUse memory_use(std::span<const Range> ranges, const Nesting& nesting,
                     std::span<const MemoryEvent> events) {
    MemoryUse use;
    use.self.assign(ranges.size(), {});
    std::vector<Index> around;  // ranges that have begun, the innermost last
    Index next = 0;
    for (const MemoryEvent& event : events) {
        for (; next < ranges.size() && ranges[next].begin_ns <= event.ns; ++next) {
            if (!nesting.left_out[next]) around.push_back(next);
        }
        while (!around.empty() && ranges[around.back()].end_ns < event.ns) around.pop_back();
        if (around.empty()) {
            use.outside.push_back(event);
        } else {
            add_to(use.self[around.back()], event.bytes);
        }
    }
    // Inner ones first: what is folded goes to its wrapper, what lies inside counts around it.
    use.total = use.self;
    for (auto i = static_cast<Index>(ranges.size()); i-- > 0;) {
        const Index parent = nesting.parent[i];
        if (parent == kNone) continue;
        add_to(use.total[parent], use.total[i]);
        if (nesting.folded[i]) add_to(use.self[parent], use.self[i]);
    }
    return use;
}

}  // namespace ringside::viewer_export::model
