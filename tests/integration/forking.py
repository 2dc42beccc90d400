#!/usr/bin/python3
"""Captures begin and end while a job forks among its threads: no child finds a lock of torch's, or of the loader's, that nobody gives back."""
import json
import os

from harness import check, kCommand, kPython, kWorkloads, main, Node

kCaptures, kLeastForks = 40, 50


def test(workspace):
    node = Node(workspace, "node")
    child = workspace.start("job", node.job_command(kPython, os.path.join(kWorkloads, "forking.py"), "--conditions", workspace.conditions), node.environment())
    workspace.await_condition("ready", [child, node.agent])
    for number in range(kCaptures):
        # Some children are not captured well: they end while it attaches.
        workspace.run("trace-%d" % number, [kCommand, "trace", "--hosts", node.endpoint, "--duration", "50ms", "-o", workspace.path("trace"), "--force"], expect=None)
    workspace.announce("enough")
    child.wait()
    told = json.loads(child.out())
    check(told["hung"] == 0, "of %d children %d hung", told["forks"], told["hung"])
    check(told["forks"] >= kLeastForks, "only %d forks in %d captures", told["forks"], kCaptures)
    print("PyTorch %s: %d forks in %d captures, none hung" % (told["torch"], told["forks"], kCaptures), flush=True)


main(test, "forking")
