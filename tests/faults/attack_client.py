"""Clients of an agent that mean no good: what they say on the wire, and how they say it."""
import contextlib
import random
import socket
import struct
import time

import zmq

from control_frames import id_of, kAgain, kind_of

kGreeting = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + bytes(32)
kReady = b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0"
kMoreParts, kLarge = 1, 2
kParts, kPartBytes = 200000, 200  # 60 MB and more where they are kept
kFewParts = 500
kWithoutEnd = 8 << 20  # of parts without an end
kLeastSmall, kLeastLarge = 1 << 17, 1 << 19  # of them that are taken: a good message has as many
kTimesAgain = 3
kCrowd, kCrowdS = 4, 2
kMostClosingS = 5  # heartbeats, which are not passed on either, end a connection later


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
        self.events = self.socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        keys = target.keys if keys == "own" else keys
        if target.port and keys:
            self.socket.curve_publickey, self.socket.curve_secretkey, self.socket.curve_serverkey = keys
        self.socket.connect(target.endpoint)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        self.context.destroy()

    def ask(self, message, seconds, kind="StatusReply"):
        """An answer of that kind; none, or to be refused, is a failure."""
        self.socket.send(message)
        assert self.socket.poll(seconds * 1000), "no answer within %g s" % seconds
        answer = self.socket.recv()
        assert kind_of(answer) == kind, "a %s is the answer: %s" % (kind_of(answer), answer)
        return answer

    def lost(self, seconds=20):
        """@return whether its connection has ended; libzmq makes another one"""
        return bool(self.events.poll(seconds * 1000))


class Tap:
    """Between a client and the agent, over tcp: what the client says is heard and passed on, as far as it is meant to be."""

    def __init__(self, target):
        self.target, self.keys, self.heard = target, target.keys, b""
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.endpoint = "tcp://127.0.0.1:%d" % self.port

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()

    def pass_on(self, done, most=1 << 30, seconds=20):
        """Until done(), the time is over or the agent has closed; `most` bytes of the client's.
        @return whether the agent has closed"""
        ends = time.monotonic() + seconds
        client, _ = self.listener.accept()
        with client, raw(self.target) as agent:
            agent.settimeout(seconds)
            poller = zmq.Poller()
            poller.register(client, zmq.POLLIN)
            poller.register(agent, zmq.POLLIN)
            while not done() and time.monotonic() < ends:
                for ready, _ in poller.poll(100):
                    try:
                        if ready == client.fileno():
                            data = client.recv(min(1 << 16, most - len(self.heard)))
                            self.heard += data
                            agent.sendall(data)
                            if len(self.heard) == most:
                                poller.unregister(client)
                        elif data := agent.recv(1 << 16):
                            client.sendall(data)
                        else:
                            return True
                    except (BrokenPipeError, ConnectionResetError):
                        return True
        return False


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
        assert dealer.lost(), "a frame of 200 MB has not ended its connection"


def many_parts(target, messages):
    """Of whole messages, the first part a good request: more than may be kept end their connection, fewer are read, dropped and noted."""
    request = messages.make_once("ProcessesRequest")
    answered, noted = target.answered(), target.noted_parts()
    with Dealer(target) as dealer:
        dealer.socket.send_multipart([request] + [bytes(kPartBytes)] * kParts)
        assert dealer.lost(), "%d parts of %d bytes have not ended their connection" % (kParts, kPartBytes)
        assert not dealer.socket.poll(0), "they were answered"
    with Dealer(target) as dealer:
        dealer.socket.send_multipart([request] + [bytes(kPartBytes)] * kFewParts)
        dealer.ask(messages.make_once("StatusRequest"), 20)
        assert not dealer.lost(0), "%d parts have ended their connection" % kFewParts
    got = target.answered() - answered, target.noted_parts() - noted
    assert got == (0, 1), "of two messages of many parts (answered, noted as such) are %s" % (got,)


def endless_parts(target, _):
    """None of them the last one; as small as they can be, and as large. Over tcp it is libzmq that says them, which says nothing before it has the last one: a tap keeps
    the end back."""
    if target.port:
        for part, count, least in ((b"", 2 * kWithoutEnd // 35, kLeastSmall), (bytes(400 << 10), 2 * kWithoutEnd // (400 << 10), kLeastLarge)):  # CURVE makes no bytes 35
            with Tap(target) as tap, Dealer(tap) as dealer:
                dealer.socket.send_multipart([part] * count)
                closed = tap.pass_on(lambda: False, most=kWithoutEnd, seconds=kMostClosingS)
            assert closed and len(tap.heard) > least, "after %d bytes of parts of %d without an end: closed is %s" % (len(tap.heard), len(part), closed)
        return
    for part, least in ((struct.pack("BB", kMoreParts, 0), kLeastSmall), (struct.pack(">BQ", kMoreParts | kLarge, 1 << 19) + bytes(1 << 19), kLeastLarge)):
        connection = greeted(target)
        taken = say(connection, part * ((64 << 20) // len(part)))
        connection.close()
        assert least < taken < kWithoutEnd, "%d bytes of parts without an end were taken" % taken


def told_again(target, _):
    """Small frames that would come to gigabytes, or to a hundred times their size: each is refused, those that are no requests unread."""
    with Dealer(target) as dealer:
        for number, (what, frame) in enumerate(kAgain.items(), 1):
            for _ in range(kTimesAgain):
                assert id_of(dealer.ask(frame(number), 20, "ErrorReply")) == number, "%s: another one's answer" % what


def crowded(target, messages):
    """Few connections that ask as fast as they are let, and always for something that is worked on in turn. Who asks beside them is the poller."""
    with contextlib.ExitStack() as stack:
        dealers = [stack.enter_context(Dealer(target)) for _ in range(kCrowd)]
        ends = time.monotonic() + kCrowdS
        while time.monotonic() < ends:
            for dealer in dealers:
                with contextlib.suppress(zmq.Again):
                    for _ in range(64):
                        dealer.socket.send(messages.make_once("StatusRequest"), zmq.NOBLOCK)
                while dealer.socket.poll(0):
                    dealer.socket.recv()


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
    with Tap(target) as tap, Dealer(tap) as dealer:
        dealer.socket.send(messages.make_once("ProcessesRequest"))
        tap.pass_on(lambda: dealer.socket.poll(0))
        assert dealer.socket.poll(0), "a good client was not answered"
    before = target.answered()
    again = raw(target)
    say(again, tap.heard)
    again.settimeout(5)
    answer = b""
    try:
        while data := again.recv(1 << 16):
            answer += data
    except OSError:
        pass
    again.close()
    assert len(answer) < 400 and target.answered() == before, "a recorded conversation was answered with %d bytes" % len(answer)


kAttacks = (garbage, huge_frame, many_parts, endless_parts, told_again, crowded, never_reads, replayed, recorded)
