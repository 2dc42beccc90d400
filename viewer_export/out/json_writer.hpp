// The one JSON writer: streaming, buffered, no allocation an event. Integers to text by a two-digit table, times as microseconds with
// exactly three decimals from integer nanoseconds (a double loses them), strings escaped with invalid UTF-8 replaced.
//
// Two layers. Structure (objects, arrays, keys, values) keeps the commas and is for what is written once; the primitives underneath
// write bare text and are for events, whose shape the caller knows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace ringside::viewer_export {

/// Where bytes go.
class ByteSink {
public:
    virtual ~ByteSink() = default;
    /// Takes all of them. After a failure it takes and forgets the rest; the owner of the sink asks it why.
    virtual void write(const char* data, std::size_t size) = 0;
};

class StringSink final : public ByteSink {
public:
    void write(const char* data, std::size_t size) override { text_.append(data, size); }
    std::string& text() { return text_; }

private:
    std::string text_;
};

/// Appends `text` escaped for a JSON string, without quotes. Bytes that are no UTF-8 become U+FFFD.
void append_json_escaped(std::string_view text, std::string& out);

/// For maps by text that are asked with a view.
struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
        return std::hash<std::string_view>{}(text);
    }
};

/// @return `text`; what is no UTF-8 in it is U+FFFD
std::string valid_utf8(std::string_view text);

class JsonWriter {
public:
    /// Stays in a core's second-level cache, from which the kernel copies it.
    static constexpr std::size_t kDefaultCapacity = 1u << 18;

    /// @param sink  borrowed
    explicit JsonWriter(ByteSink& sink, std::size_t capacity = kDefaultCapacity);
    ~JsonWriter() { flush(); }
    JsonWriter(const JsonWriter&) = delete;
    JsonWriter& operator=(const JsonWriter&) = delete;

    // Structure.
    void begin_object() { open('{'); }
    void end_object() { close('}'); }
    void begin_array() { open('['); }
    void end_array() { close(']'); }
    void key(std::string_view name);
    void value(std::string_view text);
    void value(const char* text) { value(std::string_view(text)); }
    void value(std::uint64_t number);
    void value(std::int64_t number);
    void value(std::uint32_t number) { value(static_cast<std::uint64_t>(number)); }
    void value(std::int32_t number) { value(static_cast<std::int64_t>(number)); }
    void value(double number);
    void value(bool yes);
    void null();
    /// Nanoseconds as microseconds with three decimals.
    void value_us(std::int64_t ns);
    template <class T>
    void field(std::string_view name, T&& content) {
        key(name);
        value(std::forward<T>(content));
    }
    void field_us(std::string_view name, std::int64_t ns) {
        key(name);
        value_us(ns);
    }

    // Primitives: no commas, no quotes of their own.
    void text(std::string_view raw) {
        if (raw.size() > room()) [[unlikely]]
            return spill(raw);
        append(raw);
    }
    void number(std::uint64_t number);
    void number(std::int64_t number);
    void us(std::int64_t ns);
    void quoted(std::string_view text);

    /// Between elements of an array whose elements are written by primitives.
    void newline_comma() { text(",\n"); }

    void flush();
    std::uint64_t bytes() const { return flushed_ + used_; }

private:
    std::size_t room() const { return capacity_ - used_; }
    // Here so that a literal's length is known where it is written: a few moves instead of a call.
    void append(std::string_view raw) {
        std::memcpy(buffer_.get() + used_, raw.data(), raw.size());
        used_ += raw.size();
    }
    void spill(std::string_view raw);
    char* need(std::size_t size) {
        if (room() < size) flush();
        return buffer_.get() + used_;
    }
    void took(const char* end) { used_ = static_cast<std::size_t>(end - buffer_.get()); }
    void separate();
    void open(char bracket);
    void close(char bracket);

    ByteSink& sink_;
    std::unique_ptr<char[]> buffer_;
    std::size_t capacity_;
    std::size_t used_ = 0;
    std::uint64_t flushed_ = 0;
    bool first_ = true;       ///< nothing stands before the next element of the innermost bracket
    bool after_key_ = false;  ///< the next value belongs to a key
    std::string scratch_;
};

}  // namespace ringside::viewer_export
