# SPDX-License-Identifier: Apache-2.0
"""For the L2 tests: the machine's NICs p1… are cabled to swp1…; raw frames in, what comes out of every NIC.

A test file is a script: `l2.main()` runs its functions test_*, each on ports as new, and exits 1 if one fails.
"""

import json
import os
import socket
import struct
import subprocess
import sys
import time
import traceback

ETH_P_ALL = 3
SOL_PACKET = 263
PACKET_IGNORE_OUTGOING = 23
PACKET_AUXDATA = 8
PACKET_ADD_MEMBERSHIP = 1
TP_STATUS_VLAN_VALID = 1 << 4
EXPERIMENT = 0x88B5  # local experimental ethertype (IEEE 802)
BROADCAST = "ff:ff:ff:ff:ff:ff"
PORTS = int(os.environ.get("LAB_PORTS", "4"))


def run(command, check=True):
    done = subprocess.run(command, check=False, shell=True, capture_output=True, text=True, timeout=60)
    if check and done.returncode:
        raise AssertionError(f"{command}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def refused(command):
    """What the refusal says; AssertionError if it isn't one."""
    done = subprocess.run(command, check=False, shell=True, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        raise AssertionError(f"{command}: accepted")
    return done.stderr.strip()


_pace = 0.0


def pace():
    """How much faster than the host's the machine's clock runs: an emulated processor that had to wait while it
    measured its clock is wrong by as much, for as long as it lives."""
    global _pace
    if not _pace:
        began = time.monotonic()
        run("host sleep 0.5")
        _pace = max(1.0, (time.monotonic() - began) / 0.8)
    return _pace


def reads(path, text):
    with open(path) as file:
        return file.read().strip() == text


def until(what, seconds=5):
    """Waits until `what()` is true, and returns it. Seconds of the host."""
    end = time.monotonic() + seconds * pace()
    while True:
        value = what()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.05)


def mac(n, station=1):
    return f"02:00:00:00:{station:02x}:{n:02x}"


def raw_mac(text):
    return bytes.fromhex(text.replace(":", ""))


_serial = 0


def frame(dst, src, vid=None, kind=EXPERIMENT, data=b""):
    """A frame that no other one equals."""
    global _serial
    _serial += 1
    tag = struct.pack("!HH", 0x8100, vid) if vid is not None else b""
    body = data or struct.pack("!I", _serial)
    return (raw_mac(dst) + raw_mac(src) + tag + struct.pack("!H", kind) + body).ljust(60, b"\0")


def udp(dst_ip, src_ip="10.9.9.9"):
    """An IPv4 packet that nobody answers, without its Ethernet header."""
    global _serial
    _serial += 1
    data = struct.pack("!HHHH", 1000, 2000, 12, 0) + struct.pack("!I", _serial)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(data), 0, 0, 9, 17, 0, socket.inet_aton(src_ip),
                       socket.inet_aton(dst_ip))
    total = sum(struct.unpack("!10H", head))
    total = (total & 0xFFFF) + (total >> 16)
    return head[:10] + struct.pack("!H", ~total & 0xFFFF) + head[12:] + data


class Nic:
    """One end of a cable."""

    def __init__(self, name):
        self.name = name
        self.socket = s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.bind((name, ETH_P_ALL))
        s.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        s.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, struct.pack("IHH8s", socket.if_nametoindex(name), 1, 0, b""))
        s.setblocking(False)
        self.got = []

    def send(self, data):
        self.socket.send(data)

    def read(self):
        while True:
            try:
                data, extra, _, _ = self.socket.recvmsg(65600, 64)
            except BlockingIOError:
                return self.got
            for level, kind, value in extra:
                if level == SOL_PACKET and kind == PACKET_AUXDATA:
                    status, _, _, _, _, tci, tpid = struct.unpack_from("IIIHHHH", value)
                    if status & TP_STATUS_VLAN_VALID:
                        data = data[:12] + struct.pack("!HH", tpid or 0x8100, tci) + data[12:]
            self.got.append(data.ljust(60, b"\0"))

    def clear(self):
        self.read()
        self.got = []


class Bench:
    """Ports and NICs as new."""

    def __init__(self):
        self.devices = []
        for n in range(1, PORTS + 1):
            run(f"sysctl -qw net.ipv6.conf.p{n}.disable_ipv6=1 net.ipv6.conf.swp{n}.disable_ipv6=1")
            run(f"ip link set p{n} up; ip link set swp{n} nomaster; ip link set swp{n} up")
        self.nic = {n: Nic(f"p{n}") for n in range(1, PORTS + 1)}
        for n in range(1, PORTS + 1):
            if not until(lambda n=n: reads(f"/sys/class/net/swp{n}/operstate", "up"), 10):
                raise AssertionError(f"swp{n} has no carrier")

    def bridge(self, name="br0", ports=None, **options):
        options.setdefault("mcast_snooping", 0)
        words = " ".join(f"{k} {v}" for k, v in options.items())
        run(f"ip link add {name} type bridge {words}")
        self.devices.append(name)
        run(f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=1")
        for n in ports or self.nic:
            run(f"ip link set swp{n} master {name}")
        run(f"ip link set {name} up")
        for n in ports or self.nic:
            state = f"/sys/class/net/swp{n}/brport/state"
            if not until(lambda state=state: reads(state, "3")):
                raise AssertionError(f"swp{n} does not forward")
        settle()
        return name

    def clear(self):
        for nic in self.nic.values():
            nic.clear()

    def send(self, port, data, wait=0.4):
        """Sends by one NIC; {port: [frames that came out there with these addresses]}, without empty ones."""
        self.clear()
        self.nic[port].send(data)
        return self.came(data, wait)

    def came(self, data, wait=0.4):
        time.sleep(wait * pace())
        out = {}
        payload = data[18 if data[12:14] == b"\x81\x00" else 14:].rstrip(b"\0")
        for n, nic in self.nic.items():
            got = [f for f in nic.read() if f[:12] == data[:12] and payload in f]
            if got:
                out[n] = got
        return out

    def ports(self, port, data, **words):
        """The ports that a frame comes out of, each as often as it does."""
        got = self.send(port, data, **words)
        return sorted(n for n, frames in got.items() for _ in frames)

    def close(self):
        for nic in self.nic.values():
            nic.socket.close()
        for name in reversed(self.devices):
            run(f"ip link del {name}", check=False)
        for n in self.nic:
            run(f"ip link set swp{n} nomaster", check=False)
        settle()


def counter(port, name):
    for line in run(f"ethtool -S swp{port}").splitlines():
        key, _, value = line.strip().partition(": ")
        if key == name:
            return int(value)
    raise AssertionError(f"no counter {name}")


def cpu_rx():
    """Frames that all ports gave to the CPU."""
    return sum(counter(n, "cpu_rx_packets") for n in range(1, PORTS + 1))


def tables(*names):
    """Tables of the chip (1000 rows at most), asked of the chip itself, all in one go."""
    pages = " ".join(f'"/v1/table/{name}?limit=1000"' for name in names)
    text = run(f"host 'python3 tests/vm/chip.py {pages}'")
    return [json.loads(line)["items"] for line in text.splitlines() if line.strip()]


def table(name):
    return tables(name)[0]


def chip_fdb(address):
    return [row for row in table("fdb") if row["mac"] == address]


def kernel_fdb(address, vlan=None):
    rows = json.loads(run("bridge -j fdb show") or "[]")
    return [r for r in rows if r["mac"] == address and r.get("vlan") == vlan and "master" in r]


def settle(seconds=5):
    """Until the chip's L2 tables stay as they are: the kernel defers states and flags to a work item."""
    last, end = None, time.monotonic() + seconds * pace()
    while time.monotonic() < end:
        now = tables("ports", "vlans", "members")
        if now == last:
            return
        last = now
        time.sleep(0.1 * pace())


def equal(found, wanted, what=""):
    if found != wanted:
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")


def true(value, what):
    if not value:
        raise AssertionError(what)


def main():
    names = [(k, v) for k, v in sys.modules["__main__"].__dict__.items() if k.startswith("test_")]
    wanted = sys.argv[1:]
    failed = 0
    for name, test in names:
        if wanted and name not in wanted:
            continue
        began = time.monotonic()
        bench = None
        try:
            bench = Bench()
            test(bench)
            print(f"ok      {name} ({time.monotonic() - began:.1f} s)", flush=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the next test has its turn
            failed += 1
            where = traceback.extract_tb(error.__traceback__)
            line = next((f.lineno for f in where if f.name == name), 0)
            print(f"FAILED  {name}, line {line}: {error}", flush=True)
            if os.environ.get("L2_TRACE"):
                traceback.print_exc()
        finally:
            if bench:
                bench.close()
    sys.exit(1 if failed else 0)
