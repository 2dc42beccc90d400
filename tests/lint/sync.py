"""The SYNC(tag) comments, each the name of a pair of memory orders.

1. Of the ring (schema/ring_*.hpp, schema/lane_life.hpp): every order that is not relaxed stands under a SYNC comment, and each comment has
   a mutant of its tag in tests/proof/mutants.py that relaxes just that order. What the proof says is so only while its mutants are caught.
2. Elsewhere: under each comment stands an order that is not relaxed, and each tag has a release side and an acquire side, both of them
   under a comment of that tag. A tag's realm is its folder beneath inject/sources; all else that the shim and the agent share is one.

A declaration's docstring (`/// SYNC(tag)`, `///< SYNC(tag)`) names the word's pair and is no side. That the two sides are of one word is for the reader.
"""
import importlib.util
import os
import re

from files import Violation, lines_of, project_files

kRing = ("schema/ring_reader.hpp", "schema/ring_writer.hpp", "schema/lane_life.hpp")
kMutants = os.path.join("tests", "proof", "mutants.py")
kTag = re.compile(r"SYNC\(([^)]+)\)")
kOrder = re.compile(r"memory_order_(acquire|release|acq_rel|seq_cst)\b")
kAcquire = {"acquire", "acq_rel", "seq_cst"}
kRelease = {"release", "acq_rel", "seq_cst"}
kMostLines = 12  # from a comment to the order it is about


class Comment:
    """A tag, its line, and of the first statement beneath that is ordered: [(line, order)] and its text."""

    def __init__(self, tag, line, orders, statement):
        self.tag, self.line, self.orders, self.statement = tag, line, orders, statement


def orders_in(code):
    aliased = re.sub(r"\bkAcquire\b", "memory_order_acquire", code)
    return kOrder.findall(re.sub(r"//.*", "", aliased))


def statement_after(lines, index):
    """@return (orders, text) of the first statement from `index` on that has an order that is not relaxed"""
    orders, text = [], []
    for number, line in lines[index:index + kMostLines]:
        if line.strip().startswith("//"):
            continue
        if not line.strip():
            break
        code = re.sub(r"//.*", "", line).strip()
        text.append(code)
        orders += [(number, order) for order in orders_in(line)]
        if code.endswith((";", "{", "}")):
            if orders:
                break
            text = []
    return orders, " ".join(text)


def comments_of(root, path):
    lines = lines_of(root, path)
    for index, (number, line) in enumerate(lines):
        if "///" in line:
            continue
        for tag in kTag.findall(line):
            start = index + 1 if line.strip().startswith("//") else index
            yield Comment(tag, number, *statement_after(lines, start))


def realm_of(path):
    parts = path.split("/")
    return "/".join(parts[:3]) if path.startswith("inject/sources/") and len(parts) > 3 else "shared"


def load_mutants(root):
    spec = importlib.util.spec_from_file_location("mutants", os.path.join(root, kMutants))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kMutants


def relaxes(mutant, statement):
    """Whether the mutant is this statement with its order, and nothing else, relaxed."""
    weak = kOrder.sub("memory_order_relaxed", mutant.old)
    return mutant.new == weak and mutant.old != weak and mutant.old in statement


def check_ring(root):
    there = [path for path in project_files(root, ".hpp") if path in kRing]
    mutants = load_mutants(root) if there else []
    for path in there:
        named = set()
        for comment in comments_of(root, path):
            named.update(line for line, _ in comment.orders)
            own = [mutant for mutant in mutants if mutant.file == os.path.basename(path) and comment.tag in mutant.tags]
            if comment.orders and not any(relaxes(mutant, comment.statement) for mutant in own):
                yield Violation(path, comment.line, "SYNC(%s) has no mutant: add one that relaxes this order to %s" % (comment.tag, kMutants))
        for number, line in lines_of(root, path):
            if orders_in(line) and number not in named:
                yield Violation(path, number, "is ordered without a SYNC(tag) comment, and so without a mutant")


def check(root):
    yield from check_ring(root)
    sides = {}
    for path in project_files(root, ".hpp", ".cpp", ".h"):
        if not path.startswith(("schema/", "inject/", "agent/")):
            continue
        for comment in comments_of(root, path):
            if not comment.orders:
                yield Violation(path, comment.line, "SYNC(%s) stands over no order" % comment.tag)
                continue
            orders = {order for _, order in comment.orders}
            known = sides.setdefault((realm_of(path), comment.tag), [False, False, path, comment.line])
            known[0] = known[0] or bool(orders & kAcquire)
            known[1] = known[1] or bool(orders & kRelease)
    for (realm, tag), (acquires, releases, path, line) in sorted(sides.items()):
        for there, side in ((acquires, "acquire"), (releases, "release")):
            if not there:
                yield Violation(path, line, "SYNC(%s) has no %s side in %s" % (tag, side, "what the shim and the agent share" if realm == "shared" else realm))
