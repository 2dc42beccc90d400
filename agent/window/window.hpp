// The bounded history that an armed agent keeps: a sink of the drain side, in pieces that lie in the job directory and outlive the agent. The
// oldest go by time and by bytes; what went is counted. A trace cuts its range out of it (excerpt.hpp).
#pragma once

#include <flatbuffers/flatbuffers.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "agent/drain/sink.hpp"
#include "agent/dump/dump_writer.hpp"
#include "agent/window/loss_log.hpp"
#include "agent/window/piece_store.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

struct WindowBounds {
    std::int64_t keep_ns = 0;
    std::uint64_t max_bytes = 0;
};

/// @thread one (the engine's lock guards it), but for store(): thread-safe
class Window final : public Sink {
public:
    using Clock = std::function<std::uint64_t()>;

    /// Begins an empty window; pieces that lie in the directory are removed: whoever wants them has asked for them before.
    /// @param directory   the job directory
    /// @param header      of each piece, but for the start: here the window's, there its own
    /// @param clock       now, in ticks; what was drained before a call of it began before its value
    /// @errors Refused: the file system has no room for it; Usage: can't be written
    static schema::Result<std::unique_ptr<Window>> create(FileHandle directory,
                                                          const DumpHeader& header,
                                                          std::string node,
                                                          const WindowBounds& bounds, Clock clock);
    /// The pieces stay: only remove() takes them away.
    ~Window() override = default;

    void process(const ProcessFacts& facts) override;
    void names(const NamesBatch& batch) override;
    bool blocks(std::span<const Block* const> blocks) override;

    /// Whether it is time for a new piece.
    bool due() const;
    /// Between two flushes: lets go what is too old, and begins a new piece when it is time.
    /// @return whether a new one was begun: processes and names must be told again before the next blocks
    bool turn();
    /// Whatever is remembered beside the pieces (losses, halves, processes) is, from these ticks on, too: a trace needs it to its end,
    /// although its pieces may go once they are copied. ~0: none does.
    void hold(std::uint64_t ticks) { held_from_ = ticks; }
    /// Nobody will ask for what was before.
    std::uint64_t needed_from() const;
    void set_bounds(const WindowBounds& bounds);
    const WindowBounds& bounds() const { return bounds_; }
    std::uint64_t begun_ticks() const { return header_.start_ticks; }
    /// Removes the pieces; nothing is kept after.
    void remove() { store_.remove_all(); }

    PieceStore& store() { return store_; }
    const PieceStore& store() const { return store_; }
    LossLog& losses() { return losses_; }
    const LossLog& losses() const { return losses_; }

private:
    Window(FileHandle directory, const DumpHeader& header, std::string node,
           const WindowBounds& bounds, Clock clock);
    int begin_piece(std::uint64_t now_ticks);
    template <class Make>
    bool append(Make&& make, const FrameFacts& facts);
    std::uint64_t ticks_in(std::int64_t ns) const;

    DumpHeader header_;
    std::string node_;
    WindowBounds bounds_;
    Clock clock_;
    bool untold_ =
        false;  ///< a process or names found no room: no block that may need them is kept in this piece
    PieceStore store_;
    LossLog losses_;
    std::uint64_t held_from_ = ~0ull;
    flatbuffers::FlatBufferBuilder builder_{std::size_t{512} << 10};
};

/// Room that a window of no stated size takes: 256 MiB, and no more than half of what is free in its file system.
std::uint64_t default_window_bytes(int directory);

}  // namespace ringside::agent
