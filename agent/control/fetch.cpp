#include "agent/control/fetch.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <utility>

#include "agent/attach/file_handle.hpp"
#include "agent/control/client.hpp"
#include "agent/control/file_digest.hpp"

namespace ringside::agent {
namespace {

using schema::Error;
using schema::ErrorCode;
using schema::Result;
using Clock = std::chrono::steady_clock;

/// Parts asked for and not here yet: enough for a slow way, and all that either side holds of a file.
constexpr std::size_t kWindow = 8;
constexpr int kMostDamagedInARow = 8;
constexpr Milliseconds kLookUp{200};
constexpr Milliseconds kBetweenPings{1000};
constexpr Milliseconds kWhenBusy{100};
constexpr Milliseconds kBetweenConnections{500};
/// What an agent reads for a digest in a millisecond, where its disk is slow.
constexpr std::uint64_t kSlowDiskBytesPerMs = 20'000;

class Fetch {
public:
    Fetch(const FetchWish& wish, int file, const FetchProgress& progress, const FetchPace& pace)
        : wish_(wish), file_(file), progress_(progress), pace_(pace) {}

    Result<Fetched> run() {
        struct stat facts {};
        if (::fstat(file_, &facts) != 0) return unwritable();
        have_ = fetched_.kept_bytes = static_cast<std::uint64_t>(facts.st_size);
        checked_ = have_ == 0;
        const auto context = asking_context();
        if (!context) return context.error();
        while (true) {
            auto link = Link::connect(**context, wish_.endpoint, wish_.key);
            if (link) {
                const auto done = bring(*link);
                if (!done) return done.error();
                if (*done) return fetched_;
                met_ = true;
                ++fetched_.reconnected;
            } else if (!met_ && link.error().code != ErrorCode::kNoAgent) {
                return link.error();
            } else {
                trouble_ = link.error().message;
            }
            if (Clock::now() - news_ > pace_.give_up) return failed(ErrorCode::kNoAgent, trouble_);
            if (!go_on()) return given_up();
            ::poll(nullptr, 0, static_cast<int>(kBetweenConnections.count()));
        }
    }

private:
    enum class Same { kYes, kNo, kLost };
    struct Asked {
        std::uint64_t id;
        std::uint64_t offset;
    };
    struct Identity {
        std::uint64_t size;
        std::int64_t changed_ns;
        std::uint64_t inode;
        bool operator==(const Identity&) const = default;
    };
    struct Heard {
        bool lost = false;
        std::optional<fbs::MessageT> message{};  ///< none: nothing yet
    };

    bool go_on() const {
        return !progress_ || progress_(have_, identity_ ? identity_->size : 0, trouble_);
    }
    Error failed(ErrorCode code, const std::string& cause) const {
        return {code, "fetch " + wish_.path + " from " + wish_.endpoint + ": " + cause + "; " +
                          std::to_string(have_) +
                          (identity_ ? " of " + std::to_string(identity_->size) : "") +
                          " bytes are here"};
    }
    Error given_up() const { return failed(ErrorCode::kRefused, "given up"); }
    Error unwritable() const { return failed(ErrorCode::kUsage, error_text(errno)); }

    /// All that is missing, over one connection.
    /// @return false: it is lost
    Result<bool> bring(Link& link) {
        asked_.clear();
        marker_ = 0;
        next_ = have_;
        heard_ = answered_ = Clock::now();
        while (true) {
            if (!checked_) {
                const auto same = compare(link, have_);
                if (!same) return same.error();
                if (*same == Same::kLost) return false;
                if (*same == Same::kNo && !begin_again()) return unwritable();
                checked_ = true;
            }
            auto all = take_parts(link);
            if (!all || !*all) return all;
            const auto whole = compare(link, have_);
            if (!whole) return whole.error();
            if (*whole == Same::kLost) return false;
            fetched_.bytes = have_;
            if (*whole == Same::kYes) return true;
            if (fetched_.begun_again > 0)
                return failed(ErrorCode::kInput, "what has arrived is not what is there, twice");
            if (!begin_again()) return unwritable();
        }
    }

    bool begin_again() {
        ++fetched_.begun_again;
        fetched_.kept_bytes = have_ = next_ = 0;
        return ::ftruncate(file_, 0) == 0;
    }

    /// The next message but for answers to pings, which keep silence apart from slowness.
    Result<Heard> hear(Link& link) {
        if (!go_on()) return given_up();
        auto message = link.receive(Clock::now() + kLookUp);
        const SteadyTime now = Clock::now();
        if (!message) return lost(message.error().message);
        if (*message) {
            heard_ = now;
            if (const auto unread = unread_by(wish_.endpoint, **message)) return *unread;
            if (const auto* error = content_as<fbs::ErrorReplyT>(**message))
                return error_of(*error);
            if ((*message)->content.type == fbs::Content::PingReply) return Heard{};
            return Heard{false, std::move(*message)};
        }
        if (now - heard_ > pace_.silence) return lost("its agent is silent");
        if (now - pinged_ > kBetweenPings) {
            pinged_ = now;
            if (!link.send(pack(link.next_id(), fbs::PingRequestT{})) || !send_marker(link))
                return lost("its agent takes nothing more");
        }
        return Heard{};
    }
    /// Files are served in order: whoever was asked before a marker and has not answered when its reply comes never will. So goes what is
    /// under way where libzmq connects to another agent at the same place.
    bool send_marker(Link& link) {
        fbs::FetchRequestT request;
        request.path = wish_.path;
        request.most = 0;
        marker_ = link.next_id();
        return static_cast<bool>(link.send(pack(marker_, std::move(request))));
    }
    bool is_marker(std::uint64_t id, const fbs::FetchReplyT& reply) const {
        return id == marker_ && !reply.busy;
    }
    Heard lost(const std::string& cause) {
        trouble_ = cause;
        return {true};
    }

    /// Our first `bytes` against the agent's.
    Result<Same> compare(Link& link, std::uint64_t bytes) {
        const auto ours = digest_of(file_, bytes, [this] { return go_on(); });
        if (!ours) return failed(ErrorCode::kInput, ours.error().message);
        fbs::FetchRequestT request;
        request.path = wish_.path;
        request.offset = bytes;
        request.digest = true;
        std::uint64_t id = link.next_id();
        if (!link.send(pack(id, request))) return Same::kLost;
        heard_ = Clock::now();
        std::optional<SteadyTime> ask_again;
        const SteadyTime limit = heard_ + pace_.answer + Milliseconds(bytes / kSlowDiskBytesPerMs);
        while (Clock::now() < limit) {
            if (ask_again && Clock::now() >= *ask_again) {
                ask_again.reset();
                id = link.next_id();
                if (!link.send(pack(id, request))) return Same::kLost;
            }
            auto heard = hear(link);
            if (!heard) {
                // It is shorter now than what is here.
                if (heard.error().code == ErrorCode::kInput) return Same::kNo;
                return heard.error();
            }
            if (heard->lost) return Same::kLost;
            if (!heard->message) continue;
            const auto* reply = content_as<fbs::FetchReplyT>(*heard->message);
            if (reply != nullptr && marker_ > id && is_marker(heard->message->id, *reply))
                return Same::kLost;
            if (heard->message->id != id) continue;
            if (reply != nullptr && reply->busy) {
                trouble_ = "its agent has too much to do";
                ask_again = Clock::now() + kWhenBusy;
                continue;
            }
            if (reply == nullptr || !is_same_file(*reply)) return changed();
            news_ = Clock::now();
            return reply->checksum == *ours ? Same::kYes : Same::kNo;
        }
        return Same::kLost;
    }

    bool is_same_file(const fbs::FetchReplyT& reply) {
        const Identity now{reply.size, reply.changed_ns, reply.inode};
        if (!identity_) identity_ = now;
        return *identity_ == now;
    }
    Error changed() const {
        return failed(ErrorCode::kInput,
                      "it is another file there now than at the beginning; fetch it again");
    }

    /// @return false: the connection is lost
    Result<bool> take_parts(Link& link) {
        while (!identity_ || have_ < identity_->size) {
            if (!ask_for_more(link)) return false;
            auto heard = hear(link);
            if (!heard) return heard.error();
            if (heard->lost) return false;
            if (Clock::now() - answered_ > pace_.answer) {
                trouble_ = "its agent lives and sends no part";
                return false;
            }
            if (!heard->message) continue;
            auto* part = content_as<fbs::FetchReplyT>(*heard->message);
            if (part == nullptr)
                return failed(ErrorCode::kInput,
                              "it answered something else; is its agent of this "
                              "version? (`ringside status`)");
            if (auto taken = take(heard->message->id, *part); !taken) return taken.error();
        }
        return true;
    }

    bool ask_for_more(Link& link) {
        if (Clock::now() < hold_until_) return true;
        const std::size_t window = identity_ ? kWindow : 1;
        while (asked_.size() < window && (!identity_ || next_ < identity_->size)) {
            fbs::FetchRequestT request;
            request.path = wish_.path;
            request.offset = next_;
            request.most = kMostPartBytes;
            const std::uint64_t id = link.next_id();
            if (!link.send(pack(id, std::move(request)))) return false;
            asked_.push_back({id, next_});
            next_ += kMostPartBytes;
        }
        return true;
    }

    void ask_again_from(const std::deque<Asked>::iterator& from) {
        next_ = from->offset;
        asked_.erase(from, asked_.end());
    }

    /// Parts are taken in order, so that what is on disk is always a beginning.
    Result<void> take(std::uint64_t id, const fbs::FetchReplyT& part) {
        const auto asked = std::find_if(asked_.begin(), asked_.end(),
                                        [id](const Asked& each) { return each.id == id; });
        if (asked == asked_.end()) {  // it is being asked for again
            if (is_marker(id, part) && !asked_.empty() && asked_.front().id < id)
                ask_again_from(asked_.begin());
            return {};
        }
        answered_ = Clock::now();
        if (part.busy) {
            hold_until_ = answered_ + kWhenBusy;
            ask_again_from(asked);
            return {};
        }
        if (!is_same_file(part)) return changed();
        const bool whole = asked == asked_.begin() && part.offset == have_ &&
                           digest_of(part.data) == part.checksum &&
                           (!part.data.empty() || have_ == part.size);
        if (!whole) {
            ++fetched_.asked_again;
            if (++damaged_in_a_row_ > kMostDamagedInARow)
                return failed(ErrorCode::kInput, "a part is damaged each time that it arrives");
            ask_again_from(asked_.begin());
            return {};
        }
        if (!write(part.data)) return unwritable();
        damaged_in_a_row_ = 0;
        trouble_.clear();
        news_ = answered_;
        asked_.pop_front();
        // A shorter part than was asked for: the others don't follow it.
        if (!asked_.empty() && asked_.front().offset != have_) ask_again_from(asked_.begin());
        if (asked_.empty()) next_ = have_;
        return {};
    }

    bool write(const std::vector<std::uint8_t>& data) {
        for (std::size_t done = 0; done < data.size();) {
            const ssize_t written =
                ::pwrite(file_, data.data() + done, data.size() - done, static_cast<off_t>(have_));
            if (written < 0 && errno == EINTR) continue;
            if (written < 0) return false;
            done += static_cast<std::size_t>(written);
            have_ += static_cast<std::uint64_t>(written);
        }
        return true;
    }

    const FetchWish& wish_;
    const int file_;
    const FetchProgress& progress_;
    const FetchPace pace_;
    Fetched fetched_;
    std::uint64_t have_ = 0;  ///< bytes of the file that are on disk, from its beginning
    std::uint64_t next_ = 0;  ///< what is asked for next
    std::deque<Asked> asked_;
    std::uint64_t marker_ = 0;  ///< the last one
    std::optional<Identity> identity_;
    bool checked_ = false;  ///< what was here before is its beginning
    bool met_ = false;      ///< the agent has been reached
    int damaged_in_a_row_ = 0;
    std::string trouble_;
    SteadyTime hold_until_{};
    SteadyTime heard_{}, pinged_{};
    SteadyTime answered_{};           ///< the last part
    SteadyTime news_ = Clock::now();  ///< the last byte
};

}  // namespace

Result<Fetched> fetch_file(const FetchWish& wish, int file, const FetchProgress& progress,
                           const FetchPace& pace) {
    return Fetch(wish, file, progress, pace).run();
}

}  // namespace ringside::agent
