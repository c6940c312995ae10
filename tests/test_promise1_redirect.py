# SPDX-License-Identifier: Apache-2.0
"""Promise 1: a packet that leaves by the interface it came in by. The chip forwards it and shows the kernel, which
tells the sender of the shorter way and forwards nothing itself.

    h1 ── swp1 ─┬─ br0, the router ─── 20.0.0.0/8 via h2
    h2 ── swp2 ─┘
"""

import struct

import pytest

from lib import net, packet

COUNT = 5000  # far more than the CPU takes at once
VOLLEY = 250  # sent before those of before have come: fewer than any queue on the way holds
H1, H2, ROUTER = "02:00:00:00:00:11", "02:00:00:00:00:22", "02:00:00:00:02:00"


def configure(sw):
    sw.router()
    sw.ns.sysctl(ipv4__conf__all__send_redirects=1, ipv4__conf__default__send_redirects=1)
    sw.ip("link add br0 address", ROUTER, "type bridge")
    for i in (1, 2):
        sw.ip(f"link set swp{i} master br0")
        sw.ip(f"link set swp{i} up")
    sw.ip("link set br0 up")
    sw.ip("addr add 10.1.0.254/24 dev br0")
    sw.ip("addr add fd01::fe/64 dev br0 nodad")
    # a redirect comes from, and names, link-local addresses (RFC 4861 4.5)
    sw.ip("addr add fe80::fe/64 dev br0 nodad")
    for host, mac in ((1, H1), (2, H2)):
        for address in (f"10.1.0.{host}", f"fd01::{host}", f"fe80::{host}"):
            sw.ip("neigh replace", address, "lladdr", mac, "dev br0 nud permanent")
    sw.ip("route add 20.0.0.0/8 via 10.1.0.2")
    sw.ip("route add fd20::/16 via fe80::2 dev br0")
    sw.sync()


def probe(six, n):
    data = n.to_bytes(4, "big")
    if six:
        return packet.udp6_frame(ROUTER, H1, "fd01::1", "fd20::1", 1000, 2000, data)
    return packet.udp4_frame(ROUTER, H1, "10.1.0.1", "20.0.0.1", 1000, 2000, data)


def number(six, frame):
    """Which probe this is, one hop later; or None."""
    if frame[:6] != packet.mac(H2) or packet.ethertype(frame) != (packet.ETH_IP6 if six else packet.ETH_IP):
        return None
    protocol, ttl, at = (frame[20], frame[21], 62) if six else (frame[23], frame[22], 42)
    return struct.unpack_from("!I", frame, at)[0] if (protocol, ttl) == (17, 63) else None


def redirected(six, frame):
    """The better way that a redirect names (RFC 792, RFC 4861 4.5); or None."""
    if six and packet.ethertype(frame) == packet.ETH_IP6 and frame[20] == 58 and frame[54] == 137:
        return frame[62:78]
    if not six and packet.is_ip4(frame, 1) and frame[34] == 5:
        return frame[38:42]
    return None


@pytest.mark.parametrize("six", [False, True], ids=["ipv4", "ipv6"])
def test_back_where_it_came_from(make, six):
    """All arrive, once; and the same redirect comes as from the kernel alone."""
    better = {}
    for sw, count in ((make.kernel(), 50), (make.asic(profile="tiny"), COUNT)):
        h1, h2 = sw.host("h1", 1, H1), sw.host("h2", 2, H2)
        for h in (h1, h2):
            h.ns.sysctl(ipv6__conf__all__disable_ipv6=1)
        sw.start()
        configure(sw)
        with packet.Wire(h1.ns) as w1, packet.Wire(h2.ns) as w2:
            # where h2 is
            w2.send(packet.ether("ff:ff:ff:ff:ff:ff", H2, packet.ETH_ARP, packet.arp(
                1, H2, "10.1.0.2", "00:00:00:00:00:00", "10.1.0.77")))
            net.wait_until("the switch to know h2", lambda sw=sw: H2 in sw.ns.bridge("fdb show br br0"))
            sw.sync()
            before = sw.ports()["swp1"]["counters"]["detail"]["l3_forwarded"] if sw.has_asic else 0

            def came(w2=w2):
                return [n for n in (number(six, f) for f in w2.caught()) if n is not None]

            for first in range(0, count, VOLLEY):
                some = range(first, min(first + VOLLEY, count))
                for n in some:
                    w1.send(probe(six, n))
                try:
                    net.wait_until("all to be there", lambda some=some: len(came()) >= some.stop, timeout=10)
                except TimeoutError:
                    break
            got = came()
            assert sorted(got) == list(range(count)), \
                f"{len(set(got))} of {count} came, {len(got) - len(set(got))} twice"
            better[sw.has_asic] = {bytes(r) for r in (redirected(six, f) for f in w1.caught()) if r is not None}
            if sw.has_asic:
                forwarded = sw.ports()["swp1"]["counters"]["detail"]["l3_forwarded"] - before
                assert forwarded == count, f"the chip forwarded {forwarded} of {count}"
    assert better[False] and better[True] == better[False], better
