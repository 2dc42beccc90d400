"""What this machine has of what the GPU tests need: each thing, or the reason why it is not there. Nothing here assumes that anything is."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tarfile

kHere = os.path.dirname(os.path.abspath(__file__))
kRoot = os.path.dirname(os.path.dirname(kHere))
# A driver that hangs must not take us along: each question is asked in a process of its own.
kAskDriver = """
import ctypes, sys
try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError as error:
    sys.exit("no driver: %s" % error)
status, count, version, name = cuda.cuInit(0), ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(200)
if status:
    sys.exit("cuInit() fails with %d" % status)
cuda.cuDeviceGetCount(ctypes.byref(count))
cuda.cuDriverGetVersion(ctypes.byref(version))
if count.value == 0:
    sys.exit("the driver sees no device")
cuda.cuDeviceGetName(name, 200, 0)
print("%s, %d device%s, driver for CUDA %d.%d" % (name.value.decode(), count.value, "s" * (count.value != 1), version.value // 1000, version.value % 1000 // 10))
"""
kReaderNeeds = ("flatbuffers", "xxhash")


def said(command, timeout_s=60, environment=None):
    """@return (whether it ended with 0, what it said; else why not)"""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout_s, env=environment,
                              encoding="utf-8", errors="replace", check=False)
    except subprocess.TimeoutExpired:
        return False, "no answer within %d s: %s" % (timeout_s, " ".join(command)[:200])
    except OSError as error:
        return False, str(error)
    return done.returncode == 0, done.stdout.strip()


def last(text):
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it has said nothing"


def gpu():
    """@return (its name, or None; why there is none)"""
    found, text = said([sys.executable, "-c", kAskDriver], 90)
    return (last(text), "") if found else (None, last(text))


def pythons(named):
    candidates = [named, sys.executable, shutil.which("python3"), "/usr/bin/python3", shutil.which("python")]
    candidates += sorted(glob.glob(os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "ringside", "torch-2*", "bin", "python3")))
    return [one for one in dict.fromkeys(candidates) if one and os.access(one, os.X_OK)]


def python_with(modules, named, what, among=None):
    """@return (path, what it says of itself), or (None, why)"""
    tried = []
    for one in among or pythons(named):
        found, text = said([one, "-c", "import sys, %s; print(%s)" % (", ".join(modules), what)], 180)
        if found:
            return one, last(text)
        tried.append("%s: %s" % (one, last(text)))
    return None, "no Python here has %s (%s)" % (" and ".join(modules), "; ".join(tried)[-600:])


def torch_python(named):
    """The first whose torch sees the GPU; where none does, the newest."""
    what = "'torch %s, CUDA %s, %s' % (torch.__version__, torch.version.cuda, 'sees the GPU' if torch.cuda.is_available() else 'sees no GPU')"
    best, why = None, ""
    for one in [named] if named else pythons(None):
        found, text = python_with(["torch", "torch.distributed.rpc"], one, what, [one])
        why += "" if found else text + "; "
        if found and "sees the GPU" in text:
            return found, text
        if found and (best is None or version_of(text) > version_of(best[1])):
            best = found, text
    return best or (None, why)


def version_of(text):
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])


def reader_python():
    """Who runs the cases: the second reader's modules are all that they need."""
    return python_with(kReaderNeeds, None, "sys.version.split()[0]")


def nvcc():
    """@return (path, its release), or (None, why)"""
    candidates = [shutil.which("nvcc"), *sorted(glob.glob("/usr/local/cuda*/bin/nvcc")), said([os.path.join(kRoot, "tools", "setup_nvcc"), "--path"])[1]]
    for one in candidates:
        if one and os.access(one, os.X_OK):
            found, text = said([one, "--version"])
            if found:
                return one, next((line.strip() for line in text.splitlines() if "release" in line), "?")
    return None, "no nvcc here (tools/setup_nvcc fetches one)"


def build_program(compiler, header, out):
    """For Hopper, and as PTX for whatever else. @return "", or the compiler's words"""
    libraries = os.path.join(os.path.dirname(os.path.dirname(os.path.realpath(compiler))), "lib")
    found, text = said([compiler, "-std=c++17", "-O2", "-gencode", "arch=compute_90,code=sm_90", "-gencode", "arch=compute_75,code=compute_75", "-cudart", "static",
                        "-L", libraries, "-I", header, "-o", out, os.path.join(kHere, "program.cu"), "-ldl"], 300)
    return "" if found else text[-3000:] or "nvcc fails and says nothing"


def ringside(bundle, build, folder):
    """Where Ringside is: {command, agent, shim, header}; a bundle's tarball is unpacked into `folder`. @return (paths, where), or (None, why)"""
    if bundle:
        home = bundle
        if os.path.isfile(bundle):
            home = os.path.join(folder, "bundle")
            os.makedirs(home, exist_ok=True)
            try:
                with tarfile.open(bundle) as archive:
                    archive.extractall(home)
            except (OSError, tarfile.TarError) as error:
                return None, "%s can't be unpacked: %s" % (bundle, error)
        for top in [home, *sorted(glob.glob(os.path.join(home, "*", "")))]:
            paths = {"command": os.path.join(top, "bin", "ringside"), "agent": os.path.join(top, "bin", "ringside-agent"),
                     "shim": os.path.join(top, "lib", "ringside", "libringside_inject.so"), "header": os.path.join(top, "include")}
            if os.path.exists(paths["command"]):
                break
    else:
        paths = {"command": os.path.join(build, "tools", "ringside"), "agent": os.path.join(build, "agent", "ringside-agent"),
                 "shim": os.path.join(build, "inject", "libringside_inject.so"), "header": os.path.join(kRoot, "inject", "sources", "api")}
    missing = [path for path in (*paths.values(), os.path.join(os.path.dirname(paths["shim"]), "libringside_cupti.so")) if not os.path.exists(path)]
    if missing:
        return None, "not there: %s; tools/setup builds it, or give --bundle what tools/bundle has made" % missing[0]
    paths = {key: os.path.abspath(path) for key, path in paths.items()}
    found, text = said([paths["command"], "version"])
    if not found:
        return None, "%s does not run here: %s" % (paths["command"], text[-400:])
    return paths, "%s, %s" % (text.splitlines()[0], bundle or build)


def commit(packed=None):
    """@param packed  a folder that --pack has made, which says it where no repository is"""
    if packed and os.path.exists(os.path.join(packed, "commit")):
        with open(os.path.join(packed, "commit")) as text:
            return text.read().strip()
    found, text = said(["git", "-C", kRoot, "describe", "--always", "--dirty"])
    return text if found else "unknown"


def libcupti(torch_python_path):
    """A folder that the loader must be told of so that a program without CUPTI finds one, or None. @return (folder, what to say of it)"""
    names = ("libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8")
    for name in names:
        if said([sys.executable, "-c", "import ctypes; ctypes.CDLL('%s')" % name])[0]:
            return None, name + ", where the loader looks"
        if os.path.exists("/usr/local/cuda/extras/CUPTI/lib64/" + name):
            return None, name + ", of the toolkit"
    folders = ["/usr/local/cuda*/lib64", "/usr/local/cuda*/extras/CUPTI/lib64", "/usr/local/cuda*/targets/x86_64-linux/lib", "/opt/nvidia/*/extras/CUPTI/lib64"]
    if torch_python_path:
        found, text = said([torch_python_path, "-c", "import site, sys; print('\\n'.join(site.getsitepackages()))"])
        folders = [os.path.join(line, "nvidia", part, "lib") for line in (text.splitlines() if found else ()) for part in ("cu13", "cuda_cupti")] + folders
    for name in names:
        for folder in folders:
            for path in sorted(glob.glob(os.path.join(folder, name))):
                return os.path.dirname(path), path + ", by LD_LIBRARY_PATH for the cases without torch"
    return None, "none found: those cases will say so"


def facts(packed=None):
    """Of the machine, for the table's head."""
    shared = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    told = {"kernel": " ".join(os.uname()[:3:2]), "processors": os.cpu_count(), "commit": commit(packed),
            "/dev/shm": "%d MiB free" % (shared.f_bavail * shared.f_frsize >> 20) if shared else "not there"}
    found, text = said(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"])
    told["nvidia-smi"] = last(text) if found else "not there"
    return told
