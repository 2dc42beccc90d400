// Each kind of a dump's chunk as a FlatBuffer (dump.fbs). Pure: facts in, bytes in the builder out.
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <span>

#include "agent/dump/dump_writer.hpp"

namespace ringside::agent {

/// Each leaves one finished Chunk in `builder`, which comes cleared.
void build_header(flatbuffers::FlatBufferBuilder& builder, const DumpHeader& header,
                  const std::string& node);
void build_process(flatbuffers::FlatBufferBuilder& builder, const ProcessFacts& facts);
void build_names(flatbuffers::FlatBufferBuilder& builder, const NamesBatch& batch);
void build_blocks(flatbuffers::FlatBufferBuilder& builder, std::span<const Block* const> blocks);
/// @param bytes   of the chunk that was compressed
void build_packed(flatbuffers::FlatBufferBuilder& builder, std::size_t bytes,
                  std::span<const std::uint8_t> packed);
void build_footer(flatbuffers::FlatBufferBuilder& builder, const DumpFooter& footer,
                  std::uint64_t bytes_before);

}  // namespace ringside::agent
