#include "inject/sources/torch/payload_name.hpp"

#include "inject/sources/torch/abi.hpp"
#include "inject/sources/torch/pickle_walk.hpp"

namespace ringside::inject::torch {
namespace {

constexpr char kPickleProto = static_cast<char>(0x80);

// PythonUDF(func, args, kwargs): its class comes first, then the function, a global.
PayloadName python_name(const char* bytes, std::size_t size) {
    PickleWalk walk(bytes, size);
    bool inside = false;
    for (;;) {
        switch (walk.next()) {
            case PickleToken::kEnd:
                return {};
            case PickleToken::kGlobal:
                if (inside) return {walk.module(), walk.text()};
                if (walk.text() != "PythonUDF") return {};
                inside = true;
                break;
            default:
                break;
        }
    }
}

// Without substr(), which can throw and so needs the C++ runtime.
std::string_view suffix(std::string_view text, std::size_t from) {
    return {text.data() + from, text.size() - from};
}

std::string_view prefix(std::string_view text, std::size_t length) {
    return {text.data(), length};
}

// "aten::add.Tensor(Tensor self, ...) -> Tensor": the operator's name without overload.
std::string_view schema_name(std::string_view schema) {
    const std::size_t colons = schema.find("::");
    if (colons == std::string_view::npos) return {};
    const std::size_t stop = schema.find_first_of(".(", colons + 2);
    return stop == std::string_view::npos ? std::string_view() : prefix(schema, stop);
}

struct ScriptNames {
    std::string_view before;  // the string right before the qualified name: a builtin's schema
    std::string_view qualified;
};

PayloadName script_name(const ScriptNames& names) {
    if (!names.qualified.starts_with("torch.ops.")) return {{}, names.qualified};
    const std::string_view name = schema_name(names.before);
    return {{}, name.empty() ? names.qualified : name};
}

bool is_qualified(std::string_view text) {
    return text.starts_with("torch.ops.") || text.starts_with("__torch__.");
}

// Arguments too many to walk: the name stands near the end, as BINUNICODE with a 4-byte length.
std::string_view last_qualified(const char* bytes, std::size_t size) {
    constexpr std::size_t kTail = 2048;
    const std::string_view tail(bytes + (size > kTail ? size - kTail : 0),
                                size > kTail ? kTail : size);
    for (std::size_t at = tail.size(); at >= 5; --at) {
        const std::string_view rest = suffix(tail, at);
        if (tail[at - 5] != 'X' || !is_qualified(rest)) continue;
        std::size_t length = 0;
        for (std::size_t i = 0; i < 4; ++i)
            length |= static_cast<std::size_t>(static_cast<std::uint8_t>(tail[at - 4 + i]))
                      << (8 * i);
        if (length <= rest.size()) return prefix(rest, length);
    }
    return {};
}

// A JIT pickle: a Python pickle inside it (remote call), or the last qualified name.
PayloadName jit_name(const char* bytes, std::size_t size) {
    PickleWalk walk(bytes, size);
    ScriptNames names;
    std::string_view previous;
    for (PickleToken token = walk.next(); token != PickleToken::kEnd; token = walk.next()) {
        if (token == PickleToken::kGlobal && walk.text() == "PythonUDF")
            return python_name(bytes, size);
        if (token != PickleToken::kString) continue;
        const std::string_view text = walk.text();
        if (text.size() > 2 && text[0] == kPickleProto) {
            const PayloadName inner = python_name(text.data(), text.size());
            if (!inner.function.empty()) return inner;
        }
        if (is_qualified(text)) names = {previous, text};
        previous = text;
    }
    if (!names.qualified.empty() || walk.stopped()) return script_name(names);
    return {{}, last_qualified(bytes, size)};
}

}  // namespace

PayloadName payload_name(const char* payload, std::size_t size) {
    if (payload == nullptr || size < 2) return {};
    if (payload[0] == kPickleProto) return jit_name(payload, size);
    if (payload[1] == kPickleProto) return python_name(payload + 1, size - 1);
    return {};
}

std::int32_t effective_type(std::int32_t type, const char* payload, std::size_t size) {
    if ((type != kForwardAutograd && type != kWithProfiling) || payload == nullptr || size < 8)
        return type;
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < 8; ++i)
        length = length << 8 | static_cast<std::uint8_t>(payload[size - 8 + i]);
    if (length > size - 8) return type;
    // Autograd: (context id, message id, type, ...); profiling: (type, ...).
    std::uint32_t before = type == kForwardAutograd ? 2 : 0;
    PickleWalk walk(payload + size - 8 - length, length);
    for (PickleToken token = walk.next(); token != PickleToken::kEnd; token = walk.next()) {
        if (token != PickleToken::kInteger || before-- != 0) continue;
        const std::int64_t inner = walk.integer();
        return inner >= kScriptCall && inner <= kPythonFetch ? static_cast<std::int32_t>(inner)
                                                             : type;
    }
    return type;
}

const char* bookkeeping_name(std::int32_t type) {
    switch (type) {
        case kScriptCall:
        case kPythonCall:
        case kScriptRemoteCall:
        case kPythonRemoteCall:
        case kForwardAutograd:
        case kWithProfiling:
            return nullptr;
        case kScriptFetch:
        case kPythonFetch:
            return "to_here";
        case kRrefUserDelete:
            return "rref_user_delete";
        case kRrefForkRequest:
            return "rref_fork_request";
        case kRrefChildAccept:
            return "rref_child_accept";
        case kBackwardAutograd:
            return "backward_autograd";
        case kCleanupAutograd:
            return "cleanup_autograd_context";
        case kRrefBackward:
            return "rref_backward";
        default:
            return "rpc_message";
    }
}

}  // namespace ringside::inject::torch
