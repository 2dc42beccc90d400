"""Prints what a program can see of gRPC's objects: types, results, exceptions, metadata, callbacks, in both APIs. One line a fact."""
import asyncio
import gc
import inspect
import logging
import threading
from concurrent import futures

import grpc

logging.disable(logging.CRITICAL)


kOwn = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"  # a traceparent of the program's own
served = set()
waits = threading.Event()


def tell(what, value):
    print("%s: %s" % (what, value), flush=True)


def tell_served(what, value):
    """What servers see, told at the end: it has no order."""
    served.add("%s: %s" % (what, value))


class Service(grpc.GenericRpcHandler):
    """The kind of behavior that each method has: sync functions, which both servers take."""

    def service(self, details):
        name = details.method.rpartition("/")[2]
        keys = sorted(k for k, _ in details.invocation_metadata if k != "traceparent" and not k.startswith(("user-agent", "grpc-")))
        tell_served("service %s" % name, (type(details).__name__, keys, [v for _, v in details.invocation_metadata if v == kOwn]))
        return {"Echo": lambda: grpc.unary_unary_rpc_method_handler(self.echo), "Fail": lambda: grpc.unary_unary_rpc_method_handler(self.fail),
                "Raise": lambda: grpc.unary_unary_rpc_method_handler(self.bad), "List": lambda: grpc.unary_stream_rpc_method_handler(self.list),
                "Join": lambda: grpc.stream_unary_rpc_method_handler(lambda requests, context: b"".join(requests)),
                "Each": lambda: grpc.stream_stream_rpc_method_handler(lambda requests, context: (r + r for r in requests)),
                "Wait": lambda: grpc.unary_unary_rpc_method_handler(self.wait)}.get(name, lambda: None)()

    def echo(self, request, context):
        context.send_initial_metadata((("first", "1"),))
        context.set_trailing_metadata((("last", "2"),))
        tell_served("handler's context", type(context).__name__)
        return request

    def fail(self, request, context):
        context.set_trailing_metadata((("why", "so"),))
        context.abort(grpc.StatusCode.NOT_FOUND, "nothing there")

    def bad(self, request, context):
        raise KeyError("bad")

    def list(self, request, context):
        for i in range(3):
            yield b"%d" % i

    def wait(self, request, context):
        over = threading.Event()
        waits.set()
        if context.add_callback(over.set):
            over.wait(10)
        return b""


class Mine(grpc.UnaryUnaryClientInterceptor):
    def intercept_unary_unary(self, continuation, details, request):
        tell("interceptor", (type(details).__name__, details.method, details.metadata))
        return continuation(details, request)


class Behind(grpc.ServerInterceptor):
    def intercept_service(self, continuation, details):
        handler = continuation(details)
        tell_served("server interceptor", (details.method, type(handler).__name__))
        return handler


def once(key, own=False, failure=None):
    """Metadata that can be read only once. failure: where they end"""
    yield key, "x"
    if failure is not None:
        raise failure
    if own:
        yield "traceparent", kOwn


def told(failure):
    return type(failure).__name__, failure.code(), failure.details(), [tuple(p) for p in failure.trailing_metadata() or ()], isinstance(failure, grpc.RpcError)


def sync():
    server = grpc.server(futures.ThreadPoolExecutor(8), handlers=(Service(),), interceptors=[Behind()])
    tell("server", (type(server).__name__, str(inspect.signature(grpc.server))))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    channel = grpc.insecure_channel("127.0.0.1:%d" % port)
    echo, each = channel.unary_unary("/s.S/Echo"), channel.stream_stream("/s.S/Each")
    tell("channel", (type(channel).__name__, type(echo).__name__, type(each).__name__))
    tell("signature", (str(inspect.signature(type(echo).__call__)), type(echo).future.__name__, type(echo).__call__.__qualname__))
    tell("answer", echo(b"a", metadata=[("mine", "x")]))
    tell("metadata read once", (echo(b"a", metadata=once("once")), echo(b"a", metadata=iter([("once-too", "x")]))))
    tell("and with an id", (echo(b"a", metadata=once("with-own", own=True)), echo.future(b"a", metadata=once("future", own=True)).result(timeout=10)))
    answer, call = echo.with_call(b"a", 5, (("mine", "x"),))
    tell("with_call", (answer, type(call).__name__, call.code(), call.details(), call.initial_metadata(), call.trailing_metadata(), call.done()))
    future = echo.future(b"a")
    called = threading.Event()
    same = []
    future.add_done_callback(lambda f: (same.append(f is future), called.set()))
    tell("future", (type(future).__name__, future.result(timeout=10), called.wait(10), same, future.exception(), future.cancelled(), future.is_active()))
    with_mine = grpc.intercept_channel(channel, Mine())
    tell("intercepted", (type(with_mine).__name__, type(with_mine.unary_unary("/s.S/Echo")).__name__, with_mine.unary_unary("/s.S/Echo")(b"b")))
    stream = channel.unary_stream("/s.S/List")(b"")
    tell("stream", (type(stream).__name__, list(stream), stream.code(), stream.done()))
    tell("join", channel.stream_unary("/s.S/Join")(iter([b"a", b"b"])))
    tell("each", list(each(iter([b"a", b"b"]))))
    for name, timeout in (("Fail", None), ("Raise", None), ("Nowhere", None), ("Wait", 0.1)):
        try:
            channel.unary_unary("/s.S/" + name)(b"", timeout=timeout)
        except grpc.RpcError as failure:
            tell(name, told(failure))
    waits.clear()
    waiting = channel.unary_unary("/s.S/Wait").future(b"")
    waits.wait(10)
    tell("cancel", (waiting.cancel(), waiting.cancelled(), waiting.code()))
    try:
        waiting.result()
    except grpc.FutureCancelledError as failure:
        tell("cancelled", type(failure).__name__)
    for wrong in (lambda: echo(), lambda: echo(b"", metadata=[("Upper", "x")]), lambda: echo(b"", metadata=7), lambda: echo(b"", none=1),
                  lambda: echo(b"", metadata=iter([("mine",)])), lambda: echo(b"", metadata=once("unseen", failure=KeyError("own")))):
        try:
            wrong()
        except Exception as failure:
            tell("wrong", (type(failure).__name__, str(failure).partition(" [")[0]))  # a list of metadata has ours in it
    failing = channel.unary_unary("/s.S/Echo", request_serializer=lambda _: 1 / 0)
    try:
        failing(b"")
    except grpc.RpcError as failure:
        tell("serializer", told(failure)[:3])
    collected = channel.unary_stream("/s.S/List")(b"")
    del collected
    gc.collect()
    channel.close()
    try:
        echo(b"")
    except ValueError as failure:
        tell("closed", str(failure))
    server.stop(None).wait()


class MineToo(grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(self, continuation, details, request):
        tell("aio interceptor", (type(details).__name__, details.method, sorted(details.metadata or ())))
        return await continuation(details, request)


async def aio():
    server = grpc.aio.server(futures.ThreadPoolExecutor(8), handlers=(Service(), Coroutines()))
    tell("aio server", (type(server).__name__, str(inspect.signature(grpc.aio.server))))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = grpc.aio.insecure_channel("127.0.0.1:%d" % port)
    for name in ("Echo", "CoEcho"):
        call = channel.unary_unary("/s.S/" + name)(b"a", metadata=grpc.aio.Metadata(("mine", "x")))
        done = []
        call.add_done_callback(lambda c: done.append(c is call))
        tell("aio " + name, (type(call).__name__, await call, await call.code(), [tuple(p) for p in await call.trailing_metadata()], done))
    for metadata in (iter([("aio-once", "x")]), once("aio-own", own=True), once("aio-unseen", failure=KeyError("own"))):
        try:
            tell("aio metadata read once", await channel.unary_unary("/s.S/Echo")(b"a", metadata=metadata))
        except Exception as failure:
            tell("aio metadata read once", (type(failure).__name__, str(failure)))
    for name in ("List", "CoList", "CoWrite"):
        call = channel.unary_stream("/s.S/" + name)(b"")
        tell("aio " + name, (type(call).__name__, [one async for one in call], await call.code()))
    tell("aio join", await channel.stream_unary("/s.S/CoJoin")(iter([b"a", b"b"])))
    each = channel.stream_stream("/s.S/CoEach")()
    await each.write(b"a")
    tell("aio each", (type(each).__name__, await each.read()))
    await each.done_writing()
    tell("aio each's end", (await each.read() is grpc.aio.EOF, await each.code()))
    for name, timeout in (("CoFail", None), ("CoRaise", None), ("Nowhere", None), ("CoWait", 0.1)):
        try:
            await channel.unary_unary("/s.S/" + name)(b"", timeout=timeout)
        except grpc.RpcError as failure:
            tell(name, told(failure))
    waiting = channel.unary_unary("/s.S/CoWait")(b"")
    await asyncio.sleep(0.05)
    tell("aio cancel", (waiting.cancel(), waiting.cancelled()))
    try:
        await waiting
    except asyncio.CancelledError as failure:
        tell("aio cancelled", type(failure).__name__)
    async with grpc.aio.insecure_channel("127.0.0.1:%d" % port, interceptors=[MineToo()]) as other:
        call = other.unary_unary("/s.S/CoEcho")(b"b")
        tell("aio intercepted", (type(call).__name__, await call))
    await channel.close()
    try:
        channel.unary_unary("/s.S/CoEcho")(b"")
    except Exception as failure:
        tell("aio closed", (type(failure).__name__, str(failure)))
    await server.stop(None)


class Coroutines(grpc.GenericRpcHandler):
    def service(self, details):
        name = details.method.rpartition("/")[2]
        return {"CoEcho": lambda: grpc.unary_unary_rpc_method_handler(self.echo), "CoFail": lambda: grpc.unary_unary_rpc_method_handler(self.fail),
                "CoRaise": lambda: grpc.unary_unary_rpc_method_handler(self.bad), "CoList": lambda: grpc.unary_stream_rpc_method_handler(self.list),
                "CoWrite": lambda: grpc.unary_stream_rpc_method_handler(self.write), "CoWait": lambda: grpc.unary_unary_rpc_method_handler(self.wait),
                "CoJoin": lambda: grpc.stream_unary_rpc_method_handler(self.join),
                "CoEach": lambda: grpc.stream_stream_rpc_method_handler(self.each)}.get(name, lambda: None)()

    async def echo(self, request, context):
        context.set_trailing_metadata((("last", "2"),))
        tasks = await asyncio.gather(self.child(), asyncio.create_task(self.child(), name="child"), asyncio.to_thread(len, request))
        tell_served("coroutine's context", (type(context).__name__, tasks))
        return request

    async def child(self):
        task = asyncio.current_task()
        await asyncio.sleep(0)
        return type(task).__name__, task.get_coro().__name__, task.get_name() == "child"

    async def fail(self, request, context):
        await context.abort(grpc.StatusCode.NOT_FOUND, "nothing there", (("why", "so"),))

    async def bad(self, request, context):
        raise KeyError("bad")

    async def list(self, request, context):
        for i in range(3):
            yield b"%d" % i

    async def write(self, request, context):
        for i in range(3):
            await context.write(b"%d" % i)

    async def wait(self, request, context):
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            tell_served("handler", "cancelled")
            raise

    async def join(self, requests, context):
        return b"".join([one async for one in requests])

    async def each(self, requests, context):
        async for one in requests:
            yield one + one


sync()
asyncio.run(aio())
print("\n".join(sorted(served)))
