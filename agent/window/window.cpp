#include "agent/window/window.hpp"

#include <fcntl.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cmath>

#include "agent/dump/chunks.hpp"
#include "agent/window/piece_file.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;

/// A window goes piece by piece: with so many, it holds between all of what it is to keep and a ninth more.
constexpr std::int64_t kPieces = 8;
constexpr std::uint64_t kDefaultBytes = 256ull << 20;

std::uint64_t free_bytes(int directory) {
    struct statvfs system {};
    if (::fstatvfs(directory, &system) != 0) return ~0ull;
    return system.f_bavail * system.f_frsize;
}

}  // namespace

std::uint64_t default_window_bytes(int directory) {
    return std::min(kDefaultBytes, free_bytes(directory) / 2);
}

Window::Window(FileHandle directory, const DumpHeader& header, std::string node,
               const WindowBounds& bounds, Clock clock)
    : header_(header),
      node_(std::move(node)),
      bounds_(bounds),
      clock_(std::move(clock)),
      store_(std::move(directory), 1, bounds.max_bytes) {}

schema::Result<std::unique_ptr<Window>> Window::create(FileHandle directory,
                                                       const DumpHeader& header, std::string node,
                                                       const WindowBounds& bounds, Clock clock) {
    remove_pieces(directory.get());
    const std::uint64_t room = free_bytes(directory.get());
    if (bounds.max_bytes > room) {
        return Error{ErrorCode::kRefused,
                     "keep a window of " + std::to_string(bounds.max_bytes >> 20) +
                         " MiB in the job directory: its file system has " +
                         std::to_string(room >> 20) + " MiB free; give a smaller --max-bytes"};
    }
    std::unique_ptr<Window> window(
        new Window(std::move(directory), header, std::move(node), bounds, std::move(clock)));
    if (const int error = window->begin_piece(header.start_ticks); error != 0) {
        return Error{ErrorCode::kUsage,
                     "make a window's piece in the job directory: " + error_text(error) +
                         "; free space there or give another --dir to the agent"};
    }
    return window;
}

int Window::begin_piece(std::uint64_t now_ticks) {
    if (const int error = store_.begin_piece(now_ticks); error != 0) return error;
    DumpHeader header = header_;
    header.start_ticks = now_ticks;
    untold_ = !append([&](auto& builder) { build_header(builder, header, node_); }, {});
    return 0;
}

template <class Make>
bool Window::append(Make&& make, const FrameFacts& facts) {
    builder_.Clear();
    make(builder_);
    return store_.append({builder_.GetBufferPointer(), builder_.GetSize()}, facts);
}

void Window::process(const ProcessFacts& facts) {
    if (!append([&](auto& builder) { build_process(builder, facts); }, {})) untold_ = true;
}

void Window::names(const NamesBatch& batch) {
    if (!append([&](auto& builder) { build_names(builder, batch); }, {})) untold_ = true;
}

bool Window::blocks(std::span<const Block* const> blocks) {
    if (untold_) return false;
    FrameFacts facts;
    facts.sealed_ticks = clock_();
    for (const Block* block : blocks) {
        facts.records += block->records;
        facts.earliest_ticks = std::min(facts.earliest_ticks, block->earliest_ticks);
    }
    return append([&](auto& builder) { build_blocks(builder, blocks); }, facts);
}

std::uint64_t Window::ticks_in(std::int64_t ns) const {
    return static_cast<std::uint64_t>(
        std::llround(static_cast<double>(ns) / 1e9 * header_.calibration.ticks_per_second));
}

bool Window::due() const {
    return clock_() - store_.newest_begun_ticks() >= ticks_in(bounds_.keep_ns) / kPieces ||
           store_.newest_bytes() >= bounds_.max_bytes / kPieces;
}

bool Window::turn() {
    const std::uint64_t now_ticks = clock_();
    const std::uint64_t keep = ticks_in(bounds_.keep_ns);
    const std::uint64_t oldest = now_ticks > keep ? now_ticks - keep : 0;
    const bool wanted = untold_ || (due() && store_.newest_has_records());
    const bool begun = wanted && begin_piece(now_ticks) == 0;
    store_.age_out(oldest);
    losses_.forget_before(needed_from());
    return begun;
}

std::uint64_t Window::needed_from() const {
    return std::min(store_.totals().since_ticks, held_from_);
}

void Window::set_bounds(const WindowBounds& bounds) {
    bounds_ = bounds;
    store_.set_max_bytes(bounds.max_bytes);
}

}  // namespace ringside::agent
