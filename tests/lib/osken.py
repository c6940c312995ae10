# SPDX-License-Identifier: Apache-2.0
"""os-ken's parser of OpenFlow, as the judge of ours: random messages of a controller, and the comparison of a message
that it parsed with what ours says is in it."""

import glob
import ipaddress
import json
import os

os.environ.setdefault("OSKEN_HUB_TYPE", "native")

from os_ken.ofproto import ofproto_parser, ofproto_protocol  # noqa: E402

DATAPATHS = {v: ofproto_protocol.ProtocolDesc(version=v) for v in (1, 4)}
VLAN_NONE = 0xffff
# 1.0's fields, by the field of 1.3 that has the same meaning
TEN = {"in_port": "in_port", "eth_src": "dl_src", "eth_dst": "dl_dst", "eth_type": "dl_type", "vlan_vid": "dl_vlan",
       "vlan_pcp": "dl_vlan_pcp", "ip_dscp": "nw_tos", "ip_proto": "nw_proto", "arp_op": "nw_proto",
       "ipv4_src": "nw_src", "ipv4_dst": "nw_dst", "arp_spa": "nw_src", "arp_tpa": "nw_dst",
       "tcp_src": "tp_src", "tcp_dst": "tp_dst", "udp_src": "tp_src", "udp_dst": "tp_dst",
       "icmpv4_type": "tp_src", "icmpv4_code": "tp_dst", "icmpv6_type": "tp_src", "icmpv6_code": "tp_dst"}


def parse(data):
    """A message of a switch as os-ken understands it; None if it can't."""
    version, kind, length = data[0], data[1], int.from_bytes(data[2:4])
    return ofproto_parser.msg(DATAPATHS[version], version, kind, length, int.from_bytes(data[4:8]), data)


def number(value):
    """What os-ken shows as a number, address or bytes, as a number."""
    if isinstance(value, int):
        return value
    if isinstance(value, bytes):
        return int.from_bytes(value)
    if value.count(":") == 5 and len(value) == 17:
        return int(value.replace(":", ""), 16)
    return int(ipaddress.ip_address(value))


def match13(fields, match):
    got = {}
    for name, value in match.items():
        value, mask = value if isinstance(value, tuple) else (value, None)
        got[name] = (number(value), None if mask is None else number(mask))
    want = {name: (int(v, 16), m and int(m, 16)) for name, v, m in fields}
    return [] if got == want else [f"match: os-ken {got}, ours {want}"]


def match10(fields, match):
    """Each field of ours is one of 1.0's that is no wildcard, and all others are wildcards."""
    left = {name for name in set(TEN.values()) if name in match}
    left -= {f"nw_{end}" for end in ("src", "dst") if match[f"nw_{end}_mask"] == 0}
    out = []
    for name, value, mask in fields:
        value, mask = int(value, 16), mask and int(mask, 16)
        ten = TEN[name]
        if name == "vlan_vid" and mask == 0x1000:
            continue  # the priority of any tag
        if ten not in left:
            out.append(f"match: {name} of ours is a wildcard of os-ken's")
            continue
        left.remove(ten)
        got = number(match[ten])
        if name == "vlan_vid":
            value = VLAN_NONE if value == 0 else value & 0xfff
        elif name == "ip_dscp":
            got, value = got & 0xfc, value << 2
        elif ten in ("nw_src", "nw_dst"):
            bits = match[ten + "_mask"]
            if (mask or 0xffffffff) != (0xffffffff << (32 - bits)) & 0xffffffff:
                out.append(f"match: mask of {ten}: os-ken {bits} bits, ours {mask}")
        if got != value:
            out.append(f"match: {ten}: os-ken {got:#x}, ours {value:#x}")
    # what the packet's type does not have is not looked at (1.0 section 3.4)
    if any(name in ("eth_type",) for name, _, _ in fields) and left:
        left -= dead(match)
    return out + ([f"match: {sorted(left)} of os-ken's are wildcards of ours"] if left else [])


def dead(match):
    ether, proto = match["dl_type"], match["nw_proto"] if "nw_proto" in match else None
    out = set()
    if ether not in (0x800, 0x806):
        out |= {"nw_src", "nw_dst"}
    if ether not in (0x800, 0x86dd):
        out |= {"nw_tos"}
    if ether not in (0x800, 0x806, 0x86dd):
        out |= {"nw_proto"}
    if (ether, proto) not in {(0x800, 1), (0x86dd, 58)} | {(e, p) for e in (0x800, 0x86dd) for p in (6, 17)}:
        out |= {"tp_src", "tp_dst"}
    return out


def differences(want, got, where=""):
    """In words: where os-ken's object `got` is not what `want`, JSON of ours, says."""
    if isinstance(want, dict) and "hex" in want:
        data = b"" if got is None else bytes(got)
        return [] if data == bytes.fromhex(want["hex"]) else [f"{where}: os-ken {data.hex()}, ours {want['hex']}"]
    if isinstance(want, dict) and "wide" in want:
        return [] if number(got) == int(want["wide"], 16) else [f"{where}: os-ken {got}, ours {want['wide']}"]
    if isinstance(want, dict) and "fields" in want:
        return (match10 if hasattr(got, "wildcards") else match13)(want["fields"], got)
    if isinstance(want, dict) and "numbered" in want:
        last = {p["port_no"]: p for p in want["numbered"]}
        if sorted(last) != sorted(got):
            return [f"{where}: ports: os-ken {sorted(got)}, ours {sorted(last)}"]
        return [d for n, p in last.items() for d in differences(p, got[n], f"{where}[{n}]")]
    if isinstance(want, dict):
        out = []
        for key, value in want.items():
            if key == "cls":
                if type(got).__name__ != value:
                    out.append(f"{where}: os-ken {type(got).__name__}, ours {value}")
            elif not hasattr(got, key):
                out.append(f"{where}: os-ken's {type(got).__name__} has no {key}")
            else:
                out += differences(value, getattr(got, key), f"{where}.{key}")
        return out
    if isinstance(want, list):
        if got is None:
            got = []
        if not isinstance(got, (list, tuple)) or hasattr(got, "_fields"):
            got = [got]
        if len(want) != len(got):
            return [f"{where}: os-ken has {len(got)}, ours {len(want)}"]
        return [d for i, (w, g) in enumerate(zip(want, got)) for d in differences(w, g, f"{where}[{i}]")]
    return [] if want == got else [f"{where}: os-ken {got!r}, ours {want!r}"]


def tester(version):
    """All messages that os-ken's switch tester sends to the switch it tests, as far as its files have them."""
    import os_ken.tests.switch as switch

    def walk(node):
        if isinstance(node, list):
            for item in node:
                yield from walk(item)
        elif isinstance(node, dict):
            for key, item in node.items():
                if key in ("OFPFlowMod", "OFPGroupMod", "OFPMeterMod", "OFPPacketOut"):
                    yield ofproto_parser.ofp_msg_from_jsondict(DATAPATHS[version], {key: item})
                else:
                    yield from walk(item)

    where = os.path.join(os.path.dirname(switch.__file__), {1: "of10", 4: "of13"}[version])
    for file in sorted(glob.glob(os.path.join(where, "**", "*.json"), recursive=True)):
        with open(file, encoding="utf-8") as f:
            yield from walk(json.load(f))


class Random13:
    """Messages of a controller of 1.3, by os-ken."""

    def __init__(self, rng):
        self.rng, self.dp = rng, DATAPATHS[4]
        self.p, self.o = self.dp.ofproto_parser, self.dp.ofproto

    def bits(self, n):
        return self.rng.getrandbits(n)

    def may(self):
        return self.rng.random() < 0.4

    def some(self, n, make):
        return [make() for _ in range(self.rng.randint(0, n))]

    def data(self):
        return self.rng.randbytes(self.rng.randint(0, 90))

    def mac(self):
        return ":".join(f"{b:02x}" for b in self.rng.randbytes(6))

    def port(self):
        return self.rng.choice([self.rng.randint(1, 0xffffff00), self.o.OFPP_CONTROLLER, self.o.OFPP_LOCAL,
                                self.o.OFPP_ALL, self.o.OFPP_FLOOD, self.o.OFPP_NORMAL, self.o.OFPP_IN_PORT])

    def masked(self, n, value=None):
        value = self.bits(n) if value is None else value
        if self.rng.random() < 0.6:
            return value
        mask = self.bits(n) or 1
        return value & mask, mask

    def ip(self, n, kind):
        value = self.masked(n)
        if isinstance(value, tuple):
            return tuple(str(kind(v)) for v in value)
        return str(kind(value))

    def wide_mac(self):
        value = self.masked(48)
        text = [":".join(f"{b:02x}" for b in v.to_bytes(6)) for v in (value if isinstance(value, tuple) else [value])]
        return tuple(text) if len(text) == 2 else text[0]

    def match(self):
        rng, f = self.rng, {}
        if self.may():
            f["in_port"] = rng.randint(1, 0xffffff00)
            if self.may():
                f["in_phy_port"] = self.bits(32)
        for name, make in [("metadata", lambda: self.masked(64)), ("tunnel_id", lambda: self.masked(64)),
                           ("eth_dst", self.wide_mac), ("eth_src", self.wide_mac)]:
            if self.may():
                f[name] = make()
        if self.may():
            f["vlan_vid"] = rng.choice([0, 0x1000 | self.bits(12), (0x1000, 0x1000), (0x1000 | self.bits(4), 0x100f)])
            if f["vlan_vid"] != 0 and self.may():
                f["vlan_pcp"] = self.bits(3)
        ether = rng.choice([None, 0x800, 0x86dd, 0x806, 0x8847, 0x8848, 0x88e7, self.bits(16)])
        if ether is not None:
            f["eth_type"] = ether
        v4, v6 = ipaddress.IPv4Address, ipaddress.IPv6Address
        fields = {
            0x800: [("ipv4_src", lambda: self.ip(32, v4)), ("ipv4_dst", lambda: self.ip(32, v4))],
            0x86dd: [("ipv6_src", lambda: self.ip(128, v6)), ("ipv6_dst", lambda: self.ip(128, v6)),
                     ("ipv6_flabel", lambda: self.masked(20)), ("ipv6_exthdr", lambda: self.masked(9))],
            0x806: [("arp_op", lambda: self.bits(16)), ("arp_spa", lambda: self.ip(32, v4)),
                    ("arp_tpa", lambda: self.ip(32, v4)), ("arp_sha", self.wide_mac), ("arp_tha", self.wide_mac)],
            0x8847: [("mpls_label", lambda: self.bits(20)), ("mpls_tc", lambda: self.bits(3)),
                     ("mpls_bos", lambda: self.bits(1))],
            0x88e7: [("pbb_isid", lambda: self.masked(24))],
        }
        fields[0x8848] = fields[0x8847]
        if ether in (0x800, 0x86dd):
            fields[ether] += [("ip_dscp", lambda: self.bits(6)), ("ip_ecn", lambda: self.bits(2))]
            proto = rng.choice([None, 1, 6, 17, 58, 132, self.bits(8)])
            if proto is not None:
                f["ip_proto"] = proto
            l4 = {6: ["tcp_src", "tcp_dst"], 17: ["udp_src", "udp_dst"], 132: ["sctp_src", "sctp_dst"]}.get(proto, [])
            fields[ether] += [(name, lambda: self.bits(16)) for name in l4]
            icmp = {(0x800, 1): "icmpv4", (0x86dd, 58): "icmpv6"}.get((ether, proto))
            if icmp:
                fields[ether] += [(icmp + "_code", lambda: self.bits(8))]
                f[icmp + "_type"] = rng.choice([135, 136, self.bits(8)])
                if icmp == "icmpv6" and f["icmpv6_type"] in (135, 136):
                    ll = {135: "ipv6_nd_sll", 136: "ipv6_nd_tll"}[f["icmpv6_type"]]
                    fields[ether] += [("ipv6_nd_target", lambda: str(v6(self.bits(128)))), (ll, self.mac)]
        for name, make in fields.get(ether, []):
            if self.may():
                f[name] = make()
        return self.p.OFPMatch(**f)

    def action(self):
        p, rng = self.p, self.rng
        setting = [("eth_dst", self.mac), ("eth_src", self.mac), ("eth_type", lambda: self.bits(16)),
                   ("vlan_vid", lambda: 0x1000 | self.bits(12)), ("vlan_pcp", lambda: self.bits(3)),
                   ("ip_dscp", lambda: self.bits(6)), ("ip_proto", lambda: self.bits(8)),
                   ("ipv4_src", lambda: str(ipaddress.IPv4Address(self.bits(32)))), ("tcp_dst", lambda: self.bits(16)),
                   ("ipv6_dst", lambda: str(ipaddress.IPv6Address(self.bits(128)))),
                   ("ipv6_flabel", lambda: self.bits(20)), ("arp_sha", self.mac), ("mpls_label", lambda: self.bits(20)),
                   ("mpls_bos", lambda: self.bits(1)), ("pbb_isid", lambda: self.bits(24)),
                   ("tunnel_id", lambda: self.bits(64)), ("icmpv6_code", lambda: self.bits(8))]
        name, value = rng.choice(setting)
        return rng.choice([
            lambda: p.OFPActionOutput(self.port(), self.bits(16)), p.OFPActionCopyTtlOut, p.OFPActionCopyTtlIn,
            lambda: p.OFPActionSetMplsTtl(self.bits(8)), p.OFPActionDecMplsTtl,
            lambda: p.OFPActionPushVlan(rng.choice([0x8100, 0x88a8])), p.OFPActionPopVlan,
            lambda: p.OFPActionPushMpls(rng.choice([0x8847, 0x8848])), lambda: p.OFPActionPopMpls(self.bits(16)),
            lambda: p.OFPActionSetQueue(self.bits(32)), lambda: p.OFPActionGroup(rng.randint(0, 0xffffff00)),
            lambda: p.OFPActionSetNwTtl(self.bits(8)), p.OFPActionDecNwTtl, lambda: p.OFPActionPushPbb(0x88e7),
            p.OFPActionPopPbb, lambda: p.OFPActionSetField(**{name: value()})])()

    def instructions(self):
        """In the order in which they are carried out: so ours are."""
        p, o, out = self.p, self.o, []
        if self.may():
            out.append(p.OFPInstructionMeter(self.bits(32)))
        if self.may():
            out.append(p.OFPInstructionActions(o.OFPIT_APPLY_ACTIONS, self.some(5, self.action)))
        if self.may():
            out.append(p.OFPInstructionActions(o.OFPIT_CLEAR_ACTIONS, []))
        if self.may():
            out.append(p.OFPInstructionActions(o.OFPIT_WRITE_ACTIONS, self.some(5, self.action)))
        if self.may():
            out.append(p.OFPInstructionWriteMetadata(self.bits(64), self.bits(64)))
        if self.may():
            out.append(p.OFPInstructionGotoTable(self.bits(8)))
        return out

    def bucket(self):
        return self.p.OFPBucket(self.bits(16), self.bits(32), self.bits(32), self.some(4, self.action))

    def band(self):
        if self.bits(1):
            return self.p.OFPMeterBandDrop(self.bits(32), self.bits(32))
        return self.p.OFPMeterBandDscpRemark(self.bits(32), self.bits(32), self.bits(8))

    def table(self):
        p, rng, props = self.p, self.rng, []
        names = ["in_port", "eth_dst", "vlan_vid", "ipv6_exthdr", "tunnel_id", "pbb_isid", "ipv4_src", "icmpv6_type"]
        for kind in sorted(rng.sample([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 13, 14, 15], rng.randint(0, 14))):
            if kind < 2:
                ids = [p.OFPInstructionId(n) for n in self.some(6, lambda: rng.randint(1, 6))]
                props.append(p.OFPTableFeaturePropInstructions(kind, None, ids))
            elif kind < 4:
                props.append(p.OFPTableFeaturePropNextTables(kind, None, self.some(30, lambda: self.bits(8))))
            elif kind < 8:
                ids = [p.OFPActionId(n) for n in self.some(6, lambda: rng.choice([0, 11, 15, 17, 25, 27]))]
                props.append(p.OFPTableFeaturePropActions(kind, None, ids))
            else:
                ids = self.some(9, lambda: p.OFPOxmId(rng.choice(names), bool(self.bits(1))))
                props.append(p.OFPTableFeaturePropOxm(kind, None, ids))
        name = bytes(rng.choices(b"abcdefgh", k=rng.randint(0, 31)))
        return p.OFPTableFeaturesStats(table_id=self.bits(8), name=name, metadata_match=self.bits(64),
                                       metadata_write=self.bits(64), config=self.bits(32), max_entries=self.bits(32),
                                       properties=props)

    def filter(self):
        return (0, self.bits(8), self.port(), self.bits(32), self.bits(64), self.bits(64), self.match())

    def message(self):
        p, rng, dp = self.p, self.rng, self.dp
        return rng.choice([
            # os-ken sends no elements
            lambda: p.OFPHello(dp),
            lambda: p.OFPEchoRequest(dp, self.data()),
            lambda: p.OFPExperimenter(dp, self.bits(32), self.bits(32), self.data()),
            lambda: p.OFPFeaturesRequest(dp), lambda: p.OFPGetConfigRequest(dp),
            lambda: p.OFPSetConfig(dp, rng.randint(0, 2), self.bits(16)),
            # without an action os-ken writes over the first bytes of the data
            lambda: p.OFPPacketOut(dp, 0xffffffff, self.port_in(), [self.action(), *self.some(4, self.action)],
                                   self.data()),
            lambda: p.OFPPacketOut(dp, self.bits(31), self.port_in(), self.some(5, self.action)),
            *[lambda: p.OFPFlowMod(dp, self.bits(64), self.bits(64), rng.randint(0, 254), rng.randint(0, 4),
                                   self.bits(16), self.bits(16), self.bits(16), self.bits(32), self.port(),
                                   self.bits(32), self.bits(5), self.match(), self.instructions())] * 6,
            lambda: p.OFPGroupMod(dp, rng.randint(0, 2), rng.randint(0, 3), rng.randint(0, 0xffffff00),
                                  self.some(4, self.bucket)),
            lambda: p.OFPPortMod(dp, self.bits(32), self.mac(), self.bits(32), self.bits(32) & 0x65, self.bits(16)),
            lambda: p.OFPTableMod(dp, self.bits(8), self.bits(2)),
            lambda: p.OFPMeterMod(dp, rng.randint(0, 1), rng.choice([1, 2, 5, 14]), rng.randint(1, 0xffff0000),
                                  self.some(4, self.band)),
            lambda: p.OFPDescStatsRequest(dp, 0), lambda: p.OFPFlowStatsRequest(dp, *self.filter()),
            lambda: p.OFPAggregateStatsRequest(dp, *self.filter()), lambda: p.OFPTableStatsRequest(dp, 0),
            lambda: p.OFPPortStatsRequest(dp, 0, self.bits(32)),
            lambda: p.OFPQueueStatsRequest(dp, 0, self.bits(32), self.bits(32)),
            lambda: p.OFPGroupStatsRequest(dp, 0, self.bits(32)), lambda: p.OFPGroupDescStatsRequest(dp, 0),
            lambda: p.OFPGroupFeaturesStatsRequest(dp, 0), lambda: p.OFPMeterStatsRequest(dp, 0, self.bits(32)),
            lambda: p.OFPMeterConfigStatsRequest(dp, 0, self.bits(32)), lambda: p.OFPMeterFeaturesStatsRequest(dp, 0),
            lambda: p.OFPTableFeaturesStatsRequest(dp, self.bits(1), self.some(3, self.table)),
            lambda: p.OFPPortDescStatsRequest(dp, 0),
            lambda: p.OFPExperimenterStatsRequest(dp, 0, self.bits(32), self.bits(32), self.data()),
            lambda: p.OFPBarrierRequest(dp), lambda: p.OFPQueueGetConfigRequest(dp, self.port()),
            lambda: p.OFPRoleRequest(dp, rng.randint(0, 3), self.bits(64)), lambda: p.OFPGetAsyncRequest(dp),
            lambda: p.OFPSetAsync(dp, *[[self.bits(32), self.bits(32)] for _ in range(3)])])()

    def port_in(self):
        return self.rng.choice([self.rng.randint(1, 0xffffff00), self.o.OFPP_CONTROLLER, self.o.OFPP_ANY])


class Random10(Random13):
    """Messages of a controller of 1.0, by os-ken."""

    def __init__(self, rng):
        self.rng, self.dp = rng, DATAPATHS[1]
        self.p, self.o = self.dp.ofproto_parser, self.dp.ofproto

    def port(self):
        return self.rng.choice([self.rng.randint(1, 0xff00), self.o.OFPP_CONTROLLER, self.o.OFPP_LOCAL, self.o.OFPP_ALL,
                                self.o.OFPP_FLOOD, self.o.OFPP_NORMAL, self.o.OFPP_IN_PORT])

    def port_in(self):
        return self.rng.choice([self.rng.randint(1, 0xff00), self.o.OFPP_CONTROLLER, self.o.OFPP_NONE])

    def match(self):
        rng, f = self.rng, {}
        every = rng.random() < 0.1
        for name, make in [("in_port", lambda: rng.randint(1, 0xff00)), ("dl_src", lambda: rng.randbytes(6)),
                           ("dl_dst", lambda: rng.randbytes(6)), ("dl_vlan", lambda: self.bits(12))]:
            if every or self.may():
                f[name] = make()
        if not every and self.may():
            f["dl_vlan"] = VLAN_NONE
        if f.get("dl_vlan") != VLAN_NONE and (every or self.may()):
            f["dl_vlan_pcp"] = self.bits(3)
        ether = 0x800 if every else rng.choice([None, 0x800, 0x806, 0x86dd, 0x5ff])
        if ether is not None:
            f["dl_type"] = ether
        if ether in (0x800, 0x806):
            for end in ("src", "dst"):
                if every or self.may():
                    bits = 32 if every else rng.randint(1, 32)
                    f["nw_" + end] = self.bits(32) & (0xffffffff << (32 - bits)) & 0xffffffff
                    f[f"nw_{end}_mask"] = bits
        if ether in (0x800, 0x806, 0x86dd) and (every or self.may()):
            f["nw_proto"] = 6 if every else rng.choice([1, 6, 17, 58, self.bits(8)])
        if ether in (0x800, 0x86dd):
            if every or self.may():
                f["nw_tos"] = self.bits(6) << 2
            icmp = {0x800: 1, 0x86dd: 58}[ether]
            if f.get("nw_proto") in (icmp, 6, 17):
                width = 8 if f["nw_proto"] == icmp else 16
                for name in ("tp_src", "tp_dst"):
                    if every or self.may():
                        f[name] = self.bits(width)
        return self.p.OFPMatch(**f)

    def action(self):
        p = self.p
        return self.rng.choice([
            lambda: p.OFPActionOutput(self.port(), self.bits(16)), lambda: p.OFPActionVlanVid(self.bits(12)),
            lambda: p.OFPActionVlanPcp(self.bits(3)), p.OFPActionStripVlan, lambda: p.OFPActionSetDlSrc(self.mac()),
            lambda: p.OFPActionSetDlDst(self.mac()), lambda: p.OFPActionSetNwSrc(self.bits(32)),
            lambda: p.OFPActionSetNwDst(self.bits(32)), lambda: p.OFPActionSetNwTos(self.bits(6) << 2),
            lambda: p.OFPActionSetTpSrc(self.bits(16)), lambda: p.OFPActionSetTpDst(self.bits(16)),
            lambda: p.OFPActionEnqueue(self.rng.choice([self.rng.randint(1, 0xff00), self.o.OFPP_IN_PORT]),
                                       self.bits(32))])()

    def vendor(self):
        m = self.p.OFPVendor(self.dp)
        m.vendor, m.data = self.bits(32), self.data()
        return m

    def message(self):
        p, rng, dp = self.p, self.rng, self.dp
        return rng.choice([
            lambda: p.OFPHello(dp), lambda: p.OFPEchoRequest(dp, self.data()), self.vendor,
            lambda: p.OFPFeaturesRequest(dp), lambda: p.OFPGetConfigRequest(dp),
            lambda: p.OFPSetConfig(dp, rng.randint(0, 2), self.bits(16)),
            # without an action os-ken writes over the first bytes of the data
            lambda: p.OFPPacketOut(dp, 0xffffffff, self.port_in(), [self.action(), *self.some(4, self.action)],
                                   self.data()),
            lambda: p.OFPPacketOut(dp, self.bits(31), self.port_in(), self.some(5, self.action)),
            *[lambda: p.OFPFlowMod(dp, self.match(), self.bits(64), rng.randint(0, 4), self.bits(16), self.bits(16),
                                   self.bits(16), self.bits(32), self.port(), self.bits(2),
                                   self.some(5, self.action))] * 6,
            lambda: p.OFPPortMod(dp, self.port(), self.mac(), self.bits(7), self.bits(7), self.bits(12)),
            lambda: p.OFPDescStatsRequest(dp, 0),
            lambda: p.OFPFlowStatsRequest(dp, 0, self.match(), self.bits(8), self.port()),
            lambda: p.OFPAggregateStatsRequest(dp, 0, self.match(), self.bits(8), self.port()),
            lambda: p.OFPTableStatsRequest(dp, 0), lambda: p.OFPPortStatsRequest(dp, 0, self.port()),
            lambda: p.OFPQueueStatsRequest(dp, 0, rng.randint(1, 0xff00), self.bits(32)),
            lambda: p.OFPBarrierRequest(dp), lambda: p.OFPQueueGetConfigRequest(dp, self.port())])()
