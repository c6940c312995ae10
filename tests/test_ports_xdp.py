# SPDX-License-Identifier: Apache-2.0
"""Ports by AF_XDP: the same switch. Twin tests over them, an asicd that is killed, a netdev that goes and comes back,
and what can't have it.

    h1 ── veth ── p1 ─ XDP program ─ AF_XDP socket ─ asicd
"""

import os
import signal

import pytest
import test_offloads
import test_ports
import test_promise1_equivalence as equivalence
from lib import net
from lib.switch import PACE, AsicSwitch


@pytest.fixture(autouse=True)
def by_xdp(monkeypatch):
    release = tuple(int("".join(filter(str.isdigit, n)) or 0) for n in os.uname().release.split(".")[:2])
    if release < (6, 8) or not os.path.exists("/sys/kernel/btf/vmlinux"):
        pytest.skip("needs Linux 6.8 with CONFIG_DEBUG_INFO_BTF")
    monkeypatch.setattr(AsicSwitch, "port_kind", "af_xdp")


def has_program(sw, port):
    return "prog/xdp" in sw.front.ip("-d link show", f"p{port}", check=False)


def kind(sw, port):
    return sw.ports()[f"swp{port}"]["attachment"].split(":")[0]


def test_bridge_twin(make):
    equivalence.test_bridge_twin(make)


def test_a_busy_port_is_watched_again_before_asicd_sleeps(make):
    test_ports.test_a_busy_port_is_watched_again_before_asicd_sleeps(make.asic().route_hosts(2))


def test_router_twin(make):
    equivalence.test_router_twin(make)


def test_default_offloads(make, folder):
    sw = test_offloads.bridge_and_router(make)
    assert [kind(sw, p) for p in (1, 2, 3)] == ["af_xdp"] * 3
    test_offloads.test_tcp_udp_and_ping(sw, folder)


def test_an_asicd_that_is_killed_lets_go_of_the_netdev(make):
    sw = make.asic().route_hosts(2)
    assert kind(sw, 1) == "af_xdp" and has_program(sw, 1)
    sw.kill("asicd", signal.SIGKILL)
    net.wait_until("the program to be gone", lambda: not has_program(sw, 1), timeout=5)
    sw.tandem("up", timeout=60)
    sw.sync()
    assert kind(sw, 1) == "af_xdp" and has_program(sw, 1)
    net.wait_until("h1 to reach h2 again", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)


def test_a_netdev_that_comes_back(make):
    sw = make.asic().route_hosts(2)
    sw.front.ip("link del p1")
    warning = f"swp1: its cable af_xdp:p1@{sw.front.name} is gone"
    net.wait_until("a warning", lambda: warning in sw.tandem("status"), timeout=5)
    h1 = sw.hosts["h1"]
    net.cable(h1.ns, "eth0", sw.front, "p1")
    h1.address("10.1.0.2/24", gateway="10.1.0.1")
    net.wait_until("h1 to reach h2 again", lambda: h1.ping("10.2.0.2"), timeout=10 * PACE)
    assert kind(sw, 1) == "af_xdp"


def test_a_netdev_that_cannot_says_why(make):
    sw = make.asic()
    for i in (1, 2):
        sw.host(f"h{i}", i).address(f"10.1.0.{i}/24")
    sw.front.ip("link add d3 type bridge")
    sw.cables.append(f"swp3=af_xdp:d3@{sw.front.name}")
    sw.start()
    assert (kind(sw, 1), kind(sw, 3)) == ("af_xdp", "af_packet")
    status = sw.tandem("status")
    assert "swp3: AF_PACKET, not AF_XDP:" in status and "driver bridge" in status, status
