# SPDX-License-Identifier: Apache-2.0
"""A switch whose chip the kernel itself drives: the ports of the lab's machine, in which the tests run."""

import json
import os
import time

from . import net
from .switch import PACE, Host, Switch

DRIVER = "clsw_pci"
READ_EVERY = 1.5 * PACE  # nobody tells the driver of sysctls: it reads them once a second


def is_there():
    """Do the tests run in a machine of the lab that has the driver and a chip behind PCI?"""
    return os.environ.get("LAB_BACKEND") == "pci"


class Home(net.Namespace):
    """The machine's own namespace, by a name: front-panel ports don't leave it."""

    def __init__(self, name):
        self.name = name
        self.children = []
        self.unseen = 0.0  # until when the driver may not have seen what was set
        net.run("ip", "netns", "attach", name, os.getpid())

    def sysctl(self, **settings):
        super().sysctl(**settings)
        self.unseen = time.monotonic() + READ_EVERY


class DriverSwitch(Switch):
    """The driver's ports, as new; hosts get the NICs of the machine that are cabled to them."""

    has_asic = True
    ns: Home

    def __init__(self, prefix):
        self.prefix = prefix
        self.ns = Home(prefix + "sw")
        self.hosts = {}
        self.cabled = []
        self._load()

    def _load(self):
        net.run("modprobe", "-r", DRIVER, timeout=60)
        net.run("modprobe", DRIVER, timeout=60)
        net.wait_until("ports of the driver", lambda: os.path.isdir("/sys/class/net/swp1"), timeout=20 * PACE)

    def host(self, name, port, mac=None):
        h = Host(self.prefix, name, mac)
        net.run("ip", "link", "set", f"p{port}", "down")
        net.run("ip", "link", "set", f"p{port}", "netns", h.ns.name, "name", "eth0", *(["address", mac] if mac else []))
        h.ns.ip("link set eth0 up")
        self.cabled.append((name, port))
        self.hosts[name] = h
        return h

    def start(self):
        for _, port in self.cabled:
            self.ip(f"link set swp{port} up")
        for _, port in self.cabled:
            net.wait_until(f"swp{port} to have carrier", lambda p=port: self._carrier(p), timeout=10 * PACE)

    @staticmethod
    def _carrier(port):
        with open(f"/sys/class/net/swp{port}/carrier", encoding="utf-8") as f:
            return f.read().strip() == "1"

    def _under_way(self):
        """Slots of commands that the chip has not answered."""
        dev = next(iter(json.loads(net.run("devlink", "-j", "dev", "show"))["dev"]))
        said = json.loads(net.run("devlink", "-j", "health", "diagnose", dev, "reporter", "chip"))
        found = []

        def look(x):
            if isinstance(x, dict):
                if "committed" in x:
                    found.append(x["in_flight"])
                for v in x.values():
                    look(v)
            elif isinstance(x, list):
                for v in x:
                    look(v)

        look(said)
        assert found, said
        return sum(found)

    def sync(self):
        """What the kernel tells at once is in hardware before its command ends; the rest is work items of moments."""
        time.sleep(max(0.0, self.ns.unseen - time.monotonic()))
        net.wait_until("nothing under way", lambda: not self._under_way(), timeout=20 * PACE, every=0.1)
        time.sleep(0.2 * PACE)
        net.wait_until("nothing under way", lambda: not self._under_way(), timeout=20 * PACE, every=0.1)

    def chip(self, page):
        """A page of asicd's, which is the machine's host's."""
        return json.loads(net.run("host", f"python3 tests/vm/chip.py {page}", timeout=30 * PACE))

    def delete(self):
        for name, port in self.cabled:
            self.hosts[name].ns.ip("link set eth0 down")
            self.hosts[name].ns.ip(f"link set eth0 name p{port} netns 1")
        for kind in ("vlan", "vrf", "bridge"):
            for link in json.loads(net.run("ip", "-j", "link", "show", "type", kind) or "[]"):
                net.run("ip", "link", "del", link["ifname"], check=False)
        net.run("ip", "nexthop", "flush", check=False)
        for kind in ("blackhole", "unreachable", "prohibit", "throw"):
            net.run("ip", "route", "flush", "type", kind, check=False)
        super().delete()
