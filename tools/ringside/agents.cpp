// Endpoints from options.
#include "tools/ringside/agents.hpp"

#include <CLI/CLI.hpp>

#include "agent/control/endpoint.hpp"
#include "tools/ringside/options.hpp"

namespace ringside::tools {

void add_hosts_option(CLI::App& verb, std::string& hosts) {
    verb.add_option("--hosts", hosts,
                    "agents to ask, ipc:///PATH,ipc:///PATH; the first one leads. Default: the "
                    "agent of this user's job directory "
                    "(RINGSIDE_DIR, RINGSIDE_JOB)")
        ->type_name("E,E");
}

Result<std::vector<std::string>> endpoints_of(const std::string& hosts) {
    if (!hosts.empty()) {
        return parse_hosts(hosts);
    }
    return std::vector<std::string>{
        agent::default_endpoint(agent::default_root(), agent::default_job())};
}

}  // namespace ringside::tools
