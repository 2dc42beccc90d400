#include "inject/core/python_path.hpp"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "inject/core/environment.hpp"
#include "inject/core/fixed_text.hpp"
#include "inject/core/injection.hpp"
#include "inject/core/slots/slots.hpp"

namespace ringside::inject {

namespace {

/// `<directory of this library>/python`.
bool own_python_directory(FixedText<PATH_MAX>& out) {
    char directory[PATH_MAX];
    if (!own_directory(directory, sizeof directory)) return false;
    out.append(directory).append("python");
    return !out.cut() && access(out.c_str(), R_OK) == 0;
}

/// Whether the interpreter was told (-I, -E, -S) not to look where we would be found. Then the variable would only stay there for all to see.
/// @param arguments  main's, as CPython's own parser reads them: up to the first that is no option, or says what is run
bool shuts_us_out(const char* const* arguments) {
    for (arguments += *arguments != nullptr ? 1 : 0; *arguments != nullptr; ++arguments) {
        const char* option = *arguments;
        if (option[0] != '-' || option[1] == 0) return false;
        if (option[1] == '-') {
            if (std::strcmp(option, "--check-hash-based-pycs") == 0 && arguments[1] != nullptr)
                ++arguments;
            continue;
        }
        while (*++option != 0) {
            if (std::strchr("IES", *option) != nullptr) return true;
            if (*option == 'c' || *option == 'm') return false;
            if (std::strchr("WXQ", *option) == nullptr) continue;
            // Its value is the rest of the word, or the next one.
            if (option[1] == 0 && arguments[1] != nullptr) ++arguments;
            break;
        }
    }
    return false;
}

/// Behind our directory where the variable is set and empty, which the interpreter takes as not set: an empty entry behind a `:` would be the
/// working directory. sitecustomize tells by it what to put back. Of one meaning with the path without it.
constexpr char kWasEmpty[] = "/";

/// Whether our directory is there already: a parent whose interpreter never ran our part (-S) handed it down.
bool begins_with_ours(const char* present, const FixedText<PATH_MAX>& directory) {
    if (!starts_with(present, directory.c_str())) return false;
    const char* after = present + directory.length();
    return *after == 0 || *after == ':' || std::strcmp(after, kWasEmpty) == 0;
}

/// Its own function, never inlined: buffers of this size would have each process touch that much stack.
[[gnu::noinline]] void chain() {
    FixedText<PATH_MAX> directory;
    if (!own_python_directory(directory)) return;
    const char* present = secure_getenv("PYTHONPATH");
    if (present != nullptr && begins_with_ours(present, directory)) return;
    FixedText<4 * PATH_MAX> chained;
    chained.append(directory.c_str());
    if (present != nullptr && *present == 0) chained.append(kWasEmpty);
    if (present != nullptr && *present != 0) chained.append(":").append(present);
    if (!chained.cut()) set_variable("PYTHONPATH", chained.c_str());
}

}  // namespace

void chain_python_path(const char* executable, const char* const* arguments) {
    const bool interpreter = starts_with(base_name(executable), "python");
    if (!interpreter && !object_loaded("libpython")) return;
    if (interpreter && arguments != nullptr && shuts_us_out(arguments)) return;
    chain();
}

}  // namespace ringside::inject
