# SPDX-License-Identifier: Apache-2.0
"""48 ports with all VLANs on each of them, which a chip of the profile `scale` has room for: 196,512 memberships. Needs
a kernel with VLAN filtering and 8021q, as tests/test_promise1_vlan.py.

    h1 ─ VLANs 2 and 4094 ── swp1  ──┐
                             ...     ├── br0, VLANs 1 to 4094
    h2 ─ VLANs 2 and 4094 ── swp48 ──┘
"""

import time

import pytest

from lib import net
from test_machines import TheChip
from test_promise1_vlan import kernel_lacks

PORTS = range(1, 49)
MEMBERSHIPS = len(PORTS) * 4094


@pytest.fixture(autouse=True)
def kernel_has_vlans():
    lacks = kernel_lacks()
    if lacks:
        pytest.skip(f"needs a kernel with {lacks}")


def vlans(sw, what):
    """One command of `bridge vlan` for each port."""
    lines = "".join(f"vlan {what.format(i)}\n" for i in PORTS)
    net.run("bridge", "-n", sw.ns.name, "-batch", "-", timeout=300, stdin=lines)


def members(sw):
    """What the chip holds of them."""
    pools = {row["name"]: row for row in sw.chip("/v1/resources")["items"]}
    return pools["vlan-member"]["used"]


def settled(sw, what, began):
    """Waits as long as something goes on, ten minutes at most: a machine that is emulated takes minutes over what the
    kernel has to do alone."""
    net.wait_until(what, lambda: members(sw) == MEMBERSHIPS, timeout=600, every=1)
    sw.api("switchd", "POST", "/v1/sync", {"timeout_ms": 200000}, timeout=210)
    print(f"{what}: {time.monotonic() - began:.1f} s")


def test_all_vlans_on_48_ports(make):
    sw = make.asic(profile="scale")
    for name, port in (("h1", 1), ("h2", 48)):
        h = sw.host(name, port)
        for vid in (2, 4094):
            h.ns.ip(f"link add link eth0 name v{vid} up type vlan id {vid}")
            h.ns.ip(f"addr add 10.{vid >> 8}.{vid & 255}.{port}/24 dev v{vid}")
    sw.start()
    began = time.monotonic()
    sw.ip("link add br0 up type bridge vlan_filtering 1")
    sw.ns.ip_batch([f"link set swp{i} up master br0" for i in PORTS], family="-4", timeout=300)
    vlans(sw, "add dev swp{} vid 2-4094")
    print(f"the kernel has them: {time.monotonic() - began:.1f} s")
    settled(sw, "all in the chip", began)

    def talk():
        for vid, to in ((2, "10.0.2.48"), (4094, "10.15.254.48")):
            sw.hosts["h1"].ping(to, count=2, check=False)
            with TheChip(sw):
                sw.hosts["h1"].ping(to, count=3, check=True)
            # a frame of one VLAN does not come out in another
            assert sw.hosts["h2"].ns.ip("neigh show", to.rsplit(".", 1)[0] + ".1"), vid
    talk()
    began = time.monotonic()
    found = sw.api("switchd", "POST", "/v1/audit", {"wait_s": 60}, timeout=900)
    assert not found["items"], found["items"][:3]
    print(f"audit: {time.monotonic() - began:.1f} s")

    sw.kill("switchd")
    began = time.monotonic()
    sw.tandem("up", "--timeout", "300", timeout=310)
    settled(sw, "taken over by a new switchd", began)
    assert sw.json("status")["switchd"]["writes"] == 0, "what was equal was written again"
    talk()

    # a VLAN that goes takes its memberships along, and nothing else
    vlans(sw, "del dev swp{} vid 4094")
    net.wait_until("a VLAN's memberships to go", lambda: members(sw) == MEMBERSHIPS - len(PORTS), timeout=60, every=0.5)
    assert sw.hosts["h1"].ping("10.15.254.48") == 0
    assert sw.hosts["h1"].ping("10.0.2.48", count=2, check=True)
