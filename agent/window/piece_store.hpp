// A window's pieces while their agent lives: appended to, begun anew, aged out by time and by bytes; read meanwhile by the one trace that is
// being cut out of them. What that trace still needs is pinned: it does not age.
//
//   window.7   window.8   window.9   window.10
//   aged out   [ pinned from here ...  appended to ]
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "agent/attach/file_handle.hpp"
#include "agent/dump/frame_file.hpp"

namespace ringside::agent {

/// What the store must know of a frame; what is no blocks chunk has no records.
struct FrameFacts {
    std::uint64_t records = 0;
    std::uint64_t earliest_ticks = ~0ull;  ///< the least begin of its records
    std::uint64_t sealed_ticks = 0;        ///< no record in it began later
};

/// Where a reader is: the next frame of a piece.
struct PieceCursor {
    std::uint64_t sequence = 0;
    std::size_t frame = 0;
    bool operator==(const PieceCursor&) const = default;
};

/// One frame to read, and a descriptor that stays good when the piece is removed.
struct FrameRef {
    std::shared_ptr<const FileHandle> file;
    std::uint64_t sequence = 0;
    std::uint64_t offset = 0;
    FrameFacts facts;
};

/// What is held now, and what is not any more.
struct PieceTotals {
    std::uint64_t since_ticks = 0;  ///< whatever began later is held, as far as it was kept at all
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
    std::uint32_t pieces = 0;
    std::uint64_t aged_records = 0;
    std::uint64_t aged_until_ticks = 0;  ///< 0: nothing has aged out
    bool aged_by_bytes = false;          ///< the last one that did: by the bound, not by time
    int error = 0;  ///< errno of the last write that failed; 0 once one has succeeded
};

/// @thread thread-safe: one appends, one reads
class PieceStore {
public:
    /// @param directory  the job directory; pieces that lie there are none of this store's, and their numbers are not used again
    /// @param first      the first sequence number
    PieceStore(FileHandle directory, std::uint64_t first, std::uint64_t max_bytes);

    /// Closes the newest piece and begins the next.
    /// @param now_ticks  all that was drained until now stands in the one before
    /// @return 0, or the errno that it failed with: the piece before goes on
    int begin_piece(std::uint64_t now_ticks);
    /// Appends a frame to the newest piece. Where the bound or the file system has no room, the oldest pieces go first.
    /// @return whether it is kept
    bool append(std::span<const std::uint8_t> body, const FrameFacts& facts);
    /// Lets pieces go whose records all ended before `ticks`.
    void age_out(std::uint64_t ticks);
    void set_max_bytes(std::uint64_t max_bytes);
    /// Of the newest piece.
    std::uint64_t newest_bytes() const;
    std::uint64_t newest_begun_ticks() const;
    bool newest_has_records() const;
    PieceTotals totals() const;
    /// Removes all files. Nothing is appended after.
    void remove_all();

    /// From the piece on that may hold records which began at `ticks` or later, nothing ages until the cursor has passed it.
    PieceCursor pin(std::uint64_t ticks);
    /// The reader's next frame; waits for it. Pieces that lie behind the cursor are free to age.
    /// @return false once mark_end() was called and all that came before it is read
    bool next(PieceCursor& cursor, FrameRef& frame);
    /// What has been appended so far is the last that the reader takes.
    void mark_end();
    /// The reader is done.
    void unpin();

private:
    struct Frame {
        std::uint64_t offset = 0;
        FrameFacts facts;
    };
    struct Piece {
        std::uint64_t sequence = 0;
        std::uint64_t begun_ticks = 0;
        std::uint64_t records = 0;
        std::shared_ptr<const FileHandle> reading;
        FrameFile file;
        std::vector<Frame> frames;
    };
    bool has_room(std::uint64_t bytes) const;
    bool drop_oldest(bool by_bytes);
    std::uint64_t bytes() const;
    const Piece* find(std::uint64_t sequence) const;

    mutable std::mutex mutex_;
    std::condition_variable changed_;
    FileHandle directory_;
    std::uint64_t next_sequence_;
    std::uint64_t max_bytes_;
    std::deque<Piece> pieces_;
    std::uint64_t aged_records_ = 0;
    bool aged_ = false;
    bool aged_by_bytes_ = false;
    int error_ = 0;
    std::uint64_t pinned_from_ = ~0ull;  ///< a sequence; ~0: nothing is pinned
    bool end_marked_ = false;
    PieceCursor end_;
};

}  // namespace ringside::agent
