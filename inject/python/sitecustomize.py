"""Brings Ringside's Python part into an unmodified interpreter, and then is gone.

The shim puts this folder first on PYTHONPATH; `site` imports this module. It takes the folder out of sys.path and PYTHONPATH again (children get
theirs from their own shim), installs the import hook, and runs the sitecustomize that it has shadowed. Parses on Python 2.7 to 3.14;
acts on 3.4 and newer, since no torch with RPC runs on less. Nothing here may fail the job.
"""
import os
import sys


def _of_an_empty_variable():
    """What a PYTHONPATH that is set and empty adds to the path: the working directory in Python 2, nothing after it."""
    if sys.version_info >= (3,):
        return []
    try:
        return [os.getcwd()]
    except OSError:  # it is gone
        return []


def _leave_path(here):
    def is_ours(entry):
        return entry == here or (entry and os.path.abspath(entry) == here)

    value = os.environ.get("PYTHONPATH")
    was_empty = value == here + "/"  # the shim's word for it
    instead = _of_an_empty_variable() if was_empty else []
    sys.path[:] = instead + [entry for entry in sys.path if not is_ours(entry) and entry not in instead]
    for entry in (here, here + "/"):
        sys.path_importer_cache.pop(entry, None)
    if value is None:
        return
    rest = [entry for entry in value.split(os.pathsep) if not is_ours(entry)]
    if rest or was_empty:
        os.environ["PYTHONPATH"] = os.pathsep.join(rest)
    else:
        del os.environ["PYTHONPATH"]


def _install(here):
    # Loaded while our folder is on the path, then taken out of sys.modules: a job may have a `ringside` of its own.
    if sys.version_info < (3, 4):
        return
    mine = ("ringside", "ringside.import_hook", "ringside.torch_rpc", "ringside.shim", "ringside.api")
    theirs = dict((name, sys.modules.pop(name)) for name in mine if name in sys.modules)
    sys.path.insert(0, here)
    try:
        from ringside import import_hook

        import_hook.install()
    finally:
        sys.path.remove(here)
        for name in mine:
            sys.modules.pop(name, None)
        sys.modules.update(theirs)


def _chain():
    # The import system keeps what lies in sys.modules under our name when we return: the shadowed module. Where there is none, or it fails, its
    # error is ours: `site` then does what it would have done without us.
    del sys.modules["sitecustomize"]
    import sitecustomize  # noqa: F401


def _main():
    here = os.path.dirname(os.path.abspath(__file__))
    _leave_path(here)
    try:
        _install(here)
    except Exception:  # the job goes on without us; the shim says "no Python part"
        pass
    _chain()


_main()
