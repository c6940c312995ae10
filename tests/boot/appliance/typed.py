#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Somebody at the serial line of a machine that has booted into the appliance: typed.py SOCKET LOG.

SOCKET is QEMU's of the machine's first serial line; LOG is what the machine says by its second one, and has the line
`typed: now` when it is time. A step is a line `ok: typed: …` or `FAILED: typed: …`; exit code 0: all of them
were ok."""

import re
import socket
import sys
import time

PATIENCE = 120  # seconds: an emulated machine beside others


class Line:
    """The serial line."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(1)
        self.socket.connect(path)
        self.said = ""

    def hear(self):
        """What has come, for a second at most. False: the machine is gone."""
        try:
            more = self.socket.recv(65536)
        except TimeoutError:
            return True
        self.said += more.decode("utf-8", "replace").replace("\r", "")
        return bool(more)

    def wait(self, pattern, type_=None):
        """What is said up to a pattern; each time that nothing comes, `type_` is typed again."""
        end, asked = time.monotonic() + PATIENCE, 0.0
        while not (found := re.search(pattern, self.said, re.M)):
            if type_ is not None and time.monotonic() - asked > 5:
                self.socket.sendall(type_.encode())
                asked = time.monotonic()
            if time.monotonic() > end or not self.hear():
                raise AssertionError(f"no {pattern!r} in {self.said[-400:]!r}")
        said, self.said = self.said[:found.end()], self.said[found.end():]
        return said

    def do(self, command, prompt):
        """A command; what it says."""
        self.socket.sendall(f"{command}\r".encode())
        return self.wait(prompt)


STEPS = [  # what is typed, the prompt after it, what is said meanwhile
    ("enable", r"^Box#", ""),
    ("show vlan brief", r"^Box#", r"^10 +VLAN0010 +active .*1/0/1"),
    ("show ip interface brief", r"^Box#", r"^Vlan10 +10\.1\.0\.1 .*up +up"),
    ("ping 10.2.0.2", r"^Box#", r"Success rate is [1-9]"),
    ("configure terminal", r"^Box\(config\)#", ""),
    ("vlan 4095", r"^Box\(config\)#", "% "),
    ("hostname Typed", r"^Typed\(config\)#", ""),
    ("end", r"^Typed#", ""),
    ("write memory", r"^Typed#", r"\[OK\]"),
    ("exit", "Press RETURN", ""),
]


def main(path, log):
    line = Line(path)
    end = time.monotonic() + 8 * PATIENCE
    while "typed: now" not in open(log, encoding="utf-8", errors="replace").read():
        # what the kernel says at this line as well is nobody's
        if not line.hear() or time.monotonic() > end:
            raise AssertionError("the machine never said that it was time")
    try:
        line.wait(r"^Box>", "\r")
        for command, prompt, wanted in STEPS:
            said = line.do(command, prompt)
            if not re.search(wanted, said, re.M):
                raise AssertionError(f"{command}: no {wanted!r} in {said!r}")
            print(f"ok: typed: {command}", flush=True)
        # nobody is in the session that was
        line.wait(r"^Typed>", "\r")
        print("ok: typed: the next session begins", flush=True)
    except (AssertionError, OSError) as e:
        print(f"FAILED: typed: {e}", flush=True)
        return 1
    # whoever does not listen holds up the machine's console
    while line.hear():
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
