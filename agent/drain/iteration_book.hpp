// The iterations of one process, for a capture that is asked for N of them: which boundaries, or which ranges of a name, have been drained,
// from whatever lanes and in whatever order. An iteration goes from one boundary to the next, or from one range's begin to the next one's; the
// last of N such ranges to its own end.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "agent/capture/engine.hpp"
#include "schema/record.hpp"

namespace ringside::agent {

/// The interval that a process's iterations take up, as far as it is known.
struct IterationsSeen {
    std::string name;
    bool shown = false;       ///< a boundary has come, if only one before the first
    bool begun = false;       ///< the first has begun
    std::uint32_t count = 0;  ///< whole ones
    std::uint64_t first = 0;  ///< number of the boundary that begins them
    std::uint64_t begin_ticks = 0;
    std::uint64_t end_ticks = IterationReport::kNoEnd;  ///< known once all are whole
};

class IterationBook {
public:
    /// Begins anew. @param since  boundaries from these ticks on count
    void start(const IterationWish& wish, std::uint64_t since_ticks);
    /// Nobody asks any more; what was seen stays.
    void stop() { watching_ = false; }

    /// Whether it wants boundaries, and whether it wants ranges too: then every record of a capture passes here.
    bool watches() const { return watching_; }
    bool watches_ranges() const { return watching_ && !wish_.name.empty(); }
    /// A record that a capture keeps; whole.
    /// @param name  gives the text of the record's name; called for few of them
    void take(const std::uint64_t* words, const std::function<std::string_view()>& name);

    IterationsSeen seen() const;

private:
    struct Boundary {
        std::uint64_t ticks = 0;
        std::uint64_t number = 0;  ///< of an Iteration; ranges are counted as they stand
        std::uint64_t end = 0;     ///< of a range; 0: it has not ended
        std::uint64_t key = 0;     ///< of an asynchronous one
    };
    using Series = std::vector<Boundary>;                                ///< in order of ticks
    using EarlyEnds = std::unordered_map<std::uint64_t, std::uint64_t>;  ///< key -> ticks

    bool is_sought(schema::NameId id, const std::function<std::string_view()>& name);
    void add(Series& series, const Boundary& boundary) const;
    void take_range(const schema::RecordHeader& header, const std::uint64_t* words);
    void take_end(const std::uint64_t* words);
    IterationsSeen boundaries_seen(const Series& series) const;
    IterationsSeen ranges_seen() const;

    bool watching_ = false;
    IterationWish wish_;
    std::uint64_t since_ticks_ = 0;
    std::map<std::string, Series, std::less<>> boundaries_;  ///< by name
    Series ranges_;
    std::unordered_map<std::uint32_t, bool> sought_;  ///< name id -> whether it is the name
    EarlyEnds early_ends_;                            ///< drained before their begin
    EarlyEnds earlier_ends_;                          ///< when those had become many
};

}  // namespace ringside::agent
