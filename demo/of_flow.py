# SPDX-License-Identifier: Apache-2.0
"""Flows as `ovs-ofctl` writes them, as messages of OpenFlow 1.3, and a controller that sends them."""

import queue
import socket
import struct
import threading
import time

from lib.openflow import BARRIER_REQUEST, ERROR, FLOW_MOD
from lib.packet import mac

ADD, DELETE_STRICT = 0, 4
BARRIER_REPLY = 21
FLOOD, CONTROLLER, ANY = 0xfffffffb, 0xfffffffd, 0xffffffff
PORTS = {"FLOOD": FLOOD, "CONTROLLER": CONTROLLER}
APPLY = 4
# in the order of prerequisites, which have to come first: name -> (number, bytes of its value, how it is written)
FIELDS = {
    "in_port": (0, 4, int), "eth_dst": (3, 6, mac), "eth_src": (4, 6, mac), "eth_type": (5, 2, lambda x: int(x, 0)),
    "ip_proto": (10, 1, int), "nw_src": (11, 4, socket.inet_aton), "nw_dst": (12, 4, socket.inet_aton),
    "udp_src": (15, 2, int), "udp_dst": (16, 2, int), "tcp_dst": (14, 2, int),
}
SHORT = {"ip": {"eth_type": "0x0800"}, "udp": {"eth_type": "0x0800", "ip_proto": "17"},
         "tcp": {"eth_type": "0x0800", "ip_proto": "6"}, "arp": {"eth_type": "0x0806"}}


def oxm(name, text):
    number, width, read = FIELDS[name]
    value = read(text)
    if isinstance(value, int):
        value = value.to_bytes(width, "big")
    return struct.pack("!HBB", 0x8000, number << 1, width) + value


def action(text):
    word, _, value = text.partition(":")
    if word == "output":
        return struct.pack("!HHIH6x", 0, 16, PORTS.get(value) or int(value), 0xffff)
    if word == "set_field":  # set_field:VALUE->FIELD
        value, _, name = value.partition("->")
        field = oxm(name, value)
        size = (4 + len(field) + 7) // 8 * 8
        return struct.pack("!HH", 25, size) + field + bytes(size - 4 - len(field))
    raise ValueError(f"no such action: {text}")


def message(flow, command=ADD):
    """The body of a flow_mod: `priority=9,udp,in_port=1,nw_dst=10.0.0.2,udp_dst=7000,actions=output:2`."""
    match, _, actions = flow.partition("actions=")
    priority, fields = 0x8000, {}
    for word in match.rstrip(", ").split(","):
        name, _, value = word.partition("=")
        if name == "priority":
            priority = int(value)
        elif word in SHORT:
            fields.update(SHORT[word])
        elif word:
            fields[name] = value
    body = b"".join(oxm(n, fields.pop(n)) for n in FIELDS if n in fields)
    if fields:
        raise ValueError(f"no such fields: {', '.join(fields)}")
    body = struct.pack("!HH", 1, 4 + len(body)) + body
    body += bytes(-len(body) % 8)
    todo = b""
    if actions and actions != "drop":
        todo = b"".join(action(a) for a in actions.split(",") if a)
        todo = struct.pack("!HH4x", APPLY, 8 + len(todo)) + todo
    return struct.pack("!QQBBHHHIIIH2x", 0, 0, 0, command, 0, 0, priority, ANY, ANY, ANY, 0) + body + todo


class Controller:
    """Adds and takes away flows; what the switch refuses is an exception here. A thread answers its echo requests."""

    def __init__(self, switch):
        self.peer = switch.peer()
        self.said = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        try:
            while (m := self.peer.next(None)) is not None:
                self.said.put(m)
        except (OSError, ValueError):
            pass  # closed here
        self.said.put(None)

    def add(self, *flows):
        self._send(flows, ADD)

    def take(self, *flows):
        """Those very flows, and no others."""
        self._send(flows, DELETE_STRICT)

    def _send(self, flows, command):
        for f in flows:
            self.peer.send(FLOW_MOD, message(f, command))
        self.barrier()

    def barrier(self, timeout=60):
        """Waits until all is in the chip that shall be there."""
        self.peer.send(BARRIER_REQUEST)
        end = time.monotonic() + timeout
        while True:
            try:
                said = self.said.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"not within {timeout} s: the switch's answer to a barrier") from None
            if said is None:
                raise ConnectionError("the switch closed the controller's connection")
            if said[0] == ERROR:
                raise ValueError("the switch refused a flow: error %d/%d" % struct.unpack_from("!HH", said[2]))
            if said[0] == BARRIER_REPLY:
                return

    def close(self):
        self.peer.close()
