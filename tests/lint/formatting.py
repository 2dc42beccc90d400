"""clang-format over every C++ file, by the .clang-format at the root."""
import os
import re
import shutil
import subprocess

from files import Skip, Violation, project_files

kBatch = 40
kDiagnostic = re.compile(r"^(.*?):(\d+):\d+: (?:error|warning): (.*)$")


def check(root):
    if shutil.which("clang-format") is None:
        raise Skip("no clang-format here (Debian package clang-format)")
    paths = project_files(root, ".cpp", ".hpp", ".h", ".c")
    for begin in range(0, len(paths), kBatch):
        batch = paths[begin:begin + kBatch]
        result = subprocess.run(["clang-format", "--dry-run", "-Werror", "--ferror-limit=3"] + batch, cwd=root,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
        found = [kDiagnostic.match(line) for line in result.stdout.splitlines()]
        for match in filter(None, found):
            yield Violation(os.path.relpath(os.path.join(root, match.group(1)), root), int(match.group(2)),
                            "is not as clang-format writes it; run: clang-format -i " + match.group(1))
        if result.returncode != 0 and not any(found):
            yield Violation(batch[0], 0, "clang-format failed: " + result.stdout.strip()[:400])
