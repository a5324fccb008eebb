"""The other machine's part in tests of TCP: what Linux's stack says to ours. Ends with status 0 when all was as it
must be, and tells what was not.

Usage: peer.py WHAT ADDRESS [ARGUMENT ...]; see the functions at the end.
"""

import hashlib
import http.server
import random
import socket
import struct
import sys
import threading
import time

PATIENCE = 60
ECHO_PORT = 7


def connect(address, port=ECHO_PORT):
    return socket.create_connection((address, port), timeout=PATIENCE)


def pieces(data, chance):
    at = 0
    while at < len(data):
        length = chance.choice([1, 100, 1460, 8192, 65536])
        yield data[at : at + length]
        at += length


def send_all(stream, data, chance):
    for piece in pieces(data, chance):
        stream.sendall(piece)
    stream.shutdown(socket.SHUT_WR)


def receive(stream, expected, pause=0.0):
    """Reads to the end: it must be what was expected, byte for byte."""
    digest, length = hashlib.sha256(), 0
    while True:
        data = stream.recv(65536)
        if not data:
            break
        digest.update(data)
        length += len(data)
        if pause:
            time.sleep(pause)
    if length != len(expected) or digest.digest() != hashlib.sha256(expected).digest():
        raise AssertionError(f"{length} bytes came back of {len(expected)}, or others")


def echo_one(address, count, seed, pause=0.0, wait=0.0):
    """Sends, finishes one half, and reads meanwhile what comes back, to its end."""
    chance = random.Random(seed)
    data = chance.randbytes(count)
    with connect(address) as stream:
        sender = threading.Thread(target=send_all, args=(stream, data, chance), daemon=True)
        sender.start()
        time.sleep(wait)
        receive(stream, data, pause)
        sender.join(PATIENCE)


def all_of(calls):
    """Runs calls at the same time; all must succeed."""
    problems = []

    def run(call):
        try:
            call()
        except Exception as problem:
            problems.append(repr(problem))

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
        if thread.is_alive():
            problems.append("it does not end")
    if problems:
        sys.exit("; ".join(problems))


def echo(address, connections, count, seed):
    """So many connections at once, each with so many bytes."""
    number = int(connections)
    all_of([lambda one=one: echo_one(address, int(count), int(seed) + one) for one in range(number)])


def slow(address, count, seed):
    """One that does not read for a while and then little by little, beside one that does."""
    all_of(
        [
            lambda: echo_one(address, int(count), int(seed), pause=0.002, wait=1.0),
            lambda: echo_one(address, int(count), int(seed) + 1),
        ]
    )


def resets(address, times):
    """Connections that are reset in the middle, or closed without a word; and ports where nobody listens."""
    for number in range(int(times)):
        with connect(address) as stream:
            stream.sendall(b"x" * 10_000 * (number % 3))
            if number % 2:
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    try:
        connect(address, 9).close()
    except ConnectionRefusedError:
        pass
    else:
        sys.exit("nobody listens at port 9, and yet it connects")
    echo_one(address, 10_000, 1)


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def syn(source, target, source_port, port, sequence):
    pseudo = source + target + struct.pack("!BBH", 0, socket.IPPROTO_TCP, 20)
    fields = (source_port, port, sequence, 0, 5 << 4, 2, 64240)
    wrong = struct.pack("!HHIIBBHHH", *fields, 0, 0)
    segment = struct.pack("!HHIIBBHHH", *fields, checksum(pseudo + wrong), 0)
    head = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, socket.IPPROTO_TCP, 0) + source + target
    return head + segment


def flood(address, count, seconds):
    """Asks for connections in the name of hosts that do not answer, while one that stands goes on, and new ones are
    made."""
    chance = random.Random(1)
    target = socket.inet_aton(address)
    standing = connect(address)

    def goes_on():
        standing.sendall(b"still there?")
        if standing.recv(100) != b"still there?":
            sys.exit("the connection that stood does not go on")

    goes_on()
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    begin = time.monotonic()
    made = 0
    for number in range(int(count)):
        source = bytes([10, *chance.randbytes(3)])
        packet = syn(source, target, chance.randrange(1024, 65536), ECHO_PORT, chance.getrandbits(32))
        raw.sendto(packet, (address, 0))
        if number % (int(count) // 10) == 0:
            goes_on()
            echo_one(address, 1000, number)
            made += 1
        ahead = begin + int(seconds) * number / int(count) - time.monotonic()
        if ahead > 0.005:
            time.sleep(ahead)
    goes_on()
    standing.close()
    print(f"{count} in {time.monotonic() - begin:.1f} s, {made} connections meanwhile")


def serve(address, port, count, seed):
    """Serves as many bytes at /data, and answers what is posted with its checksum, until its input ends."""
    data = random.Random(int(seed)).randbytes(int(count))

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self, content):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_GET(self):
            self.answer(data)

        def do_POST(self):
            posted = self.rfile.read(int(self.headers["Content-Length"]))
            self.answer(hashlib.sha256(posted).hexdigest().encode() + b"\n")

        def log_message(self, *_):
            pass

    class Server(http.server.ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address else socket.AF_INET

    server = Server((address, int(port)), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(hashlib.sha256(data).hexdigest(), flush=True)
    sys.stdin.read()


what = {"echo": echo, "slow": slow, "resets": resets, "flood": flood, "serve": serve}[sys.argv[1]]
what(*sys.argv[2:])
