#include "agent/attach/control_file.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <memory>

#include "agent/attach/process_life.hpp"
#include "agent/attach/sigbus_guard.hpp"
#include "schema/ticks.hpp"

namespace ringside::agent {
namespace {

using schema::ControlPage;
using schema::Error;
using schema::ErrorCode;

constexpr auto kRelaxed = std::memory_order_relaxed;

Error refuse(const std::string& path, const std::string& cause) {
    return {ErrorCode::kRefused, "adopt control page " + path + ": " + cause};
}

std::uint64_t machine_proc() {
    struct stat status {};
    if (own_pid_namespace() != schema::kMachinePidNamespace || ::stat("/proc", &status) != 0)
        return 0;
    std::error_code none;
    const std::string shown = std::filesystem::read_symlink("/proc/self", none).string();
    if (shown != std::to_string(::getpid())) return 0;
    return schema::proc_mark(status.st_dev, static_cast<std::uint64_t>(status.st_ctim.tv_sec),
                             static_cast<std::uint64_t>(status.st_ctim.tv_nsec));
}

/// @return false with errno set
bool write_fresh_page(int file) {
    auto page = std::make_unique<ControlPage>();
    page->magic = schema::kControlMagic;
    page->layout = schema::kControlLayout;
    page->mark = schema::kMachineMark;
    page->ticks_source = static_cast<std::uint32_t>(schema::find_ticks_source());
    page->machine_proc = machine_proc();
    page->source_mask.store(0xffffffffu, kRelaxed);
    page->start_ticks.store(~0ull, kRelaxed);
    page->stop_ticks.store(~0ull, kRelaxed);
    page->first_lane_kib.store(schema::kDefaultFirstLaneKib, kRelaxed);
    page->most_lane_kib.store(schema::kDefaultMostLaneKib, kRelaxed);
    const ssize_t written = ::write(file, page.get(), sizeof *page);
    if (written >= 0 && written != static_cast<ssize_t>(sizeof *page)) errno = ENOSPC;
    return written == static_cast<ssize_t>(sizeof *page);
}

/// Fills a temporary file and links it into place: nobody maps a page that is half made, and who comes second adopts the first's.
schema::Result<void> make_page(int directory, const std::string& path) {
    const std::string temporary =
        ".control." + std::to_string(::getpid()) + "." +
        std::to_string(schema::read_ticks(schema::TicksSource::kTsc).value);
    constexpr mode_t kPrivate = 0600;
    const FileHandle file(::openat(directory, temporary.c_str(),
                                   O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kPrivate));
    int error = 0;
    if (!file || !write_fresh_page(file.get()) ||
        (::linkat(directory, temporary.c_str(), directory, schema::kControlFileName, 0) != 0 &&
         errno != EEXIST))
        error = errno;
    ::unlinkat(directory, temporary.c_str(), 0);
    if (error == 0) return {};
    return Error{ErrorCode::kUsage, "make control page " + path + ": " + error_text(error) +
                                        "; give another --dir, or make room there"};
}

}  // namespace

schema::Result<ControlFile> ControlFile::open(int directory, const std::string& directory_path) {
    const std::string path = directory_path + "/" + schema::kControlFileName;
    if (::faccessat(directory, schema::kControlFileName, F_OK, AT_SYMLINK_NOFOLLOW) != 0) {
        if (auto made = make_page(directory, path); !made) return made.error();
    }
    auto file =
        MappedFile::open(directory, directory_path, schema::kControlFileName, sizeof(ControlPage));
    if (!file) return file.error();
    ControlFile control(std::move(*file));
    std::uint64_t magic = 0;
    std::uint32_t layout = 0, mark = 0;
    control.access([&] {
        magic = control.page()->magic;
        layout = control.page()->layout;
        mark = control.page()->mark;
    });
    if (magic != schema::kControlMagic)
        return refuse(path, "it is not a control page; remove it if no job uses this directory");
    if (layout != schema::kControlLayout) {
        return refuse(path, "layout " + std::to_string(layout) + ", this agent writes " +
                                std::to_string(schema::kControlLayout) +
                                "; run the agent that belongs to the job's libringside_inject.so");
    }
    if (mark != schema::kMachineMark)
        return refuse(path, "it was written on another kind of machine");
    if (schema::CaptureWord::unpack(control.word()).on) control.turn_off();
    return control;
}

template <class Work>
void ControlFile::access(Work&& work) const {
    // Where the page has gone, its shims have no page either: there is nobody to tell.
    static_cast<void>(guarded(file_.region.get_address(), sizeof(ControlPage), work));
}

/// Calls work(page) on the page and on those before it.
template <class Work>
void ControlFile::change(Work&& work) const {
    const auto on = [&](const MappedFile& file) {
        ControlPage& page = *page_of(file);
        static_cast<void>(guarded(&page, sizeof page, [&] { work(page); }));
    };
    on(file_);
    for (const MappedFile& file : former_) on(file);
}

std::uint32_t ControlFile::word() const {
    std::uint32_t word = 0;
    access([&] { word = page()->capture_word.load(kRelaxed); });
    return word;
}

bool ControlFile::is_in(int directory) const {
    struct stat ours {
    }, there{};
    return ::fstat(file_.file.get(), &ours) == 0 &&
           ::fstatat(directory, schema::kControlFileName, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

void ControlFile::succeed(ControlFile&& gone) {
    // Each page is there for processes that have it mapped, and nobody can say when the last of them has ended: so many are enough.
    constexpr std::size_t kMostFormer = 8;
    ControlOrder order;
    ControlBudget budget;
    std::uint64_t stop_ticks = ~0ull;
    gone.access([&] {
        const ControlPage& from = *gone.page();
        order = {false, from.source_mask.load(kRelaxed), from.options.load(kRelaxed),
                 from.start_ticks.load(kRelaxed)};
        stop_ticks = from.stop_ticks.load(kRelaxed);
        budget = {from.first_lane_kib.load(kRelaxed), from.most_lane_kib.load(kRelaxed),
                  from.process_budget_bytes.load(kRelaxed), from.node_budget_bytes.load(kRelaxed),
                  from.node_left_bytes.load(kRelaxed)};
    });
    set_budget(budget);
    store_order(order);
    set_stop_ticks(stop_ticks);
    store_word(schema::CaptureWord::unpack(gone.word()));
    former_ = std::move(gone.former_);
    former_.push_back(std::move(gone.file_));
    if (former_.size() > kMostFormer) former_.erase(former_.begin());
}

std::uint64_t ControlFile::stop_ticks() const {
    std::uint64_t ticks = ~0ull;
    access([&] { ticks = page()->stop_ticks.load(kRelaxed); });
    return ticks;
}

void ControlFile::store_word(schema::CaptureWord word) {
    change([&](ControlPage& page) {
        // SYNC(capture): publishes the order; pairs with the shims' acquire before they attach.
        page.capture_word.store(word.pack(), std::memory_order_release);
    });
    wake();
}

void ControlFile::wake() const {
    change([](ControlPage& page) {
        ::syscall(SYS_futex, &page.capture_word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    });
}

void ControlFile::store_order(const ControlOrder& order) {
    change([&](ControlPage& page) {
        page.source_mask.store(order.source_mask, kRelaxed);
        page.options.store(order.options, kRelaxed);
        page.start_ticks.store(order.start_ticks, kRelaxed);
        page.stop_ticks.store(~0ull, kRelaxed);
    });
}

std::uint32_t ControlFile::turn_on(const ControlOrder& order) {
    store_order(order);
    const auto last = schema::CaptureWord::unpack(word());
    store_word({true, order.selected_only, last.generation + 1});
    return word();
}

std::uint32_t ControlFile::turn_off() {
    const auto last = schema::CaptureWord::unpack(word());
    store_word({false, false, last.generation + 1});
    return word();
}

void ControlFile::set_start_ticks(std::uint64_t ticks) {
    change([&](ControlPage& page) { page.start_ticks.store(ticks, kRelaxed); });
}

void ControlFile::set_stop_ticks(std::uint64_t ticks) {
    change([&](ControlPage& page) { page.stop_ticks.store(ticks, kRelaxed); });
}

void ControlFile::set_budget(const ControlBudget& budget) {
    change([&](ControlPage& page) {
        page.first_lane_kib.store(budget.first_lane_kib, kRelaxed);
        page.most_lane_kib.store(budget.most_lane_kib, kRelaxed);
        page.process_budget_bytes.store(budget.process_bytes, kRelaxed);
        page.node_budget_bytes.store(budget.node_bytes, kRelaxed);
        page.node_left_bytes.store(budget.node_left_bytes, kRelaxed);
    });
}

}  // namespace ringside::agent
