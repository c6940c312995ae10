# SPDX-License-Identifier: Apache-2.0
"""Traffic with sequence numbers, and what became of it. Also a program: `python3 traffic.py send|recv|serve|fetch`.

A sender writes the time at which each number left, a receiver the time at which it came; both in nanoseconds of the
machine's monotonic clock, so one can be laid beside the other.
"""

import argparse
import array
import hashlib
import os
import signal
import socket
import struct
import sys
import time

HEAD = struct.Struct("!QQ")  # number, nanoseconds
SO_RCVBUFFORCE = 33
HERE = os.path.abspath(__file__)


def save(path, numbers):
    with open(path + ".part", "wb") as f:
        array.array("Q", numbers).tofile(f)
    os.rename(path + ".part", path)


def load(path):
    a = array.array("Q")
    with open(path, "rb") as f:
        a.frombytes(f.read())
    return a


def send(a):
    family = socket.AF_INET6 if ":" in a.dst[0] else socket.AF_INET
    flows = []
    for i in range(a.flows):
        s = socket.socket(family, socket.SOCK_DGRAM)
        s.bind(("", a.sport + i))
        flows.append((s, (a.dst[i % len(a.dst)], a.port)))
    pad = bytes(max(0, a.size - HEAD.size))
    times = []
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    step = max(1, a.pps // 1000)  # packets per burst; bursts of one millisecond at most
    gap = step / a.pps
    began = time.monotonic()
    end = began + a.seconds
    n = 0
    while not stop:
        now = time.monotonic()
        if now >= end:
            break
        due = began + (n // step) * gap
        if now < due:
            time.sleep(due - now)
        for _ in range(step):
            s, to = flows[n % len(flows)]
            t = time.monotonic_ns()
            try:
                s.sendto(HEAD.pack(n, t) + pad, to)
            except OSError:
                pass  # counted as lost, which it is
            times.append(t)
            n += 1
    save(a.out, times)


def recv(a):
    family = socket.AF_INET6 if ":" in a.bind else socket.AF_INET
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((a.bind, a.port))
    s.settimeout(0.2)
    got = []  # number, time, number, time
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    print("ready", flush=True)
    while True:
        try:
            data = s.recv(65535)
        except TimeoutError:
            if stop:
                break
            continue
        n, _ = HEAD.unpack_from(data)
        got.append(n)
        got.append(time.monotonic_ns())
    save(a.out, got)


def serve(a):
    """A TCP server: takes one stream after the other and answers each with its length and SHA-256."""
    six = ":" in a.bind
    s = socket.create_server((a.bind, a.port), family=socket.AF_INET6 if six else socket.AF_INET, dualstack_ipv6=six)
    print("ready", flush=True)
    while True:
        c, _ = s.accept()
        with c:
            h, n = hashlib.sha256(), 0
            while block := c.recv(1 << 18):
                h.update(block)
                n += len(block)
            c.sendall(f"{n} {h.hexdigest()}\n".encode())


def fetch(a):
    """A TCP client: sends a stream, compares the server's answer, prints megabits per second."""
    h = hashlib.sha256()
    block = os.urandom(1 << 18)
    began = time.monotonic()
    with socket.create_connection((a.dst[0], a.port), timeout=20) as c:
        left = a.bytes
        while left:
            part = block[:min(left, len(block))]
            c.sendall(part)
            h.update(part)
            left -= len(part)
        c.shutdown(socket.SHUT_WR)
        said = b""
        while chunk := c.recv(200):
            said += chunk
    spent = time.monotonic() - began
    if said.decode() != f"{a.bytes} {h.hexdigest()}\n":
        sys.exit(f"the stream arrived changed: sent {a.bytes} bytes, the server says {said!r}")
    print(f"{a.bytes * 8 / spent / 1e6:.0f}")


def words(*args):
    """The command line that runs this file as a program."""
    return [sys.executable, HERE, *[str(x) for x in args]]


class Stream:
    """Numbered datagrams from one namespace to another, in the background."""

    def __init__(self, src, dst, address, folder, tag, pps=1000, seconds=600, flows=1, port=7000, sport=20000,
                 size=64, addresses=None, bind=None):
        self.sent_file = os.path.join(folder, f"{tag}.sent")
        self.got_file = os.path.join(folder, f"{tag}.got")
        for f in (self.sent_file, self.got_file):
            if os.path.exists(f):
                os.unlink(f)
        anywhere = "::" if ":" in address else "0.0.0.0"
        self.receiver = dst.popen(*words("recv", "--bind", bind or anywhere, "--port", port, "--out", self.got_file),
                                  stdout=-1)
        self.receiver.stdout.readline()
        self.sender = src.popen(*words("send", "--port", port, "--sport", sport, "--pps", pps, "--flows", flows,
                                       "--seconds", seconds, "--size", size, "--out", self.sent_file,
                                       *[w for a in (addresses or [address]) for w in ("--dst", a)]))
        self.flows = flows

    def finish(self, linger=0.5):
        """Ends both; returns a `Result`."""
        if self.sender.poll() is None:
            self.sender.terminate()
        self.sender.wait(20)
        time.sleep(linger)
        self.receiver.terminate()
        self.receiver.wait(20)
        self.receiver.stdout.close()
        return Result(load(self.sent_file), load(self.got_file), self.flows)

    def wait(self, linger=0.5):
        """Waits for the sender's own end first."""
        self.sender.wait(900)
        return self.finish(linger)


class Result:
    """What was sent, what came, what is missing."""

    def __init__(self, sent, got, flows=1):
        self.sent = sent
        self.count = len(sent)
        self.arrived = {}
        self.duplicates = 0
        last = {}
        self.reordered = 0
        for i in range(0, len(got), 2):
            n, t = got[i], got[i + 1]
            if n in self.arrived:
                self.duplicates += 1
                continue
            self.arrived[n] = t
            flow = n % flows
            if n < last.get(flow, -1):
                self.reordered += 1
            else:
                last[flow] = n
        self.lost = [n for n in range(self.count) if n not in self.arrived]

    def lost_between(self, begin_ns, end_ns):
        """Numbers that were sent in that interval and never came."""
        return [n for n in self.lost if begin_ns <= self.sent[n] < end_ns]

    def last_lost_ns(self):
        """When the last packet left that never came, 0 if none is missing."""
        return self.sent[self.lost[-1]] if self.lost else 0

    def __str__(self):
        return f"{self.count} sent, {len(self.lost)} lost, {self.duplicates} twice, {self.reordered} out of order"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("what", choices=["send", "recv", "serve", "fetch"])
    p.add_argument("--dst", action="append", default=[])
    p.add_argument("--bind", default="0.0.0.0")
    p.add_argument("--port", type=int, default=7000)
    p.add_argument("--sport", type=int, default=20000)
    p.add_argument("--flows", type=int, default=1)
    p.add_argument("--pps", type=int, default=1000)
    p.add_argument("--seconds", type=float, default=600)
    p.add_argument("--size", type=int, default=64)
    p.add_argument("--bytes", type=int, default=16 << 20)
    p.add_argument("--out", default="/dev/null")
    a = p.parse_args()
    {"send": send, "recv": recv, "serve": serve, "fetch": fetch}[a.what](a)


if __name__ == "__main__":
    main()
