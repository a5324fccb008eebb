"""Reads a file slowly over many connections, and times the first byte of another client meanwhile.

    slow_readers.py HOST CONNECTIONS FETCHES

Prints the times of the fetches in seconds, one per line. Exits with an error if a connection ends early.
"""

import socket
import sys
import time

HOST, CONNECTIONS, FETCHES = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
REQUEST = f"GET /file HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
# Bytes that each connection reads between two fetches, and the pause between fetches in seconds.
PIECE = 1024
PAUSE = 0.05


def connect(buffer=None):
    client = socket.socket()
    if buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    client.settimeout(30)
    client.connect((HOST, 80))
    client.sendall(REQUEST)
    return client


def first_byte():
    begin = time.perf_counter()
    client = connect()
    if not client.recv(1):
        sys.exit("no answer")
    took = time.perf_counter() - begin
    client.close()
    return took


readers = [connect(4096) for _ in range(CONNECTIONS)]
for _ in range(FETCHES):
    for reader in readers:
        if not reader.recv(PIECE):
            sys.exit("a slow reader's connection ended early")
    time.sleep(PAUSE)
    print(first_byte())
