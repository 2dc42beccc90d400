"""A switch with delays between links of this host: frames that come from one leave by the others, in order, as late as asked.

    switch.py LINK,LINK,... [FROM-TO:MILLISECONDS ...]      FROM and TO are positions in the list; a way that is not named has no delay
"""
import heapq
import itertools
import selectors
import socket
import sys
import time

kEveryProtocol = 3  # ETH_P_ALL
kPacketIgnoreOutgoing = (263, 23)  # SOL_PACKET, PACKET_IGNORE_OUTGOING: not what we have sent ourselves
kMostFrameBytes = 65536


class Switch:
    def __init__(self, links, delays_s):
        self.delays_s = delays_s
        self.sockets = [self._open(link) for link in links]
        self.selector = selectors.DefaultSelector()
        for number, link in enumerate(self.sockets):
            self.selector.register(link, selectors.EVENT_READ, number)
        self.ports = {}  # where a station was seen last
        self.waiting = []  # (when, order, to, frame)
        self.order = itertools.count()
        self.last = {}  # when the last frame of a way leaves: none overtakes another

    @staticmethod
    def _open(link):
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(kEveryProtocol))
        opened.setsockopt(*kPacketIgnoreOutgoing, 1)
        opened.bind((link, 0))
        opened.setblocking(False)
        return opened

    def take(self, number):
        while True:
            try:
                frame = self.sockets[number].recv(kMostFrameBytes)
            except BlockingIOError:
                return
            self.ports[frame[6:12]] = number
            known = self.ports.get(frame[:6])
            for to in range(len(self.sockets)) if known is None else (known,):
                if to != number:
                    self.queue(number, to, frame)

    def queue(self, number, to, frame):
        when = max(time.monotonic() + self.delays_s.get((number, to), 0.0), self.last.get((number, to), 0.0))
        self.last[number, to] = when
        heapq.heappush(self.waiting, (when, next(self.order), to, frame))

    def send_due(self):
        while self.waiting and self.waiting[0][0] <= time.monotonic():
            _, _, to, frame = heapq.heappop(self.waiting)
            try:
                self.sockets[to].send(frame)
            except OSError:
                pass  # the host has gone, or its queue is full: a network loses frames

    def run(self):
        while True:
            self.send_due()
            left = max(0.0, self.waiting[0][0] - time.monotonic()) if self.waiting else None
            for key, _ in self.selector.select(left):
                self.take(key.data)


def main():
    delays_s = {}
    for word in sys.argv[2:]:
        way, _, ms = word.partition(":")
        start, _, to = way.partition("-")
        delays_s[int(start), int(to)] = float(ms) / 1000
    Switch(sys.argv[1].split(","), delays_s).run()


main()
