// Comes and goes by dlopen() and dlclose(): its records go through its own look-up of the API.
#include <cstdint>

#include "inject/sources/api/ringside.h"

namespace {

ringside_attributes with(std::uint64_t payload) {
    ringside_attributes attributes{};
    attributes.size = sizeof attributes;
    attributes.payload_type = RINGSIDE_UNSIGNED;
    attributes.payload.u = payload;
    return attributes;
}

}  // namespace

extern "C" void plugin_mark(std::uint64_t payload) {
    const ringside_attributes attributes = with(payload);
    ringside_mark_with("plugin mark", &attributes);
}

extern "C" void plugin_range(std::uint64_t payload) {
    const ringside_attributes attributes = with(payload);
    ringside_range_push_with("plugin range", &attributes);
    ringside_range_pop();
}
