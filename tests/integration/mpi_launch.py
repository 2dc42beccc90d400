"""How the tests start MPI programs: Debian's Open MPI 4 and MPICH 4, PyPI's Open MPI 5 and MPICH 5 (tools/setup_mpi), and what each one needs here."""
import os
import shutil
import subprocess

from harness import kBuild, kSource, skip

kAsRoot = {name: "1" for name in ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM")}
kPrograms = os.path.join(kBuild, "tests", "workloads", "mpi")


def setup_home():
    """@return where tools/setup_mpi has put PyPI's libraries; None: nowhere"""
    done = subprocess.run([os.path.join(kSource, "tools", "setup_mpi"), "--path"], capture_output=True, text=True)
    return done.stdout.strip() or None


class Library:
    """@param kind  which build of a program runs on it   @param folder  beneath tools/setup_mpi's; None: Debian's"""

    def __init__(self, name, kind, launcher, options=(), folder=None):
        self.name, self.kind, self.options = name, kind, list(options)
        home = setup_home() if folder else None
        self.prefix = home and os.path.join(home, folder)
        self.launcher = shutil.which(launcher) if not folder else self.prefix and os.path.join(self.prefix, "bin", launcher)
        self.missing = None
        if not self.launcher:
            self.missing = "%s is not here (tools/setup --all installs it)" % name
        # Shared memory alone, and waiting for as long as a core is another's.
        self.variables = dict(kAsRoot, OMPI_MCA_btl="self,vader" if not folder else "self,sm", OMPI_MCA_mpi_yield_when_idle="1")
        if self.prefix:
            self.variables["LD_LIBRARY_PATH"] = os.path.join(self.prefix, "lib")

    def program(self, name):
        path = os.path.join(kPrograms, "mpi_%s_%s" % (name, self.kind))
        if not os.path.exists(path):
            skip("%s is not built: what it needs was not there when the build was configured (tools/setup --all)" % path)
        return path

    def python(self):
        return os.path.join(self.prefix, "bin", "python3") if self.prefix else "/usr/bin/python3"

    def mpirun(self, ranks, *command):
        return [self.launcher, *self.options, "-np", str(ranks), *command]

    def environment(self, base=os.environ):
        kept = {name: value for name, value in base.items() if not name.startswith(("SLURM", "PMI", "PMIX"))}
        return dict(kept, **self.variables)


def libraries():
    """{name: Library}, those that are missing too."""
    made = [
        Library("openmpi4", "openmpi", "mpirun.openmpi", ["--oversubscribe"]),
        Library("mpich4", "mpich4", "mpirun.mpich"),
        Library("openmpi5", "openmpi", "mpirun", ["--oversubscribe"], folder="openmpi"),
        Library("mpich5", "mpich5", "mpirun", folder="mpich"),
        Library("large5", "large5", "mpirun", folder="mpich"),
    ]
    return {library.name: library for library in made}


def require(*names):
    """@return the libraries of these names; where one is missing the test is skipped, aloud"""
    all_of_them = libraries()
    for name in names:
        if all_of_them[name].missing:
            skip(all_of_them[name].missing)
    return [all_of_them[name] for name in names]
