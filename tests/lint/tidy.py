"""clang-tidy over the files of the compilation database. A file that was clean is not looked at again until it, a header it includes,
its flags, the configuration or clang-tidy change: the clean ones are remembered by a hash of all that, beneath the user's cache.

What is not remembered is checked, the product before its tests and the files changed last first, until the budget is spent
(RINGSIDE_TIDY_BUDGET_S, default 90 s); what is left then is said. RINGSIDE_TIDY_ALL=1 knows no budget.
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import time

from files import Skip, Violation, project_files

kInclude = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
kDiagnostic = re.compile(r"^(.*?):(\d+):\d+: (?:error|warning): (.*)$", re.M)
kGccOnly = ("-fno-gnu-unique",)  # flags that clang refuses
# Relacy through std::source_location, which clang 14 has not.
kNotForClang = ("tests/proof/proof.cpp",)
kFolders = ("schema/", "inject/", "agent/", "viewer_export/", "tools/", "tests/")


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "ringside", "tidy")


def read(path):
    with open(path, "rb") as content:
        return content.read()


class Hashes:
    """Of a source file and all project headers that it reaches."""

    def __init__(self, root, build):
        self.root = root
        version = subprocess.run(["clang-tidy", "--version"], check=True, stdout=subprocess.PIPE).stdout
        generated = b"".join(read(os.path.join(root, path)) for path in project_files(root, ".fbs"))
        config = [read(os.path.join(build, "tools", "config.hpp"))] if os.path.exists(os.path.join(build, "tools", "config.hpp")) else []
        rules = [read(path) for path in (os.path.join(root, ".clang-tidy"), os.path.join(root, "tests", ".clang-tidy")) if os.path.exists(path)]
        self.common = hashlib.sha256(b"\0".join([version, generated] + rules + config)).digest()
        self.headers = {}

    def headers_of(self, path, seen):
        """Adds to `seen` every project file that `path` includes, itself too."""
        if path in seen or not os.path.isfile(os.path.join(self.root, path)):
            return
        seen.add(path)
        if path not in self.headers:
            self.headers[path] = kInclude.findall(read(os.path.join(self.root, path)).decode(errors="replace"))
        for name in self.headers[path]:
            self.headers_of(name, seen)

    def of(self, path, command):
        seen = set()
        self.headers_of(path, seen)
        whole = hashlib.sha256(self.common + command.replace(self.root, "").encode())
        for part in sorted(seen):
            whole.update(part.encode() + b"\0" + hashlib.sha256(read(os.path.join(self.root, part))).digest())
        return whole.hexdigest()


def database(root, build):
    """@return {path relative to root: compile command}, each file once"""
    path = os.path.join(build, "compile_commands.json")
    if not os.path.exists(path):
        raise Skip("no compile_commands.json in %s: configure with the ninja backend" % build)
    with open(path) as text:
        entries = json.load(text)
    commands = {}
    for entry in entries:
        name = os.path.relpath(os.path.realpath(os.path.join(entry["directory"], entry["file"])), os.path.realpath(root))
        if name.startswith(kFolders) and name not in kNotForClang:
            entry["command"] = " ".join(word for word in entry.get("command", "").split(" ") if word not in kGccOnly)
            commands.setdefault(name, entry["command"])
    os.makedirs(folder_for_clang(build), exist_ok=True)
    with open(os.path.join(folder_for_clang(build), "compile_commands.json"), "w") as text:
        json.dump(entries, text)
    return commands


def folder_for_clang(build):
    """Where the compilation database lies that clang understands."""
    return os.path.join(build, "tidy")


def run_tidy(root, build, path):
    command = ["clang-tidy", "--quiet", "-p", folder_for_clang(build), "--extra-arg=-Wno-unknown-warning-option", os.path.join(root, path)]
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, cwd=build)
    found = []
    for name, line, text in kDiagnostic.findall(result.stdout):
        found.append(Violation(os.path.relpath(os.path.realpath(os.path.join(build, name)), os.path.realpath(root)), int(line), text))
    if result.returncode != 0 and not found:
        found.append(Violation(path, 0, "clang-tidy failed: " + (result.stdout + result.stderr).strip()[-400:]))
    return found


def last_changes(root):
    """@return {path: rank}, the file changed last first; without git, nothing"""
    log = subprocess.run(["git", "-C", root, "log", "--format=", "--name-only", "-n", "200"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         universal_newlines=True).stdout.split("\n")
    ranks = {}
    for path in filter(None, log):
        ranks.setdefault(path, len(ranks))
    return ranks


def check(root, build):
    if shutil.which("clang-tidy") is None:
        raise Skip("no clang-tidy here (Debian package clang-tidy)")
    commands = database(root, build)
    hashes = Hashes(root, build)
    os.makedirs(cache_folder(), exist_ok=True)
    marks = {path: os.path.join(cache_folder(), hashes.of(path, command)) for path, command in commands.items()}
    ranks = last_changes(root)
    to_do = sorted((path for path in commands if not os.path.exists(marks[path])), key=lambda path: (path.startswith("tests/"), ranks.get(path, -1), path))
    unlimited = os.environ.get("RINGSIDE_TIDY_ALL") == "1"
    deadline = time.monotonic() + float(os.environ.get("RINGSIDE_TIDY_BUDGET_S", "90"))

    def one(path):
        if not unlimited and time.monotonic() > deadline:
            return path, None
        return path, run_tidy(root, build, path)

    left = []
    reported = set()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for path, found in pool.map(one, to_do):
            if found is None:
                left.append(path)
            elif not found:
                open(marks[path], "w").close()
            for violation in found or ():
                if violation not in reported:  # a header's turns up in each file that includes it
                    reported.add(violation)
                    yield violation
    print("NOTE: clang-tidy: %d files, %d clean since before, %d looked at now" % (len(commands), len(commands) - len(to_do), len(to_do) - len(left)))
    if left:
        print("NOTE: clang-tidy: NOT CHECKED for lack of time: %d files, %s%s; tools/test --all lint checks all" % (
            len(left), " ".join(left[:5]), " ..." if len(left) > 5 else ""))
