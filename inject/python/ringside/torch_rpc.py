"""Tells sync from async, which torch's C++ can't see: rpc_sync is rpc_async and a wait, both in Python, with one message on the wire.

Wraps two functions of torch.distributed.rpc.api that all calls go through. Idle, a call costs one look at a byte; while a capture runs it
leaves the mode with the thread, for the message that it is about to send.
"""
# schema/record.hpp, RpcMode
UNKNOWN, SYNC, ASYNC, ASYNC_JIT, REMOTE = 0, 1, 2, 3, 4


def wrap(module, shim):
    """Wraps `module`'s functions.

    @errors AttributeError: it is not the module that we know; nothing has been changed then
    """
    execution = module.RPCExecMode
    invoke = _wrap_invoke(module._invoke_rpc, execution.SYNC, execution.ASYNC, shim)
    remote = _wrap_remote(module.remote, shim)
    module._invoke_rpc = invoke
    module.remote = remote


def _wrap_invoke(original, sync, asynchronous, shim):
    import functools

    word = shim.capture_word
    tell = shim.tell_rpc_mode
    tell_unknown, tell_sync, tell_async, tell_async_jit = (tell[mode] for mode in (UNKNOWN, SYNC, ASYNC, ASYNC_JIT))

    @functools.wraps(original)
    def _invoke_rpc(to, func, rpc_type, *args, **kwargs):
        if not word[0] & 1:
            return original(to, func, rpc_type, *args, **kwargs)
        (tell_sync if rpc_type is sync else tell_async if rpc_type is asynchronous else tell_async_jit)()
        try:
            return original(to, func, rpc_type, *args, **kwargs)
        except BaseException:
            tell_unknown()  # perhaps no message was sent: the next one is not of this mode
            raise

    return _invoke_rpc


def _wrap_remote(original, shim):
    import functools

    word = shim.capture_word
    tell = shim.tell_rpc_mode
    tell_unknown, tell_remote = tell[UNKNOWN], tell[REMOTE]

    @functools.wraps(original)
    def remote(*args, **kwargs):
        if not word[0] & 1:
            return original(*args, **kwargs)
        tell_remote()
        try:
            return original(*args, **kwargs)
        except BaseException:
            tell_unknown()
            raise

    return remote
