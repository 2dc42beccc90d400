"""The shim's C functions, if it is loaded in this process."""


RPC_MODES = 5  # schema/record.hpp, RpcMode: those that Python tells


class Shim(object):
    """
    capture_word: a memoryview whose first byte has bit 0 set while a capture runs; the cheapest thing that Python can look at
    tell_rpc_mode: functions by schema's RpcMode: the RPC that this thread makes next was called so; 0 takes it back
    attached:     tells how far the Python part has come with torch (PRESENT, WRAPPING, FAILED)
    """

    PRESENT, WRAPPING, FAILED = 1, 2, 3

    def __init__(self, ctypes, library):
        library.ringside_capture_word.restype = ctypes.c_void_p
        address = library.ringside_capture_word()
        word = (ctypes.c_ubyte * 4).from_address(address)
        self.capture_word = memoryview(word).cast("B")
        self.tell_rpc_mode = _rpc_modes(ctypes, library)
        self.attached = library.ringside_python_attached
        self._library = library

    def grpc_wrapped(self, missing):
        """gRPC has been wrapped, but for what is missing ("": nothing)."""
        self._library.ringside_grpc_python(missing.encode("ascii", "replace"))


def _rpc_modes(ctypes, library):
    """The shim's functions for Python as Python's built-in functions: a call of ctypes costs a microsecond."""
    library.ringside_torch_rpc_mode.restype = ctypes.c_void_p
    library.ringside_torch_rpc_mode.argtypes = [ctypes.c_uint, ctypes.c_void_p]
    incref = ctypes.cast(ctypes.pythonapi.Py_IncRef, ctypes.c_void_p)
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(("PyCFunction_NewEx", ctypes.pythonapi))
    return [make(library.ringside_torch_rpc_mode(mode, incref), None, None) for mode in range(RPC_MODES)]


def find():
    """The shim, or None: then there is nothing to tell."""
    import ctypes

    library = ctypes.PyDLL(None)  # keeps the GIL: its functions only store a word
    if not hasattr(library, "ringside_capture_word"):
        return None
    shim = Shim(ctypes, library)
    return shim if shim.attached(Shim.PRESENT) else None
