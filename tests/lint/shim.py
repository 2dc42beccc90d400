"""The preload lives in other people's processes: its exported symbols are a list, its libraries the C library's alone."""
import os
import re
import shutil
import subprocess

from files import Skip, Violation

kAllowedNeeded = {"libc.so.6", "ld-linux-x86-64.so.2"}
kHighestGlibc = (2, 17)
kExportList = os.path.join("tests", "lint", "shim_exports.txt")


def output_of(*command):
    if shutil.which(command[0]) is None:
        raise Skip("no %s here (Debian package binutils)" % command[0])
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def exported(library):
    lines = output_of("nm", "-D", "--defined-only", library).splitlines()
    return {line.split()[-1].split("@")[0] for line in lines if line.strip()}


def needed(library):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", "-W", library)))


def allowed_exports(root):
    with open(os.path.join(root, kExportList)) as text:
        return {line.strip() for line in text if line.strip() and not line.startswith("#")}


def exports(root, library):
    there, allowed = exported(library), allowed_exports(root)
    for name in sorted(there - allowed):
        yield Violation(library, 0, "exports %s, which is not in %s" % (name, kExportList))
    for name in sorted(allowed - there):
        yield Violation(library, 0, "does not export %s, which is in %s" % (name, kExportList))


def libraries(_root, library):
    for name in sorted(needed(library) - kAllowedNeeded):
        yield Violation(library, 0, "needs %s; only %s may be needed" % (name, ", ".join(sorted(kAllowedNeeded))))


def glibc_versions(library):
    """Which versions of the C library the dynamic symbols ask for: {(2, 17): [names]}."""
    found = {}
    for name, version in re.findall(r" (?:\*UND\*.*?)GLIBC_([0-9.]+)\)?\s+(\S+)$", output_of("objdump", "-T", library), re.MULTILINE):
        found.setdefault(tuple(int(part) for part in name.split(".")), []).append(version)
    return found


def floor(_root, library):
    found = glibc_versions(library)
    print("the highest version asked for is GLIBC_%s" % ".".join(map(str, max(found, default=()))))
    for version in sorted(found):
        if version > kHighestGlibc:
            yield Violation(library, 0, "%s want GLIBC_%s, beyond %s: pin them in inject/core/floor.hpp" % (
                ", ".join(sorted(found[version])), ".".join(map(str, version)), ".".join(map(str, kHighestGlibc))))
