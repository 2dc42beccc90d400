// Dynolog's names, and ours.
#include "tools/ringside/foreign_options.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

namespace ringside::tools {

namespace {

struct Refused {
    const char* name;
    const char* why;
};
constexpr std::array kRefused = {
    Refused{"--with-stacks",
            "stacks are not recorded: to walk Python's frames each operator would have to hold the "
            "interpreter's lock, and a hook of ours never waits; mark the places with NVTX, ITT or "
            "`import ringside`, which are recorded with all that runs inside them"},
    Refused{
        "--with-flops",
        "flops are not counted: torch's formulas are its profiler's own; --record-shapes records "
        "the input shapes that they are made of"},
    Refused{
        "--with-modules",
        "the module hierarchy is not recorded: torch reads it from Python's stack; mark modules "
        "with torch.profiler.record_function, NVTX or `import ringside`"},
};

struct Spelling {
    const char* name;
    const char* ours;  ///< where a `%` stands for the value; empty: the advice alone
    const char* advice;
};
constexpr std::array kSpellings = {
    Spelling{"--job-id", "--job %", ""},
    Spelling{"--pids", "--pid %", ""},
    Spelling{"--duration-ms", "--duration %ms", ""},
    Spelling{"--profile-start-time", "--start-time %", ""},
    Spelling{"--process-limit", "--limit %", ""},
    Spelling{"--log-file", "-o DIR", "; a capture is a directory with a dump a node"},
};

const Spelling* spelling_of(const std::string& name) {
    const auto* const found =
        std::find_if(kSpellings.begin(), kSpellings.end(),
                     [&](const Spelling& spelling) { return spelling.name == name; });
    return found == kSpellings.end() ? nullptr : found;
}

std::string advice(const std::string& name, const std::string& value) {
    for (const Refused& refused : kRefused) {
        if (refused.name == name) {
            return name + ": " + refused.why;
        }
    }
    const Spelling& spelling = *spelling_of(name);
    std::string ours = spelling.ours;
    if (const std::size_t at = ours.find('%'); at != std::string::npos) {
        ours.replace(at, 1, value);
    }
    return name + " " + value + ": write " + ours + spelling.advice;
}

}  // namespace

void add_foreign_options(CLI::App& verb, ForeignOptions& given) {
    for (const Refused& refused : kRefused) {
        verb.add_flag_callback(
                refused.name, [&given, name = refused.name] { given[name] = ""; },
                "refused, with the reason and what there is instead")
            ->group("Dynolog's, not here");
    }
    for (const Spelling& spelling : kSpellings) {
        verb.add_option_function<std::string>(
                spelling.name,
                [&given, name = spelling.name](const std::string& value) { given[name] = value; })
            ->group("");
    }
}

Result<void> check_foreign_options(const ForeignOptions& given) {
    if (given.empty()) {
        return {};
    }
    const auto& [name, value] = *given.begin();
    return Error{ErrorCode::kUsage, advice(name, value)};
}

}  // namespace ringside::tools
