"""The checks on the source tree, one meson test each.

    lint.py CHECK [--root DIR] [--build DIR]       CHECK: layering top-level readmes sizes words sync format exports needed floor cancellation tidy

Prints each violation as path:line: text. Exit status: 0 none, 1 some, 2 usage, 77 the machine lacks what the check needs.
"""
import argparse
import os
import sys

import files
import formatting
import layering
import shim
import sync
import tidy
import tree

kSkipped = 77
kShim = os.path.join("inject", "libringside_inject.so")
kPlugin = os.path.join("inject", "libringside_cupti.so")


def of_both(check, options):
    """The preload, and what it loads beside it."""
    for library in (kShim, kPlugin):
        yield from check(options.root, os.path.join(options.build, library))


kChecks = {
    "layering": lambda options: layering.check(options.root),
    "top-level": lambda options: tree.top_level(options.root),
    "readmes": lambda options: tree.readmes(options.root),
    "sizes": lambda options: tree.sizes(options.root),
    "words": lambda options: tree.words(options.root),
    "sync": lambda options: sync.check(options.root),
    "format": lambda options: formatting.check(options.root),
    "exports": lambda options: shim.exports(options.root, os.path.join(options.build, kShim)),
    "needed": lambda options: of_both(shim.libraries, options),
    "floor": lambda options: of_both(shim.floor, options),
    "cancellation": lambda options: of_both(shim.cancellation, options),
    "tidy": lambda options: tidy.check(options.root, options.build),
}


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = os.path.normpath(os.path.join(here, "..", ".."))
    parser = argparse.ArgumentParser(description="checks on the source tree")
    parser.add_argument("check", choices=sorted(kChecks))
    parser.add_argument("--root", default=root)
    parser.add_argument("--build", default=os.path.join(root, "build"))
    options = parser.parse_args()
    options.root, options.build = os.path.abspath(options.root), os.path.abspath(options.build)
    count = 0
    try:
        for violation in kChecks[options.check](options):
            count += 1
            print("%s:%d: %s" % violation, flush=True)
    except files.Skip as reason:
        print("SKIPPED: %s" % reason)
        return kSkipped
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
