"""The churn in a process with torch: threads that come and go, children as DataLoader has them, programs; each record a numbered range, with one operator
in it. Nothing in here knows of captures.

    torch_churn.py steady BOARD LIBRARY       lives through all rounds
    torch_churn.py leaf BOARD LIBRARY         one short life, from its import of torch on
"""
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import torch

kGoes, kEnds = 1, 2  # board.hpp, Board::round
kSteadyThreads = 2
kRareLife = 40  # an import of torch takes seconds
torch.set_num_threads(1)
kTensor = torch.ones(3)
library = ctypes.CDLL(sys.argv[3])
for name in ("churn_open", "churn_recorder"):
    getattr(library, name).restype = ctypes.c_void_p
board = ctypes.c_void_p(library.churn_open(sys.argv[2].encode()))


class Recorder:
    """One thread's; each process's are its own."""

    def __init__(self):
        self._it = ctypes.c_void_p(library.churn_recorder(board))

    def random(self, below):
        return library.churn_random(self._it, below)

    def burst(self, count):
        for _ in range(count):
            if not library.churn_begin(self._it):
                return
            torch.neg(kTensor)
            library.churn_end()

    def rest(self):
        library.churn_rest(self._it)

    def close(self):
        library.churn_close(self._it)


def short_thread():
    recorder = Recorder()
    recorder.burst(1 + recorder.random(20))
    recorder.close()


def threads(count):
    started = [threading.Thread(target=short_thread) for _ in range(count)]
    for one in started:
        one.start()
    return started


def live(life):
    """A forked child's, to its end: as a worker of DataLoader it goes on in what its parent has left it."""
    library.churn_life(board)
    recorder = Recorder()
    recorder.burst(1 + recorder.random(30))
    if life == 1:
        for one in threads(1 + recorder.random(3)):
            one.join()
    if life == 2:
        forked(0)
        recorder.burst(5)
    recorder.rest()
    if life == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    if life == 4:
        os.execv("/bin/true", ["true"])
    if life == 5:
        os.execv(sys.executable, [sys.executable, "-W", "ignore", os.path.abspath(__file__), "leaf", *sys.argv[2:4]])
    os._exit(0)


def forked(life):
    pid = os.fork()
    if pid == 0:
        try:
            live(life)
        finally:
            os._exit(3)
    status = os.waitpid(pid, 0)[1]
    if status not in (0, signal.SIGKILL):
        sys.stderr.write("pid %d of life %d ended with status %#x\n" % (pid, life, status))
        sys.stderr.flush()
        os._exit(4)


def turns(turn):
    """Until the end: records while a round is on, rests between two."""
    recorder = Recorder()
    while library.churn_round(board) != kEnds:
        if library.churn_round(board) == kGoes:
            turn(recorder)
            continue
        recorder.rest()
        library.churn_resting(board, 1)
        while library.churn_round(board) not in (kGoes, kEnds):
            time.sleep(0.001)
        library.churn_resting(board, -1)
    recorder.close()


def steady_turn(recorder):
    recorder.burst(1 + recorder.random(10))
    time.sleep((1 + recorder.random(8)) / 1000)


def main_turn(recorder):
    others = threads(1 + recorder.random(4))
    recorder.burst(3)
    kind = recorder.random(10)
    if kind == 0:
        subprocess.run(["/bin/true"], check=True)  # by vfork
    elif kind < 6:
        forked(5 if recorder.random(kRareLife) == 0 else recorder.random(5))
    for one in others:
        one.join()
    time.sleep((2 + recorder.random(15)) / 1000)


def steady():
    library.churn_life(board)
    other = threading.Thread(target=turns, args=(steady_turn,))
    other.start()
    turns(main_turn)
    other.join()


def leaf():
    recorder = Recorder()
    recorder.burst(1 + recorder.random(30))
    for one in threads(2):
        one.join()
    recorder.close()


if __name__ == "__main__":
    steady() if sys.argv[1] == "steady" else leaf()
