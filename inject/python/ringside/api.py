"""The public API for Python programs: what inject/sources/api/ringside.h is for C. `import ringside` gives these names.

    import ringside
    with ringside.range("load", domain="data", payload=3): ...      # also a decorator
    ringside.mark("epoch"); ringside.iteration("step"); ringside.counter("queue", 12)

    with ringside.client("lookup", peer="server 3") as call:          # caller
        send(request, headers={"traceparent": call.text()})
    with ringside.server("lookup", headers.get("traceparent")):       # callee: what runs in here belongs to the request
        ...
    answer = await ringside.server("lookup", carried).run(lookup(request))    # callee in a coroutine: each of its steps, and its own tasks'

Where the shim is not in the process, or no capture is on, nothing happens. A call's request id is then empty: send none.
"""
import ctypes
import functools

UNKNOWN, SYNC, ASYNC = 0, 1, 2
OK, ERROR, TIMEOUT, PEER_GONE, CANCELLED = 0, 1, 2, 3, 4
_UNSIGNED, _SIGNED, _DOUBLE = 1, 2, 3

_u32, _u64, _text = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
_byref = ctypes.byref


class _Payload(ctypes.Union):
    _fields_ = [("u", _u64), ("i", ctypes.c_int64), ("d", ctypes.c_double)]


class _Attributes(ctypes.Structure):
    _fields_ = [("size", _u32), ("colour", _u32), ("domain", _text), ("category", _text), ("payload_type", _u32), ("reserved", _u32),
                ("payload", _Payload)]


class _Rpc(ctypes.Structure):
    _fields_ = [("size", _u32), ("mode", _u32), ("method", _text), ("service", _text), ("peer", _text), ("bytes", _u64)]


class _Request(ctypes.Structure):
    _fields_ = [("trace_hi", _u64), ("trace_lo", _u64), ("span", _u64)]


class _Call(ctypes.Structure):
    _fields_ = [("key", _u64), ("id", _Request), ("before_key", _u64), ("before", _Request)]


def _function(result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)  # keeps the GIL: they only write a record


_attributes_p, _rpc_p, _call_p, _request_p = (ctypes.POINTER(t) for t in (_Attributes, _Rpc, _Call, _Request))


class _Functions(ctypes.Structure):
    """ringside_functions, field by field."""

    _fields_ = [
        ("size", _u32), ("version", _u32), ("active", _function(ctypes.c_int)), ("range_push", _function(None, _text, _attributes_p)),
        ("range_pop", _function(None, _text)), ("range_start", _function(_u64, _text, _attributes_p)), ("range_end", _function(None, _u64)),
        ("mark", _function(None, _text, _attributes_p)), ("counter", _function(None, _text, _attributes_p)), ("iteration", _function(None, _text)),
        ("name_thread", _function(None, _text)), ("set_worker", _function(None, _text, ctypes.c_int32)),
        ("client_begin", _function(None, _rpc_p, _call_p)), ("client_end", _function(None, _call_p, _u32, _u64)),
        ("server_begin", _function(None, _request_p, _rpc_p, _call_p)), ("server_end", _function(None, _call_p, _u32, _u64)),
        ("serve", _function(None, _call_p, ctypes.c_int)),
    ]


def find(symbol):
    """The functions of a traced process, or None. symbol: ringside_api, or one whose RPC halves are another source's."""
    table = getattr(ctypes.PyDLL(None), symbol, None)
    if table is None:
        return None
    table.restype, table.argtypes = ctypes.POINTER(_Functions), [_u32]
    found = table(ctypes.sizeof(_Functions))
    return found.contents if found else None


_here = find("ringside_api")


def _capture_word():
    """One number that is odd while a capture is on, another one in each: the cheapest thing that Python can look at."""
    if _here is None:
        return memoryview(b"\0\0\0\0").cast("I")
    library = ctypes.PyDLL(None)
    library.ringside_capture_word.restype = ctypes.c_void_p
    return memoryview((ctypes.c_ubyte * 4).from_address(library.ringside_capture_word())).cast("B").cast("I")


_word = _capture_word()


def active():
    """Whether a capture is on."""
    return bool(_word[0] & 1)


def _bytes(text):
    return text if text is None or isinstance(text, bytes) else str(text).encode("utf-8", "replace")


def _with(domain, category, colour, payload):
    """@return None where there is nothing beside the name"""
    if domain is None and category is None and colour is None and payload is None:
        return None
    made = _Attributes(ctypes.sizeof(_Attributes), colour or 0, _bytes(domain), _bytes(category))
    if isinstance(payload, float):
        made.payload_type, made.payload.d = _DOUBLE, payload
    elif payload is not None and -(1 << 63) <= payload < 1 << 63:
        made.payload_type, made.payload.i = _SIGNED, payload
    elif payload is not None:
        made.payload_type, made.payload.u = _UNSIGNED, payload & (1 << 64) - 1
    return made


def push(name, domain=None, category=None, colour=None, payload=None):
    """A range of this thread begins; pop() of the same domain ends it. colour: 0xAARRGGBB; payload: a number."""
    if active():
        _here.range_push(_bytes(name), _with(domain, category, colour, payload))


def pop(domain=None):
    if active():
        _here.range_pop(_bytes(domain))


class range(object):  # noqa: A001: it is ringside.range
    """`with range("name"):`, or `@range("name")`."""

    def __init__(self, name, domain=None, category=None, colour=None, payload=None):
        self._arguments = (name, domain, category, colour, payload)

    def __enter__(self):
        push(*self._arguments)
        return self

    def __exit__(self, *failure):
        pop(self._arguments[1])

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped


def start(name, domain=None, category=None, colour=None, payload=None):
    """A range that may end on another thread.
    @return its id, for end(); 0: it is not recorded
    """
    return _here.range_start(_bytes(name), _with(domain, category, colour, payload)) if active() else 0


def end(number):
    if number and active():
        _here.range_end(number)


def mark(name, domain=None, category=None, colour=None, payload=None):
    if active():
        _here.mark(_bytes(name), _with(domain, category, colour, payload))


def counter(name, value, domain=None):
    if active():
        _here.counter(_bytes(name), _with(domain, None, None, value))


def iteration(name):
    """The end of one turn of a loop; counted from 1 in each capture."""
    if active():
        _here.iteration(_bytes(name))


def name_thread(name):
    if _here is not None:
        _here.name_thread(_bytes(name))


def set_worker(name, number=-1):
    """This process's name and number in the job: how others name it as their peer."""
    if _here is not None:
        _here.set_worker(_bytes(name), number)


class Half(object):
    """One side of a call, from its making to done(). As a context it ends with an error where an exception leaves it."""

    def __init__(self, functions, side):
        self._call, self._functions, self._side = _Call(), functions, side
        self._word = _word[0]
        self._once = [True]  # to be popped, by one thread of many

    def text(self):
        """The W3C traceparent to send along; "" where nothing is recorded."""
        one = self._call.id
        return "00-%016x%016x-%016x-01" % (one.trace_hi, one.trace_lo, one.span) if one.span else ""

    def binary(self):
        """The same as 29 bytes (grpc-trace-bin); b"" where nothing is recorded."""
        text = self.text()
        return b"\0\0" + bytes.fromhex(text[3:35]) + b"\1" + bytes.fromhex(text[36:52]) + b"\2\1" if text else b""

    def done(self, status=OK, size=0):
        """Ends it, once, on any thread. size: bytes of the answer."""
        if self._once and self._once_only() and self._call.key and self._word == _word[0]:
            (self._functions.client_end if self._side is CLIENT else self._functions.server_end)(self._call, status, size)

    def _once_only(self):
        try:
            return self._once.pop()
        except IndexError:
            return False

    def serving(self):
        """Whether the request is being served, in the capture that it began in."""
        return bool(self._once) and self._word == _word[0] and self._call.key != 0

    def turn(self):
        """A Turn: what does one part of the request's work."""
        return Turn(self)

    def pause(self):
        """Takes a request that has just begun off this thread: its turns serve it."""
        if self._call.key:
            self._functions.serve(self._call, 0)

    def run(self, coroutine):
        """What `coroutine` does belongs to the request, and what the tasks do that it makes; its end is the request's. To be awaited, or made a task of."""
        if not self.serving():
            return coroutine
        self.pause()
        from . import coroutines

        return coroutines.run(self, coroutine)

    def __enter__(self):
        return self

    def __exit__(self, kind, failure, trace):
        self.done(OK if kind is None else ERROR)


class Turn(object):
    """Serves a request on this thread from on() to off(). One request may be served in several at a time, so each remembers what was before."""

    __slots__ = ("_half", "_call", "_at", "_serve")

    def __init__(self, half):
        self._half, self._serve = half, half._functions and half._functions.serve
        self._call = _Call.from_buffer_copy(half._call)
        self._at = _byref(self._call)

    def on(self):
        """@return whether it is on: off() then takes it back"""
        if not self._half.serving():
            return False
        self._serve(self._at, 1)
        return True

    def off(self):
        self._serve(self._at, 0)


CLIENT, SERVER = "client", "server"


def describe(method, service, peer, mode, size):
    return _Rpc(ctypes.sizeof(_Rpc), mode, _bytes(method), _bytes(service), _bytes(peer), size)


def begin_client(functions, what, carried=None):
    """@param carried  the request that the call is, where the program says so"""
    half = Half(functions, CLIENT)
    if carried is not None:
        half._call.id = carried
    functions.client_begin(what, half._call)
    return half


def begin_server(functions, what, carried):
    half = Half(functions, SERVER)
    functions.server_begin(carried, what, half._call)
    return half


def client(method, peer=None, service=None, mode=UNKNOWN, size=0):
    """A call begins. size: bytes of the request."""
    return begin_client(_here, describe(method, service, peer, mode, size)) if active() else Half(None, CLIENT)


def request_of(carried):
    """What came with a request: text, bytes, or nothing; what is malformed is nothing."""
    if isinstance(carried, (bytes, bytearray)) and len(carried) >= 27 and carried[0] == 0:
        if carried[1] != 0 or carried[18] != 1:
            return None
        hexes = bytes(carried[2:18]).hex(), bytes(carried[19:27]).hex()
    else:
        parts = (carried.decode("ascii", "replace") if isinstance(carried, (bytes, bytearray)) else carried or "").split("-")
        if len(parts) < 4 or [len(p) for p in parts[:4]] != [2, 32, 16, 2] or parts[0] == "ff" or (parts[0] == "00" and len(parts) > 4):
            return None
        hexes = parts[1], parts[2]
    try:
        request = _Request(int(hexes[0][:16], 16), int(hexes[0][16:], 16), int(hexes[1], 16))
    except ValueError:
        return None
    return request if request.span and (request.trace_hi or request.trace_lo) else None


def server(method, carried=None, peer=None, service=None, size=0):
    """Serves a request on this thread, until done(); run() serves it in a coroutine. carried: the caller's text() or binary()."""
    return begin_server(_here, describe(method, service, peer, UNKNOWN, size), request_of(carried)) if active() else Half(None, SERVER)
