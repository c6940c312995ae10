# SPDX-License-Identifier: Apache-2.0
"""Which of Linux' constructs this kernel has: only those are drawn. Asked once, in a namespace of its own."""

import os

from lib import net

# name: the commands that it takes; the first that is refused means that the kernel lacks it
CONSTRUCTS = {
    "vlan": ("link add tnt-p type bridge vlan_filtering 1", "link add link tnt-p name tnt-p.5 type vlan id 5"),
    "bond": ("link add tnt-p type bond mode active-backup",),
    "vrf": ("link add tnt-p type vrf table 4242",),
    "tc": ("link add tnt-p type bridge", "tc qdisc add dev tnt-p clsact",
           "tc filter add dev tnt-p ingress pref 10 protocol ip flower ip_proto udp dst_port 7 action drop",
           "tc filter add dev tnt-p ingress pref 11 matchall action mirred egress mirror dev lo",
           "tc filter add dev tnt-p egress pref 12 matchall action police rate 1mbit burst 20 conform-exceed drop"),
    "rule": ("rule add pref 100 from 192.0.2.0/24 table 99", "-6 rule add pref 100 from 2001:db8::/64 table 99"),
    "rename": ("link add tnt-p type bridge", "link set tnt-p up", "link set tnt-p name tnt-q"),
}
EVERY = frozenset(CONSTRUCTS)


def probe():
    """The constructs that there are, and what was refused of those that there are not: (frozenset, {name: words})."""
    have, lacks = set(), {}
    for name, commands in CONSTRUCTS.items():
        ns = net.Namespace(f"tnt-{os.getpid()}-probe")
        try:
            for c in commands:
                words = c.split()
                if words[0] == "tc":
                    ns.exec(*words)
                else:
                    net.run("ip", "-n", ns.name, *words)
            have.add(name)
        except net.CommandError as e:
            lacks[name] = f"`{c}`: {e.said.strip().splitlines()[0]}"
        finally:
            ns.delete()
    return frozenset(have), lacks
