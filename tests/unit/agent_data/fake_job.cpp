#include "tests/unit/agent_data/fake_job.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace ringside::agent::testing {

using schema::RecordHeader;
using schema::RecordKind;

TemporaryDirectory::TemporaryDirectory() {
    char path[] = "/tmp/ringside-test-XXXXXX";
    if (::mkdtemp(path) == nullptr) throw std::runtime_error("mkdtemp");
    path_ = path;
}

TemporaryDirectory::~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
}

bool FakeLane::put(const void* record, std::uint32_t cells, std::uint64_t ticks) {
    schema::Cell* out = writer_.reserve(cells);
    if (out == nullptr) {
        writer_.drop({ticks});
        return false;
    }
    std::memcpy(static_cast<void*>(out), record, cells * schema::kCellBytes);
    writer_.commit(cells);
    return true;
}

bool FakeLane::range(std::uint32_t name, std::uint64_t begin, std::uint64_t end) {
    const schema::RangeRecord record{
        RecordHeader{
            RecordKind::kRange, 1, schema::record_flags(schema::SourceId::kTorch, 0), {name}}
            .pack(),
        begin, end, 0};
    return put(&record, 1, end);
}

bool FakeLane::rpc_begin(std::uint32_t name, std::uint64_t ticks, std::uint64_t key, bool server,
                         std::uint32_t self, std::uint32_t peer, std::uint64_t span) {
    schema::RpcBeginRecord record{};
    record.header = RecordHeader{
        RecordKind::kRpcBegin,
        3,
        schema::record_flags(schema::SourceId::kTorch, 0),
        {name}}.pack();
    record.ticks = ticks;
    record.key = key;
    record.span = span;
    record.self = self;
    record.peer = peer;
    record.side = server ? 1 : 0;
    return put(&record, 3, ticks);
}

bool FakeLane::rpc_end(std::uint64_t ticks, std::uint64_t key) {
    const schema::RpcEndRecord record{
        RecordHeader{RecordKind::kRpcEnd, 1, schema::record_flags(schema::SourceId::kTorch, 0), {}}
            .pack(),
        ticks, key, schema::RpcEndRecord::pack(schema::RpcStatus::kOk, 5)};
    return put(&record, 1, ticks);
}

void FakeLane::grow() {
    const std::uint32_t next = header_->ring.load(std::memory_order_relaxed) + 1;
    header_->rings[next].real_cells.store(schema::ring_cells(room_.first_cells, next));
    writer_.grow(room_);
}

void FakeLane::push_open(std::uint32_t name, std::uint64_t begin) {
    const std::uint32_t depth = header_->open_depth.load(std::memory_order_relaxed);
    schema::OpenEntry& entry = header_->open[depth];
    entry.begin.store(begin, std::memory_order_relaxed);
    entry.key.store(depth + 1, std::memory_order_relaxed);
    entry.argument.store(0, std::memory_order_relaxed);
    entry.what.store(
        RecordHeader{
            RecordKind::kRange, 1, schema::record_flags(schema::SourceId::kTorch, 0), {name}}
            .pack(),
        std::memory_order_relaxed);
    header_->open_depth.store(depth + 1, std::memory_order_release);
}

FakeSegment::FakeSegment(const std::string& job_directory, const SegmentSpec& spec)
    : bytes_(spec.bytes), next_lane_(schema::lanes_offset(spec.layout)) {
    path_ = job_directory + "/" + std::to_string(spec.pid_namespace) + "." +
            std::to_string(spec.pid) + "." + std::to_string(spec.start_ticks);
    lock_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (lock_ < 0 || ::ftruncate(lock_, static_cast<off_t>(bytes_)) != 0)
        throw std::runtime_error("make " + path_);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_len = 1;
    if (::fcntl(lock_, F_OFD_SETLK, &lock) != 0) throw std::runtime_error("lock " + path_);
    base_ = static_cast<std::byte*>(
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, lock_, 0));
    schema::SegmentHeader* head = header();
    head->magic = schema::kSegmentMagic;
    head->layout = spec.layout;
    head->mark = schema::kMachineMark;
    head->pid = static_cast<std::int32_t>(spec.pid);
    head->parent_pid = 1;
    head->uid = ::getuid();
    head->rank = 3;
    head->pid_namespace = spec.pid_namespace;
    head->start_ticks = spec.start_ticks;
    head->size_bytes = bytes_;
    head->ticks_source = static_cast<std::uint32_t>(schema::TicksSource::kTsc);
    head->worker_id.store(-1, std::memory_order_relaxed);
    std::strcpy(head->executable, "/usr/bin/fake");
    std::memcpy(head->command_line, "fake\0--option\0", 14);
    if (spec.ready) head->state.store(1, std::memory_order_release);
}

FakeSegment::~FakeSegment() {
    if (base_ != nullptr) ::munmap(base_, bytes_);
    if (lock_ >= 0) ::close(lock_);
}

FakeLane& FakeSegment::add_lane(std::uint32_t capacity_cells, std::uint32_t ring_count) {
    auto* lane = at<schema::LaneHeader>(next_lane_);
    lane->capacity_cells.store(capacity_cells, std::memory_order_relaxed);
    lane->tid.store(static_cast<std::uint32_t>(1000 + lanes_.size()), std::memory_order_relaxed);
    lane->state.store(schema::pack_lane_state(schema::LaneState::kUsed, 1),
                      std::memory_order_relaxed);
    const std::uint32_t index = header()->lanes_in_use.fetch_add(1);
    auto* entry = at<schema::LaneEntry>(schema::kLaneTableOffset) + index;
    entry->capacity_cells.store(capacity_cells, std::memory_order_relaxed);
    entry->ring_count.store(ring_count, std::memory_order_relaxed);
    entry->offset.store(next_lane_, std::memory_order_release);
    auto* cells = at<schema::Cell>(next_lane_ + schema::kPageBytes);
    next_lane_ +=
        schema::kPageBytes + schema::ring_offset(capacity_cells, ring_count) * schema::kCellBytes;
    next_lane_ = (next_lane_ + schema::kPageBytes - 1) / schema::kPageBytes * schema::kPageBytes;
    lanes_.push_back(std::make_unique<FakeLane>(
        lane, FakeLane::Room{cells, capacity_cells, ring_count, lane->rings}));
    return *lanes_.back();
}

std::uint32_t FakeSegment::intern(const std::string& text, std::uint16_t attribute) {
    auto* entry = at<schema::NameEntry>(schema::kNamesOffset) + next_name_;
    std::memcpy(at<char>(schema::kNameBytesOffset + name_bytes_), text.data(), text.size());
    entry->offset.store(name_bytes_, std::memory_order_relaxed);
    entry->length.store(static_cast<std::uint16_t>(text.size()), std::memory_order_relaxed);
    entry->attribute.store(attribute, std::memory_order_relaxed);
    entry->state.store(static_cast<std::uint16_t>(schema::NameState::kReady),
                       std::memory_order_release);
    name_bytes_ += static_cast<std::uint32_t>(text.size()) + 1;
    return ++next_name_;
}

void FakeSegment::set_level(schema::SourceId source, schema::SourceLevel level,
                            const std::string& reason) {
    schema::SourceStatus& status = header()->sources[static_cast<std::uint32_t>(source)];
    std::memcpy(static_cast<void*>(status.reason), reason.data(), reason.size());
    status.level.store(static_cast<std::uint32_t>(level), std::memory_order_release);
}

void FakeSegment::die(bool clean) {
    if (clean) header()->state.store(static_cast<std::uint32_t>(schema::SegmentState::kClosing));
    ::munmap(base_, bytes_);
    base_ = nullptr;
    ::close(lock_);
    lock_ = -1;
}

FakeControl::FakeControl(const std::string& job_directory) {
    const int file =
        ::open((job_directory + "/" + schema::kControlFileName).c_str(), O_RDONLY | O_CLOEXEC);
    page_ = static_cast<schema::ControlPage*>(
        ::mmap(nullptr, sizeof(schema::ControlPage), PROT_READ, MAP_SHARED, file, 0));
    ::close(file);
    if (page_ == MAP_FAILED) throw std::runtime_error("map control page");
}

FakeControl::~FakeControl() {
    ::munmap(page_, sizeof(schema::ControlPage));
}

Child::Child(const std::function<void()>& work, bool exits) {
    int done[2];
    if (::pipe(done) != 0) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_ == 0) {
        ::close(done[0]);
        work();
        if (exits) ::_exit(3);
        static_cast<void>(::write(done[1], "x", 1) == 1);
        for (;;) ::pause();
    }
    ::close(done[1]);
    char byte = 0;
    static_cast<void>(::read(done[0], &byte, 1) == 1);
    ::close(done[0]);
}

void Child::kill() {
    ::kill(pid_, SIGKILL);
    join();
}

void Child::join() {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
}

Child::~Child() {
    if (pid_ > 0) kill();
}

std::uint64_t ticks_now() {
    return schema::read_ticks(schema::TicksSource::kTsc).value;
}

bool exists(const std::string& path) {
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0;
}

}  // namespace ringside::agent::testing
