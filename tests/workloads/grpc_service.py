"""The service that the tests of gRPC in Python call: a server of either API, in a process of its own. Run as a program, it serves until its
standard input ends, and tells its port, and at the end each request that it has seen: {"method", "traceparent"}.

    grpc_service.py sync|aio

Methods are /calls.Service/KIND_WHAT_NUMBER. KIND: uu, us, su, ss (unary or stream, request and answer). WHAT: plain; nested, which calls
/calls.Service/uu_inner_NUMBER; fail, which aborts; raise; slow, which waits until it is given up; endless (streams).
"""
import asyncio
import json
import sys
import threading
from concurrent import futures

import grpc

try:
    import ringside
except ImportError:
    ringside = None

kKinds = {"uu": grpc.unary_unary_rpc_method_handler, "us": grpc.unary_stream_rpc_method_handler,
          "su": grpc.stream_unary_rpc_method_handler, "ss": grpc.stream_stream_rpc_method_handler}
seen = []


def work(name):
    """What can be seen of a request."""
    if ringside:
        with ringside.range("work of " + name):
            pass


class Service(grpc.GenericRpcHandler):
    def __init__(self):
        self.address = None

    def service(self, details):
        name = details.method.rpartition("/")[2]
        kind, what, number = name.split("_")
        seen.append({"method": name, "traceparent": dict(details.invocation_metadata).get("traceparent")})
        make = self.stream if kind[1] == "s" else self.answer
        return kKinds[kind](make(name, kind, what, number))


class Sync(Service):
    def gather(self, kind, request):
        return b"".join(request) if kind[0] == "s" else request

    def take(self, name, kind, what, number, request, context):
        work(name)
        given = self.gather(kind, request)
        if what == "fail":
            context.set_trailing_metadata((("why", "it fails"),))
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it fails")
        if what == "raise":
            raise ValueError("it raises")
        if what == "slow":
            over = threading.Event()
            if context.add_callback(over.set):
                over.wait(20)
        if what == "nested":
            with grpc.insecure_channel(self.address) as channel:
                channel.unary_unary("/calls.Service/uu_inner_" + number)(given)
        work(name)
        return given

    def answer(self, *about):
        return lambda request, context: self.take(*about, request, context)

    def stream(self, name, kind, what, number):
        def answers(request, context):
            given = self.take(name, kind, what, number, request, context)
            count = 0
            while context.is_active() and (what == "endless" or count < 3):
                work(name)
                count += 1
                yield given

        return answers


class Aio(Service):
    async def take(self, name, kind, what, number, request, context):
        work(name)
        given = b"".join([one async for one in request]) if kind[0] == "s" else request
        if what == "fail":
            context.set_trailing_metadata((("why", "it fails"),))
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "it fails")
        if what == "raise":
            raise ValueError("it raises")
        if what == "slow":
            await asyncio.sleep(20)
        if what == "nested":
            async with grpc.aio.insecure_channel(self.address) as channel:
                await channel.unary_unary("/calls.Service/uu_inner_" + number)(given)
        work(name)
        return given

    def answer(self, *about):
        async def answer(request, context):
            return await self.take(*about, request, context)

        return answer

    def stream(self, name, kind, what, number):
        async def answers(request, context):
            given = await self.take(name, kind, what, number, request, context)
            count = 0
            while what == "endless" or count < 3:
                work(name)
                await asyncio.sleep(0)
                count += 1
                yield given

        return answers


async def serve_aio():
    service = Aio()
    server = grpc.aio.server(handlers=(service,))
    tell(service, server.add_insecure_port("127.0.0.1:0"))
    await server.start()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(None)


def tell(service, port):
    service.address = "127.0.0.1:%d" % port
    print(port, flush=True)


def main(api):
    if api == "aio":
        asyncio.run(serve_aio())
    else:
        service = Sync()
        server = grpc.server(futures.ThreadPoolExecutor(24), handlers=(service,))
        tell(service, server.add_insecure_port("127.0.0.1:0"))
        server.start()
        sys.stdin.read()
        server.stop(None).wait()
    print(json.dumps(seen), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
