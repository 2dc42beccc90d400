// The preload's constructor: the order of things, and the list of sources. Whatever fails here leaves the job as it would be without us.
#include <errno.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include <cstring>

#include "inject/core/capture.hpp"
#include "inject/core/chosen.hpp"
#include "inject/core/environment.hpp"
#include "inject/core/fork.hpp"
#include "inject/core/helper_thread.hpp"
#include "inject/core/injection.hpp"
#include "inject/core/last_word.hpp"
#include "inject/core/python_path.hpp"
#include "inject/core/segment_file.hpp"
#include "inject/core/slots/loader_lock.hpp"
#include "inject/core/slots/loader_watch.hpp"
#include "inject/core/source.hpp"
#include "inject/core/thread_entry.hpp"
#include "inject/sources/cupti/cupti_source.hpp"
#include "inject/sources/grpc/grpc_source.hpp"
#include "inject/sources/grpc/python_part.hpp"
#include "inject/sources/mpi/mpi_source.hpp"
#include "inject/sources/nccl/nccl_source.hpp"
#include "inject/sources/torch/torch_source.hpp"

namespace ringside::inject {

namespace {

constexpr const Source* kSources[] = {
    &kTorchSource,
    &kCuptiSource,
};

constexpr ObjectsChanged kObjectWatchers[] = {
    grpc::announce_python,
    grpc::patch_loaded_objects,
    mpi::patch_loaded_objects,
    nccl::patch_loaded_objects,
};

bool set_to(const char* variable, const char* value) {
    const char* present = secure_getenv(variable);
    return present != nullptr && std::strcmp(present, value) == 0;
}

void start(const char* const* arguments) {
    // A setuid program keeps its promises without us; its loader ignores most preloads anyway.
    if (!is_glibc() || getauxval(AT_SECURE) != 0 || set_to("RINGSIDE_DISABLE", "1") ||
        !resolve_loader() || !is_preloaded()) {
        return;
    }
    Identity identity{};
    JobPath path{};
    read_identity(identity, arguments);
    if (!is_chosen(identity.executable.c_str()) || !read_job_path(path)) return;
    prepare_thread_exit();
    if (!open_segment(path, identity)) return;
    watch_forks();
    allow_helper_thread(!set_to("RINGSIDE_THREAD", "0"));
    if (!set_to("RINGSIDE_PYTHON", "0")) chain_python_path(identity.executable.c_str(), arguments);
    if (!set_to("RINGSIDE_INJECTION", "0")) offer_injections();
    set_sources(kSources, sizeof kSources / sizeof kSources[0]);
    hear_quick_exit();
    set_object_watchers(kObjectWatchers, sizeof kObjectWatchers / sizeof kObjectWatchers[0]);
    start_loader_watch();
    // A program linked to its framework: that one's constructors ran before ours, main() has not.
    if (any_source_present()) {
        catch_up(Place::kOutsideLoader);
        ensure_helper_thread();
    }
}

/// The C library hands main's arguments to constructors too.
__attribute__((constructor)) void at_load(int, char** arguments, char**) {
    const int saved_errno = errno;
    start(arguments);
    errno = saved_errno;
}

__attribute__((destructor)) void at_exit() {
    close_segment();
}

}  // namespace

}  // namespace ringside::inject
