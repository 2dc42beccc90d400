"""The shim's C functions, if it is loaded in this process."""


class Shim(object):
    """
    capture_word: a memoryview whose first byte has bit 0 set while a capture runs; the cheapest thing that Python can look at
    rpc_mode:     tells how the RPC that this thread makes next was called (schema's RpcMode)
    attached:     tells how far the Python part has come (PRESENT, WRAPPING, FAILED)
    """

    PRESENT, WRAPPING, FAILED = 1, 2, 3

    def __init__(self, ctypes, library):
        library.ringside_capture_word.restype = ctypes.c_void_p
        library.ringside_torch_rpc_mode.restype = None
        library.ringside_torch_rpc_mode.argtypes = [ctypes.c_int]
        address = library.ringside_capture_word()
        word = (ctypes.c_ubyte * 4).from_address(address)
        self.capture_word = memoryview(word).cast("B")
        self.rpc_mode = library.ringside_torch_rpc_mode
        self.attached = library.ringside_python_attached


def find():
    """The shim, or None: then there is nothing to tell."""
    import ctypes

    library = ctypes.PyDLL(None)  # keeps the GIL: its functions only store a word
    if not hasattr(library, "ringside_capture_word"):
        return None
    shim = Shim(ctypes, library)
    return shim if shim.attached(Shim.PRESENT) else None
