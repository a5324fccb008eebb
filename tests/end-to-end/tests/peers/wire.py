"""A wire between two TAP interfaces, which loses, repeats, delays, disorders and damages packets as it is told.

Usage: wire.py ONE OTHER CAPTURE SEED. Makes both interfaces and prints "ready". Everything that goes in at either end is
written to the file CAPTURE, as pcap, before anything happens to it. Lines on standard input are commands, each of which
is answered by one line: "set loss=0.02 delay=5 ..." (probabilities, and milliseconds), and "counts". Ends with its input.
"""

import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TAP, IFF_NO_PI = 0x0002, 0x1000
LONGEST = 65536
# Packets taken from one end before the other has its turn.
AT_ONCE = 32


def tap(name):
    file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return file


class Wire:
    def __init__(self, capture, seed):
        self.capture = capture
        self.random = random.Random(seed)
        self.later = []
        self.number = 0
        self.settings = {}
        self.counts = {}
        self.set({})

    def set(self, settings):
        usual = dict(loss=0.0, duplicate=0.0, reorder=0.0, corrupt=0.0, delay=0.0, jitter=0.0)
        self.settings = {**usual, **settings}
        self.counts = dict(packets=0, lost=0, duplicated=0, reordered=0, corrupted=0, refused=0)

    def happens(self, what, counted):
        if self.settings[what] and self.random.random() < self.settings[what]:
            self.counts[counted] += 1
            return True
        return False

    def record(self, packet):
        now = time.time()
        head = struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(packet), len(packet))
        self.capture.write(head + packet)

    def take(self, packet, to):
        """Packets of IPv4 alone are damaged: ARP has no checksum that would tell."""
        self.record(packet)
        self.counts["packets"] += 1
        if self.happens("loss", "lost"):
            return
        if packet[12:14] == b"\x08\x00" and self.happens("corrupt", "corrupted"):
            bit = self.random.randrange(14 * 8, len(packet) * 8)
            damaged = bytearray(packet)
            damaged[bit // 8] ^= 1 << bit % 8
            packet = bytes(damaged)
        self.forward(packet, to)
        if self.happens("duplicate", "duplicated"):
            self.forward(packet, to)

    def forward(self, packet, to):
        delay = self.settings["delay"] + self.random.random() * self.settings["jitter"]
        if self.happens("reorder", "reordered"):
            delay += 1 + self.random.random() * 4
        if delay == 0 and not self.later:
            self.send(packet, to)
            return
        self.number += 1
        heapq.heappush(self.later, (time.monotonic() + delay / 1000, self.number, packet, to))

    def send(self, packet, to):
        try:
            os.write(to, packet)
        except OSError:
            self.counts["refused"] += 1

    def send_due(self):
        """Sends what is due; how many milliseconds there are until the next."""
        while self.later:
            wait = self.later[0][0] - time.monotonic()
            if wait > 0:
                return wait * 1000
            _, _, packet, to = heapq.heappop(self.later)
            self.send(packet, to)
        return None


def command(wire, line):
    words = line.split()
    if words and words[0] == "set":
        wire.set({name: float(value) for name, value in (word.split("=") for word in words[1:])})
        return "done"
    wire.capture.flush()
    return json.dumps(wire.counts)


def main():
    one, other, path, seed = sys.argv[1:]
    ends = {tap(one): None, tap(other): None}
    first, second = ends
    ends = {first: second, second: first}
    with open(path, "wb") as capture:
        capture.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, LONGEST, 1))
        wire = Wire(capture, int(seed))
        poll = select.poll()
        for file in [*ends, 0]:
            poll.register(file, select.POLLIN)
        print("ready", flush=True)
        while True:
            for file, _ in poll.poll(wire.send_due()):
                if file == 0:
                    line = sys.stdin.readline()
                    if not line:
                        return
                    print(command(wire, line), flush=True)
                    continue
                for _ in range(AT_ONCE):
                    try:
                        wire.take(os.read(file, LONGEST), ends[file])
                    except BlockingIOError:
                        break


main()
