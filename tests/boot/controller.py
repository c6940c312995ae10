#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A controller of OpenFlow 1.3 for one switch: port 1 to port 2 and back. FILE appears when a barrier was answered.

    controller.py FILE
"""

import socket
import struct
import sys

HELLO, ECHO, ECHO_REPLY, FLOW_MOD, BARRIER, BARRIER_REPLY = 0, 2, 3, 14, 20, 21
BOTH = ((1, 2), (2, 1))


def message(kind, body=b""):
    return struct.pack("!BBHI", 4, kind, 8 + len(body), 7) + body


def flow(port, to):
    """Priority 1, no timeouts; in_port: output."""
    match = struct.pack("!HHIIxxxx", 1, 12, 0x80000004, port)
    output = struct.pack("!HHIH6x", 0, 16, to, 0)
    apply_actions = struct.pack("!HHxxxx", 4, 8 + len(output)) + output
    fixed = struct.pack("!QQBBHHHIIIHxx", 0, 0, 0, 0, 0, 0, 1, 0xffffffff, 0xffffffff, 0xffffffff, 0)
    return message(FLOW_MOD, fixed + match + apply_actions)


def main():
    with socket.create_server(("127.0.0.1", 6653)) as server:
        switch, _ = server.accept()
    stream = switch.makefile("rb")
    switch.sendall(message(HELLO) + b"".join(flow(*pair) for pair in BOTH) + message(BARRIER))
    while header := stream.read(8):
        _, kind, length, xid = struct.unpack("!BBHI", header)
        body = stream.read(length - 8)
        if kind == ECHO:
            switch.sendall(struct.pack("!BBHI", 4, ECHO_REPLY, length, xid) + body)
        elif kind == BARRIER_REPLY:
            with open(sys.argv[1], "w", encoding="ascii"):
                pass
        elif kind == 1:
            sys.exit(f"an error: {body.hex()}")


main()
