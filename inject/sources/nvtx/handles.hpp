// What programs hold of us: domains and registered strings, made once and kept for good, and the names of categories. The handle that a
// program gets is a pointer to one of these; where another tool stands behind us, its own handle is in it.
#pragma once

#include <atomic>
#include <cstdint>

namespace ringside::inject::nvtx {

/// A domain. A null handle is the default one, which has no name.
struct Domain {
    std::uint64_t number;        ///< from 1
    std::uint32_t push_counter;  ///< inject::push_counter() of it
    const char* name;
    std::atomic<void*> next_tools;  ///< the other tool's handle
};

/// A string of a domain.
struct RegisteredString {
    const Domain* domain;
    const char* text;
    std::atomic<void*> next_tools;
    RegisteredString* next;  ///< of its bucket
    /// keep_name() of the text with its domain and nothing else; 0: not interned yet.
    mutable std::atomic<std::uint64_t> plain_name;
};

/// The domain of that name; made where it is new, or where another tool's handle differs.
/// @return null where memory is used up: the program goes on with the default domain
/// @thread thread-safe
Domain* make_domain(const char* name, void* next_tools);

/// The string of that domain; registering it again gives the same handle.
/// @return null where memory is used up
/// @thread thread-safe
RegisteredString* make_string(const Domain* domain, const char* text, void* next_tools);

/// @param domain  null: the default one
/// @thread thread-safe
void name_category(const Domain* domain, std::uint32_t category, const char* text);

/// The name of a category, or its number where nobody has named it.
/// @return null for category 0, and where the table is full (counted)
/// @thread thread-safe
const char* category_text(const Domain* domain, std::uint32_t category);

}  // namespace ringside::inject::nvtx
