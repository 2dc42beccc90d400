"""Idle is shown by structure before it is timed: in a process with the shim and no capture each of torch's RPC slots has its original target,
torch has no callback, the segment has no lane, and there is one thread more than without the shim (the helper)."""
import ctypes
import os
import re
import subprocess

HOOKED = ("TensorPipeAgent4send", "TensorPipeAgent9pipeWrite", "TensorPipeAgent8pipeRead", "RequestCallbackcl",
          "markFutureWithError", "markFutureAsComplete", "sendCompletedResponseMessage", "ThreadPool3run")


def _mapped_objects():
    """Base address by path of torch's libraries in this process."""
    bases = {}
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.split()
            if len(fields) >= 6 and re.match(r"lib(torch|c10)", os.path.basename(fields[5])):
                bases.setdefault(fields[5], int(fields[0].split("-")[0], 16) - int(fields[2], 16))
    return bases


def _slots(path):
    """(offset, symbol) of the relocations by which hooked functions are reached."""
    text = subprocess.run(["readelf", "-rW", path], capture_output=True, text=True, check=True).stdout
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[2] in ("R_X86_64_JUMP_SLOT", "R_X86_64_GLOB_DAT", "R_X86_64_64") and any(
                name in fields[4] for name in HOOKED):
            yield int(fields[0], 16), fields[4]


def _owner(address):
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.split()
            low, high = (int(x, 16) for x in fields[0].split("-"))
            if low <= address < high:
                return os.path.basename(fields[5]) if len(fields) >= 6 else "?"
    return "?"


def slot_targets():
    """For each slot of a hooked function: the library that it points into."""
    owners = []
    for path, base in _mapped_objects().items():
        for offset, _ in _slots(path):
            owners.append(_owner(ctypes.c_uint64.from_address(base + offset).value))
    return owners


def describe(torch_library):
    """What an idle process has of us. `torch_library`: a ctypes handle of libtorch_cpu."""
    has_callbacks = torch_library._ZN2at18hasGlobalCallbacksEv
    has_callbacks.restype = ctypes.c_bool
    owners = slot_targets()
    return {
        "slots": len(owners),
        "slots_ours": sum("ringside" in owner for owner in owners),
        "callbacks": int(has_callbacks()),
        "threads": len(os.listdir("/proc/self/task")),
    }
