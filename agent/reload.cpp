#include "agent/reload.hpp"

#include <signal.h>
#include <spdlog/spdlog.h>

#include <string>

namespace ringside::agent {

bool Reload::read_again() {
    int exit_code = 0;
    auto fresh = parse_options(argc_, argv_, exit_code);
    if (!fresh) {
        spdlog::error("reload: the configuration is wrong; all stays as it was");
        return false;
    }
    const auto stays = [](const char* name, const std::string& now, const std::string& then) {
        if (now != then)
            spdlog::warn("reload: {} = {} needs a restart; it stays {}", name, then, now);
    };
    stays("dir", options_.engine.root, fresh->engine.root);
    stays("node", options_.engine.node, fresh->engine.node);
    stays("output", options_.engine.output_root, fresh->engine.output_root);
    stays("key", options_.key_file, fresh->key_file);
    stays("audit", options_.audit, fresh->audit);
    if (!options_.all) stays("metrics", options_.metrics, fresh->metrics);
    spdlog::set_level(spdlog::level::from_str(fresh->log_level));
    options_.log_level = fresh->log_level;
    options_.engine.memory = fresh->engine.memory;
    if (options_.all) options_.metrics = fresh->metrics;
    spdlog::info("reload: done");
    return true;
}

ReloadThread::ReloadThread(Reload& reload, Engine& engine)
    : thread_([this, &reload, &engine] { run(reload, engine); }) {}

ReloadThread::~ReloadThread() {
    ends_ = true;
    ::pthread_kill(thread_.native_handle(), SIGHUP);
    thread_.join();
}

void ReloadThread::run(Reload& reload, Engine& engine) {
    sigset_t hangup;
    sigemptyset(&hangup);
    sigaddset(&hangup, SIGHUP);
    for (int number = 0; ::sigwait(&hangup, &number) == 0 && !ends_;)
        if (reload.read_again()) engine.set_memory(reload.options().engine.memory);
}

}  // namespace ringside::agent
