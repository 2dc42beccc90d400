#include "viewer_export/load/rpc_records.hpp"

#include <algorithm>
#include <utility>

namespace ringside::viewer_export {

using schema::RecordKind;

namespace {

/// More than a segment's table ever holds.
constexpr std::uint32_t kMaxNameId = 1u << 20;

std::string text_of(const flatbuffers::String* text) {
    return text == nullptr ? std::string{} : text->str();
}

bool has_mpi(const fbs::Process& process) {
    const auto* sources = process.sources();
    return sources != nullptr &&
           std::any_of(sources->begin(), sources->end(), [](const fbs::Source* source) {
               return source->id() == static_cast<int>(schema::SourceId::kMpi) &&
                      source->level() != fbs::SourceLevel::Absent;
           });
}

}  // namespace

/// The RPC records of one block, one after the other.
class RpcRecords::Cursor {
public:
    /// @param from  positions before this have been read
    Cursor(const fbs::Block& block, std::uint32_t process, std::uint64_t from)
        : decoder_(block.data() == nullptr ? nullptr : block.data()->data(),
                   block.data() == nullptr ? 0 : block.data()->size(), block.base_ticks()),
          from_(from) {
        told_.process = process;
        told_.lane = block.lane();
        told_.generation = block.generation();
        told_.words = decoded_.words;
        told_.position = block.first();
    }

    /// @return false at the end of the block
    bool next() {
        told_.position += cells_;
        for (; decoder_.next(decoded_); told_.position += decoded_.cells) {
            const RecordKind kind = decoded_.header().kind;
            if (kind == RecordKind::kPad || told_.position < from_) continue;
            if (kind != RecordKind::kNameInline) ++records_;
            told_.begin = kind == RecordKind::kRpcBegin;
            if (!told_.begin && kind != RecordKind::kRpcEnd) continue;
            if (decoded_.cells < schema::record_cells(kind)) continue;
            cells_ = decoded_.cells;
            return true;
        }
        return false;
    }
    /// @param storage  what the block lies in, where its chunk was packed
    void keep(const Chunk& chunk, std::shared_ptr<const std::vector<std::uint8_t>> storage) {
        chunk_ = chunk;
        storage_ = std::move(storage);
    }
    const Chunk& chunk() const { return chunk_; }
    const RpcRecord& record() const { return told_; }
    std::uint64_t ticks() const { return decoded_.words[1]; }
    /// So far, of whatever kind.
    std::uint64_t records() const { return records_; }

private:
    schema::BlockDecoder decoder_;
    schema::DecodedRecord decoded_;
    std::uint64_t from_;
    std::uint64_t cells_ = 0;
    std::uint64_t records_ = 0;
    RpcRecord told_;
    Chunk chunk_{};
    std::shared_ptr<const std::vector<std::uint8_t>> storage_;
};

RpcRecords::RpcRecords() = default;
RpcRecords::RpcRecords(RpcRecords&&) noexcept = default;
RpcRecords::~RpcRecords() = default;

schema::Result<void> RpcRecords::add(const std::filesystem::path& dump) {
    auto reader = load::DumpReader::open(dump);
    if (!reader) return reader.error();
    if (dumps_.empty()) {
        const fbs::FileHeader& header = reader->header();
        node = text_of(header.node());
        host = text_of(header.host());
        job = text_of(header.job());
        path = dump.string();
        capture_id = header.capture_id();
        calibration = load::calibration_of(header);
        start_ticks = header.start_ticks();
    }
    dumps_.push_back({std::move(*reader), {}});
    return {};
}

void RpcRecords::scan(const Tell& tell) {
    for (std::uint32_t d = 0; d < dumps_.size(); ++d) {
        Dump& dump = dumps_[d];
        std::uint64_t offset = dump.reader.offset();
        for (; const fbs::Chunk* chunk = dump.reader.next(); offset = dump.reader.offset()) {
            if (const auto* blocks = chunk->body_as_Blocks();
                blocks != nullptr && blocks->blocks() != nullptr) {
                std::uint64_t earliest = kEnd;
                for (const fbs::Block* block : *blocks->blocks()) {
                    const auto at = cursor(dump, *block);
                    while (at->next()) {
                        earliest = std::min(earliest, at->ticks());
                        if (at->record().begin) add_worker(at->record());
                        tell(at->record());
                    }
                    processes_[at->record().process].events += at->records();
                }
                if (earliest != kEnd) chunks_.push_back({d, offset, earliest});
            } else if (const auto* process = chunk->body_as_Process()) {
                add_process(dump, *process);
            } else if (const auto* names = chunk->body_as_Names()) {
                add_names(dump, *names);
            } else if (const auto* footer = chunk->body_as_Footer()) {
                add_footer(dump, *footer);
            }
            dump.reader.release_before(offset);
        }
    }
    for (std::size_t i = chunks_.size(); i-- > 1;) {
        chunks_[i - 1].earliest_ticks =
            std::min(chunks_[i - 1].earliest_ticks, chunks_[i].earliest_ticks);
    }
    next_position_.clear();
}

std::uint64_t RpcRecords::read_until(std::uint64_t limit_ticks, const Tell& tell) {
    while (next_chunk_ < chunks_.size() && chunks_[next_chunk_].earliest_ticks < limit_ticks)
        open_chunk();
    std::uint64_t next = next_chunk_ < chunks_.size() ? chunks_[next_chunk_].earliest_ticks : kEnd;
    std::size_t left = 0;
    for (std::unique_ptr<Cursor>& at : cursors_) {
        bool more = true;
        for (; more && at->ticks() < limit_ticks; more = at->next()) tell(at->record());
        if (!more) continue;
        next = std::min(next, at->ticks());
        std::swap(cursors_[left++], at);
    }
    cursors_.resize(left);
    return next;
}

void RpcRecords::open_chunk() {
    const Chunk& entry = chunks_[next_chunk_++];
    Dump& dump = dumps_[entry.dump];
    std::uint64_t needed_from = entry.offset;
    for (const std::unique_ptr<Cursor>& at : cursors_) {
        if (at->chunk().dump == entry.dump) needed_from = std::min(needed_from, at->chunk().offset);
    }
    dump.reader.release_before(needed_from);
    dump.reader.seek(entry.offset);
    const fbs::Chunk* chunk = dump.reader.next();
    if (chunk == nullptr || chunk->body_as_Blocks() == nullptr) return;  // the file has changed
    const auto storage = dump.reader.take_unpacked();
    for (const fbs::Block* block : *chunk->body_as_Blocks()->blocks()) {
        auto at = cursor(dump, *block);
        if (!at->next()) continue;
        at->keep(entry, storage);
        cursors_.push_back(std::move(at));
    }
}

std::unique_ptr<RpcRecords::Cursor> RpcRecords::cursor(Dump& dump, const fbs::Block& block) {
    const std::uint32_t process = process_of(dump, block.process());
    std::uint64_t& next = next_position_[{process, block.lane()}];
    auto at = std::make_unique<Cursor>(block, process, next);
    next = std::max(next, block.last());
    return at;
}

void RpcRecords::add_worker(const RpcRecord& begin) {
    const auto id = static_cast<std::uint32_t>(begin.words[8] >> 32);
    std::vector<bool>& known = tables_[begin.process].is_worker;
    if (id == 0 || (id < known.size() && known[id])) return;
    if (id < kMaxNameId) {
        known.resize(std::max<std::size_t>(known.size(), id + 1));
        known[id] = true;
    }
    std::vector<std::string>& workers = processes_[begin.process].workers;
    const std::string self = name(begin.process, id);
    if (std::find(workers.begin(), workers.end(), self) == workers.end()) workers.push_back(self);
}

std::string RpcRecords::name(std::uint32_t process, std::uint32_t id) const {
    const std::vector<std::string>& table = tables_[process].names;
    if (id == 0) return {};
    if (id < table.size() && !table[id].empty()) return table[id];
    return "(name " + std::to_string(id) + ")";
}

std::uint32_t RpcRecords::process_of(Dump& dump, std::uint32_t index) {
    const auto [entry, added] =
        dump.processes.try_emplace(index, static_cast<std::uint32_t>(processes_.size()));
    if (added) {
        processes_.emplace_back().index = index;
        tables_.emplace_back();
    }
    return entry->second;
}

void RpcRecords::add_process(Dump& dump, const fbs::Process& process) {
    if (!dump.processes.contains(process.index()) && process.pid() != 0) {
        // The same process in another dump of its node: positions tell what has been read.
        for (std::uint32_t i = 0; i < processes_.size(); ++i) {
            const bool known = std::any_of(dump.processes.begin(), dump.processes.end(),
                                           [&](const auto& entry) { return entry.second == i; });
            if (!known && processes_[i].pid == process.pid() &&
                tables_[i].pid_namespace == process.pid_namespace() &&
                tables_[i].start_ticks == process.start_ticks())
                dump.processes.emplace(process.index(), i);
        }
    }
    const std::uint32_t place = process_of(dump, process.index());
    JoinProcess& to = processes_[place];
    tables_[place].pid_namespace = process.pid_namespace();
    tables_[place].start_ticks = process.start_ticks();
    to.pid = process.pid();
    to.rank = process.rank();
    to.command.clear();
    if (process.command_line() != nullptr) {
        for (const auto* word : *process.command_line())
            to.command += (to.command.empty() ? "" : " ") + word->str();
    }
    if (to.command.empty()) to.command = text_of(process.executable());
    to.has_mpi = has_mpi(process);
    const std::string worker = text_of(process.worker_name());
    const bool known = std::find(to.workers.begin(), to.workers.end(), worker) != to.workers.end();
    if (!worker.empty() && !known) to.workers.push_back(worker);
}

void RpcRecords::add_names(Dump& dump, const fbs::Names& names) {
    if (names.names() == nullptr) return;
    std::vector<std::string>& table = tables_[process_of(dump, names.process())].names;
    for (const fbs::Name* name : *names.names()) {
        if (name->id() == 0 || name->id() > kMaxNameId) continue;
        if (table.size() <= name->id()) table.resize(name->id() + 1);
        const std::string text = text_of(name->text());
        table[name->id()] = text.empty() ? model::kUnnamed : text;
    }
}

void RpcRecords::add_footer(Dump& dump, const fbs::Footer& footer) {
    start_ticks = footer.start_ticks();
    stop_ticks = std::max(stop_ticks, footer.stop_ticks());
    if (footer.lanes() != nullptr) {
        for (const fbs::LaneTotals* lane : *footer.lanes())
            processes_[process_of(dump, lane->process())].lost += lane->lost();
    }
    if (footer.processes() == nullptr) return;
    for (const fbs::ProcessEnd* end : *footer.processes()) {
        JoinProcess& process = processes_[process_of(dump, end->process())];
        process.fate = static_cast<model::Fate>(end->fate());
        process.end_ticks = end->ticks();
        process.start_delay_ns = end->start_delay_ns();
    }
}

schema::Result<std::vector<RpcRecords>> rpc_records(
    const std::vector<std::filesystem::path>& dumps) {
    std::vector<RpcRecords> nodes;
    for (const std::filesystem::path& path : dumps) {
        RpcRecords records;
        if (auto added = records.add(path); !added) return added.error();
        const auto same = std::find_if(nodes.begin(), nodes.end(), [&](const RpcRecords& other) {
            return other.node == records.node;
        });
        if (same == nodes.end()) {
            nodes.push_back(std::move(records));
        } else if (auto added = same->add(path); !added) {
            return added.error();
        }
    }
    return nodes;
}

}  // namespace ringside::viewer_export
