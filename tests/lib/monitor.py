# SPDX-License-Identifier: Apache-2.0
"""What the kernel tells about links, with the time at which it told: `ip monitor link` for programs."""

import select
import socket
import struct
import threading
import time

from . import net

RTM_NEWLINK, RTM_DELLINK = 16, 17
RTMGRP_LINK = 1
IFLA_IFNAME = 3
IFF_UP, IFF_RUNNING, IFF_LOWER_UP = 0x1, 0x40, 0x10000


class LinkEvent:
    """One message: when, which link, its flags; `deleted` for RTM_DELLINK."""

    def __init__(self, when, name, flags, deleted):
        self.when = when
        self.name = name
        self.flags = flags
        self.deleted = deleted

    @property
    def carrier(self):
        return bool(self.flags & IFF_LOWER_UP)

    def __repr__(self):
        words = [w for bit, w in ((IFF_UP, "UP"), (IFF_RUNNING, "RUNNING"), (IFF_LOWER_UP, "LOWER_UP"))
                 if self.flags & bit]
        return f"<{self.name} {'deleted' if self.deleted else ','.join(words) or 'down'}>"


class LinkMonitor:
    """Collects link messages of a namespace from its making until `close`."""

    def __init__(self, namespace):
        def make():
            s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
            s.bind((0, RTMGRP_LINK))
            return s

        self.socket = net.in_netns(namespace.name, make)
        self.events = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while not self._stop.is_set():
            ready, _, _ = select.select([self.socket], [], [], 0.05)
            if ready:
                data = self.socket.recv(1 << 16)
                now = time.monotonic_ns()
                self.events.extend(parse(data, now))

    def first(self, name, condition, after=0):
        """When the first such message came (monotonic ns), or None."""
        for e in list(self.events):
            if e.name == name and e.when >= after and condition(e):
                return e.when
        return None

    def close(self):
        self._stop.set()
        self._thread.join(2)
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def parse(data, now):
    """The link messages of one datagram."""
    events = []
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        if length < 16:
            break
        if kind in (RTM_NEWLINK, RTM_DELLINK) and length >= 32:
            family, _, _, _, flags, _ = struct.unpack_from("=BBHiII", data, at + 16)
            name, attr = None, at + 32
            while attr + 4 <= at + length:
                alen, akind = struct.unpack_from("=HH", data, attr)
                if alen < 4:
                    break
                if akind & 0x3FFF == IFLA_IFNAME:
                    name = data[attr + 4:attr + alen].rstrip(b"\0").decode()
                attr += (alen + 3) & ~3
            # AF_BRIDGE messages tell of a bridge port's state, not of the link itself
            if family == 0 and name:
                events.append(LinkEvent(now, name, flags, kind == RTM_DELLINK))
        at += (length + 3) & ~3
    return events
