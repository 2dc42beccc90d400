// What torch calls a process group: in newer versions a member of c10d::Backend, else the prefix of the group's store, which is the same name. It is
// looked for once, by its shape and by the types' names, in memory that is read through the kernel: nothing is touched that may not be there.
// Called by collectives.
#pragma once

#include <cstdint>
#include <string_view>

namespace ringside::inject::torch {

struct GroupPlace {
    std::int32_t rank = -1;
    std::int32_t size = 0;
    std::string_view name;  ///< NUL-terminated, alive as long as the group; empty: not known
};

/// @param backend        a ProcessGroupGloo
/// @param has_own_name   of a version whose Backend has the name itself, and its rank and size where we know them
GroupPlace group_place(const char* backend, bool has_own_name);

/// The name of a polymorphic object's type, as the compiler has written it ("N4c10d11PrefixStoreE").
/// @param object  alive
const char* type_name(const void* object);

}  // namespace ringside::inject::torch
