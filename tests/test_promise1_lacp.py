# SPDX-License-Identifier: Apache-2.0
"""Promise 1 on an 802.3ad bond with a live partner (IEEE 802.1AX, 6.4): the kernels on both sides speak LACP through
the chip, and a port forwards when, and only when, both have it collecting and distributing.

    h1 ── swp1 ── br0 ── bond0 ─┬─ swp3 ── eth0 ─┬─ bond0 10.7.0.3
                                └─ swp4 ── eth1 ─┘  one station, the partner
Needs a kernel with bonding: the lab's machine has it (tests/vm/e2e), a build machine may not.
"""

import contextlib
import json

import pytest

from lib import net, packet, twin
from lib.switch import PACE
from lib.twin import MAC, data, quiet

BOND = "mode 802.3ad lacp_rate fast miimon 50 xmit_hash_policy layer3+4"
PARTNER = "02:00:00:00:03:00"
SWITCH = "02:00:00:00:02:00"
WORKS = 0x30   # collecting and distributing: 802.1AX 6.4.2.3, the last two bits that count here
GONE = 12      # seconds until a partner that is silent is one no more: three times the fast rate, and some


@pytest.fixture(autouse=True)
def kernel_has_bonds():
    if not net.kernel_makes("bond"):
        pytest.skip("needs a kernel with bonding")


def enslave(ns, dev):
    ns.sysctl(**{f"ipv6__conf__{dev}__disable_ipv6": 1})
    ns.ip(f"link set {dev} down")
    ns.ip(f"link set {dev} master bond0")


def bond(ns, mac, members):
    ns.ip(f"link add bond0 address {mac} type bond {BOND}")
    ns.sysctl(ipv6__conf__bond0__disable_ipv6=1)
    for dev in members:
        enslave(ns, dev)
    ns.ip("link set bond0 up")


def works(ns, dev):
    """Do this side and its partner both collect and distribute at a member, as this side's kernel says?"""
    slave = json.loads(ns.ip("-j -d link show", dev))[0]["linkinfo"].get("info_slave_data", {})
    states = [slave.get(f"ad_{who}_oper_port_state", 0) for who in ("actor", "partner")]
    return slave.get("state") == "ACTIVE" and all(s & WORKS == WORKS for s in states)


class Bench:
    """The switch, its one host and the partner."""

    def __init__(self, make, stack):
        self.asic = make.asic()
        for i in (1, 3, 4):
            self.asic.host(f"h{i}", i, MAC[f"h{i}"])
        self.partner = self.asic.hosts["h3"].ns
        self.asic.start()
        twin.mute(self.asic)
        other = self.asic.hosts["h4"].ns
        other.ip("link set eth0 down")
        other.ip(f"link set eth0 netns {self.partner.name} name eth1")
        twin.bridge(self.asic, ports=("h1",))
        bond(self.asic.ns, SWITCH, ("swp3", "swp4"))
        self.asic.ip("link set bond0 master br0")
        bond(self.partner, PARTNER, ("eth0", "eth1"))
        for ns in (self.partner, self.asic.hosts["h1"].ns):
            ns.sysctl(ipv4__conf__all__arp_ignore=0)
        self.partner.ip("addr add 10.7.0.3/24 dev bond0")
        self.asic.hosts["h1"].address("10.7.0.1/24")
        self.wires = {"h1": stack.enter_context(packet.Wire(self.asic.hosts["h1"].ns))}
        for name, dev in (("h3", "eth0"), ("h4", "eth1")):
            self.wires[name] = stack.enter_context(packet.Wire(self.partner, dev))

    def until(self, swp3, swp4):
        """Waits until these members work, and these don't; then until the chip has heard of it."""
        want = [swp3, swp4]
        net.wait_until(f"members that work: {want}", lambda: [works(self.asic.ns, p) for p in ("swp3", "swp4")] == want,
                       timeout=3 * GONE * PACE, every=0.2)
        self.asic.sync()

    def to_partner(self):
        """What 32 flows from h1 do: for each member the sources that came by it; nothing but the chip saw them."""
        before = self.asic.cpu_packets()
        for w in self.wires.values():
            w.clear()
        for f in [data(PARTNER, f"02:00:00:00:11:{i:02x}", sport=1000 + i) for i in range(32)] * 3:
            self.wires["h1"].send(f)
        quiet(self.wires, sw=self.asic)
        got = {h: [f for f in self.wires[h].caught() if f[:6] == packet.mac(PARTNER) and f[6:10] == b"\2\0\0\0"
                   and f[10] == 0x11] for h in ("h3", "h4")}
        cpu = {k: v for k, v in self.asic.cpu_delta(before).items() if k not in twin.ALWAYS_CPU}
        assert not cpu, cpu
        assert sum(len(x) for x in got.values()) == 96, {h: len(x) for h, x in got.items()}
        return {h: {bytes(f[6:12]) for f in x} for h, x in got.items()}

    def from_partner(self, member):
        """How many of three frames that the partner sends by a member reach h1."""
        self.wires["h1"].clear()
        frame = data(MAC["h1"], "02:00:00:00:12:01")
        for _ in range(3):
            self.wires[member].send(frame)
        quiet(self.wires, sw=self.asic)
        return len(self.wires["h1"].caught(lambda f: f[6:12] == packet.mac("02:00:00:00:12:01")))


def test_members_come_and_go_as_the_partners_agree(make):
    with contextlib.ExitStack() as stack:
        bench = Bench(make, stack)
        bench.until(True, True)
        assert bench.asic.hosts["h1"].ping("10.7.0.3", count=3) >= 1
        sources = bench.to_partner()
        # every flow has one member, and both have some
        assert sources["h3"] and sources["h4"] and not sources["h3"] & sources["h4"]
        assert [bench.from_partner(m) for m in ("h3", "h4")] == [3, 3]

        # the cable is there, the far end speaks no LACP any more: only the protocol can tell
        bench.partner.ip("link set eth1 nomaster")
        bench.partner.ip("link set eth1 up")
        bench.until(True, False)
        sources = bench.to_partner()
        assert not sources["h4"] and len(sources["h3"]) == 32
        assert [bench.from_partner(m) for m in ("h3", "h4")] == [3, 0]

        enslave(bench.partner, "eth1")
        bench.until(True, True)
        assert all(bench.to_partner().values())

        # a cable that is cut
        bench.partner.ip("link set eth0 down")
        bench.until(False, True)
        sources = bench.to_partner()
        assert not sources["h3"] and len(sources["h4"]) == 32
        bench.partner.ip("link set eth0 up")
        bench.until(True, True)

        # switchd dies and comes back before the partner gives up, which needs three seconds
        bench.asic.kill("switchd")
        bench.asic.tandem("up", timeout=60 * PACE)
        bench.until(True, True)
        sources = bench.to_partner()
        assert sources["h3"] and sources["h4"] and not sources["h3"] & sources["h4"]
        answer = bench.asic.api("switchd", "POST", "/v1/audit", {"wait_s": 3.0}, timeout=60)
        assert not answer["items"], answer["items"]
