# SPDX-License-Identifier: Apache-2.0
"""Two switches with one interface: `AsicSwitch` (asicd + switchd) and `KernelSwitch` (veth ends and the kernel alone).

     host namespaces            front panel namespace         switch namespace
    ┌──────────────┐           ┌────────────────────┐        ┌─────────────────────┐
    │ h1    eth0 ──┼───veth────┼── p1 ──┐           │        │  swp1 (TAP)   br0   │
    └──────────────┘           │        ├─ asicd ───┼─ rings ┼─ switchd            │
    ┌──────────────┐           │        │           │        │  swp2 (TAP)         │
    │ h2    eth0 ──┼───veth────┼── p2 ──┘           │        └─────────────────────┘
    └──────────────┘           └────────────────────┘
    without the ASIC the veth ends lie in the switch namespace and are called swp1, swp2 themselves
"""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from . import net

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


PACE = float(os.environ.get("TANDEM_PACE", "1"))  # how much longer things may take here: emulated processors are slow


def binaries():
    """The folder of asicd, switchd and tandem."""
    return os.environ.get("TANDEM_BIN") or os.path.join(
        os.environ.get("CARGO_TARGET_DIR", os.path.join(TOP, "target")), "release")


KERNEL = "packets that the kernel received"  # beside the chip's reasons
PREFIX = "tnt-"  # of everything that a test makes; then the process that made it


def sweep(whose):
    """Takes away the daemons and namespaces that processes made for which `whose(pid)` is true."""
    base = os.environ.get("TANDEM_RUN", "/run/tandem")
    names = set(net.namespaces(PREFIX))
    if os.path.isdir(base):
        names |= {n for n in os.listdir(base) if n.startswith(PREFIX)}
    for name in sorted(names):
        pid = name[len(PREFIX):].split("-")[0]
        if not whose(int(pid) if pid.isdigit() else 0):
            continue
        for file, daemon in (("swcfgd", "swcfgd"), ("switchd", "switchd"), ("switchd", "swcfgd"), ("asicd", "asicd")):
            net.end_by_pid_file(os.path.join(base, name, f"{file}.pid"), daemon)
        shutil.rmtree(os.path.join(base, name), ignore_errors=True)
        if name.endswith(".login"):  # a socket of swcfgd's
            os.unlink(os.path.join(base, name))
        if os.path.exists(f"/run/netns/{name}"):
            net.run("ip", "netns", "del", name, check=False)


def ask(path, timeout, method, page, body):
    """HTTP (RFC 9112) over a daemon's management socket, the least of it: (status, body). Scenarios ask a hundred times
    each, and `http.client` takes three times as long as the daemon."""
    data = b"" if body is None else json.dumps(body).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(timeout)
        s.connect(path)
        s.sendall(f"{method} {page} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n"
                  f"content-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data)
        said = bytearray()
        while more := s.recv(1 << 18):
            said += more
    head, end, text = bytes(said).partition(b"\r\n\r\n")
    words = head.split(b" ", 2)
    length = [x for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")]
    if not end or len(words) < 2 or not length or int(length[0].split(b":")[1]) != len(text):
        raise ConnectionError(f"{method} {page} at {path}: no whole answer, {len(said)} octets")
    return int(words[1]), text.decode()


class Host:
    """A namespace with one interface, eth0, cabled to a switch port."""

    def __init__(self, prefix, name, mac=None):
        self.name = name
        self.ns = net.Namespace(prefix + name)
        self.mac = mac

    def address(self, *addresses, gateway=None, gateway6=None):
        for a in addresses:
            words = ["addr add", a, "dev eth0"]
            if ":" in a:
                words.append("nodad")
            self.ns.ip(*words)
        if gateway:
            self.ns.ip("route add default via", gateway)
        if gateway6:
            self.ns.ip("-6 route add default via", gateway6)
        return self

    def ping(self, target, count=1, interval=0.2, timeout=1, size=None, check=False):
        """Number of answers that came back; `check`: all of them, on a busy machine late: each is waited for by itself,
        as ping waits for the last of several no longer than two round trips."""
        if check and count > 1:
            for n in range(count):
                time.sleep(interval if n else 0)
                self.ping(target, 1, timeout=timeout, size=size, check=True)
            return count
        timeout = 30 if check else timeout
        words = ["ping", "-q", "-n", "-c", count, "-i", interval, "-W", timeout]
        if size:
            words += ["-s", size]
        out = self.ns.exec(*words, target, check=False, timeout=count * interval + timeout + 10)
        got = int(out.split(" received")[0].rsplit(" ", 1)[1]) if " received" in out else 0
        if check and got != count:
            raise AssertionError(f"{self.name}: {got} of {count} pings to {target} were answered")
        return got


class Switch:
    """What both kinds share: a namespace with swp1..N, and hosts on the ports."""

    has_asic = False

    def __init__(self, prefix):
        self.prefix = prefix
        self.ns = net.Namespace(prefix + "sw")
        self.hosts = {}
        self.cabled = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    def host(self, name, port, mac=None):
        """A host at a port, in a namespace of its own."""
        raise NotImplementedError

    def start(self):
        """What forwards in the kernel's place, if anything does."""
        raise NotImplementedError

    def ip(self, *words, **kw):
        return self.ns.ip(*words, **kw)

    def router(self):
        """Forwarding on, no redirects, no stray IPv6 autoconfiguration."""
        self.ns.sysctl(ipv4__ip_forward=1, ipv6__conf__all__forwarding=1, ipv4__conf__all__send_redirects=0,
                       ipv4__conf__default__send_redirects=0, ipv4__conf__all__rp_filter=0,
                       ipv4__conf__default__rp_filter=0)

    def gateway(self, port, six=False):
        """The port is up, and the address 10.port.0.1 and maybe fd0port::1 of its host's gateway."""
        self.ip(f"link set swp{port} up")
        self.ip(f"addr replace 10.{port}.0.1/24 dev swp{port}")
        if six:
            self.ip(f"addr replace fd0{port}::1/64 dev swp{port} nodad")

    def route_hosts(self, count, six=False):
        """h1 10.1.0.2 ── swp1 ── switch ── swpN ── hN 10.N.0.2, maybe fd0N::2 too: started, and h1 reaches h2."""
        for i in range(1, count + 1):
            v6 = (f"fd0{i}::2/64",) if six else ()
            gateway6 = f"fd0{i}::1" if six else None
            self.host(f"h{i}", i).address(f"10.{i}.0.2/24", *v6, gateway=f"10.{i}.0.1", gateway6=gateway6)
        self.start()
        self.router()
        for i in range(1, count + 1):
            self.gateway(i, six)
        net.wait_until("h1 to reach h2", lambda: self.hosts["h1"].ping("10.2.0.2"))
        self.at_rest()
        return self

    def sync(self):
        """Returns when the data plane does what the kernel says."""

    def hosts_ask_nobody(self):
        """Hosts keep what they know of their neighbours: a host asks again five seconds after it used an old entry, and
        while no switchd is there nobody answers."""
        for host in self.hosts.values():
            for n in json.loads(host.ns.ip("-j neigh show dev eth0")):
                if "lladdr" in n:
                    host.ns.ip("neigh replace", n["dst"], "lladdr", n["lladdr"], "dev eth0 nud permanent")

    def at_rest(self):
        """Returns when the kernel has done what it does by itself, late: a port's or bridge's own IPv6 address is
        routed, which is a write, when its carrier was noticed and nobody else has turned out to have the address."""
        def has_address(link):
            settings = f"/proc/sys/net/ipv6/conf/{link['ifname']}/disable_ipv6"
            if not os.path.exists("/proc/sys/net/ipv6") or self.ns.read(settings) == "1":
                return True
            own = self.ip("-6 -o addr show scope link dev", link["ifname"])
            return "fe80:" in own and "tentative" not in own

        def done():
            links = json.loads(self.ip("-j link show up"))
            # of those that are not up `ip` says nothing, in braces
            return all("LOWER_UP" not in link["flags"] or has_address(link) for link in links
                       if re.match(r"(swp|br)\d", link.get("ifname", "")))

        net.wait_until("the kernel to be done with its own addresses", done, every=0.2)
        self.sync()

    def trapped(self):
        """Packets that the chip says it has given to the CPU, by reason."""
        return {r["reason"]: r["packets"] for r in self.chip("/v1/traps")["items"]}

    def kernel_received(self):
        """Packets that the switch's own kernel has had from its ports; None where that can't be told."""
        return None

    def cpu_packets(self):
        """Packets that came to the CPU, by reason, as the chip counts; and in all, as the kernel does (`KERNEL`), at a
        moment when none was between the two."""
        for _ in range(100):
            kernel = self.kernel_received()
            rows = self.trapped()
            if kernel is None:
                return rows
            time.sleep(0.005)
            if kernel == self.kernel_received():
                break
        return {**rows, KERNEL: kernel}

    def cpu_delta(self, before):
        """What came to the CPU since `before` (an earlier `cpu_packets()`), reasons without packets left out. What the
        kernel received and the chip did not count is `uncounted`."""
        now = self.cpu_packets()
        kernel = now.pop(KERNEL, 0) - before.get(KERNEL, 0)
        found = {k: v - before.get(k, 0) for k, v in now.items() if v != before.get(k, 0)}
        silent = kernel - sum(found.values())
        return {**found, "uncounted": silent} if silent > 0 else found

    def chip(self, page):
        """A page of asicd's, if there is one."""
        raise NotImplementedError

    def delete(self):
        for h in self.hosts.values():
            h.ns.delete()
        self.ns.delete()


class KernelSwitch(Switch):
    """The reference: the kernel alone forwards."""

    def host(self, name, port, mac=None):
        h = Host(self.prefix, name, mac)
        net.cable(h.ns, "eth0", self.ns, f"swp{port}", a_mac=mac, b_mac=self.port_macs.get(port))
        self.hosts[name] = h
        return h

    def __init__(self, prefix, port_macs=None):
        super().__init__(prefix)
        self.port_macs = port_macs or {}

    def start(self):
        pass


class AsicSwitch(Switch):
    """asicd on a front panel of its own, switchd in the switch's namespace."""

    has_asic = True
    port_kind = os.environ.get("TANDEM_PORT_KIND", "af_packet")  # how hosts' cables are plugged in: af_xdp

    def __init__(self, prefix, profile="spectrum-sn2700", policy=None):
        super().__init__(prefix)
        self.front = net.Namespace(prefix + "fp")
        self.front.sysctl(ipv6__conf__default__disable_ipv6=1)
        self.profile = profile
        self.policy = policy
        self.instance = prefix + "sw"
        self.started = False
        self.cables = []  # of ports without a host: "swp3=tap:x"
        self.options = []  # more of `tandem up`

    def host(self, name, port, mac=None):
        h = Host(self.prefix, name, mac)
        net.cable(h.ns, "eth0", self.front, f"p{port}", a_mac=mac)
        self.cabled.append(port)
        self.hosts[name] = h
        return h

    # -- daemons

    @property
    def run_dir(self):
        return os.path.join(os.environ.get("TANDEM_RUN", "/run/tandem"), self.instance)

    def start(self):
        """`tandem up` in the switch's namespace, with every cabled port."""
        words = ["up", "--profile", self.profile, "--timeout", 30 * PACE, *self.options]
        for p in sorted(self.cabled):
            words += ["--port", f"swp{p}={self.port_kind}:p{p}@{self.front.name}"]
        for cable in self.cables:
            words += ["--port", cable]
        if self.policy:
            words += ["--policy", self.policy]
        out = self.tandem(*words, timeout=60 * PACE)
        self.started = True
        for p in self.cabled:
            net.wait_until(f"swp{p} to be there with carrier", lambda p=p: self.carrier(p), timeout=5 * PACE)
        return out

    def carrier(self, port):
        return "LOWER_UP" in self.ns.ip("-o link show", f"swp{port}", check=False) or self._up(port)

    def _up(self, port):
        # a netdev that is down shows no carrier: bring it up, look again
        self.ns.ip("link set", f"swp{port}", "up", check=False)
        return "LOWER_UP" in self.ns.ip("-o link show", f"swp{port}", check=False)

    def pid(self, daemon):
        with open(os.path.join(self.run_dir, f"{daemon}.pid"), encoding="utf-8") as f:
            return int(f.read().split()[0])

    def kill(self, daemon="switchd", sig=signal.SIGKILL):
        """kill -9; returns when the process is gone."""
        pid = self.pid(daemon)
        os.kill(pid, sig)
        net.wait_until(f"{daemon} {pid} to be gone", lambda: not net.pid_alive(pid, daemon), timeout=10, every=0.002)

    def delete(self):
        if self.started:
            try:
                self.tandem("down", check=False, timeout=30)
            except subprocess.TimeoutExpired:
                pass
            for daemon in ("swcfgd", "switchd", "asicd"):
                net.end_by_pid_file(os.path.join(self.run_dir, f"{daemon}.pid"), daemon)
        super().delete()
        self.front.delete()

    # -- the operator's command

    def tandem(self, *words, **kw):
        """Runs the CLI inside the switch's namespace; what it printed."""
        return self.ns.exec(os.path.join(binaries(), "tandem"), "--name", self.instance, *words, **kw)

    def json(self, *words, **kw):
        return json.loads(self.tandem("-j", *words, **kw))

    def api(self, daemon, method, path, body=None, timeout=30):
        """One question to a daemon, without a process: what the CLI would ask."""
        status, text = ask(os.path.join(self.run_dir, f"{daemon}.sock"), timeout, method, path, body)
        if status != 200:
            raise AssertionError(f"{method} {path} of {daemon}: {status} {text}")
        return json.loads(text)

    def chip(self, page):
        return self.api("asicd", "GET", page)

    def kernel_received(self):
        rows = (line.split(":", 1) for line in self.ns.read("/proc/thread-self/net/dev").splitlines() if ":" in line)
        return sum(int(row.split()[1]) for name, row in rows if re.fullmatch(r"swp\d+(s\d)?", name.strip()))

    def sync(self):
        self.api("switchd", "POST", "/v1/sync", {"timeout_ms": 25000})

    def show(self, what, *words):
        """Rows of `tandem show WHAT`."""
        return self.json("show", what, *words)

    def ports(self):
        return {row["name"]: row for row in self.show("ports")}

    def log(self, daemon):
        try:
            with open(os.path.join(self.run_dir, f"{daemon}.log"), encoding="utf-8") as f:
                return f.read()
        except OSError:
            return ""


def settle(seconds=0.2):
    """A pause for packets on their way; never used where a barrier exists."""
    time.sleep(seconds)
