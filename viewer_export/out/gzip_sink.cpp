#include "viewer_export/out/gzip_sink.hpp"

#include <zlib.h>

#include <cassert>

namespace ringside::viewer_export {

struct GzipSink::State {
    explicit State(ByteSink& to) : sink(to) {
        constexpr int kLevel = 1;  // traces repeat themselves: more costs time and gains little
        constexpr int kGzip = 15 + 16;
        constexpr int kMemory = 9;
        [[maybe_unused]] const int made =
            deflateInit2(&stream, kLevel, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY);
        assert(made == Z_OK);
    }

    void run(int flush) {
        int result = Z_OK;
        do {
            stream.next_out = reinterpret_cast<Bytef*>(buffer);
            stream.avail_out = sizeof buffer;
            result = deflate(&stream, flush);
            const std::size_t made = sizeof buffer - stream.avail_out;
            sink.write(buffer, made);
            bytes += made;
        } while (stream.avail_out == 0 && result != Z_STREAM_END);
    }

    ByteSink& sink;
    z_stream stream{};
    std::uint64_t bytes = 0;
    char buffer[1 << 16];
};

GzipSink::GzipSink(ByteSink& sink) : state_(std::make_unique<State>(sink)) {}

GzipSink::~GzipSink() {
    deflateEnd(&state_->stream);
}

void GzipSink::write(const char* data, std::size_t size) {
    state_->stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data));
    state_->stream.avail_in = static_cast<uInt>(size);
    state_->run(Z_NO_FLUSH);
}

void GzipSink::finish() {
    state_->stream.avail_in = 0;
    state_->run(Z_FINISH);
}

std::uint64_t GzipSink::bytes() const {
    return state_->bytes;
}

}  // namespace ringside::viewer_export
