// One job directory, held by its lock: finds the segments in it (those there before us too), maps them, removes what dead processes
// leave, and tells all shims through the control page.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "agent/attach/budget_file.hpp"
#include "agent/attach/control_file.hpp"
#include "agent/attach/mapped_segment.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

/// A segment that can't be read, and why.
struct RefusedSegment {
    schema::SegmentId id;
    std::string cause;
    bool operator<(const RefusedSegment& other) const { return id < other.id; }
};

class JobDirectory {
public:
    /// Makes or opens `<root>/<job>`, takes its lock and its control page.
    /// @param node  written into the lock file, for whoever finds it held
    /// @param wait  where another agent holds it: until that has ended. A signal that ends a program ends this one meanwhile: it holds nothing
    /// @errors Usage: can't be made or written; Refused: another agent holds it (the message names its pid and node), or it is not private
    static schema::Result<JobDirectory> open(const std::string& root, const std::string& job,
                                             const std::string& node, bool wait = false);

    const std::string& path() const { return path_; }
    /// Of the directory itself.
    int descriptor() const { return directory_.get(); }
    ControlFile& control() { return control_; }
    BudgetFile& budget() { return budget_; }

    /// Looks through the directory.
    /// @param known  segments that the caller has; they are passed over
    /// @return newly mapped ones. What is still being made is found by a later scan: making() tells that there is some.
    std::vector<std::unique_ptr<MappedSegment>> scan(const std::set<schema::SegmentId>& known);
    bool making() const { return making_; }
    const std::set<RefusedSegment>& refused() const { return refused_; }

    /// Whether the directory, its lock and its control page are still there under their names.
    bool whole() const;
    /// Makes anew what somebody has removed. Segments that are mapped stay as they are, and so do the shims that map the former page.
    /// @errors as open(): another agent may have been quicker
    schema::Result<void> restore();

    /// Removes a dead process's file, if the name still means that file.
    void remove(const MappedSegment& segment);

private:
    JobDirectory(std::string root, std::string job, std::string node, FileHandle directory,
                 FileHandle lock, ControlFile control, BudgetFile budget);
    void remove_stillborn(const schema::SegmentId& id);

    std::string root_;
    std::string job_;
    std::string node_;
    std::string path_;
    FileHandle directory_;
    FileHandle lock_;
    ControlFile control_;
    BudgetFile budget_;
    std::set<RefusedSegment> refused_;
    bool making_ = false;
};

}  // namespace ringside::agent
