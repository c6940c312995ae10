# SPDX-License-Identifier: Apache-2.0
"""What of a scenario hardware does by itself, judged by its commands alone (docs/mapping.md): where it does, good
packets may not touch the CPU."""

import collections
import re

# Commands after which the kernel forwards what they concern, and those that end it: (pattern, its end or None, routed
# packets only, why). What the parentheses catch says what it is about: the same is caught by the end
KERNELS = [
    (r"ipv4/conf/(\S+)/rp_filter=1", r"ipv4/conf/(\S+)/rp_filter=[02]", True, "reverse path filter"),
    (r"ip link set (red|blue) down", r"ip link set (red|blue) up", True, "a VRF that is down"),
    (r"ip link set (\S+) type bridge vlan_protocol 802.1ad", r"ip link set (\S+) type bridge vlan_protocol 802.1Q",
     False, "802.1ad"),
    (r"bridge link set dev (\S+) mcast_to_unicast on", r"bridge link set dev (\S+) mcast_to_unicast off", False,
     "copies of multicast that are sent to stations"),
    (r"bridge vlan set dev (\S+ vid \S+) state [012]", r"bridge vlan set dev (\S+ vid \S+) state 3", False,
     "a VLAN with a state of its own"),
    (r"ip link set \S+\.\d+ (address|type vlan egress)", None, False, "VLAN interfaces that are unlike their port"),
    (r"ip link add \S+ .* type bond .*mode broadcast", None, False, "a mode of bonding that the chip has not"),
    (r"ip link set (\S+) type bond xmit_hash_policy encap", r"ip link set (\S+) type bond xmit_hash_policy (?!encap)",
     False, "a policy of bonding that the chip has not"),
]
# The same of filters: over when their preference is taken away
FILTERS = [
    (r"action (trap|vlan|continue)", "actions that the chip has not"),
    (r"police .* burst 20 ", "a policer whose burst is less than a frame"),
    (r" egress .* redirect", "redirection as it leaves"),
]


MIRRORS = "copies to a port that filters what leaves"  # if one does


class Support:
    """Follows a scenario's commands."""

    def __init__(self):
        self.reasons = {}               # what about -> (why the kernel forwards, routed packets only)
        self.rules = collections.Counter()  # (family, preference) -> rules
        self.vrfs = False
        self.local_first = {"4", "6"}   # families whose table local comes before VRFs
        self.member = {}                # interface -> VRF
        self.filters = {}               # (port, hook, preference) -> handles
        self.bonded = set()             # ports that are or were in a bond
        self.bond = {}                  # port -> the bond it is in
        self.vlan_filtering = {}        # bridge -> on?
        self.on_bridge = set()          # bridges that have VLAN interfaces
        self.snoops = False             # is there a bridge that snoops
        self.querier = False            # is one a querier

    def note(self, command):
        for pattern, over, routed, why in KERNELS:
            begins, ends = re.search(pattern, command), over and re.search(over, command)
            if begins:
                self.fail(why, routed, begins.groups())
            elif ends:
                self.reasons.pop((why, ends.groups()), None)
        rule = re.match(r"ip (-6 )?rule (add|del) pref (10\d)\b", command)
        if rule:
            self.rules[rule[1], rule[3]] += 1 if rule[2] == "add" else -1
            if self.rules[rule[1], rule[3]] < 1:
                del self.rules[rule[1], rule[3]]
        words = command.split()
        self.snoops = self.snoops or "mcast_snooping 1" in command
        self.querier = self.querier or "mcast_querier 1" in command
        if self.snoops and command == "kill switchd":
            self.fail("a querier that the new switchd has yet to believe in", False)
        if " type vrf " in command:
            self.vrfs = True
        rule = re.match(r"ip (-6 )?rule (add|del) pref 0\b", command)
        if rule:
            (self.local_first.add if rule[2] == "add" else self.local_first.discard)("6" if rule[1] else "4")
        self.note_link(command, words)
        if words[0] == "tc":
            self.note_filter(command)
        if self.vrfs and re.match(r"ip (-6 )?route (add|append|replace) ", command):
            vrf = re.search(r" vrf (\S+)", command)
            devices = re.findall(r"\bdev (\S+)", command)
            if any(self.member.get(d) != (vrf and vrf[1]) for d in devices):
                self.fail("a route from one VRF into another", True)

    def note_link(self, command, words):
        move = re.match(r"ip link set (\S+) (?:nomaster|master (\S+))$", command)
        if move and move[2] in ("red", "blue"):
            self.member[move[1]] = move[2]
        elif move:
            self.member.pop(move[1], None)
            bond = self.bond.pop(move[1], None)
            if str(move[2]).startswith("bond"):
                self.bonded.add(move[1])
                self.bond[move[1]] = move[2]
            if bond and bond not in self.bond.values():
                self.fail("a bond without members", False)
        if words[:3] == ["ip", "link", "del"]:
            self.member = {k: v for k, v in self.member.items() if v != words[3] and k != words[3]}
        above = re.match(r"ip link add link (br\w+) ", command)
        if above:
            self.on_bridge.add(above[1])
        switched = re.match(r"ip link (?:add|set) (\S+) .*type bridge.* vlan_filtering (\d)", command)
        if switched:
            self.vlan_filtering[switched[1]] = switched[2] == "1"

    def note_filter(self, command):
        m = re.match(r"tc filter (\S+) dev (\S+) (\S+) pref (\d+)(?: handle (\d+))?", command)
        if not m:
            return
        verb, dev, hook, pref, handle = m.groups()
        mine = self.filters.setdefault((dev, hook, pref), set())
        if verb == "del":
            (mine.discard(handle) if handle else mine.clear())
            if not handle:
                del self.filters[dev, hook, pref]
                self.reasons = {k: v for k, v in self.reasons.items() if k[1] != (dev, hook, pref)}
            return
        mine.add(handle)
        for pattern, why in FILTERS:
            if re.search(pattern, command):
                self.fail(why, False, (dev, hook, pref))
        if len(mine) > 1:
            self.fail("filters of one preference that may overlap", False, (dev, hook, pref))
        if dev in self.bonded:
            self.fail("a filter at a bond's member", False, (dev, hook, pref))
        if "mirror" in command:
            self.fail(MIRRORS, False, (dev, hook, pref))

    def fail(self, why, routed, about=()):
        self.reasons[why, about] = routed

    def kernels(self, routed, groups6=False):
        """Why the kernel forwards these packets; None: hardware does. `groups6`: some are to IPv6 groups."""
        if groups6 and self.querier:
            return "an IPv6 querier without an address: when the kernel finds out is not told"
        egress = any(hook == "egress" for _, hook, _ in self.filters)
        reasons = {why: only for (why, _), only in self.reasons.items() if why != MIRRORS or egress}
        whole = next((why for why, only in reasons.items() if not only), None)
        if not routed:
            return whole
        if self.rules:
            return "policy rules"
        if self.vrfs and self.local_first:
            return "table local before VRFs"
        if any(not self.vlan_filtering.get(b, False) for b in self.on_bridge):
            return "a VLAN interface on a bridge that does not filter"
        return whole or next(iter(reasons), None)
