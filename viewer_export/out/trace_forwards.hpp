// Which forward operator a backward one is of: the latest one of the thread and sequence that it names, begun before it. Sequence numbers of a thread only
// grow, so of its forward operators a mark now and then is kept, by sequence, and what lies behind a mark is looked through.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "viewer_export/model/job.hpp"

namespace ringside::viewer_export::trace {

/// A range's place in the job.
struct RangeAt {
    model::Index lane;
    model::Index range;
    bool operator==(const RangeAt&) const = default;
};

bool is_forward(const model::Range& range);
bool is_backward(const model::Range& range);

/// Of the processes that have backward operators.
class ForwardIndex {
public:
    ForwardIndex(const model::Job& job, const std::vector<bool>& drawn);

    /// @return nothing: the dump has it not, or it is none's
    std::optional<RangeAt> of(RangeAt backward) const;

private:
    struct Key {
        std::uint32_t thread;
        std::int64_t sequence;
        std::int64_t begin_ns;
        auto operator<=>(const Key&) const = default;
    };
    struct Mark {
        Key key;
        RangeAt at;
    };
    static Key key_of(const model::Range& range) {
        return {range.thread, range.argument, range.begin_ns};
    }
    void add(model::Index lane, std::vector<Mark>& marks) const;
    std::optional<RangeAt> behind(const Mark& mark, const Key& sought) const;

    const model::Job& job_;
    std::map<model::Index, std::vector<Mark>> marks_;  ///< by process
};

}  // namespace ringside::viewer_export::trace
