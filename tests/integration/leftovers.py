"""What a test could leave, and its end: processes that know its folders, and these. Where the test is killed before it could see to that itself, a process of
its own does."""
import contextlib
import os
import shutil
import signal
import time

kEndS = 10


def processes_of(*folders):
    """@return {pid: command line} of the others whose environment names one of the folders"""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open("/proc/%s/environ" % pid, "rb") as environment, open("/proc/%s/cmdline" % pid, "rb") as command:
                text = environment.read()
                if int(pid) != os.getpid() and any(folder.encode() in text for folder in folders):
                    found[int(pid)] = command.read().replace(b"\0", b" ").decode(errors="replace")
    return found


def clear_away(*folders):
    """Ends the processes, then removes the folders: what still ran would write into them meanwhile. @return what could not be removed"""
    end = time.monotonic() + kEndS
    while (left := processes_of(*folders)) and time.monotonic() < end:
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    failures = []

    def note(_, path, error):
        if not isinstance(error[1], FileNotFoundError):
            failures.append("%s: %s" % (path, error[1]))
    for folder in folders:
        shutil.rmtree(folder, onerror=note)
    return failures


class Survivor:
    """Clears the folders away when this process has ended without release()."""

    def __init__(self, *folders):
        reading, self._writing = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                self._outlive(reading, folders)
            finally:
                os._exit(0)
        os.close(reading)

    def _outlive(self, reading, folders):
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
            signal.signal(number, signal.SIG_IGN)
        # Whoever reads what the test prints waits for no one else, and locks that it was given end with it.
        null = os.open("/dev/null", os.O_RDWR)
        for descriptor, of in ((0, reading), (1, null), (2, null)):
            os.dup2(of, descriptor)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        if os.read(0, 1) == b"":
            clear_away(*folders)

    def release(self):
        os.write(self._writing, b".")
        os.close(self._writing)
        os.waitpid(self._pid, 0)
