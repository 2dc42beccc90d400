// Rows, their widths, and where they break.
#include "tools/ringside/verdict_table.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <tuple>
#include <vector>

#include "tools/ringside/iteration_options.hpp"
#include "tools/ringside/words.hpp"

namespace ringside::tools {

namespace {

using Row = std::vector<std::string>;
using Verdicts = std::vector<const fbs::ProcessVerdictT*>;

constexpr std::size_t kNarrowest = 80, kWidest = 200;
constexpr std::size_t kLeastCommand = 16, kMostCommand = 60;
constexpr std::size_t kGap = 2;
constexpr std::size_t kMostRows = 256;  ///< of more those that are well are one line

enum Column : std::uint8_t { kMark, kNode, kRank, kPid, kCommand, kSources, kEvents };

/// Not within a UTF-8 character.
std::string cut(const std::string& text, std::size_t most) {
    if (text.size() <= most) {
        return text;
    }
    std::size_t end = most - 3;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) {
        --end;
    }
    return text.substr(0, end) + "...";
}

std::string node_text(const fbs::TraceReplyT& reply, std::uint32_t index) {
    if (index >= reply.nodes.size()) {
        return "-";
    }
    const fbs::TraceNodeT& node = *reply.nodes[index];
    return one_line(node.name +
                    (node.host.empty() || node.host == node.name ? "" : "/" + node.host));
}

std::string pid_text(const fbs::ProcessVerdictT& process) {
    const std::string pid = process.pid == 0 ? "-" : std::to_string(process.pid);
    const bool same = process.host_pid == 0 || process.host_pid == process.pid;
    return pid + (same ? "" : "=" + std::to_string(process.host_pid));
}

bool has_done_well(const fbs::ProcessVerdictT& process) {
    return is_good(process.verdict, process.reason) && has_its_iterations(process);
}

bool is_well(const fbs::ProcessVerdictT& process) {
    return has_done_well(process) && process.lost == 0;
}

Row row_of(const fbs::TraceReplyT& reply, const fbs::ProcessVerdictT& process) {
    return {has_done_well(process) ? " " : "!",
            node_text(reply, process.node),
            process.rank < 0 ? "-" : std::to_string(process.rank),
            pid_text(process),
            one_line(process.command),
            one_line(sources_text(process.sources, false)),
            grouped(process.events),
            grouped(process.lost),
            bytes_text(process.bytes),
            process.start_delay_ns < 0 ? "-" : time_text(process.start_delay_ns),
            verdict_word(process.verdict)};
}

/// Beside the verdict: why, and its iterations.
std::string remarks(const fbs::ProcessVerdictT& process) {
    const std::string reason = one_line(process.reason);
    const std::string iterations = iterations_text(process);
    return reason + (reason.empty() || iterations.empty() ? "" : "; ") + iterations;
}

bool is_silent(const fbs::ProcessVerdictT& process) {
    return process.verdict == fbs::Verdict::NothingRecorded && process.events == 0 &&
           process.lost == 0 && is_good(process.verdict, process.reason);
}

/// As columns() will make them, but for the commands.
std::size_t width_of_others(const std::vector<Row>& rows) {
    std::size_t width = 0;
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
        if (i == kCommand) {
            continue;
        }
        std::size_t widest = 0;
        for (const Row& row : rows) {
            widest = std::max(widest, row[i].size());
        }
        width += widest + kGap;
    }
    return width;
}

/// The rows as columns, and what each has beside them.
/// @param reasons  stand behind their row where they fit, else below it
/// @param below    stand on a line of their own; empty: none has any
std::string lay_out(const std::vector<Row>& rows, const std::vector<std::string>& reasons,
                    const std::vector<std::string>& below, std::size_t width) {
    std::istringstream lines(columns(rows));
    std::string text;
    std::size_t at = 0;
    for (std::string line; std::getline(lines, line); ++at) {
        const std::string& reason = reasons[at];
        const bool fits = line.size() + kGap + reason.size() <= width;
        text += line;
        if (!reason.empty()) {
            text += fits ? ": " : "\n    ";
            text += reason;
        }
        text += "\n";
        text += below.empty() ? "" : "    " + cut(below[at], width - 4) + "\n";
    }
    return text;
}

}  // namespace

std::string verdict_table(const fbs::TraceReplyT& reply, std::size_t width) {
    Verdicts shown;
    for (const auto& process : reply.verdicts) {
        if (!is_silent(*process)) {
            shown.push_back(process.get());
        }
    }
    const std::size_t all = shown.size();
    if (all > kMostRows) {
        std::erase_if(shown, [](const auto* process) { return is_well(*process); });
    }
    const std::size_t well = all - shown.size();
    std::sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) {
        const auto place = [](const fbs::ProcessVerdictT& process) {
            return std::tuple(process.node, static_cast<unsigned>(process.rank), process.pid);
        };
        return place(*a) < place(*b);
    });
    std::string text;
    if (!shown.empty()) {
        std::vector<Row> rows = {{"", "NODE", "RANK", "PID", "COMMAND", "SOURCES", "EVENTS", "LOST",
                                  "BYTES", "START", "VERDICT"}};
        std::vector<std::string> reasons = {""};
        for (const fbs::ProcessVerdictT* process : shown) {
            rows.push_back(row_of(reply, *process));
            reasons.push_back(remarks(*process));
        }
        const std::size_t others = width_of_others(rows);
        const bool on_one_line = others + kLeastCommand <= width;
        // Room for the reasons behind their verdicts, where the commands can spare it.
        std::size_t longest = 0;
        for (const std::string& reason : reasons) {
            longest = std::max(longest, reason.empty() ? 0 : reason.size() + kGap);
        }
        std::size_t room = std::min(width - std::min(width, others), kMostCommand);
        if (others + longest + kLeastCommand <= width) {
            room = std::min(width - others - longest, kMostCommand);
        }
        std::vector<std::string> below;
        for (Row& row : rows) {
            if (on_one_line) {
                row[kCommand] = cut(row[kCommand], room);
                continue;
            }
            below.push_back(row[kSources] + "; " + row[kCommand]);
            row.erase(row.begin() + kCommand, row.begin() + kEvents);
        }
        text = lay_out(rows, reasons, below, width);
    }
    if (well != 0) {
        text += "  " + grouped(well) + (shown.empty() ? "" : " more") +
                " as they should be, without a loss (--json names each)\n";
    }
    const std::size_t silent = reply.verdicts.size() - all;
    if (silent != 0) {
        text += "  " + grouped(silent) + (all == 0 ? "" : " more") +
                " recorded nothing: no framework\n";
    }
    return text;
}

std::size_t text_width() {
    winsize size{};
    std::size_t width = kWidest;
    const char* const columns = ::getenv("COLUMNS");
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
        width = size.ws_col;
    } else if (columns != nullptr && std::atoi(columns) > 0) {
        width = static_cast<std::size_t>(std::atoi(columns));
    }
    return std::max(width, kNarrowest);
}

}  // namespace ringside::tools
