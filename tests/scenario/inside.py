# SPDX-License-Identifier: Apache-2.0
"""A thread that lives in a namespace: sysctls, device flags, bonds and neighbours without a process for each."""

import array
import concurrent.futures
import ctypes
import errno
import fcntl
import ipaddress
import itertools
import os
import re
import socket
import struct
import subprocess

from lib import net
from lib.switch import PACE

SIOCGIFFLAGS, IFF_UP, IFF_RUNNING = 0x8913, 1, 0x40
SIOCETHTOOL, ETHTOOL_GLINK = 0x8946, 0xA  # linux/ethtool.h
# linux/rtnetlink.h, linux/neighbour.h
RTM_GETADDR, RTM_GETROUTE, RTM_NEWNEIGH, RTM_GETNEIGH = 22, 26, 28, 30
RTN_LOCAL, RTA_DST, IFA_ADDRESS, IFA_LOCAL = 2, 1, 1, 2
NLM_F_REQUEST, NLM_F_DUMP, NLM_F_CREATE, NLMSG_ERROR, NLMSG_DONE = 1, 0x300, 0x400, 2, 3
NUD_INCOMPLETE, NUD_FAILED, NTF_USE, NDA_DST = 1, 0x20, 1, 1
NUD_PERMANENT, NDA_LLADDR, NDA_MASTER = 0x80, 2, 9
NUD_ANSWERED = 0x1E  # reachable, stale, delay, probe
NUD_NOARP, NDA_CACHEINFO, NDA_PROBES, RTA_CACHEINFO = 0x40, 3, 4, 12
NLMSG, NDMSG = struct.Struct("=IHHII"), struct.Struct("=BBHiHBB")
# What a kernel has of each: question, length of the answer's head (rtmsg, ndmsg, nhmsg, fib_rule_hdr), times and
# counts among its attributes
KINDS = {"route": (26, 12, (RTA_CACHEINFO,)), "neighbour": (RTM_GETNEIGH, NDMSG.size, (NDA_CACHEINFO, NDA_PROBES)),
         "next hop": (106, 8, ()), "rule": (34, 12, ())}


class Inside:
    """Its calls are done one after the other, in the namespace."""

    def __init__(self, name):
        self.numbers = itertools.count(1)
        self.pool = concurrent.futures.ThreadPoolExecutor(1, initializer=self._enter, initargs=(name,))
        self.pool.submit(lambda: None).result()

    def _enter(self, name):
        fd = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
        if net._libc.setns(fd, net.CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns to {name}")
        os.close(fd)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        self.netlink.settimeout(5)

    def sysctl(self, settings):
        """Writes KEY=VALUE words; what was refused, as words."""
        def put():
            refused = []
            for s in settings:
                key, value = s.split("=")
                if key.endswith("retrans_time_ms"):
                    value = str(int(int(value) * PACE))  # a busy machine's hosts answer late
                try:
                    with open(f"/proc/sys/net/{key}", "w", encoding="utf-8") as f:
                        f.write(value)
                except OSError as e:
                    refused.append(f"{s}: {e.strerror}")
            return refused

        return self.pool.submit(put).result()

    def flags(self, *devices):
        """(up, link, carrier) of each device, None of one that is not there: the link is what the driver has said last,
        the carrier what the kernel's link watch made of it, a while later."""
        def get():
            found = {}
            for d in devices:
                try:
                    flags = self._flags(d)
                    found[d] = (bool(flags & IFF_UP), self._link(d), bool(flags & IFF_RUNNING))
                except OSError:
                    found[d] = (None, None, None)
            return found

        return self.pool.submit(get).result()

    def received(self, *devices):
        """Packets that these devices have handed to the kernel since they were made, all together."""
        def get():
            with open("/proc/thread-self/net/dev", encoding="ascii") as f:
                rows = (line.split(":", 1) for line in f if ":" in line)
                return sum(int(row.split()[1]) for name, row in rows if name.strip() in devices)

        return self.pool.submit(get).result()

    def unsent(self):
        """ICMP and ICMPv6 messages that this namespace's kernel wanted to send and could not, so far."""
        def get():
            with open("/proc/thread-self/net/snmp", encoding="ascii") as f:
                names, values = (line.split() for line in f if line.startswith("Icmp:"))
            found = int(values[names.index("OutErrors")])
            with open("/proc/thread-self/net/snmp6", encoding="ascii") as f:
                return found + sum(int(line.split()[1]) for line in f if line.startswith("Icmp6OutErrors"))

        return self.pool.submit(get).result()

    def stations(self):
        """How many entries the bridges have for each MAC address (bytes): those that were learned or set behind a
        port."""
        def get():
            found = {}
            for body in self._dump(RTM_GETNEIGH, socket.AF_BRIDGE):
                family, _, _, _, state, _, _ = NDMSG.unpack_from(body)
                mine = dict(attributes(body[NDMSG.size:]))
                if family == socket.AF_BRIDGE and NDA_MASTER in mine and state & NUD_PERMANENT == 0:
                    found[mine[NDA_LLADDR]] = found.get(mine[NDA_LLADDR], 0) + 1
            return found

        return self.pool.submit(get).result()

    def _flags(self, device):
        """Flags of an interface: IFF_..."""
        answer = fcntl.ioctl(self.socket, SIOCGIFFLAGS, struct.pack("16sH22x", device.encode(), 0))
        return struct.unpack_from("16sH", answer)[1]

    def _link(self, device):
        """ETHTOOL_GLINK; of a device without, True."""
        asked = array.array("I", [ETHTOOL_GLINK, 0])
        try:
            fcntl.ioctl(self.socket, SIOCETHTOOL, struct.pack("16sQ16x", device.encode(), asked.buffer_info()[0]))
        except OSError as e:
            if e.errno != errno.EOPNOTSUPP:
                raise
            return True
        return bool(asked[1])

    def bonds(self):
        """The namespace's bonds: {name: (mode, active member or None, {member: is its link up})}."""
        def get():
            found = {}
            folder = "/proc/thread-self/net/bonding"  # of this thread: /proc/net is the process's first one's
            for name in os.listdir(folder) if os.path.isdir(folder) else ():
                with open(f"{folder}/{name}", encoding="utf-8") as f:
                    found[name] = bond_status(f.read())
            return found

        return self.pool.submit(get).result()

    def spawn(self, words, **how):
        """A process that lives in the namespace, too."""
        return self.pool.submit(subprocess.Popen, words, **how).result()

    def _dump(self, question, family=0):
        """Bodies of the answers to RTM_GET..., of all families or of one."""
        number = next(self.numbers)  # of this question: what `look_for` was refused is answered, too
        self.netlink.send(NLMSG.pack(NLMSG.size + NDMSG.size, question, NLM_F_REQUEST | NLM_F_DUMP, number, 0)
                          + bytes([family]) + bytes(NDMSG.size - 1))
        while True:
            data = self.netlink.recv(1 << 18)
            while data:
                length, kind, _, of, _ = NLMSG.unpack_from(data)
                if of == number and kind in (NLMSG_DONE, NLMSG_ERROR):
                    return
                if of == number and kind == question - 2:
                    yield data[NLMSG.size:length]
                data = data[(length + 3) & ~3:]

    def _neighbours(self):
        """(index of the device, state, address as bytes) of each."""
        found = []
        for body in self._dump(RTM_GETNEIGH):
            _, _, _, index, state, _, _ = NDMSG.unpack_from(body)
            found.append((index, state, dict(attributes(body[NDMSG.size:])).get(NDA_DST, b"")))
        return found

    def everything(self):
        """Routes, neighbours, next hops and rules as a set, without times; neighbours only if they are known."""
        def get():
            found = set()
            for kind, (question, head, times) in KINDS.items():
                for body in self._dump(question):
                    if kind == "neighbour" and NDMSG.unpack_from(body)[4] in (NUD_NOARP, NUD_FAILED, NUD_INCOMPLETE):
                        continue
                    found.add((kind, body[:head], *(a for a in attributes(body[head:]) if a[0] not in times)))
            return found

        return self.pool.submit(get).result()

    def looking(self):
        """How many neighbours the kernel is looking for."""
        return self.pool.submit(lambda: sum(s == NUD_INCOMPLETE for _, s, _ in self._neighbours())).result()

    def without_route(self):
        """IPv6 addresses of interfaces that are up, that are not the system's own yet: it makes their routes a moment
        after them, or after the interface, from a work queue (net/ipv6/addrconf.c `addrconf_dad_work`), without
        duplicate address detection as well."""
        def get():
            own = set()
            for body in self._dump(RTM_GETADDR, socket.AF_INET6):
                if not self._flags(socket.if_indextoname(struct.unpack_from("=I", body, 4)[0])) & IFF_UP:
                    continue
                found = dict(attributes(body[8:]))
                own.add(found.get(IFA_LOCAL, found.get(IFA_ADDRESS)))
            return own - {dict(attributes(body[12:])).get(RTA_DST) for body in self._dump(RTM_GETROUTE, socket.AF_INET6)
                          if body[7] == RTN_LOCAL}

        return self.pool.submit(get).result()

    def known(self, neighbours):
        """Those of (address, device) that the kernel has asked for and had an answer."""
        def get():
            answered = {(i, a) for i, s, a in self._neighbours() if s & NUD_ANSWERED}
            found = set()
            for address, device in neighbours:
                try:
                    index = socket.if_nametoindex(device)
                except OSError:
                    continue
                if (index, ipaddress.ip_address(address).packed) in answered:
                    found.add((address, device))
            return found

        return self.pool.submit(get).result()

    def look_for(self, neighbours):
        """Makes the kernel look for (address, device), if it has no answer, as a packet to it would (`use`)."""
        def put():
            known = {(i, a) for i, s, a in self._neighbours() if s not in (0, NUD_FAILED)}
            for address, device in neighbours:
                raw = ipaddress.ip_address(address).packed
                try:
                    index = socket.if_nametoindex(device)
                except OSError:
                    continue
                if (index, raw) in known:
                    continue  # `use` would make a permanent one an ordinary one
                body = NDMSG.pack(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, 0, 0, index, 0, NTF_USE, 0) \
                    + struct.pack("=HH", 4 + len(raw), NDA_DST) + raw
                self.netlink.send(NLMSG.pack(NLMSG.size + len(body), RTM_NEWNEIGH, NLM_F_REQUEST | NLM_F_CREATE, 0, 0)
                                  + body)

        return self.pool.submit(put).result() if neighbours else None

    def close(self):
        self.pool.submit(self.socket.close).result()
        self.pool.submit(self.netlink.close).result()
        self.pool.shutdown()


def attributes(data):
    """(type, value) of each attribute."""
    while len(data) >= 4:
        length, kind = struct.unpack_from("=HH", data)
        yield kind, data[4:length]
        data = data[max(4, (length + 3) & ~3):]


def bond_status(text):
    """What /proc/net/bonding/NAME says: (mode, active member or None, {member: is its link up})."""
    mode = re.search(r"^Bonding Mode: (.*)$", text, re.M)[1]
    active = re.search(r"^Currently Active Slave: (\S+)$", text, re.M)
    members = re.findall(r"^Slave Interface: (\S+)\nMII Status: (.*)$", text, re.M)
    return mode, active[1] if active and active[1] != "None" else None, {m: status == "up" for m, status in members}
