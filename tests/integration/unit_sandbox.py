#!/usr/bin/python3
"""Executes a command as a unit's service is: what its file refuses is refused, by the kernel. For machines on which systemd does not run.

    unit_sandbox.py UNIT UID COMMAND [ARGUMENT ...]        as root; x86-64

Of the file: ProtectSystem=strict with ReadWritePaths, CapabilityBoundingSet= (empty), NoNewPrivileges, SystemCallFilter, MemoryDenyWriteExecute, RestrictNamespaces,
RestrictAddressFamilies. The groups of system calls are systemd-analyze's.
"""
import collections
import ctypes
import errno
import os
import re
import socket
import struct
import subprocess
import sys

kNamespaceOfMounts = 0x20000
kNoNewPrivileges, kSeccomp, kDropOfBounding = 38, 22, 24
kFilterMode, kCapabilities = 2, 41
kLoad, kIsEqual, kHasBits, kReturn = 0x20, 0x15, 0x45, 0x06  # BPF
kAllow, kFail = 0x7FFF0000, 0x00050000
kNumber, kArguments = 0, 16  # struct seccomp_data
kExecute, kWrite = 4, 2
kOfKernel = ("/proc", "/sys", "/dev")
libc = ctypes.CDLL(None, use_errno=True)


def must(done, what):
    if done != 0:
        sys.exit("unit_sandbox: %s: %s" % (what, os.strerror(ctypes.get_errno())))


def settings(path):
    found = collections.defaultdict(list)
    with open(path) as unit:
        for name, value in re.findall(r"(?m)^(\w+)=(.*)$", unit.read()):
            found[name].append(value)
    return found


def groups():
    """{group: its calls and groups}"""
    told = subprocess.run(["systemd-analyze", "syscall-filter", "--no-pager"], capture_output=True, text=True, check=True).stdout
    return {block.split()[0]: re.findall(r"(?m)^    ([@\w-]+)$", block) for block in re.split(r"(?m)^(?=@)", told) if block.startswith("@")}


def calls_of(words, known):
    found = set()
    for word in words:
        found |= calls_of(known[word], known) if word.startswith("@") else {word}
    return found


def allowed(lines):
    known = groups()
    found = calls_of(["@default"], known)
    for line in lines:
        calls = calls_of(line.lstrip("~").split(), known)
        found = found - calls if line.startswith("~") else found | calls
    return found


def numbers():
    with open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") as header:
        return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", header.read())}


def program(unit):
    """The filter, as the kernel takes it. It returns from where it knows; a jump leaves out the return behind it."""
    number_of = numbers()
    fail = (kReturn, 0, 0, kFail | getattr(errno, unit["SystemCallErrorNumber"][0]))
    argument = lambda n: (kLoad, 0, 0, kArguments + 8 * n)
    made = [(kLoad, 0, 0, kNumber)]

    def of_call(name, *steps):
        """What is looked at for this call alone; afterwards its number is loaded again."""
        made.extend([(kIsEqual, 0, len(steps) + 1, number_of[name]), *steps, (kLoad, 0, 0, kNumber)])
    if unit["MemoryDenyWriteExecute"] == ["yes"]:
        of_call("mmap", argument(2), (kHasBits, 0, 2, kExecute), (kHasBits, 0, 1, kWrite), fail)
        of_call("mprotect", argument(2), (kHasBits, 0, 1, kExecute), fail)
    families = [getattr(socket, name) for name in unit["RestrictAddressFamilies"][0].split()]
    of_call("socket", argument(0), *[(kIsEqual, len(families) - n, 0, family) for n, family in enumerate(families)], fail)
    calls = allowed(unit["SystemCallFilter"])
    if unit["RestrictNamespaces"] == ["yes"]:
        calls -= {"setns", "unshare"}
    for number in sorted(number_of[name] for name in calls if name in number_of):
        made += [(kIsEqual, 0, 1, number), (kReturn, 0, 0, kAllow)]
    return b"".join(struct.pack("HBBI", *step) for step in made + [fail])


def make_read_only(unit):
    must(libc.unshare(kNamespaceOfMounts), "a mount namespace of its own")
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    free = [path.lstrip("-") for line in unit["ReadWritePaths"] for path in line.split() if os.path.exists(path.lstrip("-"))]
    for path in free:
        subprocess.run(["mount", "--rbind", path, path], check=True)
    with open("/proc/self/mounts") as mounts:
        points = [line.split()[1] for line in mounts]
    for point in points:
        if not any(point == path or point.startswith(path + "/") for path in (*free, *kOfKernel)):
            subprocess.run(["mount", "-o", "remount,bind,ro", point], check=True)


def main():
    unit, user, command = settings(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    code = program(unit)
    make_read_only(unit)
    for capability in range(kCapabilities):
        must(libc.prctl(kDropOfBounding, capability, 0, 0, 0), "a capability")
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    must(libc.prctl(kNoNewPrivileges, 1, 0, 0, 0), "no new privileges")
    kept = ctypes.create_string_buffer(code)
    whole = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(kept)))
    must(libc.prctl(kSeccomp, kFilterMode, whole, 0, 0), "a filter of system calls")
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
