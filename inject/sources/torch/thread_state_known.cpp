// What thread_state.hpp can say without a slot: whether the layout is torch's, and what changes nothing.
#include "inject/sources/torch/thread_state.hpp"

namespace ringside::inject::torch {

bool is_no_change(const ThreadCallbacks& current, const ThreadCallbacks& next) {
    return current.empty() && next.empty() && current.enabled == next.enabled;
}

bool thread_state_is_known(const ThreadStateApi& api, const RecordFunctionCallback& callback) {
    if (api.current == nullptr || api.enable == nullptr || api.add_callback == nullptr ||
        api.remove_callback == nullptr)
        return false;
    // Read anew each time: what is behind the reference is what is tried.
    const auto now = [&api] { return *api.current(); };
    if (!now().empty() || now().enabled != 1) return false;
    api.enable(false);
    const ThreadCallbacks off = now();
    api.enable(true);
    if (!off.empty() || off.enabled != 0 || now().enabled != 1) return false;
    const std::uint64_t handle = api.add_callback(callback);
    const ThreadCallbacks one = now();
    api.remove_callback(handle);
    return one.begin != nullptr && one.end > one.begin && one.capacity >= one.end &&
           one.enabled == 1 && now().empty();
}

}  // namespace ringside::inject::torch
