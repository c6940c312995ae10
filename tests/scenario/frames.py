# SPDX-License-Identifier: Apache-2.0
"""Random frames: good ones that hardware must forward by itself, odd and broken ones that only need the right answer.

Every frame that can carry one has a number in its payload, so that no two of a scenario are equal.
"""

import itertools
import struct

from lib import packet
from lib.packet import ETH_IP, ETH_IP6, ether, icmp_echo, icmpv6, ipv4, ipv6, udp
from lib.twin import tagged

BROADCAST = "ff:ff:ff:ff:ff:ff"


class Frames:
    """Makes frames; `rng` decides what is left open."""

    def __init__(self, rng):
        self.rng = rng
        self.number = itertools.count(1)
        self.ports = ()  # destination ports that most datagrams have: those that filters look at

    def payload(self, least=0):
        return b"#%06d" % next(self.number) + bytes(max(0, least - 7))

    def udp(self, dmac, smac, src, dst, sport=None, dport=None, data=None, ttl=None, size=0, **ip):
        """A datagram in a frame, either family by its addresses."""
        if dport is None and self.ports and self.rng.random() < 0.7:
            dport = self.rng.choice(self.ports)
        body = udp(src, dst, sport or self.rng.randrange(1024, 65000), dport or self.rng.randrange(1024, 65000),
                   data if data is not None else self.payload(size))
        if ":" in dst:
            return ether(dmac, smac, ETH_IP6, ipv6(src, dst, 17, body, hlim=ttl or 64))
        return ether(dmac, smac, ETH_IP, ipv4(src, dst, 17, body, ttl=64 if ttl is None else ttl, **ip))

    def tcp(self, dmac, smac, src, dst):
        sport = self.rng.randrange(1024, 65000)
        body = struct.pack("!HHIIBBHHH", sport, 80, next(self.number), 0, 0x50, 2, 1000, 0, 0) + self.payload()
        body = body[:16] + struct.pack("!H", packet.checksum(packet.pseudo(src, dst, 6, len(body)) + body)) + body[18:]
        if ":" in dst:
            return ether(dmac, smac, ETH_IP6, ipv6(src, dst, 6, body))
        return ether(dmac, smac, ETH_IP, ipv4(src, dst, 6, body))

    def ping(self, dmac, smac, src, dst, **ip):
        if ":" in dst:
            return ether(dmac, smac, ETH_IP6, ipv6(src, dst, 58, icmpv6(
                src, dst, 128, 0, struct.pack("!HH", 7, next(self.number)) + self.payload())))
        return ether(dmac, smac, ETH_IP, ipv4(src, dst, 1, icmp_echo(7, next(self.number), self.payload()), **ip))

    # ----------------------------------------------------------------------------------------- odd and broken ones

    def odd(self, dmac, smac, src, dst, own):
        """One frame towards a router, wrong or unusual in one way; its name, and it. `own`: the router's address."""
        six = ":" in dst
        kinds = ODD6 if six else ODD4
        name = self.rng.choice(kinds)
        return name, getattr(self, "odd_" + name)(dmac, smac, src, dst, own)

    def odd_ttl1(self, dmac, smac, src, dst, own):
        return self.udp(dmac, smac, src, dst, ttl=1)

    def odd_ttl2(self, dmac, smac, src, dst, own):
        return self.udp(dmac, smac, src, dst, ttl=2)

    def odd_ttl0(self, dmac, smac, src, dst, own):
        return self.udp(dmac, smac, src, dst, ttl=0)

    def odd_options(self, dmac, smac, src, dst, own):
        options = self.rng.choice([b"\x94\x04\0\0", b"\x01\x01\x01\0", b"\x07\x07\x04\0\0\0\0\0", b"\x07\x30\x04\0"])
        return self.udp(dmac, smac, src, dst, options=options)

    def odd_first_fragment(self, dmac, smac, src, dst, own):
        return self.udp(dmac, smac, src, dst, flags=0x2000, ident=9, size=33)

    def odd_last_fragment(self, dmac, smac, src, dst, own):
        return ether(dmac, smac, ETH_IP, ipv4(src, dst, 17, self.payload(32), flags=6, ident=9))

    def odd_bad_checksum(self, dmac, smac, src, dst, own):
        f = self.udp(dmac, smac, src, dst)
        return f[:24] + bytes([f[24] ^ 0x55]) + f[25:]

    def odd_bad_udp_checksum(self, dmac, smac, src, dst, own):
        f = self.udp(dmac, smac, src, dst)
        at = 60 if ":" in dst else 40
        return f[:at] + bytes([f[at] ^ 0x55]) + f[at + 1:]

    def odd_truncated(self, dmac, smac, src, dst, own):
        f = self.udp(dmac, smac, src, dst)
        at = self.rng.randrange(14, 54 if ":" in dst else 34)
        # with a tag it would have less than the 20 bytes that a host takes in (net/core/skbuff.c `skb_vlan_untag`): the
        # kernel alone hands a tag to the host beside the frame, a cable can't
        return f[:max(16, at)]

    def odd_short_length(self, dmac, smac, src, dst, own):
        """The length field says less than a header, or more than there is."""
        f = self.udp(dmac, smac, src, dst)
        at = 18 if ":" in dst else 16
        return f[:at] + struct.pack("!H", self.rng.choice([0, 7, 19, 1400, 65535])) + f[at + 2:]

    def odd_version(self, dmac, smac, src, dst, own):
        f = self.udp(dmac, smac, src, dst)
        return f[:14] + bytes([self.rng.choice([0x00, 0x44, 0x46, 0x4F, 0x55, 0x65, 0xF5])]) + f[15:]

    def odd_long_padding(self, dmac, smac, src, dst, own):
        return self.udp(dmac, smac, src, dst) + b"\xa5" * self.rng.randrange(1, 60)  # who passes it on is seen

    def odd_other_mac(self, dmac, smac, src, dst, own):
        return self.udp(self.rng.choice(["02:00:00:00:00:99", "02:00:00:00:02:0f"]), smac, src, dst)

    def odd_group_mac(self, dmac, smac, src, dst, own):
        return self.udp(self.rng.choice([BROADCAST, "01:00:5e:01:02:03", "33:33:00:00:00:01"]), smac, src, dst)

    def odd_group_source_mac(self, dmac, smac, src, dst, own):
        return self.udp(dmac, "03:00:00:00:00:01", src, dst)

    def odd_source(self, dmac, smac, src, dst, own):
        bad = ["::1", "::", "ff02::1", "::ffff:10.1.0.2", "fe80::1234"] if ":" in dst else [
            "127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "240.0.0.1", "0.1.2.3"]
        return self.udp(dmac, smac, self.rng.choice([*bad, own]), dst)

    def odd_destination(self, dmac, smac, src, dst, own):
        bad = ["::1", "::", "ff02::1", "ff05::1234", "fe80::1234"] if ":" in dst else [
            "127.0.0.1", "0.0.0.0", "255.255.255.255", "224.0.0.1", "225.1.2.3", "240.0.0.1"]
        return self.udp(dmac, smac, src, self.rng.choice(bad))

    def odd_tagged(self, dmac, smac, src, dst, own):
        return tagged(self.udp(dmac, smac, src, dst), self.rng.choice([0, 1, 7, 100, 4095]))

    def odd_two_tags(self, dmac, smac, src, dst, own):
        vids = self.rng.choice([(7, 8), (0, 8), (0, 0), (100, 0)])
        return tagged(self.udp(dmac, smac, src, dst), *vids, tpid=self.rng.choice([0x8100, 0x88A8]))

    def odd_big(self, dmac, smac, src, dst, own):
        return self.udp(dmac, smac, src, dst, size=self.rng.choice([1232, 1253, 1300, 1472]))

    def odd_big_may_fragment(self, dmac, smac, src, dst, own):
        return self.udp(dmac, smac, src, dst, size=self.rng.choice([1253, 1300, 1472]), flags=0, ident=77)

    def odd_oversize(self, dmac, smac, src, dst, own):
        return self.udp(dmac, smac, src, dst, size=self.rng.choice([1600, 2500]))

    def odd_ping_own(self, dmac, smac, src, dst, own):
        return self.ping(dmac, smac, src, own)

    def odd_ping_through(self, dmac, smac, src, dst, own):
        return self.ping(dmac, smac, src, dst)

    def odd_other_protocol(self, dmac, smac, src, dst, own):
        number = self.rng.choice([0, 2, 4, 41, 47, 50, 59, 89, 103, 112, 255])
        if ":" in dst:
            return ether(dmac, smac, ETH_IP6, ipv6(src, dst, number, self.payload(40)))
        return ether(dmac, smac, ETH_IP, ipv4(src, dst, number, self.payload(40)))

    def odd_hop_by_hop(self, dmac, smac, src, dst, own):
        body = bytes([17, 0, 1, 4, 0, 0, 0, 0]) + udp(src, dst, 1, 2, self.payload())
        return ether(dmac, smac, ETH_IP6, ipv6(src, dst, 0, body))

    def odd_routing_header(self, dmac, smac, src, dst, own):
        body = bytes([17, 2, 0, 1]) + bytes(20) + udp(src, dst, 1, 2, self.payload())
        return ether(dmac, smac, ETH_IP6, ipv6(src, dst, 43, body))

    def odd_fragment_header(self, dmac, smac, src, dst, own):
        body = bytes([17, 0, 0, 1, 0, 0, 0, 9]) + udp(src, dst, 1, 2, self.payload(32))
        return ether(dmac, smac, ETH_IP6, ipv6(src, dst, 44, body))

    def odd_nonsense(self, dmac, smac, src, dst, own):
        return ether(dmac, smac, self.rng.choice([ETH_IP, ETH_IP6, 0x88B5, 0x9000, 0x0005]),
                     self.rng.randbytes(self.rng.randrange(0, 200)))


BOTH = ["ttl1", "ttl2", "bad_udp_checksum", "truncated", "short_length", "version", "long_padding", "other_mac",
        "group_mac", "group_source_mac", "source", "destination", "tagged", "two_tags", "big", "oversize", "ping_own",
        "ping_through", "other_protocol", "nonsense"]
ODD4 = [*BOTH, "ttl0", "options", "first_fragment", "last_fragment", "bad_checksum", "big_may_fragment"]
ODD6 = [*BOTH, "hop_by_hop", "routing_header", "fragment_header"]
