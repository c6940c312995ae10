# SPDX-License-Identifier: Apache-2.0
"""The ports' netdevs: a port renamed is the same port; one that was deleted is missed, said, and made again; one split.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest

from lib import net
from lib.switch import binaries


@pytest.fixture
def sw(make):
    return make.asic().route_hosts(2)


def up(sw, i):
    sw.ip(f"link set swp{i} up")
    sw.ip(f"addr add 10.{i}.0.1/24 dev swp{i}")


def has_carrier(sw, dev):
    return "LOWER_UP" in sw.ip("-o link show", dev)


def test_a_renamed_port_is_the_same_port(sw):
    sw.ip("link set swp1 down")
    sw.ip("link set swp1 name uplink")
    sw.ip("link set uplink up")
    sw.sync()
    net.wait_until("h1 to reach h2 again", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)
    # carrier follows the cable still
    sw.hosts["h1"].ns.ip("link set eth0 down")
    net.wait_until("uplink without carrier", lambda: not has_carrier(sw, "uplink"), timeout=5)
    sw.hosts["h1"].ns.ip("link set eth0 up")
    net.wait_until("uplink with carrier", lambda: has_carrier(sw, "uplink"), timeout=5)
    assert sw.ports()["swp1"]["netdev"] == "uplink"
    # and the next switchd finds it under its new name
    sw.kill("switchd")
    sw.tandem("up", timeout=60)
    sw.sync()
    assert "uplink" in sw.ip("-o link show") and "swp1:" not in sw.ip("-o link show")
    sw.hosts["h1"].ns.ip("route replace default via 10.1.0.1")
    sw.hosts["h1"].ping("10.2.0.2", count=3, check=True)


def test_a_deleted_port_is_said_and_made_again(sw):
    sw.ip("link del swp2")
    net.wait_until("a warning", lambda: any("swp2: its netdev is gone" in w for w in warnings(sw)), timeout=5)
    sw.sync()
    row = sw.ports()["swp2"]
    assert (row["netdev"], row["state"], row["reason"]) == ("", "trap", "its netdev is gone"), row
    out = sw.tandem("audit", "--wait", "2", check=False, timeout=60)
    assert "no differences" in out, out
    sw.kill("switchd")
    sw.tandem("up", timeout=60)
    up(sw, 2)
    net.wait_until("h1 to reach h2 again", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)
    assert not any("netdev is gone" in w for w in warnings(sw))


def test_a_port_in_another_namespace_is_that_ones(sw):
    """swp2 moves: its host reaches whoever is there, through the CPU; nothing of it is left in the switch's own
    kernel. It comes back, and is the chip's again."""
    other = net.Namespace(f"{sw.prefix}other")
    try:
        h1, h2 = sw.hosts["h1"], sw.hosts["h2"]
        sw.ip(f"link set swp2 netns {other.name}")
        net.wait_until("a warning", lambda: any("swp2: its netdev is in another" in w for w in warnings(sw)),
                       timeout=5)
        other.ip("link set swp2 up")
        other.ip("addr add 10.2.0.1/24 dev swp2")
        net.wait_until("h2 to reach the other kernel", lambda: h2.ping("10.2.0.1"), timeout=10)
        assert h2.ping("10.2.0.1", count=5, interval=0.05, size=1400) == 5
        assert h1.ping("10.2.0.2", count=2, interval=0.1) == 0, "two namespaces are two routers"
        sw.sync()
        row = sw.ports()["swp2"]
        assert (row["state"], row["reason"]) == ("trap", "its netdev is in another network namespace"), row
        out = sw.tandem("audit", "--wait", "2", check=False, timeout=60)
        assert "no differences" in out, out
        other.ip(f"link set swp2 netns {sw.ns.name}")
        sw.gateway(2)
        net.wait_until("h1 to reach h2 again", lambda: h1.ping("10.2.0.2"), timeout=10)
        assert not any("its netdev" in w for w in warnings(sw))
        sw.sync()
        before = sw.cpu_packets()
        assert h1.ping("10.2.0.2", count=5, interval=0.05) == 5
        assert not {k for k in sw.cpu_delta(before) if k not in ("arp", "nd", "igmp_mld")}, "the chip forwards again"
    finally:
        other.delete()


def watched(pid):
    """What a process' epoll instances watch: pairs of descriptors."""
    found = set()
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                found |= {(fd, line.split()[1]) for line in f if line.startswith("tfd:")}
        except FileNotFoundError:
            pass
    return found


def test_a_busy_port_is_watched_again_before_asicd_sleeps(sw):
    """While frames come one after the other nobody needs to be told of them; who sleeps does."""
    pid = sw.pid("asicd")
    sw.sync()
    idle, busy = watched(pid), set()
    frame = bytes.fromhex("02000000999902000000000188b5") + bytes(46)

    def flood():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
            s.bind(("eth0", 0))
            deadline = time.monotonic() + net.PATIENCE
            while not busy and time.monotonic() < deadline:
                for _ in range(2000):
                    s.send(frame)
                busy.update(idle - watched(pid))

    net.in_netns(sw.hosts["h1"].ns.name, flood)
    assert busy, "no descriptor was taken out of epoll while frames came one after the other"
    net.wait_until("all descriptors in epoll again", lambda: idle <= watched(pid), timeout=5)
    sw.hosts["h1"].ping("10.2.0.2", count=3, check=True)


def test_a_datagram_socket_is_a_port(make, tmp_path):
    """A process has the far end, as QEMU's -netdev dgram does; the link is up while it is there."""
    switch, nic = str(tmp_path / "switch"), str(tmp_path / "nic")
    s = make.asic(profile="tiny")
    s.host("h1", 1, mac="02:aa:00:00:00:01").address("10.3.0.1/24")
    s.cables.append(f"swp2=dgram:{switch},{nic}")
    s.start()
    s.ip("link add br0 up type bridge mcast_snooping 0 forward_delay 0")
    for i in (1, 2):
        s.ip(f"link set swp{i} master br0 up")
    assert not has_carrier(s, "swp2"), "nobody is there"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as far:
        far.bind(nic)
        far.settimeout(0.2)
        net.wait_until("swp2 with carrier", lambda: has_carrier(s, "swp2"), timeout=5)
        s.sync()
        mac = bytes.fromhex("02bb00000002")
        question = bytes.fromhex("0001080006040001") + mac + bytes([10, 3, 0, 2]) + bytes(6) + bytes([10, 3, 0, 1])

        def answered():
            far.sendto((b"\xff" * 6 + mac + b"\x08\x06" + question).ljust(60, b"\0"), switch)
            try:
                while True:
                    frame = far.recv(2000)
                    if frame[:6] == mac and frame[12:14] == b"\x08\x06":
                        return frame
            except TimeoutError:
                return None

        frame = net.wait_until("h1 to answer ARP", answered, timeout=10)
        assert frame[6:12] == bytes.fromhex("02aa00000001")
        far.sendto(b"short", switch)
    net.wait_until("swp2 without carrier", lambda: not has_carrier(s, "swp2"), timeout=5)
    assert os.stat(switch).st_mode & 0o777 == 0o600
    s.tandem("down")
    assert not os.path.exists(switch)


def warnings(sw):
    return sw.json("status")["switchd"]["warnings"]


def netdevs(sw):
    return {line.split()[0] for line in sw.ip("-br link").splitlines()}


def test_a_split_that_does_not_get_ready_is_undone(make, tmp_path):
    """switchd with other netdevs starts, has its lock and gets no further: it ends before the one of before starts."""
    sw = make.asic().route_hosts(2)
    bins = binaries()
    for name in ("tandem", "asicd"):
        shutil.copy2(os.path.join(bins, name), tmp_path / name)
    slow = tmp_path / "switchd"
    # it holds its pid file as switchd does, and hears no SIGTERM
    slow.write_text(f"""#!/bin/sh
case " $* " in *" --split "*)
    trap '' TERM
    exec 9<>{sw.run_dir}/switchd.pid
    flock 9
    echo $$ >{sw.run_dir}/switchd.pid
    exec sleep 600 ;;
esac
exec {bins}/switchd "$@"
""")
    slow.chmod(0o755)
    with pytest.raises(net.CommandError) as e:
        sw.ns.exec(tmp_path / "tandem", "--name", sw.instance, "port", "split", "swp1", "2", timeout=60)
    assert "switchd is not ready in time" in str(e.value) and "lock" not in str(e.value), str(e.value)
    sw.sync()
    assert {"swp1", "swp2"} <= netdevs(sw), netdevs(sw)
    for i in (1, 2):
        sw.ip(f"link set swp{i} up")
        sw.ip(f"addr replace 10.{i}.0.1/24 dev swp{i}")
    net.wait_until("h1 to reach h2", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)


def test_a_port_is_split_and_made_whole_again(make):
    """The parts take the neighbour's number; others forward on meanwhile; a wrong split changes nothing."""
    sw = make.asic()
    for i in (3, 4):
        sw.host(f"h{i}", i).address(f"10.9.0.{i}/24")
    sw.route_hosts(2)
    sw.ip("link add br0 up type bridge")
    for i in (3, 4):
        sw.ip(f"link set swp{i} up master br0")
    h3 = sw.hosts["h3"]
    net.wait_until("h3 to reach h4", lambda: h3.ping("10.9.0.4"), timeout=10)
    sw.sync()
    for words, why in ((("swp1", "3"), "can be split into 2 or 4"), (("swp2", "2"), "this row's first is swp1"),
                       (("swp77", "2"), "has no such port")):
        with pytest.raises(net.CommandError) as e:
            sw.tandem("port", "split", *words)
        assert why in str(e.value), str(e.value)
        assert h3.ping("10.9.0.4")

    stream = h3.ns.popen("ping", "-q", "-i", "0.02", "10.9.0.4", stdout=subprocess.PIPE, text=True)
    sw.tandem("port", "split", "swp1", "2")
    stream.send_signal(signal.SIGINT)
    said = stream.communicate(timeout=20)[0]
    sent, received = (int(n) for n in re.search(r"(\d+) packets transmitted, (\d+) received", said).groups())
    # the last one may be on its way when the stream is told to end
    assert sent > 1 and received >= sent - 1, said
    assert {"swp1s0", "swp1s1", "swp3"} <= netdevs(sw) and not {"swp1", "swp2"} & netdevs(sw), netdevs(sw)
    rows = {r["port"]: r["name"] for r in sw.show("ports")}
    assert (rows[1], rows[2], rows[3]) == ("swp1s0", "swp1s1", "swp3"), rows
    for i, part in ((1, "swp1s0"), (2, "swp1s1")):
        sw.ip(f"link set {part} up")
        sw.ip(f"addr add 10.{i}.0.1/24 dev {part}")
    net.wait_until("h1 to reach h2 by the parts", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)
    sw.kill("switchd")
    sw.tandem("up")
    assert sw.hosts["h1"].ping("10.2.0.2"), "a restart keeps the parts"
    assert "port 2," in sw.tandem("trace", "swp1s1", "--icmp", "10.2.0.2", "10.1.0.2"), "its number is the neighbour's"

    sw.tandem("port", "unsplit", "swp1")
    assert {"swp1", "swp2"} <= netdevs(sw) and not {"swp1s0", "swp1s1"} & netdevs(sw), netdevs(sw)
    for i in (1, 2):
        sw.ip(f"link set swp{i} up")
        sw.ip(f"addr add 10.{i}.0.1/24 dev swp{i}")
    net.wait_until("h1 to reach h2 again", lambda: sw.hosts["h1"].ping("10.2.0.2"), timeout=10)
    assert "no differences" in sw.tandem("audit", "--wait", "5")
