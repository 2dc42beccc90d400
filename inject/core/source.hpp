// What a source is: the code that turns one framework's calls into records. The core calls it; it calls nothing of the core but emit.hpp,
// slots/ and the level below. A new framework is one folder under sources/ and one line in shim.cpp's list.
#pragma once

#include <cstdint>

#include "schema/segment.hpp"

namespace ringside::inject {

struct AttachRequest {
    std::uint32_t options = 0;  ///< bits of schema::CaptureOption
    std::uint32_t word = 0;     ///< the capture word that is acted on
};

struct Source {
    schema::SourceId id;
    const char* name;

    /// Whether the framework is mapped in this process. Cheap: called when objects have been loaded.
    /// @thread any, the loader's lock may be held by the caller
    bool (*present)();

    /// Looks up symbols and slots, so that attach() only stores. Called once the framework's constructors have run, at most once a
    /// generation of loaded objects; may take milliseconds.
    /// @thread the helper thread, or the thread that attaches
    void (*prepare)();

    /// Starts recording. Called with the capture word on; prepare() has run. Sets the level. Called again while attached when objects
    /// have been loaded since (after another prepare()) or the options may have changed: what is there already stays as it is.
    /// @thread as prepare()
    void (*attach)(const AttachRequest& request);

    /// Stops recording and leaves no slot, no callback. Hooks that are running finish on their own. The core sets the level to Off.
    /// @thread as prepare()
    void (*detach)();

    /// What must be done now and then while attached (twenty times a second at most); null: nothing. Only where there is a helper thread.
    /// @thread the helper thread
    void (*turn)() = nullptr;

    /// present() is true only once the framework itself has called us: it is ready then, wherever that was.
    bool calls_us = false;

    /// What of the framework's a forked child must not find taken: held over fork(), given back in parent and child. Nobody attaches meanwhile. Null: nothing.
    /// @thread that which forks
    void (*hold_for_fork)() = nullptr;
    void (*release_after_fork)() = nullptr;
};

/// What a framework needs whose slots are written as soon as it is mapped, and for good (gRPC): it is told of every change of the loaded objects, from
/// the constructor and before the program's next dlopen() or dlsym().
/// @thread any, maybe within a constructor that dlopen() runs: it may look and store, but call nothing that wants to be initialised
using ObjectsChanged = void (*)();

/// @param tell  `count` functions
/// @thread main thread, at load
void set_object_watchers(const ObjectsChanged* tell, std::uint32_t count);

/// A framework that calls us of its own accord has come (schema::acts_alone): its hooks look at the capture word themselves, so there is
/// nothing to attach and no thread is needed. Gives a forked child its segment, should it still lack one, and sets the level.
/// @return false: this process is not traced
/// @thread thread-safe; may be called with the loader's lock held
bool announce_source(schema::SourceId source, schema::SourceLevel level, const char* reason);

/// For a source whose framework keeps what attach() changes in objects that exit() takes apart: no source is attached or detached any more once exit() comes
/// to what is registered by now. Those objects are there already.
/// @thread thread-safe; once is enough
void end_acting_at_exit();

/// Tells status, dump and views what a source reached and why. The reason is cut at schema::kReasonBytes - 1.
/// @thread one caller a source at a time
void set_level(schema::SourceId source, schema::SourceLevel level, const char* reason);

/// Marks the worker of this process (torch RPC's name and id).
/// @thread thread-safe
void set_worker(schema::NameId name, std::int32_t id);

}  // namespace ringside::inject
