"""The preload lives in other people's processes: its exported symbols are a list, its libraries the C library's alone."""
import os
import re
import shutil
import subprocess

from files import Skip, Violation

kAllowedNeeded = {"libc.so.6", "ld-linux-x86-64.so.2"}
kHighestGlibc = (2, 17)
# pthreads(7): where a cancelled thread ends, or may. inject/core/kernel_calls.hpp says why, and has what is to be called instead.
kCancellationPoints = set("""
    accept accept4 aio_suspend clock_nanosleep close connect copy_file_range creat epoll_pwait epoll_wait fallocate fclose fcntl fdatasync
    fflush fgets fopen fprintf fputs fread fscanf fsync fwrite getline getmsg getpmsg getrandom lockf mq_receive mq_send mq_timedreceive mq_timedsend
    msgrcv msgsnd msync nanosleep open open_by_handle_at openat opendir pause pclose poll popen posix_fallocate ppoll pread preadv preadv2 printf pselect
    pthread_cond_clockwait pthread_cond_timedwait pthread_cond_wait pthread_join pthread_testcancel pthread_timedjoin_np puts putmsg putpmsg pwrite
    pwritev pwritev2 read readdir readv recv recvfrom recvmmsg recvmsg select sem_clockwait sem_timedwait sem_wait send sendfile sendmmsg sendmsg sendto
    sigpause sigsuspend sigtimedwait sigwait sigwaitinfo sleep splice sync_file_range syslog system tcdrain tee usleep vmsplice wait wait3 wait4 waitid
    waitpid write writev""".split())
kAllowedCancellationPoints = {"pthread_join": "who attaches joins a thread, and can't be cancelled then (inject/core/capture.cpp)"}
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


def wanted(library):
    """The undefined symbols, without their versions."""
    return {line.split()[-1].split("@")[0] for line in output_of("nm", "-D", "--undefined-only", library).splitlines() if line.strip()}


def cancellation(_root, library):
    for name in sorted(wanted(library) - set(kAllowedCancellationPoints)):
        plain = name[:-2] if name.endswith("64") else name
        if plain.lstrip("_") in kCancellationPoints:
            yield Violation(library, 0, "calls %s(), where a cancelled thread of the job ends: see inject/core/kernel_calls.hpp" % name)


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
