#include "viewer_export/model/kernel_names.hpp"

#define HAVE_DECL_BASENAME 1  // else the header declares one of its own, beside <cstring>'s
#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

namespace ringside::viewer_export::model {

namespace {

/// The demangler keeps some 300 bytes of stack a byte of the name.
constexpr std::size_t kLongestMangled = 8 << 10;
constexpr std::size_t kLongest = 64 << 10;
constexpr std::size_t kMostGrowth = 32;  ///< so that a dump of short names is no bomb either

struct Room {
    std::jmp_buf full;
    char* at;
    std::size_t left;
};

/// Gets the name piece by piece. The demangler knows no other way to stop: it is C that holds nothing, on the stack alone.
void take(const char* text, std::size_t size, void* to) {
    Room& room = *static_cast<Room*>(to);
    if (size > room.left) std::longjmp(room.full, 1);
    std::memcpy(room.at, text, size);
    room.at += size;
    room.left -= size;
}

/// `S_`, `S1A_`: what was said before.
std::size_t references(std::string_view name) {
    constexpr std::string_view kNumber = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::size_t count = 0;
    for (std::size_t at = name.find('S'); at != name.npos; at = name.find('S', at + 1)) {
        const std::size_t end = name.find_first_not_of(kNumber, at + 1);
        count += end != name.npos && name[end] == '_';
    }
    return count;
}

/// In what `Dp` and, in expressions, `sp` expand, a pack is looked for without a word, once more at each reference: each may double the time. Where
/// a parameter alone is expanded there is nothing to look for.
bool may_take_long(std::string_view name) {
    constexpr std::size_t kFewReferences = 20;
    const auto has_expressions = [&] {
        for (const std::string_view begin : {"X", "DT", "Dt", "DO"}) {
            if (name.find(begin) != name.npos) return true;
        }
        return std::adjacent_find(name.begin(), name.end(), [](char a, char b) {
                   return a == 'A' && b >= 'a' && b <= 'z';
               }) != name.end();
    };
    for (std::size_t at = name.find("Dp"); at != name.npos; at = name.find("Dp", at + 1)) {
        const std::size_t what = name.find_first_not_of("PROKV", at + 2);
        if (what == name.npos || name[what] == 'T') continue;
        return references(name.substr(at)) > kFewReferences;
    }
    const std::size_t at = name.find("sp");
    return at != name.npos && references(name.substr(at)) > kFewReferences && has_expressions();
}

/// @return how long the name is, in `room`; 0: there is none, or it has no room
std::size_t demangle(const char* name, Room& room) {
    if (setjmp(room.full) != 0) return 0;
    const char* const begin = room.at;
    constexpr int kOptions = DMGL_PARAMS | DMGL_TYPES | DMGL_NO_RECURSE_LIMIT;
    if (cplus_demangle_v3_callback(name, kOptions, take, &room) == 0) return 0;
    return static_cast<std::size_t>(room.at - begin);
}

}  // namespace

std::string demangled(const std::string& name) {
    if (!name.starts_with("_Z") || name.size() > kLongestMangled || may_take_long(name))
        return name;
    std::string text(std::min(kLongest, kMostGrowth * name.size()), '\0');
    Room room{{}, text.data(), text.size()};
    text.resize(demangle(name.c_str(), room));
    text.shrink_to_fit();
    return text.empty() ? name : text;
}

bool is_communication(std::string_view name) {
    return name.starts_with("nccl") && name.find("Kernel") != std::string_view::npos;
}

}  // namespace ringside::viewer_export::model
