// `ringside keygen`: the one file that lets agents and commands speak over tcp.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "agent/control/key.hpp"
#include "tools/ringside/command.hpp"

namespace ringside::tools {

namespace {

int run_keygen(const std::string& output) {
    const std::string path = output.empty() ? agent::default_key_path() : output;
    if (path.empty()) {
        return fail({ErrorCode::kUsage, "keygen: no home directory here; name a file with -o"});
    }
    const auto key = agent::make_key();
    if (!key) {
        return fail(key.error());
    }
    const auto opened_to_others = agent::make_key_folder(path);
    if (!opened_to_others) {
        return fail(opened_to_others.error());
    }
    if (*opened_to_others) {
        say("others could read or write the directory of " + path +
            "; it is yours alone now (0700): look whether all in it is yours");
    }
    if (const auto written = agent::write_key(path, *key); !written) {
        return fail(written.error());
    }
    const auto printed = print(path + "\n");
    return printed ? kExitGood : fail(printed.error());
}

}  // namespace

Action setup_keygen(CLI::App& verb, const Words&) {
    const auto output = std::make_shared<std::string>();
    verb.add_option("-o,--output", *output, "the file to make (RINGSIDE_KEY, else ~/.ringside/key)")
        ->type_name("FILE");
    verb.footer(
        "Who holds the file may command the agents that hold it, and read what they say. It is "
        "made for its owner alone;\n"
        "copy it to every host of the job (scp -p), or keep it on a shared home.\n"
        "Examples:\n"
        "  ringside keygen\n"
        "  ringside agent --endpoint tcp://10.0.0.7:7411\n"
        "  ringside trace --hosts 10.0.0.7:7411,10.0.0.8:7411\n"
        "Exit status: 0 made, 2 can't be written, 5 a file is there, or others may write to its "
        "directory");
    return [output] { return run_keygen(*output); };
}

}  // namespace ringside::tools
