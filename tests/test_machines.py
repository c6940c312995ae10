# SPDX-License-Identifier: Apache-2.0
"""Machines that people have: jumbo frames, cables that go and come back, fabrics without IPv4, many ports, other
locales, no TAP driver.

    h1 10.1.0.2, fd01::2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2, fd02::2
"""

import os
import re
import signal
import subprocess
import time

import pytest

from lib import frr, net, twin
from lib.switch import PACE, TOP, binaries


class TheChip:
    """What is done inside costs the kernel nothing but what is always its own: ARP, ND, reports of groups."""

    def __init__(self, sw):
        self.sw = sw

    def __enter__(self):
        self.before = self.sw.cpu_packets()

    def __exit__(self, kind, *_):
        seen = {k: n for k, n in self.sw.cpu_delta(self.before).items() if k not in twin.ALWAYS_CPU}
        if kind is None:
            assert not seen, seen


def mtu_everywhere(sw, size):
    for i, host in enumerate(sw.hosts.values(), 1):
        host.ns.ip(f"link set eth0 mtu {size}")
        sw.ip(f"link set swp{i} mtu {size}")
    sw.sync()


def test_jumbo_frames(make):
    """9,000 octets pass through the chip in one piece, bridged and routed; one more than the way out takes does not."""
    sw = make.asic().route_hosts(2, six=True)
    h1 = sw.hosts["h1"]
    mtu_everywhere(sw, 9000)
    net.wait_until("both to know each other", lambda: h1.ping("10.2.0.2") and h1.ping("fd02::2"), timeout=10)
    sw.sync()
    with TheChip(sw):
        # 20 of IPv4 and 8 of ICMP before it; not to be cut up on the way
        out = h1.ns.exec("ping", "-q", "-M", "do", "-s", 8972, "-c", 20, "-i", "0.02", "10.2.0.2")
        assert "20 received" in out, out
        out = h1.ns.exec("ping", "-6", "-q", "-M", "do", "-s", 8952, "-c", 20, "-i", "0.02", "fd02::2")
        assert "20 received" in out, out

    sw.ip("link set swp2 mtu 8999")
    sw.sync()
    out = h1.ns.exec("ping", "-M", "do", "-s", 8972, "-c", 1, "-W", 2, "10.2.0.2", check=False)
    assert re.search(r"mtu ?= ?8999", out), out

    sw.ip("link set swp2 mtu 9000")
    sw.ip("link add br0 mtu 9000 up type bridge")
    for i in (1, 2):
        sw.ip(f"addr flush dev swp{i}")
        sw.ip(f"link set swp{i} master br0")
    for i, host in enumerate(sw.hosts.values(), 1):
        host.address(f"10.9.0.{i}/24")
    net.wait_until("h1 to reach h2 through the bridge", lambda: h1.ping("10.9.0.2"), timeout=10)
    sw.sync()
    with TheChip(sw):
        out = h1.ns.exec("ping", "-q", "-M", "do", "-s", 8972, "-c", 20, "-i", "0.02", "10.9.0.2")
        assert "20 received" in out, out


def test_a_cable_that_goes_and_comes_back(make):
    """A network card is pulled out and put in again: the port loses its link and has it again, the daemons stay."""
    sw = make.asic().route_hosts(2)
    h1, h2 = sw.hosts["h1"], sw.hosts["h2"]
    pids = [sw.pid(d) for d in ("asicd", "switchd")]
    for _ in range(3):
        sw.front.ip("link del p2")  # and h2's end with it
        net.wait_until("swp2 without carrier", lambda: "LOWER_UP" not in sw.ip("-o link show swp2"), timeout=10)
        sw.sync()
        assert not h1.ping("10.2.0.2", timeout=0.3)
        net.cable(h2.ns, "eth0", sw.front, "p2")
        h2.address("10.2.0.2/24", gateway="10.2.0.1")
        net.wait_until("swp2 with carrier", lambda: "LOWER_UP" in sw.ip("-o link show swp2"), timeout=10)
        net.wait_until("h1 to reach h2", lambda: h1.ping("10.2.0.2"), timeout=10)
        sw.sync()
        with TheChip(sw):
            h1.ping("10.2.0.2", count=20, interval=0.02, check=True)
        # and the card is the chip's alone, as the first one was
        assert "10.2.0.2" not in sw.front.exec("ip", "neigh")
    assert pids == [sw.pid(d) for d in ("asicd", "switchd")]
    assert "no differences" in sw.tandem("audit", "--wait", "2", timeout=60)


def test_a_fabric_without_ipv4(make, folder, routers_available):
    """BGP unnumbered: sessions by link-local addresses, IPv4 routes by way of IPv6 gateways (RFC 8950), in the chip.

        AS 65001 switch ── swp2 ── fe80:: ── eth0 r2 AS 65002, 20.0.1.0/24 and 2001:db8:1::/48 on its lo
    """
    sw = make.asic()
    h1, r2 = sw.host("h1", 1), sw.host("r2", 2)
    h1.address("10.1.0.2/24", "fd01::2/64", gateway="10.1.0.1", gateway6="fd01::1")
    sw.start()
    sw.router()
    sw.gateway(1, six=True)
    sw.ip("link set swp2 up")
    r2.ns.sysctl(ipv4__ip_forward=1, ipv6__conf__all__forwarding=1, ipv4__conf__all__rp_filter=0,
                 ipv4__conf__default__rp_filter=0, ipv4__conf__eth0__rp_filter=0)
    r2.ns.ip("addr add 20.0.1.1/24 dev lo")
    r2.ns.ip("addr add 2001:db8:1::1/48 dev lo nodad")

    def config(asn, router_id, port, v4, v6):
        lines = [f"router bgp {asn}", f" bgp router-id {router_id}", " no bgp ebgp-requires-policy",
                 " no bgp network import-check", f" neighbor {port} interface remote-as external",
                 f" neighbor {port} timers connect 1", f" neighbor {port} capability extended-nexthop",
                 " address-family ipv4 unicast", f"  network {v4}", " exit-address-family",
                 " address-family ipv6 unicast", f"  neighbor {port} activate", f"  network {v6}",
                 " exit-address-family", "!",
                 f"interface {port}", " no ipv6 nd suppress-ra", " ipv6 nd ra-interval 1", "!"]
        return "\n".join(lines) + "\n"

    ours = config(65001, "10.0.0.1", "swp2", "10.1.0.0/24", "fd01::/64")
    theirs = config(65002, "10.0.0.2", "eth0", "20.0.1.0/24", "2001:db8:1::/48")
    for ns, name, text in ((sw.ns, "switch", ours), (r2.ns, "r2", theirs)):
        at = text.rindex("interface ")
        frr.Frr(ns, folder, name).start(text[:at], text[at:], listen="::")
    net.wait_until("an IPv4 route by way of an IPv6 gateway",
                   lambda: "via inet6 fe80:" in sw.ip("route show 20.0.1.0/24"), timeout=40, every=0.3)
    net.wait_until("an IPv6 route", lambda: "via fe80:" in sw.ip("-6 route show 2001:db8:1::/48"), timeout=20,
                   every=0.3)
    net.wait_until("an answer", lambda: h1.ping("20.0.1.1") and h1.ping("2001:db8:1::1"), timeout=20)
    sw.sync()
    rows = {r["prefix"]: r["state"] for r in sw.show("routes")}
    assert rows.get("20.0.1.0/24") == rows.get("2001:db8:1::/48") == "offloaded", rows
    with TheChip(sw):
        h1.ping("20.0.1.1", count=20, interval=0.02, check=True)
        h1.ping("2001:db8:1::1", count=20, interval=0.02, check=True)
    assert "no differences" in sw.tandem("audit", "--wait", "2", timeout=60)


def test_a_kernel_without_ipv6(make):
    """`disable_ipv6` for all, or a kernel that was booted with `ipv6.disable=1` (tests/vm/test_switchd_no_ipv6.sh):
    IPv4 goes as ever, over a restart too, and nobody complains of what is not there."""
    sw = make.asic()
    sw.ns.sysctl(ipv6__conf__all__disable_ipv6=1, ipv6__conf__default__disable_ipv6=1)
    sw.route_hosts(2)
    h1, h2 = sw.hosts["h1"], sw.hosts["h2"]
    h2.address("20.0.0.1/32", "20.0.1.1/32")
    sw.ip("route add 20.0.0.1/32 via 10.2.0.2")
    sw.ip("nexthop add id 7 via 10.2.0.2 dev swp2")
    sw.ip("nexthop add id 8 group 7")
    sw.ip("route add 20.0.1.0/24 nhid 8")

    def goes():
        net.wait_until("h2 to answer", lambda: h1.ping("20.0.0.1") and h1.ping("20.0.1.1"), timeout=10 * PACE)
        sw.sync()
        with TheChip(sw):
            for target in ("10.2.0.2", "20.0.0.1", "20.0.1.1"):
                h1.ping(target, count=10, interval=0.02, check=True)
        assert "no differences" in sw.tandem("audit", "--wait", "2", timeout=60)
        prefixes = [row["prefix"] for row in sw.show("routes")]
        assert len(prefixes) == len(set(prefixes)), prefixes
        assert not [line for line in sw.log("switchd").splitlines() if " WARN " in line or " ERROR " in line]

    goes()
    sw.kill("switchd", signal.SIGTERM)
    sw.tandem("up", timeout=60 * PACE)
    goes()


def test_another_locale_and_time_zone(make):
    """Programs that read our output find the same everywhere, and so do we in what others print."""
    sw = make.asic()
    # no addresses that come by themselves, some time after their link
    sw.ns.sysctl(ipv6__conf__all__disable_ipv6=1, ipv6__conf__default__disable_ipv6=1)
    sw.route_hosts(2)
    tandem = os.path.join(binaries(), "tandem")
    shown = []
    for env in [dict[str, str](), {"LC_ALL": "tr_TR.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"},
                {"LC_ALL": "C", "TZ": ":nonsense"}]:
        words = ["env", *[f"{k}={v}" for k, v in env.items()], tandem, "--name", sw.instance]
        # routes as the kernel told of them: in another order after a restart
        shown.append([sorted(sw.ns.exec(*words, *w).splitlines()) for w in (
            ("show", "routes"), ("-j", "show", "neighbours"), ("show", "resources"), ("audit", "--wait", "2"))])
        # and a daemon that was started there
        sw.kill("switchd")
        sw.ns.exec(*words, "up", timeout=60)
        sw.sync()
    assert shown[0][0] == shown[1][0] == shown[2][0]
    for text in shown[1:]:
        assert text[2] == shown[0][2] and "no differences" in text[3][0]
    assert sw.hosts["h1"].ping("10.2.0.2")


def test_many_ports(make, tmp_path):
    """128 ports: all there, the first and the last of them forward; a restart of switchd keeps them."""
    with open(os.path.join(TOP, "profiles/spectrum-sn2700.toml"), encoding="utf-8") as f:
        text = f.read()
    text, ports = re.subn(r"(?m)^count = 32\b", "count = 128", text)
    text, macs = re.subn(r"(?m)^mac_count = \d+", "mac_count = 256", text)
    assert (ports, macs) == (1, 1), "the profile is written otherwise now"
    profile = tmp_path / "wide.toml"
    profile.write_text(text)
    sw = make.asic(profile=str(profile))
    h1 = sw.host("h1", 1).address("10.9.0.1/24")
    sw.host("h2", 128).address("10.9.0.2/24")
    began = time.monotonic()
    sw.start()
    print(f"tandem up with 128 ports: {time.monotonic() - began:.1f} s")
    sw.ip("link add br0 up type bridge")
    for i in range(1, 129):
        sw.ip(f"link set swp{i} up master br0")
    net.wait_until("h1 to reach h2", lambda: h1.ping("10.9.0.2"), timeout=20)
    sw.sync()
    assert len(sw.show("ports")) == 128
    stream = h1.ns.popen("ping", "-q", "-i", "0.02", "-c", "250", "10.9.0.2", stdout=subprocess.PIPE, text=True)
    sw.kill("switchd")
    sw.tandem("up", timeout=60)
    sw.sync()
    said = stream.communicate(timeout=30)[0]
    assert "250 received, 0% packet loss" in said, said
    assert "no differences" in sw.tandem("audit", "--wait", "5", timeout=60)


def test_without_the_tap_driver_the_error_says_what_to_do(make, tmp_path):
    sw = make.asic()
    empty = tmp_path / "net"
    empty.mkdir()
    tandem = os.path.join(binaries(), "tandem")
    up = " ".join([tandem, "--name", sw.instance, "up", "--profile", "tiny", "--timeout", "10"])
    with pytest.raises(net.CommandError) as e:
        sw.ns.exec("unshare", "-m", "sh", "-c", f"mount --bind {empty} /dev/net && exec {up}")
    assert "/dev/net/tun" in str(e.value) and "modprobe tun" in str(e.value), str(e.value)
