"""Requests that coroutines serve: many on one thread, so that the thread's request is switched at each step of each coroutine.

A coroutine that serves is wrapped in Steps, which put the request on before it goes on and take it off when it waits. Whose tasks are whose a
context variable knows: a loop on which a request is served gets a task factory, in front of the one that is there, that wraps the tasks that
are made while serving, and work that is handed to a thread (to_thread, run_in_executor) is wrapped likewise. Both let everything else through,
and name their arguments as asyncio does, for programs give them by name.
Python 3.7 and newer.
"""
import asyncio
import collections.abc
import contextvars
import functools

from . import api

served = contextvars.ContextVar("ringside_served", default=None)
_word = api._word


class Steps(collections.abc.Coroutine):
    """A coroutine whose steps belong to `half`'s request. Whatever else is asked of it, the coroutine itself answers."""

    __slots__ = ("_inner", "_turn")

    def __init__(self, inner, half):
        self._inner, self._turn = inner, half.turn()

    def send(self, value):
        if not self._turn.on():
            return self._inner.send(value)
        try:
            return self._inner.send(value)
        finally:
            self._turn.off()

    def throw(self, *failure):
        if not self._turn.on():
            return self._inner.throw(*failure)
        try:
            return self._inner.throw(*failure)
        finally:
            self._turn.off()

    def close(self):
        self._inner.close()

    def __await__(self):
        return self

    __iter__ = __await__

    def __next__(self):
        return self.send(None)

    def __getattr__(self, name):
        return getattr(self._inner, name)


def _of_this_task(context=None):
    half = served.get() if context is None else context.get(served)
    return half if half is not None and half.serving() else None


class _Tasks(object):
    """A task factory, in front of the one that was there."""

    def __init__(self, before):
        self._before = before

    def __call__(self, loop, coro, **more):
        if _word[0] & 1 and hasattr(coro, "send"):
            half = _of_this_task(more.get("context"))
            if half is not None:
                coro = Steps(coro, half)
        if self._before is not None:
            return self._before(loop, coro, **more)
        return asyncio.Task(coro, loop=loop, **more)


def _on_threads(original):
    @functools.wraps(original)
    def run_in_executor(self, executor, func, *args):
        half = _of_this_task() if _word[0] & 1 else None
        return original(self, executor, func if half is None else functools.partial(_served_by, half.turn(), func), *args)

    run_in_executor.ringside = True
    return run_in_executor


def _served_by(turn, function, *args):
    if not turn.on():
        return function(*args)
    try:
        return function(*args)
    finally:
        turn.off()


def _prepare():
    """The running loop's tasks and threads are seen from here on. Loops that are not asyncio's have neither; their coroutines' own steps are seen."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    factory = loop.get_task_factory()
    if type(factory) is not _Tasks:
        loop.set_task_factory(_Tasks(factory))
    kind = type(loop)
    if not hasattr(kind.run_in_executor, "ringside"):
        try:
            kind.run_in_executor = _on_threads(kind.run_in_executor)
        except TypeError:  # a type that can't be changed: its threads' work belongs to no request
            pass


class Serving(object):
    """`with Serving(half):` in a coroutine: the tasks that it makes are the request's. Its own steps are for Steps."""

    def __init__(self, half):
        self._half, self._before = half, None

    def __enter__(self):
        _prepare()
        self._before = served.get()
        served.set(self._half)

    def __exit__(self, *failure):
        served.set(self._before)  # not reset(): a generator may be closed elsewhere


async def run(half, coroutine):
    with Serving(half):
        try:
            result = await Steps(coroutine, half)
        except BaseException as failure:
            half.done(api.CANCELLED if isinstance(failure, asyncio.CancelledError) else api.ERROR)
            raise
    half.done()
    return result
