// With a real agent beside: the producer while it drains and while it is stopped, and as much as it can take.
#include <signal.h>

#include <fstream>

#include "program.hpp"

namespace ringside::bench {
namespace {

bool is_stopped(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    const std::size_t at = line.rfind(')');
    return at != std::string::npos && line.size() > at + 2 && line[at + 2] == 'T';
}

void wait_until(const std::function<bool()>& condition, const char* what) {
    const std::int64_t end = now_ns() + 20 * schema::kNsPerSecond;
    while (!condition()) {
        if (now_ns() > end) give_up(std::string("wait for ") + what + ": not within 20 s");
        ::sched_yield();
    }
}

}  // namespace

int measure_drained(int rounds, pid_t agent) {
    pin(processors().back());
    const std::string directory = job_directory();
    Program program;
    OwnLane lane = own_lane(directory, program);
    const long pairs = lane.capacity() / 4;
    const auto drained = [&] { return lane.drained() == lane.written(); };
    const auto with_agent_stopped = [&] {
        ::kill(agent, SIGCONT);
        wait_until(drained, "the agent to empty the lane");
        ::kill(agent, SIGSTOP);
        wait_until([&] { return is_stopped(agent); }, "the agent to stop");
    };
    // It comes back at once to a lane that it has found a quarter full.
    const auto with_agent_draining = [&] {
        ::kill(agent, SIGCONT);
        wait_until(drained, "the agent to empty the lane");
        const std::uint64_t start = lane.drained();
        tight(program.api)(lane.capacity() * 3 / 8);
        wait_until([&] { return lane.drained() != start; }, "the agent to drain");
    };
    std::vector<Variant> variants;
    int undrained = 0;
    for (const char* again : {"", " again"}) {
        variants.push_back(
            {std::string("stopped") + again, pairs, with_agent_stopped, tight(program.api)});
        variants.push_back(
            {std::string("drained") + again, pairs, with_agent_draining, [&](long count) {
                 const std::uint64_t start = lane.drained();
                 tight(program.api)(count);
                 if (lane.drained() - start < static_cast<std::uint64_t>(count) / 2) ++undrained;
             }});
    }
    run_rounds(variants, rounds);
    ::kill(agent, SIGCONT);
    wait_until(drained, "the agent to empty the lane");
    print_json(variants, ", \"lost\": " + std::to_string(lane.dropped()) +
                             ", \"undrained_blocks\": " + std::to_string(undrained));
    return 0;
}

int flood(long records) {
    pin(processors().back());
    const std::string directory = job_directory();
    Program program;
    OwnLane lane = own_lane(directory, program);
    std::vector<Variant> floors{{"floor", kTightPairs, nullptr, tight(program.floor)}};
    run_rounds(floors, 200);
    const std::uint64_t start_position = lane.written();
    const std::int64_t start = now_ns();
    tight (*program.registered)(records);
    const std::int64_t produced = now_ns();
    wait_until([&] { return lane.drained() == lane.written(); }, "the agent to empty the lane");
    const std::int64_t drained = now_ns();
    run_rounds(floors, 200);
    char numbers[256];
    std::snprintf(
        numbers, sizeof numbers,
        ", \"lost\": %llu, \"written\": %llu, \"produced_ns\": %.4f, \"drained_ns\": %.4f",
        static_cast<unsigned long long>(lane.dropped()),
        static_cast<unsigned long long>(lane.written() - start_position),
        static_cast<double>(produced - start) / static_cast<double>(records),
        static_cast<double>(drained - start) / static_cast<double>(records));
    print_json(floors, numbers);
    return 0;
}

}  // namespace ringside::bench
