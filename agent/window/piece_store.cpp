#include "agent/window/piece_store.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/window/piece_file.hpp"
#include "schema/frame.hpp"

namespace ringside::agent {

PieceStore::PieceStore(FileHandle directory, std::uint64_t first, std::uint64_t max_bytes)
    : directory_(std::move(directory)), next_sequence_(first), max_bytes_(max_bytes) {}

int PieceStore::begin_piece(std::uint64_t now_ticks) {
    constexpr mode_t kPrivate = 0600;
    const std::lock_guard lock(mutex_);
    FileHandle file(::openat(directory_.get(), piece_name(next_sequence_).c_str(),
                             O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    if (!file) {
        error_ = errno;
        if (error_ == EEXIST) ++next_sequence_;
        return error_;
    }
    FileHandle reading = open_piece(directory_.get(), next_sequence_);
    if (!reading) return error_ = errno;
    Piece piece;
    piece.sequence = next_sequence_++;
    piece.begun_ticks = now_ticks;
    piece.reading = std::make_shared<const FileHandle>(std::move(reading));
    piece.file = FrameFile(std::move(file), schema::kDumpFrameMagic);
    pieces_.push_back(std::move(piece));
    return 0;
}

std::uint64_t PieceStore::bytes() const {
    std::uint64_t sum = 0;
    for (const Piece& piece : pieces_) sum += piece.file.bytes();
    return sum;
}

/// Pinned pieces may take the store beyond its bound, to twice of it: what comes while a trace reads what was there must not be lost for
/// what is read, nor the other way round.
bool PieceStore::has_room(std::uint64_t bytes_more) const {
    const std::uint64_t bound = pinned_from_ == ~0ull ? max_bytes_ : 2 * max_bytes_;
    return bytes() + bytes_more <= bound;
}

bool PieceStore::drop_oldest(bool by_bytes) {
    if (pieces_.size() < 2 || pieces_.front().sequence >= pinned_from_) return false;
    const Piece& oldest = pieces_.front();
    ::unlinkat(directory_.get(), piece_name(oldest.sequence).c_str(), 0);
    aged_records_ += oldest.records;
    aged_ = true;
    aged_by_bytes_ = by_bytes;
    pieces_.pop_front();
    return true;
}

bool PieceStore::append(std::span<const std::uint8_t> body, const FrameFacts& facts) {
    const std::lock_guard lock(mutex_);
    if (pieces_.empty()) return false;
    const std::uint64_t size = FrameFile::frame_bytes(body.size());
    while (bytes() + size > max_bytes_ && drop_oldest(true)) {
    }
    if (!has_room(size)) return false;
    const std::uint64_t offset = pieces_.back().file.bytes();
    error_ = pieces_.back().file.append(body);
    while (error_ == ENOSPC && drop_oldest(true)) error_ = pieces_.back().file.append(body);
    if (error_ != 0) return false;
    pieces_.back().records += facts.records;
    pieces_.back().frames.push_back({offset, facts});
    changed_.notify_all();
    return true;
}

void PieceStore::age_out(std::uint64_t ticks) {
    const std::lock_guard lock(mutex_);
    // What the oldest holds ended before the next one was begun.
    while (pieces_.size() > 1 && pieces_[1].begun_ticks <= ticks && drop_oldest(false)) {
    }
}

void PieceStore::set_max_bytes(std::uint64_t max_bytes) {
    const std::lock_guard lock(mutex_);
    max_bytes_ = max_bytes;
    while (bytes() > max_bytes_ && drop_oldest(true)) {
    }
}

std::uint64_t PieceStore::newest_bytes() const {
    const std::lock_guard lock(mutex_);
    return pieces_.empty() ? 0 : pieces_.back().file.bytes();
}

std::uint64_t PieceStore::newest_begun_ticks() const {
    const std::lock_guard lock(mutex_);
    return pieces_.empty() ? 0 : pieces_.back().begun_ticks;
}

bool PieceStore::newest_has_records() const {
    const std::lock_guard lock(mutex_);
    return !pieces_.empty() && pieces_.back().records != 0;
}

PieceTotals PieceStore::totals() const {
    const std::lock_guard lock(mutex_);
    PieceTotals totals;
    totals.since_ticks = pieces_.empty() ? 0 : pieces_.front().begun_ticks;
    totals.bytes = bytes();
    totals.pieces = static_cast<std::uint32_t>(pieces_.size());
    for (const Piece& piece : pieces_) totals.records += piece.records;
    totals.aged_records = aged_records_;
    totals.aged_until_ticks = aged_ ? totals.since_ticks : 0;
    totals.aged_by_bytes = aged_by_bytes_;
    totals.error = error_;
    return totals;
}

void PieceStore::remove_all() {
    const std::lock_guard lock(mutex_);
    for (const Piece& piece : pieces_)
        ::unlinkat(directory_.get(), piece_name(piece.sequence).c_str(), 0);
    pieces_.clear();
    end_marked_ = true;
    end_ = {};
    changed_.notify_all();
}

PieceCursor PieceStore::pin(std::uint64_t ticks) {
    const std::lock_guard lock(mutex_);
    end_marked_ = false;
    PieceCursor cursor;
    for (const Piece& piece : pieces_) {
        // The last piece that was begun before the instant holds it.
        if (cursor.sequence == 0 || piece.begun_ticks <= ticks) cursor.sequence = piece.sequence;
    }
    pinned_from_ = cursor.sequence;
    return cursor;
}

const PieceStore::Piece* PieceStore::find(std::uint64_t sequence) const {
    // Without gaps, but for numbers that a file which could not be made has not used.
    const auto at = std::find_if(pieces_.begin(), pieces_.end(),
                                 [&](const Piece& piece) { return piece.sequence >= sequence; });
    return at == pieces_.end() ? nullptr : &*at;
}

bool PieceStore::next(PieceCursor& cursor, FrameRef& frame) {
    std::unique_lock lock(mutex_);
    for (;;) {
        if (pieces_.empty()) return false;
        const Piece* piece = find(cursor.sequence);
        // At a piece's end, and it is not the newest: on to the next.
        while (piece != nullptr && cursor.frame >= piece->frames.size() &&
               piece != &pieces_.back()) {
            cursor = {piece->sequence + 1, 0};
            piece = find(cursor.sequence);
        }
        pinned_from_ = cursor.sequence;
        const bool ended =
            end_marked_ && (cursor.sequence > end_.sequence ||
                            (cursor.sequence == end_.sequence && cursor.frame >= end_.frame));
        if (ended || piece == nullptr) return false;
        if (cursor.frame < piece->frames.size()) {
            const Frame& found = piece->frames[cursor.frame++];
            frame = {piece->reading, piece->sequence, found.offset, found.facts};
            return true;
        }
        changed_.wait(lock);
    }
}

void PieceStore::mark_end() {
    const std::lock_guard lock(mutex_);
    end_marked_ = true;
    end_ = {};
    if (!pieces_.empty()) end_ = {pieces_.back().sequence, pieces_.back().frames.size()};
    changed_.notify_all();
}

void PieceStore::unpin() {
    const std::lock_guard lock(mutex_);
    pinned_from_ = ~0ull;
    end_marked_ = false;
    while (bytes() > max_bytes_ && drop_oldest(true)) {
    }
}

}  // namespace ringside::agent
