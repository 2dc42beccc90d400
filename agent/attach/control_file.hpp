// The job directory's control page: made if nobody has, adopted if a shim or an earlier agent has, written by us alone while we hold
// the directory's lock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/attach/mapped_file.hpp"
#include "schema/control_page.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// What a capture tells the shims.
struct ControlOrder {
    bool selected_only = false;
    std::uint32_t source_mask = 0xffffffffu;
    std::uint32_t options = 0;
    std::uint64_t start_ticks = ~0ull;
};

struct ControlBudget {
    std::uint32_t first_lane_kib = schema::kDefaultFirstLaneKib;
    std::uint32_t most_lane_kib = schema::kDefaultMostLaneKib;
    std::uint64_t process_bytes = 0;
    std::uint64_t node_bytes = 0;
    std::uint64_t node_left_bytes = 0;
};

class ControlFile {
public:
    /// Makes or adopts the page. A capture that an earlier agent left on is turned off.
    /// @errors Refused: another layout, a link, another owner, damaged
    static schema::Result<ControlFile> open(int directory, const std::string& directory_path);

    /// Turns the capture word on and wakes every shim that waits on it.
    /// @return the word, as attached_word will repeat it
    std::uint32_t turn_on(const ControlOrder& order);
    /// Turns it off and wakes. @return the word
    std::uint32_t turn_off();
    /// Wakes every shim that waits on the word, which stays: some were chosen since.
    void wake() const;
    void set_start_ticks(std::uint64_t ticks);
    void set_stop_ticks(std::uint64_t ticks);
    void set_budget(const ControlBudget& budget);
    std::uint32_t word() const;
    /// Whether `directory` still has this page under its name.
    bool is_in(int directory) const;
    /// Takes the place of `gone`, which was removed while shims had it mapped: says what that said, and what is stored from now on is
    /// stored there too.
    void succeed(ControlFile&& gone);
    /// The stop that was last ordered; ~0: none since the last start.
    std::uint64_t stop_ticks() const;

private:
    explicit ControlFile(MappedFile file) : file_(std::move(file)) {}
    static schema::ControlPage* page_of(const MappedFile& file) {
        return static_cast<schema::ControlPage*>(file.region.get_address());
    }
    schema::ControlPage* page() const { return page_of(file_); }
    template <class Work>
    void access(Work&& work) const;
    template <class Work>
    void change(Work&& work) const;
    void store_word(schema::CaptureWord word);
    void store_order(const ControlOrder& order);

    MappedFile file_;
    std::vector<MappedFile> former_;  ///< removed, and mapped by shims all the same
};

}  // namespace ringside::agent
