# SPDX-License-Identifier: Apache-2.0
"""Promise 1, the twin test on filters of traffic control at ports: flower and matchall, what the chip has of them and
what it has not. Needs a kernel with flower: the lab's machine has it (tests/vm/e2e), a build machine may not.

    h1 ── swp1 ─┐      ingress: what comes in by a port, before the bridge
    h2 ── swp2 ─┼─ br0
    h3 ── swp3 ─┤      egress: what leaves by it, as it leaves
    h4 ── swp4 ─┘
"""

import pytest

from lib import net, twin
from lib.packet import ETH_IP, ether, icmp_echo, ipv4, udp, udp6_frame
from lib.twin import MAC, NOBODY, Step, both, data, tagged

BROADCAST = "ff:ff:ff:ff:ff:ff"
H = MAC


@pytest.fixture(autouse=True)
def kernel_has_flower():
    if not net.kernel_does(
        "ip link add probe type bridge",
        "tc qdisc add dev probe clsact",
        "tc filter add dev probe ingress pref 10 protocol ip flower ip_proto udp action mirred egress redirect dev lo",
    ):
        pytest.skip("needs a kernel with flower and mirred")


def tc(sw, *lines):
    for line in lines:
        sw.ns.exec("tc", *line.split())


def add(*lines):
    return lambda sw: tc(sw, *(f"filter add dev {x}" for x in lines))


def flush(*hooks):
    """All filters of the user's, by preference: those of switchd stay."""
    return lambda sw: tc(sw, *(f"filter del dev {h} pref {p}" for h, *prefs in hooks for p in prefs))


def bridged(sw):
    twin.bridge(sw)
    for n in range(1, 5):
        twin.clsact(sw, n)


def check(make, configure, steps):
    wrong, asic = both(make, configure, steps)
    assert not wrong, "\n".join(wrong)
    answer = asic.api("switchd", "POST", "/v1/audit", {"wait_s": 3.0}, timeout=60)
    assert not answer["items"], answer["items"]
    return asic


def rules(sw):
    return {(r["dev"], r["hook"], r["pref"]): r for r in sw.api("switchd", "GET", "/v1/acl")["items"]}


def d(dst, src, **kw):
    return (src, data(H.get(dst, dst), H[src], **kw))


def known():
    return Step(
        "addresses are learned",
        frames=[d(NOBODY, f"h{i}") for i in range(1, 5)],
        expect={"h1": 3, "h2": 3, "h3": 3, "h4": 3},
    )


def ingress(_):
    tcp = ether(
        H["h2"],
        H["h1"],
        ETH_IP,
        ipv4("192.0.2.1", "192.0.2.2", 6, b"\x03\xe8\0\x50" + b"\0" * 8 + b"\x50\x02" + b"\0" * 6),
    )
    return [
        known(),
        Step(
            "UDP to a port is dropped",
            do=add("swp1 ingress pref 20 protocol ip flower ip_proto udp dst_port 2000 action drop"),
            frames=[d("h2", "h1"), d("h2", "h1", dport=2001), d("h1", "h2")],
            fits=True,
            expect={"h1": 1, "h2": 1},
        ),
        Step(
            "an earlier one lets pass",
            do=add("swp1 ingress pref 10 protocol ip flower src_ip 192.0.2.0/25 dst_ip 192.0.2.2 action pass"),
            frames=[d("h2", "h1"), d("h3", "h1")],
            fits=True,
            expect={"h2": 1, "h3": 1},
        ),
        Step("broadcast that is let pass leaves once", frames=[d(BROADCAST, "h1")], expect={"h2": 1, "h3": 1, "h4": 1}),
        Step("taken away again", do=flush(("swp1 ingress", 10)), frames=[d("h2", "h1")], fits=True, expect={}),
        Step("broadcast is dropped", frames=[d(BROADCAST, "h1")], fits=True, expect={}),
        Step(
            "a range of ports",
            do=add("swp2 ingress pref 10 protocol ip flower ip_proto udp dst_port 3000-3010 action drop"),
            frames=[d("h1", "h2", dport=p) for p in (2999, 3000, 3005, 3010, 3011)],
            fits=True,
            expect={"h1": 2},
        ),
        Step(
            "MAC addresses",
            do=add(f"swp3 ingress pref 10 protocol all flower dst_mac {H['h1']} action drop"),
            frames=[d("h1", "h3"), d("h2", "h3"), ("h3", tagged(data(H["h1"], H["h3"]), 7))],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "TTL and TOS",
            do=add(
                "swp4 ingress pref 10 protocol ip flower ip_ttl 5 action drop",
                "swp4 ingress pref 11 protocol ip flower ip_tos 0x10/0xfc action drop",
            ),
            frames=[d("h1", "h4", ttl=5), d("h1", "h4", tos=0x10), d("h1", "h4")],
            fits=True,
            expect={"h1": 1},
        ),
        Step(
            "TCP flags",
            do=add("swp1 ingress pref 10 protocol ip flower ip_proto tcp tcp_flags 0x02/0x12 action drop"),
            frames=[("h1", tcp), ("h1", tcp[:47] + b"\x10" + tcp[48:])],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "ICMP type",
            do=add("swp1 ingress pref 11 protocol ip flower ip_proto icmp type 8 action drop"),
            frames=[
                ("h1", ether(H["h2"], H["h1"], ETH_IP, ipv4("192.0.2.1", "192.0.2.2", 1, icmp_echo(1, 1, reply=r))))
                for r in (False, True)
            ],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "IPv6",
            do=add("swp1 ingress pref 12 protocol ipv6 flower dst_ip 2001:db8::/32 action drop"),
            frames=[("h1", udp6_frame(H["h2"], H["h1"], "2001:db9::1", a)) for a in ("2001:db8::2", "2001:db9::2")],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "fragments",
            do=add("swp3 ingress pref 11 protocol ip flower ip_flags frag action drop"),
            frames=[
                (
                    "h3",
                    ether(
                        H["h2"],
                        H["h3"],
                        ETH_IP,
                        ipv4("192.0.2.1", "192.0.2.2", 17, udp("192.0.2.1", "192.0.2.2", 1, 2), flags=f),
                    ),
                )
                for f in (0, 0x2000, 1)
            ],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "a rule is replaced",
            do=lambda sw: tc(
                sw, "filter replace dev swp4 ingress pref 10 handle 1 protocol ip flower ip_ttl 5 action pass"
            ),
            frames=[d("h1", "h4", ttl=5)],
            fits=True,
            expect={"h1": 1},
        ),
        Step(
            "the kernel's own learning was not needed",
            frames=[d("h4", "h1", dport=1), d("h3", "h1", dport=1)],
            fits=True,
            expect={"h3": 1, "h4": 1},
        ),
    ]


def test_ingress(make):
    asic = check(make, bridged, ingress)
    rows = rules(asic)
    row = rows["swp1", "ingress", 20]
    assert row["state"] == "offloaded" and row["packets"] >= 2, row
    assert "dst_port 2000" in row["rule"]
    assert "dst_port 2000" in asic.tandem("show", "acl").replace("\n", " ")


def tags(_):
    two = tagged(data(H["h2"], H["h1"]), 10, 20)
    return [
        known(),
        Step(
            "a VLAN",
            do=add("swp1 ingress pref 10 protocol 802.1Q flower vlan_id 10 action drop"),
            frames=[("h1", tagged(data(H["h2"], H["h1"]), v)) for v in (10, 11)] + [d("h2", "h1")],
            fits=True,
            expect={"h2": 2},
        ),
        Step(
            "a protocol behind it",
            do=add(
                "swp1 ingress pref 5 protocol 802.1Q flower vlan_id 11 vlan_ethtype ipv4 ip_proto udp "
                "dst_port 2000 action drop"
            ),
            frames=[("h1", tagged(data(H["h2"], H["h1"]), 11)), ("h1", tagged(data(H["h2"], H["h1"], dport=9), 11))],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "protocol ip is untagged",
            do=add("swp1 ingress pref 6 protocol ip flower ip_proto udp dst_port 77 action drop"),
            frames=[d("h2", "h1", dport=77), ("h1", tagged(data(H["h2"], H["h1"], dport=77), 12))],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "behind two tags the kernel looks",
            do=add("swp2 ingress pref 10 protocol 802.1Q flower vlan_ethtype ipv4 action drop"),
            frames=[("h2", tagged(data(H["h1"], H["h2"]), 10, 20)), ("h2", tagged(data(H["h1"], H["h2"]), 10))],
            expect={"h1": 1},  # behind the first of two tags is no IPv4
        ),
        Step("the outer tag counts", frames=[("h1", two)], fits=True, expect={}),
    ]


def test_tags(make):
    check(make, bridged, tags)


def copies(_):
    return [
        known(),
        Step(
            "mirror",
            do=add("swp1 ingress pref 10 matchall action mirred egress mirror dev swp4"),
            frames=[d("h2", "h1")],
            fits=True,
            expect={"h2": 1, "h4": 1},
        ),
        Step("a broadcast and its copy", frames=[d(BROADCAST, "h1")], expect={"h2": 1, "h3": 1, "h4": 2}),
        Step(
            "redirect",
            do=add(
                "swp2 ingress pref 10 protocol ip flower ip_proto udp dst_port 7 action mirred egress redirect dev swp3"
            ),
            frames=[d("h1", "h2", dport=7), d("h1", "h2")],
            fits=True,
            expect={"h1": 1, "h3": 1},
        ),
        Step(
            "dropped with a copy",
            do=add(
                "swp3 ingress pref 10 protocol ip flower ip_proto udp action mirred egress mirror dev swp1 action drop"
            ),
            frames=[d("h2", "h3")],
            fits=True,
            expect={"h1": 1},
        ),
        Step(
            "egress",
            do=add("swp2 egress pref 10 protocol ip flower ip_proto udp dst_port 2000 action drop"),
            frames=[d(NOBODY, "h4"), d("h2", "h4"), d("h2", "h4", dport=1)],
            fits=True,
            expect={"h1": 1, "h2": 1, "h3": 1},
        ),
        Step("what the kernel sends is the kernel's", frames=[d(BROADCAST, "h4")], expect={"h1": 1, "h3": 1}),
    ]


def test_copies_and_policers(make):
    check(make, bridged, copies)


def kernels_own(_):
    return [
        known(),
        Step(
            "a field that the chip has not",
            do=add("swp1 ingress pref 10 protocol arp flower arp_tip 192.0.2.9 action drop"),
            frames=[d("h2", "h1")],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "a classifier that the chip has not",
            do=add("swp2 ingress pref 10 protocol ip u32 match ip dport 9 0xffff action drop"),
            frames=[d("h1", "h2"), d("h1", "h2", dport=9)],
            expect={"h1": 1},
        ),
        Step(
            "rules before it are the chip's",
            do=add("swp2 ingress pref 5 protocol ip flower ip_proto udp dst_port 5 action drop"),
            frames=[d("h1", "h2", dport=5)],
            fits=True,
            expect={},
        ),
        Step(
            "an action that the chip has not",
            do=add("swp3 ingress pref 10 protocol ip flower ip_proto udp dst_port 9 action vlan push id 5"),
            frames=[d("h1", "h3", dport=9), d("h1", "h3")],
            expect={"h1": 2},
        ),
        Step(
            "another chain",
            do=add(
                "swp3 ingress chain 4 pref 1 protocol ip flower ip_proto udp dst_port 8 action drop",
                "swp3 ingress pref 11 protocol ip flower ip_proto udp dst_port 5-9 action goto chain 4",
            ),
            frames=[d("h1", "h3", dport=p) for p in (8, 7, 4)],
            expect={"h1": 2},
        ),
        Step(
            "trap",
            do=add("swp4 ingress pref 10 protocol ip flower ip_proto udp dst_port 9 action trap"),
            frames=[d("h1", "h4", dport=9), d("h1", "h4")],
            expect={"h1": 1},
        ),
        Step(
            "masks of one preference, which overlap",
            do=add(
                "swp4 ingress pref 20 protocol ip flower src_ip 192.0.2.0/24 action pass",
                "swp4 ingress pref 20 protocol ip flower dst_ip 192.0.2.0/24 action drop",
            ),
            frames=[d("h1", "h4")],
            expect={"h1": 1},
        ),
        Step(
            "egress, a classifier that the chip has not",
            do=add("swp1 egress pref 10 protocol ip u32 match ip dport 9 0xffff action drop"),
            frames=[d(NOBODY, "h2", dport=9), d(NOBODY, "h2", dport=10)],
            expect={"h1": 1, "h3": 1, "h4": 1},
        ),
        Step(
            "who was seen by the kernel alone is known",
            frames=[(("h2"), data(H["h1"], H["h5"], dport=7)), 0.3, d("h5", "h1", dport=7)],
            expect={"h1": 1, "h2": 1},
        ),
        Step(
            "all gone",
            do=flush(
                ("swp1 ingress", 10),
                ("swp1 egress", 10),
                ("swp2 ingress", 5, 10),
                ("swp3 ingress", 10, 11),
                ("swp4 ingress", 10, 20),
            ),
            frames=[d("h1", s, dport=9) for s in ("h2", "h3", "h4")] + [d(NOBODY, "h1")],
            fits=True,
            expect={"h1": 3, "h2": 1, "h3": 1, "h4": 1},
        ),
    ]


def test_what_only_the_kernel_can(make):
    seen = {}

    def configure(sw):
        bridged(sw)
        if sw.has_asic:
            seen["sw"] = sw

    def steps(macs):
        def look(sw):
            if sw.has_asic:
                seen["rows"] = rules(sw)

        every = kernels_own(macs)
        every.insert(-1, Step("reasons", do=look, frames=[], expect={}))
        return every

    check(make, configure, steps)
    rows = seen["rows"]
    for key, words in {
        ("swp1", "ingress", 10): "fields",
        ("swp2", "ingress", 10): "kind u32",
        ("swp3", "ingress", 10): "action vlan",
        ("swp4", "ingress", 10): "trap",
        ("swp4", "ingress", 20): "masks",
    }.items():
        assert rows[key]["state"] == "trap" and words in rows[key]["reason"], rows[key]
    assert rows["swp2", "ingress", 5]["state"] == "offloaded"


def test_audit_of_a_mirror_without_a_session(make):
    """A chip has so many mirror sessions; a filter that finds none left traps and says so, which is no difference."""
    sw = make.asic(profile="tiny")
    sw.start()
    for n in range(1, 5):
        sw.ip(f"link set swp{n} up")
        twin.clsact(sw, n)
    for n, to in ((1, 2), (2, 3), (3, 4)):
        words = f"filter add dev swp{n} ingress pref 10 protocol ip flower ip_proto udp"
        sw.ns.exec("tc", *words.split(), "action", "mirred", "egress", "mirror", "dev", f"swp{to}", "action", "pass")
    sw.sync()
    rows = sw.api("switchd", "GET", "/v1/acl")["items"]
    assert sorted(r["state"] for r in rows) == ["offloaded", "offloaded", "trap"], rows
    assert [r["reason"] for r in rows if r["state"] == "trap"] == ["mirror full (needs 1, free 0 of 2)"]
    answer = sw.api("switchd", "POST", "/v1/audit", {"wait_s": 3.0}, timeout=60)
    assert not answer["items"], answer["items"]


RANGES = 16  # of the twin's chip


def test_more_ranges_of_ports_than_places(make):
    """A chip compares with so many ranges of ports, which rules share. What one more is for is the kernel's, until
    there is room."""
    last = RANGES + 1
    line = "{} ingress pref {} protocol ip flower ip_proto udp dst_port {}0-{}5 action drop"
    filters = [line.format("swp1", 10 + n, 100 + n, 100 + n) for n in range(1, last + 1)]
    shared = line.format("swp2", 10, 101, 101)
    ends = [1000 + n * 10 + by for n in (1, last) for by in (-1, 0, 5)]
    frames = [d("h2", "h1", dport=p) for p in ends] + [d("h1", "h2", dport=p) for p in (1010, 1020)]

    def steps(_):
        first = ("swp1 ingress", 11)
        return [
            known(),
            Step("one too many", do=add(*filters, shared), frames=frames, expect={"h1": 1, "h2": 2}),
            Step("the range is still somebody's", do=flush(first), frames=frames, expect={"h1": 1, "h2": 4}),
            Step("room", do=flush(("swp2 ingress", 10)), frames=frames, fits=True, expect={"h1": 2, "h2": 4}),
        ]

    asic = check(make, bridged, steps)
    assert {r["state"] for r in rules(asic).values()} == {"offloaded"}, rules(asic)


def test_audit_of_a_range_without_a_place(make):
    sw = make.asic(profile="tiny")
    sw.start()
    for n in range(1, 4):
        sw.ip(f"link set swp{n} up")
        twin.clsact(sw, n)
        words = f"filter add dev swp{n} ingress pref 10 protocol ip flower ip_proto udp dst_port {n}0-{n}5 action drop"
        sw.ns.exec("tc", *words.split())
    sw.sync()
    rows = sw.api("switchd", "GET", "/v1/acl")["items"]
    assert sorted(r["state"] for r in rows) == ["offloaded", "offloaded", "trap"], rows
    assert [r["reason"] for r in rows if r["state"] == "trap"] == ["ACL ranges full (needs 1, free 0 of 2)"]
    assert sw.tandem("show", "acl-ranges").count("dst_port") == 2
    answer = sw.api("switchd", "POST", "/v1/audit", {"wait_s": 3.0}, timeout=60)
    assert not answer["items"], answer["items"]


def routed(sw):
    for n in (1, 2):
        sw.ip(f"link set swp{n} up")
        twin.clsact(sw, n)
        sw.ip(f"addr add 10.0.{n}.1/24 dev swp{n}")
        sw.ip(f"neigh add 10.0.{n}.2 lladdr {H[f'h{n}']} dev swp{n} nud permanent")
    sw.ns.sysctl(ipv4__ip_forward=1)


def routed_steps(macs):
    def r(dport=2000, ttl=64):
        return (
            "h1",
            ether(
                macs[1],
                H["h1"],
                ETH_IP,
                ipv4("10.0.1.2", "10.0.2.2", 17, udp("10.0.1.2", "10.0.2.2", 1, dport), ttl=ttl),
            ),
        )

    return [
        Step("routed", frames=[r()], fits=True, expect={"h2": 1}),
        Step(
            "ingress",
            do=add("swp1 ingress pref 10 protocol ip flower ip_proto udp dst_port 9 action drop"),
            frames=[r(), r(9)],
            fits=True,
            expect={"h2": 1},
        ),
        Step(
            "egress sees what the router made of it",
            do=add(
                "swp2 egress pref 10 protocol ip flower ip_ttl 10 action drop",
                f"swp2 egress pref 11 protocol ip flower dst_mac {H['h3']} action drop",
            ),
            frames=[r(ttl=11), r(ttl=10), r()],
            fits=True,
            expect={"h2": 2},
        ),
    ]


def test_routed(make):
    check(make, routed, routed_steps)
