// `ringside top`: what the agents do, again and again: a table on the terminal's other screen, else one below the other, or JSON.
#include <poll.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "schema/units.hpp"
#include "tools/ringside/agents.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/options.hpp"
#include "tools/ringside/process.hpp"
#include "tools/ringside/progress.hpp"
#include "tools/ringside/screen.hpp"
#include "tools/ringside/top_view.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

struct TopOptions {
    AgentChoice agents;
    std::string interval = "1s";
    bool once = false;
    bool json = false;
};

/// Asks all agents, many at once, over links that stay.
class Watcher {
public:
    /// @param told  after each agent: of how many is known
    Looks look(const Agents& agents, const std::function<void(std::size_t)>& told = {}) {
        Looks looks(agents.endpoints.size());
        std::map<std::string, std::unique_ptr<agent::Client>> clients;
        for (const std::string& endpoint : agents.endpoints) {
            clients[endpoint] = std::move(clients_[endpoint]);
        }
        clients_ = std::move(clients);
        agent::at_once(
            looks.size(), [&](std::size_t n) { looks[n] = ask(agents, agents.endpoints[n]); },
            told);
        return looks;
    }
    /// Of the last look: the first agent that did not answer.
    const std::optional<Error>& error() const { return error_; }

private:
    AgentLook ask(const Agents& agents, const std::string& endpoint) {
        AgentLook look{endpoint, {}, {}, {}};
        std::unique_ptr<agent::Client>& client = clients_.at(endpoint);
        if (!client) {
            auto connected = agents.connect(endpoint);
            if (!connected) {
                return silent(std::move(look), connected.error());
            }
            client = std::move(*connected);
        }
        constexpr milliseconds kPatience{2000};
        auto status = client->ask<fbs::StatusReplyT>(fbs::StatusRequestT{}, kPatience);
        auto processes =
            status ? client->ask<fbs::ProcessesReplyT>(fbs::ProcessesRequestT{}, kPatience)
                   : Result<fbs::ProcessesReplyT>(status.error());
        if (!processes) {
            client.reset();
            return silent(std::move(look), processes.error());
        }
        look.status = std::move(*status);
        look.processes = std::move(*processes);
        return look;
    }
    AgentLook silent(AgentLook look, const Error& error) {
        look.error = error.message;
        const std::lock_guard lock(mutex_);
        error_ = error;
        return look;
    }

    std::map<std::string, std::unique_ptr<agent::Client>> clients_;
    std::mutex mutex_;
    std::optional<Error> error_;
};

std::string clock_text() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::localtime_r(&now, &parts);
    std::array<char, 16> text{};
    std::strftime(text.data(), text.size(), "%H:%M:%S", &parts);
    return text.data();
}

bool any_answers(const Looks& looks) {
    return std::any_of(looks.begin(), looks.end(),
                       [](const AgentLook& look) { return look.status.has_value(); });
}

class Top {
public:
    explicit Top(const TopOptions& options) : options_(options) {}

    int run() {
        const auto interval = parse_duration_ms(options_.interval, "--interval");
        if (!interval) {
            return fail(interval.error());
        }
        auto agents = agents_of(options_.agents);
        if (!agents) {
            return fail(agents.error());
        }
        now_ = first_look(*agents);
        if (!any_answers(now_) && watcher_.error()) {
            return fail(*watcher_.error());
        }
        if (Screen::is_there() && !options_.json && !options_.once) {
            screen_.emplace();
        }
        // Rates want two looks; on a screen the first one is better than nothing.
        if (screen_) {
            draw();
        }
        for (auto next = Clock::now();;) {
            next = std::max(next + milliseconds(*interval), Clock::now());
            if (wait_until(next)) {
                return kExitGood;
            }
            // Jobs come and go beneath a resident agent.
            if (options_.agents.job.empty() && options_.agents.hosts.empty()) {
                if (auto found = agents_of(options_.agents)) {
                    agents = std::move(found);
                }
            }
            before_ = std::move(now_);
            now_ = watcher_.look(*agents);
            if (const auto shown = show(); !shown) {
                return fail(shown.error());
            }
            if (options_.once) {
                return kExitGood;
            }
        }
    }

private:
    /// Where many are silent it takes seconds, and nothing is on the screen yet.
    Looks first_look(const Agents& agents) {
        const std::string what = "asking " + std::to_string(agents.endpoints.size()) +
                                 (agents.endpoints.size() == 1 ? " agent" : " agents");
        Progress progress(what);
        return watcher_.look(
            agents, [&](std::size_t done) { progress.tell(what, done, agents.endpoints.size()); });
    }

    Result<void> show() {
        if (screen_) {
            draw();
            return {};
        }
        if (options_.json) {
            timespec time{};
            ::clock_gettime(CLOCK_REALTIME, &time);
            const nlohmann::json line = {
                {"time_ns", time.tv_sec * schema::kNsPerSecond + time.tv_nsec},
                {"nodes", top_json(now_, before_)}};
            return print(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) +
                         "\n");
        }
        return print((shown_ ? "\n" : "") + title() + "\n" + columns(top_rows(now_, before_)));
    }

    std::string title() {
        shown_ = true;
        return clock_text() + "  " + top_summary(now_);
    }

    void draw() {
        const Screen::Size size = Screen::size();
        const std::string head =
            "ringside top  " + title() + ", every " + options_.interval + "; q ends";
        Screen::draw(
            head.substr(0, size.columns),
            fit_screen(columns(top_rows(now_, before_)), size.lines - 1, size.columns, first_));
    }

    /// @return whether the user wants its end
    bool wait_until(Clock::time_point end) {
        for (;;) {
            const auto left = std::chrono::ceil<milliseconds>(end - Clock::now()).count();
            if (left <= 0) {
                return false;
            }
            pollfd waiting[] = {{signals_.descriptor(), POLLIN, 0},
                                {screen_ ? screen_->keys() : -1, POLLIN, 0}};
            ::poll(waiting, 2, static_cast<int>(left));
            while (const auto signal = signals_.take()) {
                if (signal->number != SIGCHLD) {
                    return true;
                }
            }
            if (waiting[1].revents != 0 && act_on_key()) {
                return true;
            }
        }
    }

    bool act_on_key() {
        const Screen::Key key = screen_->take_key();
        if (key == Screen::Key::kDown) {
            ++first_;
        } else if (key == Screen::Key::kUp && first_ > 0) {
            --first_;
        }
        if (key == Screen::Key::kDown || key == Screen::Key::kUp) {
            draw();
        }
        return key == Screen::Key::kQuit;
    }

    const TopOptions& options_;
    SignalGuard signals_;
    Watcher watcher_;
    Looks now_;
    Looks before_;
    std::size_t first_ = 0;  ///< line that is shown
    bool shown_ = false;
    std::optional<Screen> screen_;
};

}  // namespace

Action setup_top(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<TopOptions>();
    add_agent_options(verb, options->agents);
    options->agents.all_here = true;
    verb.add_option("--interval", options->interval, "between two looks")
        ->type_name("TIME")
        ->capture_default_str();
    verb.add_flag("--once", options->once, "one table, of one interval");
    verb.add_flag("--json", options->json, "an object an interval, each on a line of its own");
    verb.footer(
        "Keys: q ends, arrows scroll. Where stdout is no terminal: a table an interval.\n"
        "Events, MB and iterations are of what is recorded: of a capture or an armed window. LOST "
        "of a node is since its agent started, of a process since the capture or the window did. "
        "ITERATION is the last one, of a node's slowest process.\n"
        "Examples:\n"
        "  ringside top\n"
        "  ringside top --job 4242 --interval 5s --json >>job.log\n"
        "Exit status: 0 ended by q or a signal, 2 usage, 4 no agent there, 5 refused");
    return [options] { return Top(*options).run(); };
}

}  // namespace ringside::tools
