// CUPTI's records into ours: a buffer of them at a time, in the lane of the thread that CUPTI hands it over on.
#pragma once

#include "inject/sources/cupti/library.hpp"
#include "schema/gpu_record.hpp"

namespace ringside::inject::cupti {

/// A buffer that CUPTI has given back.
struct Delivery {
    const Shim* shim;
    const Cupti* cupti;
    Subscriber
        sharing;  ///< the subscriber, where it is read through the second interface; else null
    std::uint8_t* buffer;
    std::size_t valid_bytes;
    std::uint32_t own_thread;  ///< its calls are our own and left out; 0: none
};

/// Writes each record into the lane. @param lane  null: there is none, all of them are counted as lost
void deliver(LaneHandle* lane, const Delivery& delivery);

}  // namespace ringside::inject::cupti
