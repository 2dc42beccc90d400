"""grpc.aio: the calls of grpc.aio._call, and an interceptor in servers whose handlers are coroutines, many on one thread. Python 3.7 and newer."""
import asyncio
import functools
import inspect

from . import api, grpc_sync
from .coroutines import Serving, Steps
from .grpc_calls import (Unknown, argument, begin_client, begin_server, failed_as, remember_targets, served_as, size_of, status_of,
                         target_of, with_behavior, with_interceptor, word)

def wrap_clients(grpc):
    from grpc.aio import _call, _channel

    remember_targets(_channel.Channel)
    missing = []
    for name in ("UnaryUnaryCall", "UnaryStreamCall", "StreamUnaryCall", "StreamStreamCall"):
        try:
            kind = getattr(_call, name)
            kind.__init__ = _wrap_call(kind.__init__, name.startswith("Unary"))
        except (AttributeError, Unknown) as failure:
            missing.append("aio: %s" % failure)
    if missing:
        raise Unknown(", ".join(missing))


def _wrap_call(original, unary):
    find_metadata, put_metadata = argument(original, "metadata")
    find_channel, _ = argument(original, "channel")
    find_method, _ = argument(original, "method")

    @functools.wraps(original)
    def __init__(self, *args, **named):
        if not word[0] & 1:
            return original(self, *args, **named)
        metadata = find_metadata(args, named)
        half, sent = begin_client(find_method(args, named), target_of(find_channel(args, named)), api.ASYNC, metadata,
                                  args[0] if unary and args else None)
        if sent is not metadata:
            args, named = put_metadata(args, named, sent)
        if half is None:
            return original(self, *args, **named)
        try:
            original(self, *args, **named)
        except BaseException as failure:
            half.done(failed_as(failure))
            raise
        _end_with(getattr(self, "_cython_call", None), half)

    return __init__


def _end_with(call, half):
    """The half ends when the call has. gRPC's inner call, which the program's does not keep alive: its end cancels this one."""
    held = [call]  # until then: it keeps its callbacks, and they would keep it

    def ended():
        status = getattr(held.pop(), "_status", None) if held else None
        half.done(api.CANCELLED if status is None else status_of(status.code()))

    if hasattr(call, "add_done_callback"):
        call.add_done_callback(ended)


def wrap_servers(grpc):
    class Interceptor(grpc.aio.ServerInterceptor):
        async def intercept_service(self, continuation, details):
            handler = await continuation(details)
            if not word[0] & 1 or handler is None:
                return handler
            about = details.method, details.invocation_metadata
            return with_behavior(grpc, handler, lambda behavior, streams: _serving(about, behavior, streams))

    ours = Interceptor()
    grpc.aio.server = with_interceptor(grpc.aio.server, ours)


def _serving(details, behavior, streams):
    """As gRPC does, by what the behavior is: a coroutine, an asynchronous generator, or a function that runs on a thread of its own."""
    if inspect.iscoroutinefunction(behavior):
        return _serve_coroutine(details, behavior)
    if inspect.isasyncgenfunction(behavior):
        return _serve_generator(details, behavior) if streams else None
    return grpc_sync.serving(details, behavior, streams)


def _failed(context, failure):
    return served_as(context, True, given_up=isinstance(failure, (asyncio.CancelledError, GeneratorExit)))


def _serve_coroutine(details, behavior):
    async def serve(request, context):
        half = begin_server(details, context, request)
        half.pause()  # until a step of the behavior
        with Serving(half):
            try:
                answer = await Steps(behavior(request, context), half)
            except BaseException as failure:
                half.done(_failed(context, failure))
                raise
        half.done(served_as(context, False), size_of(answer))
        return answer

    return serve


def _serve_generator(details, behavior):
    async def serve(request, context):
        half = begin_server(details, context, request)
        half.pause()
        answers = behavior(request, context)
        try:
            while True:
                with Serving(half):
                    answer = await Steps(answers.__anext__(), half)
                yield answer
        except StopAsyncIteration:
            half.done(served_as(context, False))
        except BaseException as failure:
            half.done(_failed(context, failure))
            raise
        finally:
            await answers.aclose()

    return serve
