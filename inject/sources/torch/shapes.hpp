// Input shapes of operators, on request: torch's own exported inputSizes() reads a RecordFunction's inputs, we write them down as text.
// It allocates, and so the range's begin costs a microsecond more: nothing of this runs unless a capture asks for it.
#pragma once

#include <cstdint>

#include "inject/core/emit.hpp"
#include "inject/core/slots/slots.hpp"

namespace ringside::inject::torch {

/// The text of a range's input shapes, as Python writes a list of lists: `[[5, 8], [], [16]]`; one list an input, an empty one where it is no
/// tensor. Longer ones are `[...]`.
struct ShapesText {
    char text[512];
    std::uint32_t length = 0;
};

/// @return whether shapes can be had in this torch
bool prepare_shapes(const SlotSet& libraries);

/// The shapes of a range whose callback asked for its inputs. Outside any HookScope: torch's function may throw, and we could not end one.
void read_shapes(const char* range, ShapesText* out);

/// The name id of a text; none where the table is full, which is counted.
NameId intern_shapes(ThreadLane& lane, const ShapesText& shapes);

}  // namespace ringside::inject::torch
