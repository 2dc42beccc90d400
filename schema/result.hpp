// A value or an error, for everything but the shim (which has neither strings nor allocation). Messages name action, object, values,
// cause and what to do; the code decides the command's exit status.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace ringside::schema {

/// Values are the command's exit codes.
enum class ErrorCode : int {
    kUsage = 2,
    kNothingMatched = 3,
    kNoAgent = 4,
    kRefused = 5,
    kInput = 6,       ///< unreadable or damaged
    kInternal = 125,  ///< our own failure
};

struct Error {
    ErrorCode code = ErrorCode::kInternal;
    std::string message;
};

template <class T>
class [[nodiscard]] Result {
public:
    // NOLINTNEXTLINE(google-explicit-constructor): reads as a return value
    Result(T value) : state_(std::move(value)) {}
    // NOLINTNEXTLINE(google-explicit-constructor): reads as a return value
    Result(Error error) : state_(std::move(error)) {}

    explicit operator bool() const { return state_.index() == 0; }
    T& operator*() { return std::get<0>(state_); }
    const T& operator*() const { return std::get<0>(state_); }
    T* operator->() { return &std::get<0>(state_); }
    const T* operator->() const { return &std::get<0>(state_); }
    const Error& error() const { return std::get<1>(state_); }

private:
    std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    // NOLINTNEXTLINE(google-explicit-constructor): reads as a return value
    Result(Error error) : error_(std::move(error)) {}

    explicit operator bool() const { return !error_; }
    const Error& error() const { return *error_; }

private:
    std::optional<Error> error_;
};

}  // namespace ringside::schema
