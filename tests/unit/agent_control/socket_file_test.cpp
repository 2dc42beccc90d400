// A socket's file that somebody has removed.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include <zmq.hpp>

#include "agent/control/socket_file.hpp"
#include "agents.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;

namespace {

/// Once there is a descriptor for it, and not before.
bool is_bound_again(const std::string& endpoint) {
    zmq::context_t context;
    zmq::socket_t socket(context, zmq::socket_type::router);
    const auto path = bind_socket_file(socket, endpoint);
    if (!path || ::unlink(path->c_str()) != 0) return false;
    rlimit before{};
    ::getrlimit(RLIMIT_NOFILE, &before);
    const int next = ::dup(0);
    ::close(next);
    const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
    const auto refused = bind_again(socket, endpoint);
    ::setrlimit(RLIMIT_NOFILE, &before);
    return !refused && bind_again(socket, endpoint) && ::access(path->c_str(), F_OK) == 0;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE("socket file: one that is gone is made again, once there is a descriptor for it") {
        const Folder folder;
        // Among other tests' threads a descriptor may become free at any time.
        const pid_t child = ::fork();
        if (child == 0) ::_exit(is_bound_again(ipc_endpoint(folder, "a")) ? 0 : 1);
        int status = -1;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(status == 0);
    }
}
