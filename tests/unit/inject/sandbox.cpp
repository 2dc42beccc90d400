#include "sandbox.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <filesystem>

#include "inject/core/segment_file.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/thread_entry.hpp"
#include "schema/ring_reader.hpp"

namespace ringside::test {

namespace fs = std::filesystem;

SegmentView::SegmentView(const std::string& path) : path_(path) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    void* memory = mmap(nullptr, schema::kSegmentBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    REQUIRE(memory != MAP_FAILED);
    base_ = static_cast<std::byte*>(memory);
}

SegmentView::~SegmentView() {
    munmap(base_, schema::kSegmentBytes);
}

schema::SegmentHeader& SegmentView::header() const {
    return *reinterpret_cast<schema::SegmentHeader*>(base_);
}

schema::LaneHeader& SegmentView::lane(std::uint32_t index) const {
    return *reinterpret_cast<schema::LaneHeader*>(base_ + entry(index).offset.load());
}

schema::LaneEntry& SegmentView::entry(std::uint32_t index) const {
    return reinterpret_cast<schema::LaneEntry*>(base_ + schema::kLaneTableOffset)[index];
}

std::string SegmentView::name(schema::NameId id) const {
    if (id == schema::kNoName || id == schema::kInlineName) return "";
    const auto* entries = reinterpret_cast<const schema::NameEntry*>(base_ + schema::kNamesOffset);
    const schema::NameEntry& entry = entries[id.value - 1];
    if (entry.state.load() != static_cast<std::uint16_t>(schema::NameState::kReady)) return "?";
    return {reinterpret_cast<const char*>(base_ + schema::kNameBytesOffset) + entry.offset.load(),
            entry.length.load()};
}

std::vector<ReadRecord> SegmentView::records(std::uint32_t lane) const {
    return read(lane, false);
}
std::vector<ReadRecord> SegmentView::drain(std::uint32_t lane) const {
    return read(lane, true);
}

std::vector<ReadRecord> SegmentView::read(std::uint32_t index, bool release) const {
    schema::LaneHeader& header = lane(index);
    const auto* cells = reinterpret_cast<const schema::Cell*>(&header + 1);
    schema::RingReader reader(&header, {cells, header.capacity_cells.load(),
                                        entry(index).ring_count.load(), header.rings});
    std::vector<ReadRecord> records;
    std::string inline_name;
    for (;;) {
        const schema::CellSpan span = reader.poll();
        REQUIRE_FALSE(span.corrupt);
        for (std::uint32_t i = 0; i < span.count;) {
            ReadRecord record;
            record.header = schema::RecordHeader::unpack(span.cells[i].words[0]);
            record.position = span.position + i;
            REQUIRE(record.header.cells > 0);
            const auto* words = span.cells[i].words;
            record.words.assign(words, words + record.header.cells * schema::kCellWords);
            i += record.header.cells;
            if (record.header.kind == schema::RecordKind::kPad) continue;
            if (record.header.kind == schema::RecordKind::kNameInline) {
                inline_name.assign(reinterpret_cast<const char*>(words + 3), words[1]);
                continue;
            }
            record.name = record.header.name == schema::kInlineName ? "<inline>" + inline_name
                                                                    : name(record.header.name);
            records.push_back(std::move(record));
        }
        if (!release || span.count == 0) return records;
        reader.release(span.count);
    }
}

std::uint64_t SegmentView::loss(schema::Loss loss) const {
    return header().losses[static_cast<std::uint32_t>(loss)].load();
}

bool SegmentView::locked() const {
    const int fd = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    REQUIRE(fcntl(fd, F_OFD_GETLK, &lock) == 0);
    close(fd);
    return lock.l_type != F_UNLCK;
}

Sandbox::Sandbox() {
    char path[] = "/dev/shm/ringside-unit-XXXXXX";
    REQUIRE(mkdtemp(path) != nullptr);
    root_ = path;
}

Sandbox::~Sandbox() {
    if (control_ != nullptr) munmap(control_, sizeof *control_);
    std::error_code ignored;
    fs::remove_all(root_, ignored);
}

std::vector<std::string> Sandbox::segments() const {
    std::vector<std::string> paths;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(job_directory(), ignored)) {
        const std::string name = entry.path().filename();
        if (name[0] >= '0' && name[0] <= '9') paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

std::string Sandbox::segment_of(pid_t pid) const {
    std::vector<std::string> found;
    const std::string middle = "." + std::to_string(pid) + ".";
    for (const std::string& path : segments()) {
        if (path.find(middle) != std::string::npos) found.push_back(path);
    }
    REQUIRE(found.size() == 1);
    return found[0];
}

schema::ControlPage& Sandbox::control() {
    if (control_ != nullptr) return *control_;
    inject::JobPath path;
    path.root.append(root_.c_str());
    path.job.append("job");
    const inject::FileDescriptor directory = inject::open_job_directory(path);
    const schema::ControlPage* page = inject::map_control_page(directory);
    REQUIRE(page != nullptr);
    munmap(const_cast<schema::ControlPage*>(page), sizeof *page);
    const int fd = open((job_directory() + "/control").c_str(), O_RDWR | O_CLOEXEC);
    void* memory = mmap(nullptr, sizeof *control_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    REQUIRE(memory != MAP_FAILED);
    control_ = static_cast<schema::ControlPage*>(memory);
    return *control_;
}

std::uint32_t Sandbox::set_capture(bool on, bool selected_only) {
    std::atomic<std::uint32_t>& word = control().capture_word;
    const std::uint32_t generation = schema::CaptureWord::unpack(word.load()).generation + 1;
    const std::uint32_t next = schema::CaptureWord{on, selected_only, generation}.pack();
    word.store(next, std::memory_order_release);
    wake();
    return next;
}

void Sandbox::wake() {
    syscall(SYS_futex, &control().capture_word, FUTEX_WAKE, INT_MAX);
}

bool Sandbox::load() const {
    static inject::JobPath path;
    static inject::Identity identity;
    path.root.clear();
    path.root.append(root_.c_str());
    path.job.clear();
    path.job.append("job");
    const char* arguments[] = {"program", "--option", nullptr};
    inject::read_identity(identity, arguments);
    inject::prepare_thread_exit();
    return inject::resolve_loader() && inject::open_segment(path, identity);
}

pid_t Sandbox::run(const std::function<void()>& body) const {
    std::fflush(nullptr);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        body();
        std::_Exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    return pid;
}

pid_t Sandbox::run_killed(int signal, const std::function<void()>& body) const {
    std::fflush(nullptr);
    const pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        body();
        std::_Exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == signal);
    return pid;
}

}  // namespace ringside::test
