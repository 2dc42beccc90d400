"""An RPC system of a program's own, over ZeroMQ: front and back, a process each, and a client with four threads. The id travels in a frame.

    zmq_calls.py FOLDER          prints {"calls": [...]}, the methods that the client has called, and those that front has called at back
"""
import json
import os
import subprocess
import sys
import threading

import zmq

import ringside

kThreads, kCalls = 4, 50


def call(socket, method, peer, body):
    """One request and its answer, as any wrapper of ours would do it."""
    with ringside.client(method, peer=peer, service="zmq", mode=ringside.SYNC, size=len(body)) as half:
        socket.send_multipart([method.encode(), half.text().encode(), body])
        ok, answer = socket.recv_multipart()
        half.done(ringside.OK if ok == b"ok" else ringside.ERROR, len(answer))
        return answer


def serve_one(socket, handle):
    method, carried, body = socket.recv_multipart()
    method = method.decode()
    with ringside.server(method, carried, service="zmq", size=len(body)) as half:
        try:
            answer = [b"ok", handle(method, body)]
        except ValueError as failure:
            answer = [b"failed", str(failure).encode()]
            half.done(ringside.ERROR)
    socket.send_multipart(answer)


def serve(folder, name, handler):
    """A router, and threads that answer."""
    ringside.set_worker(name, ("client", "front", "back").index(name))
    context = zmq.Context()
    router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    router.bind("ipc://%s/%s" % (folder, name))
    dealer.bind("inproc://workers")

    def work():
        socket = context.socket(zmq.REP)
        socket.connect("inproc://workers")
        handle = handler(context, folder)
        while True:
            serve_one(socket, handle)

    for _ in range(kThreads):
        threading.Thread(target=work, daemon=True).start()
    threading.Thread(target=zmq.proxy, args=(router, dealer), daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)  # its threads wait for requests for ever


def front(context, folder):
    back = context.socket(zmq.REQ)
    back.connect("ipc://%s/back" % folder)

    def handle(method, body):
        with ringside.range("work of " + method):
            answer = call(back, method.replace("outer", "inner"), "back", body) if method.startswith("outer") else body
        if method.startswith("failing"):
            raise ValueError("it fails")
        return answer

    return handle


def back(context, folder):
    import torch

    def handle(method, body):
        with ringside.range("work of " + method):
            torch.sin(torch.ones(2))
        return body[::-1]

    return handle


def client(folder):
    ringside.set_worker("client", 0)
    servers = [subprocess.Popen([sys.executable, "-W", "ignore", __file__, folder, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
               for name in ("front", "back")]
    for server in servers:
        assert server.stdout.readline() == "ready\n"
    context, calls = zmq.Context(), []

    def run(who):
        socket = context.socket(zmq.REQ)
        socket.connect("ipc://%s/front" % folder)
        for n in range(kCalls):
            method = "%s_%d_%d" % (("plain", "outer", "failing")[n % 3], who, n)
            answer = call(socket, method, "front", b"abc")
            assert answer == {"plain": b"abc", "outer": b"cba", "failing": b"it fails"}[method.partition("_")[0]]
            calls.append(method)
        socket.close()

    threads = [threading.Thread(target=run, args=(who,)) for who in range(kThreads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server in servers:
        server.communicate()
        assert server.returncode == 0
    print(json.dumps({"calls": calls}))


if len(sys.argv) == 2:
    client(sys.argv[1])
else:
    serve(sys.argv[1], sys.argv[2], {"front": front, "back": back}[sys.argv[2]])
