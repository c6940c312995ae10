# SPDX-License-Identifier: Apache-2.0
"""Switches that speak OpenFlow, each in a namespace: Open vSwitch (the measure) and ofagentd (what is tested), by
itself or with a chip of asicd's below it.

     namespace                                   folder /run/tnt-PID-N
    ┌──────────────────────────────────────┐    ┌──────────────────────────────────────┐
    │ veth ends ── switch ── tcp:127.0.0.1 │    │ database, sockets, logs of the switch │
    │              controller of the test  │    └──────────────────────────────────────┘
    └──────────────────────────────────────┘
Nothing of the system's own Open vSwitch is touched, and what is started here ends with the process that started it.
"""

import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from lib import net  # noqa: E402
from lib.switch import PREFIX, TOP, ask, binaries, sweep  # noqa: E402

OUT = os.path.join(os.environ.get("TANDEM_OUT", os.path.join(TOP, "out")), "openflow")
FAUCET = os.environ.get("TANDEM_FAUCET", os.path.join(os.path.dirname(OUT), "faucet"))
SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
PORT = 6653  # of the controller, in the namespace
LISTEN = 6654  # where a switch waits for ovs-ofctl
PR_SET_PDEATHSIG = 1

_count = itertools.count(1)


def die_with_parent():
    net.process_control(PR_SET_PDEATHSIG, signal.SIGTERM)


def unique():
    return f"{PREFIX}{os.getpid()}-of{next(_count)}"


def osken():
    """The words of os-ken's manager; it is in the environment of the Python that runs this (`./run` sees to that)."""
    return [sys.executable, "-m", "os_ken.cmd.manager"]


def faucet():
    """Faucet wants an os-ken of its own and so has an environment of its own."""
    path = os.path.join(FAUCET, "bin", "faucet")
    if not os.path.exists(path):
        raise FileNotFoundError(f"no {path}: ./run test openflow installs it")
    return path


def agent():
    """The path of ofagentd; None if it was not built."""
    path = os.path.join(binaries(), "ofagentd")
    return path if os.access(path, os.X_OK) else None


def tidy():
    """Takes away what killed runs have left. Who is told to end takes away what he has made, as at Ctrl-C."""
    def interrupt(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    gone = re.compile(rf"{PREFIX}(\d+)-")
    sweep(lambda pid: pid != os.getpid() and not net.pid_alive(pid))
    for name in os.listdir("/run"):
        found = gone.match(name)
        if found and not net.pid_alive(int(found.group(1))):
            shutil.rmtree(os.path.join("/run", name), ignore_errors=True)


class Cell:
    """A namespace and a folder, which go with everything that was started in them."""

    def __init__(self, name=None):
        self.name = name or unique()
        self.folder = f"/run/{self.name}"
        os.makedirs(self.folder, mode=0o755, exist_ok=True)
        self.ns = net.Namespace(self.name)
        self.others = []
        # what a kernel says by itself on a cable has no place in a test that counts frames
        self.ns.sysctl(ipv6__conf__default__disable_ipv6=1, ipv6__conf__all__disable_ipv6=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    def delete(self):
        for p in reversed(self.ns.children):
            if p.poll() is None:
                p.terminate()
        for other in self.others:
            other.delete()
        self.ns.delete()
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *words, log, env=None):
        """A process that ends with this one."""
        with open(self.path(log), "ab") as f:
            return self.ns.popen(*words, stdin=subprocess.DEVNULL, stdout=f, stderr=f, preexec_fn=die_with_parent,
                                 env={**os.environ, **(env or {})})

    def log(self, name):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as f:
                return f.read()
        except OSError:
            return ""

    def tcp(self, state):
        """Is there a socket of the controller's port in this state (as /proc/net/tcp has it)?"""
        rows = [line.split() for line in self.ns.read("/proc/thread-self/net/tcp").splitlines()[1:]]
        return any(row[1].endswith(f":{PORT:04X}") and row[3] == state for row in rows)

    def controller(self, *words, env=None):
        """A controller in osken-manager or Faucet, from when it listens on."""
        process = self.start(*words, log="app.log", env={
            "OSKEN_HUB_TYPE": "eventlet", "PYTHONDONTWRITEBYTECODE": "1", **(env or {})})
        net.wait_until("the controller to listen", lambda: self.tcp("0A"), timeout=30)
        return process

    def wires(self, count, a="a", b="b"):
        """Cables within the namespace: a1-b1, a2-b2, ..., without anything that speaks by itself."""
        for i in range(1, count + 1):
            self.ns.ip(f"link add {a}{i} type veth peer name {b}{i}")
            for end in (f"{a}{i}", f"{b}{i}"):
                self.ns.ip(f"link set {end} arp off up")

    def host(self, dev, name, mac, address=None, gateway=None):
        """A host on a cable to `dev` of this namespace."""
        ns = net.Namespace(f"{self.name}-{name}")
        self.others.append(ns)
        ns.sysctl(ipv6__conf__default__disable_ipv6=1)
        net.cable(self.ns, dev, ns, "eth0", b_mac=mac)
        # who reads packet sockets and knows nothing of unfinished checksums would pass them on as they are
        for where, end in ((self.ns, dev), (ns, "eth0")):
            where.exec("ethtool", "-K", end, "tx", "off", check=False)
        if address:
            ns.ip(f"addr add {address} dev eth0")
        if gateway:
            ns.ip(f"route add default via {gateway}")
        return ns


class Ovs:
    """Open vSwitch with its userspace datapath; bridges are its switches."""

    kind = "ovs"

    def __init__(self, cell):
        self.cell = cell
        self.env = {k: cell.folder for k in ("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR")}
        self.socket = f"unix:{cell.path('db.sock')}"
        net.run("ovsdb-tool", "create", cell.path("conf.db"), SCHEMA)
        cell.start("ovsdb-server", "--no-chdir", f"--unixctl={cell.path('ovsdb.ctl')}", cell.path("conf.db"),
                   f"--remote=p{self.socket}", log="ovsdb.log", env=self.env)
        net.wait_until("the database of Open vSwitch", lambda: os.path.exists(cell.path("db.sock")))
        self.vsctl("--no-wait", "init")
        self.daemon = cell.start("ovs-vswitchd", "--no-chdir", f"--unixctl={cell.path('vswitchd.ctl')}", self.socket,
                                 log="vswitchd.log", env=self.env)
        net.wait_until("ovs-vswitchd", lambda: os.path.exists(cell.path("vswitchd.ctl")))

    def vsctl(self, *words):
        return net.run("ovs-vsctl", "--timeout=20", f"--db={self.socket}", *words, timeout=30)

    def forget(self):
        """The datapath's cache: a barrier does not wait for it, and it answers by the flows of before for a while."""
        self.cell.ns.exec("ovs-appctl", "-t", self.cell.path("vswitchd.ctl"), "revalidator/purge")

    def bridge(self, name, dpid, ports, version="OpenFlow13", controller=True, listen=False, fail="secure"):
        """A switch: `ports` are netdevs, numbered from 1. `listen`: an address for ovs-ofctl, which is returned."""
        words = ["add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", f"protocols={version}",
                 f"fail-mode={fail}", f"other-config:datapath-id={dpid:016x}"]
        for i, dev in enumerate(ports, 1):
            words += ["--", "add-port", name, dev, "--", "set", "interface", dev, f"ofport_request={i}"]
        self.vsctl(*words)
        if controller:
            # in band, it would install rules of its own
            self.vsctl("set-controller", name, f"tcp:127.0.0.1:{PORT}", "--", "set", "controller", name,
                       "connection-mode=out-of-band", "max_backoff=1000")
        return f"unix:{self.cell.path(name + '.mgmt')}" if listen else None


class Agent:
    """ofagentd with its software pipeline on the same kind of ports."""

    kind = "ofagentd"

    def __init__(self, cell):
        self.cell = cell
        self.daemon = None

    def bridge(self, name, dpid, ports, version=None, controller=True, listen=False, fail="secure"):
        """As `Ovs.bridge`."""
        instance = f"{self.cell.name}-{name}"
        words = [agent(), "--name", instance, "--datapath-id", dpid, *self.cabled(instance, ports)]
        if controller:
            words += ["--controller", f"tcp:127.0.0.1:{PORT}"]
        if listen:
            words += ["--controller", f"ptcp:127.0.0.1:{LISTEN}"]
        if version:
            words += ["--versions", version.replace("OpenFlow1", "1.")]
        if fail != "secure":
            words += ["--fail", fail]
        self.daemon = self.cell.start(*words, log=f"{name}.log")
        return f"tcp:127.0.0.1:{LISTEN}" if listen else None

    def cabled(self, _, ports):
        """The words that give it these netdevs as its ports."""
        return [word for i, dev in enumerate(ports, 1) for word in ("--port", f"swp{i}={dev}")]


class ChipAgent(Agent):
    """ofagentd with a chip below; the chip's other ports have no cables. A class for each profile."""

    profile = None
    asicd = None
    instance = ""
    lookup = "address"  # of the MAC table

    def cabled(self, instance, ports):
        self.instance = instance
        if self.asicd is None or self.asicd.poll() is not None:
            words = [os.path.join(binaries(), "asicd"), "--name", instance, "--profile", self.profile]
            self.asicd = self.cell.start(*words, *super().cabled(instance, ports), log="asicd.log")
            net.wait_until("asicd", lambda: os.path.exists(self.socket("asicd")))
        return ["--asic", "--mac-lookup", self.lookup]

    def socket(self, daemon):
        return os.path.join(os.environ.get("TANDEM_RUN", "/run/tandem"), self.instance, f"{daemon}.sock")

    def get(self, daemon, page):
        status, text = ask(self.socket(daemon), 30, "GET", page, None)
        if status != 200:
            raise ValueError(f"{daemon} answers {status}: {text}")
        return json.loads(text)

    def counters(self):
        """Of all of the chip's ports together: rx_packets, tx_packets, rx_cpu_packets, tx_cpu_packets."""
        rows = [p["counters"] for p in self.get("asicd", "/v1/ports")["items"]]
        return {k: sum(r[k] for r in rows) for k in ("rx_packets", "tx_packets", "rx_cpu_packets", "tx_cpu_packets")}

    def places(self):
        """Of each flow but the table-misses, where it stands and why."""
        flows = self.get("ofagentd", "/v1/flows")["items"]
        return {f"{f['table']} {f['match']}": (f["place"], f["why"]) for f in flows if f["priority"]}

    def spared(self, talk, times=3):
        """`talk` succeeds, and the CPU gets nothing of it, so often in a row: one quiet try may be luck."""
        before = self.counters()["rx_cpu_packets"]
        return all(talk() for _ in range(times)) and self.counters()["rx_cpu_packets"] == before

    def spares_the_cpu(self, talk):
        """So it is once the chip is written and neighbours know each other."""
        net.wait_until(f"the chip to do it alone: {self.places()}", lambda: self.spared(talk), timeout=60)

    def is_entry(self, table, priority):
        """Is a flow, or a chain that it is in, an entry of the MAC table, which counts nothing?"""
        items = self.get("ofagentd", "/v1/flows")["items"]
        flows = [f for f in items if (f["table"], f["priority"]) == (table, priority)]
        assert flows, (table, priority)
        return any("in the MAC table, " in f["why"] for f in flows)

    @property
    def counts_bytes(self):
        """Do its rows?"""
        return self.profile != "nxp-t1040"

    def settled(self):
        """The chip answers by its entries, and nothing waits to be written."""
        chip = self.get("ofagentd", "/v1/status")["chip"]
        return chip["state"] == "open" and chip["settled"]


CHIPS = {chip: type(chip, (ChipAgent,), {"profile": chip}) for chip in ("nxp-t1040", "arista-7500e")}
TARGETS: dict = {"ovs": Ovs, "ofagentd": Agent, **CHIPS}


def missing(target):
    """Why a target can't be had here; empty if it can."""
    if not (os.path.exists(SCHEMA) and shutil.which("ovs-vswitchd") or os.path.exists("/usr/sbin/ovs-vswitchd")):
        return "needs Debian's openvswitch-switch"
    if target != "ovs" and agent() is None:
        return f"no ofagentd in {binaries()}: ./run build makes it"
    return ""
