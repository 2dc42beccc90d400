"""The sync API: the multicallables of grpc._channel, and an interceptor in servers."""
import functools
import weakref

from . import api
from .grpc_calls import (Unknown, argument, begin_client, begin_server, failed_as, remember_targets, served_as, size_of, status_of,
                         target_of, with_behavior, with_interceptor, word)

# Class, method, how it ends: "answer" returned, "answer, call" returned, "call" that ends later.
_CALLABLES = (
    ("_UnaryUnaryMultiCallable", "__call__", "answer"), ("_UnaryUnaryMultiCallable", "with_call", "pair"), ("_UnaryUnaryMultiCallable", "future", "call"),
    ("_StreamUnaryMultiCallable", "__call__", "answer"), ("_StreamUnaryMultiCallable", "with_call", "pair"),
    ("_StreamUnaryMultiCallable", "future", "call"), ("_UnaryStreamMultiCallable", "__call__", "call"),
    ("_SingleThreadedUnaryStreamMultiCallable", "__call__", "call"), ("_StreamStreamMultiCallable", "__call__", "call"),
)


def wrap_clients(grpc):
    from grpc import _channel

    remember_targets(_channel.Channel)
    missing = []
    for name, method, ends in _CALLABLES:
        try:
            kind = getattr(_channel, name)
            setattr(kind, method, _wrap_callable(getattr(kind, method), ends))
        except (AttributeError, Unknown) as failure:
            missing.append(str(failure))
    if missing:
        raise Unknown(", ".join(missing))


def _wrap_callable(original, ends):
    find_metadata, put_metadata = argument(original, "metadata")
    mode = api.ASYNC if ends == "call" else api.SYNC

    @functools.wraps(original)
    def call(self, *args, **named):
        if not word[0] & 1:
            return original(self, *args, **named)
        metadata = find_metadata(args, named)
        half, sent = begin_client(self._method, target_of(self._channel), mode, metadata, args[0] if args else named.get("request"))
        if sent is not metadata:
            args, named = put_metadata(args, named, sent)
        if half is None:
            return original(self, *args, **named)
        try:
            result = original(self, *args, **named)
        except BaseException as failure:
            half.done(failed_as(failure))
            raise
        if ends == "call":
            _end_with(result, half)
        else:
            half.done(api.OK, size_of(result[0] if ends == "pair" else result))
        return result

    return call


def _end_with(call, half):
    """The half ends when the call has: answered, cancelled, or abandoned. Nothing here keeps the call, whose end cancels it."""
    try:
        state = call._state
        state.code, state.response
    except AttributeError:
        return  # not what we know: the half has no end

    def ended():
        half.done(api.CANCELLED if state.code is None else status_of(state.code), size_of(state.response))

    weakref.finalize(call, ended).atexit = False
    if not call.add_callback(ended):
        ended()


def wrap_servers(grpc):
    class Interceptor(grpc.ServerInterceptor):
        def intercept_service(self, continuation, details):
            handler = continuation(details)
            if not word[0] & 1 or handler is None:
                return handler
            about = details.method, details.invocation_metadata
            return with_behavior(grpc, handler, lambda behavior, streams: serving(about, behavior, streams))

    grpc.server = with_interceptor(grpc.server, Interceptor())


def serving(details, behavior, streams):
    """The behavior, whose work belongs to its request; None: it is one that we don't know."""
    if getattr(behavior, "experimental_non_blocking", False):
        return None

    def serve(request, context):
        half = begin_server(details, context, request)
        try:
            answer = behavior(request, context)
        except BaseException:
            half.done(served_as(context, True))
            raise
        if streams:
            half.pause()
            return _Answers(answer, half, context)
        half.done(served_as(context, False), size_of(answer))
        return answer

    return serve


class _Answers(object):
    """A stream of answers: what makes each of them belongs to the request, what happens in between does not."""

    def __init__(self, answers, half, context):
        self._answers, self._half, self._context, self._turn = answers, half, context, half.turn()

    def __iter__(self):
        return self

    def __next__(self):
        on = self._turn.on()
        try:
            return next(self._answers)
        except BaseException as failure:
            self._half.done(served_as(self._context, not isinstance(failure, StopIteration)))
            raise
        finally:
            if on:
                self._turn.off()

    def __del__(self):
        try:
            self._half.done(served_as(self._context, False, given_up=True))
        except Exception:
            pass
