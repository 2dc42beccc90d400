#!/usr/bin/python3
"""What a machine may have in store for a shim: other linkers, other preloads, other runtimes, and memory that is short.

    machine.py CASE
"""
import collections
import os
import shutil
import subprocess

from cases import (Captured, bare, check, compile_c, kCommand, kHere, kLives, kPython, kShim, left_in, need, outcome, preloaded, run, same, skip,
                   written)

from rsd.index import Job

kLivesSource = os.path.join(kHere, "lives.c")
kHello = "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 3; }\n"
kExec = "#include <unistd.h>\nint main(int c, char** v) { return c > 1 ? execv(v[1], v + 1) : 0; }\n"
kLibraries = "/usr/lib/x86_64-linux-gnu/"


def need_root():
    if os.geteuid() != 0:
        skip("only root can do this here")


def setuid(workspace):
    """The loader strips the preload; where it does not (a trusted path) the shim does nothing."""
    need_root()
    setpriv = need("setpriv", "util-linux")
    os.chmod(workspace.disk, 0o755)
    shim = shutil.copy(kShim, workspace.path("libringside_inject.so"))
    plain, privileged = shutil.copy("/bin/grep", workspace.path("plain")), shutil.copy("/bin/grep", workspace.path("privileged"))
    os.chmod(privileged, 0o4755)
    as_nobody = [setpriv, "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    root = workspace.path("root-of-nobody")
    os.makedirs(root, mode=0o700)
    os.chown(root, 65534, 65534)
    environment = dict(bare(), RINGSIDE_DIR=root, RINGSIDE_JOB="job")
    for program, count, segments in ((plain, 1, True), (privileged, 0, False)):
        shutil.rmtree(os.path.join(root, "job"), ignore_errors=True)
        found = outcome([*as_nobody, "env", "LD_PRELOAD=" + shim, program, "-c", "r-xp.*libringside_inject", "/proc/self/maps"], environment, workspace)
        check((int(found.out), found.err) == (count, ""), "%s: %s", program, found)
        check(os.path.isdir(os.path.join(root, "job")) or not segments, "%s has no job directory", program)
    environment = dict(preloaded(workspace), RINGSIDE_DIR=root)
    check(outcome([privileged, "-c", "hello", "/nothing"], environment, workspace).status == 2, "a root's own setuid program fails")


def static(workspace):
    """No loader, no shim; what it executes is traced again."""
    hello = compile_c(workspace, written(workspace, "hello.c", kHello), "hello", "-static") or skip("no static C library here")
    execute = compile_c(workspace, written(workspace, "exec.c", kExec), "execute", "-static")
    same(workspace, [hello])
    check(not left_in(workspace), "left behind: %s", left_in(workspace))
    captured = Captured(workspace, [execute, kLives, "dynamic"])
    check(captured.counts() == {"dynamic": 20}, "below a static program: %s", captured.counts())


def musl(workspace):
    """musl's loader loads us, and we do nothing there: the program runs, and so do what it loads and what it starts."""
    need("musl-gcc", "musl-tools")
    hello = compile_c(workspace, written(workspace, "hello.c", kHello), "hello", compiler="musl-gcc") or skip("musl-gcc can't compile here")
    loads = written(workspace, "loads.c", '#include <dlfcn.h>\n#include <stdio.h>\nint main(int c, char** v) {\n'
                    '  void* at = c > 1 ? dlopen(v[1], RTLD_NOW) : 0;\n  int (*which)(void) = at ? (int (*)(void))dlsym(at, "which") : 0;\n'
                    '  printf("%d %d %d\\n", at != 0, which ? which() : -1, dlsym(RTLD_DEFAULT, "nothing") != 0);\n  return 4; }\n')
    library = compile_c(workspace, written(workspace, "library.c", "int which(void) { return 7; }\n"), "which.so", "-shared", "-fPIC", compiler="musl-gcc")
    loader = compile_c(workspace, loads, "loads", compiler="musl-gcc")
    check(outcome([hello], bare(), workspace) == (3, "hello\n", ""), "it does not run here at all")
    same(workspace, [hello])
    check(same(workspace, [loader, library]) == (4, "1 7 0\n", ""), "loading a library goes wrong without us, too")
    same(workspace, ["sh", "-c", "%s; %s %s; echo $?" % (hello, loader, library)])
    execute = compile_c(workspace, written(workspace, "exec.c", kExec), "execute", compiler="musl-gcc")
    for name, words, status, out, ranges in (("itself", [hello], 3, "hello\n", {}), ("its-child", [execute, kLives, "below"], 0, "below\n", {"below": 20})):
        output = workspace.path("out-" + name)
        ran = workspace.ringside("run", "-o", output, "--", *words, expect=status, environment=dict(bare(), RINGSIDE_DIR=workspace.root))
        check(ran.out() == out and "musl" in ran.err(), "ringside run %s: %s %s", name, ran.out(), ran.err())
        found = collections.Counter(r.name for r in Job(output).events[0].ranges)
        check(found == ranges, "ringside run %s: %s, expected %s", name, found, ranges)


def other_preloads(workspace):
    """Before and after us, each with programs that use what it replaces, and in a capture with ranges and forks."""
    tried, recorded = [], 0
    for library in ("libeatmydata.so", "libeatmydata/libeatmydata.so", "libjemalloc.so.2", "coreutils/libstdbuf.so", "libfakeroot/libfakeroot-sysv.so", "libasan.so.8"):
        path = next((p for p in (kLibraries + library, "/usr/libexec/" + library) if os.path.exists(p)), None)
        if path is None:
            continue
        for preload in ("%s:%s" % (path, kShim), "%s:%s" % (kShim, path)):
            if "libasan" in path and preload.startswith(kShim):
                continue  # it insists on being the first, whoever else comes
            for argv in (["sort", "--parallel=2", "/etc/services"], ["bash", "-c", "echo a | tr a b; (exit 3); echo $?"], [kLives, "fork"], [kLives, "threads"],
                         ["/usr/bin/python3", "-c", "import os\np = os.fork()\nif not p: os._exit(2)\nprint(os.wait()[1] >> 8)"]):
                same(workspace, argv, preload=preload, beside=path, ASAN_OPTIONS="detect_leaks=0")
            captured = Captured(workspace, [kLives, "fork"], name="beside-%d" % recorded, status=None, LD_PRELOAD=preload, ASAN_OPTIONS="detect_leaks=0")
            check(captured.result.out == outcome([kLives, "fork"], bare(), workspace).out and captured.counts() == {"parent": 40, "child": 20, "grandchild": 20},
                  "%s in a capture: %s %s", preload, captured.result, captured.counts())
            check(len({p.pid for p in captured.processes.values()}) == 3, "%s: the children are not processes of their own", preload)
            recorded += 1
        tried.append(library)
    if not tried:
        skip("none of the libraries that it tries is here (Debian packages eatmydata, libjemalloc2, fakeroot)")
    print("tried %s, before and after" % ", ".join(tried), flush=True)


def local_copies(workspace):
    """Two copies of a library, each loaded RTLD_LOCAL and each with a neighbour that its RUNPATH leads to: neither becomes the other, and both record."""
    copy = written(workspace, "copy.c", '#include <stdio.h>\n#include "inject/sources/api/ringside.h"\nstatic int calls;\nint copy_call(void) {\n'
                   '  void* own = dlopen("libneighbour.so", RTLD_NOW | RTLD_LOCAL);\n  int (*which)(void) = own ? (int (*)(void))dlsym(own, "which") : 0;\n'
                   '  ringside_range_push("copy"); ringside_range_pop();\n  return 100 * (which ? which() : -1) + ++calls; }\n')
    program = written(workspace, "loader.c", '#include <dlfcn.h>\n#include <stdio.h>\nint main(int c, char** v) {\n  for (int i = 1; i < c; ++i) {\n'
                      '    void* at = dlopen(v[i], RTLD_NOW | RTLD_LOCAL);\n    int (*call)(void) = at ? (int (*)(void))dlsym(at, "copy_call") : 0;\n'
                      '    printf("%d %d %p\\n", call ? call() : -1, call ? call() : -1, dlsym(RTLD_DEFAULT, "copy_call"));\n  }\n  return 0; }\n')
    loader = compile_c(workspace, program, "loader") or skip("no C compiler here")
    for number, folder in enumerate("ab"):
        neighbour = written(workspace, "%s/neighbour.c" % folder, "int which(void) { return %d; }\n" % (number + 1))
        compile_c(workspace, neighbour, folder + "/libneighbour.so", "-shared", "-fPIC")
        check(compile_c(workspace, copy, folder + "/libcopy.so", "-shared", "-fPIC", "-Wl,-rpath,$ORIGIN"), "the library can't be compiled")
    argv = [loader, workspace.path("a/libcopy.so"), workspace.path("b/libcopy.so")]
    out = same(workspace, argv).out
    check(out.count("(nil)") == 2, "without the shim: %s", out)
    captured = Captured(workspace, argv)
    check(captured.result.out == out and captured.counts() == {"copy": 4}, "in a capture: %s %s", captured.result, captured.counts())


def sanitizers(workspace):
    """Programs built with them run as without us. gcc's AddressSanitizer as a shared library insists on being first: the command says so."""
    tried = []
    for compiler, options in (("gcc", ["-fsanitize=address", "-static-libasan"]), ("gcc", ["-fsanitize=undefined"]), ("gcc", ["-fsanitize=thread"]),
                              ("clang", ["-fsanitize=address"]), ("clang", ["-fsanitize=thread"]), ("clang", ["-fsanitize=memory"])):
        program = compile_c(workspace, kLivesSource, "sanitized", "-w", "-ldl", "-pthread", *options, compiler=compiler)
        if program is None or outcome([program, "hello"], bare(), workspace).status != 0:
            continue
        for mode in ("hello", "fork", "threads", "exec", "raw_fork"):
            without = same(workspace, [program, mode])
            captured = Captured(workspace, [program, mode], name="%s-%d" % (mode, len(tried)))
            check(captured.result == without, "%s %s %s in a capture: %s, without the shim %s", compiler, options[0], mode, captured.result, without)
            check(sum(captured.counts().values()) > 0, "%s %s %s: nothing was recorded", compiler, options[0], mode)
        tried.append("%s %s" % (compiler, " ".join(options)))
    if not tried:
        skip("no compiler with sanitizers here")
    print("tried %s" % ", ".join(tried), flush=True)
    program = compile_c(workspace, kLivesSource, "shared_asan", "-fsanitize=address", "-w", compiler="gcc")
    if program:
        ran = workspace.ringside("run", "-o", workspace.path("out-asan"), "--", program, "hello", environment=dict(bare(), RINGSIDE_DIR=workspace.root))
        check(ran.out() == "hello\n" and "AddressSanitizer" in ran.err(), "ringside run: %s %s", ran.out(), ran.err())


def choice(workspace):
    """RINGSIDE_INCLUDE, RINGSIDE_EXCLUDE and RINGSIDE_DISABLE, each process anew."""
    wanted, unwanted = shutil.copy(kLives, workspace.path("wanted")), shutil.copy(kLives, workspace.path("unwanted"))
    argv = ["sh", "-c", "%s one; %s two" % (wanted, unwanted)]
    both, one = {"one": 20, "two": 20}, {"one": 20}
    for number, (variables, expected) in enumerate((({}, both), ({"RINGSIDE_EXCLUDE": "unw*"}, one), ({"RINGSIDE_INCLUDE": "dash:want?d"}, one),
                                                    ({"RINGSIDE_INCLUDE": workspace.disk + "/*", "RINGSIDE_EXCLUDE": "nothing,unwanted"}, one),
                                                    ({"RINGSIDE_EXCLUDE": ""}, both), ({"RINGSIDE_DISABLE": "1"}, {}))):
        captured = Captured(workspace, argv, name="choice-%d" % number, **variables)
        check(captured.counts() == expected, "%s: %s", variables, captured.counts())
        check(captured.result.out == "one\ntwo\n", "%s: it says %s", variables, captured.result)
    alone = preloaded(workspace, job="disabled", RINGSIDE_DISABLE="1")
    check(outcome([kLives, "hello"], alone, workspace) == (0, "hello\n", "") and not os.path.exists(os.path.join(workspace.root, "alone", "disabled")),
          "RINGSIDE_DISABLE=1 makes a job directory")
    shown = [dict(l.split("=", 1) for l in outcome(["env"], e, workspace).out.splitlines()) for e in (bare(), preloaded(workspace))]
    more = {k for k in shown[1] if shown[0].get(k) != shown[1][k]} - {"RINGSIDE_DIR", "RINGSIDE_JOB", "LD_PRELOAD", "_"}
    check(more == {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "INTEL_LIBITTNOTIFY64"} and set(shown[0]) <= set(shown[1]), "env shows %s more", sorted(more))


if __name__ == "__main__":
    run({"setuid": setuid, "static": static, "musl": musl, "other_preloads": other_preloads, "local_copies": local_copies, "sanitizers": sanitizers,
         "choice": choice})
