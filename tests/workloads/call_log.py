"""A job's own log of the RPCs that it makes: what a trace of it must show, seen from inside the job.

One JSON object a line: caller, callee, function, mode, begin_ns and end_ns (time.monotonic_ns), wall_ms, status ("ok" or the exception's
type), sleep_ms (of the function called, null if it does not sleep), round (n-th init_rpc of the process, from 1).
"""
import json
import threading
import time

import torch.distributed.rpc as rpc


class CallLog:
    """The log of one worker. Thread-safe: handlers and callbacks log as well as the main thread. Rows are kept until flush(): what an
    answer's thread does under the interpreter's lock would be in the next call's time."""

    def __init__(self, path):
        self._path = path
        self._rows = []
        self._lock = threading.Lock()
        self.worker = ""
        self.round = 0
        self._pending = set()

    def joined(self, worker):
        """After init_rpc: the process is that worker from now on."""
        self.worker = worker
        self.round += 1

    def _write(self, begin, end=None, **what):
        end = end or time.monotonic_ns()
        row = {"caller": self.worker, "begin_ns": begin, "end_ns": end, "wall_ms": (end - begin) / 1e6, "round": self.round}
        with self._lock:
            self._rows.append({**row, **what})

    def flush(self):
        """Appends the rows so far to the file."""
        with self._lock, open(self._path, "a") as out:
            out.writelines(json.dumps(row) + "\n" for row in self._rows)
            self._rows = []

    def sync(self, callee, function, name, args=(), sleep_ms=None, timeout=-1.0, expect=None):
        """rpc_sync. `expect`: the exception that the call must end with; it is swallowed."""
        begin = time.monotonic_ns()
        try:
            result = rpc.rpc_sync(callee, function, args=args, timeout=timeout)
        except Exception as failure:
            self._write(begin, callee=callee, function=name, mode="sync", status=type(failure).__name__, sleep_ms=sleep_ms)
            if expect is None or not isinstance(failure, expect):
                raise
            return None
        self._write(begin, callee=callee, function=name, mode="sync", status="ok", sleep_ms=sleep_ms)
        return result

    def asynchronous(self, callee, function, name, args=(), sleep_ms=None):
        """rpc_async. The row is written when the answer is there, which may be before anybody waits."""
        begin = time.monotonic_ns()
        future = rpc.rpc_async(callee, function, args=args)
        written = threading.Event()

        def done(answered):
            end = time.monotonic_ns()
            try:
                answered.wait()
                status = "ok"
            except Exception as failure:
                status = type(failure).__name__
            self._write(begin, end, callee=callee, function=name, mode="async", status=status, sleep_ms=sleep_ms)
            written.set()

        future.add_done_callback(done)
        with self._lock:
            self._pending.add(written)
        return future

    def remote(self, callee, function, name, args=(), sleep_ms=None):
        """remote, then to_here: two rows. The first lasts until the owner has confirmed."""
        begin = time.monotonic_ns()
        rref = rpc.remote(callee, function, args=args)
        created = rref._get_future()
        created.wait()
        self._write(begin, callee=callee, function=name, mode="remote", status="ok", sleep_ms=sleep_ms)
        return rref

    def fetch(self, callee, rref):
        begin = time.monotonic_ns()
        value = rref.to_here()
        self._write(begin, callee=callee, function="to_here", mode="fetch", status="ok", sleep_ms=None)
        return value

    def settle(self):
        """Waits until every asynchronous call has its row, and flushes."""
        with self._lock:
            pending, self._pending = self._pending, set()
        for written in pending:
            if not written.wait(60):
                raise TimeoutError("an asynchronous call has not ended after 60 s")
        self.flush()
