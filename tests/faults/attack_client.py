"""Clients of an agent that mean no good: what they say on the wire, and how they say it."""
import os
import random
import socket
import struct
import subprocess

import zmq

kGreeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + bytes(32)
kReady = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0"
kMoreParts, kLarge = 1, 2


class Messages:
    """Control messages, from the words of the schema."""

    def __init__(self, folder, schema):
        self.folder, self.schema = folder, schema

    def make(self, kind, number=1, content="{}"):
        words = os.path.join(self.folder, "message.json")
        with open(words, "w") as file:
            file.write('{"version": 1, "id": %d, "content_type": "%s", "content": %s}' % (number, kind, content))
        subprocess.run(["flatc", "-b", "--unknown-json", "-o", self.folder, self.schema, words], check=True, capture_output=True)
        with open(os.path.join(self.folder, "message.bin"), "rb") as file:
            return file.read()


def raw(target):
    """A connection without a word said."""
    if target.port:
        return socket.create_connection(("127.0.0.1", target.port))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(target.path)
    return connection


def say(connection, data, seconds=20):
    """@return how many bytes were taken before the agent closed"""
    connection.settimeout(seconds)
    sent = 0
    try:
        while sent < len(data):
            sent += connection.send(data[sent:sent + (1 << 16)])
    except (BrokenPipeError, ConnectionResetError):
        pass
    return sent


def greeted(target):
    connection = raw(target)
    say(connection, kGreeting + struct.pack("BB", 4, len(kReady)) + kReady)
    # Nothing else may come before the agent is ready, too.
    head = connection.recv(len(kGreeting) + 2, socket.MSG_WAITALL)
    connection.recv(head[-1], socket.MSG_WAITALL)
    return connection


class Dealer:
    """A client as libzmq has them. @param keys  (public, secret, the server's public); None: of another protocol, without any"""

    def __init__(self, target, keys="own", receives=1000):
        self.context = zmq.Context()
        self.socket = self.context.socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.rcvhwm = receives
        keys = target.keys if keys == "own" else keys
        if target.port and keys:
            self.socket.curve_publickey, self.socket.curve_secretkey, self.socket.curve_serverkey = keys
        self.socket.connect(target.endpoint)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.context.destroy()

    def ask(self, message, seconds):
        """@return an answer, None: none came"""
        self.socket.send(message)
        return self.socket.recv() if self.socket.poll(seconds * 1000) else None


def garbage(target, _):
    for number in range(40):
        connection = raw(target)
        if number % 2:
            say(connection, kGreeting)
        say(connection, random.randbytes(1 << 16))
        connection.close()


def huge_frame(target, _):
    """200 MB, as they come."""
    if not target.port:
        connection = greeted(target)
        taken = say(connection, struct.pack(">BQ", kLarge, 200 << 20) + bytes(200 << 20))
        connection.close()
        assert taken < 8 << 20, "%d bytes of a frame of 200 MB were taken" % taken
        return
    with Dealer(target) as dealer:
        dealer.socket.send(bytes(200 << 20), copy=False)
        dealer.socket.poll(500)


def many_parts(target, _):
    with Dealer(target) as dealer:
        dealer.socket.send_multipart([b"part"] * 200000)
        dealer.socket.poll(500)


def endless_parts(target, _):
    """None of them the last one; as small as they can be, and as large."""
    if target.port:
        return
    for part in (struct.pack("BB", kMoreParts, 0), struct.pack(">BQ", kMoreParts | kLarge, 1 << 19) + bytes(1 << 19)):
        connection = greeted(target)
        taken = say(connection, part * ((64 << 20) // len(part)))
        connection.close()
        assert 1 << 19 < taken < 8 << 20, "%d bytes of parts without an end were taken" % taken


def never_reads(target, messages):
    with Dealer(target, receives=1) as dealer:
        for _ in range(20000):
            try:
                dealer.socket.send(messages.make_once("StatusRequest"), zmq.NOBLOCK)
            except zmq.Again:
                dealer.socket.poll(1, zmq.POLLOUT)


def replayed(target, messages):
    """Good messages again and again, cut at each byte, and with a byte changed."""
    prepare = messages.make_once("PrepareRequest", content='{capture_id: 77, name: "x", pids: [1], limit: 1, iterations: 3, history_ms: 5}')
    with Dealer(target) as dealer:
        for cut in range(len(prepare)):
            dealer.socket.send(prepare[:cut])
        for _ in range(1000):
            changed = bytearray(prepare)
            changed[random.randrange(len(changed))] ^= random.randrange(1, 256)
            dealer.socket.send(bytes(changed[:random.randrange(1, len(changed))]))
        for _ in range(500):
            dealer.socket.send(messages.make_once("StatusRequest"))
        while dealer.socket.poll(500):
            dealer.socket.recv()


def recorded(target, messages):
    """All that a good client has sent over the network, once more."""
    if not target.port:
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        class Tapped:
            port, endpoint, keys = target.port, "tcp://127.0.0.1:%d" % listener.getsockname()[1], target.keys
        heard = b""
        with Dealer(Tapped) as dealer:
            dealer.socket.send(messages.make_once("ProcessesRequest"))
            client, _ = listener.accept()
            server = raw(target)
            poller = zmq.Poller()
            poller.register(client, zmq.POLLIN)
            poller.register(server, zmq.POLLIN)
            while not dealer.socket.poll(0):
                for ready, _ in poller.poll(100):
                    data = (client if ready == client.fileno() else server).recv(1 << 16)
                    if ready == client.fileno():
                        heard += data
                        server.sendall(data)
                    else:
                        client.sendall(data)
        client.close()
        server.close()
    before = target.answered()
    again = raw(target)
    say(again, heard)
    again.settimeout(5)
    answer = b""
    try:
        while data := again.recv(1 << 16):
            answer += data
    except OSError:
        pass
    again.close()
    assert len(answer) < 400 and target.answered() == before, "a recorded conversation was answered with %d bytes" % len(answer)


kAttacks = (garbage, huge_frame, many_parts, endless_parts, never_reads, replayed, recorded)
