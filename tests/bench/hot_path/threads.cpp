// One thread, and the same one while another does the same on a core of its own.
#include <atomic>
#include <thread>

#include "program.hpp"

namespace ringside::bench {
namespace {

/// A second thread that runs a block at the same time, on a core of its own; asleep otherwise.
class SecondThread {
public:
    SecondThread(int cpu, std::function<void()> prepare)
        : thread_([this, cpu, prepare = std::move(prepare)] {
              pin(cpu);
              prepare();
              loop();
          }) {
        done_.wait(0);
    }
    ~SecondThread() {
        start(nullptr);
        thread_.join();
    }
    /// Has it run `block`, and returns when it is about to.
    void start(const std::function<void()>* block) {
        block_ = block;
        ready_.store(false, std::memory_order_relaxed);
        turn_.fetch_add(1, std::memory_order_release);
        turn_.notify_one();
        while (block != nullptr && !ready_.load(std::memory_order_acquire)) _mm_pause();
    }
    void wait() {
        const std::uint32_t turn = turn_.load();
        while (done_.load(std::memory_order_acquire) != turn + 1) _mm_pause();
    }

private:
    void loop() {
        for (std::uint32_t seen = 0;; ++seen) {
            done_.store(seen + 1, std::memory_order_release);
            done_.notify_one();
            turn_.wait(seen, std::memory_order_acquire);
            if (block_ == nullptr) return;
            ready_.store(true, std::memory_order_release);
            (*block_)();
        }
    }

    const std::function<void()>* block_ = nullptr;
    std::atomic<bool> ready_{false};
    std::atomic<std::uint32_t> turn_{0};
    std::atomic<std::uint32_t> done_{0};
    std::thread thread_;
};

}  // namespace

int measure_threads(int rounds) {
    const std::vector<int> cpus = processors();
    if (cpus.size() < 2) give_up("two threads: one processor");
    pin(cpus[0]);
    const std::string directory = job_directory();
    CaptureSwitch capture(directory);
    capture.set(true);
    Program program;
    FloorRing other_ring{kRecords};
    Floor other_floor{other_ring};
    OwnLane lane = own_lane(directory, program);
    OwnLane other_lane;
    SecondThread second(cpus[1], [&] {
        tight(program.kept)(1);
        other_lane = OwnSegment(directory).lane_of(own_tid());
    });
    // The other one goes on until the measured block is over: it is there all the time.
    std::atomic<bool> stop{false};
    const auto until_stopped = [&](auto& pair, bool recorded) {
        while (!stop.load(std::memory_order_relaxed)) {
            if (recorded) other_lane.empty();
            tight(pair)(2000);
        }
    };
    const std::function<void()> other_id = [&] { until_stopped(program.kept, true); };
    const std::function<void()> other_name = [&] { until_stopped(program.api, true); };
    const std::function<void()> other_bare = [&] { until_stopped(other_floor, false); };
    std::vector<Variant> variants;
    const auto add = [&](const std::string& name, auto& pair, const std::function<void()>* other) {
        variants.push_back({name + (other != nullptr ? " two" : " one"), kTightPairs,
                            [&, other] {
                                lane.empty();
                                stop.store(false);
                                if (other != nullptr) second.start(other);
                            },
                            [&, other](long pairs) {
                                tight(pair)(pairs);
                                if (other == nullptr) return;
                                stop.store(true, std::memory_order_relaxed);
                            }});
    };
    add("id", program.kept, nullptr);
    add("id", program.kept, &other_id);
    add("name", program.api, nullptr);
    add("name", program.api, &other_name);
    add("floor", program.floor, nullptr);
    add("floor", program.floor, &other_bare);
    std::vector<Variant*> order;
    for (Variant& variant : variants) order.push_back(&variant);
    std::mt19937 random(20261122);
    for (int round = 0; round < rounds; ++round) {
        std::shuffle(order.begin(), order.end(), random);
        for (Variant* variant : order) {
            run_block(*variant);
            if (variant->name.find(" two") != std::string::npos) second.wait();
        }
    }
    print_json(variants, ", \"lost\": " + std::to_string(lane.dropped() + other_lane.dropped()));
    return 0;
}

}  // namespace ringside::bench
