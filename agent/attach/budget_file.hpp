// How much of the node's budget the shims have taken: a page beside the control page, which all of them add to. Made or adopted by the
// agent that holds the directory; what the dead had, and what was taken back, it takes off.
#pragma once

#include <cstdint>
#include <string>

#include "agent/attach/mapped_file.hpp"
#include "schema/control_page.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

class BudgetFile {
public:
    /// @errors Usage: can't be made; Refused: a link, another owner
    static schema::Result<BudgetFile> open(int directory, const std::string& directory_path);

    std::uint64_t taken() const;
    /// Never below 0, whatever was said before.
    void take_off(std::uint64_t bytes);
    /// Puts `right` in place of `seen`, if that is what stands there.
    void correct(std::uint64_t seen, std::uint64_t right);

private:
    explicit BudgetFile(MappedFile file) : file_(std::move(file)) {}
    schema::BudgetPage* page() const {
        return static_cast<schema::BudgetPage*>(file_.region.get_address());
    }

    MappedFile file_;
};

}  // namespace ringside::agent
