// The control page: one page a job directory, what the agent tells every shim on the node. Made by whoever comes first (a filled
// temporary file, linked into place), mapped read-only by shims, written by the one agent that holds the directory's lock.
//
//   0    magic u64          layout u32        mark u32
//   16   capture word u32   source mask u32   options u32   ticks source u32
//   32   start ticks u64    stop ticks u64
//   48   first lane KiB u32 most lane KiB u32 budget of a process, of the node, left on the node u64 x 3
//   80   the machine's /proc u64
//   128  job key, 64 bytes
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "schema/units.hpp"

namespace ringside::schema {

inline constexpr std::uint64_t kControlMagic = 0x314c525443445352ull;  // "RSDCTRL1"
inline constexpr std::uint32_t kControlLayout = 1;
/// x86-64, little-endian: read as another number where that does not hold.
inline constexpr std::uint32_t kMachineMark = 0x86640102;

/// The capture word, taken apart: bit 0 on, bit 1 only segments flagged "selected", the rest a generation that grows with
/// every change. One store of it starts or stops a capture on the whole node; shims wait on it as a futex.
struct CaptureWord {
    bool on = false;
    bool selected_only = false;
    std::uint32_t generation = 0;

    constexpr std::uint32_t pack() const {
        return (on ? 1u : 0u) | (selected_only ? 2u : 0u) | generation << 2;
    }
    static constexpr CaptureWord unpack(std::uint32_t word) {
        return {(word & 1) != 0, (word & 2) != 0, word >> 2};
    }
};

/// Bits of ControlPage::options.
enum class CaptureOption : std::uint32_t {
    kRecordShapes = 1u << 0,
    kProfileMemory = 1u << 1,
};

constexpr std::uint32_t capture_options(bool record_shapes, bool profile_memory) {
    return (record_shapes ? static_cast<std::uint32_t>(CaptureOption::kRecordShapes) : 0u) |
           (profile_memory ? static_cast<std::uint32_t>(CaptureOption::kProfileMemory) : 0u);
}

struct ControlPage {
    std::uint64_t magic;  ///< anything but kControlMagic means off
    std::uint32_t layout;
    std::uint32_t mark;
    /// SYNC(capture): the agent's release store publishes the words below; pairs with the acquire load before attaching.
    std::atomic<std::uint32_t> capture_word;
    std::atomic<std::uint32_t> source_mask;  ///< bit per SourceId; all bits by default
    std::atomic<std::uint32_t> options;
    std::uint32_t
        ticks_source;  ///< TicksSource of this machine, asked of the processor once: 0 where the page's maker did not
    std::atomic<std::uint64_t>
        start_ticks;  ///< the agent drops what begins before; ~0 until the instant is agreed
    std::atomic<std::uint64_t> stop_ticks;      ///< and what begins after; ~0 while it runs
    std::atomic<std::uint32_t> first_lane_kib;  ///< a thread's first ring
    std::atomic<std::uint32_t> most_lane_kib;   ///< its largest; 0: kDefaultMostLaneKib
    std::atomic<std::uint64_t> process_budget_bytes;
    std::atomic<std::uint64_t> node_budget_bytes;
    std::atomic<std::uint64_t> node_left_bytes;
    /// proc_mark() of the /proc that shows kMachinePidNamespace, as the page's maker saw it; 0 where it saw another. A process for which it is
    /// the same, and which is there by its own pid, need not look into its /proc: the first look makes the files there.
    std::uint64_t machine_proc;
    std::uint8_t reserved2[40];
    char job_key[64];
    std::uint8_t reserved3[3904];
};
static_assert(sizeof(ControlPage) == kPageBytes);
static_assert(offsetof(ControlPage, capture_word) == 16 &&
              offsetof(ControlPage, start_ticks) == 32 &&
              offsetof(ControlPage, first_lane_kib) == 48 && offsetof(ControlPage, job_key) == 128);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free &&
              std::atomic<std::uint64_t>::is_always_lock_free);

/// How much of the node's budget is taken: beside the control page, made by the agent, mapped by a shim with its first lane. Each adds what it
/// makes real and takes off what it could not; what is taken back and what the dead had is the agent's to take off.
struct BudgetPage {
    std::uint64_t magic;
    std::atomic<std::uint64_t> taken_bytes;
    std::uint8_t reserved[4080];
};
static_assert(sizeof(BudgetPage) == kPageBytes);
inline constexpr std::uint64_t kBudgetMagic = 0x3144554253445352ull;  // "RSDSBUD1"

inline constexpr const char* kControlFileName = "control";
inline constexpr const char* kBudgetFileName = "budget";
inline constexpr const char* kLockFileName = "lock";
/// Of the capture that runs in the directory (agent/capture/capture_note.hpp).
inline constexpr const char* kCaptureNoteName = "capture";
/// Inode of the first pid namespace, in every kernel that has them.
inline constexpr std::uint64_t kMachinePidNamespace = 0xeffffffc;

/// Tells one mounted /proc from any other, later ones too: device numbers are used again, the instant at which the root was made is not.
/// @param device, seconds, nanoseconds  st_dev and st_ctim of /proc
constexpr std::uint64_t proc_mark(std::uint64_t device, std::uint64_t seconds,
                                  std::uint64_t nanoseconds) {
    constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15ull;
    return (((device * kFactor) ^ seconds) * kFactor ^ nanoseconds) | 1;
}

inline constexpr std::uint32_t kDefaultFirstLaneKib = 256;
inline constexpr std::uint32_t kDefaultMostLaneKib = 4096;

}  // namespace ringside::schema
