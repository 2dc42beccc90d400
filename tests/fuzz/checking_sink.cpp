#include "tests/fuzz/checking_sink.hpp"

#include <cstdio>
#include <cstdlib>

#include "agent/dump/chunks.hpp"
#include "schema/block_codec.hpp"
#include "schema/names.hpp"

namespace ringside::tests::fuzz {

void check(bool holds, const char* what) {
    if (holds) return;
    static_cast<void>(std::fprintf(stderr, "check failed: %s\n", what));
    std::abort();
}

/// The chunk in the builder, as a reader verifies it.
const fbs::Chunk& CheckingSink::chunk() {
    flatbuffers::Verifier verifier(builder_.GetBufferPointer(), builder_.GetSize());
    check(fbs::VerifyChunkBuffer(verifier), "a chunk verifies");
    return *fbs::GetChunk(builder_.GetBufferPointer());
}

void CheckingSink::process(const agent::ProcessFacts& facts) {
    builder_.Clear();
    agent::build_process(builder_, facts);
    check(chunk().body_as_Process() != nullptr, "a process's chunk holds a process");
}

void CheckingSink::names(const agent::NamesBatch& batch) {
    builder_.Clear();
    agent::build_names(builder_, batch);
    const fbs::Names* names = chunk().body_as_Names();
    for (const fbs::Name* name : *names->names()) {
        check(name->id() != 0 && name->id() <= schema::kNameEntries, "a name's id is one");
        check(name->text()->size() <= schema::kMaxNameLength, "a name has its bound");
        name_bytes_ += name->text()->size();
    }
    for (const fbs::Attribute* one : *names->attributes())
        check(one->id() != 0 && one->id() <= schema::kAttributeEntries, "a set's id is one");
    // Each name once a capture: the most that a capture keeps of them.
    check(name_bytes_ <= std::uint64_t{schema::kNameEntries} * schema::kMaxNameLength,
          "the names of a capture are bounded");
}

bool CheckingSink::blocks(std::span<const agent::Block* const> blocks) {
    builder_.Clear();
    agent::build_blocks(builder_, blocks);
    const fbs::Blocks* body = chunk().body_as_Blocks();
    check(body->blocks()->size() == blocks.size(), "each block is in the chunk");
    for (const fbs::Block* block : *body->blocks()) check_block(*block);
    if (!keeps_) refused_any_ = true;
    return keeps_;
}

void CheckingSink::check_block(const fbs::Block& block) {
    schema::BlockDecoder decoder(block.data()->data(), block.data()->size(), block.base_ticks());
    schema::DecodedRecord record;
    std::uint64_t position = block.first();
    std::uint32_t records = 0;
    while (decoder.next(record)) {
        const auto kind = record.header().kind;
        if (kind != schema::RecordKind::kPad && kind != schema::RecordKind::kNameInline) ++records;
        position += record.cells;
    }
    check(!decoder.damaged(), "a block's bytes decode");
    check(records == block.records(), "a block holds the records that it says");
    // What was not kept behind its last record has been taken, too. Wrapping, as below.
    check(block.last() - position <= std::uint64_t{1} << 32, "a block's cells end where it says");
    check(block.open()->size() <= schema::kOpenStackDepth, "open ranges are bounded");
    const auto before = ends_.find(block.lane());
    // Wrapping: a hostile lane may begin where 64 bits end.
    if (before != ends_.end()) {
        check(static_cast<std::int64_t>(block.first() - before->second) >= 0,
              "a lane's blocks follow each other");
    }
    ends_[block.lane()] = block.last();
    if (keeps_) kept_[{block.lane(), block.generation()}] += records;
}

void CheckingSink::restart() {
    kept_.clear();
    ends_.clear();
    name_bytes_ = 0;
    refused_any_ = false;
}

void CheckingSink::check_accounts(std::span<const agent::LaneAccount> accounts) const {
    std::map<LaneKey, std::uint64_t> said;
    for (const agent::LaneAccount& account : accounts) {
        check(account.written() == account.kept + account.outside + account.lost,
              "written = kept + outside + lost");
        // So far below 2^64 that the sums over lanes and processes do not wrap either.
        check(account.lost < 1ull << 60 && account.outside < 1ull << 60, "an account is possible");
        if (account.kept != 0) said[{account.lane.index, account.lane.generation}] += account.kept;
    }
    auto held = kept_;
    std::erase_if(held, [](const auto& lane) { return lane.second == 0; });
    check(said == held, "kept is what the blocks hold");
}

}  // namespace ringside::tests::fuzz
