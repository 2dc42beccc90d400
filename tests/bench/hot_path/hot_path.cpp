// What a traced program pays for a range, beside the floor and a peer, block by block in one process. hot_path.py preloads the shim, makes the job directory
// (or starts an agent), and makes ratios of the lists of times that this prints.
//
//     hot_path pairs ROUNDS [TEXT]         one thread, nobody drains while a block runs; TEXT: some variants only, for a profiler
//     hot_path uftrace ROUNDS              the same, few of them, beneath uftrace record
//     hot_path threads ROUNDS              one thread and two
//     hot_path drained ROUNDS AGENT_PID    while the agent drains the lane, and while it is stopped
//     hot_path flood RECORDS               as many as it can, at once; the agent must lose none
#include "program.hpp"

int main(int count, char** arguments) {
    using namespace ringside::bench;
    const std::string mode = count > 2 ? arguments[1] : "";
    const long number = count > 2 ? std::atol(arguments[2]) : 0;
    if (number > 0 && mode == "pairs")
        return measure_pairs(static_cast<int>(number), count > 3 ? arguments[3] : "");
    if (number > 0 && mode == "uftrace") return measure_beside_uftrace(static_cast<int>(number));
    if (number > 0 && mode == "threads") return measure_threads(static_cast<int>(number));
    if (number > 0 && mode == "drained" && count > 3)
        return measure_drained(static_cast<int>(number), std::atoi(arguments[3]));
    if (number > 0 && mode == "flood") return flood(number);
    give_up(
        "usage: hot_path pairs ROUNDS [TEXT] | uftrace ROUNDS | threads ROUNDS | drained ROUNDS "
        "AGENT_PID | flood "
        "RECORDS");
}
