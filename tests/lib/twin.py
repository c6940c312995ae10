# SPDX-License-Identifier: Apache-2.0
"""The twin test's machinery: the same steps on a switch with an ASIC and on the kernel alone, and what may differ.

Canonicalisation (docs/testing.md has the reasons):
  1. ARP, ND, MLD, IGMP and link protocols are compared as sets per step; their number hangs on timers.
  2. Frames that the switch itself made (source address one of its own): the IPv4 identification is zeroed and the
     header checksum, if it was right, recomputed; it is drawn at random or counted per system. A TCP checksum over IPv6
     that was left to the device, which a veth leaves as it is, is computed.
  3. Padding, which is zeros behind the IP packet up to 60 bytes and the tags, is cut off; hardware pads, a veth does
     not. What is behind the packet otherwise has to be the same.
  4. Frames that leave by the same port in one step are compared as a multiset: their order across flows is free.
  5. ECMP: not the port of a flow is compared, but that a flow keeps its port, and the shares.
"""

import concurrent.futures
import contextlib
import ipaddress
import os
import struct
import time

from . import net, packet
from .packet import udp4_frame
from .switch import PACE, AsicSwitch, Host

HOSTS = ("h1", "h2", "h3", "h4")
MAC = {f"h{i}": f"02:00:00:00:00:{i:02x}" for i in range(1, 9)}
DUMMY = ipaddress.IPv4Address("192.0.0.8").packed  # who sends ICMP errors where no interface has an address (RFC 7600)
NOBODY = "02:00:00:00:00:99"
TCX = tuple(int(x) for x in os.uname().release.split("-", maxsplit=1)[0].split(".")[:2]) >= (6, 6)


class Step:
    """One step: `do(switch)` changes the kernel, then `frames` (host, frame) are sent; a number among them is a pause
    of so many seconds, and until the daemons have come round to what was sent; a function of the switch and its wires
    is called: what waits for something, however busy the machine is. `fits`: hardware must do it.

    `expect` says how many data frames leave by which port on the kernel alone: a guard against a step that tests
    nothing. `control`: the sets of control frames must be equal too.
    """

    def __init__(self, name, do=None, frames=(), fits=False, expect=None, control=False):
        self.name = name
        self.control = control
        self.do = do
        self.frames = frames
        self.fits = fits
        self.expect = expect


def canonical(frame, own):
    """Rules 2 and 3; `own` are the switch's addresses as packed bytes."""
    at = 12  # behind the tags
    while at < 20 and struct.unpack_from("!H", frame, at)[0] in (packet.ETH_8021Q, 0x88A8):
        at += 4
    head, body = frame[:at + 2], frame[at + 2:]
    kind = struct.unpack_from("!H", frame, at)[0]
    if kind == packet.ETH_IP and len(body) >= 20:
        total = struct.unpack_from("!H", body, 2)[0]
        if 20 <= total <= len(body):
            body = unpadded(frame, body, total)
        ihl = (body[0] & 15) * 4
        if body[12:16] in own and packet.checksum(body[:ihl]) == 0:
            ip = bytearray(body[:ihl])
            ip[4:6] = b"\0\0"
            ip[10:12] = b"\0\0"
            ip[10:12] = struct.pack("!H", packet.checksum(bytes(ip)))
            body = bytes(ip) + body[ihl:]
    elif kind == packet.ETH_IP6 and len(body) >= 40:
        body = unpadded(frame, body, 40 + struct.unpack_from("!H", body, 4)[0])
        if body[6] == 6 and len(body) >= 60 and body[8:24] in own:
            pseudo = body[8:40] + struct.pack("!II", len(body) - 40, 6)
            if body[56:58] == struct.pack("!H", ~packet.checksum(pseudo) & 0xFFFF):
                tcp = body[40:56] + b"\0\0" + body[58:]
                body = body[:56] + struct.pack("!H", packet.checksum(pseudo + tcp)) + body[58:]
    elif len(frame) == 60:
        return frame.rstrip(b"\0")
    return head + body


def unpadded(frame, body, length):
    """The frame's body, its end cut off behind so many bytes if it is padding: up to 60 bytes, and the tags."""
    most = 60 + (len(frame) - len(body) - 14)
    return body[:length] if len(frame) <= most and not any(body[length:]) else body


def own_addresses(sw):
    text = sw.ns.ip("-o addr show")
    found = {DUMMY}
    for line in text.splitlines():
        words = line.split()
        for i, w in enumerate(words):
            if w in ("inet", "inet6"):
                found.add(ipaddress.ip_interface(words[i + 1]).ip.packed)
    return found


FOREIGN = 2.0  # seconds: longer the kernel's threads have not to do with what was sent here, but with the machine's


def quiet(wires, least=0.06, most=1.0, sw=None):
    """Waits until no frame has come for a while, in which nobody who could have sent one was waiting for a processor:
    the daemons of `sw`, and the kernel's threads that take what interrupts leave behind. Fails where they never are."""
    least *= PACE
    begin = time.monotonic()
    seen, idle = -1, False
    while True:
        time.sleep(least)
        spent = time.monotonic() - begin
        who = works(sw, spent)
        was, idle = idle, not who
        now = sum(len(w.frames) for w in wires.values())
        if now == seen and was and idle or spent > most * PACE and idle:
            return
        if spent > net.PATIENCE:
            raise TimeoutError(f"not within {spent:.0f} s: nothing more on its way; at work: {', '.join(who)}")
        seen = now


def passed(sw):
    """Waits until what was sent has been passed on, or learned from, as far as a pause leaves that to the machine.
    Fails where somebody never comes round to it."""
    begin, idle = time.monotonic(), 0
    while idle < 2:
        spent = time.monotonic() - begin
        who = works(sw, spent)
        if who and spent > net.PATIENCE:
            raise TimeoutError(f"not within {spent:.0f} s: what was sent passed on; at work: {', '.join(who)}")
        idle = 0 if who else idle + 1
        time.sleep(0.002)


def works(sw, spent):
    """Who has packets to pass or to take, and no processor yet, after so many seconds of waiting for that."""
    who = [("the test", os.getpid())]
    if isinstance(sw, AsicSwitch) and sw.started:
        who += [(d, sw.pid(d)) for d in ("asicd", "switchd")]
    if spent < FOREIGN:
        who += [("ksoftirqd", pid) for pid in net.softirq_threads()]
    return [name for name, pid in who if net.busy(pid)]


def play(sw, steps, wires):
    """Runs the steps on one switch; per step: {host: (sorted data frames, set of control frames)} and CPU reasons."""
    results = []
    own = own_addresses(sw)
    for step in steps:
        print(f"{'with ASIC' if sw.has_asic else 'kernel alone'}: {step.name}")  # shown when a test fails
        if step.do:
            step.do(sw)
            own = own_addresses(sw)
        sw.sync()
        for w in wires.values():
            w.clear()
        before = sw.cpu_packets() if sw.has_asic else {}
        for item in step.frames:
            if isinstance(item, (int, float)):
                time.sleep(item)
                passed(sw)
            elif callable(item):
                item(sw, wires)
            else:
                wires[item[0]].send(item[1])
        quiet(wires, sw=sw)
        caught = {}
        for host, w in wires.items():
            frames = [canonical(f, own) for f in w.caught()]
            data = sorted(f.hex() for f in frames if not packet.is_control(f))
            control = {f.hex() for f in frames if packet.is_control(f)}
            caught[host] = (data, control)
        cpu = sw.cpu_delta(before) if sw.has_asic else {}
        results.append((caught, cpu))
    return results


ALWAYS_CPU = {"arp", "nd", "igmp_mld", "link_proto", "broadcast", "routing", "local", "l2_local"}


def compare(steps, reference, asic):
    """Differences as readable lines; empty if the two switches agree."""
    wrong = []
    for step, (want, _), (got, cpu) in zip(steps, reference, asic):
        for host in want:
            if want[host][0] != got[host][0]:
                lost = [f for f in want[host][0] if f not in got[host][0]]
                extra = [f for f in got[host][0] if f not in want[host][0]]
                wrong.append(f"{step.name}: {host} got {len(got[host][0])} frames, the kernel alone sends "
                             f"{len(want[host][0])}; missing {lost[:2]}, not the kernel's {extra[:2]}")
            if step.control and want[host][1] != got[host][1]:
                wrong.append(f"{step.name}: {host}: control frames differ: kernel {sorted(want[host][1])[:3]}, "
                             f"with ASIC {sorted(got[host][1])[:3]}")
        if step.expect is not None and {h: len(v[0]) for h, v in want.items() if v[0]} != step.expect:
            wrong.append(f"{step.name}: the step itself is wrong: the kernel sent "
                         f"{ {h: len(v[0]) for h, v in want.items() if v[0]} }, the test expects {step.expect}")
        data = {k: v for k, v in cpu.items() if k not in ALWAYS_CPU}
        if step.fits and data:
            wrong.append(f"{step.name}: fits and is supported, yet the CPU saw {data}")
    return wrong


# ------------------------------------------------------------------------------------------ switches to play on


def mute(sw):
    """Hosts that are only wires: no addresses of their own, no IPv6, no answers."""
    for h in sw.hosts.values():
        h.ns.sysctl(ipv6__conf__all__disable_ipv6=1, ipv4__conf__all__arp_ignore=8)


def port_macs(sw):
    macs = {}
    for line in sw.ns.ip("-o link show").splitlines():
        words = line.split()
        name = words[1].rstrip(":").split("@")[0]
        if name.startswith("swp") and "link/ether" in words:
            macs[int(name[3:])] = words[words.index("link/ether") + 1]
    return macs


def lone(make, aliens=(), prepare=None):
    """The two switches, the kernel alone first: same hosts, same MAC addresses, muted.

    `aliens`: further hosts whose cable ends in the switch's namespace itself, at an interface called x<host>.
    `prepare(switch)` sees each before it has ports: what new interfaces inherit.
    """
    asic = make.asic()
    if prepare:
        prepare(asic)
    for i, h in enumerate(HOSTS, 1):
        asic.host(h, i, MAC[h])
    asic.start()
    kernel = make.kernel(port_macs=port_macs(asic))
    if prepare:
        prepare(kernel)
    for i, h in enumerate(HOSTS, 1):
        kernel.host(h, i, MAC[h])
    for sw in (kernel, asic):
        for h in aliens:
            sw.hosts[h] = Host(sw.prefix, h, MAC[h])
            net.cable(sw.hosts[h].ns, "eth0", sw.ns, f"x{h}", a_mac=MAC[h], b_mac=MAC[h].replace("02:", "06:", 1))
        mute(sw)
        # the switch's own chatter: no autoconfiguration, no multicast reports of its own
        sw.ns.sysctl(ipv6__conf__default__accept_ra=0, ipv4__icmp_ratemask=0, ipv6__icmp__ratelimit=0,
                     ipv4__icmp_msgs_per_sec=100000, ipv4__icmp_msgs_burst=100000)
    return kernel, asic


def both(make, configure, steps, aliens=()):
    """Plays the steps on both, side by side; returns the differences and the switch with the ASIC. `steps` gets the
    port MACs."""
    switches = lone(make, aliens)
    macs = port_macs(switches[1])

    def one(sw):
        configure(sw)
        with contextlib.ExitStack() as stack:
            wires = {h: stack.enter_context(packet.Wire(host.ns)) for h, host in sw.hosts.items()}
            return play(sw, steps(macs), wires)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(one, switches))
    return compare(steps(macs), *results), switches[1]


def bridge(sw, options="", ports=HOSTS):
    """br0 over the ports of these hosts, without IPv6 of its own and without snooping unless `options` has it."""
    ports = [f"swp{h[1:]}" for h in ports]
    for p in ports:
        sw.ip(f"link set {p} up")
    sw.ip(f"link add br0 address 02:00:00:00:01:00 type bridge mcast_snooping 0 {options}")
    sw.ns.sysctl(ipv6__conf__br0__disable_ipv6=1)
    for p in ports:
        sw.ns.sysctl(**{f"ipv6__conf__{p}__disable_ipv6": 1})
        sw.ip(f"link set {p} master br0")
    sw.ip("link set br0 up")
    sw.sync()


def data(dst, src, payload=b"data", **kw):
    """A datagram between addresses that are nobody's."""
    return udp4_frame(dst, src, "192.0.2.1", "192.0.2.2", data=payload, **kw)


def tagged(frame, *vids, tpid=packet.ETH_8021Q):
    """The frame with tags put in front, outermost first; `tpid` is the outermost one's, the others are 802.1Q."""
    tags = b"".join(struct.pack("!HH", tpid if i == 0 else packet.ETH_8021Q, v) for i, v in enumerate(vids))
    return frame[:12] + tags + frame[12:]


def clsact(sw, n):
    """As every script does it. Before kernel 6.6 switchd's programs are in a clsact of its own: there `replace`."""
    how = "add" if not sw.has_asic or TCX else "replace"
    sw.ns.exec("tc", "qdisc", how, "dev", f"swp{n}", "clsact")


def nft(sw, *commands):
    """nft commands in the switch's namespace."""
    sw.ns.exec("nft", "-f", "-", stdin="\n".join(commands) + "\n")
