# SPDX-License-Identifier: Apache-2.0
"""A switch that speaks OpenFlow with hosts at it, and controllers: os-ken's applications and bare messages.

    h1 10.0.0.1 ── p1 ┐
    h2 10.0.0.2 ── p2 ┤ ofagentd ── tcp:127.0.0.1:6653 ── a controller, in the same namespace
    h3 10.0.0.3 ── p3 ┘
"""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time

from . import net
from .switch import PREFIX, ask, binaries

APPS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "openflow", "apps")
PORT = 6653
HELLO, ERROR, ECHO_REQUEST, ECHO_REPLY, FEATURES_REQUEST, FEATURES_REPLY = 0, 1, 2, 3, 5, 6
PACKET_IN, PORT_STATUS, PACKET_OUT, FLOW_MOD, BARRIER_REQUEST, ROLE_REQUEST, ROLE_REPLY = 10, 12, 13, 14, 20, 24, 25
EQUAL, MASTER, SLAVE = 1, 2, 3


class Switch:
    """ofagentd in a namespace, with hosts."""

    def __init__(self, prefix, hosts=2):
        self.prefix = prefix
        self.ns = net.Namespace(prefix + "sw")
        self.ns.sysctl(ipv6__conf__default__disable_ipv6=1)
        self.name = prefix + "sw"
        self.hosts = []
        for n in range(1, hosts + 1):
            self.host(n)

    def host(self, n):
        ns = net.Namespace(f"{self.prefix}h{n}")
        ns.sysctl(ipv6__conf__default__disable_ipv6=1)
        net.cable(ns, "eth0", self.ns, f"p{n}")
        # whom it knows it does not ask for again by itself, at whatever moment
        ns.sysctl(ipv4__neigh__eth0__base_reachable_time_ms=3600000, ipv4__neigh__eth0__delay_first_probe_time=3600)
        ns.ip(f"addr add 10.0.0.{n}/24 dev eth0")
        self.hosts.append(ns)
        return ns

    def up(self, *words, ports=None, check=True):
        """`tandem openflow up`, with a port for each host."""
        for n in ports if ports is not None else range(1, len(self.hosts) + 1):
            words += ("--port", f"swp{n}=p{n}")
        return self.tandem("openflow", "up", *words, check=check)

    def tandem(self, *words, **kw):
        return self.ns.exec(os.path.join(binaries(), "tandem"), "--name", self.name, *words, **kw)

    def call(self, *words):
        """Exit code, standard output, standard error of `tandem openflow ...`."""
        r = subprocess.run(["ip", "netns", "exec", self.ns.name, os.path.join(binaries(), "tandem"), "--name",
                            self.name, "openflow", *words], capture_output=True, text=True, timeout=60)
        return r.returncode, r.stdout, r.stderr

    def show(self, what, *words):
        return json.loads(self.tandem("-j", "openflow", "show", what, *words))["items"]

    @property
    def folder(self):
        return os.path.join(os.environ.get("TANDEM_RUN", "/run/tandem"), self.name)

    def get(self, page, daemon="ofagentd"):
        status, text = ask(os.path.join(self.folder, f"{daemon}.sock"), 30, "GET", page, None)
        assert status == 200, f"{daemon} answers {status}: {text}"
        return json.loads(text)

    def status(self):
        return self.get("/v1/status")

    def chip_ports(self):
        """The ports as asicd has them, of a switch on a chip."""
        return self.get("/v1/ports", "asicd")["items"]

    def pid(self):
        with open(os.path.join(self.folder, "ofagentd.pid"), encoding="utf-8") as f:
            return int(f.read())

    def kill(self, sig=signal.SIGKILL):
        pid = self.pid()
        os.kill(pid, sig)
        net.wait_until("ofagentd to be gone", lambda: not net.pid_alive(pid, "ofagentd"), every=0.01)

    def log(self):
        try:
            with open(os.path.join(self.folder, "ofagentd.log"), encoding="utf-8") as f:
                return f.read()
        except OSError:
            return ""

    def pings(self, a, b, count=3, wait=1):
        """How many of `count` pings from host a come back from host b; if none does, the last had `wait` seconds."""
        out = self.hosts[a - 1].exec("ping", "-n", "-c", count, "-i", "0.2", "-W", wait, f"10.0.0.{b}", check=False)
        return int(out.split(" received")[0].split()[-1])

    def answered(self, a, b, count=3, wait=30):
        """All of `count` pings come back, on a busy machine late: each has `wait` seconds for itself."""
        for n in range(count):
            time.sleep(0.2 if n else 0)
            if not self.pings(a, b, 1, wait):
                return False
        return True

    def reaches(self, a, b):
        net.wait_until(f"h{a} to reach h{b}", lambda: self.pings(a, b, 1) == 1)

    def app(self, name):
        """An application of os-ken's, until it is killed; from when it listens."""
        p = self.ns.popen(sys.executable, "-m", "lib.osken_run", os.path.join(APPS, name), PORT,
                          cwd=os.path.dirname(os.path.dirname(APPS)), stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env={**os.environ, "OSKEN_HUB_TYPE": "native"})
        net.wait_until("the application to listen", lambda: p.poll() is not None or self.listens(), timeout=30)
        assert p.poll() is None, f"{name} ended"
        return p

    def listens(self):
        rows = self.ns.read("/proc/thread-self/net/tcp").splitlines()[1:]
        return any(r.split()[1].endswith(f":{PORT:04X}") and r.split()[3] == "0A" for r in rows)

    def connected(self, n=1):
        net.wait_until(f"{n} controllers to be connected", lambda: self.status()["controllers"] == n)

    def peer(self, version=4, hello=True, port=PORT):
        """A controller that calls the switch (ptcp:) and is spoken by the test, message by message."""
        s = net.in_netns(self.ns.name, socket.create_connection, ("127.0.0.1", port), net.PATIENCE)
        return Peer(s, version, hello)

    def delete(self):
        try:
            self.tandem("openflow", "down", check=False, timeout=30)
        finally:
            for daemon in ("ofagentd", "asicd"):
                net.end_by_pid_file(os.path.join(self.folder, f"{daemon}.pid"), daemon)
            for h in self.hosts:
                h.delete()
            self.ns.delete()


class Peer:
    """Messages one by one, and what is said to them."""

    def __init__(self, s, version, hello):
        self.s = s
        self.version = version
        self.rest = b""
        if hello:
            self.send(HELLO, struct.pack("!HHI", 1, 8, 1 << version))
            assert self.next()[0] == HELLO

    def send(self, kind, body=b"", xid=7):
        self.s.sendall(struct.pack("!BBHI", self.version, kind, 8 + len(body), xid) + body)

    def next(self, timeout=net.PATIENCE):
        """The next message: type, xid, body; None at the end of the connection. Echo requests are answered.

        `timeout`: seconds; None waits for as long as it takes."""
        end = None if timeout is None else time.monotonic() + timeout
        while len(self.rest) < 8 or len(self.rest) < struct.unpack_from("!H", self.rest, 2)[0]:
            self.s.settimeout(None if end is None else max(end - time.monotonic(), 0.001))
            try:
                more = self.s.recv(65536)
            except ConnectionResetError:
                return None
            if not more:
                return None
            self.rest += more
        _, kind, length, xid = struct.unpack_from("!BBHI", self.rest)
        body, self.rest = self.rest[8:length], self.rest[length:]
        if kind == ECHO_REQUEST:
            self.send(ECHO_REPLY, body, xid)
            return self.next(None if end is None else end - time.monotonic())
        return kind, xid, body

    def wait(self, kind, timeout=net.PATIENCE):
        """The next message of a type."""
        while True:
            m = self.next(timeout)
            assert m is not None, f"the connection ended, no message of type {kind}"
            if m[0] == kind:
                return m[2]

    def ask(self, kind, body=b"", answer=None):
        self.send(kind, body)
        return self.wait(answer if answer is not None else kind + 1)

    def error(self):
        return struct.unpack_from("!HH", self.wait(ERROR))

    def role(self, role, generation):
        self.send(ROLE_REQUEST, struct.pack("!IIQ", role, 0, generation))

    def flow(self, out, priority=1, in_port=None, dst=None):
        """A flow of 1.3 that sends what came from `in_port`, or goes to the station `dst`, or all, to a port."""
        match = struct.pack("!HH4x", 1, 4)
        if in_port:
            match = struct.pack("!HHHBBI4x", 1, 12, 0x8000, 0, 4, in_port)
        if dst:
            match = struct.pack("!HHHBB6s2x", 1, 14, 0x8000, 3 << 1, 6, bytes.fromhex(dst.replace(":", "")))
        todo = struct.pack("!HH4xHHIH6x", 4, 24, 0, 16, out, 0xffff)
        self.send(FLOW_MOD, struct.pack("!QQBBHHHIIIH2x", 0, 0, 0, 0, 0, 0, priority, 0xffffffff, 0xffffffff,
                                        0xffffffff, 0) + match + todo)

    def barrier(self):
        return self.ask(BARRIER_REQUEST)

    def close(self):
        self.s.close()


def lives(request, switch):
    """What a fixture of a switch yields: it goes with its test, and says why if that failed."""
    yield switch
    report = getattr(request.node, "report_call", None)
    if report is None or report.failed:
        print(switch.log())
    switch.delete()


def new(count=[0]):
    count[0] += 1
    return f"{PREFIX}{os.getpid()}-o{count[0]}-"
