// The way into Python programs: our directory in front of PYTHONPATH, where the interpreter finds our sitecustomize, which takes it out
// again and goes on to the one that it shadows.
#pragma once

namespace ringside::inject {

/// Where this is a Python program: the executable's name starts with "python" or libpython is mapped.
/// @param executable  its path
/// @param arguments   main's, null-terminated; may be null
/// @thread main thread, at load, before main
void chain_python_path(const char* executable, const char* const* arguments);

}  // namespace ringside::inject
