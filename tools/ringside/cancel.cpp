// `ringside cancel`: ends the trace that runs, and keeps what there is.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tools/ringside/agents.hpp"
#include "tools/ringside/command.hpp"
#include "tools/ringside/json_text.hpp"

namespace ringside::tools {

namespace {

struct CancelOptions {
    AgentChoice agents;
    bool discard = false;
    bool json = false;
};

/// One agent leads a trace; which of them, nobody has told us: all are asked.
int run_cancel(const CancelOptions& options) {
    const auto agents = agents_of(options.agents);
    if (!agents) {
        return fail(agents.error());
    }
    fbs::CancelRequestT request;
    request.keep = !options.discard;
    nlohmann::json list = nlohmann::json::array();
    std::string text;
    Error idle;
    int status = kExitGood;
    const auto replies = ask_all<fbs::CancelReplyT>(*agents, request);
    for (std::size_t n = 0; n < replies.size(); ++n) {
        const std::string& endpoint = agents->endpoints[n];
        const auto& reply = replies[n];
        if (reply) {
            list.push_back({{"endpoint", endpoint}, {"kept", !options.discard}});
            text += endpoint + ": its trace ends now, " +
                    (options.discard ? "nothing is kept" : "what there is of it is written") + "\n";
        } else if (reply.error().code == ErrorCode::kNothingMatched) {
            idle = reply.error();
        } else {
            status = fail(reply.error());
        }
    }
    if (list.empty()) {
        return status == kExitGood ? fail(idle) : status;
    }
    const auto printed = print(options.json ? json_text(list) : text);
    return printed ? status : fail(printed.error());
}

}  // namespace

Action setup_cancel(CLI::App& verb, const Words&) {
    const auto options = std::make_shared<CancelOptions>();
    add_agent_options(verb, options->agents);
    verb.add_flag("--discard", options->discard, "keep nothing of it");
    verb.add_flag("--json", options->json,
                  "one JSON array, an object for each trace that was ended");
    verb.footer(
        "Whoever asked for the trace gets what there is of it, as after Ctrl-C.\n"
        "Examples:\n"
        "  ringside cancel\n"
        "  ringside cancel --job 4242 --discard\n"
        "Exit status: 0 a trace is ended, 2 usage, 3 none runs that was asked of these agents, 4 "
        "no "
        "agent there, 5 refused");
    return [options] { return run_cancel(*options); };
}

}  // namespace ringside::tools
