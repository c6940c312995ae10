# SPDX-License-Identifier: Apache-2.0
"""The BGP topology of the demo and of the tests that need a routing protocol.

                        AS 65001                      AS 65010
                      ┌──────────┐ 10.9.1.0/24      ┌──────────┐
                 ┌────┤ switch   ├──────────────────┤ r1       ├────┐
    h1 ── swp1 ──┤    │ swp3     │                  └──────────┘    │  10.8.1.0/24
   10.1.1.2      │    │          │ 10.9.2.0/24      ┌──────────┐    ├──── server: N prefixes of
                 └────┤ swp4     ├──────────────────┤ r2       ├────┘     20.0.0.0/8, one /24 each
                      └──────────┘                  └──────────┘  10.8.2.0/24
                                                      AS 65010

Both routers announce the same N prefixes; the switch's FRR puts both next hops into the kernel.
"""

import ipaddress

from . import frr, net

HOLD_S = 3  # seconds without a word after which a session is over; keepalives go each second


def prefixes(count, first="20.0.0.0"):
    base = int(ipaddress.IPv4Address(first))
    return [f"{ipaddress.IPv4Address(base + (i << 8))}/24" for i in range(count)]


def router_config(asn, router_id, peers, networks=(), hold_s=HOLD_S):
    lines = [f"router bgp {asn}", f" bgp router-id {router_id}", " no bgp ebgp-requires-policy",
             " no bgp network import-check", " bgp bestpath as-path multipath-relax", " no bgp default ipv4-unicast",
             f" timers bgp 1 {hold_s}"]
    for address, peer_asn in peers:
        lines += [f" neighbor {address} remote-as {peer_asn}", f" neighbor {address} timers connect 1",
                  f" neighbor {address} advertisement-interval 0"]
    lines += [" address-family ipv4 unicast", "  maximum-paths 8"]
    for address, _ in peers:
        lines.append(f"  neighbor {address} activate")
    lines += [f"  network {n}" for n in networks]
    lines += [" exit-address-family", "!"]
    return "\n".join(lines) + "\n"


class Routers:
    """r1 and r2 on two ports of a switch, the server behind both, FRR on the routers and on the switch."""

    def __init__(self, switch, folder, ports=(3, 4), count=1024, first="20.0.0.0", hold_s=HOLD_S):
        self.switch = switch
        self.networks = prefixes(count, first)
        self.count = count
        self.hold_s = hold_s
        self.server = net.Namespace(switch.prefix + "srv")
        self.server.sysctl(ipv4__ip_forward=0)
        self.frr = {}
        self.folder = folder
        self.ports = ports
        self.names = [f"r{i + 1}" for i in range(len(ports))]
        for i, (name, port) in enumerate(zip(self.names, ports), 1):
            r = switch.host(name, port)
            r.address(f"10.9.{i}.2/24")
            r.ns.sysctl(ipv4__ip_forward=1, ipv4__conf__all__rp_filter=0, ipv4__conf__default__rp_filter=0)
            net.cable(r.ns, "srv", self.server, f"r{i}")
            r.ns.ip(f"addr add 10.8.{i}.1/24 dev srv")
            r.ns.ip(f"route add {supernet(self.networks)} via 10.8.{i}.2")
            self.server.ip(f"addr add 10.8.{i}.2/24 dev r{i}")
        # everything of the prefixes is the server's own
        self.server.ip(f"route add local {supernet(self.networks)} dev lo")
        # answers go back through r1 and r2 alike
        hops = " ".join(f"nexthop via 10.8.{i}.1" for i in range(1, len(ports) + 1))
        self.server.ip(f"route add default {hops}")

    def addresses(self):
        """The switch's side of the links to the routers."""
        for i, port in enumerate(self.ports, 1):
            self.switch.ip(f"addr add 10.9.{i}.1/24 dev swp{port}")
            self.switch.ip(f"link set swp{port} up")
        for i, name in enumerate(self.names, 1):
            self.switch.hosts[name].ns.ip(f"route add 10.1.0.0/16 via 10.9.{i}.1")

    def start(self, switch_networks=()):
        for i, name in enumerate(self.names, 1):
            config = router_config(65010, f"10.9.{i}.2", [(f"10.9.{i}.1", 65001)], self.networks, self.hold_s)
            self.frr[name] = frr.Frr(self.switch.hosts[name].ns, self.folder, name).start(config)
        peers = [(f"10.9.{i}.2", 65010) for i in range(1, len(self.ports) + 1)]
        self.frr["switch"] = frr.Frr(self.switch.ns, self.folder, "switch").start(
            router_config(65001, "10.9.0.1", peers, switch_networks, self.hold_s))

    def kernel_routes(self):
        """How many BGP routes the switch's kernel has."""
        return self.switch.ns.ip("-o -4 route show proto bgp").count("\n")

    def multipath_routes(self):
        """How many of them have as many next hops as there are routers."""
        n = 0
        for line in self.switch.ns.ip("-o -4 route show proto bgp").splitlines():
            n += line.count(" via ") >= len(self.ports)
        return n

    def wait_established(self, timeout=30):
        net.wait_until(f"{self.count} BGP routes in the switch's kernel",
                       lambda: self.multipath_routes() >= self.count, timeout=timeout, every=0.2)

    def sessions(self):
        """Established sessions of the switch, with their uptime: peer -> (state, established count)."""
        import json
        text = self.frr["switch"].vty("show bgp neighbors json")
        try:
            data = json.loads(text)
        except ValueError:
            return {}
        return {k: (v.get("bgpState"), v.get("connectionsEstablished")) for k, v in data.items()
                if isinstance(v, dict) and "bgpState" in v}

    def stop(self):
        for f in self.frr.values():
            f.stop()

    def delete(self):
        self.stop()
        self.server.delete()


def supernet(networks):
    first = int(ipaddress.ip_network(networks[0]).network_address)
    last = int(ipaddress.ip_network(networks[-1]).broadcast_address)
    bits = (first ^ last).bit_length()
    return f"{ipaddress.IPv4Address(first >> bits << bits)}/{32 - bits}"
