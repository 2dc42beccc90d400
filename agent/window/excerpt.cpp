#include "agent/window/excerpt.hpp"

#include <algorithm>

#include "agent/attach/without_signals.hpp"
#include "agent/dump/chunk_facts.hpp"
#include "agent/window/block_part.hpp"
#include "agent/window/piece_file.hpp"

namespace ringside::agent {

Excerpt::Excerpt(Window& window, std::unique_ptr<DumpWriter> writer)
    : window_(window), writer_(std::move(writer)) {}

Excerpt::~Excerpt() {
    if (thread_.joinable()) {
        window_.store().mark_end();
        join();
    } else if (begun_) {
        window_.store().unpin();
    }
}

std::uint32_t Excerpt::include(ProcessFacts facts) {
    const std::lock_guard lock(mutex_);
    auto& entry = included_[facts.index];
    if (entry) return entry->index;
    entry = std::make_unique<Included>();
    entry->index = facts.index = static_cast<std::uint32_t>(included_.size() - 1);
    entry->facts = std::move(facts);
    return entry->index;
}

std::optional<std::uint32_t> Excerpt::index_of(std::uint32_t window_index) const {
    const std::lock_guard lock(mutex_);
    const auto found = included_.find(window_index);
    if (found == included_.end()) return std::nullopt;
    return found->second->index;
}

std::uint32_t Excerpt::included() const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(included_.size());
}

void Excerpt::begin(const DumpHeader& header) {
    range_.start = header.start_ticks;
    writer_->header(header);
    cursor_ = window_.store().pin(header.start_ticks);
    begun_ = true;
}

void Excerpt::start() {
    const WithoutSignals without;
    thread_ = std::thread([this] { copy_all(); });
}

std::uint64_t Excerpt::set_stop(std::uint64_t stop_ticks) {
    const std::lock_guard lock(mutex_);
    range_.stop = std::max({stop_ticks, copied_until_, range_.start});
    return range_.stop;
}

void Excerpt::join() {
    if (!thread_.joinable()) return;
    thread_.join();
    window_.store().unpin();
    begun_ = false;
}

void Excerpt::copy_all() {
    FrameRef frame;
    while (window_.store().next(cursor_, frame)) {
        copy(frame);
        publish();
    }
}

void Excerpt::publish() {
    bytes_.store(writer_->bytes(), std::memory_order_relaxed);
}

void Excerpt::copy(const FrameRef& frame) {
    std::uint64_t bytes = 0;
    const fbs::Chunk* chunk = read_frame(frame.file->get(), frame.offset, buffer_, bytes);
    if (chunk == nullptr) {
        // Somebody else has written to our file: whose records those were, nobody can say any more.
        damaged_records_ += frame.facts.records;
        damaged_piece_ = piece_name(frame.sequence);
        return;
    }
    if (const fbs::Names* names = chunk->body_as_Names()) copy_names(*names);
    // What was sealed before the range began before it, all of it.
    const bool reaches = frame.facts.sealed_ticks >= range_.start;
    if (const fbs::Blocks* blocks = chunk->body_as_Blocks(); blocks != nullptr && reaches)
        copy_blocks(*blocks, frame);
}

Excerpt::Included* Excerpt::included_of(std::uint32_t window_index) {
    const std::lock_guard lock(mutex_);
    const auto found = included_.find(window_index);
    return found == included_.end() ? nullptr : found->second.get();
}

void Excerpt::tell(Included& process) {
    if (process.told) return;
    process.told = true;
    const std::lock_guard lock(mutex_);
    writer_->process(process.facts);
}

void Excerpt::copy_names(const fbs::Names& names) {
    Included* process = included_of(names.process());
    if (process == nullptr) return;
    tell(*process);
    NamesBatch batch;
    batch.process = process->index;
    // Each piece names all that it uses; the dump once.
    for (const fbs::Name* name : *names.names()) {
        if (name->id() > schema::kNameEntries || process->names[name->id()]) continue;
        process->names[name->id()] = true;
        batch.names.push_back({name->id(), name->text()->str(), name->flags(), name->attribute()});
    }
    for (const fbs::Attribute* attribute : *names.attributes()) {
        if (attribute->id() > schema::kAttributeEntries || process->attributes[attribute->id()])
            continue;
        process->attributes[attribute->id()] = true;
        batch.attributes.push_back({attribute->id(), attribute->domain(), attribute->category(),
                                    attribute->colour(), attribute->payload()});
    }
    if (!batch.names.empty() || !batch.attributes.empty()) writer_->names(batch);
}

void Excerpt::copy_blocks(const fbs::Blocks& blocks, const FrameRef& frame) {
    TickRange range;
    {
        const std::lock_guard lock(mutex_);
        range = range_;
        // What is on its way into the dump: a stop that comes late must not lie before it.
        if (range.stop == ~0ull) copied_until_ = std::max(copied_until_, frame.facts.sealed_ticks);
    }
    const bool whole =
        frame.facts.earliest_ticks >= range.start && frame.facts.sealed_ticks <= range.stop;
    std::vector<Block> kept;
    for (const fbs::Block* stored : *blocks.blocks()) {
        Included* process = included_of(stored->process());
        if (process == nullptr) continue;
        tell(*process);
        Block block = facts_of(*stored);
        LaneSum& lane = lane_of(block.process, block.lane, block.thread.tid);
        if (!whole && !keep_part(block, range, lane.account.outside)) {
            lose(lane.account, block.records, range.start, frame.facts.sealed_ticks);
        } else {
            // Without records too: of a lane's open ranges only its last block counts.
            keep_open_part(block, range);
            const LaneAccount& account = lane.account;
            block.tally.outside = account.outside;
            block.tally.lost = account.lost;
            block.tally.first_lost_ticks = account.first_lost_ticks;
            block.tally.last_lost_ticks = account.last_lost_ticks;
            kept.push_back(std::move(block));
        }
    }
    if (kept.empty()) return;
    std::vector<const Block*> list;
    std::vector<std::uint32_t> window_indices;
    for (Block& block : kept) {
        window_indices.push_back(block.process);
        block.process = included_of(block.process)->index;
        list.push_back(&block);
    }
    writer_->reserve_end(lanes_.size(), included(), included());
    const bool written = writer_->blocks(list);
    for (std::size_t i = 0; i < kept.size(); ++i) kept[i].process = window_indices[i];
    settle(kept, written, frame.facts.sealed_ticks);
}

void Excerpt::settle(const std::vector<Block>& blocks, bool kept, std::uint64_t sealed_ticks) {
    for (const Block& block : blocks) {
        LaneSum& lane = lane_of(block.process, block.lane, block.thread.tid);
        if (!kept) {
            lose(lane.account, block.records, block.base_ticks, sealed_ticks);
            continue;
        }
        if (lane.account.kept == 0) lane.first = block.first;
        lane.last = std::max(lane.last, block.last);
        lane.account.kept += block.records;
        lane.bytes += block.data.size();
        kept_.fetch_add(block.records, std::memory_order_relaxed);
    }
}

Excerpt::LaneSum& Excerpt::lane_of(std::uint32_t window_index, schema::LaneId lane,
                                   std::int32_t tid) {
    LaneSum& sum = lanes_[{window_index, lane}];
    sum.account.lane = lane;
    if (tid != 0) sum.account.tid = tid;
    return sum;
}

void Excerpt::lose(LaneAccount& account, std::uint64_t records, std::uint64_t first,
                   std::uint64_t last) {
    account.lose(records, first, last);
    lost_.fetch_add(records, std::memory_order_relaxed);
}

void Excerpt::tell_last(ProcessFacts facts) {
    const std::lock_guard lock(mutex_);
    const auto found = included_.find(facts.index);
    if (found == included_.end()) return;
    facts.index = found->second->index;
    found->second->facts = std::move(facts);
}

void Excerpt::count_losses(const std::vector<LaneLoss>& losses) {
    for (const LaneLoss& loss : losses) {
        if (!index_of(loss.process)) continue;
        lose(lane_of(loss.process, loss.lane, loss.tid).account, loss.records, loss.first_ticks,
             loss.last_ticks);
    }
}

ExcerptCount Excerpt::count(std::uint32_t window_index) const {
    ExcerptCount count;
    for (const auto& [key, lane] : lanes_) {
        if (key.first != window_index) continue;
        count.kept += lane.account.kept;
        count.lost += lane.account.lost;
        count.bytes += lane.bytes;
    }
    return count;
}

bool Excerpt::holds(std::uint32_t window_index, schema::LaneId lane, std::uint64_t position) const {
    const auto found = lanes_.find({window_index, lane});
    return found != lanes_.end() && position >= found->second.first &&
           position < found->second.last;
}

DumpReceipt Excerpt::finish(DumpFooter footer) {
    for (const auto& [index, process] : included_) writer_->process(process->facts);
    for (const auto& [key, lane] : lanes_)
        footer.lanes.push_back({included_of(key.first)->index, lane.account});
    DumpReceipt receipt = writer_->finish(footer);
    bytes_.store(receipt.bytes, std::memory_order_relaxed);
    if (damaged_records_ != 0 && receipt.error.empty()) {
        receipt.complete = false;
        receipt.error = "cut out of the window: " + damaged_piece_ + " is damaged, " +
                        std::to_string(damaged_records_) +
                        " records of it are missing; keep other programs out of the job directory";
    }
    return receipt;
}

}  // namespace ringside::agent
