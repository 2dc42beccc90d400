#!/usr/bin/python3
"""The public header in any program: without a warning in each language that it says it is for, dynamic and static, and without us a program that calls all
of it does nothing.

    header.py CASE
"""
import os
import re
import subprocess

from cases import bare, check, kHere, kSource, need, outcome, run

kLanguages = {"c": ("c99", "c11"), "c++": ("c++98", "c++20")}
kStrict = ("-pedantic", "-Wall", "-Wextra", "-Werror")
kLinks = (("-O2",), ("-O0", "-static"))
kProgram = os.path.join(kHere, "header.c")


def every_function_is_called():
    """The program goes with the header."""
    with open(os.path.join(kSource, "inject", "sources", "api", "ringside.h")) as header, open(kProgram) as program:
        functions = set(re.findall(r"^static inline [\w* ]*?\b(ringside_\w+[a-z])\(", header.read(), re.MULTILINE))
        missing = functions - set(re.findall(r"ringside_\w+", program.read()))
    check(len(functions) > 20 and not missing, "not called: %s of %d functions", sorted(missing), len(functions))


def compiled_by(workspace, compilers):
    every_function_is_called()
    for language, standards in kLanguages.items():
        compiler = need(*compilers[language])
        for standard in standards:
            for link in kLinks:
                name = "%s%s" % (standard, "".join(link))
                words = [compiler, "-x", language, "-std=" + standard, *kStrict, *link, "-I", kSource, kProgram, "-o", workspace.path(name)]
                done = subprocess.run(words, capture_output=True, text=True)
                check((done.returncode, done.stderr) == (0, ""), "`%s`: %s", " ".join(words), done.stderr)
                ended = outcome([workspace.path(name)], bare(), workspace)
                check(ended == (0, "", ""), "%s by %s: %s", name, compiler, ended)
                print("%s %s: compiles, and does nothing" % (os.path.basename(compiler), name), flush=True)


def header_gcc(workspace):
    compiled_by(workspace, {"c": ("gcc", "gcc"), "c++": ("g++", "g++")})


def header_clang(workspace):
    compiled_by(workspace, {"c": ("clang-16", "clang-16"), "c++": ("clang++-16", "clang-16")})


run({"header_gcc": header_gcc, "header_clang": header_clang})
