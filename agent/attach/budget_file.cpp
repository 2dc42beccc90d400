#include "agent/attach/budget_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "agent/attach/sigbus_guard.hpp"

namespace ringside::agent {
namespace {

using schema::BudgetPage;

constexpr auto kRelaxed = std::memory_order_relaxed;

/// Shims pass over a file that is not whole yet.
schema::Result<void> make(int directory, const std::string& path) {
    constexpr mode_t kPrivate = 0600;
    const FileHandle file(::openat(directory, schema::kBudgetFileName,
                                   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
                                   kPrivate));
    struct stat status {};
    if (!file || ::fstat(file.get(), &status) != 0)
        return schema::Error{schema::ErrorCode::kUsage,
                             "make budget page " + path + ": " + error_text(errno)};
    if (status.st_size >= static_cast<off_t>(sizeof(BudgetPage))) return {};
    const auto page = std::make_unique<BudgetPage>();
    page->magic = schema::kBudgetMagic;
    const ssize_t written = ::pwrite(file.get(), page.get(), sizeof *page, 0);
    if (written == static_cast<ssize_t>(sizeof *page)) return {};
    return schema::Error{schema::ErrorCode::kUsage, "make budget page " + path + ": " +
                                                        error_text(written < 0 ? errno : ENOSPC)};
}

}  // namespace

schema::Result<BudgetFile> BudgetFile::open(int directory, const std::string& directory_path) {
    if (auto made = make(directory, directory_path + "/" + schema::kBudgetFileName); !made)
        return made.error();
    auto file =
        MappedFile::open(directory, directory_path, schema::kBudgetFileName, sizeof(BudgetPage));
    if (!file) return file.error();
    BudgetFile budget(std::move(*file));
    std::uint64_t magic = 0;
    static_cast<void>(guarded(budget.file_.region.get_address(), sizeof(BudgetPage),
                              [&] { magic = budget.page()->magic; }));
    if (magic != schema::kBudgetMagic) {
        return schema::Error{schema::ErrorCode::kUsage,
                             "use budget page " + directory_path + "/" + schema::kBudgetFileName +
                                 ": it is none of ringside's; remove it"};
    }
    return budget;
}

std::uint64_t BudgetFile::taken() const {
    std::uint64_t taken = 0;
    static_cast<void>(guarded(file_.region.get_address(), sizeof(BudgetPage),
                              [&] { taken = page()->taken_bytes.load(kRelaxed); }));
    return taken;
}

void BudgetFile::take_off(std::uint64_t bytes) {
    static_cast<void>(guarded(file_.region.get_address(), sizeof(BudgetPage), [&] {
        std::uint64_t taken = page()->taken_bytes.load(kRelaxed);
        while (!page()->taken_bytes.compare_exchange_weak(taken, taken > bytes ? taken - bytes : 0,
                                                          kRelaxed)) {
        }
    }));
}

void BudgetFile::correct(std::uint64_t seen, std::uint64_t right) {
    static_cast<void>(guarded(file_.region.get_address(), sizeof(BudgetPage), [&] {
        page()->taken_bytes.compare_exchange_strong(seen, right, kRelaxed);
    }));
}

}  // namespace ringside::agent
