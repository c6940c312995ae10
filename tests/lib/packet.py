# SPDX-License-Identifier: Apache-2.0
"""Frames by hand, and sockets that send and catch them. Field names as in the RFCs; standard library only."""

import ipaddress
import selectors
import socket
import struct
import threading
import time

from . import net

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
PACKET_AUXDATA = 8
PACKET_ADD_MEMBERSHIP = 1
PACKET_MR_PROMISC = 1
TP_STATUS_VLAN_VALID = 1 << 4

ETH_IP, ETH_ARP, ETH_IP6, ETH_8021Q = 0x0800, 0x0806, 0x86DD, 0x8100


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def mac_text(raw):
    return ":".join(f"{b:02x}" for b in raw)


def checksum(data):
    """RFC 1071."""
    if len(data) % 2:
        data += b"\0"
    s = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


def ether(dst, src, ethertype, payload, vid=None, pcp=0, pad=True):
    tag = struct.pack("!HH", ETH_8021Q, pcp << 13 | vid) if vid is not None else b""
    frame = mac(dst) + mac(src) + tag + struct.pack("!H", ethertype) + payload
    return frame.ljust(60, b"\0") if pad else frame


def arp(op, sha, spa, tha, tpa):
    return struct.pack("!HHBBH", 1, ETH_IP, 6, 4, op) + mac(sha) + socket.inet_aton(spa) + mac(tha) \
        + socket.inet_aton(tpa)


def ipv4(src, dst, proto, payload, ttl=64, ident=0, flags=0x4000, options=b"", tos=0):
    ihl = 5 + len(options) // 4
    head = struct.pack("!BBHHHBBH4s4s", 0x40 | ihl, tos, ihl * 4 + len(payload), ident, flags, ttl, proto, 0,
                       socket.inet_aton(src), socket.inet_aton(dst)) + options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def ipv6(src, dst, nxt, payload, hlim=64):
    return struct.pack("!IHBB", 0x60000000, len(payload), nxt, hlim) + ipaddress.IPv6Address(src).packed \
        + ipaddress.IPv6Address(dst).packed + payload


def pseudo(src, dst, proto, length):
    a, b = ipaddress.ip_address(src).packed, ipaddress.ip_address(dst).packed
    return a + b + (struct.pack("!BBH", 0, proto, length) if len(a) == 4 else struct.pack("!IHBB", length, 0, 0, proto))


def udp(src, dst, sport, dport, data=b""):
    head = struct.pack("!HHHH", sport, dport, 8 + len(data), 0)
    c = checksum(pseudo(src, dst, 17, 8 + len(data)) + head + data) or 0xFFFF
    return head[:6] + struct.pack("!H", c) + data


def icmp_echo(ident, seq, data=b"tandem", reply=False):
    head = struct.pack("!BBHHH", 0 if reply else 8, 0, 0, ident, seq)
    return head[:2] + struct.pack("!H", checksum(head + data)) + head[4:] + data


def icmpv6(src, dst, kind, code, body):
    head = struct.pack("!BBH", kind, code, 0)
    c = checksum(pseudo(src, dst, 58, 4 + len(body)) + head + body)
    return head[:2] + struct.pack("!H", c) + body


def udp4_frame(dst_mac, src_mac, src, dst, sport=1000, dport=2000, data=b"", vid=None, **ip):
    return ether(dst_mac, src_mac, ETH_IP, ipv4(src, dst, 17, udp(src, dst, sport, dport, data), **ip), vid=vid)


def udp6_frame(dst_mac, src_mac, src, dst, sport=1000, dport=2000, data=b"", **ip):
    return ether(dst_mac, src_mac, ETH_IP6, ipv6(src, dst, 17, udp(src, dst, sport, dport, data), **ip))


class Catcher:
    """A thread that catches what arrives at wires."""

    def __init__(self):
        self._selector = selectors.DefaultSelector()
        self._end, wakes = socket.socketpair()
        self._selector.register(wakes, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._catch, args=(wakes,), daemon=True)
        self._thread.start()

    def add(self, wire):
        self._selector.register(wire.socket, selectors.EVENT_READ, wire)

    def _catch(self, wakes):
        while True:
            for key, _ in self._selector.select():
                if key.data is None:
                    wakes.close()
                    return
                key.data.take()

    def close(self):
        self._end.close()
        self._thread.join(2)
        self._selector.close()


class Wire:
    """A packet socket on an interface of a namespace: sends frames, and catches what arrives, tags included.

    `answer(frame)`, if given, sees each frame that arrives, in the thread that catches: a frame it returns is sent.
    `catcher`: that of several wires, to be closed before them; else it has its own.
    """

    def __init__(self, namespace, device="eth0", answer=None, catcher=None):
        self.answer = answer

        def make():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
            s.bind((device, ETH_P_ALL))
            s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
            s.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)
            index = socket.if_nametoindex(device)
            s.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, struct.pack("IHH8s", index, PACKET_MR_PROMISC, 0, b""))
            return s

        self.socket = net.in_netns(namespace.name, make)
        self.frames = []  # (monotonic ns, bytes)
        self._own = None if catcher else Catcher()
        (catcher or self._own).add(self)

    def take(self):
        """Takes what has arrived."""
        while True:
            try:
                data, anc, _, _ = self.socket.recvmsg(65600, 64, socket.MSG_DONTWAIT)
            except (BlockingIOError, OSError):
                return
            for level, kind, value in anc:
                if level == SOL_PACKET and kind == PACKET_AUXDATA:
                    status, _, _, _, _, tci, tpid = struct.unpack_from("IIIHHHH", value)
                    if status & TP_STATUS_VLAN_VALID:
                        data = data[:12] + struct.pack("!HH", tpid or ETH_8021Q, tci) + data[12:]
            self.frames.append((time.monotonic_ns(), data))
            back = self.answer(data) if self.answer else None
            if back:
                try:
                    self.send(back)
                except OSError:
                    pass  # the cable is cut

    def send(self, frame):
        self.socket.send(frame)

    def clear(self):
        self.frames = []

    def caught(self, accept=None):
        """The frames so far, those that `accept` takes."""
        return [f for _, f in list(self.frames) if accept is None or accept(f)]

    def close(self):
        if self._own:
            self._own.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def ethertype(frame):
    return struct.unpack_from("!H", frame, 12)[0]


def is_ip4(frame, proto=None):
    return ethertype(frame) == ETH_IP and (proto is None or frame[23] == proto)


def is_control(frame):
    """ARP, ND, MLD, IGMP, link protocols, tagged or not: compared as sets, because their number depends on timers."""
    if ethertype(frame) == ETH_8021Q and len(frame) >= 18:
        frame = frame[:12] + frame[16:]
    kind = ethertype(frame)
    if kind == ETH_ARP or frame[:5] == b"\x01\x80\xc2\x00\x00":
        return True
    if kind == ETH_IP and len(frame) > 23 and frame[23] == 2:
        return True
    if kind == ETH_IP6 and len(frame) > 54:
        nxt, at = frame[20], 54
        if nxt == 0:
            nxt, at = frame[54], 54 + 8 * (frame[55] + 1)
        return nxt == 58 and len(frame) > at and (frame[at] in (130, 131, 132, 143) or 133 <= frame[at] <= 137)
    return False
