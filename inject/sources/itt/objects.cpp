#include "inject/sources/itt/objects.hpp"

#include <cstring>
#include <new>

#include "inject/core/emit.hpp"
#include "inject/core/kept_memory.hpp"

namespace ringside::inject::itt {
namespace {

constexpr std::uint32_t kBuckets = 1024;
constexpr std::uint32_t kEvents = 1024;
constexpr std::uint32_t kPairs = 4096;
constexpr std::uint32_t kProbes = 32;

/// An object in its bucket's list, which only grows at its head. Two threads that add the same text at once may both do it.
template <class Object>
struct Kept {
    Object* object;
    std::uint64_t hash;
    Kept* next;
};
template <class Object>
using Buckets = std::atomic<Kept<Object>*>[kBuckets];

constinit Buckets<Domain> g_domains{};
constinit Buckets<StringHandle> g_strings{};
constinit Buckets<Counter> g_counters{};
constinit std::atomic<const char*> g_events[kEvents]{};
constinit std::atomic<int> g_event_count{0};

/// The key says who has the place: no pair's comes twice, so who exchanges the one that he has looked at has what he has looked at.
///
///   0 --> kTaking --> key --> 0, or kTaking where its capture is over
struct Pair {
    std::atomic<std::uint64_t> key;  ///< 0: free; SYNC(pair): stored last
    std::atomic<std::uint64_t> identity;
    std::atomic<std::uint32_t> word;  ///< the capture's
};
constexpr std::uint64_t kTaking = ~0ull;
constinit Pair g_pairs[kPairs]{};

std::uint64_t hash_of(const char* text, const char* second) {
    const std::uint64_t hash = schema::hash_bytes(text, std::strlen(text));
    return second == nullptr ? hash : schema::hash_bytes(second, std::strlen(second), hash);
}

template <class Object, class Same>
Object* find(Buckets<Object>& buckets, std::uint64_t hash, Same same) {
    // SYNC(kept): pairs with the release in add().
    const Kept<Object>* kept = buckets[hash % kBuckets].load(std::memory_order_acquire);
    for (; kept != nullptr; kept = kept->next) {
        if (kept->hash == hash && same(*kept->object)) return kept->object;
    }
    return nullptr;
}

template <class Object>
Object* add(Buckets<Object>& buckets, std::uint64_t hash, Object* object) {
    void* memory = keep(sizeof(Kept<Object>));
    if (memory == nullptr) return nullptr;
    std::atomic<Kept<Object>*>& bucket = buckets[hash % kBuckets];
    auto* made = new (memory) Kept<Object>{object, hash, bucket.load(std::memory_order_relaxed)};
    // SYNC(kept): the object is whole; pairs with the acquire above.
    while (!bucket.compare_exchange_weak(made->next, made, std::memory_order_release,
                                         std::memory_order_relaxed)) {
    }
    return object;
}

/// @param same  whether an object is the one wanted   @param fill  makes it of fresh, zeroed memory; false: memory is used up
template <class Object, class Same, class Fill>
Object* find_or_make(Buckets<Object>& buckets, std::uint64_t hash, Same same, Fill fill) {
    Object* found = find(buckets, hash, same);
    if (found != nullptr) return found;
    void* memory = keep(sizeof(Object));
    if (memory == nullptr) return nullptr;
    auto* object = new (memory) Object{};
    return fill(*object) ? add(buckets, hash, object) : nullptr;
}

bool equal(const char* a, const char* b) {
    return a == b || (a != nullptr && b != nullptr && std::strcmp(a, b) == 0);
}

}  // namespace

void adopt(const Global& global) {
    for (Domain* domain = global.domains; domain != nullptr; domain = domain->next) {
        if (domain->name == nullptr) continue;
        const std::uint64_t hash = hash_of(domain->name, nullptr);
        const auto same = [&](const Domain& other) { return equal(other.name, domain->name); };
        if (find<Domain>(g_domains, hash, same) == nullptr) add<Domain>(g_domains, hash, domain);
    }
    for (StringHandle* string = global.strings; string != nullptr; string = string->next) {
        if (string->text == nullptr) continue;
        const std::uint64_t hash = hash_of(string->text, nullptr);
        const auto same = [&](const StringHandle& other) {
            return equal(other.text, string->text);
        };
        if (find<StringHandle>(g_strings, hash, same) == nullptr)
            add<StringHandle>(g_strings, hash, string);
    }
}

Domain* make_domain(const char* name) {
    if (name == nullptr) return nullptr;
    return find_or_make<Domain>(
        g_domains, hash_of(name, nullptr),
        [&](const Domain& domain) { return equal(domain.name, name); },
        [&](Domain& domain) {
            domain.flags = 1;
            domain.name = keep_text(name, std::strlen(name));
            return domain.name != nullptr;
        });
}

StringHandle* make_string(const char* text) {
    if (text == nullptr) return nullptr;
    return find_or_make<StringHandle>(
        g_strings, hash_of(text, nullptr),
        [&](const StringHandle& string) { return equal(string.text, text); },
        [&](StringHandle& string) {
            string.text = keep_text(text, std::strlen(text));
            return string.text != nullptr;
        });
}

Counter* make_counter(const char* name, const char* domain, std::int32_t type) {
    if (name == nullptr) return nullptr;
    return find_or_make<Counter>(
        g_counters, hash_of(name, domain),
        [&](const Counter& counter) {
            return equal(counter.name, name) && equal(counter.domain, domain) &&
                   counter.type == type;
        },
        [&](Counter& counter) {
            counter.type = type;
            counter.name = keep_text(name, std::strlen(name));
            if (domain != nullptr) counter.domain = keep_text(domain, std::strlen(domain));
            return counter.name != nullptr;
        });
}

int make_event(const char* name, std::size_t length) {
    if (name == nullptr) return 0;
    const int count = g_event_count.load(std::memory_order_acquire);
    for (int i = 0; i < count; ++i) {
        const char* known = g_events[i].load(std::memory_order_acquire);
        if (known != nullptr && std::strncmp(known, name, length) == 0 && known[length] == 0)
            return i + 1;
    }
    const int next = g_event_count.load(std::memory_order_relaxed) < static_cast<int>(kEvents)
                         ? g_event_count.fetch_add(1, std::memory_order_relaxed)
                         : static_cast<int>(kEvents);
    if (next >= static_cast<int>(kEvents)) {
        count_loss(schema::Loss::kTableFull);
        return 0;
    }
    // SYNC(kept): pairs with the acquires here and in event_name().
    g_events[next].store(keep_text(name, length), std::memory_order_release);
    return next + 1;
}

const char* event_name(int event) {
    if (event <= 0 || event > static_cast<int>(kEvents)) return nullptr;
    return g_events[event - 1].load(std::memory_order_acquire);
}

bool remember_pair(std::uint64_t identity, std::uint64_t key, std::uint32_t word) {
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
        Pair& pair = g_pairs[(identity + probe) % kPairs];
        // SYNC(pair): pairs with the release below.
        std::uint64_t present = pair.key.load(std::memory_order_acquire);
        if (present == kTaking) continue;
        // One that is begun again before its end goes on without one.
        const bool taken = present != 0 && pair.word.load(std::memory_order_relaxed) == word &&
                           pair.identity.load(std::memory_order_relaxed) != identity;
        if (taken || !pair.key.compare_exchange_strong(present, kTaking, std::memory_order_acq_rel))
            continue;
        pair.identity.store(identity, std::memory_order_relaxed);
        pair.word.store(word, std::memory_order_relaxed);
        // SYNC(pair): publishes the two; pairs with the acquires here and in take_pair().
        pair.key.store(key, std::memory_order_release);
        return true;
    }
    return false;
}

std::uint64_t take_pair(std::uint64_t identity, std::uint32_t word) {
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
        Pair& pair = g_pairs[(identity + probe) % kPairs];
        // SYNC(pair): pairs with the release in remember_pair().
        std::uint64_t key = pair.key.load(std::memory_order_acquire);
        if (key == 0 || key == kTaking ||
            pair.identity.load(std::memory_order_relaxed) != identity ||
            pair.word.load(std::memory_order_relaxed) != word)
            continue;
        // Whoever begins the same once more meanwhile has another key, and keeps it.
        if (pair.key.compare_exchange_strong(key, 0, std::memory_order_acq_rel)) return key;
    }
    return 0;
}

}  // namespace ringside::inject::itt
