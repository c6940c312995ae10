# SPDX-License-Identifier: Apache-2.0
"""`ovs-ofctl` as a client of a switch, and frames at the switch's ports."""

import os
import re
import time

from lib import net
from lib.packet import ETH_IP, Catcher, Wire, ether, ipv4
from openflow import world

ERROR = re.compile(r"(?:OFPT_ERROR (?:\(OF1\.\d\) )?\(xid=0x[0-9a-f]+\):|^Error) (OFP\w+)")
PATIENCE = 30  # seconds for what has to come, however busy the machine is
SRC, DST = "02:00:00:00:00:01", "02:00:00:00:00:02"


class Switch:
    """A target with three ports on cables, waiting for clients."""

    def __init__(self, kind, cell, versions="OpenFlow10,OpenFlow13"):
        self.cell = cell
        cell.wires(3)
        self.target = kind(cell)
        self.kind = self.target.kind
        self.chip = self.target if isinstance(self.target, world.ChipAgent) else None
        self.address = self.target.bridge("target", 1, ["a1", "a2", "a3"], version=versions, controller=False,
                                          listen=True)
        net.wait_until("the switch to answer a client", lambda: self.answers("OpenFlow13"), timeout=PATIENCE)
        self.ports = len(self.chip.get("asicd", "/v1/ports")["items"]) if self.chip else 3

    def answers(self, version):
        try:
            self.ofctl(version, "probe")
        except net.CommandError:
            return False
        return True

    def ofctl(self, version, command, *words, options=(), **kw):
        """What `ovs-ofctl COMMAND SWITCH WORDS` printed; numbers, not names of ports and tables."""
        return self.cell.ns.exec("env", f"OVS_RUNDIR={self.cell.folder}", "ovs-ofctl", "-O", version, "--no-names",
                                 "-t", "10", *options, command, self.address, *words, **kw)

    def clear(self):
        for command in ("del-flows", "del-groups", "del-meters"):
            self.ofctl("OpenFlow13", command)


class Client:
    """A switch seen through one version of OpenFlow."""

    def __init__(self, switch, version):
        self.switch, self.version = switch, version

    def __call__(self, command, *words, **kw):
        said = self.switch.ofctl(self.version, command, *words, **kw)
        if self.switch.kind == "ovs" and re.match("add-|mod-|del-|replace-", command):
            self.switch.target.forget()
        return said

    def flows(self, *match, stats=False):
        """The lines of dump-flows, in order, without `duration`, `n_packets` and the like unless asked for."""
        text = self("dump-flows", *match, options=() if stats else ("--no-stats",))
        return sorted(x.strip() for x in text.splitlines() if "actions=" in x or "drop" in x)

    def error(self, command, *words, **kw):
        """The name of the error that the switch answered; empty if it answered none."""
        try:
            self(command, *words, **kw)
        except net.CommandError as e:
            found = ERROR.search(e.said)
            return found.group(1) if found else f"not an error of the switch: {e.said.strip()}"
        return ""

    def monitor(self, *words):
        return Monitor(self, words)


class Monitor:
    """`ovs-ofctl monitor` in the background: `with client.monitor(65535) as m: ... m.wait_for(r"OFPT_PACKET_IN")`."""

    def __init__(self, client, words):
        cell = client.switch.cell
        self.name = f"monitor-{time.monotonic_ns()}.txt"
        self.cell = cell
        self.process = cell.start("ovs-ofctl", "-O", client.version, "--no-names", "monitor", client.switch.address,
                                  *words, log=self.name, env={"OVS_RUNDIR": cell.folder})
        # when the switch has taken what it wants to be told, it opens a socket of its own and says nothing
        net.wait_until("the monitor to be heard", lambda: self.process.poll() is not None or self.listens(),
                       timeout=PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(5)

    def listens(self):
        return os.path.exists(os.path.join(self.cell.folder, f"ovs-ofctl.{self.process.pid}.ctl"))

    @property
    def said(self):
        return self.cell.log(self.name)

    def wait_for(self, pattern):
        try:
            return net.wait_until(pattern, lambda: re.search(pattern, self.said, re.S), timeout=PATIENCE)
        except TimeoutError as e:
            raise TimeoutError(f"{e}; the monitor said: {self.said}") from None


def frame(dst=DST, src=SRC, a="10.0.0.1", b="10.0.0.2", size=100, vid=None, proto=17):
    return ether(dst, src, ETH_IP, ipv4(a, b, proto, b"x" * (size - 34)), vid=vid)


def told(n, uncounted):
    """A counter in words. A chip's MAC table has none, and the rows of some count no bytes: such a number is not known,
    and never a wrong one; any other is told."""
    return rf"(?:{n}|\?|{(1 << 64) - 1})" if uncounted else str(n)


class Wires:
    """Frames in and out at the other ends of a switch's cables: b1, b2, b3."""

    def __init__(self, cell, count=3):
        self.catcher = Catcher()
        self.wires = {i: Wire(cell.ns, f"b{i}", catcher=self.catcher) for i in range(1, count + 1)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.catcher.close()
        for w in self.wires.values():
            w.close()

    def send(self, port, *frames):
        for f in frames:
            self.wires[port].send(f)

    def drain(self):
        """What is still on its way is nobody's."""
        time.sleep(0.05)
        for w in self.wires.values():
            w.clear()

    def caught(self, seconds=0.3, want=0):
        """{port: [frame, ...]} of what comes until `want` frames have come, however busy the machine is, and in
        `seconds` after that."""
        def came():
            return sum(len(w.frames) for w in self.wires.values())

        end = time.monotonic() + PATIENCE
        while came() < want and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(seconds)
        found = {i: w.caught() for i, w in self.wires.items() if w.frames}
        for i, frames in found.items():
            del self.wires[i].frames[:len(frames)]
        return found
