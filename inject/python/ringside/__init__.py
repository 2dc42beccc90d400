"""Ringside in Python: the public API (see `ringside.api`), and what only Python knows of a job, told to the shim in the same process.

Imported in every Python process that is traced, so it loads nothing by itself: the API comes with the first name that is asked for.
"""


def __getattr__(name):  # Python 3.7 and newer
    # Parts of this package are asked for here before they are imported (`from ringside import shim`): that is no use of the API.
    if name.startswith("__") or name in ("api", "coroutines", "grpc_aio", "grpc_calls", "grpc_sync", "import_hook", "shim", "torch_rpc"):
        raise AttributeError(name)
    import importlib
    import sys

    # Where the import hook has brought in the API already, under a name of its own, there is no second one.
    api = sys.modules.get("_ringside.api") or importlib.import_module(__name__ + ".api")
    return getattr(api, name)
