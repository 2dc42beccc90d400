#include "viewer_export/model/gpu_split.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <utility>

#include "viewer_export/model/bounded_sum.hpp"
#include "viewer_export/model/work_name.hpp"

namespace ringside::viewer_export::model {

namespace {

enum Kind : std::uint8_t { kCompute, kCommunication, kCopy, kKinds };

/// Adds up one device as time goes on: what is under way, and until when.
class Sweep {
public:
    Sweep(const Job& job, const Steps* steps) : job_(job), steps_(steps) {
        if (steps_ != nullptr) times_.resize(steps_->count);
    }

    /// In the order of begins.
    void add(Kind kind, std::int64_t begin_ns, std::int64_t end_ns) {
        if (!began_ns_) began_ns_ = now_ns_ = begin_ns;
        advance(begin_ns);
        ++under_way_[kind];
        ends_.emplace(std::max(begin_ns, end_ns), kind);
    }

    DeviceSplit finish(Index process, std::uint32_t device) {
        while (!ends_.empty()) advance(ends_.top().first);
        whole_.time_ns = now_ns_ - *began_ns_;
        DeviceSplit split{process, device, whole_, std::move(times_), {}};
        for (std::size_t i = 0; i < split.steps.size(); ++i) {
            const Step step = steps_->at(job_, i);
            split.steps[i].time_ns = step.end_ns - step.begin_ns;
            split.in_steps.add(split.steps[i]);
        }
        return split;
    }

private:
    void advance(std::int64_t to_ns) {
        while (!ends_.empty() && ends_.top().first <= to_ns) {
            const auto [end_ns, kind] = ends_.top();
            ends_.pop();
            pass(end_ns);
            --under_way_[kind];
        }
        pass(to_ns);
    }

    /// What is under way stays so until `to_ns`.
    void pass(std::int64_t to_ns) {
        if (to_ns <= now_ns_) return;
        pass_in(whole_, to_ns - now_ns_);
        while (steps_ != nullptr && step_ < steps_->count) {
            const Step step = steps_->at(job_, step_);
            const std::int64_t from_ns = std::max(now_ns_, step.begin_ns);
            if (from_ns < std::min(to_ns, step.end_ns))
                pass_in(times_[step_], std::min(to_ns, step.end_ns) - from_ns);
            if (to_ns < step.end_ns) break;
            ++step_;
        }
        now_ns_ = to_ns;
    }

    void pass_in(GpuTime& time, std::int64_t ns) const {
        if (under_way_[kCommunication] > 0) time.communication_ns += ns;
        if (under_way_[kCompute] > 0) {
            time.compute_ns += ns;
        } else if (under_way_[kCommunication] > 0) {
            time.exposed_ns += ns;
        } else if (under_way_[kCopy] > 0) {
            time.copies_ns += ns;
        }
    }

    using End = std::pair<std::int64_t, Kind>;
    std::priority_queue<End, std::vector<End>, std::greater<>> ends_;  // of what is under way
    std::array<std::uint64_t, kKinds> under_way_{};
    std::optional<std::int64_t> began_ns_;
    std::int64_t now_ns_ = 0;
    GpuTime whole_;
    const Job& job_;
    const Steps* steps_;          // of its process; null: none
    std::vector<GpuTime> times_;  // of each step
    std::size_t step_ = 0;        // the first that is not over
};

class Splitter {
public:
    explicit Splitter(const Job& job) : job_(job), names_(job.names) {
        for (const Steps& steps : steps_of(job)) {
            if (steps.chosen) split_.steps.push_back(steps);
        }
    }

    void add(const GpuWork& work) {
        if (!work.on_device()) return;
        const Kind kind = kind_of(work);
        const Steps* steps = split_.steps_of(work.process);
        for (const std::uint32_t device : {work.device, kAllDevices}) {
            // Work of others counts in kAllDevices alone.
            if (device != kAllDevices && device >= kMostDevices) continue;
            Sweep& sweep = sweeps_.try_emplace({work.process, device}, job_, steps).first->second;
            sweep.add(kind, work.begin_ns, work.end_ns);
        }
    }

    GpuSplit finish() {
        std::map<Index, std::size_t> devices;
        for (const auto& [key, sweep] : sweeps_) devices[key.first] += key.second != kAllDevices;
        for (auto& [key, sweep] : sweeps_) {
            const auto& [process, device] = key;
            if (device != kAllDevices || devices[process] > 1)
                split_.devices.push_back(sweep.finish(process, device));
        }
        const auto rank = [&](const DeviceSplit& device) {
            return static_cast<std::uint32_t>(job_.processes[device.process].rank);  // none: last
        };
        std::stable_sort(split_.devices.begin(), split_.devices.end(),
                         [&](const DeviceSplit& a, const DeviceSplit& b) {
                             return std::pair(rank(a), a.process) < std::pair(rank(b), b.process);
                         });
        return std::move(split_);
    }

private:
    Kind kind_of(const GpuWork& work) {
        if (work.kind != schema::RecordKind::kGpuKernel) return kCopy;
        return names_.communicates(work) ? kCommunication : kCompute;
    }

    const Job& job_;
    WorkNames names_;
    GpuSplit split_;
    std::map<std::pair<Index, std::uint32_t>, Sweep> sweeps_;
};

}  // namespace

void GpuTime::add(const GpuTime& other) {
    add_to(time_ns, other.time_ns);
    add_to(compute_ns, other.compute_ns);
    add_to(communication_ns, other.communication_ns);
    add_to(exposed_ns, other.exposed_ns);
    add_to(copies_ns, other.copies_ns);
}

const Steps* GpuSplit::steps_of(Index process) const {
    const auto found =
        std::lower_bound(steps.begin(), steps.end(), process,
                         [](const Steps& each, Index sought) { return each.process < sought; });
    return found == steps.end() || found->process != process ? nullptr : &*found;
}

GpuSplit split_gpu(const Job& job, const Tell& tell) {
    constexpr std::size_t kBetween = 1 << 14;
    Splitter splitter(job);
    for (std::size_t i = 0; i < job.gpu_work.size(); ++i) {
        if (tell && i % kBetween == 0) tell("adding up GPU time", i, job.gpu_work.size());
        splitter.add(job.gpu_work[i]);
    }
    return splitter.finish();
}

}  // namespace ringside::viewer_export::model
