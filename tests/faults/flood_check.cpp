// What the loader finds in a flood's dump, lane by lane, for flood.py to compare with what the program says it made:
//
//   flood_check DIR      a line a lane: TID RANGES KEPT LOST WRITTEN FIRST LAST ORDERED
//                        RANGES: whole ones in the model; KEPT, LOST, WRITTEN: its account; FIRST, LAST: numbers that the first and the last range carry;
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
        std::int64_t first = -1, last = -1;
        bool ordered = true;
        std::size_t ranges = 0;
        for (const model::Range& range : lane.ranges) {
            if (range.end != model::End::kEnded) continue;  // its record is not there
            ++ranges;
            ordered = ordered && range.argument > last;
            if (ranges == 1) first = range.argument;
            last = range.argument;
        }
        std::printf("%d %zu %llu %llu %llu %lld %lld %d\n", lane.tid, ranges,
                    static_cast<unsigned long long>(lane.account.kept),
                    static_cast<unsigned long long>(lane.account.lost),
                    static_cast<unsigned long long>(lane.account.written),
                    static_cast<long long>(first), static_cast<long long>(last), ordered ? 1 : 0);
    }
    return job->damage.empty() ? 0 : 6;
}
