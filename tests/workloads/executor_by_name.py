"""Serves one request of its own in a capture, hands work to a thread and makes a task of a coroutine, each by its arguments' names, and does both
once more when the capture has ended.

    executor_by_name.py CONDITIONS_DIRECTORY
"""
import asyncio
import sys

import conditions
import ringside


def on_thread():
    with ringside.range("on a thread"):
        return "done"


async def task():
    return "done"


async def by_name():
    loop = asyncio.get_running_loop()
    made = loop.get_task_factory()(loop=loop, coro=task())
    return "%s %s" % (await loop.run_in_executor(executor=None, func=on_thread), await made)


async def main():
    for finder in sys.meta_path:
        if hasattr(finder, "find_spec"):
            finder.find_spec(fullname="nobody_s", path=None, target=None)
    conditions.announce(sys.argv[1], "ready")
    conditions.await_condition(sys.argv[1], "serve")
    print("in the capture: %s" % await ringside.server("served").run(by_name()), flush=True)
    conditions.announce(sys.argv[1], "served")
    while ringside.active():
        await asyncio.sleep(conditions.kPollSeconds)
    print("after it: %s" % await by_name(), flush=True)


asyncio.run(main())
