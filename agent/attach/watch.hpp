// What the drain thread waits on: new files in the job directory, the end of a process, a word from another thread.
#pragma once

#include <cstdint>

#include "agent/attach/file_handle.hpp"
#include "schema/result.hpp"
#include "schema/units.hpp"

namespace ringside::agent {

class Watch {
public:
    struct Events {
        bool directory = false;  ///< files came or went, or some were missed
        bool ended = false;      ///< a watched process ended
    };

    /// @param directory  path of the job directory; where inotify can't watch it, the rescans alone find segments
    static schema::Result<Watch> open(const char* directory);

    /// The directory that is there now under that path, instead of one that has been removed.
    void follow(const char* directory);
    /// Wakes when `pidfd` becomes readable, until remove(). Does nothing for -1.
    void add(int pidfd);
    void remove(int pidfd);
    /// Ends the running or the next wait(). @thread thread-safe
    void wake();
    /// Waits for an event or the end of `timeout`.
    /// @thread one consumer
    Events wait(schema::Nanoseconds timeout);

private:
    void clear(int descriptor);

    FileHandle epoll_;
    FileHandle notify_;
    FileHandle wake_;
};

}  // namespace ringside::agent
