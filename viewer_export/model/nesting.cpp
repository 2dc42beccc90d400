#include "viewer_export/model/nesting.hpp"

#include <array>
#include <string_view>

#include "viewer_export/model/bounded_sum.hpp"

namespace ringside::viewer_export::model {

namespace {

void fold_wrappers(std::span<const Range> ranges, Nesting& nesting) {
    std::vector<Index> children(ranges.size(), 0);
    for (const Index parent : nesting.parent) {
        if (parent != kNone) ++children[parent];
    }
    // Inner ones first, so that a chain of equal names ends in its outermost.
    for (auto i = static_cast<Index>(ranges.size()); i-- > 0;) {
        const Index parent = nesting.parent[i];
        // A user's own range inside one of its name is a recursion, not a wrapper.
        if (parent == kNone || children[parent] != 1 || ranges[parent].name != ranges[i].name ||
            ranges[parent].request != ranges[i].request || schema::acts_alone(ranges[i].source)) {
            continue;
        }
        nesting.folded[i] = true;
        add_to(nesting.self_ns[parent], nesting.self_ns[i]);
        children[parent] = children[i];
    }
}

}  // namespace

std::vector<bool> left_out(const Job& job) {
    static constexpr std::array<std::string_view, 8> kLeftOut = {
        "[memory]",
        "[OutOfMemory]",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    };
    std::vector<bool> names(job.names.size(), false);
    for (const std::string_view name : kLeftOut) {
        if (const Index index = job.names.find(name); index != kNone) names[index] = true;
    }
    return names;
}

Nesting nest(std::span<const Range> ranges, const std::vector<bool>* leave_out) {
    Nesting result;
    result.parent.assign(ranges.size(), kNone);
    result.self_ns.assign(ranges.size(), 0);
    result.left_out.assign(ranges.size(), false);
    result.folded.assign(ranges.size(), false);
    std::vector<Index> stack;
    for (Index i = 0; i < ranges.size(); ++i) {
        const Range& range = ranges[i];
        if (range.end != End::kEnded || (leave_out != nullptr && (*leave_out)[range.name])) {
            result.left_out[i] = true;
            continue;
        }
        while (!stack.empty()) {
            const Range& top = ranges[stack.back()];
            if (range.begin_ns < top.end_ns && range.end_ns <= top.end_ns) break;
            stack.pop_back();
        }
        result.self_ns[i] = range.duration_ns();
        if (!stack.empty()) {
            result.parent[i] = stack.back();
            add_to(result.self_ns[stack.back()], -range.duration_ns());
        }
        stack.push_back(i);
    }
    fold_wrappers(ranges, result);
    return result;
}

}  // namespace ringside::viewer_export::model
