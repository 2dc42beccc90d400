// What the engine's tests share: an engine on directories of its own, a shim that only attaches, and the sum that every dump must pass.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "agent/capture/engine.hpp"
#include "tests/unit/agent_data/dump_file.hpp"
#include "tests/unit/agent_data/fake_job.hpp"

namespace ringside::agent::testing {

struct Node {
    TemporaryDirectory top;
    std::string job = top.sub("root/job");
    std::unique_ptr<Engine> engine;

    EngineOptions options() {
        EngineOptions options;
        options.root = top.sub("root");
        options.job = "job";
        options.output_root = top.sub("out");
        options.node = "node0";
        return options;
    }
    /// The directories alone, as a shim that comes first makes them.
    void make_directories() {
        REQUIRE(::system(("mkdir -m 700 " + top.sub("root") + " " + job).c_str()) == 0);
    }
    void open() { open(options()); }
    void open(const EngineOptions& options) {
        auto opened = Engine::open(options);
        REQUIRE_MESSAGE(opened, (opened ? "" : opened.error().message));
        engine = std::move(*opened);
    }
    void start() {
        const auto started = engine->capture_from_start(request());
        REQUIRE_MESSAGE(started, (started ? "" : started.error().message));
    }
    static CaptureRequest request(std::uint64_t id = 0xc0ffee) {
        CaptureRequest request;
        request.id = id;
        request.name = "capture";
        return request;
    }
    CaptureReport stop(std::uint64_t id = 0xc0ffee) {
        auto report = engine->stop(id, engine->node_now());
        REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
        return *report;
    }
    bool sees(std::uint32_t processes) {
        return eventually([&] { return engine->status().processes == processes; });
    }
};

/// What a shim's helper thread does: repeats the word once it has acted on it.
class FakeShim {
public:
    FakeShim(const std::string& job, FakeSegment& segment)
        : thread_([this, &job, &segment] {
              const FakeControl control(job);
              while (!quit_) {
                  const std::uint32_t word = control.word();
                  if (segment.header()->attached_word.load() != word) {
                      segment.header()->capture_clock =
                          schema::take_snapshot(schema::TicksSource::kTsc);
                      segment.header()->attached_word.store(word, std::memory_order_release);
                  }
                  std::this_thread::yield();
              }
          }) {}
    ~FakeShim() {
        quit_ = true;
        thread_.join();
    }

private:
    std::atomic<bool> quit_{false};
    std::thread thread_;
};

/// For each lane: written = kept + outside + lost, and kept is what the blocks hold.
inline void check_accounts(const DumpFile& dump) {
    REQUIRE_MESSAGE(dump.good, dump.fault);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> kept;
    std::uint64_t records = 0, lost = 0;
    for (const auto& lane : dump.footer.lanes) {
        CHECK(lane->written == lane->kept + lane->outside + lane->lost);
        kept[{lane->process, lane->lane}] += lane->kept;
        records += lane->kept;
        lost += lane->lost;
    }
    for (const auto& [id, count] : kept) CHECK(dump.kept(id.first, id.second) == count);
    CHECK(dump.footer.records == records);
    CHECK(dump.footer.lost == lost);
    CHECK(dump.unnamed.empty());
}

}  // namespace ringside::agent::testing
