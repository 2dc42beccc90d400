// Sums of what dumps claim: a hostile one's numbers stop at the ends of 64 bits. Pure.
#pragma once

#include <cstdint>
#include <limits>

namespace ringside::viewer_export::model {

inline void add_to(std::int64_t& sum, std::int64_t more) {
    if (__builtin_add_overflow(sum, more, &sum))
        sum = more < 0 ? std::numeric_limits<std::int64_t>::min()
                       : std::numeric_limits<std::int64_t>::max();
}

}  // namespace ringside::viewer_export::model
