# SPDX-License-Identifier: Apache-2.0
"""Part 1 of the demo: hosts on a bridge and on routed ports, ping and TCP through the ASIC."""

import re

from lib import net, traffic
from lib.switch import settle

DRAWING = """
        h1 10.1.0.2 ── swp1 ─┐
        fd01::2              ├─ br0 10.1.0.1/24 fd01::1/64 ─┐
        h2 10.1.0.3 ── swp2 ─┘                              ├─ the switch routes
        fd01::3                                             │
        h3 10.3.0.2 ── swp5 ── 10.3.0.1/24 fd03::1/64 ──────┘
        fd03::2
"""

# What belongs to the CPU: who has this address, group membership, routing protocols
CONTROL = {"arp", "nd", "igmp_mld", "link_proto", "broadcast", "routing", "local", "l2_local"}
# What the CPU may see of a conversation until the kernel has resolved the addresses
FIRST = {"unresolved", "connected", "lpm_miss"}


def build(sw):
    """Hosts h1, h2 and h3, and the kernel configuration of the drawing."""
    sw.host("h1", 1).address("10.1.0.2/24", "fd01::2/64", gateway="10.1.0.1", gateway6="fd01::1")
    sw.host("h2", 2).address("10.1.0.3/24", "fd01::3/64", gateway="10.1.0.1", gateway6="fd01::1")
    sw.host("h3", 5).address("10.3.0.2/24", "fd03::2/64", gateway="10.3.0.1", gateway6="fd03::1")


def configure(sw):
    sw.router()
    sw.ip("link add br0 type bridge mcast_snooping 0")
    for p in (1, 2):
        sw.ip(f"link set swp{p} master br0 up")
    sw.ip("link set br0 up")
    sw.ip("addr add 10.1.0.1/24 dev br0")
    sw.ip("addr add fd01::1/64 dev br0 nodad")
    sw.ip("link set swp5 up")
    sw.ip("addr add 10.3.0.1/24 dev swp5")
    sw.ip("addr add fd03::1/64 dev swp5 nodad")
    sw.sync()


def rtt(host, target, count=50):
    """Median round trip of an idle ping in ms, and how many were answered."""
    out = host.ns.exec("ping", "-n", "-c", count, "-i", "0.02", "-W", "1", target, check=False, timeout=60)
    times = sorted(float(t) for t in re.findall(r"time=([\d.]+) ms", out))
    return (times[len(times) // 2] if times else None), len(times)


def conversation(report, sw, src, dst, name, addresses, megabytes):
    """Ping and TCP from one host to another; what the chip counted and what the CPU saw."""
    for family, address in addresses.items():
        net.wait_until(f"{name} to answer over {family}", lambda a=address: src.ping(a), timeout=15)
    sw.sync()
    before_cpu, before, kernel = sw.cpu_packets(), sw.ports(), sw.kernel_received()
    count = 50
    times = {}
    answered = 0
    for family, address in addresses.items():
        times[family], got = rtt(src, address, count)
        answered += got
    report.claim(f"ping {name}", answered == count * len(addresses),
                 f"ping {name}: {answered} of {count * len(addresses)} answered, "
                 + ", ".join(f"{f} {t:.3f} ms" for f, t in times.items() if t is not None),
                 answered=answered, sent=count * len(addresses), rtt_ms=times)

    port = 5001
    server = dst.ns.popen(*traffic.words("serve", "--bind", "::", "--port", port), stdout=-1)
    server.stdout.readline()
    speeds = {}
    for family, address in addresses.items():
        out = src.ns.exec(*traffic.words("fetch", "--dst", address, "--port", port, "--bytes", megabytes << 20),
                          timeout=90, check=False)
        speeds[family] = int(out) if out.strip() else 0
    server.terminate()
    server.wait(5)
    server.stdout.close()
    report.claim(f"tcp {name}", all(speeds.values()),
                 f"TCP {name}: {megabytes} MiB over each of {', '.join(addresses)}, content equal, "
                 + ", ".join(f"{f} {v} Mb/s" for f, v in speeds.items()), mbps=speeds, mebibytes=megabytes)

    settle(0.2)
    after = sw.ports()
    swp = {h: f"swp{p}" for h, p in (("h1", 1), ("h2", 2), ("h3", 5))}[src.name]
    bytes_in = after[swp]["counters"]["rx_bytes"] - before[swp]["counters"]["rx_bytes"]
    packets_in = after[swp]["counters"]["rx_packets"] - before[swp]["counters"]["rx_packets"]
    want = len(addresses) * megabytes << 20
    seen = sw.cpu_delta(before_cpu)
    data = {k: v for k, v in seen.items() if k not in CONTROL}
    report.claim(f"asic forwards {name}", bytes_in >= want and sum(data.values()) == 0,
                 f"{swp} took in {packets_in} packets, {bytes_in >> 20} MiB; of all that the CPU saw "
                 + (", ".join(f"{v} {k}" for k, v in sorted(seen.items())) or "nothing")
                 + f"; the kernel's own count of what its ports received rose by {sw.kernel_received() - kernel}",
                 rx_bytes=bytes_in, rx_packets=packets_in, cpu=seen)


def run(report, sw, megabytes=32):
    report.section("A bridge and a router: does the ASIC forward?", DRAWING)
    h1, h2, h3 = (sw.hosts[h] for h in ("h1", "h2", "h3"))
    before = sw.cpu_packets()
    first = h1.ping("10.3.0.2", count=1)
    seen = sw.cpu_delta(before)
    others = {k: v for k, v in seen.items() if k not in CONTROL | FIRST}
    report.claim("first packet", first == 1 and not others,
                 "the very first ping is answered; on its way the CPU saw "
                 + (", ".join(f"{v} {k}" for k, v in sorted(seen.items())) or "nothing"), cpu=seen)
    report.step("h1 to h2, bridged")
    conversation(report, sw, h1, h2, "h1-h2", {"IPv4": "10.1.0.3", "IPv6": "fd01::3"}, megabytes)
    report.step("h1 to h3, routed")
    conversation(report, sw, h1, h3, "h1-h3", {"IPv4": "10.3.0.2", "IPv6": "fd03::2"}, megabytes)
