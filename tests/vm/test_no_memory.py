#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# lab: --backend null --ports 4
# timeout: 300
# kernel: debug
# long
"""Every allocation behind a request fails once: the caller hears of it or the request is done, and nothing is left.

    request ──► fail-nth 1, 2, 3 … until the request needs fewer ──► undone ──► the chip's accounts are what they were

Also while the driver is loaded. The kernel's own complaints and kmemleak are looked at by whoever runs this. It ends in
time: where that is short, some of a request's allocations are passed over, and that is said.
"""

import ctypes
import glob
import os
import random
import socket
import struct
import subprocess
import sys
import time

LOADS, REQUESTS = 180, 540  # seconds for all loads of the driver, and for all requests
MOST = 300  # allocations behind a request
FAIL = "/sys/kernel/debug/failslab/"
ACK, CREATE, REPLACE, APPEND = 4, 0x400, 0x100, 0x800
AF_BRIDGE = 7


def ip(words, check=True):
    return subprocess.run(["ip", *words.split()], check=check, capture_output=not check, text=True)


class Netlink:
    """rtnetlink, one request at a time: the kernel does it in our own context, before send() returns."""

    def __init__(self):
        self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.sock.settimeout(5)
        self.seq = 0

    def __call__(self, kind, flags, body):
        """errno, 0 for success, None if the answer was lost."""
        self.seq += 1
        message = struct.pack("=IHHII", 16 + len(body), kind, 1 | ACK | flags, self.seq, 0) + body
        try:
            self.sock.send(message)
            while True:
                data = self.sock.recv(65536)
                seq, error = struct.unpack_from("=I4xi", data, 8)
                if seq == self.seq:
                    return -error
        except OSError as e:
            return e.errno or None


def attr(kind, data):
    if isinstance(data, int):
        data = struct.pack("=I", data)
    raw = struct.pack("=HH", 4 + len(data), kind) + data
    return raw + b"\0" * (-len(raw) % 4)


def addr(text):
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def family(text):
    return socket.AF_INET6 if ":" in text else socket.AF_INET


def route(prefix, ways, nhid=0):
    """struct rtmsg and its attributes; ways: [(gateway, ifindex)]"""
    dst, length = prefix.split("/")
    body = struct.pack("=BBBBBBBBI", family(dst), int(length), 0, 0, 254, 4, 0, 1, 0) + attr(1, addr(dst))
    if nhid:
        return body + attr(30, nhid)
    if len(ways) == 1:
        return body + attr(5, addr(ways[0][0])) + attr(4, ways[0][1])
    hops = b""
    for gateway, index in ways:
        via = attr(5, addr(gateway))
        hops += struct.pack("=HBBi", 8 + len(via), 0, 0, index) + via
    return body + attr(9, hops)


def nexthop(number, gateway=None, index=0, group=()):
    body = struct.pack("=BBBBI", family(gateway) if gateway else 0, 0, 4, 0, 0) + attr(1, number)
    if group:
        return body + attr(2, b"".join(struct.pack("=IBBH", member, 0, 0, 0) for member in group))
    return body + attr(6, addr(gateway)) + attr(5, index)


def which(number):
    """A next-hop object, for a delete: nothing but its number."""
    return struct.pack("=BBBBI", 0, 0, 0, 0, 0) + attr(1, number)


def neigh(address, index, mac):
    return (struct.pack("=BBHiHBB", family(address), 0, 0, index, 0x80, 0, 0)
            + attr(1, addr(address)) + attr(2, bytes.fromhex(mac)))


def fdb(index, mac, vid):
    return (struct.pack("=BBHiHBB", AF_BRIDGE, 0, 0, index, 0xC0, 4, 0)
            + attr(2, bytes.fromhex(mac)) + attr(5, struct.pack("=H", vid)))


def address(text, length, index):
    return struct.pack("=BBBBi", family(text), length, 0, 0, index) + attr(2, addr(text)) + attr(1, addr(text))


def link(index, *attrs, kind=0):
    return struct.pack("=BBHiII", kind, 0, 0, index, 0, 0) + b"".join(attrs)


def vlan(index, vid):
    return link(index, attr(26, attr(2, struct.pack("=HH", 0, vid))), kind=AF_BRIDGE)


class Fault:
    """The nth allocation of this thread from now on fails."""

    def __init__(self):
        for name, value in {"verbose": "0", "ignore-gfp-wait": "N", "probability": "0", "times": "-1"}.items():
            with open(FAIL + name, "w") as f:
                f.write(value)
        self.fd = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

    def arm(self, n):
        os.pwrite(self.fd, str(n).encode(), 0)

    def fired(self):
        left = int(os.pread(self.fd, 16, 0))
        self.arm(0)
        return left == 0


def accounts():
    with open(glob.glob("/sys/kernel/debug/clsw_null/*/pools")[0]) as f:
        # what is leased or not is the resource manager's business
        return {line.split()[0]: int(line.split()[2]) for line in f}


def settled(want, seconds, what):
    end = time.monotonic() + seconds
    while (now := accounts()) != want:
        if time.monotonic() > end:
            wrong = {k: f"{now[k]}, wanted {want[k]}" for k in want if now[k] != want[k]}
            sys.exit(f"FAILED: {what}: the chip holds {wrong}")
        time.sleep(0.2)


def check():
    with open(glob.glob("/sys/kernel/debug/clsw_null/*/check")[0]) as f:
        verdict = f.read().strip()
    if verdict != "ok":
        sys.exit(f"FAILED: the chip's own check: {verdict}")


def loads(fault):
    """The driver is loaded with its nth allocation failing: it is there as a whole, or not at all."""
    libc = ctypes.CDLL(None, use_errno=True)
    path = f"/lib/modules/{os.uname().release}/updates/clsw_null.ko"
    began, n, done, refused = time.monotonic(), 0, 0, 0
    rnd = random.Random(7)
    while done < 60 and time.monotonic() < began + LOADS:
        n = n + 1 if done < 20 else rnd.randrange(20, 1500)
        subprocess.run(["modprobe", "-r", "clsw_null"], check=True)
        subprocess.run(["modprobe", "clsw"], check=True)  # what it needs went with it
        fd = os.open(path, os.O_RDONLY)
        fault.arm(n)
        libc.syscall(313, fd, b"ports=4", 0)  # finit_module
        fault.fired()
        os.close(fd)
        done += 1
        ports = len(glob.glob("/sys/class/net/swp*"))
        if ports not in (0, 4):
            sys.exit(f"FAILED: {ports} of 4 ports are there when allocation {n} fails")
        refused += not ports
    subprocess.run(["modprobe", "-r", "clsw_null"], check=True)
    subprocess.run(["modprobe", "clsw_null", "ports=4"], check=True)
    took = time.monotonic() - began
    print(f"{done} loads of the driver with one allocation failing, {refused} refused, {took:.0f} s", flush=True)
    if not os.path.exists("/sys/class/net/swp1"):
        sys.exit("FAILED: no ports after that")
    if refused in (0, done):
        sys.exit("FAILED: a load was never refused, or always")


class Steps:
    """1, 2, 3 … and in larger steps when the time is over."""

    def __init__(self, seconds):
        self.end, self.rnd, self.passed_over = time.monotonic() + seconds, random.Random(1), 0

    def __iter__(self):
        n = 0
        while n < MOST:
            step = 1 if time.monotonic() < self.end else self.rnd.randrange(2, 12)
            self.passed_over += step - 1
            n += step
            yield n


def main():
    fault = Fault()
    loads(fault)
    with open("/proc/sys/net/ipv4/ip_forward", "w") as f:
        f.write("1")
    with open("/proc/sys/net/ipv6/conf/all/forwarding", "w") as f:
        f.write("1")
    ip("link add br0 type bridge vlan_filtering 1")
    ip("link set br0 up")
    index = {}
    for k in (1, 2, 3, 4):
        ip(f"link set swp{k} up")
        index[k] = socket.if_nametoindex(f"swp{k}")
    ip("link set swp3 master br0")
    for k in (1, 2):
        ip(f"addr add 10.0.{k}.1/24 dev swp{k}")
        ip(f"-6 addr add 2001:db8:{k}::1/64 dev swp{k} nodad")
        for h in (2, 3):
            ip(f"neigh replace 10.0.{k}.{h} lladdr 02:00:00:00:0{k}:0{h} dev swp{k}")
            ip(f"neigh replace 2001:db8:{k}::{h} lladdr 02:00:00:00:0{k}:0{h} dev swp{k}")
    ip("route add 50.0.0.0/8 via 10.0.1.2")
    ip("nexthop add id 1 via 10.0.1.2 dev swp1")
    ip("nexthop add id 2 via 10.0.2.2 dev swp2")
    ip("nexthop add id 3 group 1/2")
    ip("route add 51.0.0.0/8 nhid 3")
    time.sleep(5)
    want, nl = accounts(), Netlink()
    four = [("10.0.1.2", index[1]), ("10.0.2.3", index[2])]
    six = [("2001:db8:1::2", index[1]), ("2001:db8:2::3", index[2])]
    requests = {  # name: (do, its flags, body, undo, body)
        "IPv4 route": (24, CREATE, route("60.0.0.0/16", four[:1]), 25, None),
        "IPv4 multipath": (24, CREATE, route("60.1.0.0/16", four), 25, None),
        "IPv4 replace": (24, CREATE | REPLACE, route("50.0.0.0/8", four[1:]), 24, route("50.0.0.0/8", four[:1])),
        "IPv4 by object": (24, CREATE, route("60.2.0.0/16", [], 3), 25, None),
        "IPv6 route": (24, CREATE, route("2001:db8:60::/48", six[:1]), 25, None),
        "IPv6 multipath": (24, CREATE, route("2001:db8:61::/48", six), 25, None),
        "IPv6 append": (24, CREATE | APPEND, route("2001:db8:62::/48", six[1:]), 25, None),
        "next-hop object": (104, CREATE, nexthop(10, "10.0.1.3", index[1]), 105, which(10)),
        "next-hop group": (104, CREATE, nexthop(11, group=(1, 2)), 105, which(11)),
        "group's replace": (104, CREATE | REPLACE, nexthop(3, group=(2,)), 104, nexthop(3, group=(1, 2))),
        "neighbour": (28, CREATE, neigh("10.0.1.77", index[1], "020000000177"), 29, None),
        "IPv6 neighbour": (28, CREATE, neigh("2001:db8:1::77", index[1], "020000000177"), 29, None),
        "address": (20, CREATE, address("10.0.9.1", 24, index[2]), 21, None),
        "IPv6 address": (20, CREATE, address("2001:db8:9::1", 64, index[2]), 21, None),
        "FDB entry": (28, CREATE, fdb(index[3], "020000000301", 1), 29, None),
        "VLAN": (19, 0, vlan(index[3], 7), 17, vlan(index[3], 7)),
        "port into a bridge": (16, 0, link(index[4], attr(10, socket.if_nametoindex("br0"))),
                               16, link(index[4], attr(10, 0))),
    }
    end = time.monotonic() + REQUESTS
    for at, (name, (do, flags, body, undo, undo_body)) in enumerate(requests.items()):
        share, passed_over, began = (end - time.monotonic()) / (len(requests) - at) / 2, 0, time.monotonic()
        undo_body = undo_body or body
        undo_flags = CREATE | REPLACE if undo in (24, 104) else 0
        steps = refused = lost = 0
        for armed in (do, undo):
            for n in (several := Steps(share)):
                if armed == undo and nl(do, flags, body):
                    sys.exit(f"FAILED: {name}: refused without a fault")
                fault.arm(n)
                if armed == do:
                    answer = nl(do, flags, body)
                else:
                    answer = nl(undo, undo_flags, undo_body)
                fired = fault.fired()
                refused += bool(answer)
                lost += answer is None or answer == 105
                # whatever came of it; after a lost answer nobody knows
                nl(undo, undo_flags, undo_body)
                steps += 1
                if not fired:
                    break
            else:
                sys.exit(f"FAILED: {name}: no end of allocations")
            passed_over += several.passed_over
        check()
        settled(want, 60, name)
        print(f"{name}: {steps} allocations failed, {passed_over} passed over, {refused} errors to the caller, "
              f"{lost} answers lost, {time.monotonic() - began:.0f} s", flush=True)
    shown = ip("route show", check=False).stdout
    for prefix in ("50.0.0.0/8", "51.0.0.0/8"):
        line = [x for x in shown.splitlines() if x.startswith(prefix)]
        if not line or "rt_offload" not in line[0]:
            sys.exit(f"FAILED: {prefix} is not in hardware after all that: {line}")


main()
