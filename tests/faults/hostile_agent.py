#!/usr/bin/python3
"""An agent that means ill, or that has died, and the command that asked it: no file of who asks is moved, whatever path it names.

    hostile_agent.py files
"""
import json
import os
import shutil
import signal
import threading

from fault import check, kCommand, kSource, run, skip, wait_until

try:
    import zmq
except ImportError:
    skip("no zmq for /usr/bin/python3 here (tools/setup --all installs python3-zmq)")
from control_frames import kKinds, Messages
from harness import free_port
from old_agent import of_capture
from old_words import id_of, kind_number, with_id

kCapture = 0x1234
kNode = "node7"
kSecret = "ssh-ed25519 AAAA alice\n"
kGolden = os.path.join(kSource, "tests", "integration", "golden", "caller.rsd")
kNodeOfGolden = "caller-node"


class HostileAgent:
    """Answers a trace with the reply that it was given, and questions for files as it likes.
    @param fetch  the answer's kind and words; None: it is gone once it has answered the trace"""

    def __init__(self, messages, endpoint, keys, reply, fetch):
        self.endpoint, self.ending, self.asked = endpoint, threading.Event(), []
        self.answers = {"TraceRequest": messages.make("TraceReply", content=json.dumps(reply))}
        if fetch:
            self.answers["FetchRequest"] = messages.make(fetch[0], content=json.dumps(fetch[1]))
        self.gone = fetch is None
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.linger = 1000
        if keys:
            self.socket.curve_server, (self.socket.curve_publickey, self.socket.curve_secretkey) = True, keys
        self.socket.bind(endpoint)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while not self.ending.is_set():
            if not self.socket.poll(50):
                continue
            who, data = self.socket.recv_multipart()[:2]
            kind = kKinds[kind_number(data)]
            self.asked.append(kind)
            if kind in self.answers:
                self.socket.send_multipart([who, with_id(self.answers[kind], id_of(data))])
            if self.gone and kind == "TraceRequest":
                break
        self.socket.close()

    def end(self):
        self.ending.set()
        self.thread.join()
        self.context.term()
        if self.endpoint.startswith("ipc://") and os.path.exists(self.endpoint[len("ipc://"):]):
            os.unlink(self.endpoint[len("ipc://"):])


class Case:
    def __init__(self, name, path, index="", node=kNode, fetch=("ErrorReply", {"code": "NothingMatched", "message": "no"}), tcp=True):
        self.name, self.path, self.index, self.node, self.fetch, self.tcp = name, path, index, node, fetch, tcp


def alices(workspace):
    """Files of who asks: {name: path}, a link too."""
    home = workspace.path("alice")
    os.makedirs(os.path.join(home, "other"))
    paths = {name: os.path.join(home, name) for name in ("authorized_keys", "thesis.rsd", "thesis.rsj", "thesis.rsd.partial")}
    for path in paths.values():
        with open(path, "w") as file:
            file.write(kSecret)
    paths["link"] = os.path.join(home, "link.rsd")
    os.symlink(paths["authorized_keys"], paths["link"])
    for name, capture in (("earlier", kCapture + 1), ("same", kCapture)):
        paths[name] = os.path.join(home, "other", name + ".rsd")
        shutil.copyfile(kGolden, paths[name])
        of_capture(paths[name], capture)
    return home, paths


def contents(folder):
    """{path: (inode, bytes or where it leads)}"""
    found = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            if os.path.islink(path):  # what it leads to may have gone
                found[path] = os.lstat(path).st_ino, os.readlink(path)
                continue
            with open(path, "rb") as file:
                found[path] = os.lstat(path).st_ino, file.read()
    return found


def files(workspace):
    home, paths = alices(workspace)
    key = workspace.path("key")
    workspace.ringside("keygen", "-o", key)
    with open(key) as file:
        _, public, secret = (line.strip().encode() for line in file)
    os.makedirs(workspace.path("messages"))
    messages = Messages(workspace.path("messages"))
    before = contents(home)
    foreign = {"size": os.stat(paths["same"]).st_size, "inode": os.stat(paths["same"]).st_ino + 1, "changed_ns": os.stat(paths["same"]).st_mtime_ns}
    cases = [
        Case("a file that is no dump, refused", paths["authorized_keys"]),
        Case("as its index", "", paths["authorized_keys"]),
        Case("a link to it", paths["link"]),
        Case("what is only called a dump", paths["thesis.rsd"]),
        Case("what is only called an index", "", paths["thesis.rsj"]),
        Case("what is only called a part of one", paths["thesis.rsd.partial"]),
        Case("a dump of another capture", paths["earlier"], node=kNodeOfGolden),
        Case("another node's dump of this capture, refused", paths["same"]),
        Case("a dump of this capture, another file there", paths["same"], node=kNodeOfGolden, fetch=("FetchReply", foreign)),
        Case("a dump of this capture, too much to do", paths["same"], node=kNodeOfGolden, fetch=("FetchReply", {"busy": True})),
        Case("another node's dump of this capture, gone", paths["same"], fetch=None),
        Case("over the socket file: a file that is no dump", paths["authorized_keys"], tcp=False),
        Case("over the socket file: a dump of another capture", paths["earlier"], node=kNodeOfGolden, tcp=False),
    ]
    for number, case in enumerate(cases):
        endpoint = "tcp://127.0.0.1:%d" % free_port() if case.tcp else "ipc://" + os.path.join(workspace.root, "hostile.sock")
        reply = {"capture_id": kCapture, "job_index": case.index, "nodes": [{"name": case.node, "host": "there", "endpoint": endpoint, "path": case.path}] if case.path else []}
        agent = HostileAgent(messages, endpoint, (public, secret) if case.tcp else None, reply, case.fetch)
        output = workspace.path("output%d" % number)
        child = workspace.start("trace%d" % number, [kCommand, "trace", "--hosts", endpoint, "-o", output], dict(os.environ, RINGSIDE_KEY=key))
        waits = case.fetch is None or case.fetch[0] == "FetchReply"
        if waits:
            # It would go on for a minute, as it does where a link is down.
            wait_until("it to fetch", lambda: child.process.poll() is not None or "fetching" in child.err())
            child.send(signal.SIGINT)
        status = child.wait(expect=None)
        agent.end()
        check("TraceRequest" in agent.asked, "%s: it was asked for %s", case.name, agent.asked)
        check(contents(home) == before, "%s: alice's files are %s", case.name, sorted(contents(home)))
        left = os.listdir(output) if os.path.exists(output) else []
        check(not left, "%s: in its output it leaves %s", case.name, left)
        check(status not in (0, 125) and (case.path or case.index) in child.err(), "%s: it ends with %d and says %s", case.name, status, child.err())
        print("%s: %d, %s" % (case.name, status, child.err().strip().splitlines()[-1][:200]), flush=True)


run({"files": files})
