#!/usr/bin/python3
"""Who asks an agent for something leaves a line without anybody's having asked for that: in its log where it was started by hand, in its job directory where its log is
the traced command's stderr (`run`) or where its step's tasks started it (`wrap`). Who only looks leaves one, and one that counts.

    audit.py
"""
import glob
import os
import re
import signal

from harness import check, kCommand, main, Node, wait_until

kLooks = 20


def lines(text, kind, result):
    return re.findall(r"^\S+: \w+: audit time=\S+ peer=uid:%d,pid:\d+ asker=\"[^\"]*\" request=%s result=%s" % (os.getuid(), kind, result), text, re.M)


def text_of(path):
    with open(path) as file:
        return file.read()


def asked(workspace, endpoint):
    """Changes something, is refused, and looks."""
    workspace.ringside("arm", "--hosts", endpoint)
    workspace.ringside("disarm", "--hosts", endpoint)
    workspace.ringside("fetch", "--hosts", endpoint, "/etc/passwd", "-o", workspace.path("fetched"), expect=5)
    # One process that looks again and again is one that asks.
    top = workspace.start("top-%d" % len(workspace.children), [kCommand, "top", "--hosts", endpoint, "--json", "--interval", "10ms"])
    wait_until("its looks", lambda: top.out().count("\n") > kLooks, children=[top])
    top.send(signal.SIGTERM)
    top.wait()


def check_lines(text, where):
    for kind, result in (("ArmRequest", "ok"), ("DisarmRequest", "ok"), ("FetchRequest", "RefusedCode")):
        check(len(lines(text, kind, result)) == 1, "%s: of %s there is %s", where, kind, text)
    looks = lines(text, "(?:Status|Processes)Request", "ok")
    check(len(looks) == 1, "%s: who only looks has %d lines: %s", where, len(looks), text[-2000:])


def by_hand(workspace):
    node = Node(workspace, "node")
    asked(workspace, node.endpoint)
    node.stop()
    text = node.agent.err()
    check_lines(text, "the log")
    counted = re.search(r"request=many result=ok cause=\"in \d+ s, beside what has a line: (\d+) StatusRequest, (\d+) ProcessesRequest", text)
    check(counted and int(counted[1]) >= kLooks and int(counted[2]) > kLooks, "of looks it counts %s", text[-2000:])
    print(text.strip().splitlines()[-1], flush=True)

    silent = Node(workspace, "silent", extra=["--audit", "off"])
    asked(workspace, silent.endpoint)
    silent.stop()
    check("audit time=" not in silent.agent.err(), "switched off it says %s", silent.agent.err())


def beside_a_command(workspace, verb, more=()):
    """The agent that the verb starts for its command, which is there until it is told to go."""
    environment = dict(os.environ, RINGSIDE_DIR=os.path.join(workspace.root, verb))
    ready, leave = workspace.path(verb + ".ready"), workspace.path(verb + ".leave")
    script = 'touch "$1"; while ! test -e "$2"; do sleep 0.05; done'
    child = workspace.start(verb, [kCommand, verb, *more, "sh", "-c", script, "sh", ready, leave], environment)
    wait_until("the command", lambda: os.path.exists(ready), children=[child])
    folder, = glob.glob(os.path.join(workspace.root, verb, "*", ""))
    endpoint, log = "ipc://" + folder + "agent.sock", folder + "agent.log"
    # What runs from the start is in the way of a window.
    refused = verb == "run"
    workspace.ringside("arm", "--hosts", endpoint, expect=5 if refused else 0)
    noted = wait_until("its line", lambda: os.path.exists(log) and lines(text_of(log), "ArmRequest", "RefusedCode" if refused else "ok"), children=[child])
    check(os.stat(log).st_mode & 0o777 == 0o600, "the log's mode is %o", os.stat(log).st_mode)
    print("%s: %s" % (verb, noted[0]), flush=True)
    with open(leave, "w"):
        pass
    child.wait()
    check("audit time=" not in child.err() + child.out(), "%s: beside its command's words stand %s", verb, child.err())
    check(not os.path.exists(folder), "%s leaves %s", verb, folder)


def test(workspace):
    by_hand(workspace)
    beside_a_command(workspace, "run", ("-o", workspace.path("ran")))
    beside_a_command(workspace, "wrap")


if __name__ == "__main__":
    main(test, "audit")
