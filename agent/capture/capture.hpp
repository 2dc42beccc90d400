// One request's life on this node, from the order to the dump's final name: asked, attaching, running, draining, written. Owns the dump;
// knows which processes are in it. Called by the engine under its lock. An armed window is one, too: it goes on until it is disarmed, keeps
// what is recent instead of a dump, and traces are cut out of it (../window/excerpt.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/capture/tracked_process.hpp"
#include "agent/dump/partial_dump.hpp"
#include "agent/window/window.hpp"

namespace ringside::agent {

class Capture {
public:
    /// attaching -> running -> draining; written once finish() has returned.
    enum class Phase : std::uint8_t { kAttaching, kRunning, kStopping, kDraining };

    Capture(CaptureRequest request, std::unique_ptr<DumpWriter> writer, std::string job,
            const Calibration& calibration);
    /// An armed window.
    Capture(CaptureRequest request, std::unique_ptr<Window> window, std::string job,
            const Calibration& calibration);

    /// Null where it is no armed window.
    Window* window() const { return window_.get(); }

    const CaptureRequest& request() const { return request_; }
    bool resumed() const { return resumed_; }
    Phase phase() const { return phase_; }
    const TickRange& range() const { return range_; }
    std::uint64_t order_ticks() const { return order_ticks_; }
    std::uint64_t bytes() const { return writer_ ? writer_->bytes() : 0; }
    bool selects_some() const { return request_.selection.selects_some(); }
    /// Whom it means, its limit applied.
    Choice& choice() { return choice_; }

    /// Takes a process in if the request means it. @return whether it is in
    bool include(TrackedProcess& process);
    bool wants(const TrackedProcess& process) const {
        return choice_.means(process.id, process.candidate());
    }
    std::uint32_t included() const { return next_index_; }

    /// The word is on. @param word  as attached_word will repeat it
    void ordered(std::uint32_t word, std::uint64_t now_ticks);
    /// The agreed instant is known: the dump begins.
    void begin(std::uint64_t start_ticks);
    /// The end is known, and to come.
    void set_stop(std::uint64_t stop_ticks);
    /// The word is off. @param word  as attached_word will repeat it
    void draining(std::uint32_t word);

    /// Goes on with what an agent that died has put into the dump.
    void resume(PartialDump partial, bool from_start);
    /// Processes of it whose segments are there no more: they have been told to the end, or nobody can.
    std::size_t gone() const { return past_.size(); }

    /// Looks whether a process's shim has done as ordered.
    void follow_attach(TrackedProcess& process, std::uint64_t now_ticks) const;
    /// Whether a live process has let go, or never held on.
    bool has_let_go(TrackedProcess& process) const;

    /// Writes what waits. @param last  the final blocks, with what is open
    void flush(std::vector<std::unique_ptr<TrackedProcess>>& processes, DrainBuffers& buffers,
               std::uint64_t now_ticks, bool last);
    /// Writes what waits of one process that has been told of: its lanes need their room.
    void flush_one(TrackedProcess& process, DrainBuffers& buffers, std::uint64_t now_ticks);
    /// Of a window: notes what was lost since the last call, lets go what is too old, begins a new piece when it is time.
    void turn(std::vector<std::unique_ptr<TrackedProcess>>& processes, std::uint64_t now_ticks);
    /// A process as the dump tells it.
    static ProcessFacts facts_of(TrackedProcess& process);
    /// The footer and the final name.
    CaptureReport finish(const std::vector<std::unique_ptr<TrackedProcess>>& processes,
                         std::uint64_t now_ticks, double record_cost_ns);

private:
    /// What goes into one chunk.
    struct BlocksGroup {
        std::vector<const Block*> blocks;
        std::vector<TrackedProcess*> processes;
        std::size_t bytes = 0;

        void add(TrackedProcess& process);
    };
    static constexpr std::size_t kGroupBytes = 16 << 20;

    void tell(TrackedProcess& process);
    void go_on(TrackedProcess& process, PartialProcess part);
    void add(BlocksGroup& group, TrackedProcess& process);
    void write(BlocksGroup& group, DrainBuffers& buffers, std::uint64_t now_ticks);
    DumpFooter footer(const std::vector<std::unique_ptr<TrackedProcess>>& processes,
                      std::uint64_t now_ticks) const;

    CaptureRequest request_;
    Choice choice_{request_.selection};
    std::unique_ptr<DumpWriter> writer_;  ///< one of the two
    std::unique_ptr<Window> window_;
    Sink& sink_;
    std::string job_;
    Calibration calibration_;
    Phase phase_ = Phase::kAttaching;
    TickRange range_;
    std::uint64_t order_ticks_ = 0;
    std::int64_t order_cpu_ns_ = 0;  ///< of the agent, when it gave the order
    std::uint32_t on_word_ = 0;
    std::uint32_t off_word_ = 0;
    std::uint32_t next_index_ = 0;
    bool header_written_ = false;
    bool resumed_ = false;
    std::map<schema::SegmentId, PartialProcess>
        past_;  ///< of the dump that was resumed, not found yet
};

}  // namespace ringside::agent
