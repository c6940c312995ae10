# SPDX-License-Identifier: Apache-2.0
"""For the L2 tests: the machine's NICs p1… are cabled to swp1…; raw frames in, what comes out of every NIC.

A test file is a script: `l2.main()` runs its functions test_*, each on ports as new, and exits 1 if one fails.

A process costs 50 ms here: what is asked often is one process, or none.
"""

import array
import fcntl
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


def batch(tool, *lines, check=True):
    """Lines for `ip` or `bridge`, all in one process. With check=False what fails is passed over."""
    words = [tool, "-batch", "-"] if check else [tool, "-force", "-batch", "-"]
    done = subprocess.run(words, check=False, input="\n".join(lines), capture_output=True, text=True, timeout=60)
    if check and done.returncode:
        raise AssertionError(f"{tool}: {done.stderr.strip()}")


def host(command):
    """What a command of the host prints: the lab's `host COMMAND`, without its processes."""
    share = "/run/lab/.lab"
    with open("/run/lab-host.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(f"{share}/host.command", "w") as file:
            file.write(command + "\n")
        with open("/dev/lab.ctl", "r+b", buffering=0) as ctl:
            ctl.write(b"go\n")
            code = ctl.readline().strip()
        with open(f"{share}/host.out") as out, open(f"{share}/host.err") as err:
            text, trouble = out.read(), err.read()
    if code != b"0":
        raise AssertionError(f"host {command}: {trouble.strip()}")
    return text


_pace = 0.0


def pace():
    """How much faster than the host's the machine's clock runs: an emulated processor that had to wait while it
    measured its clock is wrong by as much, for as long as it lives."""
    global _pace
    if not _pace:
        began = time.monotonic()
        host("sleep 0.5")
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
        self.got = []  # since the last look

    def send(self, data):
        self.socket.send(data)

    def read(self):
        while True:
            try:
                data, extra, _, _ = self.socket.recvmsg(65600, 64)
            except BlockingIOError:
                got, self.got = self.got, []
                return got
            for level, kind, value in extra:
                if level == SOL_PACKET and kind == PACKET_AUXDATA:
                    status, _, _, _, _, tci, tpid = struct.unpack_from("IIIHHHH", value)
                    if status & TP_STATUS_VLAN_VALID:
                        data = data[:12] + struct.pack("!HH", tpid or 0x8100, tci) + data[12:]
            self.got.append(data.ljust(60, b"\0"))


def untagged(data):
    """What a frame keeps on its way, whatever tag it has: addresses, type, payload."""
    rest = data[12:]
    while rest[:2] == b"\x81\x00":
        rest = rest[4:]
    return data[:12] + rest.rstrip(b"\0")


class Bench:
    """Ports and NICs as new."""

    def __init__(self):
        self.devices = []
        self.seen = {}  # frame without its tag: {NIC: [frames]}
        self.told = {}  # the same, how many of each NIC a test has been told of
        for n in range(1, PORTS + 1):
            no_ipv6(f"p{n}")
            no_ipv6(f"swp{n}")
        batch("ip", *(line for n in range(1, PORTS + 1)
                      for line in (f"link set p{n} up", f"link set swp{n} nomaster", f"link set swp{n} up")))
        self.nic = {n: Nic(f"p{n}") for n in range(1, PORTS + 1)}
        for n in range(1, PORTS + 1):
            if not until(lambda n=n: reads(f"/sys/class/net/swp{n}/operstate", "up"), 10):
                raise AssertionError(f"swp{n} has no carrier")

    def bridge(self, name="br0", ports=None, **options):
        options.setdefault("mcast_snooping", 0)
        words = " ".join(f"{k} {v}" for k, v in options.items())
        batch("ip", f"link add {name} type bridge {words}")
        self.devices.append(name)
        no_ipv6(name)
        batch("ip", *(f"link set swp{n} master {name}" for n in ports or self.nic), f"link set {name} up")
        for n in ports or self.nic:
            state = f"/sys/class/net/swp{n}/brport/state"
            if not until(lambda state=state: reads(state, "3")):
                raise AssertionError(f"swp{n} does not forward")
        settle()
        return name

    def look(self):
        """Takes what has come out of the NICs."""
        for n, nic in self.nic.items():
            for data in nic.read():
                self.seen.setdefault(untagged(data), {}).setdefault(n, []).append(data)

    def copies(self, data):
        """{port: [frames that came out there with these addresses and this payload]}, without empty ones."""
        self.look()
        return self.seen.get(untagged(data), {})

    def send(self, port, data, wait=0.4):
        """Sends by one NIC; the copies that have come out then."""
        self.nic[port].send(data)
        time.sleep(wait * pace())
        return self.copies(data)

    def expect(self, port, data, wanted, what):
        """Sends by one NIC; the frame comes out of the wanted ports, as often as each is listed, and of no other.

        Done shortly after all are there: what comes later fails the test at its end."""
        self.nic[port].send(data)
        end = time.monotonic() + 3 * pace()
        while wanted and sum(map(len, self.copies(data).values())) < len(wanted) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep((0.05 if wanted else 0.25) * pace())
        got = self.copies(data)
        self.told[untagged(data)] = {n: len(frames) for n, frames in got.items()}
        equal(sorted(n for n, frames in got.items() for _ in frames), wanted, what)

    def nothing_late(self):
        """Nothing has come out since a test was told what had."""
        self.look()
        for key, told in self.told.items():
            equal({n: len(frames) for n, frames in self.seen.get(key, {}).items()}, told, f"later, of {key.hex()}")

    def close(self):
        for nic in self.nic.values():
            nic.socket.close()
        batch("ip", *(f"link del {name}" for name in reversed(self.devices)),
              *(f"link set swp{n} nomaster" for n in range(1, PORTS + 1)), check=False)


def no_ipv6(name):
    with open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w") as file:
        file.write("1")


class Ethtool:
    """The counters of `ethtool -S`, without its process (include/uapi/linux/ethtool.h)."""

    SIOCETHTOOL, GDRVINFO, GSTRINGS, GSTATS = 0x8946, 3, 0x1B, 0x1D

    def __init__(self, name):
        self.name = name.encode()
        (count,) = struct.unpack_from("I", self.ask(struct.pack("I", self.GDRVINFO), 196), 180)
        text = self.ask(struct.pack("III", self.GSTRINGS, 1, count), 12 + 32 * count)[12:]
        self.names = [text[32 * i:32 * i + 32].split(b"\0")[0].decode() for i in range(count)]

    def ask(self, head, size):
        data = array.array("B", head.ljust(size, b"\0"))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            fcntl.ioctl(s, self.SIOCETHTOOL, struct.pack("16sP16x", self.name, data.buffer_info()[0]))
        return data.tobytes()

    def counters(self):
        count = len(self.names)
        values = struct.unpack_from(f"{count}Q", self.ask(struct.pack("II", self.GSTATS, count), 8 + 8 * count), 8)
        return dict(zip(self.names, values, strict=True))


def cpu_rx():
    """Frames that all ports gave to the CPU."""
    return sum(Ethtool(f"swp{n}").counters()["cpu_rx_packets"] for n in range(1, PORTS + 1))


def cpu_saw(before, wanted, what):
    """So many frames reached the CPU since cpu_rx() was `before`."""
    if not wanted:
        time.sleep(0.1 * pace())
    until(lambda: cpu_rx() - before >= wanted)
    equal(cpu_rx() - before, wanted, what)


def tables(*names):
    """Tables of the chip (1000 rows at most), asked of the chip itself, all in one go."""
    pages = " ".join(f'"/v1/table/{name}?limit=1000"' for name in names)
    text = host(f"python3 tests/vm/chip.py {pages}")
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
        time.sleep(0.2 * pace())


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
            bench.nothing_late()
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
