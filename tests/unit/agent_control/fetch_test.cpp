// Files of an agent's: which it gives, and how they arrive.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "agent/attach/file_handle.hpp"
#include "agent/control/fetch.hpp"
#include "agent/control/file_digest.hpp"
#include "agent/control/file_parts.hpp"
#include "agent/control/unsent_letters.hpp"
#include "agents.hpp"
#include "fake_file_agent.hpp"

using namespace ringside::agent;
using namespace ringside::agent::test;
namespace fbs = ringside::fbs;
using ringside::schema::ErrorCode;

namespace {

constexpr std::size_t kPart = kMostPartBytes;

std::string some_bytes(std::size_t size) {
    std::string bytes(size, '\0');
    std::uint32_t state = 7;
    for (char& byte : bytes)
        byte = static_cast<char>((state = state * 1664525u + 1013904223u) >> 24);
    return bytes;
}

void write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}

std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

fbs::FetchRequestT asking_for(const std::string& path) {
    fbs::FetchRequestT request;
    request.path = path;
    return request;
}

/// An output root with one capture in it.
struct Root {
    Root() {
        ::mkdir((folder.path() + "/root").c_str(), 0700);
        ::mkdir((folder.path() + "/root/cap").c_str(), 0700);
        write(dump, "a whole dump");
    }
    ErrorCode refusal(const std::string& path) {
        const auto reply = parts.read(asking_for(path));
        return reply ? ErrorCode{} : reply.error().code;
    }

    Folder folder;
    std::string path = folder.path() + "/root";
    std::string dump = path + "/cap/a.rsd";
    FileParts parts{path};
};

/// Where it is brought to.
struct Here {
    ringside::schema::Result<Fetched> fetch(const std::string& endpoint, const std::string& from,
                                            const FetchPace& pace = {}) {
        const FileHandle file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
        return fetch_file({endpoint, nullptr, from}, file.get(), {}, pace);
    }
    Folder folder;
    std::string path = folder.path() + "/a.rsd.partial";
};

FetchPace quick() {
    FetchPace pace;
    pace.silence = Milliseconds(1500);
    pace.give_up = Milliseconds(3000);
    return pace;
}

}  // namespace

TEST_SUITE("unit") {
    TEST_CASE(
        "file parts: a dump beneath the root is given, by the path of a reply or a relative one") {
        Root root;
        for (const std::string& path : {root.dump, std::string("cap/a.rsd")}) {
            const auto reply = root.parts.read(asking_for(path));
            REQUIRE(reply);
            CHECK(std::string(reply->data.begin(), reply->data.end()) == "a whole dump");
            CHECK(reply->size == 12);
            CHECK(reply->checksum == digest_of(reply->data));
        }
    }

    TEST_CASE("file parts: a part has the bytes that were asked for, and no more than the bound") {
        Root root;
        const std::string bytes = some_bytes(3 * kPart);
        write(root.dump, bytes);
        auto request = asking_for(root.dump);
        request.offset = 5;
        request.most = 10 * kPart;
        const auto reply = root.parts.read(request);
        REQUIRE(reply);
        CHECK(reply->data.size() == kPart);
        CHECK(std::string(reply->data.begin(), reply->data.end()) == bytes.substr(5, kPart));
    }

    TEST_CASE("file parts: what leads out of the root is refused") {
        Root root;
        write(root.folder.path() + "/out.rsd", "not ours to give");
        ::symlink("../../out.rsd", (root.path + "/cap/link.rsd").c_str());
        ::symlink("..", (root.path + "/up").c_str());
        ::symlink("/dev/stdin", (root.path + "/cap/in.rsd").c_str());
        for (const std::string& path :
             {std::string("/etc/passwd"), root.folder.path() + "/out.rsd", root.path,
              root.path + "/", root.path + "x/a.rsd", root.path + "/../out.rsd",
              root.path + "/cap/../../out.rsd", std::string("../out.rsd"),
              root.path + "/cap/link.rsd", root.path + "/up/out.rsd", root.path + "//out.rsd",
              root.path + "/cap/in.rsd", std::string(), std::string("a\0.rsd", 6)}) {
            CAPTURE(path);
            CHECK(root.refusal(path) == ErrorCode::kRefused);
        }
    }

    TEST_CASE("file parts: what is no whole dump or index of this user's is refused") {
        Root root;
        write(root.path + "/cap/b.rsd.partial", "half of one");
        write(root.path + "/cap/key", "secret");
        ::mkdir((root.path + "/cap/folder.rsd").c_str(), 0700);
        ::mkfifo((root.path + "/cap/pipe.rsd").c_str(), 0600);
        for (const char* name : {"b.rsd.partial", "key", "folder.rsd", "pipe.rsd"}) {
            CAPTURE(name);
            CHECK(root.refusal(root.path + "/cap/" + name) == ErrorCode::kRefused);
        }
        CHECK(root.refusal(root.path + "/cap/none.rsd") == ErrorCode::kNothingMatched);
        if (::geteuid() != 0) return;  // nobody else can give a file away
        REQUIRE(::chown(root.dump.c_str(), 65534, 65534) == 0);
        CHECK(root.refusal(root.dump) == ErrorCode::kRefused);
    }

    TEST_CASE("file parts: a digest is of so many bytes, and of no more than there are") {
        Root root;
        auto request = asking_for(root.dump);
        request.digest = true;
        request.offset = 7;
        const std::string begin = "a whole";
        const auto reply = root.parts.read(request);
        REQUIRE(reply);
        CHECK(reply->data.empty());
        CHECK(reply->checksum ==
              digest_of({reinterpret_cast<const std::uint8_t*>(begin.data()), begin.size()}));
        request.offset = 13;
        const auto beyond = root.parts.read(request);
        REQUIRE(!beyond);
        CHECK(beyond.error().code == ErrorCode::kInput);
    }

    TEST_CASE("unsent bytes: no more than the bound, and again when they are released") {
        UnsentBytes unsent;
        auto most = unsent.hold(UnsentBytes::kMost);
        CHECK(most);
        CHECK(!unsent.hold(1));
        most.reset();
        CHECK(unsent.hold(1));
    }

    TEST_CASE("fetch: a file of no, one and many parts arrives whole") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kPart, 20 * kPart + 3}) {
            const std::string bytes = some_bytes(size);
            write(folder.path() + "/a/x.rsd", bytes);
            Here here;
            const auto fetched = here.fetch(agent.endpoint, "x.rsd");
            REQUIRE_MESSAGE(fetched, fetched.error().message);
            CHECK(fetched->bytes == size);
            CHECK(read(here.path) == bytes);
            CHECK(fetched->kept_bytes == 0);
            CHECK(fetched->asked_again == 0);
        }
    }

    TEST_CASE("fetch: what was here before is kept where it is the file's beginning, else not") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        const std::string bytes = some_bytes(3 * kPart);
        write(folder.path() + "/a/x.rsd", bytes);
        Here here;
        write(here.path, bytes.substr(0, kPart + 100));
        const auto kept = here.fetch(agent.endpoint, "x.rsd");
        REQUIRE(kept);
        CHECK(kept->kept_bytes == kPart + 100);
        CHECK(read(here.path) == bytes);
        for (const std::string& other : {some_bytes(kPart).substr(1), some_bytes(4 * kPart)}) {
            write(here.path, other);
            const auto anew = here.fetch(agent.endpoint, "x.rsd");
            REQUIRE(anew);
            CHECK(anew->kept_bytes == 0);
            CHECK(anew->begun_again == 1);
            CHECK(read(here.path) == bytes);
        }
    }

    TEST_CASE("fetch: what the agent refuses is an error at once") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        Here here;
        const auto refused = here.fetch(agent.endpoint, "/etc/passwd");
        REQUIRE(!refused);
        CHECK(refused.error().code == ErrorCode::kRefused);
        const auto gone = here.fetch(agent.endpoint, "x.rsd");
        REQUIRE(!gone);
        CHECK(gone.error().code == ErrorCode::kNothingMatched);
    }

    TEST_CASE(
        "fetch: it goes on with the next agent where one has died, whatever was asked of that") {
        const Folder folder;
        const std::string bytes = some_bytes(40 * kPart);
        // All that may be under way has come there before it dies.
        FileAgent first(folder, bytes, 10);
        first.serve([&](const fbs::FetchRequestT& asked, fbs::FetchReplyT&) {
            return asked.offset < 10 * kPart ? FileAgent::Then::kAnswer : FileAgent::Then::kEnd;
        });
        std::thread next([&] {
            first.join();
            first.serve([](const fbs::FetchRequestT& asked, fbs::FetchReplyT&) {
                // It goes on where it was.
                CHECK((asked.digest || asked.offset >= 10 * kPart));
                return FileAgent::Then::kAnswer;
            });
        });
        Here here;
        const auto fetched = here.fetch(first.endpoint, "x.rsd");
        next.join();
        REQUIRE_MESSAGE(fetched, fetched.error().message);
        CHECK(read(here.path) == bytes);
    }

    TEST_CASE("fetch: an agent that falls silent is left, and what has come stays") {
        const Folder folder;
        const std::string bytes = some_bytes(20 * kPart);
        FileAgent agent(folder, bytes);
        agent.serve([&](const fbs::FetchRequestT& asked, fbs::FetchReplyT&) {
            return asked.offset < 10 * kPart ? FileAgent::Then::kAnswer : FileAgent::Then::kSilence;
        });
        Here here;
        const auto fetched = here.fetch(agent.endpoint, "x.rsd", quick());
        REQUIRE(!fetched);
        CHECK(fetched.error().code == ErrorCode::kNoAgent);
        CHECK(fetched.error().message.find(std::to_string(10 * kPart)) != std::string::npos);
        CHECK(read(here.path) == bytes.substr(0, 10 * kPart));
    }

    TEST_CASE("fetch: a damaged part is asked for again, one that always is ends it") {
        const Folder folder;
        const std::string bytes = some_bytes(20 * kPart);
        int damaged = 0;
        FileAgent agent(folder, bytes);
        agent.serve([&](const fbs::FetchRequestT& asked, fbs::FetchReplyT& reply) {
            if (!asked.digest && asked.offset == 7 * kPart && damaged++ < 3) reply.data[9] ^= 1;
            return FileAgent::Then::kAnswer;
        });
        Here here;
        const auto fetched = here.fetch(agent.endpoint, "x.rsd");
        REQUIRE(fetched);
        CHECK(fetched->asked_again == 3);
        CHECK(read(here.path) == bytes);
        damaged = -1000;
        Here other;
        const auto never = other.fetch(agent.endpoint, "x.rsd");
        REQUIRE(!never);
        CHECK(never.error().code == ErrorCode::kInput);
        CHECK(read(other.path) == bytes.substr(0, 7 * kPart));
    }

    TEST_CASE("fetch: parts and digests that the agent can't serve now are asked for again") {
        const Folder folder;
        const std::string bytes = some_bytes(12 * kPart);
        int busy = 0, busy_digests = 0;
        FileAgent agent(folder, bytes);
        agent.serve([&](const fbs::FetchRequestT& asked, fbs::FetchReplyT& reply) {
            const bool now =
                asked.digest ? busy_digests++ % 3 != 2 : asked.offset == 5 * kPart && busy++ < 3;
            if (now) {
                reply = {};
                reply.offset = asked.offset;
                reply.busy = true;
            }
            return FileAgent::Then::kAnswer;
        });
        Here here;
        write(here.path, bytes.substr(0, 2 * kPart));
        const auto fetched = here.fetch(agent.endpoint, "x.rsd");
        REQUIRE_MESSAGE(fetched, fetched.error().message);
        CHECK(fetched->kept_bytes == 2 * kPart);
        CHECK(fetched->begun_again == 0);
        CHECK(fetched->asked_again == 0);
        CHECK(busy_digests == 6);  // of what was here, of all
        CHECK(read(here.path) == bytes);
    }

    TEST_CASE("fetch: a file that changes meanwhile is an error") {
        const Folder folder;
        const std::string bytes = some_bytes(12 * kPart);
        FileAgent agent(folder, bytes);
        agent.serve([&](const fbs::FetchRequestT& asked, fbs::FetchReplyT& reply) {
            if (asked.offset >= 6 * kPart) ++reply.inode;
            return FileAgent::Then::kAnswer;
        });
        Here here;
        const auto fetched = here.fetch(agent.endpoint, "x.rsd");
        REQUIRE(!fetched);
        CHECK(fetched.error().code == ErrorCode::kInput);
        CHECK(fetched.error().message.find("another file") != std::string::npos);
    }

    TEST_CASE("fetch: no more parts are under way than the window, whatever the file's size") {
        const Folder folder;
        const std::string bytes = some_bytes(20 * kPart);
        FileAgent agent(folder, bytes, 10);
        agent.serve(
            [](const fbs::FetchRequestT&, fbs::FetchReplyT&) { return FileAgent::Then::kAnswer; });
        Here here;
        REQUIRE(here.fetch(agent.endpoint, "x.rsd"));
        CHECK(agent.most_waiting == 8);
    }

    TEST_CASE("server: who reads nothing holds no more of files in memory than the bound") {
        const Folder folder;
        Agent agent(folder, "a");
        agent.serve();
        const std::string bytes = some_bytes(4 * kPart);
        write(folder.path() + "/a/x.rsd", bytes);
        zmq::context_t context;
        std::vector<zmq::socket_t> idle;
        for (int each = 0; each < 6; ++each) {
            idle.emplace_back(context, zmq::socket_type::dealer);
            idle.back().set(zmq::sockopt::rcvhwm, 1);
            idle.back().set(zmq::sockopt::linger, 0);
            idle.back().connect(agent.endpoint);
            for (int part = 0; part < 20; ++part)
                idle.back().send(zmq::buffer(pack(1, asking_for("x.rsd"))), zmq::send_flags::none);
        }
        auto client = Client::connect(agent.endpoint);
        REQUIRE(client);
        bool busy = false;
        const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
        while (!busy && std::chrono::steady_clock::now() < limit) {
            // Its own part may have been in the way of the last that there was room for.
            (void)idle.back().send(zmq::buffer(pack(1, asking_for("x.rsd"))),
                                   zmq::send_flags::dontwait);
            const auto reply = (*client)->ask<fbs::FetchReplyT>(asking_for("x.rsd"));
            REQUIRE(reply);
            busy = reply->busy;
        }
        CHECK(busy);
        idle.clear();
        Here here;
        const auto fetched = here.fetch(agent.endpoint, "x.rsd");
        REQUIRE_MESSAGE(fetched, fetched.error().message);
        CHECK(read(here.path) == bytes);
    }
}
