#include "inject/core/python_path.hpp"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

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

}  // namespace

void chain_python_path(const char* executable) {
    if (!starts_with(base_name(executable), "python") && !object_loaded("libpython")) return;
    FixedText<PATH_MAX> directory;
    if (!own_python_directory(directory)) return;
    const char* present = secure_getenv("PYTHONPATH");
    if (present == nullptr) {
        setenv("PYTHONPATH", directory.c_str(), 1);
        return;
    }
    if (starts_with(present, directory.c_str())) {
        // Already there: a parent whose interpreter never ran our part (-S) handed it down.
        const char after = present[directory.length()];
        if (after == 0 || after == ':') return;
    }
    FixedText<4 * PATH_MAX> chained;
    chained.append(directory.c_str()).append(":").append(present);
    if (!chained.cut()) setenv("PYTHONPATH", chained.c_str(), 1);
}

}  // namespace ringside::inject
