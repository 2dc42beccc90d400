// Each call: recorded where a capture is on, then handed to the other tool if one stands behind us. Returned values are the other tool's,
// or those of NVTX without any tool: a program sees no difference between a capture and none.
#include "inject/sources/nvtx/calls.hpp"

#include <type_traits>

#include "inject/core/push_depth.hpp"
#include "inject/core/thread_names.hpp"
#include "inject/core/wide_text.hpp"
#include "inject/sources/nvtx/next_tool.hpp"
#include "inject/sources/nvtx/record.hpp"

namespace ringside::inject::nvtx {
namespace {

// --- marks, ranges: one body for the three kinds of message, with and without a domain ---

template <Core kIndex, class Message>
void mark(Message message) {
    {
        const HookScope hook(SourceId::kNvtx);
        if (hook) record_mark(hook.lane(), read_event(hook.lane(), message));
    }
    tell_next(kCoreModule, kIndex, message);
}

/// The counter of ranges without a domain.
constexpr std::uint32_t kNoDomain = PushKeys::no_domain(SourceId::kNvtx);

std::uint32_t counter_of(const Domain* domain) {
    return domain != nullptr ? domain->push_counter : kNoDomain;
}

template <Core kIndex, class Message>
[[gnu::noinline]] int push_with_care(Message message) {
    {
        const HookScope hook(SourceId::kNvtx, Writes::kNothing);
        if (hook) record_push(hook.lane(), nullptr, read_event(hook.lane(), message));
    }
    return call_next(kCoreModule, kIndex, kNoPushPopTracking, message);
}

// Pushes and pops first try the way of those that find nothing unusual, and make no call there, whatever the compiler thinks of
// their size; off, they look at the capture word alone. Where another tool wants the calls, those with care stand in their places.
template <Core kIndex, class Message>
[[gnu::flatten]] int push(Message message) {
    const std::uint32_t word = capture_word();
    if ((word & 1) == 0) [[likely]]
        return kNoPushPopTracking;
    if constexpr (std::is_same_v<Message, const char*>) {
        if (message != nullptr) [[likely]] {
            const NameId known = g_address_cache.find(message);
            if (known == schema::kNoName) [[unlikely]] {
                push_new_name(SourceId::kNvtx, message);
                return kNoPushPopTracking;
            }
            if (push_at_once(SourceId::kNvtx, kNoDomain, word, known)) [[likely]]
                return kNoPushPopTracking;
        }
    }
    return push_with_care<kIndex>(message);
}

[[gnu::noinline]] int pop_with_care() {
    {
        const HookScope hook(SourceId::kNvtx);
        if (hook) record_pop(hook.lane(), nullptr);
    }
    return call_next(kCoreModule, kRangePop, kNoPushPopTracking);
}

[[gnu::flatten]] int pop() {
    const std::uint32_t word = capture_word();
    if ((word & 1) == 0 || pop_at_once(SourceId::kNvtx, kNoDomain, word)) [[likely]]
        return kNoPushPopTracking;
    return pop_with_care();
}

template <Core kIndex, class Message>
RangeId start(Message message) {
    const RangeId next_id = call_next(kCoreModule, kIndex, RangeId{0}, message);
    const HookScope hook(SourceId::kNvtx);
    if (!hook) return next_id;
    return record_start(hook.lane(), read_event(hook.lane(), message), next_id);
}

void end(RangeId id) {
    {
        const HookScope hook(SourceId::kNvtx);
        if (hook) record_end(hook.lane(), id);
    }
    tell_next(kCoreModule, kRangeEnd, id_for_next(id));
}

void mark_ex(const EventAttributes* event) {
    {
        const HookScope hook(SourceId::kNvtx);
        if (hook) record_mark(hook.lane(), read_event(hook.lane(), nullptr, event));
    }
    call_next_event(kCoreModule, kMarkEx, 0, event);
}

int push_ex(const EventAttributes* event) {
    {
        const HookScope hook(SourceId::kNvtx, Writes::kNothing);
        if (hook) record_push(hook.lane(), nullptr, read_event(hook.lane(), nullptr, event));
    }
    return call_next_event(kCoreModule, kRangePushEx, kNoPushPopTracking, event);
}

RangeId start_ex(const EventAttributes* event) {
    const RangeId next_id = call_next_event(kCoreModule, kRangeStartEx, RangeId{0}, event);
    const HookScope hook(SourceId::kNvtx);
    if (!hook) return next_id;
    return record_start(hook.lane(), read_event(hook.lane(), nullptr, event), next_id);
}

void domain_mark(Domain* domain, const EventAttributes* event) {
    {
        const HookScope hook(SourceId::kNvtx);
        if (hook) record_mark(hook.lane(), read_event(hook.lane(), domain, event));
    }
    call_next_event(kCore2Module, kDomainMarkEx, 0, event, next_handle(domain));
}

[[gnu::noinline]] int domain_push_with_care(Domain* domain, const EventAttributes* event) {
    {
        const HookScope hook(SourceId::kNvtx, Writes::kNothing);
        if (hook) record_push(hook.lane(), domain, read_event(hook.lane(), domain, event));
    }
    return call_next_event(kCore2Module, kDomainRangePushEx, kNoPushPopTracking, event,
                           next_handle(domain));
}

[[gnu::flatten]] int domain_push(Domain* domain, const EventAttributes* event) {
    const std::uint32_t word = capture_word();
    if ((word & 1) == 0) [[likely]]
        return kNoPushPopTracking;
    NameId known;
    if (find_known_name(domain, event, known) &&
        push_at_once(SourceId::kNvtx, counter_of(domain), word, known)) [[likely]]
        return kNoPushPopTracking;
    return domain_push_with_care(domain, event);
}

[[gnu::noinline]] int domain_pop_with_care(Domain* domain) {
    {
        const HookScope hook(SourceId::kNvtx);
        if (hook) record_pop(hook.lane(), domain);
    }
    return call_next(kCore2Module, kDomainRangePop, kNoPushPopTracking, next_handle(domain));
}

[[gnu::flatten]] int domain_pop(Domain* domain) {
    const std::uint32_t word = capture_word();
    if ((word & 1) == 0 || pop_at_once(SourceId::kNvtx, counter_of(domain), word)) [[likely]]
        return kNoPushPopTracking;
    return domain_pop_with_care(domain);
}

RangeId domain_start(Domain* domain, const EventAttributes* event) {
    const RangeId next_id =
        call_next_event(kCore2Module, kDomainRangeStartEx, RangeId{0}, event, next_handle(domain));
    const HookScope hook(SourceId::kNvtx);
    if (!hook) return next_id;
    return record_start(hook.lane(), read_event(hook.lane(), domain, event), next_id);
}

void domain_end(Domain* domain, RangeId id) {
    {
        const HookScope hook(SourceId::kNvtx);
        if (hook) record_end(hook.lane(), id);
    }
    tell_next(kCore2Module, kDomainRangeEnd, next_handle(domain), id_for_next(id));
}

// --- what is told once: kept whether a capture is on or not ---

void category_narrow(std::uint32_t category, const char* name) {
    name_category(nullptr, category, name);
    tell_next(kCoreModule, kNameCategoryA, category, name);
}

void category_wide(std::uint32_t category, const wchar_t* name) {
    name_category(nullptr, category, WideText(name).c_str());
    tell_next(kCoreModule, kNameCategoryW, category, name);
}

void domain_category_narrow(Domain* domain, std::uint32_t category, const char* name) {
    name_category(domain, category, name);
    tell_next(kCore2Module, kDomainNameCategoryA, next_handle(domain), category, name);
}

void domain_category_wide(Domain* domain, std::uint32_t category, const wchar_t* name) {
    name_category(domain, category, WideText(name).c_str());
    tell_next(kCore2Module, kDomainNameCategoryW, next_handle(domain), category, name);
}

void thread_narrow(std::uint32_t tid, const char* name) {
    name_thread(tid, name);
    tell_next(kCoreModule, kNameOsThreadA, tid, name);
}

void thread_wide(std::uint32_t tid, const wchar_t* name) {
    name_thread(tid, WideText(name).c_str());
    tell_next(kCoreModule, kNameOsThreadW, tid, name);
}

void* register_narrow(Domain* domain, const char* text) {
    void* none = nullptr;
    return make_string(
        domain, text,
        call_next(kCore2Module, kDomainRegisterStringA, none, next_handle(domain), text));
}

void* register_wide(Domain* domain, const wchar_t* text) {
    void* none = nullptr;
    return make_string(
        domain, WideText(text).c_str(),
        call_next(kCore2Module, kDomainRegisterStringW, none, next_handle(domain), text));
}

void* create_narrow(const char* name) {
    void* none = nullptr;
    return make_domain(name, call_next(kCore2Module, kDomainCreateA, none, name));
}

void* create_wide(const wchar_t* name) {
    void* none = nullptr;
    return make_domain(WideText(name).c_str(), call_next(kCore2Module, kDomainCreateW, none, name));
}

/// Ours stays: events that carry it may still be in the lanes.
void destroy(Domain* domain) {
    tell_next(kCore2Module, kDomainDestroy, next_handle(domain));
}

// Resources are nothing that we record; a tool that is there gets its own domain and its own handle back.
void* create_resource(Domain* domain, void* attributes) {
    void* none = nullptr;
    return call_next(kCore2Module, kDomainResourceCreate, none, next_handle(domain), attributes);
}

template <class Function>
AnyFunction any(Function* function) {
    return reinterpret_cast<AnyFunction>(function);
}

}  // namespace

AnyFunction core_call(std::uint32_t index) {
    const bool goes_on = next_function(kCoreModule, index) != nullptr;
    switch (index) {
        case kMarkEx:
            return any(mark_ex);
        case kMarkA:
            return any(mark<kMarkA, const char*>);
        case kMarkW:
            return any(mark<kMarkW, const wchar_t*>);
        case kRangeStartEx:
            return any(start_ex);
        case kRangeStartA:
            return any(start<kRangeStartA, const char*>);
        case kRangeStartW:
            return any(start<kRangeStartW, const wchar_t*>);
        case kRangeEnd:
            return any(end);
        case kRangePushEx:
            return any(push_ex);
        case kRangePushA:
            return goes_on ? any(push_with_care<kRangePushA, const char*>)
                           : any(push<kRangePushA, const char*>);
        case kRangePushW:
            return goes_on ? any(push_with_care<kRangePushW, const wchar_t*>)
                           : any(push<kRangePushW, const wchar_t*>);
        case kRangePop:
            return any(goes_on ? pop_with_care : pop);
        case kNameCategoryA:
            return any(category_narrow);
        case kNameCategoryW:
            return any(category_wide);
        case kNameOsThreadA:
            return any(thread_narrow);
        case kNameOsThreadW:
            return any(thread_wide);
        default:
            return nullptr;
    }
}

AnyFunction core2_call(std::uint32_t index) {
    const bool goes_on = next_function(kCore2Module, index) != nullptr;
    switch (index) {
        case kDomainMarkEx:
            return any(domain_mark);
        case kDomainRangeStartEx:
            return any(domain_start);
        case kDomainRangeEnd:
            return any(domain_end);
        case kDomainRangePushEx:
            return any(goes_on ? domain_push_with_care : domain_push);
        case kDomainRangePop:
            return any(goes_on ? domain_pop_with_care : domain_pop);
        case kDomainNameCategoryA:
            return any(domain_category_narrow);
        case kDomainNameCategoryW:
            return any(domain_category_wide);
        case kDomainRegisterStringA:
            return any(register_narrow);
        case kDomainRegisterStringW:
            return any(register_wide);
        case kDomainCreateA:
            return any(create_narrow);
        case kDomainCreateW:
            return any(create_wide);
        case kDomainDestroy:
            return any(destroy);
        // Without another tool these are left as NVTX has them.
        case kDomainResourceCreate:
            return goes_on ? any(create_resource) : nullptr;
        default:
            return nullptr;
    }
}

}  // namespace ringside::inject::nvtx
