#include "tools/ringside/top_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

using Rate = std::optional<double>;
using Row = std::vector<std::string>;

/// Per second, between two looks; counters that went back were begun anew.
Rate rate(std::uint64_t now, std::uint64_t before, std::int64_t ns) {
    if (ns <= 0 || now < before) {
        return std::nullopt;
    }
    return static_cast<double>(now - before) * 1e9 / static_cast<double>(ns);
}

/// What is shown of a node, or of a process.
struct Figures {
    Rate events_per_s;
    Rate bytes_per_s;
    Rate cpu_percent;
    std::uint64_t lost = 0;
    std::uint64_t iterations = 0;
    std::int64_t iteration_ns = -1;
};

const AgentLook* look_before(const Looks& before, const AgentLook& now) {
    const auto found = std::find_if(before.begin(), before.end(), [&](const AgentLook& look) {
        return look.endpoint == now.endpoint && look.status && now.status &&
               look.status->pid == now.status->pid;
    });
    return found == before.end() ? nullptr : &*found;
}

std::int64_t time_between(const AgentLook& now, const AgentLook* before) {
    return before == nullptr ? 0 : now.status->uptime_ns - before->status->uptime_ns;
}

/// Agents of older versions tell no totals.
bool tells_totals(const fbs::StatusReplyT& status) {
    return status.cpu_ns >= 0;
}

Figures figures_of(const AgentLook& now, const AgentLook* before) {
    const fbs::StatusReplyT& status = *now.status;
    Figures figures;
    figures.lost = tells_totals(status) ? status.total_lost : status.lost;
    figures.iterations = status.total_iterations;
    figures.iteration_ns = status.iteration_ns;
    if (before == nullptr || !tells_totals(status)) {
        return figures;
    }
    const std::int64_t ns = time_between(now, before);
    figures.events_per_s = rate(status.total_events, before->status->total_events, ns);
    figures.bytes_per_s = rate(status.total_bytes, before->status->total_bytes, ns);
    const Rate cpu = rate(static_cast<std::uint64_t>(status.cpu_ns),
                          static_cast<std::uint64_t>(before->status->cpu_ns), ns);
    figures.cpu_percent = cpu ? Rate(*cpu / 1e7) : cpu;
    return figures;
}

Figures figures_of(const fbs::ProcessStatusT& now, const AgentLook* before, std::int64_t ns) {
    Figures figures;
    figures.lost = now.lost;
    figures.iterations = now.iterations;
    figures.iteration_ns = now.iteration_ns;
    if (before == nullptr || !before->processes) {
        return figures;
    }
    for (const auto& old : before->processes->processes) {
        if (old != nullptr && old->process != nullptr && old->process->pid == now.process->pid &&
            old->process->host_pid == now.process->host_pid) {
            figures.events_per_s = rate(now.events, old->events, ns);
            figures.bytes_per_s = rate(now.bytes, old->bytes, ns);
        }
    }
    return figures;
}

template <class Take>
void each_process(const AgentLook& look, const Take& take) {
    if (!look.processes) {
        return;
    }
    for (const auto& process : look.processes->processes) {
        if (process != nullptr && process->process != nullptr) {
            take(*process);
        }
    }
}

std::string decimal(double value, int places) {
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.*f", places, value);
    return text.data();
}

std::string state_of(const fbs::StatusReplyT& status) {
    return status.capturing ? "capturing" : (status.window ? "armed" : "idle");
}

std::string state_of(const fbs::ProcessStatusT& process) {
    return process.alive && process.verdict != fbs::Verdict::Hung ? "alive"
                                                                  : verdict_word(process.verdict);
}

void add_figures(Row& row, const Figures& figures, const std::string& window,
                 const std::string& cpu) {
    const auto known = [](const Rate& rate, double unit, int places) {
        return rate ? decimal(*rate / unit, places) : "-";
    };
    row.push_back(figures.events_per_s
                      ? grouped(static_cast<std::uint64_t>(std::llround(*figures.events_per_s)))
                      : "-");
    row.push_back(grouped(figures.lost));
    row.push_back(known(figures.bytes_per_s, 1e6, 3));
    row.push_back(figures.iteration_ns < 0 ? "-" : time_text(figures.iteration_ns));
    row.push_back(window);
    row.push_back(cpu);
}

/// Without the program's folder, and cut.
std::string short_command(const fbs::ProcessT& process) {
    constexpr std::size_t kMost = 28;
    std::string command = command_text(process);
    command.erase(0, command.substr(0, command.find(' ')).rfind('/') + 1);
    return command.size() <= kMost ? command : command.substr(0, kMost - 3) + "...";
}

void add_node(std::vector<Row>& rows, const AgentLook& look, const AgentLook* before) {
    if (!look.status) {
        rows.push_back({one_line(look.endpoint), "silent: " + one_line(look.error)});
        return;
    }
    const fbs::StatusReplyT& status = *look.status;
    const Figures figures = figures_of(look, before);
    rows.push_back({one_line(status.node), one_line(status.job), state_of(status),
                    std::to_string(status.processes)});
    add_figures(rows.back(), figures,
                status.window ? decimal(static_cast<double>(status.window->holds_ns) / 1e9, 1) +
                                    " s, " + bytes_text(status.window->bytes)
                              : "-",
                figures.cpu_percent ? decimal(*figures.cpu_percent, 1) + " %" : "-");
    each_process(look, [&](const fbs::ProcessStatusT& process) {
        const std::string command = short_command(*process.process);
        const int rank = process.process->rank;
        rows.push_back({"  " + std::to_string(process.process->pid), command, state_of(process),
                        rank < 0 ? "" : "rank " + std::to_string(rank)});
        add_figures(rows.back(), figures_of(process, before, time_between(look, before)), "", "");
    });
}

nlohmann::json figures_json(const Figures& figures) {
    const auto known = [](const Rate& rate) {
        return rate ? nlohmann::json(*rate) : nlohmann::json(nullptr);
    };
    return {{"events_per_s", known(figures.events_per_s)},
            {"lost", figures.lost},
            {"bytes_per_s", known(figures.bytes_per_s)},
            {"iterations", figures.iterations},
            {"iteration_ns", figures.iteration_ns < 0 ? nlohmann::json(nullptr)
                                                      : nlohmann::json(figures.iteration_ns)}};
}

}  // namespace

std::vector<std::vector<std::string>> top_rows(const Looks& now, const Looks& before) {
    std::vector<Row> rows = {{"NODE", "JOB", "STATE", "PROCS", "EVENTS/S", "LOST", "MB/S",
                              "ITERATION", "WINDOW", "CPU"}};
    for (const AgentLook& look : now) {
        add_node(rows, look, look_before(before, look));
    }
    return rows;
}

nlohmann::json top_json(const Looks& now, const Looks& before) {
    nlohmann::json nodes = nlohmann::json::array();
    for (const AgentLook& look : now) {
        if (!look.status) {
            nodes.push_back({{"endpoint", look.endpoint}, {"error", look.error}});
            continue;
        }
        const AgentLook* const last = look_before(before, look);
        const fbs::StatusReplyT& status = *look.status;
        const Figures figures = figures_of(look, last);
        nlohmann::json node = figures_json(figures);
        node["endpoint"] = look.endpoint;
        node["node"] = status.node;
        node["job"] = status.job;
        node["state"] = state_of(status);
        node["window_held_ns"] =
            status.window ? nlohmann::json(status.window->holds_ns) : nlohmann::json(nullptr);
        node["window_bytes"] =
            status.window ? nlohmann::json(status.window->bytes) : nlohmann::json(nullptr);
        node["agent_cpu_percent"] =
            figures.cpu_percent ? nlohmann::json(*figures.cpu_percent) : nlohmann::json(nullptr);
        node["processes"] = nlohmann::json::array();
        each_process(look, [&](const fbs::ProcessStatusT& process) {
            nlohmann::json entry =
                figures_json(figures_of(process, last, time_between(look, last)));
            entry["pid"] = process.process->pid;
            entry["rank"] = process.process->rank;
            entry["command"] = process.process->command_line;
            entry["state"] = state_of(process);
            node["processes"].push_back(std::move(entry));
        });
        nodes.push_back(std::move(node));
    }
    return nodes;
}

std::string top_summary(const Looks& now) {
    std::size_t silent = 0, processes = 0;
    for (const AgentLook& look : now) {
        silent += look.status ? 0 : 1;
        processes += look.status ? look.status->processes : 0;
    }
    return std::to_string(now.size()) + (now.size() == 1 ? " node, " : " nodes, ") +
           (silent == 0 ? "" : std::to_string(silent) + " silent, ") + std::to_string(processes) +
           (processes == 1 ? " process" : " processes");
}

std::string fit_screen(const std::string& text, std::size_t lines, std::size_t columns,
                       std::size_t& first) {
    std::vector<std::string> all;
    for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos;
         at = end + 1) {
        std::string line = text.substr(at, end - at);
        if (line.size() > columns) {
            std::size_t cut = columns;
            // Not within a character.
            while (cut > 0 && (static_cast<unsigned char>(line[cut]) & 0xc0) == 0x80) {
                --cut;
            }
            line.resize(cut);
        }
        all.push_back(std::move(line));
    }
    first = std::min(first, all.size() > lines ? all.size() - lines : 0);
    std::string shown;
    for (std::size_t i = first; i < std::min(all.size(), first + lines); ++i) {
        shown += all[i] + "\n";
    }
    return shown;
}

}  // namespace ringside::tools
