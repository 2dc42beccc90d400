"""A program that comes to torch late and then has children of every kind, each of which runs operators in a range of its own name.

    children.py --conditions DIR --out FILE

Says DIR/ready before it has torch, imports it after DIR/go; or, with --early, imports it and forks a child before DIR/ready, and both go on after
DIR/go. Says DIR/done, leaves after DIR/leave. FILE: a line "pid name" for each range, each with kOperators operators aten::neg in it.
"""
import argparse
import multiprocessing
import os
import subprocess
import sys

import conditions

kOperators = 5
kItems = 8

out_path = None


def work(name):
    """A range with its operators, and word of it."""
    import torch

    with torch.autograd.profiler.record_function(name):
        x = torch.ones(3)
        for _ in range(kOperators):
            x = torch.neg(x)
    with open(out_path, "a") as out:
        out.write("%d %s\n" % (os.getpid(), name))


def forked(name, then=os._exit):
    """os.fork(): the child ends without the interpreter's end."""
    pid = os.fork()
    if pid == 0:
        work(name)
        then(0)
    os.waitpid(pid, 0)


def child_of(method, name):
    child = multiprocessing.get_context(method).Process(target=child_main, args=(out_path, name))
    child.start()
    child.join()


def child_main(path, name):
    global out_path
    out_path = path
    work(name)


class Items:
    """A data set whose items are made by operators in its workers."""

    def __init__(self, path, name):
        self.path, self.name = path, name

    def __len__(self):
        return kItems

    def __getitem__(self, index):
        child_main(self.path, "%s %d" % (self.name, index))
        return index


def loader(method):
    from torch.utils.data import DataLoader

    list(DataLoader(Items(out_path, "item by " + method), batch_size=2, num_workers=2, multiprocessing_context=method))


def in_program():
    """A program of its own, by exec."""
    subprocess.run([sys.executable, "-W", "ignore", "-c", "import sys; sys.path.insert(0, %r); import children; children.child_main(%r, 'program')" % (
        os.path.dirname(os.path.abspath(__file__)), out_path)], check=True)


def thread(name):
    import threading

    runner = threading.Thread(target=work, args=(name,))
    runner.start()
    runner.join()


def early_child(options):
    conditions.await_condition(options.conditions, "go")
    work("forked early")
    os._exit(0)


def main():
    global out_path
    parser = argparse.ArgumentParser()
    parser.add_argument("--conditions", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--early", action="store_true")
    options = parser.parse_args()
    out_path = options.out
    pid = None
    if options.early:
        import torch

        torch.set_num_threads(1)
        pid = os.fork()
        if pid == 0:
            early_child(options)
    conditions.announce(options.conditions, "ready")
    conditions.await_condition(options.conditions, "go")
    work("main")
    thread("thread")
    forked("forked")
    child_of("fork", "child by fork")
    child_of("spawn", "child by spawn")
    loader("fork")
    loader("spawn")
    in_program()
    work("main again")
    if pid is not None:
        os.waitpid(pid, 0)
    conditions.announce(options.conditions, "done")
    conditions.await_condition(options.conditions, "leave")


if __name__ == "__main__":
    main()
