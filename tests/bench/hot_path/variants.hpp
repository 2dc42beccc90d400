// What is timed: pairs of a begin and an end, each kind by the way that a program takes to it. The shim is the built library, preloaded: NVTX's calls go through
// the tables that it has filled, the public API's through the table that ringside.h finds. Nothing is linked to its code.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "floor.hpp"
#include "inject/sources/api/ringside.h"
#include "instrumented.hpp"
#include "nvtx_copy.hpp"
#ifdef RINGSIDE_BENCH_LTTNG
#include "tracepoints.h"
#endif

namespace ringside::bench {

inline void compiler_barrier() {
    asm volatile("" ::: "memory");
}

/// 200 names of 13 to 43 bytes, each at an address of its own, in an order that no processor foretells.
class Names {
public:
    Names() {
        for (int i = 0; i < kCount; ++i) {
            const auto letter = static_cast<char>('a' + i % 26);
            texts_.push_back(
                "aten::" + std::string(static_cast<std::size_t>(6 + (i * 7) % 31), letter) +
                std::to_string(i));
            texts_.back().reserve(kMostBytes);
        }
        for (int i = 0; i < kCount; ++i) pointers_[i] = text(i).c_str();
        std::uint64_t x = 1;
        for (std::uint8_t& which : order_) {
            x = x * 6364136223846793005ull + 1;
            which = static_cast<std::uint8_t>((x >> 40) % kCount);
        }
    }
    static constexpr int kCount = 200;
    static constexpr std::size_t kMostBytes = 64;  ///< that may be read of each
    int which(std::uint64_t i) const { return order_[i % sizeof order_]; }
    const char* pointer(int which) const { return pointers_[which]; }
    const std::string& text(int which) const { return texts_[static_cast<std::size_t>(which)]; }

private:
    std::vector<std::string> texts_;
    const char* pointers_[kCount]{};
    std::uint8_t order_[4096]{};
};

struct Floor {
    FloorRing& ring;
    [[gnu::always_inline]] void begin(std::uint64_t) { ring.begin(); }
    [[gnu::always_inline]] void end(std::uint64_t i) { ring.end(i); }
};

/// nvtxDomainRangePushEx() with registered strings: ids, to the program.
struct RegisteredName {
    void* domain;
    std::vector<void*> strings;
    const Names& names;

    explicit RegisteredName(const Names& all) : domain(nvtx_domain("bench")), names(all) {
        for (int i = 0; i < Names::kCount; ++i)
            strings.push_back(nvtx_register(domain, all.text(i).c_str()));
    }
    [[gnu::always_inline]] void begin(std::uint64_t i) {
        nvtx_push_registered(domain, strings[static_cast<std::size_t>(names.which(i))]);
    }
    [[gnu::always_inline]] void end(std::uint64_t) { nvtx_domain_pop(domain); }
};

/// ringside_range_push_name(): the same by the public API.
struct KeptName {
    std::vector<ringside_name> kept;
    const Names& names;

    explicit KeptName(const Names& all) : names(all) {
        for (int i = 0; i < Names::kCount; ++i) kept.push_back({all.text(i).c_str(), 0});
    }
    [[gnu::always_inline]] void begin(std::uint64_t i) {
        ringside_range_push_name(&kept[static_cast<std::size_t>(names.which(i))]);
    }
    [[gnu::always_inline]] void end(std::uint64_t) { ringside_range_pop(); }
};

/// nvtxRangePushA()
struct NvtxName {
    const Names& names;
    [[gnu::always_inline]] void begin(std::uint64_t i) { nvtx_push(names.pointer(names.which(i))); }
    [[gnu::always_inline]] void end(std::uint64_t) { nvtx_pop(); }
};

/// ringside_range_push()
struct ApiName {
    const Names& names;
    [[gnu::always_inline]] void begin(std::uint64_t i) {
        ringside_range_push(names.pointer(names.which(i)));
    }
    [[gnu::always_inline]] void end(std::uint64_t) { ringside_range_pop(); }
};

/// The same where the call has one name at hand, as calls have: an id that a program has registered for it, a constant. To choose among 200
/// would cost more than a call that is switched off.
inline constexpr char kOneName[] = "aten::scaled_dot_product_attention";
struct OneRegisteredName {
    RegisteredName& all;
    [[gnu::always_inline]] void begin(std::uint64_t) {
        nvtx_push_registered(all.domain, all.strings.front());
    }
    [[gnu::always_inline]] void end(std::uint64_t) { nvtx_domain_pop(all.domain); }
};
struct OneKeptName {
    ringside_name name = RINGSIDE_NAME(kOneName);
    [[gnu::always_inline]] void begin(std::uint64_t) { ringside_range_push_name(&name); }
    [[gnu::always_inline]] void end(std::uint64_t) { ringside_range_pop(); }
};
/// No tracer: a function that does nothing, through a pointer, twice.
inline void do_nothing(const char*) {}
inline void (*volatile nothing_place)(const char*) = do_nothing;
struct Nothing {
    [[gnu::always_inline]] void begin(std::uint64_t) { nothing_place(kOneName); }
    [[gnu::always_inline]] void end(std::uint64_t) { nothing_place(nullptr); }
};
struct OneNvtxName {
    [[gnu::always_inline]] void begin(std::uint64_t) { nvtx_push(kOneName); }
    [[gnu::always_inline]] void end(std::uint64_t) { nvtx_pop(); }
};
struct OneApiName {
    [[gnu::always_inline]] void begin(std::uint64_t) { ringside_range_push(kOneName); }
    [[gnu::always_inline]] void end(std::uint64_t) { ringside_range_pop(); }
};

/// As Floor, and as ApiName, where the program puts its names together in one buffer, so that their address says nothing.
struct PutTogether {
    const Names& names;
    alignas(64) char buffer[Names::kMostBytes]{};

    [[gnu::always_inline]] const char* put(std::uint64_t i) {
        const std::string& text = names.text(names.which(i));
        std::memcpy(buffer, text.c_str(), 48);
        buffer[text.size()] = 0;
        compiler_barrier();
        return buffer;
    }
};
struct FloorPutTogether : PutTogether {
    FloorRing& ring;
    FloorPutTogether(const Names& all, FloorRing& own) : PutTogether{all, {}}, ring(own) {}
    [[gnu::always_inline]] void begin(std::uint64_t i) {
        put(i);
        ring.begin();
    }
    [[gnu::always_inline]] void end(std::uint64_t i) { ring.end(i); }
};
struct ApiPutTogether : PutTogether {
    explicit ApiPutTogether(const Names& all) : PutTogether{all, {}} {}
    [[gnu::always_inline]] void begin(std::uint64_t i) { ringside_range_push(put(i)); }
    [[gnu::always_inline]] void end(std::uint64_t) { ringside_range_pop(); }
};

#ifdef RINGSIDE_BENCH_LTTNG
/// Two events of LTTng-UST with a 32-bit field each; and with the name in the first.
struct LttngId {
    [[gnu::always_inline]] void begin(std::uint64_t i) {
        lttng_ust_tracepoint(ringside_bench, begin_id, static_cast<std::uint32_t>(i));
    }
    [[gnu::always_inline]] void end(std::uint64_t i) {
        lttng_ust_tracepoint(ringside_bench, end, static_cast<std::uint32_t>(i));
    }
};
struct LttngName {
    const Names& names;
    [[gnu::always_inline]] void begin(std::uint64_t i) {
        lttng_ust_tracepoint(ringside_bench, begin_name, names.pointer(names.which(i)));
    }
    [[gnu::always_inline]] void end(std::uint64_t i) {
        lttng_ust_tracepoint(ringside_bench, end, static_cast<std::uint32_t>(i));
    }
};
#endif

/// A function's entry and exit, where uftrace records this process.
struct UftraceFunction {
    [[gnu::always_inline]] void begin(std::uint64_t) { ringside_bench_instrumented(); }
    [[gnu::always_inline]] void end(std::uint64_t) {}
};

}  // namespace ringside::bench
