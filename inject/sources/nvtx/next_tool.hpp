// Another NVTX tool that stood in NVTX_INJECTION64_PATH before us: it is initialised first, its functions are remembered by place, and
// each call goes on to it after us. The program holds our handles; here they become the other tool's.
#pragma once

#include "inject/sources/nvtx/abi.hpp"
#include "inject/sources/nvtx/handles.hpp"

namespace ringside::inject::nvtx {

/// Loads the tool, if one was named, and lets it fill the tables of one copy of NVTX.
/// @param failed  set where one was named and can't be used
/// @return whether there is one
bool start_next_tool(GetExportTable get_table, bool* failed);

/// Remembers what stands in a table's place as the tool's function.
/// @return false: another function stood in this place of an earlier copy, and is left alone
bool remember_next(std::uint32_t module, std::uint32_t index, AnyFunction function);

/// @return null: none, or the tool does not want these calls
AnyFunction next_function(std::uint32_t module, std::uint32_t index);

/// Calls it, if there is one.
template <class Result, class... Arguments>
Result call_next(std::uint32_t module, std::uint32_t index, Result otherwise,
                 Arguments... arguments) {
    const AnyFunction function = next_function(module, index);
    if (function == nullptr) return otherwise;
    return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}
template <class... Arguments>
void tell_next(std::uint32_t module, std::uint32_t index, Arguments... arguments) {
    const AnyFunction function = next_function(module, index);
    if (function != nullptr) reinterpret_cast<void (*)(Arguments...)>(function)(arguments...);
}

/// A program's attributes with the other tool's handle of a registered string in them.
class NextAttributes {
public:
    explicit NextAttributes(const EventAttributes* from);
    const EventAttributes* get() const { return use_; }

private:
    EventAttributes copy_;
    const EventAttributes* use_;
};

/// As call_next(), for functions whose last argument is an event's attributes.
template <class Result, class... Arguments>
Result call_next_event(std::uint32_t module, std::uint32_t index, Result otherwise,
                       const EventAttributes* event, Arguments... arguments) {
    if (next_function(module, index) == nullptr) [[likely]]
        return otherwise;
    return call_next(module, index, otherwise, arguments..., NextAttributes(event).get());
}

inline void* next_handle(const Domain* domain) {
    return domain != nullptr ? domain->next_tools.load(std::memory_order_relaxed) : nullptr;
}

}  // namespace ringside::inject::nvtx
