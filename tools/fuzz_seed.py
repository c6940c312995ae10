#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs from which the corpora of ./run fuzz began: `unshare -n tools/fuzz_seed.py DIR` adds to DIR/TARGET. With
out/fuzz as DIR, `./run fuzz --keep` takes what is new in them into the archives of fuzz/corpus.

What this kernel says of a small router and a bridge (dumps, and what it tells while they are made), profiles, requests
to the management API. In a namespace of its own, because it makes devices. What a kernel lacks is left out."""

import os
import socket
import struct
import subprocess
import sys
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NLM_F_REQUEST, NLM_F_DUMP = 1, 0x300
GROUPS = [1, 3, 5, 7, 8, 9, 11, 19, 24, 25, 26, 32, 33, 4]
# RTM_NEWLINK, RTM_DELLINK, and of their attributes those that are read
LINK_CHANGES = (16, 17)
LINK_KEPT = (1, 3, 4, 5, 10, 12, 16, 18, 30, 37)
# RTM_GET… and its fixed part, as in linux/rtnetlink.h
DUMPS = {
    "link": (18, struct.pack("BBHiII", 0, 0, 0, 0, 0, 0)),
    "addr": (22, struct.pack("BBBBI", 0, 0, 0, 0, 0)),
    "route4": (26, struct.pack("BBBBBBBBI", 2, 0, 0, 0, 0, 0, 0, 0, 0)),
    "route6": (26, struct.pack("BBBBBBBBI", 10, 0, 0, 0, 0, 0, 0, 0, 0)),
    "neigh": (30, struct.pack("BBHiHBB", 0, 0, 0, 0, 0, 0, 0)),
    "fdb": (30, struct.pack("BBHiII", 7, 0, 0, 0, 0, 0)),
    "rule4": (34, struct.pack("BBBBBBBBI", 2, 0, 0, 0, 0, 0, 0, 0, 0)),
    "qdisc": (38, struct.pack("BBHiIII", 0, 0, 0, 0, 0, 0, 0)),
    "netconf": (82, struct.pack("BBH", 2, 0, 0)),
    "mdb": (86, struct.pack("BBHI", 7, 0, 0, 0)),
    "nexthop": (106, struct.pack("BBBBI", 0, 0, 0, 0, 0)),
    "vlan": (114, struct.pack("BBHI", 7, 0, 0, 0)),
}
STEPS = """
link set lo up
link add index 2 swp1 type veth peer name h1 index 31
link add index 3 swp2 type veth peer name h2 index 32
link add index 4 swp3 type veth peer name h3 index 33
link add index 20 br0 type bridge vlan_filtering 1 mcast_snooping 1
link add index 20 br0 type bridge
link set swp1 master br0
link set swp1 up
link set h1 up
link set swp2 up
link set h2 up
link set swp3 up
link set h3 up
link set br0 up
addr add 10.0.1.1/24 dev br0
addr add 10.0.2.1/24 dev swp2
addr add 10.0.3.1/24 dev swp3
addr add 2001:db8:2::1/64 dev swp2 nodad
neigh add 10.0.2.9 lladdr 02:00:00:00:00:09 dev swp2
neigh add 10.0.3.9 lladdr 02:00:00:00:00:0a dev swp3 nud reachable
neigh add 2001:db8:2::9 lladdr 02:00:00:00:00:09 dev swp2
route add 172.16.0.0/16 via 10.0.2.9
route add 172.17.0.0/16 nexthop via 10.0.2.9 nexthop via 10.0.3.9 weight 3
route add blackhole 172.18.0.0/16
route add 2001:db8:9::/48 via 2001:db8:2::9
nexthop add id 1 via 10.0.2.9 dev swp2
nexthop add id 2 via 10.0.3.9 dev swp3
nexthop add id 9 group 1,7/2,3
nexthop add id 9 group 1/2,3
route add 172.19.0.0/16 nhid 9
rule add from 10.9.0.0/16 table 100
link add link swp3 name swp3.10 type vlan id 10
link add bond0 type bond mode 802.3ad
link add red type vrf table 10
route replace 172.16.0.0/16 via 10.0.3.9
route del 172.17.0.0/16
link set swp3 down
link set swp3 up
nexthop del id 2
"""
BRIDGE = """
fdb add 02:00:00:00:00:33 dev swp1 master static
vlan add dev swp1 vid 10 pvid untagged
mdb add dev br0 port swp1 grp 239.1.1.1 permanent
"""
TC = """
qdisc add dev swp1 clsact
filter add dev swp1 ingress prio 1 proto ip flower ip_proto udp dst_port 100-200 action drop
filter add dev swp1 ingress prio 2 proto all matchall action mirred egress mirror dev swp2
filter add dev swp1 egress prio 1 proto ip matchall action police rate 1mbit burst 10k conform-exceed drop/pipe
"""
HTTP = [
    ("GET", path, None) for path in (
        "/v1/status /v1/ports /v1/resources /v1/traps /v1/drops /v1/replication /v1/learning /v1/queues /v1/acl "
        "/v1/table/routes?cursor=0&limit=5 /v1/table/acl-rules /v1/table/nhgs /v1/table/mdb /v1/table/members "
        "/v1/capture?port=swp1&filter=rx,tcp&count=3 /v1/capture?port=cpu /v1/routes?family=ipv4&limit=3 "
        "/v1/neighbours /v1/fdb /v1/mdb /v1/explain/route?key=10.0.0.0/8 /v1/explain/mac?key=02:00:00:00:00:01 "
        "/v1/explain/neighbour?key=2001:db8::1 /v1/explain/group?key=239.1.1.1").split()
] + [
    ("POST", "/v1/trace", '{"port": "swp1", "frame": "ffffffffffff02000000000108060001"}'),
    ("POST", "/v1/trace", '{"port":"swp1s0","frame":"020000000001 02:00:00:00:00:09 0800 45000014000000004011"}'),
    ("POST", "/v1/queues", '{"port": "swp2", "limit_mbps": 100}'),
    ("POST", "/v1/fault", '{"kind": "fail", "nth": 3, "cls": "route", "count": 2}'),
    ("POST", "/v1/fault", '{"kind": "table", "table": "ipv4-lpm"}'),
    ("POST", "/v1/fault", '{"kind": "flip", "table": "routes", "key": "10.0.0.0/8"}'),
    ("POST", "/v1/fault", '{"kind": "stray_tag", "vid": 5}'),
    ("POST", "/v1/fault", '{"kind": "delay", "ms": 5}'),
    ("POST", "/v1/fault", '{"kind": "reset"}'),
    ("POST", "/v1/fault", '{"kind": "clear"}'),
    ("POST", "/v1/storm", '{"port": "swp1", "kind": "broadcast", "packets": 100}'),
    ("POST", "/v1/sync", '{"timeout_ms": 100}'),
    ("POST", "/v1/audit", '{"wait_s": 0.5}'),
]


def keep(folder, target, name, data):
    where = os.path.join(folder, target)
    os.makedirs(where, exist_ok=True)
    with open(os.path.join(where, name), "wb") as f:
        f.write(data)


def listen(protocol=0):
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
    s.bind((0, 0))
    return s


def dump(kind, fixed):
    """Datagrams of a dump."""
    s = listen()
    s.send(struct.pack("IHHII", 16 + len(fixed), kind, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + fixed)
    s.settimeout(1)
    out = []
    while True:
        try:
            data = s.recv(65536)
        except OSError:
            return out
        out.append(data)
        if struct.unpack_from("H", data, 4)[0] in (2, 3):
            return out


def dull(kind, message):
    """What every kernel says of every device: link-local and multicast addresses, routes that follow from them; and the
    other ends of cables."""
    if kind in LINK_CHANGES:
        return struct.unpack_from("i", message, 20)[0] > 30
    if kind == 20:
        return message[19:20] == b"\xfd"
    if kind == 24:
        return message[23:24] != b"\1" and message[20:21] == b"\xff" or b"\xfe\x80" in message
    if kind == 28:
        return message[24:26] == b"\x40\0" or message[16:17] == b"\7" and message[26:27] == b"\2"
    return kind < 16


def slim(datagram):
    """Without what nobody asks for: most of the bytes of a link are counters, queues, settings per family."""
    out, at = b"", 0
    while at + 16 <= len(datagram):
        size, kind = struct.unpack_from("IH", datagram, at)
        message, at = datagram[at:at + size], at + (size + 3 & ~3)
        if dull(kind, message):
            continue
        if kind in LINK_CHANGES and message[16:17] == b"\0":
            kept, pos = message[:32], 32
            while pos + 4 <= size:
                length, attribute = struct.unpack_from("HH", message, pos)
                if attribute & 0x3fff in LINK_KEPT:
                    kept += message[pos:pos + length].ljust(length + 3 & ~3, b"\0")
                pos += max(length + 3 & ~3, 4)
            message = struct.pack("I", len(kept)) + kept[4:]
        out += message.ljust(len(message) + 3 & ~3, b"\0")
    return out


def step(op, data=b""):
    data = slim(data)
    return struct.pack("<BH", op, len(data)) + data


def netlink(folder):
    monitor = listen()
    for group in GROUPS:
        try:
            monitor.setsockopt(270, 1, group)
        except OSError:
            pass
    monitor.setblocking(False)
    for family in ("ipv4", "ipv6"):
        with open(f"/proc/sys/net/{family}/conf/all/forwarding", "w", encoding="ascii") as f:
            f.write("1")
    told = []
    for tool, text in (("ip", STEPS), ("bridge", BRIDGE), ("tc", TC)):
        for line in text.strip().splitlines():
            subprocess.run([tool, *line.split()], stderr=subprocess.DEVNULL, check=False)
            time.sleep(0.05)
            while True:
                try:
                    told.append(monitor.recv(65536))
                except OSError:
                    break
    for n, data in enumerate(told):
        keep(folder, "netlink", f"told-{n:03}", data)
    every = {name: dump(*what) for name, what in DUMPS.items()}
    for name, datagrams in every.items():
        for n, data in enumerate(datagrams):
            keep(folder, "netlink", f"dump-{name}-{n}", data)
    order = ["link", "vlan", "addr", "neigh", "fdb", "nexthop", "route4", "route6", "rule4", "netconf", "mdb"]
    steps = (step(3, d) for name in order for d in every[name])
    whole = step(4) + b"".join(s for s in steps if len(s) > 3) + step(4)
    keep(folder, "netlink-switch", "dumps", whole)
    for n in range(0, len(told), 8):
        keep(folder, "netlink-switch", f"told-{n:03}", b"".join(step(0, d) for d in told[n:n + 8]))


def api(folder):
    for n, (method, path, body) in enumerate(HTTP):
        head = f"{method} {path} HTTP/1.1\r\nhost: x\r\n"
        if body:
            head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
        for target in ("api-asicd", "api-switchd"):
            keep(folder, target, f"request-{n:02}", (head + "\r\n" + (body or "")).encode())


def profiles(folder):
    where = os.path.join(TOP, "profiles")
    for name in sorted(os.listdir(where)):
        with open(os.path.join(where, name), "rb") as f:
            # comments only make inputs longer
            lines = [line.split(b"#")[0].rstrip() for line in f.read().splitlines()]
        keep(folder, "toml", name, b"\n".join(line for line in lines if line) + b"\n")
    keep(folder, "toml", "switchd",
         b'policy = "fail"\nlog = "debug"\n[split]\nswp1 = 2\n[storm.swp5]\nbroadcast = 500\nmulticast = 7\n')


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: unshare -n tools/fuzz_seed.py DIR")
    if subprocess.run(["ip", "-o", "addr"], capture_output=True, check=True).stdout:
        sys.exit("fuzz_seed: this makes devices, and there are addresses here: run it by unshare -n")
    folder = sys.argv[1]
    profiles(folder)
    api(folder)
    netlink(folder)
    targets = sorted(os.listdir(folder))
    counts = {t: len(os.listdir(os.path.join(folder, t))) for t in targets if os.path.isdir(os.path.join(folder, t))}
    print(f"{sum(counts.values())} inputs:", ", ".join(f"{t} {n}" for t, n in counts.items()))


if __name__ == "__main__":
    main()
