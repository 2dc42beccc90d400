"""Calls us back when torch, and then torch.distributed.rpc.api, are imported; costs every other import one comparison."""
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
        self._finder.rpc_imported(module)


class _Finder(object):
    """First on sys.meta_path, until it has seen what it waits for."""

    def __init__(self):
        self._shim = None

    def find_spec(self, name, path=None, target=None):
        if name == RPC_API:
            return self._wrapped_spec(name, path, target)
        if name == "torch":
            self._torch_wanted()
        return None

    def _torch_wanted(self):
        # Here and not at start-up: ctypes costs milliseconds, and torch imports it anyway.
        try:
            self._shim = self._shim or shim.find()
        except Exception:
            self._shim = None
        if self._shim is None:
            self._remove()

    def _wrapped_spec(self, name, path, target):
        if self._shim is None:
            return None
        for finder in sys.meta_path:
            find_spec = getattr(finder, "find_spec", None)
            if finder is self or find_spec is None:
                continue
            spec = find_spec(name, path, target)
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader, self)
                else:
                    self._shim.attached(shim.Shim.FAILED)
                return spec
        return None

    def rpc_imported(self, module):
        self._remove()
        try:
            torch_rpc.wrap(module, self._shim)
            self._shim.attached(shim.Shim.WRAPPING)
        except Exception:
            self._shim.attached(shim.Shim.FAILED)

    def _remove(self):
        if self in sys.meta_path:
            sys.meta_path.remove(self)


class _OwnPackage(object):
    """Last on sys.meta_path: a job that asks for `ringside`, and has none of its own, gets ours."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != "ringside":
            return None
        import importlib.util
        import os

        here = os.path.dirname(os.path.abspath(__file__))
        return importlib.util.spec_from_file_location(name, os.path.join(here, "__init__.py"), submodule_search_locations=[here])


def install():
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_OwnPackage())
