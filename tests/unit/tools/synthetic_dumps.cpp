#include "synthetic_dumps.hpp"

#include <xxhash.h>
#include <zstd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "schema/block_codec.hpp"
#include "schema/dump_generated.h"
#include "schema/frame.hpp"
#include "schema/request_id.hpp"

namespace ringside::tests {

namespace {

using schema::RecordKind;

constexpr std::int64_t kEpochNs = 1'790'000'000'000'000'000;
constexpr std::uint64_t kBlockBytes = 64 << 10;

/// Splitmix64.
struct Random {
    std::uint64_t state;
    std::uint64_t next() { return schema::mix64(state += 0x9e3779b97f4a7c15ull); }
    std::uint64_t below(std::uint64_t limit) { return next() % limit; }
    bool chance(double part) { return static_cast<double>(next() >> 11) * 0x1p-53 < part; }
};

/// A record that is to be written when its time has come.
struct Event {
    std::int64_t ns = 0;
    std::uint32_t lane = 0;
    bool begin = false;
    bool server = false;
    bool message = false;
    std::uint32_t peer = 0;
    std::uint64_t key = 0;
    std::uint64_t span = 0;
    std::uint64_t parent_key = 0;
    std::uint64_t wire_id = 0;
    /// A receive begins and ends at once.
    bool operator>(const Event& other) const {
        return ns != other.ns ? ns > other.ns : begin < other.begin;
    }
};

/// One node's dump: a process whose lanes are written in blocks.
class Node {
public:
    Node(const SyntheticJob& job, std::uint32_t number, const std::filesystem::path& directory,
         std::int64_t skew_ns)
        : number_(number), packed_(job.packed), lanes_(job.lanes) {
        char name[16];
        std::snprintf(name, sizeof name, "node%02u", number);
        file_.open(directory / (std::string(name) + ".rsd"), std::ios::binary);
        fbs::FileHeaderT header;
        header.version = header.min_reader = job.packed ? 2 : 1;
        header.node = name;
        header.host = std::string("host-") + name;
        header.boot_id = "boot";
        header.job = "synthetic";
        header.capture_id = 7;
        header.start_ticks = kStart;
        header.calibration = std::make_unique<fbs::CalibrationT>();
        // Ticks are true nanoseconds, whatever the node's clock says.
        header.calibration->reference_ns = kEpochNs + skew_ns;
        header.calibration->ticks_per_second = 1e9;
        chunk(std::move(header));
        fbs::ProcessT process;
        process.pid = static_cast<int>(1000 + number);
        process.rank = static_cast<int>(number);
        process.worker_name = worker(number);
        process.command_line = {"synthetic"};
        if (job.messages > 0) {
            process.sources.push_back(std::make_unique<fbs::SourceT>());
            process.sources.back()->id = static_cast<std::uint8_t>(schema::SourceId::kMpi);
            process.sources.back()->level = fbs::SourceLevel::Full;
        }
        chunk(std::move(process));
        fbs::NamesT names;
        const auto add = [&](const std::string& text) {
            names.names.push_back(std::make_unique<fbs::NameT>());
            names.names.back()->id = static_cast<std::uint32_t>(names.names.size());
            names.names.back()->text = text;
            return names.names.back()->id;
        };
        for (std::uint32_t i = 0; i < job.nodes; ++i) add(worker(i));
        for (std::uint32_t i = 0; i < job.nodes; ++i) add("rank " + std::to_string(i));
        first_rank_ = job.nodes + 1;
        function_ = add("f");
        send_ = add("MPI_Send");
        chunk(std::move(names));
    }

    static constexpr std::uint64_t kStart = 1'000'000;
    static std::string worker(std::uint32_t number) { return "worker" + std::to_string(number); }

    std::uint64_t next_key() { return ++keys_; }
    void add(const Event& event) { waiting_.push(event); }

    /// Writes what is of a time before this into blocks.
    void write_until(std::int64_t ns) {
        for (; !waiting_.empty() && waiting_.top().ns < ns; waiting_.pop()) write(waiting_.top());
    }

    /// The blocks into a chunk.
    void flush() {
        fbs::BlocksT blocks;
        for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
            Lane& lane = lanes_[i];
            if (lane.records == 0) continue;
            auto block = std::make_unique<fbs::BlockT>();
            block->lane = i;
            block->generation = 1;
            block->tid = static_cast<int>(100 + i);
            block->first = lane.first;
            block->last = lane.first = lane.position;
            block->base_ticks = lane.base_ticks;
            block->records = lane.records;
            block->data = std::move(lane.data);
            lane.kept += lane.records;
            lane.records = 0;
            lane.data.clear();
            blocks.blocks.push_back(std::move(block));
        }
        if (!blocks.blocks.empty()) chunk(std::move(blocks));
    }

    void finish(std::int64_t ns) {
        write_until(INT64_MAX);
        flush();
        fbs::FooterT footer;
        footer.start_ticks = kStart;
        footer.stop_ticks = static_cast<std::uint64_t>(ns);
        for (std::uint32_t i = 0; i < lanes_.size(); ++i) {
            auto totals = std::make_unique<fbs::LaneTotalsT>();
            totals->lane = i;
            totals->generation = 1;
            totals->tid = static_cast<int>(100 + i);
            totals->written = totals->kept = lanes_[i].kept;
            footer.records += lanes_[i].kept;
            footer.lanes.push_back(std::move(totals));
        }
        footer.processes.push_back(std::make_unique<fbs::ProcessEndT>());
        footer.processes.back()->ticks = footer.stop_ticks;
        chunk(std::move(footer));
        file_.close();
    }

private:
    struct Lane {
        schema::BlockEncoder encoder{0};
        std::vector<std::uint8_t> data;
        std::uint64_t first = 0;
        std::uint64_t position = 0;
        std::uint64_t base_ticks = 0;
        std::uint64_t kept = 0;
        std::uint32_t records = 0;
    };

    void write(const Event& event) {
        Lane& lane = lanes_[event.lane];
        const RecordKind kind = event.begin ? RecordKind::kRpcBegin : RecordKind::kRpcEnd;
        const auto cells = static_cast<std::uint8_t>(schema::record_cells(kind));
        std::uint64_t words[12] = {};
        const auto source = event.message ? schema::SourceId::kMpi : schema::SourceId::kTorch;
        const std::uint32_t name = event.message ? send_ : function_;
        words[0] =
            schema::RecordHeader{
                kind, cells, schema::record_flags(source, 0), {event.begin ? name : 0}}
                .pack();
        words[1] = static_cast<std::uint64_t>(event.ns);
        words[2] = event.key;
        const bool sent = event.message && !event.server && !event.begin;
        words[3] = event.begin ? 200
                               : schema::RpcEndRecord::pack(
                                     sent ? schema::RpcStatus::kSent : schema::RpcStatus::kOk, 100);
        if (event.begin) {
            words[6] = event.span;
            words[7] = event.parent_key;
            // MPI does not say as whom it was called.
            words[8] = event.message ? first_rank_ + event.peer
                                     : (event.peer + 1) | std::uint64_t{number_ + 1} << 32;
            words[10] = event.wire_id;
            words[11] = 1 | (event.server ? 1u << 8 : 0u);
        }
        if (lane.records == 0) {
            lane.base_ticks = words[1];
            lane.encoder = schema::BlockEncoder(words[1]);
        }
        std::uint8_t bytes[schema::kMaxEncodedRecordBytes];
        lane.data.insert(lane.data.end(), bytes, lane.encoder.record(words, bytes));
        lane.position += cells;
        ++lane.records;
        if (lane.data.size() >= kBlockBytes) flush();
    }

    template <class Table>
    void chunk(Table&& table) {
        fbs::ChunkT whole;
        whole.body.Set(std::forward<Table>(table));
        flatbuffers::FlatBufferBuilder builder;
        fbs::FinishChunkBuffer(builder, fbs::Chunk::Pack(builder, &whole));
        if (packed_ && whole.body.type == fbs::Body::Blocks) {
            fbs::PackedT packed;
            packed.bytes = builder.GetSize();
            packed.data.resize(ZSTD_compressBound(builder.GetSize()));
            packed.data.resize(ZSTD_compress(packed.data.data(), packed.data.size(),
                                             builder.GetBufferPointer(), builder.GetSize(), 1));
            whole.body.Set(std::move(packed));
            builder.Clear();
            fbs::FinishChunkBuffer(builder, fbs::Chunk::Pack(builder, &whole));
        }
        const schema::FrameHeader header{
            schema::kDumpFrameMagic, builder.GetSize(),
            XXH3_64bits(builder.GetBufferPointer(), builder.GetSize())};
        const char padding[8] = {};
        file_.write(reinterpret_cast<const char*>(&header), sizeof header);
        file_.write(reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize());
        file_.write(padding, schema::frame_padding(builder.GetSize()));
    }

    std::uint32_t number_;
    bool packed_;
    std::uint32_t first_rank_ = 0;
    std::uint32_t function_ = 0;
    std::uint32_t send_ = 0;
    std::uint64_t keys_ = 0;
    std::vector<Lane> lanes_;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> waiting_;
    std::ofstream file_;
};

class Maker {
public:
    Maker(const SyntheticJob& job, const std::filesystem::path& directory) : job_(job) {
        for (std::uint32_t n = 0; n < job.nodes; ++n) {
            const std::int64_t skew = n == 0 || job.skew_ns == 0
                                          ? 0
                                          : static_cast<std::int64_t>(random_.below(
                                                2 * static_cast<std::uint64_t>(job.skew_ns) + 1)) -
                                                job.skew_ns;
            nodes_.push_back(std::make_unique<Node>(job, n, directory, skew));
        }
        numbers_.resize(std::size_t{job.nodes} * job.nodes, 0);
    }

    SyntheticTruth run() {
        const std::int64_t length =
            std::max<std::int64_t>(job_.gap_ns * job_.open / job_.depth, 100);
        std::int64_t now = static_cast<std::int64_t>(Node::kStart) + length;
        std::int64_t flushed = now;
        for (std::uint64_t made = 0; made < job_.halves / 2;
             made += job_.depth, now += job_.gap_ns) {
            const std::int64_t begin =
                now +
                static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(job_.gap_ns)));
            const std::int64_t took =
                length / 2 +
                static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(length)));
            if (job_.messages > 0 && random_.chance(job_.messages)) {
                for (std::uint32_t i = 0; i < job_.depth; ++i) message(begin + i, took);
            } else {
                chain(begin, took);
            }
            if (now - flushed < std::min(job_.flush_ns, 100 * job_.gap_ns)) continue;
            for (auto& node : nodes_) node->write_until(now);
            if (now - last_chunk_ < job_.flush_ns) continue;
            for (auto& node : nodes_) node->flush();
            last_chunk_ = now;
        }
        for (auto& node : nodes_) node->finish(now + 4 * length);
        return truth_;
    }

private:
    /// A request, one within it while it is served, and so on.
    void chain(std::int64_t begin, std::int64_t length) {
        std::uint32_t from = static_cast<std::uint32_t>(random_.below(job_.nodes));
        std::uint64_t parent_key = 0;
        for (std::uint32_t i = 0; i < job_.depth; ++i) {
            const std::uint32_t to =
                job_.nodes == 1
                    ? 0
                    : (from + 1 + static_cast<std::uint32_t>(random_.below(job_.nodes - 1))) %
                          job_.nodes;
            // A way there and a way back, of which no two are alike.
            const std::int64_t step = std::max<std::int64_t>(length / (3 * job_.depth), 4);
            const std::int64_t there =
                step / 2 +
                static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(step / 2)));
            const std::int64_t back =
                step / 2 +
                static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(step / 2)));
            Event client;
            client.begin = true;
            client.ns = begin;
            client.lane = static_cast<std::uint32_t>(random_.below(job_.lanes));
            client.peer = to;
            client.key = nodes_[from]->next_key();
            client.parent_key = parent_key;
            client.wire_id = numbers_[std::size_t{from} * job_.nodes + to]++ % job_.ids;
            client.span = schema::torch_span_id(Node::worker(from).c_str(),
                                                Node::worker(to).c_str(), client.wire_id)
                              .value;
            Event server = client;
            server.server = true;
            server.ns = begin + there;
            server.peer = from;
            server.lane = static_cast<std::uint32_t>(random_.below(job_.lanes));
            server.key = nodes_[to]->next_key();
            server.parent_key = 0;
            const bool has_client = put(from, client, begin + length);
            const bool has_server = put(to, server, begin + length - back);
            truth_.whole += has_client && has_server;
            truth_.single += has_client != has_server;
            parent_key = has_server ? server.key : 0;
            from = to;
            begin = server.ns + 1;
            length -= there + back + 2;
        }
    }

    /// Sent quickly, received when its time has come; one in a hundred lies for long.
    void message(std::int64_t begin, std::int64_t length) {
        const auto from = static_cast<std::uint32_t>(random_.below(job_.nodes));
        const auto to = static_cast<std::uint32_t>(random_.below(job_.nodes));
        Event client;
        client.begin = client.message = true;
        client.ns = begin;
        client.lane = static_cast<std::uint32_t>(random_.below(job_.lanes));
        client.peer = to;
        client.key = nodes_[from]->next_key();
        client.wire_id = ++messages_;
        client.span = schema::mix64(client.wire_id);
        Event server = client;
        server.server = true;
        // One call finds received what has come since the last one.
        server.ns = (begin + length * (random_.chance(0.01) ? 100 : 1) / 2) | 0x3fff;
        server.peer = from;
        server.key = nodes_[to]->next_key();
        const bool has_client = put(from, client, begin + length / 16);
        const bool has_server = put(to, server, server.ns);
        truth_.whole += has_client && has_server;
        truth_.messages += has_client && has_server;
        truth_.single += has_client != has_server;
    }

    /// A half's begin and its end, of a request on a lane of its own.
    bool put(std::uint32_t node, const Event& begin, std::int64_t end_ns) {
        if (random_.chance(job_.loss)) return false;
        Event end = begin;
        end.begin = false;
        end.ns = end_ns;
        if (!begin.message) end.lane = static_cast<std::uint32_t>(random_.below(job_.lanes));
        nodes_[node]->add(begin);
        nodes_[node]->add(end);
        ++truth_.halves;
        return true;
    }

    const SyntheticJob job_;
    Random random_{1};
    std::vector<std::unique_ptr<Node>> nodes_;
    std::vector<std::uint64_t> numbers_;  // of the next request, by caller and callee
    std::uint64_t messages_ = 0;
    std::int64_t last_chunk_ = 0;
    SyntheticTruth truth_;
};

}  // namespace

SyntheticTruth write_synthetic(const SyntheticJob& job, const std::filesystem::path& directory) {
    return Maker(job, directory).run();
}

}  // namespace ringside::tests
