// The libcupti of the process: found, never guessed at, and spoken to through whichever of its two interfaces this session uses.
#pragma once

#include "inject/core/fixed_text.hpp"
#include "inject/sources/cupti/abi.hpp"
#include "inject/sources/cupti/plugin.hpp"

namespace ringside::inject::cupti {

using Reason = FixedText<schema::kReasonBytes>;

/// A function of a library, null until it was looked up.
template <class Signature>
struct Function;
template <class Return, class... Arguments>
struct Function<Return(Arguments...)> {
    const char* name;
    Return (*call)(Arguments...) = nullptr;

    Return operator()(Arguments... arguments) const { return call(arguments...); }
    explicit operator bool() const { return call != nullptr; }
};

/// CUPTI's functions. Those behind the empty line are not in every release.
struct Cupti {
    Function<Result(std::uint32_t*)> get_version{"cuptiGetVersion"};
    Function<Result(Subscriber*, SubscriberCallback, void*)> subscribe{"cuptiSubscribe"};
    Function<Result(Subscriber)> unsubscribe{"cuptiUnsubscribe"};
    Function<Result(TimestampCallback)> register_timestamps{
        "cuptiActivityRegisterTimestampCallback"};
    Function<Result(BufferRequested, BufferCompleted)> register_callbacks{
        "cuptiActivityRegisterCallbacks"};
    Function<Result(std::uint32_t)> set_thread_id_type{"cuptiSetThreadIdType"};
    Function<Result(std::uint32_t)> enable{"cuptiActivityEnable"};
    Function<Result(std::uint32_t)> disable{"cuptiActivityDisable"};
    Function<Result(std::uint32_t)> flush_all{"cuptiActivityFlushAll"};
    Function<Result(std::uint8_t*, std::size_t, void**)> next_record{"cuptiActivityGetNextRecord"};
    Function<Result(void*, std::uint32_t, std::size_t*)> dropped{
        "cuptiActivityGetNumDroppedRecords"};
    Function<Result(std::uint32_t, std::uint32_t, const char**)> callback_name{
        "cuptiGetCallbackName"};

    Function<Result(std::uint8_t)> event_timestamps{"cuptiActivityEnableCudaEventDeviceTimestamps"};
    Function<Result(Subscriber*, SubscriberCallback, void*, SubscriberParameters*)> subscribe2{
        "cuptiSubscribe_v2"};
    Function<Result(Subscriber, std::uint32_t, std::size_t*, void*)> set_attribute2{
        "cuptiActivitySetAttribute_v2"};
    Function<Result(Subscriber, BufferRequested2, BufferCompleted2)> register_callbacks2{
        "cuptiActivityRegisterCallbacks_v2"};
    Function<Result(Subscriber, std::uint32_t, void*)> enable2{"cuptiActivityEnable_v2"};
    Function<Result(Subscriber, std::uint32_t, void*)> disable2{"cuptiActivityDisable_v2"};
    Function<Result(Subscriber, std::uint8_t*, std::size_t, void**)> next_record2{
        "cuptiActivityGetNextRecord_v2"};
    Function<Result(Subscriber, void*, std::uint32_t, std::size_t*)> dropped2{
        "cuptiActivityGetNumDroppedRecords_v2"};

    std::uint32_t version = 0;
    const char* file = nullptr;  ///< its soname

    /// Whether several tools can share it, each with a clock of its own.
    bool can_share() const {
        return version >= kSharesWithOurClock && subscribe2 && set_attribute2 &&
               register_callbacks2 && enable2 && disable2 && next_record2 && dropped2;
    }
};

/// Looks for the driver first: without libcuda.so.1 in the process nothing of CUPTI's is called (13.2 would recurse to death).
/// @return null: none that can be used; `why` says why
/// @thread one caller at a time
const Cupti* find_cupti(const Shim& shim, Reason& why);

/// The driver's library, if the process has it; for Shim::look_up.
void* find_driver(const Shim& shim);

}  // namespace ringside::inject::cupti
