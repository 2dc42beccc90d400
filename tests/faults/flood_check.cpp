// What the loader finds in a flood's dump, lane by lane, for flood.py to compare with what the program says it made:
//
//   flood_check DIR      a line a lane: TID RANGES KEPT LOST WRITTEN FIRST LAST ORDERED
//                        RANGES: in the model; KEPT, LOST, WRITTEN: its account; FIRST, LAST: numbers that the first and the last range carry;
//                        ORDERED: 1 where each number is greater than the one before
#include <cstdint>
#include <cstdio>

#include "viewer_export/load/job_loader.hpp"

using namespace ringside::viewer_export;

int main(int count, char** words) {
    if (count != 2) return 2;
    const auto job = load_job({{words[1]}, true, {}});
    if (!job) {
        std::fprintf(stderr, "%s\n", job.error().message.c_str());
        return 6;
    }
    for (const model::Damage& damage : job->damage)
        std::fprintf(stderr, "%s\n", damage.text.c_str());
    for (const model::Lane& lane : job->lanes) {
        std::int64_t last = -1;
        bool ordered = true;
        for (const model::Range& range : lane.ranges) {
            ordered = ordered && range.argument > last;
            last = range.argument;
        }
        std::printf("%d %zu %llu %llu %llu %lld %lld %d\n", lane.tid, lane.ranges.size(),
                    static_cast<unsigned long long>(lane.account.kept),
                    static_cast<unsigned long long>(lane.account.lost),
                    static_cast<unsigned long long>(lane.account.written),
                    static_cast<long long>(lane.ranges.empty() ? -1 : lane.ranges.front().argument),
                    static_cast<long long>(last), ordered ? 1 : 0);
    }
    return job->damage.empty() ? 0 : 6;
}
