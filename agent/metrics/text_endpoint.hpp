// A loopback address where one text can be fetched over HTTP: what Prometheus scrapes. One thread, bounded in everything a visitor can do; it knows
// nothing of agents.
#pragma once

#include <functional>
#include <string>

#include "agent/attach/file_handle.hpp"
#include "schema/result.hpp"

namespace ringside::agent {

class TextEndpoint {
public:
    /// @errors as listen(), before it is tried
    static schema::Result<void> check(const std::string& address);
    /// @param address  `127.0.0.1:PORT` or `[::1]:PORT`
    /// @errors Usage: no such thing; Refused: not a loopback address (anybody could read it), or the port is taken
    static schema::Result<TextEndpoint> listen(const std::string& address);

    int descriptor() const { return socket_.get(); }
    /// Answers `GET /metrics` with what `text` gives, for ever.
    /// @param stop_fd  until it is readable; -1: nothing
    void serve(const std::function<std::string()>& text, int stop_fd = -1) const;

private:
    explicit TextEndpoint(FileHandle socket) : socket_(std::move(socket)) {}

    FileHandle socket_;
};

}  // namespace ringside::agent
