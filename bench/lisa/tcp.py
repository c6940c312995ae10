# SPDX-License-Identifier: Apache-2.0
"""Seed 004's table: four hosts, all of whose transfers have the first one at one end, by TCP, zeroes into nothing.

  unidirectional: host 1 sends to 2, 3 and 4                bidirectional: and each of them to it, at the same time
"""

import os
import socket
import time

from lib import net

PORT = 5001


def address(n):
    return f"10.9.0.{n}"


def wire(hosts):
    """Addresses; and what a host hands over is what a wire would carry: whole frames with their checksums."""
    for n, ns in hosts.items():
        ns.exec("ethtool", "-K", "eth0", "tx", "off", "tso", "off", "gso", "off", "gro", "off", check=False)
        ns.ip(f"addr add {address(n)}/24 dev eth0")


def child(body, *args):
    """A process that does it; what it returns, a number, is read from the pipe."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(r)
            os.write(w, str(body(*args)).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(w)
    return pid, r


def sends(s, begin, seconds):
    data, total = bytes(65536), 0
    time.sleep(max(begin - time.monotonic(), 0))
    s.settimeout(0.5)
    while time.monotonic() < begin + seconds:
        try:
            total += s.send(data)
        except TimeoutError:
            pass
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # what is under way counts for nobody
    s.close()
    return total


def takes(s, begin, seconds):
    """Bytes that came until the time was up."""
    buffer, total = bytearray(1 << 18), 0
    s.settimeout(0.2)
    while time.monotonic() < begin + seconds:
        try:
            n = s.recv_into(buffer)
        except TimeoutError:
            continue
        except ConnectionError:
            break
        if not n:
            break
        total += n
    return total


def pair(hosts, source, target, port):
    """A connection's two ends."""
    def listen():
        s = socket.create_server((address(target), port))
        s.settimeout(30)
        return s

    listener = net.in_netns(hosts[target].name, listen)
    a = net.in_netns(hosts[source].name, socket.create_connection, (address(target), port), 30)
    b, _ = listener.accept()
    listener.close()
    return a, b


def transfer(hosts, both, seconds):
    """Megabits a second into and out of each host."""
    ways = [(1, n) for n in hosts if n != 1]
    if both:
        ways += [(n, 1) for n in hosts if n != 1]
    ends = [(a, b, *pair(hosts, a, b, PORT + i)) for i, (a, b) in enumerate(ways)]
    begin = time.monotonic() + 0.3
    children = []
    for source, target, s, t in ends:
        children.append((source, target, *child(takes, t, begin, seconds)))
        children.append((None, None, *child(sends, s, begin, seconds)))
        s.close()
        t.close()
    into, out = dict.fromkeys(hosts, 0.0), dict.fromkeys(hosts, 0.0)
    for source, target, pid, r in children:
        with os.fdopen(r, "rb") as f:
            text = f.read()
        _, status = os.waitpid(pid, 0)
        if status or not text:
            raise RuntimeError("an end of a transfer died")
        if source is not None:
            rate = int(text) * 8 / seconds / 1e6
            into[target] += rate
            out[source] += rate
    return {"into": [into[n] for n in hosts], "out": [out[n] for n in hosts]}
