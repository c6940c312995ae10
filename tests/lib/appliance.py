# SPDX-License-Identifier: Apache-2.0
"""The appliance: with engine chip asicd and swcfgd, in the place of a switch with asicd and switchd; with engine kernel
all three."""

import ipaddress
import json
import os
import re
import shutil
import socket
import subprocess

from . import net
from .switch import PACE, AsicSwitch, binaries


def interface(name):
    """port1, vlan2: as the console has it."""
    word, number = re.fullmatch(r"([a-z]+)(\d+)", name).groups()
    return f"interface swp{number}" if word == "port" else f"interface {word} {number}"


def lines(config):
    """A configuration of a test as a text that `configure replace` takes."""
    said = ["ip routing"] if config.get("routing") else ["no ip routing"]
    said += ["vlan dot1q tag native"] * bool(config.get("tag_native"))
    said += config.get("lines", ())
    for vid, how in config.get("vlans", {}).items():
        said += [f"vlan {vid}", *(f" {k} {v}" for k, v in how.items())]
    for name, how in config.get("interfaces", {}).items():
        said.append(interface(name))
        if how.get("routed"):
            said.append(" no switchport")
        if "access" in how:
            said += [" switchport mode access", f" switchport access vlan {how['access']}"]
        if how.get("trunk"):
            said.append(" switchport mode trunk")
        if "allowed" in how:
            said.append(f" switchport trunk allowed vlan {','.join(map(str, how['allowed']))}")
        for key, more in (("ipv4", ""), ("secondary", " secondary")):
            nets = how.get(key, ())
            for text in [nets] if isinstance(nets, str) else nets:
                net_ = ipaddress.ip_interface(text)
                said.append(f" ip address {net_.ip} {net_.netmask}{more}")
        said += [f" ipv6 address {text}" for text in how.get("ipv6", ())]
        if "mtu" in how:
            said.append(f" mtu {how['mtu']}")
        said += [f" {text}" for text in how.get("lines", ())]
        said.append(" shutdown" if how.get("shutdown") else " no shutdown")
    for r in config.get("routes", ()):
        to = ipaddress.ip_network(r["to"])
        how = f"{r.get('via', 'Null0')} {r.get('distance', '')}".strip()
        said.append(f"ip route {to.network_address} {to.netmask} {how}")
    for x in config.get("stations", ()):
        said.append(f"mac address-table static {dotted(x['mac'])} vlan {x['vlan']} interface swp{x['port']}")
    return "\n".join([*said, "end", ""])


def dotted(mac):
    """aabb.ccdd.eeff"""
    digits = mac.replace(":", "")
    return ".".join(digits[i:i + 4] for i in (0, 4, 8))


def colons(text):
    digits = text.replace(".", "")
    return ":".join(digits[i:i + 2] for i in range(0, 12, 2))


def kernel_lacks():
    """What engine kernel needs and this kernel does not have."""
    bridge = "ip link add probe type bridge vlan_filtering 1"
    if not net.kernel_does(bridge):
        return "bridge VLAN filtering"
    if not net.kernel_does(bridge, "ip link add link probe name probe.5 type vlan id 5"):
        return "8021q"
    return None


class ChipSwitch(AsicSwitch):
    """swcfgd has the VLANs, in the switch's namespace; the ports have no netdevs there."""

    def __init__(self, prefix, profile="tiny", policy=None):
        super().__init__(prefix, profile, policy)
        self.running = {}
        self.logs = []
        self.frr = None  # the folder of FRR's sockets

    def _daemon(self, name, *words):
        os.makedirs(self.run_dir, mode=0o700, exist_ok=True)
        log = open(os.path.join(self.run_dir, f"{name}.log"), "ab")  # closed with the process that has it
        with log:
            path = os.path.join(binaries(), name)
            self.running[name] = self.ns.popen(path, "--name", self.instance, *words, stderr=log)

    def start(self, config=None):
        self.config = config or {}
        self.start_asicd()
        self.start_swcfgd()
        self.started = True

    def start_asicd(self):
        words = ["--profile", self.profile]
        for p in sorted(self.cabled):
            words += ["--port", f"swp{p}={self.port_kind}:p{p}@{self.front.name}"]
        self._daemon("asicd", *words)
        net.wait_until("asicd to answer", lambda: self.answers("asicd"))

    def startup(self, name="startup-config"):
        """The path of a configuration that is kept."""
        folder = os.path.join(self.run_dir, "kept")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        return os.path.join(folder, name)

    def keep(self, config, name="startup-config"):
        with open(self.startup(name), "w", encoding="utf-8") as f:
            f.write(lines(config))

    def start_swcfgd(self):
        """With the configuration that it had; returns when all of it is in the chip."""
        self.launch_swcfgd()
        self.wait_for_swcfgd()

    def launch_swcfgd(self):
        os.makedirs(self.run_dir, mode=0o700, exist_ok=True)
        if self.config is not None:
            self.keep(self.config)
        more = ["--frr", self.frr] if self.frr else []
        self._daemon("swcfgd", "--engine", "chip", "--startup", os.path.dirname(self.startup()), *more)

    def wait_for_swcfgd(self):
        net.wait_until("swcfgd to answer", lambda: self.answers("swcfgd") or self.ended("swcfgd"))
        self.sync()

    def ended(self, name):
        if self.running[name].poll() is not None:
            raise AssertionError(f"{name} ended: {self.log(name)}")

    def answers(self, daemon):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            try:
                s.connect(os.path.join(self.run_dir, f"{daemon}.sock"))
            except OSError:
                return False
        return True

    def begin(self, *commands):
        """Commands by swcli, that are not waited for: the process."""
        words = [w for c in commands for w in ("-c", c)]
        return self.ns.popen(os.path.join(binaries(), "swcli"), "--name", self.instance, *words,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def cli(self, *commands, stdin=None):
        """Commands by swcli; what they say. What was refused is an AssertionError with its words."""
        words = [w for c in commands for w in ("-c", c)]
        swcli = [os.path.join(binaries(), "swcli"), "--name", self.instance]
        r = subprocess.run(["ip", "netns", "exec", self.ns.name, *swcli, *words], input=stdin, capture_output=True,
                           text=True, timeout=2 * net.PATIENCE)
        if r.returncode:
            raise AssertionError(r.stderr or r.stdout)
        return r.stdout

    def apply(self, config):
        """All of it, or nothing."""
        self.keep(config, "wanted")
        self.cli("configure replace wanted force")
        self.config = config

    def stations(self):
        """(VLAN, MAC) of what is known, with its port; none: the switch itself."""
        rows = re.findall(r"^ *(\d+) +([\da-f.]{14}) +\w+ +(\S+) *$", self.cli("show mac address-table"), re.M)
        return {(int(vid), colons(mac)): int(port.rsplit("/", 1)[1]) if "/" in port else None
                for vid, mac, port in rows}

    def links(self):
        """Each interface: its MAC, and whether it has carrier."""
        rows = re.findall(r"^(\S+) is .*, line protocol is (\w+).*\n.*address is ([\da-f.]+)",
                          self.cli("show interfaces"), re.M)
        return {name: {"carrier": state == "up", "mac": colons(mac)} for name, state, mac in rows}

    def tree(self):
        """Each port of the spanning tree: its role and state."""
        rows = re.findall(r"^\S+/(\d+) +(\w+) (BLK|LRN|FWD) +\d+ ", self.cli("show spanning-tree"), re.M)
        return {int(port): (role, state) for port, role, state in rows}

    def kill(self, daemon="swcfgd", sig=9):
        process = self.running.pop(daemon)
        super().kill({"swcfgd": "switchd"}.get(daemon, daemon), sig)
        process.wait(10)

    def pid(self, daemon):
        return super().pid({"swcfgd": "switchd"}.get(daemon, daemon))

    def delete(self):
        self.started = False
        for name in ("swcfgd", "asicd"):
            process = self.running.pop(name, None)
            if process and process.poll() is None:
                process.kill()
                process.wait(10)
        if os.path.exists(self.run_dir + ".login"):
            os.unlink(self.run_dir + ".login")
        super().delete()


class BridgeSwitch(ChipSwitch):
    """Engine kernel: `tandem up` starts all three."""

    def __init__(self, prefix, profile="tiny"):
        super().__init__(prefix, profile)
        self.options = ["--engine", "kernel"]

    def start(self, config=None):
        AsicSwitch.start(self)
        self.config = config or {}
        if config:
            self.apply(config)
        self.sync()

    def startup(self, name="startup-config"):
        return os.path.join("/var/lib/tandem", self.instance, name)

    def start_swcfgd(self):
        if self.config is not None:
            self.keep(self.config)
        self.again()
        self.sync()

    def again(self):
        """`tandem up` alone: what was killed comes back."""
        return self.tandem("up", "--timeout", 30 * PACE, timeout=60 * PACE)

    def kill(self, daemon="swcfgd", sig=9):
        AsicSwitch.kill(self, daemon, sig)

    def pid(self, daemon):
        return AsicSwitch.pid(self, daemon)

    def kernel(self):
        """What `bridge` and `ip` say of all that a configuration is about."""
        netns = ["-n", self.ns.name]
        said = [net.run("bridge", *netns, "-j", *words.split()) for words in ("vlan show", "-d link show")]
        fdb = net.run("bridge", *netns, "fdb", "show")
        said.append("\n".join(sorted(x for x in fdb.splitlines() if "static" in x)))
        said += [self.ns.ip("-j addr show", *words) for words in (("dev", "lo"), ("type", "vlan"), ("dev", "br0"))]
        said += [self.ns.ip("-j -d link show dev br0"), self.ns.ip("route show")]
        clocks = r'"(preferred|valid)_life_time":\d+|"(hello|tcn|topology_change|gc)_timer":[\d.]+'
        # carrier is nobody's configuration, and comes to be known up to a second later
        carrier = r'"operstate":"[A-Z]+"|"(NO-CARRIER|LOWER_UP|M-DOWN)",?'
        return [re.sub(f"{clocks}|{carrier}", "", x) for x in said]

    def members(self):
        """By `bridge vlan`: each netdev's VLANs, with their flags."""
        rows = json.loads(net.run("bridge", "-n", self.ns.name, "-j", "vlan", "show"))
        return {r["ifname"]: {v["vlan"]: sorted(f.lower() for f in v.get("flags", ())) for v in r.get("vlans", ())}
                for r in rows}

    def delete(self):
        AsicSwitch.delete(self)
        shutil.rmtree(os.path.dirname(self.startup()), ignore_errors=True)
