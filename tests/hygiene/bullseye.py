"""A Debian 11 (glibc 2.31, Python 3.9) to run programs in, as a user without rights: tools/setup_bullseye's root file system, unpacked for one test.

One process holds its mounts (/proc, /dev/shm) in a namespace of their own; the others join it. With the workspace's children all of it goes.
"""
import glob
import os
import shutil
import subprocess

from cases import check, kHere, kSource, skip, wait_until

kUser = 54321
kHold = 'mount -t proc proc "$1/proc" && mount -t tmpfs -o mode=1777 tmpfs "$1/dev/shm" && touch "$2" && exec sleep infinity'


class Bullseye:
    def __init__(self, workspace):
        if os.geteuid() != 0:
            skip("a bullseye of its own needs root")
        made = subprocess.run([os.path.join(kSource, "tools", "setup_bullseye"), "--path"], capture_output=True, text=True)
        if made.returncode != 0:
            skip("no bullseye here (tools/setup_bullseye makes it)")
        self.workspace = workspace
        os.chmod(workspace.disk, 0o755)  # the user without rights passes through it
        self.root = workspace.path("bullseye")
        os.makedirs(self.root)
        subprocess.run(["tar", "-C", self.root, "-xzf", made.stdout.strip()], check=True)
        os.chmod(self.root, 0o755)
        there = workspace.path("mounted")
        self.holder = workspace.start("holder", ["unshare", "--mount", "--propagation", "private", "sh", "-c", kHold, "sh", self.root, there])
        wait_until("the mounts", lambda: os.path.exists(there), children=[self.holder])

    def words(self, *words):
        """A command in there."""
        return ["nsenter", "--target", str(self.holder.pid), "--mount", shutil.which("chroot"), "--userspec=%d:%d" % (kUser, kUser), self.root,
                "/usr/bin/env", "--chdir=/tmp", *words]

    def environment(self, **more):
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", **more}

    def run(self, name, *words, expect=0, **more):
        return self.workspace.run(name, self.words(*words), self.environment(**more), expect)

    def path(self, path):
        """Where a path of it lies for us; not what is on its mounts."""
        return self.root + path

    def mounted(self, path):
        """The same through the holder's eyes."""
        return "/proc/%d/root%s%s" % (self.holder.pid, self.root, path)

    def processes(self):
        """Of its user, in there."""
        found = []
        for entry in glob.glob("/proc/[0-9]*"):
            try:
                if os.readlink(entry + "/root") == self.root:
                    found.append(os.path.basename(entry))
            except OSError:
                continue  # it has ended
        return found

    def compile_c(self, source, path):
        """Compiles with our compiler for its C library. The C library's linker script names files by their places in there, so that they are named here."""
        libraries = self.path("/usr/lib/x86_64-linux-gnu/")
        done = subprocess.run(
            [shutil.which("cc"), "--sysroot=" + self.root, "-B" + libraries, "-nodefaultlibs", "-O1", "-I", kSource, "-o", self.path(path),
             os.path.join(kHere, source), *(libraries + name for name in ("libpthread.so.0", "libdl.so.2", "libc.so.6", "libc_nonshared.a")), "-lgcc"],
            capture_output=True, text=True)
        check(done.returncode == 0, "compile %s for bullseye: %s", source, done.stderr)
        return path
