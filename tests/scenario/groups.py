# SPDX-License-Identifier: Apache-2.0
"""Multicast groups in bridges that snoop: who joins and leaves, queriers, router ports, and what is sent to a group.

A bridge believes in a querier, and lets go of a member that left, some time later: a volley or step after which it does
has a pause, longer than these times are set to be."""

import ipaddress
import struct

from lib.packet import ETH_IP, ETH_IP6, checksum, ether, icmpv6, ipv4, ipv6
from lib.twin import MAC

from .volleys import with_tag

# The third one has the first one's MAC address
GROUPS4 = ("225.1.2.3", "225.1.2.4", "226.129.2.3", "239.255.0.1")
GROUPS6 = ("ff05::1234", "ff05::1235", "ff15::1:1234")
# A query is believed in after 0.1 s, a member that left is gone after 2 x 0.1 s
TIMES = " mcast_query_response_interval 10 mcast_last_member_interval 10 mcast_startup_query_interval 100"
PAUSE = 0.5
ROUTER_ALERT = b"\x94\x04\0\0"


class Groups:
    """Part of the maker."""

    def snooping_options(self):
        """Of a new bridge."""
        if not self.snoops:
            return "mcast_snooping 0"
        return f"mcast_snooping 1{TIMES} mcast_igmp_version {self.rng.choice([2, 3])}"

    def snooping_begins(self, bridge):
        """A querier of its own, most of the time. It goes by the times that were set before."""
        if not self.snoops:
            return []
        return [f"ip link set {bridge} type bridge mcast_querier {int(self.chance(0.6))}", f"pause {PAUSE}"]

    def churn_group(self):
        br, members = self.rng.choice(list(self.bridges.items()))
        port = self.rng.choice(members)
        draw = self.rng.random()
        if draw < 0.4:
            group = self.rng.choice([*GROUPS4, *GROUPS6, "01:00:00:01:02:03"])
            vid = f" vid {self.any_vid(br, port)}" if br in self.vlans else ""
            kind = " permanent" if ":" in group and "::" not in group else f" {self.rng.choice(['permanent', 'temp'])}"
            return [f"bridge mdb {self.rng.choice(['add', 'add', 'del'])} dev {br} port {port} grp {group}"
                    + (kind if self.chance(0.9) else "") + vid]
        if draw < 0.6:
            return [f"bridge link set dev {port} mcast_router {self.rng.choice([0, 1, 1, 2])}"]
        if draw < 0.7:
            return [f"bridge link set dev {port} fastleave {self.rng.choice(['on', 'off'])}"]
        if draw < 0.85:
            return [f"ip link set {br} type bridge mcast_querier {self.rng.choice([0, 1, 1])}", f"pause {PAUSE}"]
        if draw < 0.95:
            return [f"ip link set {br} type bridge mcast_snooping {self.rng.choice([0, 1, 1])}", f"pause {PAUSE}"]
        return [f"bridge link set dev {port} mcast_to_unicast {self.rng.choice(['on', 'off'])}"]

    def volley_member(self):
        """One host joins or leaves, or asks who is there."""
        h, vids = self.l2_place()
        draw = self.rng.random()
        if draw < 0.15:
            group, name, frame = None, "asks", (query4 if self.chance(0.5) else query6)(h)
        else:
            group = self.rng.choice([*GROUPS4, *GROUPS6])
            joins = draw < 0.7
            frame = (member6 if ":" in group else member4)(h, group, joins)
            name = ("joins " if joins else "leaves ") + group
        vid = self.any_tag(vids)
        return {"from": h, "kind": "odd", "say": f"{h} {name}" + (f" ({vid})" if vid is not None else ""),
                "frames": [with_tag(frame, vid).hex()], "pause": PAUSE}

    def volley_group(self):
        """To groups."""
        h, vids = self.l2_place()
        frames, say = [], []
        for _ in range(self.rng.randrange(1, 5)):
            group = self.rng.choice([*GROUPS4, *GROUPS6, "224.0.0.251", "ff02::fb"])
            source = f"fe80::{h[1:]}" if ":" in group else f"192.0.2.{h[1:]}"
            vid = self.any_tag(vids)
            frames.append(with_tag(self.frames.udp(group_mac(group), MAC[h], source, group), vid).hex())
            say.append(group + (f" ({vid})" if vid is not None else ""))
        return {"from": h, "kind": "good", "say": f"bridged to {' '.join(say)}", "frames": frames}


def group_mac(group):
    """RFC 1112 6.4, RFC 2464 7."""
    raw = ipaddress.ip_address(group).packed
    raw = b"\x33\x33" + raw[-4:] if len(raw) == 16 else bytes([1, 0, 0x5E, raw[1] & 0x7F]) + raw[2:]
    return ":".join(f"{b:02x}" for b in raw)


def igmp(h, kind, group, dst, code=0):
    """IGMPv2 (RFC 2236)."""
    body = struct.pack("!BBH4s", kind, code, 0, ipaddress.ip_address(group).packed)
    body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
    return ether(group_mac(dst), MAC[h], ETH_IP, ipv4(f"192.0.2.{h[1:]}", dst, 2, body, ttl=1, options=ROUTER_ALERT))


def mld(h, kind, group, dst, delay=0):
    """MLDv1 (RFC 2710), with the router alert option."""
    src = f"fe80::{h[1:]}"
    body = icmpv6(src, dst, kind, 0, struct.pack("!HH", delay, 0) + ipaddress.IPv6Address(group).packed)
    return ether(group_mac(dst), MAC[h], ETH_IP6, ipv6(src, dst, 0, bytes([58, 0, 5, 2, 0, 0, 1, 0]) + body, hlim=1))


def member4(h, group, joins):
    return igmp(h, 0x16, group, group) if joins else igmp(h, 0x17, group, "224.0.0.2")


def member6(h, group, joins):
    return mld(h, 131, group, group) if joins else mld(h, 132, group, "ff02::2")


def query4(h):
    """By a querier whose hosts answer within 0.1 s."""
    return igmp(h, 0x11, "0.0.0.0", "224.0.0.1", code=1)


def query6(h):
    return mld(h, 130, "::", "ff02::1", delay=100)
