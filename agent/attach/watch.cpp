#include "agent/attach/watch.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <array>
#include <cerrno>

namespace ringside::agent {
namespace {

void listen(int epoll, int descriptor) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, descriptor, &event);
}

bool add_directory(int notify, const char* directory) {
    return ::inotify_add_watch(
               notify, directory,
               IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF) >= 0;
}

}  // namespace

schema::Result<Watch> Watch::open(const char* directory) {
    Watch watch;
    watch.epoll_ = FileHandle(::epoll_create1(EPOLL_CLOEXEC));
    watch.wake_ = FileHandle(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (!watch.epoll_ || !watch.wake_) {
        return schema::Error{schema::ErrorCode::kInternal, std::string("watch ") + directory +
                                                               ": " + error_text(errno) +
                                                               "; raise the limit of open files"};
    }
    listen(watch.epoll_.get(), watch.wake_.get());
    watch.notify_ = FileHandle(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (watch.notify_ && add_directory(watch.notify_.get(), directory))
        listen(watch.epoll_.get(), watch.notify_.get());
    return watch;
}

void Watch::follow(const char* directory) {
    if (notify_) add_directory(notify_.get(), directory);
}

void Watch::add(int pidfd) {
    if (pidfd >= 0) listen(epoll_.get(), pidfd);
}

void Watch::remove(int pidfd) {
    if (pidfd >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, pidfd, nullptr);
}

void Watch::wake() {
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one) == sizeof one);
}

void Watch::clear(int descriptor) {
    alignas(inotify_event) std::array<char, 4096> drop;
    while (::read(descriptor, drop.data(), drop.size()) > 0) {
        if (descriptor == wake_.get()) break;
    }
}

Watch::Events Watch::wait(schema::Nanoseconds timeout) {
    std::array<epoll_event, 16> ready;
    // A timeout in whole milliseconds, rounded up: a wait of 0 would spin until the instant.
    const auto timeout_ms = static_cast<int>((timeout.value + schema::kNsPerMillisecond - 1) /
                                             schema::kNsPerMillisecond);
    const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                                   timeout_ms < 0 ? 0 : timeout_ms);
    Events events;
    for (int i = 0; i < count; ++i) {
        const int descriptor = ready[static_cast<std::size_t>(i)].data.fd;
        if (descriptor == notify_.get()) {
            events.directory = true;
            clear(descriptor);
        } else if (descriptor == wake_.get()) {
            clear(descriptor);
        } else {
            events.ended = true;
        }
    }
    return events;
}

}  // namespace ringside::agent
