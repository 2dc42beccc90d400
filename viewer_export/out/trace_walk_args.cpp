#include "viewer_export/out/trace_walk_args.hpp"

#include <algorithm>

namespace ringside::viewer_export::trace {

namespace {

/// Takes `prefix` off the front of `text`.
bool take(std::string_view& text, std::string_view prefix) {
    if (!text.starts_with(prefix)) return false;
    text.remove_prefix(prefix.size());
    return true;
}

/// `[5, 8]`, `[]`.
bool take_list(std::string_view& text) {
    if (!take(text, "[")) return false;
    if (take(text, "]")) return true;
    do {
        take(text, "-");
        const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
        if (digits == 0 || (digits > 1 && text.front() == '0')) return false;
        text.remove_prefix(digits);
    } while (take(text, ", "));
    return take(text, "]");
}

}  // namespace

bool is_list_of_lists(std::string_view text) {
    if (!take(text, "[")) return false;
    if (take(text, "]")) return text.empty();
    do {
        if (!take_list(text)) return false;
    } while (take(text, ", "));
    return take(text, "]") && text.empty();
}

}  // namespace ringside::viewer_export::trace
