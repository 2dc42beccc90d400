"""Calls us back when torch.distributed.rpc.api, or gRPC, is imported; costs every other import one look into a dictionary."""
import os
import sys

from . import shim, torch_rpc

RPC_API = "torch.distributed.rpc.api"


class _Loader(object):
    """The module's own loader, and a word with us after it has run."""

    def __init__(self, loader, finder):
        self._loader = loader
        self._finder = finder

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        # The job sees the loader that it would see without us.
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._finder.imported(module)


class _Finder(object):
    """First on sys.meta_path, until it has seen what it waits for."""

    def __init__(self):
        self._shim = None
        self._waits_for = {"torch": None, RPC_API: _wrap_torch, "grpc": _wrap_grpc}

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self._waits_for:
            return None
        if not self._find_shim() or fullname == "torch":
            return None
        return self._wrapped_spec(fullname, path, target)

    def _find_shim(self):
        # Here and not at start-up: ctypes costs milliseconds, which these modules cost a hundred times.
        try:
            self._shim = self._shim or shim.find()
        except Exception:
            self._shim = None
        if self._shim is None:
            self._remove()
        return self._shim

    def _wrapped_spec(self, name, path, target):
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec = find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self)
                elif name == RPC_API:
                    self._shim.attached(shim.Shim.FAILED)
                return spec
        return None

    def imported(self, module):
        self._waits_for.pop(module.__name__, lambda *_: None)(module, self._shim)
        if not any(self._waits_for.values()):
            self._remove()

    def _remove(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def _wrap_torch(module, ours):
    try:
        torch_rpc.wrap(module, ours)
        ours.attached(shim.Shim.WRAPPING)
    except Exception:
        ours.attached(shim.Shim.FAILED)


def _wrap_grpc(module, ours):
    try:
        missing = _late("grpc_calls").wrap(module)
    except Exception as failure:
        missing = "Python part can't wrap grpc: %s: %s" % (type(failure).__name__, failure)
    ours.grpc_wrapped(missing)


_HERE = os.path.dirname(os.path.abspath(__file__))


def _late(part):
    """A module of ours, long after our folder has left the path. The job may have a `ringside` of its own, and if it has ours, there is one of
    each of our modules: what a request is they must agree on."""
    import importlib

    public = sys.modules.get("ringside")
    own = os.path.dirname(os.path.abspath(getattr(public, "__file__", None) or os.curdir)) == _HERE
    return importlib.import_module(("ringside." if own else "_ringside.") + part)


class _OwnPackage(object):
    """Last on sys.meta_path: a job that asks for `ringside`, and has none of its own, gets ours; _late() always does."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        if fullname not in ("ringside", "_ringside"):
            return None
        import importlib.util

        return importlib.util.spec_from_file_location(fullname, os.path.join(_HERE, "__init__.py"), submodule_search_locations=[_HERE])


def install():
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_OwnPackage())
