// What wakes the server's loop, and the letters that others leave for it.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/resource.h>

#include <optional>

#include "agent/control/outbox.hpp"

using namespace ringside::agent;

namespace {

/// No descriptor is given while it lives; those that are open stay so.
class NoDescriptors {
public:
    NoDescriptors() {
        REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
        const rlimit none{0, before_.rlim_max};
        REQUIRE(::setrlimit(RLIMIT_NOFILE, &none) == 0);
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
    NoDescriptors(const NoDescriptors&) = delete;
    NoDescriptors& operator=(const NoDescriptors&) = delete;

private:
    rlimit before_{};
};

bool wakes(const Event& event) {
    pollfd item{event.fd(), POLLIN, 0};
    return ::poll(&item, 1, 0) == 1;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("event: raised it wakes whoever waits, until it is lowered") {
        const Event event;
        CHECK_FALSE(wakes(event));
        event.raise();
        event.raise();
        CHECK(wakes(event));
        CHECK(event.raised());
        event.lower();
        CHECK_FALSE(wakes(event));
        CHECK_FALSE(event.raised());
    }

    TEST_CASE("event: without a descriptor it is raised all the same, and wakes nobody") {
        std::optional<NoDescriptors> none(std::in_place);
        const Event event;
        none.reset();
        REQUIRE(event.fd() < 0);
        event.raise();
        CHECK(event.raised());
        CHECK_FALSE(wakes(event));
        event.lower();
        CHECK_FALSE(event.raised());
    }

    TEST_CASE("outbox: letters come out in the order in which they were left, once") {
        Outbox outbox;
        outbox.post({"one", {1}});
        outbox.post({"two", {2}});
        const auto letters = outbox.take();
        REQUIRE(letters.size() == 2);
        CHECK(letters[0].identity == "one");
        CHECK(letters[1].identity == "two");
        CHECK(outbox.take().empty());
    }
}
