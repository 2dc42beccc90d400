#include "inject/sources/nvtx/handles.hpp"

#include <cstring>
#include <new>

#include "inject/core/emit.hpp"
#include "inject/core/fixed_text.hpp"
#include "inject/core/kept_memory.hpp"
#include "inject/core/push_depth.hpp"

namespace ringside::inject::nvtx {
namespace {

constexpr std::uint32_t kBuckets = 4096;
constexpr std::uint32_t kCategories = 1024;
constexpr std::uint32_t kProbes = 64;

struct DomainEntry {
    Domain domain;
    DomainEntry* next;
};

struct Category {
    std::atomic<std::uint64_t>
        key;  ///< domain number << 32 | category; 0: free (category 0 is none)
    std::atomic<const char*> text;
};

// Lists that only grow, at their heads. Two threads that add the same at once may both do it: readers compare texts.
constinit std::atomic<DomainEntry*> g_domains{nullptr};
constinit std::atomic<std::uint64_t> g_domain_count{0};
constinit std::atomic<RegisteredString*> g_strings[kBuckets]{};
constinit Category g_categories[kCategories]{};

template <class Entry>
void add_to(std::atomic<Entry*>& head, Entry* entry) {
    entry->next = head.load(std::memory_order_relaxed);
    // SYNC(kept): the entry is whole; pairs with the acquires of those who walk the list.
    while (!head.compare_exchange_weak(entry->next, entry, std::memory_order_release,
                                       std::memory_order_relaxed)) {
    }
}

std::uint64_t number_of(const Domain* domain) {
    return domain != nullptr ? domain->number : 0;
}

/// @return null where the table is full
Category* category_entry(const Domain* domain, std::uint32_t category) {
    const std::uint64_t key = number_of(domain) << 32 | category;
    const std::uint64_t hash = schema::mix64(key);
    for (std::uint32_t probe = 0; probe < kProbes; ++probe) {
        Category& entry = g_categories[(hash + probe) % kCategories];
        std::uint64_t present = entry.key.load(std::memory_order_relaxed);
        if (present == 0)
            entry.key.compare_exchange_strong(present, key, std::memory_order_relaxed);
        if (present == 0 || present == key) return &entry;
    }
    count_loss(schema::Loss::kTableFull);
    return nullptr;
}

}  // namespace

Domain* make_domain(const char* name, void* next_tools) {
    if (name == nullptr) return nullptr;
    // SYNC(kept): pairs with the release in add_to().
    for (DomainEntry* entry = g_domains.load(std::memory_order_acquire); entry != nullptr;
         entry = entry->next) {
        Domain& domain = entry->domain;
        if (std::strcmp(domain.name, name) == 0 &&
            domain.next_tools.load(std::memory_order_relaxed) == next_tools)
            return &domain;
    }
    const char* kept = keep_text(name, std::strlen(name));
    void* memory = kept != nullptr ? keep(sizeof(DomainEntry)) : nullptr;
    if (memory == nullptr) return nullptr;
    auto* entry = new (memory) DomainEntry{};
    entry->domain.number = g_domain_count.fetch_add(1, std::memory_order_relaxed) + 1;
    entry->domain.push_counter = push_counter(SourceId::kNvtx, entry->domain.number);
    entry->domain.name = kept;
    entry->domain.next_tools.store(next_tools, std::memory_order_relaxed);
    add_to(g_domains, entry);
    return &entry->domain;
}

RegisteredString* make_string(const Domain* domain, const char* text, void* next_tools) {
    if (text == nullptr) return nullptr;
    const std::size_t length = std::strlen(text);
    auto& bucket = g_strings[schema::hash_bytes(text, length, number_of(domain)) % kBuckets];
    // SYNC(kept): pairs with the release in add_to().
    for (RegisteredString* entry = bucket.load(std::memory_order_acquire); entry != nullptr;
         entry = entry->next) {
        if (entry->domain == domain && std::strcmp(entry->text, text) == 0 &&
            entry->next_tools.load(std::memory_order_relaxed) == next_tools)
            return entry;
    }
    const char* kept = keep_text(text, length);
    void* memory = kept != nullptr ? keep(sizeof(RegisteredString)) : nullptr;
    if (memory == nullptr) return nullptr;
    auto* entry = new (memory) RegisteredString{};
    entry->domain = domain;
    entry->text = kept;
    entry->next_tools.store(next_tools, std::memory_order_relaxed);
    add_to(bucket, entry);
    return entry;
}

void name_category(const Domain* domain, std::uint32_t category, const char* text) {
    if (category == 0 || text == nullptr) return;
    Category* entry = category_entry(domain, category);
    const char* kept = entry != nullptr ? keep_text(text, std::strlen(text)) : nullptr;
    // SYNC(category): the text is there; pairs with the acquire in category_text().
    if (kept != nullptr) entry->text.store(kept, std::memory_order_release);
}

const char* category_text(const Domain* domain, std::uint32_t category) {
    if (category == 0) return nullptr;
    Category* entry = category_entry(domain, category);
    if (entry == nullptr) return nullptr;
    // SYNC(category): pairs with the release in name_category().
    const char* text = entry->text.load(std::memory_order_acquire);
    if (text != nullptr) return text;
    FixedText<16> number;
    number.append_number(category);
    const char* kept = keep_text(number.c_str(), number.length());
    if (kept == nullptr) return nullptr;
    // Named meanwhile: that counts.
    return entry->text.compare_exchange_strong(text, kept, std::memory_order_acq_rel) ? kept : text;
}

}  // namespace ringside::inject::nvtx
