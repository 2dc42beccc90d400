"""Requests that overlap on one thread: a grpc.aio server whose handlers go step by step in turns, with torch's operators, ranges, child tasks and
nested calls. Every operator and range says by its name (and payload) whose it is.

    grpc_overlap.py [--rounds N] [--own]       --own: no gRPC, a server of the program's own with ringside.server(...).run(...)

A round is two requests at a time, sine_N and cosine_N; each calls inner_SINE-or-COSINE-N. Of operators: aten::sin in sine, aten::cos in cosine,
aten::tan in inner, aten::exp outside of all, all the time.
"""
import argparse
import asyncio
import contextlib

import torch

try:
    import ringside
except ImportError:
    ringside = None

kOperators = {"sine": torch.sin, "cosine": torch.cos, "inner": torch.tan}
x = torch.ones(2)
turns = {}  # round -> the two requests' meeting


class Meeting:
    """Both take a step, one after the other: neither takes two while the other has not taken one."""

    def __init__(self):
        self.count, self.waiting = 0, None

    async def turn(self):
        self.count += 1
        if self.waiting is None:
            self.waiting = asyncio.get_running_loop().create_future()
            await self.waiting
        else:
            waiting, self.waiting = self.waiting, None
            waiting.set_result(None)
            await asyncio.sleep(0)


def work(name, what):
    """One step of a request, that nothing waits in."""
    whose = name.rstrip("0123456789")
    with ringside.range("%s of %s" % (what, whose), payload=int(name[len(whose):])) if ringside else contextlib.nullcontext():
        kOperators[name.partition("_")[0]](x)


async def child(name, what):
    work(name, what + " begins")
    await asyncio.sleep(0)
    work(name, what + " ends")


async def handle(name, call):
    """@param call  calls another method of the server"""
    kind, _, number = name.partition("_")
    work(name, "first step")
    if kind == "inner":
        await asyncio.sleep(0)
        work(name, "last step")
        return name.encode()
    meeting = turns.setdefault(number, Meeting())
    for step in range(3):
        await meeting.turn()
        work(name, "step %d" % step)
    task = asyncio.get_running_loop().create_task(child(name, "task"))
    answer = await call("inner_%s-%s" % (kind, number))
    work(name, "after inner")
    await asyncio.gather(task, child(name, "gathered"), asyncio.wait_for(child(name, "waited for"), 10))
    await asyncio.to_thread(work, name, "thread")
    await meeting.turn()
    work(name, "last step")
    turns.pop(number, None)
    return answer


async def outside(over):
    while not over.is_set():
        torch.exp(x)
        await asyncio.sleep(0)


async def rounds(call, count):
    over = asyncio.Event()
    idle = asyncio.create_task(outside(over))
    for number in range(count):
        await asyncio.gather(call("sine_%d" % number), call("cosine_%d" % number))
    over.set()
    await idle


async def over_grpc(count):
    import grpc

    class Service(grpc.GenericRpcHandler):
        def service(self, details):
            name = details.method.rpartition("/")[2]

            async def behavior(request, context):
                return await handle(name, call)

            return grpc.unary_unary_rpc_method_handler(behavior)

    server = grpc.aio.server(handlers=(Service(),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel("127.0.0.1:%d" % port) as channel:
        async def call(name):
            return await channel.unary_unary("/overlap.Service/" + name)(b"")

        await rounds(call, count)
    await server.stop(None)


async def over_own(count):
    """A program's own RPCs: a queue, and a task for each request."""
    loop = asyncio.get_running_loop()
    queue = asyncio.Queue()

    async def serve_one(name, carried, answer):
        answer.set_result(await ringside.server(name, carried, peer="own").run(handle(name, call)))

    async def serve():
        tasks = set()
        while True:
            tasks.add(asyncio.create_task(serve_one(*await queue.get())))

    async def call(name):
        with ringside.client(name, peer="own") as half:
            answer = loop.create_future()
            queue.put_nowait((name, half.text(), answer))
            return await answer

    server = asyncio.create_task(serve())
    await rounds(call, count)
    server.cancel()


parser = argparse.ArgumentParser()
parser.add_argument("--rounds", type=int, default=1000)
parser.add_argument("--own", action="store_true")
options = parser.parse_args()
asyncio.run((over_own if options.own else over_grpc)(options.rounds))
