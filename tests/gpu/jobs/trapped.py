"""A torch process in which each entry point of the libcupti that it maps is a trap: whoever calls one dies of SIGTRAP. Says how many, works, waits, works.

    trapped.py DIR [DEVICE]     says DIR/ready with the number of traps, works on at DIR/go, ends at DIR/end
"""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "workloads"))
import conditions
import elf
import torch

kPage = os.sysconf("SC_PAGE_SIZE")
kReadWriteRun = 7


def mapped(part):
    """(path, base) of the first object whose file's name begins so."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            fields = line.split()
            if len(fields) >= 6 and os.path.basename(fields[5]).startswith(part):
                return fields[5], int(fields[0].split("-")[0], 16) - int(fields[2], 16)
    return None, 0


def set_traps(path, base):
    """@return how many"""
    libc = ctypes.CDLL(None, use_errno=True)
    entries = {base + value for name, value in elf.Elf(path).exported_functions() if name.startswith("cupti")}
    for at in entries:
        page = at & -kPage
        if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(kPage), kReadWriteRun) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
        ctypes.memset(at, 0xCC, 1)
    return len(entries)


def work(device):
    for _ in range(50):
        torch.ones(4, 4, device=device) @ torch.ones(4, 4, device=device)
    if device != "cpu":
        torch.cuda.synchronize()


def main():
    folder, device = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "cuda"
    work(device)
    path, base = mapped("libcupti.so")
    conditions.announce(folder, "ready", str(set_traps(path, base) if path else 0))
    conditions.await_condition(folder, "go")
    work(device)
    conditions.announce(folder, "worked")
    conditions.await_condition(folder, "end")


main()
