// An agent that gives one file, and does to it what a test wants: changes parts, keeps silent, dies and comes back.
#pragma once

#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <zmq.hpp>

#include "agent/control/file_digest.hpp"
#include "agent/control/messages.hpp"
#include "folder.hpp"

namespace ringside::agent::test {

class FileAgent {
public:
    enum class Then { kAnswer, kSilence, kEnd };
    /// What becomes of a request for bytes or a digest, and of the right reply to it.
    using Does = std::function<Then(const fbs::FetchRequestT&, fbs::FetchReplyT&)>;

    /// @param waits_ms  before each answer: so long it looks whether more is asked
    FileAgent(const Folder& folder, const std::string& bytes, int waits_ms = 0)
        : endpoint("ipc://" + folder.path() + "/file.sock"), bytes_(bytes), waits_ms_(waits_ms) {}
    ~FileAgent() {
        ending_ = true;
        join();
    }
    FileAgent(const FileAgent&) = delete;
    FileAgent& operator=(const FileAgent&) = delete;

    void serve(Does does) {
        thread_ = std::thread([this, does = std::move(does)] { run(does); });
    }
    /// Until it ends.
    void join() {
        if (thread_.joinable()) thread_.join();
    }

    const std::string endpoint;
    std::size_t most_waiting = 0;  ///< requests

private:
    struct Waiting {
        std::string identity;
        fbs::MessageT message;
    };

    void run(const Does& does) {
        zmq::context_t context;
        zmq::socket_t socket(context, zmq::socket_type::router);
        socket.set(zmq::sockopt::linger, 0);
        socket.bind(endpoint);
        std::deque<Waiting> waiting;
        bool silent = false;
        while (!ending_) {
            zmq::pollitem_t item{socket.handle(), 0, ZMQ_POLLIN, 0};
            if (::zmq_poll(&item, 1, waiting.empty() ? 20 : waits_ms_) > 0) {
                zmq::message_t identity, body;
                (void)socket.recv(identity);
                (void)socket.recv(body);
                auto message =
                    unpack_message({static_cast<const std::uint8_t*>(body.data()), body.size()});
                if (message) waiting.push_back({identity.to_string(), std::move(*message)});
                most_waiting = std::max(most_waiting, waiting.size());
                continue;
            }
            if (waiting.empty()) continue;
            Waiting next = std::move(waiting.front());
            waiting.pop_front();
            MessageBytes answer;
            if (auto* asked = content_as<fbs::FetchRequestT>(next.message)) {
                fbs::FetchReplyT reply = reply_to(*asked);
                const Then then = asked->most == 0 ? Then::kAnswer : does(*asked, reply);
                if (then == Then::kEnd) return;
                silent |= then == Then::kSilence;
                answer = pack(next.message.id, std::move(reply));
            } else {
                answer = pack(next.message.id, fbs::PingReplyT{});
            }
            if (silent) continue;
            socket.send(zmq::buffer(next.identity), zmq::send_flags::sndmore);
            socket.send(zmq::buffer(answer), zmq::send_flags::none);
        }
    }

    fbs::FetchReplyT reply_to(const fbs::FetchRequestT& asked) const {
        fbs::FetchReplyT reply;
        reply.offset = asked.offset;
        reply.size = bytes_.size();
        reply.inode = 1;
        const auto* const begin = reinterpret_cast<const std::uint8_t*>(bytes_.data());
        if (asked.digest) {
            reply.checksum = digest_of({begin, asked.offset});
        } else if (asked.offset <= bytes_.size()) {
            const std::size_t size =
                std::min<std::size_t>(asked.most, bytes_.size() - asked.offset);
            reply.data.assign(begin + asked.offset, begin + asked.offset + size);
            reply.checksum = digest_of(reply.data);
        }
        return reply;
    }

    const std::string bytes_;
    const int waits_ms_;
    std::atomic<bool> ending_{false};
    std::thread thread_;
};

}  // namespace ringside::agent::test
