# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test on VRFs, routes that lead nowhere, and policy rules. Needs a kernel with VRFs: the lab's
machine has them (tests/vm/e2e), a build machine may not.

    red      h1 10.1.0.2 ── swp1 10.1.0.1 ─┐            default  h3 10.1.0.2 ── swp3 10.1.0.1 ─┐
             h2 10.2.0.2 ── swp2 10.2.0.1 ─┴─ table 10           h4 10.4.0.2 ── swp4 10.4.0.1 ─┴─ table main

The same with IPv6: 10.9.1.2 is fd09:1::2 there.
"""

import functools
import re

import pytest

from lib import net
from lib.packet import udp4_frame, udp6_frame
from lib.twin import MAC, Step, both

H = MAC
LOCAL_BEHIND = [("-4", "rule", "add", "pref", "32765", "table", "local"), ("-4", "rule", "del", "pref", "0"),
                ("-6", "rule", "add", "pref", "32765", "table", "local"), ("-6", "rule", "del", "pref", "0")]


@pytest.fixture(autouse=True)
def kernel_has_vrfs():
    if not net.kernel_makes("vrf", "table", "4242"):
        pytest.skip("needs a kernel with VRFs")


def in_family(six, text):
    """The text with its IPv4 addresses and prefixes, or the IPv6 ones that stand for them."""
    def address(m):
        plen = f"/{2 * int(m[4]) - 16}" if m[4] else ""
        return f"fd{int(m[1]):02}:{m[2]}::{m[3]}{plen}"
    return re.sub(r"\b10\.(\d+)\.(\d+)\.(\d+)(?:/(\d+))?", address, text) if six else text


def lines(sw, six, *words):
    """`ip LINE`, all in one process."""
    sw.ns.ip_batch([in_family(six, line) for line in words], family="-6" if six else "-4")


def neighbour(address, host, port):
    return f"neigh replace {address} lladdr {H[host]} dev swp{port} nud permanent"


def vrfs(six, sw):
    sw.router()
    for words in LOCAL_BEHIND:
        net.run("ip", words[0], "-n", sw.ns.name, *words[1:])
    for p in range(1, 5):
        # addresses stay while a port moves between VRFs, for which the kernel takes it down and up
        sw.ns.sysctl(**{f"ipv6__conf__swp{p}__{key}": value for key, value in (
            ("disable_ipv6", int(not six)), ("keep_addr_on_down", 1), ("accept_dad", 0))})
    nodad = "nodad" if six else ""
    lines(sw, six, "link add red type vrf table 10", "link set red up", "link set swp1 master red",
          "link set swp2 master red",
          *(f"link set swp{p} up" for p in range(1, 5)),
          *(f"addr add 10.{n}.0.1/24 dev swp{p} {nodad}" for p, n in ((1, 1), (2, 2), (3, 1), (4, 4))),
          neighbour("10.1.0.2", "h1", 1), neighbour("10.2.0.2", "h2", 2),
          neighbour("10.1.0.2", "h3", 3), neighbour("10.4.0.2", "h4", 4),
          "route add 10.9.0.0/16 via 10.2.0.2 vrf red", "route add 10.9.0.0/16 via 10.4.0.2",
          "route add unreachable default metric 4278198272 vrf red",
          "route add blackhole 10.60.0.0/16", "route add unreachable 10.61.0.0/16", "route add prohibit 10.62.0.0/16",
          "route add throw 10.63.0.0/16", "route add blackhole 10.60.0.0/16 vrf red")


def vrf_steps(six, macs):
    def to(host, dst, src="10.1.0.2"):
        frame = udp6_frame if six else udp4_frame
        return (host, frame(macs[int(host[1])], H[host], in_family(six, src), in_family(six, dst), data=b"vrf"))

    def moved(sw):
        lines(sw, six, "link set swp4 master red", neighbour("10.4.0.2", "h4", 4),
              "route add 10.44.0.0/16 via 10.4.0.2 vrf red")

    def back(sw):
        lines(sw, six, "link set swp4 nomaster", neighbour("10.4.0.2", "h4", 4),
              "route replace 10.9.0.0/16 via 10.4.0.2")

    def gone(sw):
        lines(sw, six, "link del red", neighbour("10.2.0.2", "h2", 2), "route add 10.22.0.0/16 via 10.2.0.2")

    return [
        Step("the VRF's route", frames=[to("h1", "10.9.1.1")], fits=True, expect={"h2": 1}),
        Step("the default VRF's route, equal prefix", frames=[to("h3", "10.9.1.1")], fits=True, expect={"h4": 1}),
        Step("hosts of equal address", frames=[to("h2", "10.1.0.2", "10.2.0.2"), to("h4", "10.1.0.2", "10.4.0.2")],
             fits=True, expect={"h1": 1, "h3": 1}),
        Step("a route that the other VRF alone has", frames=[to("h1", "10.4.0.2")], expect={"h1": 1}),
        Step("blackhole in both", frames=[to("h1", "10.60.0.1"), to("h3", "10.60.0.1")], fits=True, expect={}),
        Step("unreachable: an answer", frames=[to("h3", "10.61.0.1")], expect={"h3": 1}),
        Step("prohibit: an answer", frames=[to("h3", "10.62.0.1")], expect={"h3": 1}),
        Step("throw: the next table has nothing", frames=[to("h3", "10.63.0.1")], expect={"h3": 1}),
        Step("a port moves into the VRF", do=moved, frames=[to("h1", "10.44.0.1"), to("h4", "10.9.1.1", "10.4.0.2")],
             fits=True, expect={"h2": 1, "h4": 1}),
        Step("and out", do=back, frames=[to("h3", "10.9.1.1"), to("h4", "10.1.0.2", "10.4.0.2")], fits=True,
             expect={"h3": 1, "h4": 1}),
        Step("a policy rule: the kernel's",
             do=lambda sw: lines(sw, six, "rule add pref 500 from 10.1.0.0/24 iif swp3 table 99",
                                 "route add blackhole 10.9.0.0/16 table 99"),
             frames=[to("h3", "10.9.1.1"), to("h4", "10.1.0.2", "10.4.0.2")], expect={"h3": 1}),
        Step("gone again", do=lambda sw: lines(sw, six, "rule del pref 500"), frames=[to("h3", "10.9.1.1")], fits=True,
             expect={"h4": 1}),
        Step("the VRF is down: the kernel's", do=lambda sw: lines(sw, six, "link set red down"),
             frames=[to("h1", "10.9.1.1")]),
        Step("the VRF goes: its ports are in the default one", do=gone, frames=[to("h3", "10.22.0.1")], fits=True,
             expect={"h2": 1}),
    ]


@pytest.mark.parametrize("six", [False, True], ids=["ipv4", "ipv6"])
def test_vrf_twin(make, six):
    wrong, asic = both(make, functools.partial(vrfs, six), functools.partial(vrf_steps, six))
    assert not wrong, "\n".join(wrong)
    answer = asic.api("switchd", "POST", "/v1/audit", {"wait_s": 5.0}, timeout=60)
    assert not answer["items"], answer["items"]
