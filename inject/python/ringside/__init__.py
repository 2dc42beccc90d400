"""Ringside in Python: the public API (see `ringside.api`), and what only Python knows of a job, told to the shim in the same process.

Imported in every Python process that is traced, so it loads nothing by itself: the API comes with the first name that is asked for.
"""


def __getattr__(name):  # Python 3.7 and newer
    if name.startswith("__"):
        raise AttributeError(name)
    import importlib

    return getattr(importlib.import_module(__name__ + ".api"), name)
