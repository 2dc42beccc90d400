// Bytes gzipped on their way into another sink.
#pragma once

#include <memory>

#include "viewer_export/out/json_writer.hpp"

namespace ringside::viewer_export {

class GzipSink final : public ByteSink {
public:
    /// @param sink  borrowed
    explicit GzipSink(ByteSink& sink);
    ~GzipSink() override;
    void write(const char* data, std::size_t size) override;
    /// Writes what is left; nothing may come after it.
    void finish();
    std::uint64_t bytes() const;

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace ringside::viewer_export
