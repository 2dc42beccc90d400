"""What the checks look at: the project's files, told by git (also new ones that are not ignored), else by a walk; and how a check reports."""
import collections
import os
import subprocess

kRooms = ("schema", "inject", "agent", "viewer_export", "tools", "tests")

# One thing that a check found: where, and what to do about it.
Violation = collections.namedtuple("Violation", "path line text")


class Skip(Exception):
    """The machine lacks what a check needs; the text says what."""


def project_files(root, *suffixes):
    """Paths relative to `root`, sorted; of these suffixes, all where none is given."""
    found = _from_git(root) if os.path.isdir(os.path.join(root, ".git")) else _from_walk(root)
    return sorted(path for path in found if not suffixes or path.endswith(suffixes))


def _from_git(root):
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode().split("\0")
    return {path for path in listed if path and os.path.isfile(os.path.join(root, path))}


def _from_walk(root):
    found = set()
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not name.startswith((".", "build")) and name != "__pycache__"]
        found.update(os.path.relpath(os.path.join(folder, name), root) for name in names)
    return found


def lines_of(root, path):
    """Numbered from 1. Bytes that are no text are replaced: no check is about them."""
    with open(os.path.join(root, path), errors="replace") as text:
        return list(enumerate(text.read().split("\n"), 1))
