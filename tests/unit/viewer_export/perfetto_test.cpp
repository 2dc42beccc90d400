// Perfetto's packets, read back by protozero: slices nest and close, every number stands for a text that came before it, flows have two ends.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <set>
#include <string>
#include <vector>

#include "gpu_job.hpp"
#include "sample_job.hpp"
#include "viewer_export/out/trace.hpp"

using namespace ringside::tests;
using namespace ringside::viewer_export;
using protozero::pbf_reader;
namespace fbs = ringside::fbs;
using ringside::schema::RecordKind;

namespace {

struct Slice {
    std::string name;
    std::int64_t begin;
    std::int64_t end;
};

/// What a reader of packets has to keep, by the letter of their definitions.
struct Packets {
    TraceCounts counts;
    std::map<std::uint64_t, std::string> tracks;
    std::map<std::uint64_t, std::vector<Slice>> slices;
    std::map<std::uint64_t, std::vector<std::size_t>> open;
    std::map<std::uint64_t, int> flows;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> names;  ///< by sequence
    std::map<std::string, std::vector<std::int64_t>> counters;
    std::map<std::uint32_t, std::uint64_t> default_track;
    std::map<std::uint32_t, std::int64_t> clock;
    std::set<std::uint32_t> begun;
    std::size_t instants = 0;

    static std::string text(const pbf_reader& message, std::uint32_t field) {
        pbf_reader reader = message;
        return reader.next(field) ? reader.get_string() : "";
    }
    static std::uint64_t number(const pbf_reader& message, std::uint32_t field,
                                std::uint64_t missing = 0) {
        pbf_reader reader = message;
        return reader.next(field) ? reader.get_uint64() : missing;
    }

    explicit Packets(const model::Job& job, const TemporaryDirectory& directory) {
        const auto written = write_perfetto(job, directory / "t.pftrace");
        REQUIRE(written);
        counts = *written;
        const std::string bytes = read_text(directory / "t.pftrace");
        CHECK(bytes.size() == counts.bytes);
        pbf_reader trace(bytes);
        while (trace.next(1)) packet(trace.get_message());
        for (const auto& each : open) CHECK_MESSAGE(each.second.empty(), tracks[each.first]);
        for (const auto& each : flows) CHECK_MESSAGE(each.second == 2, each.first);
    }

    void packet(const pbf_reader& packet) {
        const auto sequence = static_cast<std::uint32_t>(number(packet, 10));
        REQUIRE(sequence != 0);
        const std::uint64_t flags = number(packet, 13);
        if ((flags & 1) != 0) begun.insert(sequence);
        if ((flags & 2) != 0) CHECK(begun.contains(sequence));
        pbf_reader reader = packet;
        bool counts_on = default_track.contains(sequence);
        while (reader.next()) {
            if (reader.tag() == 6) {
                pbf_reader snapshot = reader.get_message();
                while (snapshot.next(1)) {
                    const pbf_reader each = snapshot.get_message();
                    if (number(each, 1) == 64)
                        clock[sequence] = static_cast<std::int64_t>(number(each, 2));
                }
            } else if (reader.tag() == 12) {
                pbf_reader interned = reader.get_message();
                while (interned.next(2)) {
                    const pbf_reader entry = interned.get_message();
                    names[{sequence, number(entry, 1)}] = text(entry, 2);
                }
            } else if (reader.tag() == 59) {
                pbf_reader defaults = reader.get_message();
                REQUIRE(defaults.next(11));
                default_track[sequence] = number(defaults.get_message(), 11);
                counts_on = true;
            } else if (reader.tag() == 60) {
                const pbf_reader track = reader.get_message();
                std::string name = text(track, 2);
                pbf_reader process = track;
                if (process.next(3)) name = text(process.get_message(), 8);
                pbf_reader thread = track;
                if (thread.next(4)) name = text(thread.get_message(), 5);
                tracks[number(track, 1)] = name;
            } else {
                reader.skip();
            }
        }
        pbf_reader event = packet;
        if (!event.next(11)) return;
        auto ns = static_cast<std::int64_t>(number(packet, 8));
        if (counts_on) ns = clock[sequence] += ns;
        read(event.get_message(), sequence, ns);
    }

    void read(const pbf_reader& event, std::uint32_t sequence, std::int64_t ns) {
        const std::uint64_t track = number(event, 11, default_track[sequence]);
        REQUIRE(tracks.contains(track));
        pbf_reader flow = event;
        while (flow.next(47)) ++flows[flow.get_fixed64()];
        const std::uint64_t type = number(event, 9);
        if (type == 4) {
            counters[tracks[track]].push_back(static_cast<std::int64_t>(number(event, 30)));
        } else if (type == 2) {
            REQUIRE_FALSE(open[track].empty());
            slices[track][open[track].back()].end = ns;
            open[track].pop_back();
        } else {
            std::string name = text(event, 23);
            if (name.empty()) {
                const auto told = names.find({sequence, number(event, 10)});
                REQUIRE(told != names.end());
                name = told->second;
            }
            if (type == 3) {
                ++instants;
                return;
            }
            open[track].push_back(slices[track].size());
            slices[track].push_back({name, ns, -1});
        }
    }

    std::size_t total() const {
        std::size_t sum = 0;
        for (const auto& [track, list] : slices) sum += list.size();
        return sum;
    }
    std::vector<Slice> of(const std::string& track) const {
        for (const auto& [uuid, list] : slices) {
            if (tracks.at(uuid) == track) return list;
        }
        return {};
    }
};

}  // namespace

TEST_CASE("perfetto: slices, arrows and times are those of the job, on the rows of the JSON") {
    TemporaryDirectory directory;
    write_sample(directory.path());
    const Packets packets(loaded(directory.path()), directory);
    CHECK(packets.total() == 11);
    CHECK(packets.counts.slices == 11);
    CHECK(packets.flows.size() == 4);
    const auto thread = packets.of("thread 101 (worker)");
    CHECK(packets.counts.bytes > 0);
    bool seen = false;
    for (const auto& [track, list] : packets.slices) {
        for (const Slice& slice : list) {
            CHECK(slice.end >= slice.begin);
            if (slice.name != "aten::rand" || seen) continue;
            seen = true;
            CHECK(slice.begin == 0);
            CHECK(slice.end == 100'000);
        }
    }
    CHECK(seen);
}

TEST_CASE("perfetto: ranges that touch, are empty or overlap in part close in their order") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "worker0", 0);
    LaneMaker& lane = dump.lane(0, 0, 100);
    lane.range("empty", 10, 10);
    lane.range("first", 10, 20);
    lane.range("second", 20, 30);
    lane.range("outer", 10, 30);
    lane.range("x", 2000, 2100);
    lane.range("y", 2050, 2150);
    lane.range("z", 2060, 2070);
    lane.open("stuck", 2200);
    dump.end(0, fbs::Fate::Killed, 2400);
    dump.footer(3000);
    dump.write(directory / "alpha.rsd");
    const Packets packets(loaded(directory.path()), directory);
    std::map<std::string, Slice> by_name;
    for (const auto& [track, list] : packets.slices) {
        for (const Slice& slice : list) by_name[slice.name] = slice;
    }
    REQUIRE(by_name.size() == 8);
    CHECK(by_name["outer"].end - by_name["outer"].begin == 20);
    CHECK(by_name["empty"].end == by_name["empty"].begin);
    CHECK(by_name["second"].begin == by_name["first"].end);
    CHECK(by_name["y"].end - by_name["y"].begin == 100);
    CHECK(by_name["z"].end - by_name["z"].begin == 10);
    CHECK(by_name["stuck"].end == 2400 - 10);
    CHECK(packets.of("thread 100 (worker), row 2").size() == 1);
}

TEST_CASE("perfetto: kernels lie under their streams, counters under their names") {
    TemporaryDirectory directory;
    write_gpu_job(directory.path(), 1);
    const Packets packets(loaded(directory.path()), directory);
    CHECK(packets.of("stream 7").size() == 12);
    REQUIRE(packets.of("stream 20").size() == 6);
    for (const char* name : {"ncclDevKernel", "ProfilerStep#"}) {
        const auto slices = packets.of("stream 20");
        CHECK(std::count_if(slices.begin(), slices.end(),
                            [&](const auto& slice) { return slice.name.starts_with(name); }) == 3);
    }
    CHECK(packets.flows.size() == 12 + 3);
    CHECK(packets.counters.at("GPU busy").size() == 21);
    CHECK(packets.counters.at("iteration time (ns)").front() == 250'000);
    CHECK(packets.instants == packets.counts.instants);
    CHECK(packets.total() == packets.counts.slices);
}

TEST_CASE("perfetto: names of any bytes are UTF-8 in the file") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000, 0, "work\"er\xff", 0);
    dump.lane(0, 0, 100).range("a\xc3\x28", 0, 10);
    dump.footer(100);
    dump.write(directory / "alpha.rsd");
    const Packets packets(loaded(directory.path()), directory);
    CHECK(packets.of("thread 100 (worker)").at(0).name == "a\xef\xbf\xbd(");
}

TEST_CASE("perfetto: a job without events is a file without slices") {
    TemporaryDirectory directory;
    DumpMaker dump("alpha");
    dump.process(0, 4000);
    dump.footer(100);
    dump.write(directory / "alpha.rsd");
    const Packets packets(loaded(directory.path()), directory);
    CHECK(packets.total() == 0);
}
