// What Prometheus reads of agents, and the address where it does. promtool's word on the text: tests/integration/watching.py.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "agent/control/outbox.hpp"
#include "agent/metrics/metrics_keeper.hpp"
#include "agent/metrics/metrics_process.hpp"
#include "agent/metrics/metrics_text.hpp"
#include "agent/metrics/text_endpoint.hpp"
#include "folder.hpp"

namespace ringside::agent::test {
namespace {

fbs::StatusReplyT some_status() {
    fbs::StatusReplyT status;
    status.node = "a";
    status.processes = 3;
    status.total_events = 12345678901;
    status.cpu_ns = 1'500'000'000;
    return status;
}

/// Stands for the process that serves metrics.
schema::Result<pid_t> sleeping_process() {
    const pid_t child = ::fork();
    if (child != 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a case that fails ends none of them
    ::signal(SIGTERM, SIG_DFL);
    for (;;) ::pause();
}

bool is_there(pid_t process) {
    return ::kill(process, 0) == 0;
}

/// Not reaped.
void kill_and_await(pid_t process) {
    REQUIRE(::kill(process, SIGKILL) == 0);
    siginfo_t info{};
    REQUIRE(::waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOWAIT) == 0);
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

FileHandle connect_to(int port) {
    FileHandle socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = ::htons(static_cast<std::uint16_t>(port));
    name.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
    return socket;
}

std::string ask_at(int port, const std::string& request) {
    const FileHandle socket = connect_to(port);
    REQUIRE(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) ==
            static_cast<ssize_t>(request.size()));
    std::string answer;
    std::array<char, 4096> part{};
    for (ssize_t size = 0; (size = ::recv(socket.get(), part.data(), part.size(), 0)) > 0;)
        answer.append(part.data(), static_cast<std::size_t>(size));
    return answer;
}

/// A port that is free now, and its endpoint, served.
class Served {
public:
    Served() {
        for (port_ = 20'000; !endpoint_ && port_ < 60'000; ++port_) {
            auto made = TextEndpoint::listen("127.0.0.1:" + std::to_string(port_));
            if (!made) continue;
            endpoint_.emplace(std::move(*made));
            break;
        }
        thread_ = std::thread(
            [this] { endpoint_->serve([] { return std::string("text\n"); }, stop_.fd()); });
    }
    ~Served() {
        stop_.raise();
        thread_.join();
    }
    FileHandle connect() const { return connect_to(port_); }
    /// All that it answers.
    std::string ask(const std::string& request) const { return ask_at(port_, request); }
    int port() const { return port_; }

private:
    int port_ = 0;
    std::optional<TextEndpoint> endpoint_;
    Event stop_;
    std::thread thread_;
};

}  // namespace

TEST_CASE("metrics: a sample an agent; what one can't say, and who is silent, has none") {
    const AgentAnswer agents[] = {{"one", some_status()}, {"two", {}}};
    const std::string text = metrics_text(agents);
    CHECK(has(text, "ringside_agent_up{job=\"one\"} 1\nringside_agent_up{job=\"two\"} 0\n"));
    CHECK(has(text,
              "# TYPE ringside_events_total counter\n"
              "ringside_events_total{job=\"one\",node=\"a\"} 12345678901\n"));
    CHECK(has(text, "ringside_agent_cpu_seconds_total{job=\"one\",node=\"a\"} 1.5\n"));
    CHECK_FALSE(has(text, "ringside_window_bytes"));
    CHECK_FALSE(has(text, "ringside_last_iteration_seconds"));
    CHECK_FALSE(has(text, "job=\"two\",node"));
}

TEST_CASE("metrics: a label's quotes and line ends do not end it") {
    const AgentAnswer agents[] = {{"a\"b\\c\nd", {}}};
    CHECK(has(metrics_text(agents), "{job=\"a\\\"b\\\\c d\"} 0\n"));
}

TEST_CASE("metrics: other addresses than loopback ones are refused") {
    for (const char* address :
         {"0.0.0.0:9400", "192.0.2.1:9400", "[::]:9400", "[2001:db8::1]:9400", "localhost:9400"}) {
        const auto made = TextEndpoint::listen(address);
        REQUIRE_FALSE(made);
        CHECK_MESSAGE(made.error().code == schema::ErrorCode::kRefused, made.error().message);
    }
    for (const char* address :
         {"", "9400", "*:9400", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000"}) {
        const auto made = TextEndpoint::listen(address);
        REQUIRE_FALSE(made);
        CHECK_MESSAGE(made.error().code == schema::ErrorCode::kUsage, made.error().message);
    }
}

TEST_CASE("metrics: a taken port is refused") {
    const Served served;
    const auto second = TextEndpoint::listen("127.0.0.1:" + std::to_string(served.port()));
    REQUIRE_FALSE(second);
    CHECK(second.error().code == schema::ErrorCode::kRefused);
}

TEST_CASE("metrics: one path answers, and a request may come in parts") {
    const Served served;
    const std::string answer = served.ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK(answer.starts_with("HTTP/1.1 200 OK\r\n"));
    CHECK(answer.ends_with("Content-Length: 5\r\nConnection: close\r\n\r\ntext\n"));
    CHECK(served.ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    CHECK(served.ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    const FileHandle slow = served.connect();
    for (const std::string part : {"GET /met", "rics HTTP/1.0\r", "\n\r\n"})
        CHECK(::send(slow.get(), part.data(), part.size(), 0) > 0);
    std::array<char, 8> begin{};
    CHECK(::recv(slow.get(), begin.data(), begin.size(), MSG_WAITALL) == begin.size());
}

TEST_CASE(
    "metrics: whose process has died are served by another, after a pause where it dies again") {
    int started = 0;
    MetricsKeeper keeper([&](const std::string&) { return ++started, sleeping_process(); });
    REQUIRE(keeper.move_to("127.0.0.1:1"));
    const pid_t first = keeper.pid();
    keeper.look();
    CHECK((started == 1 && keeper.pid() == first));
    kill_and_await(first);
    keeper.look();
    CHECK(started == 2);
    CHECK((keeper.pid() != first && is_there(keeper.pid())));
    CHECK_FALSE(is_there(first));  // reaped
    kill_and_await(keeper.pid());
    keeper.look();
    CHECK((started == 2 && keeper.pid() == 0));
    CHECK(keeper.move_to(""));
}

TEST_CASE(
    "metrics: at an address that can't be had they stay where they are, and it is tried again") {
    bool taken = true;
    MetricsKeeper keeper([&](const std::string& address) -> schema::Result<pid_t> {
        if (taken && address == "127.0.0.1:2")
            return schema::Error{schema::ErrorCode::kRefused, "taken"};
        return sleeping_process();
    });
    REQUIRE(keeper.move_to("127.0.0.1:1"));
    const pid_t first = keeper.pid();
    CHECK_FALSE(keeper.move_to("127.0.0.1:2"));
    CHECK((keeper.pid() == first && is_there(first) && keeper.address() == "127.0.0.1:1"));
    taken = false;
    CHECK(keeper.move_to("127.0.0.1:2"));
    CHECK((keeper.pid() != first && keeper.address() == "127.0.0.1:2"));
    CHECK_FALSE(is_there(first));
    const pid_t second = keeper.pid();
    CHECK(keeper.move_to(""));
    CHECK((keeper.pid() == 0 && !is_there(second)));
}

TEST_CASE("metrics: ten agents that hang cost a scrape the second that one costs") {
    const Folder folder;
    const std::string path = folder.path() + "/hung.sock";
    const FileHandle hung(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    path.copy(name.sun_path, sizeof name.sun_path - 1);
    REQUIRE(::bind(hung.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0);
    REQUIRE(::listen(hung.get(), 100) == 0);
    const auto agents = [&] {
        std::vector<MetricsSetup::Asked> asked;
        for (int n = 0; n < 10; ++n) asked.push_back({"job" + std::to_string(n), "ipc://" + path});
        return asked;
    };
    int port = 20'000;
    auto process = start_metrics({"127.0.0.1:" + std::to_string(port), agents});
    while (!process && ++port < 60'000)
        process = start_metrics({"127.0.0.1:" + std::to_string(port), agents});
    REQUIRE(process);
    const auto began = std::chrono::steady_clock::now();
    const std::string text = ask_at(port, "GET /metrics HTTP/1.1\r\n\r\n");
    CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(5));
    CHECK(has(text, "ringside_agent_up{job=\"job0\"} 0\n"));
    CHECK(has(text, "ringside_agent_up{job=\"job9\"} 0\n"));
    REQUIRE(::kill(*process, SIGKILL) == 0);
    CHECK(::waitpid(*process, nullptr, 0) == *process);
}

TEST_CASE("metrics: who says nothing or too much keeps nobody from them") {
    const Served served;
    std::vector<FileHandle> silent;
    for (int i = 0; i < 100; ++i) silent.push_back(served.connect());
    CHECK(served.ask("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
    CHECK(served.ask(std::string(8192, 'x')).empty());
    CHECK(served.ask("GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

}  // namespace ringside::agent::test
