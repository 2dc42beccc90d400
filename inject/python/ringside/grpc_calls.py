"""gRPC's calls in Python: what the sync API (grpc_sync.py) and grpc.aio (grpc_aio.py) share.

Clients: the few functions that all calls go through get one look at the capture word in front; while a capture is on a half is made, its request
id goes along as `traceparent` (one that the program sends is kept, and is the id), and the half ends when gRPC says that the call has ended. The
objects that a program gets are gRPC's own, as without us, so interceptors would not do: they make other ones of them. Servers: an interceptor
in front of all others, which wraps the handler that comes out.
"""
import functools
import sys
import weakref

from . import api

KEY = "traceparent"
word = api._word
functions = api.find("ringside_grpc_api")


class Unknown(Exception):
    """Not the gRPC that we know; its text says what is missing."""


def wrap(grpc):
    """@return what could not be wrapped, as the level's reason; "" where all is"""
    from . import grpc_sync

    parts = [grpc_sync.wrap_clients, grpc_sync.wrap_servers]
    if hasattr(grpc, "aio"):
        from . import grpc_aio

        parts += [grpc_aio.wrap_clients, grpc_aio.wrap_servers]
    missing = []
    for part in parts:
        try:
            part(grpc)
        except Exception as failure:
            missing.append(str(failure) if isinstance(failure, Unknown) else "%s: %s" % (type(failure).__name__, failure))
    return "grpc %s: %s" % (getattr(grpc, "__version__", "?"), "; ".join(missing)) if missing else ""


def argument(function, name):
    """Two functions: (args, kwargs) -> what is given for it, and (args, kwargs, other) -> both with another in its place. args are without self.

    @errors Unknown: the function has no such argument
    """
    code = function.__code__
    names = code.co_varnames[:code.co_argcount]
    if name not in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]:
        raise Unknown("%s has no %s" % (function.__qualname__, name))
    position = names.index(name) - (names[0] == "self") if name in names else sys.maxsize

    def find(args, named):
        return args[position] if len(args) > position else named.get(name)

    def put(args, named, value):
        if len(args) > position:
            return args[:position] + (value,) + args[position + 1:], named
        return args, dict(named, **{name: value})

    return find, put


_targets = {}  # of gRPC's inner channels, by id, as long as their channel is there


def remember_targets(kind):
    """Channels of this class: whom they go to. gRPC's own target() reads freed memory once a channel is closed (1.51)."""
    original = kind.__init__
    find, _ = argument(original, "target")

    @functools.wraps(original)
    def __init__(self, *args, **named):
        original(self, *args, **named)
        try:
            _targets[id(self._channel)] = find(args, named)
            weakref.finalize(self, _targets.pop, id(self._channel), None).atexit = False
        except Exception:
            pass

    kind.__init__ = __init__


def target_of(channel):
    return _targets.get(id(channel))


def text(value):
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def size_of(message):
    """Of what is bytes already; what has yet to be serialized is not, for us."""
    return len(message) if isinstance(message, bytes) else 0


def carried_in(metadata):
    for pair in metadata or ():
        if pair[0] == KEY:
            return api.request_of(pair[1])
    return None


def describe(method, peer, mode, message):
    service, _, name = text(method).rpartition("/")
    return api.describe(name, service.lstrip("/") or None, text(peer), mode, size_of(message))


def _again(pairs, failure):
    for pair in pairs:
        yield pair
    if failure is not None:
        raise failure


def _take(metadata, pairs):
    """Reads an iterator into `pairs`, which can be done only once.

    @return another, for gRPC: it gives what `pairs` holds by then, and fails where the program's did
    """
    try:
        for pair in metadata:
            pairs.append(pair)
    except Exception as failure:
        return _again(pairs, failure)
    return _again(pairs, None)


def begin_client(method, peer, mode, metadata, message):
    """A client's half begins.

    @return it (None: nothing is recorded), and the metadata to send in either case: an iterator's have been read
    """
    pairs, sent = [], metadata
    try:
        if metadata and iter(metadata) is metadata:
            sent = _take(metadata, pairs)
        else:
            pairs.extend(metadata or ())
        half = api.begin_client(functions, describe(method, peer, mode, message), carried_in(pairs))
        if not half._call.key:
            return None, sent
        if any(pair[0] == KEY for pair in pairs):
            return half, sent
        pairs.append((KEY, half.text()))
        if sent is not metadata:
            return half, sent
        return half, pairs if isinstance(metadata, list) else tuple(pairs)
    except Exception:  # what the program gave is for gRPC to judge
        return None, sent


def begin_server(details, context, message):
    """A server's half begins, and its request is served on this thread. details: (method, metadata)"""
    try:
        # A function on a thread of grpc.aio's may come late: its call may be gone, and peer() would read it.
        peer = None if type(context).__name__ == "_SyncServicerContext" else context.peer()
        return api.begin_server(functions, describe(details[0], peer, api.UNKNOWN, message), carried_in(details[1]))
    except Exception:
        return api.Half(None, api.SERVER)


def status_of(code):
    """gRPC's StatusCode, or its number, as ours."""
    number = code.value[0] if hasattr(code, "value") else code
    return {0: api.OK, 1: api.CANCELLED, 4: api.TIMEOUT, None: api.OK}.get(number, api.ERROR)


def failed_as(failure):
    """The status of a call that has raised."""
    code = getattr(failure, "code", None)
    try:
        return status_of(code()) or api.ERROR
    except Exception:
        return api.ERROR


def _ask(function, otherwise=None):
    """What a context says; contexts of other makes, and older ones, may not have all."""
    try:
        return function()
    except Exception:
        return otherwise


def served_as(context, failed, given_up=False):
    """The status of a request that its handler is done with. given_up: it was told to stop."""
    status = status_of(_ask(lambda: context.code()))
    if status != api.OK:
        return status
    if given_up or not _ask(lambda: context.is_active(), True):
        return api.TIMEOUT if _ask(lambda: context.time_remaining()) == 0 else api.CANCELLED
    return api.ERROR if failed else api.OK


def with_interceptor(original, ours):
    """grpc.server or grpc.aio.server, with our interceptor in front of the program's."""
    find, put = argument(original, "interceptors")

    @functools.wraps(original)
    def server(*args, **named):
        args, named = put(args, named, (ours,) + tuple(find(args, named) or ()))
        return original(*args, **named)

    return server


KINDS = {(False, False): "unary_unary", (False, True): "unary_stream", (True, False): "stream_unary", (True, True): "stream_stream"}


def with_behavior(grpc, handler, wrapped):
    """The handler with another behavior: wrapped(its own, whether it answers with a stream), or as it is where that is None."""
    try:
        streams = bool(handler.response_streaming)
        kind = KINDS[bool(handler.request_streaming), streams]
        behavior = getattr(handler, kind)
        other = wrapped(behavior, streams)
        if other is None:
            return handler
        functools.update_wrapper(other, behavior)
        del other.__wrapped__  # inspect would look through it
        return getattr(grpc, kind + "_rpc_method_handler")(other, handler.request_deserializer, handler.response_serializer)
    except Exception:  # a handler of another make
        return handler
