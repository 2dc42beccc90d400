// FlatBuffers' verifier (2.0) looks at where a vector begins and not at where its elements do. What comes from elsewhere may have 8-byte
// elements at any multiple of 4: compilers may count on more than that.
#pragma once

#include <algorithm>
#include <cstdint>

namespace ringside::schema {

/// @param vector  of verified bytes, may be null: flatbuffers::Vector of 8-byte numbers, or of structs that hold some
template <class Vector>
bool is_aligned(const Vector* vector) {
    // An empty one lies anywhere: builders align what there is.
    return vector == nullptr || vector->size() == 0 ||
           reinterpret_cast<std::uintptr_t>(vector->Data()) % 8 == 0;
}

/// All such vectors of an fbs::Process, may be null.
template <class Process>
bool is_aligned_process(const Process* process) {
    return process == nullptr ||
           (is_aligned(process->losses_before()) &&
            (process->end() == nullptr || is_aligned(process->end()->losses())));
}

/// All such vectors of a dump's fbs::Chunk.
template <class Chunk>
bool is_aligned_chunk(const Chunk& chunk) {
    if (const auto* blocks = chunk.body_as_Blocks();
        blocks != nullptr && blocks->blocks() != nullptr)
        return std::all_of(blocks->blocks()->begin(), blocks->blocks()->end(),
                           [](const auto* block) { return is_aligned(block->open()); });
    if (const auto* footer = chunk.body_as_Footer();
        footer != nullptr && footer->processes() != nullptr)
        return std::all_of(footer->processes()->begin(), footer->processes()->end(),
                           [](const auto* end) { return is_aligned(end->losses()); });
    return is_aligned_process(chunk.body_as_Process());
}

}  // namespace ringside::schema
