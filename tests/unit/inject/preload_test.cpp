// The built shim in real programs: what they print, how they end and what they leave must be as without it.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "sandbox.hpp"

using namespace ringside;
using test::Sandbox;
using test::SegmentView;

namespace {

struct Outcome {
    int status = 0;
    std::string output;  ///< both streams
    bool operator==(const Outcome&) const = default;
};

Outcome shell(const std::string& command) {
    Outcome outcome;
    FILE* pipe = popen(("exec 2>&1; " + command).c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::array<char, 4096> buffer;
    while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
        outcome.output.append(buffer.data(), count);
    outcome.status = pclose(pipe);
    return outcome;
}

/// The built shim, as the build names it to its tests.
std::string shim_path() {
    const char* path = std::getenv("RINGSIDE_SHIM");
    if (path == nullptr) throw std::runtime_error("RINGSIDE_SHIM is not set: run by `meson test`");
    return path;
}

std::string preloaded(const Sandbox& box, const std::string& command) {
    return "env RINGSIDE_DIR=" + box.root() + " RINGSIDE_JOB=job LD_PRELOAD=" + shim_path() + " " +
           command;
}

}  // namespace

TEST_CASE("preload: programs print and end as without it, idle or captured") {
    for (const char* command :
         {"/bin/true", "/bin/false", "/bin/echo hello", "/bin/ls /nonexistent",
          "bash -c 'echo a; (echo b; exit 3); echo $?; exit 7'", "sh -c 'kill -9 $$'",
          "bash -c 'x=$(echo sub | tr a-z A-Z); echo $x; cat < /dev/null; true & wait'",
          "/usr/bin/python3 -c 'import os,sys; print(sys.path, sorted(os.environ)[:0]); "
          "print(os.environ.get(\"PYTHONPATH\"))'",
          "/usr/bin/python3 -c 'import subprocess, os; print(subprocess.check_output([\"echo\", "
          "\"x\"])); p = os.fork(); p and os.wait(); print(p > 0)'",
          "/usr/bin/python3 -S -c 'print(1)'", "/usr/bin/python3 -I -c 'print(2)'",
          "PYTHONPATH=/nowhere:/else /usr/bin/python3 -c 'import os; "
          "print(os.environ[\"PYTHONPATH\"])'"}) {
        CAPTURE(command);
        const Outcome bare = shell("env " + std::string(command));
        Sandbox box;
        CHECK(shell(preloaded(box, command)) == bare);
        box.set_capture(true);
        CHECK(shell(preloaded(box, command)) == bare);
    }
}

TEST_CASE("preload: an idle process has no thread more, and unlinks its segment") {
    Sandbox box;
    box.control();
    const Outcome outcome = shell(preloaded(box, "/bin/grep Threads /proc/self/status"));
    CHECK(outcome.output == "Threads:\t1\n");
    CHECK(box.segments().empty());
}

TEST_CASE("preload: RINGSIDE_DISABLE=1 leaves no trace at all") {
    Sandbox box;
    CHECK(shell("RINGSIDE_DISABLE=1 " + preloaded(box, "/bin/true")).status == 0);
    CHECK(box.segments().empty());
    CHECK(access(box.job_directory().c_str(), F_OK) != 0);
}

TEST_CASE("preload: a directory that can't be made leaves the program alone") {
    Sandbox box;
    CHECK(shell("env RINGSIDE_DIR=/proc/nowhere LD_PRELOAD=" + shim_path() + " /bin/echo fine")
              .output == "fine\n");
}

TEST_CASE("preload: it exports dlopen, dlsym and names of ours, and needs the C library alone") {
    const std::string shim = shim_path();
    const Outcome others =
        shell("nm -D --defined-only " + shim +
              " | awk '{print $3}' | grep -v -e '^dlopen$' -e '^dlsym$' -e '^ringside_'"
              " -e '^InitializeInjection$' -e '^InitializeInjectionNvtx2$' -e '^__itt_api_init$'");
    CHECK(others.output == "");
    const Outcome needed = shell("readelf -d " + shim + " | grep NEEDED | sed 's/.*\\[//;s/]//'");
    CHECK(needed.output == "libc.so.6\n");
}

TEST_CASE("preload: RTLD_NEXT and RUNPATH mean what they mean without it") {
    Sandbox box;
    const std::string program =
        "/usr/bin/python3 -c 'import ctypes; print(bool(ctypes.CDLL(None).getpid)); "
        "ctypes.CDLL(\"libm.so.6\").cos; print(hasattr(ctypes.CDLL(None), \"no_such_thing\"))'";
    CHECK(shell(preloaded(box, program)) == shell(program));
}
