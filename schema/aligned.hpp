// FlatBuffers' verifier (2.0) looks at where a vector begins and not at where its elements do. What comes from elsewhere may have 8-byte
// elements at any multiple of 4: compilers may count on more than that.
#pragma once

#include <cstdint>

namespace ringside::schema {

/// @param vector  of verified bytes, may be null: flatbuffers::Vector of 8-byte numbers, or of structs that hold some
template <class Vector>
bool is_aligned(const Vector* vector) {
    return vector == nullptr || reinterpret_cast<std::uintptr_t>(vector->Data()) % 8 == 0;
}

}  // namespace ringside::schema
