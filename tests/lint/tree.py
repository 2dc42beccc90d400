"""The shape of the tree: what stands at the top, a README in each room, no file too long, no words that belong to one machine."""
import os
import re

from files import kRooms, Violation, lines_of, project_files

kTopLevel = {"meson.build", "meson_options.txt", "README.md", "LICENSE", "CONTRIBUTING.md"} | set(kRooms)
kMostLines = 400
kCode = (".cpp", ".hpp", ".h", ".c", ".py", ".fbs", ".mjs")

# Written in two parts, so that this file does not find itself.
kWords = [
    (re.compile("/wo" + r"rk/"), "a path of one machine"),
    (re.compile("/ho" + r"me/\w"), "a path of one machine"),
    (re.compile(r"(deb\.deb" + r"ian\.org|registry\.npm" + r"js|pyth" + r"onhosted|py" + r"pi\.org)"), "a registry's host; name the package"),
    (re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b"), "marks something unfinished; do it, or say what is missing and why"),
]


def top_level(root):
    there = {path.split("/")[0] for path in project_files(root)}
    for name in sorted(there - kTopLevel):
        if not name.startswith("."):
            yield Violation(name, 0, "is beyond the agreed top level: %s" % " ".join(sorted(kTopLevel)))
    for name in sorted(kTopLevel - there):
        yield Violation(name, 0, "is missing at the top level")


def readmes(root):
    files = set(project_files(root))
    folders = set(kRooms)
    for path in files:
        parts = path.split("/")
        if parts[0] in ("agent", "viewer_export", "inject") and len(parts) == 3 and path.endswith(kCode):
            folders.add("/".join(parts[:2]))
        if path.startswith("inject/sources/") and len(parts) > 3:
            folders.add("/".join(parts[:3]))
    for folder in sorted(folders):
        if folder + "/README.md" not in files:
            yield Violation(folder, 0, "has no README.md: what is here, the data's way through it, decisions")


def sizes(root):
    for path in project_files(root, *kCode):
        with open(os.path.join(root, path), "rb") as content:
            lines = content.read().count(b"\n")
        if lines > kMostLines:
            yield Violation(path, lines, "has %d lines, %d at most: one concept a file" % (lines, kMostLines))


def words(root):
    for path in project_files(root):
        if path.endswith((".json", ".rsd", ".rsj")) or path == "LICENSE":
            continue
        for number, line in lines_of(root, path):
            for pattern, why in kWords:
                if pattern.search(line):
                    yield Violation(path, number, "%s: %s" % (pattern.search(line).group(0), why))
