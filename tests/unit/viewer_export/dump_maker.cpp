#include "dump_maker.hpp"

#include <algorithm>

#include "schema/frame.hpp"

namespace ringside::tests {

using schema::RecordKind;

LaneMaker::LaneMaker(DumpMaker& dump, std::uint32_t process, std::uint32_t lane,
                     std::uint32_t generation, int tid)
    : dump_(dump), tid_(tid) {
    totals_.process = process;
    totals_.lane = lane;
    totals_.generation = generation;
    totals_.tid = tid;
}

std::uint64_t LaneMaker::header(RecordKind kind, int detail, const std::string& name,
                                int cells) const {
    const std::uint32_t id = name.empty()         ? 0
                             : name == "(inline)" ? schema::kInlineName.value
                                                  : dump_.name(totals_.process, name);
    return schema::RecordHeader{
        kind,
        static_cast<std::uint8_t>(cells == 0 ? static_cast<int>(schema::record_cells(kind))
                                             : cells),
        schema::record_flags(schema::SourceId::kTorch, static_cast<std::uint8_t>(detail)),
        schema::NameId{id}}
        .pack();
}

std::uint64_t LaneMaker::gpu(RecordKind kind, const std::string& name,
                             std::vector<std::uint64_t> words, int detail) {
    words.insert(words.begin(), header(kind, detail, name));
    words.resize(schema::record_cells(kind) * schema::kCellWords);
    return raw(std::move(words));
}

std::uint64_t LaneMaker::raw(std::vector<std::uint64_t> words) {
    const std::uint64_t at = position_;
    position_ += words.size() / schema::kCellWords;
    if (schema::RecordHeader::unpack(words[0]).kind != RecordKind::kNameInline) {
        ++totals_.kept;
        ++totals_.written;
    }
    records_.push_back({at, std::move(words)});
    return at;
}

std::uint64_t LaneMaker::range(const std::string& name, std::uint64_t begin, std::uint64_t end,
                               int scope) {
    return raw({header(RecordKind::kRange, scope, name), begin, end, 0});
}

std::uint64_t LaneMaker::op(const std::string& name, std::uint64_t begin, std::uint64_t end,
                            std::int64_t sequence, std::uint32_t thread,
                            std::uint32_t forward_thread, int scope, const std::string& shapes) {
    const std::uint32_t text = shapes.empty() ? 0 : dump_.name(totals_.process, shapes);
    return raw({header(RecordKind::kOperator, scope, name), begin, end,
                static_cast<std::uint64_t>(sequence),
                thread | static_cast<std::uint64_t>(forward_thread) << 32,
                static_cast<std::uint64_t>(scope), 0, text});
}

std::uint64_t LaneMaker::memory(std::uint64_t ticks, std::uint64_t address, std::int64_t bytes,
                                bool cuda) {
    dump_.attributes(totals_.process, schema::kMemoryName, "", "", 0, schema::PayloadType::kSigned);
    const std::uint64_t kind = schema::RecordHeader{
        RecordKind::kMark, 1, schema::record_flags(schema::SourceId::kTorch, cuda ? 1 : 0),
        schema::NameId{dump_.name(
            totals_.process,
            schema::kMemoryName)}}.pack();
    return raw({kind, ticks, address, static_cast<std::uint64_t>(bytes)});
}

std::uint64_t LaneMaker::serve(std::uint64_t ticks, std::uint64_t key, bool again) {
    return raw(
        {header(RecordKind::kContext, schema::kContextOn | (again ? schema::kContextAgain : 0), ""),
         ticks, key, 0, 0, 0, 0, 0});
}

std::uint64_t LaneMaker::stop_serving(std::uint64_t ticks, bool again) {
    return raw({header(RecordKind::kContext, again ? schema::kContextAgain : 0, ""), ticks, 0, 0, 0,
                0, 0, 0});
}

std::uint64_t LaneMaker::rpc_begin(std::uint64_t ticks, const HalfSpec& half) {
    const auto id = [&](const std::string& text) {
        return static_cast<std::uint64_t>(text.empty() ? 0 : dump_.name(totals_.process, text));
    };
    constexpr std::uint64_t kMpiForTorch = (4u ^ 1u) << 28;  // the header's source
    return raw(
        {header(RecordKind::kRpcBegin, 0, half.function) ^ (half.message ? kMpiForTorch : 0), ticks,
         half.key, 128, 0, 0, half.span, half.parent_key, id(half.peer) | id(half.self) << 32,
         pair(id(half.module), half.wire_type), half.wire_id,
         static_cast<std::uint64_t>(half.mode) | static_cast<std::uint64_t>(half.server) << 8 |
             static_cast<std::uint64_t>(static_cast<std::uint16_t>(half.self_id)) << 16 |
             0xffffull << 32});
}

std::uint64_t LaneMaker::rpc_end(std::uint64_t ticks, std::uint64_t key, schema::RpcStatus status) {
    return raw(
        {header(RecordKind::kRpcEnd, 0, ""), ticks, key, schema::RpcEndRecord::pack(status, 64)});
}

std::uint64_t LaneMaker::async_begin(const std::string& name, std::uint64_t ticks,
                                     std::uint64_t key) {
    return raw({header(RecordKind::kAsyncBegin, 0, name), ticks, key, 0});
}

std::uint64_t LaneMaker::async_end(std::uint64_t ticks, std::uint64_t key) {
    return raw({header(RecordKind::kAsyncEnd, 0, ""), ticks, key, 0});
}

std::uint64_t LaneMaker::value(RecordKind kind, const std::string& name, std::uint64_t ticks,
                               std::uint64_t value) {
    return raw({header(kind, 0, name), ticks, value, 0});
}

std::uint64_t LaneMaker::inline_name(const std::string& text) {
    const std::uint32_t cells = schema::name_inline_cells(static_cast<std::uint32_t>(text.size()));
    std::vector<std::uint64_t> words(cells * schema::kCellWords);
    words[0] = header(RecordKind::kNameInline, 0, "", static_cast<int>(cells));
    words[1] = text.size();
    std::memcpy(words.data() + 3, text.data(), text.size());
    return raw(std::move(words));
}

void LaneMaker::open(const std::string& name, std::uint64_t begin, bool torch_user) {
    open_.emplace_back(begin, 0, 0, header(RecordKind::kRange, torch_user ? 7 : 0, name));
}

void LaneMaker::context(std::uint64_t key) {
    context_ = std::make_unique<fbs::ContextT>();
    context_->state = fbs::ContextState::Serving;
    context_->key = key;
}

void LaneMaker::lose(std::uint64_t records, std::uint64_t first_ticks, std::uint64_t last_ticks) {
    totals_.lost += records;
    totals_.written += records;
    totals_.first_lost_ticks = first_ticks;
    totals_.last_lost_ticks = last_ticks;
}

void LaneMaker::block(const std::vector<Record>& records, std::uint64_t first) {
    auto block = std::make_unique<fbs::BlockT>();
    block->process = totals_.process;
    block->lane = totals_.lane;
    block->generation = totals_.generation;
    block->tid = tid_;
    block->thread_name = "worker";
    block->first = first;
    block->last = position_;
    block->base_ticks = records.empty() ? 0 : records.front().words[1];
    if (context_) block->context = std::make_unique<fbs::ContextT>(*context_);
    block->open = open_;
    schema::BlockEncoder encoder(block->base_ticks);
    std::vector<std::uint8_t> data(records.size() * (schema::kMaxEncodedRecordBytes + 11) + 11);
    std::uint8_t* out = data.data();
    std::uint64_t at = first;
    for (const Record& record : records) {
        if (record.position > at) out = schema::BlockEncoder::pad(record.position - at, out);
        out = encoder.record(record.words.data(), out);
        at = record.position + record.words.size() / schema::kCellWords;
        ++block->records;
    }
    data.resize(static_cast<std::size_t>(out - data.data()));
    block->data = std::move(data);
    dump_.flush_names();
    fbs::BlocksT blocks;
    blocks.blocks.push_back(std::move(block));
    fbs::BodyUnion body;
    body.Set(std::move(blocks));
    dump_.chunk(std::move(body));
}

void LaneMaker::flush() {
    block(records_, first_);
    if (repeat_from_ < position_) {
        std::vector<Record> again;
        std::copy_if(records_.begin(), records_.end(), std::back_inserter(again),
                     [&](const Record& record) { return record.position >= repeat_from_; });
        block(again, repeat_from_);
        repeat_from_ = ~0ull;
    }
    records_.clear();
    first_ = position_;
}

DumpMaker::DumpMaker(const std::string& node, std::uint32_t min_reader, std::uint32_t options) {
    fbs::FileHeaderT header;
    header.version = std::max(min_reader, 1u);
    header.min_reader = min_reader;
    header.node = node;
    header.host = "host-" + node;
    header.boot_id = "boot";
    header.job = "test";
    header.capture_id = 7;
    header.options = options;
    header.calibration = std::make_unique<fbs::CalibrationT>();
    header.calibration->reference_ns = kEpochNs;
    header.calibration->ticks_per_second = 1e9;
    fbs::BodyUnion body;
    body.Set(std::move(header));
    chunk(std::move(body));
}

void DumpMaker::process(std::uint32_t index, int pid, int rank, const std::string& worker,
                        int worker_id, fbs::SourceLevel level) {
    fbs::ProcessT process;
    process.index = index;
    process.pid = pid;
    process.pid_namespace = 1;
    process.start_ticks = 5;
    process.rank = rank;
    process.worker_name = worker;
    process.worker_id = worker_id;
    process.executable = "/usr/bin/python3";
    process.command_line = {"python3", "train.py"};
    auto source = std::make_unique<fbs::SourceT>();
    source->id = 1;
    source->level = level;
    if (level == fbs::SourceLevel::Degraded) source->reason = "no Python part";
    if (level == fbs::SourceLevel::NotInstrumented) source->reason = "held by another";
    process.sources.push_back(std::move(source));
    fbs::BodyUnion body;
    body.Set(std::move(process));
    chunk(std::move(body));
}

LaneMaker& DumpMaker::lane(std::uint32_t process, std::uint32_t lane, int tid,
                           std::uint32_t generation) {
    lanes_.push_back(std::make_unique<LaneMaker>(*this, process, lane, generation, tid));
    return *lanes_.back();
}

void DumpMaker::end(std::uint32_t process, fbs::Fate fate, std::uint64_t ticks,
                    std::int64_t start_delay_ns) {
    auto end = std::make_unique<fbs::ProcessEndT>();
    end->process = process;
    end->fate = fate;
    end->ticks = ticks;
    end->start_delay_ns = start_delay_ns;
    ends_.push_back(std::move(end));
}

std::uint32_t DumpMaker::name(std::uint32_t process, const std::string& text) {
    const auto [entry, added] = names_.try_emplace({process, text}, 0);
    if (added) {
        entry->second = ++next_name_[process];
        new_names_[process].emplace_back(entry->second, text);
    }
    return entry->second;
}

void DumpMaker::attributes(std::uint32_t process, const std::string& text,
                           const std::string& domain, const std::string& category,
                           std::uint32_t colour, schema::PayloadType payload) {
    fbs::AttributeT attribute;
    attribute.id = static_cast<std::uint16_t>(attributes_.size() + 1);
    attribute.domain = domain.empty() ? 0 : name(process, domain);
    attribute.category = category.empty() ? 0 : name(process, category);
    attribute.colour = colour;
    attribute.payload = static_cast<std::uint16_t>(payload);
    attributes_[{process, name(process, text)}] = attribute;
}

void DumpMaker::flush_names() {
    for (const auto& [process, list] : new_names_) {
        fbs::NamesT names;
        names.process = process;
        for (const auto& [id, text] : list) {
            auto name = std::make_unique<fbs::NameT>();
            name->id = id;
            name->text = text;
            if (const auto found = attributes_.find({process, id}); found != attributes_.end()) {
                name->attribute = found->second.id;
                names.attributes.push_back(std::make_unique<fbs::AttributeT>(found->second));
            }
            names.names.push_back(std::move(name));
        }
        fbs::BodyUnion body;
        body.Set(std::move(names));
        chunk(std::move(body));
    }
    new_names_.clear();
}

void DumpMaker::chunk(fbs::BodyUnion body) {
    fbs::ChunkT chunk;
    chunk.body = std::move(body);
    flatbuffers::FlatBufferBuilder builder;
    fbs::FinishChunkBuffer(builder, fbs::Chunk::Pack(builder, &chunk));
    const auto framed =
        frame(schema::kDumpFrameMagic, builder.GetBufferPointer(), builder.GetSize());
    bytes_.insert(bytes_.end(), framed.begin(), framed.end());
    edges_.push_back(bytes_.size());
}

void DumpMaker::footer(std::uint64_t stop_ticks) {
    fbs::FooterT footer;
    footer.stop_ticks = stop_ticks;
    footer.record_cost_ns = 20;
    for (const auto& lane : lanes_) {
        if (!lane->records_.empty() || !lane->open_.empty()) lane->flush();
        footer.lanes.push_back(std::make_unique<fbs::LaneTotalsT>(lane->totals_));
        footer.records += lane->totals_.kept;
        footer.lost += lane->totals_.lost;
    }
    footer.processes = std::move(ends_);
    if (perturbation_) footer.perturbation = std::move(perturbation_);
    fbs::BodyUnion body;
    body.Set(std::move(footer));
    chunk(std::move(body));
}

IndexMaker::IndexMaker(std::vector<std::string> nodes) {
    index.version = 1;
    index.min_reader = 1;
    index.job = "test";
    index.capture_id = 7;
    index.leader = nodes.empty() ? "" : nodes.front();
    for (const std::string& name : nodes) {
        auto node = std::make_unique<fbs::NodeT>();
        node->name = name;
        node->host = "host-" + name;
        node->dump = name + ".rsd";
        node->clock = std::make_unique<fbs::ClockCorrection>(kEpochNs, 0, 0.0, 2500);
        index.nodes.push_back(std::move(node));
    }
}

void IndexMaker::clock(std::size_t node, std::int64_t offset_ns, double drift_ppb) {
    index.nodes[node]->clock =
        std::make_unique<fbs::ClockCorrection>(kEpochNs, offset_ns, drift_ppb, 2500);
}

int IndexMaker::joined(fbs::HalfRef client, fbs::HalfRef server, int parent, bool unfinished,
                       bool reply) {
    auto rpc = std::make_unique<fbs::RpcT>();
    rpc->state = fbs::RpcState::Joined;
    rpc->trace_hi = 0x1111;
    rpc->trace_lo = 0x2222;
    rpc->parent = parent;
    rpc->unfinished = unfinished;
    rpc->reply = reply;
    rpc->client = std::make_unique<fbs::HalfRef>(client);
    rpc->server = std::make_unique<fbs::HalfRef>(server);
    index.rpcs.push_back(std::move(rpc));
    return static_cast<int>(index.rpcs.size()) - 1;
}

int IndexMaker::single(fbs::HalfRef half, bool server, fbs::RpcState state, bool unfinished) {
    auto rpc = std::make_unique<fbs::RpcT>();
    rpc->state = state;
    rpc->unfinished = unfinished;
    (server ? rpc->server : rpc->client) = std::make_unique<fbs::HalfRef>(half);
    index.rpcs.push_back(std::move(rpc));
    return static_cast<int>(index.rpcs.size()) - 1;
}

namespace {

std::vector<std::uint8_t> framed(const fbs::JobIndexT& index) {
    flatbuffers::FlatBufferBuilder builder;
    fbs::FinishJobIndexBuffer(builder, fbs::JobIndex::Pack(builder, &index));
    return frame(schema::kJobFrameMagic, builder.GetBufferPointer(), builder.GetSize());
}

}  // namespace

std::vector<std::uint8_t> IndexMaker::bytes() const {
    return framed(index);
}

void IndexMaker::write_calls(const std::filesystem::path& path, const std::vector<fbs::Call>& calls,
                             std::size_t in_frame) {
    std::vector<std::uint8_t> file;
    const auto add = [&](const fbs::JobIndexT& part) {
        const auto bytes = framed(part);
        file.insert(file.end(), bytes.begin(), bytes.end());
    };
    index.version = index.min_reader = 2;
    index.frames = 1;
    for (std::size_t at = 0; at < calls.size(); at += in_frame, ++index.frames) {
        fbs::JobIndexT part;
        part.version = part.min_reader = 2;
        const auto first = calls.begin() + static_cast<std::ptrdiff_t>(at);
        part.calls.assign(
            first, first + static_cast<std::ptrdiff_t>(std::min(in_frame, calls.size() - at)));
        add(part);
    }
    add(index);
    write_file(path, file);
}

}  // namespace ringside::tests
