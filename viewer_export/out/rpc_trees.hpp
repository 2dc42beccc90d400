// Calls as trees across nodes: what a root call caused, a call a row, with its times and where it was served. Deep and wide trees are cut, and what is left
// out is counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "viewer_export/model/job.hpp"
#include "viewer_export/model/rpc_tree.hpp"
#include "viewer_export/out/json_writer.hpp"
#include "viewer_export/out/text_table.hpp"

namespace ringside::viewer_export::rpc {

/// The calls that the view shows. A call that it doesn't hangs its children on the next one above.
class Forest {
public:
    Forest(const model::Job& job, bool internal);

    bool holds(model::Index call) const { return held_[call]; }
    /// @return kNone: a root
    model::Index parent(model::Index call) const { return parent_[call]; }
    /// In order of begin, which is of one node's clock: a request's calls are made where it is served.
    std::span<const model::Index> children(model::Index call) const;
    /// Those that took longest first; what has not ended took until the last evidence. A message that was sent while no request was served
    /// is none: nothing follows from it.
    const std::vector<model::Index>& roots() const { return roots_; }
    /// So many of these messages there are.
    std::uint64_t lone_messages() const { return lone_messages_; }
    /// Itself and all below it.
    std::uint64_t size(model::Index call) const { return sizes_[call]; }
    /// It was made while a request was served whose begin lies before the capture, or outside of its iterations.
    bool parent_missing(model::Index call) const;

private:
    const model::Job& job_;
    std::vector<bool> held_;
    std::vector<model::Index> parent_;
    std::vector<std::size_t> first_;
    std::vector<model::Index> children_;
    std::vector<model::Index> roots_;
    std::vector<std::uint64_t> sizes_;
    std::uint64_t lone_messages_ = 0;
};

/// How much of a tree is shown.
struct TreeBounds {
    std::size_t depth = 12;
    std::size_t children = 16;  ///< of one call: those that took longest
    std::size_t calls = 60;
};

/// A row of a tree: a call, or those that are left out beneath their parent.
struct TreeRow {
    model::Index call;  ///< of left-out ones: their parent
    std::size_t depth;
    std::uint64_t left_out;  ///< 0: the call itself
};

/// Parents before children, what is left out last.
std::vector<TreeRow> tree_rows(const model::Job& job, const Forest& forest, model::Index root,
                               const TreeBounds& bounds);

/// Of a call, in order: its name as deep as it lies, status, at caller, service, queued, rest, node, pid, span.
Cells call_cells(const model::Job& job, const Forest& forest, const TreeRow& row, bool full_names);
extern const Cells kCallHeader;

/// Its ids, names, times and places as fields of the object that is open.
void write_call(JsonWriter& json, const model::Job& job, const Forest& forest, model::Index call);

/// Ids as they are printed everywhere: 32 and 16 hexadecimal digits.
std::string trace_text(const model::Call& call);
std::string span_text(const model::Call& call);

/// A name column reads from the left: each is as wide as the widest.
void left_align(std::vector<Cells>& rows, std::size_t column);

std::string slowest_text(const model::Job& job, const Forest& forest, std::size_t count,
                         bool full_names);
/// An array of trees, each with its rows.
void write_slowest(JsonWriter& json, const model::Job& job, const Forest& forest,
                   std::size_t count);

}  // namespace ringside::viewer_export::rpc
