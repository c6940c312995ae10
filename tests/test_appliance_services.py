# SPDX-License-Identifier: Apache-2.0
"""What the appliance tells others, and what daemons that others keep do for it: syslog, DHCP relay, NTP, SNMP.

    c (asks for an address) ── port 3, access 2 ─┐
                                                 ├─ swcfgd, dnsmasq, chronyd, snmpd ── vlan2 10.2.0.1, vlan3 10.3.0.1
    s 10.3.0.4 (has all the servers) ── port 4, access 3 ─┘
"""

import os
import re
import socket
import struct
import subprocess

import pytest

from lib import net
from lib.appliance import ChipSwitch
from lib.services import Systemd, missing

CONFIG: dict = {
    "vlans": {"2": {}, "3": {}},
    "interfaces": {
        "port3": {"access": 2},
        "port4": {"access": 3},
        "vlan2": {"ipv4": "10.2.0.1/24"},
        "vlan3": {"ipv4": "10.3.0.1/24"},
    },
    "routing": True,
}


@pytest.fixture
def switch(make, folder):
    if missing():
        pytest.fail(f"needs Debian's {' '.join(missing())} (./run test installs them)")
    sw = ChipSwitch(make.prefix())
    systemd, servers = None, []
    try:
        sw.host("c", 3, "02:00:00:00:0a:03")
        s = sw.host("s", 4).address("10.3.0.4/24", gateway="10.3.0.1")
        sw.start(CONFIG)
        sw.config = None  # as it is kept
        systemd = Systemd(sw, os.path.join(folder, "systemd"))
        yield sw, s, systemd, servers
    finally:
        for process in servers:
            process.terminate()
            process.wait(10)
        if systemd:
            systemd.stop()
            print(*[systemd.log(name) for name in ("dhcp-relay", "snmpd", "lldp", "lldp-neighbors")])
        print(sw.log("swcfgd"))
        sw.delete()


def config(sw, *lines):
    return sw.cli("configure terminal", *lines, "end")


def heard(ns, port=514):
    """A socket that has what comes to a port."""
    def listen():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(("0.0.0.0", port))
        s.settimeout(net.PATIENCE)
        return s

    return net.in_netns(ns.name, listen)


def until(s, wanted):
    """The first datagram that has this in it."""
    while True:
        text = s.recv(2048).decode()
        if re.search(wanted, text):
            return text


def test_syslog_and_links(switch):
    sw, s, *_ = switch
    with heard(s.ns) as log:
        config(sw, "hostname box", "logging host 10.3.0.4", "logging origin-id hostname", "snmp-server contact x")
        stamp = r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d\.\d{3}"
        first = until(log, "snmp-server contact x")
        assert re.fullmatch(rf"<189>\d+: box: {stamp}: %PARSER-5-CFGLOG_LOGGEDCMD: User:\S.*  logged command:"
                            "snmp-server contact x", first), first
        assert ": %SYS-5-CONFIG_I: Configured from console by " in until(log, "CONFIG_I")
        # a cable that is pulled, and put in again
        name = next(n for n in sw.links() if n.endswith("/3"))
        for word, how in (("down", "down"), ("up", "up")):
            sw.hosts["c"].ns.ip("link set eth0", how)
            text = until(log, f"%LINK-3-UPDOWN: .*{word}$")
            assert text.endswith(f": %LINK-3-UPDOWN: Interface {name}, changed state to {word}"), text
            assert f"Line protocol on Interface {name}, changed state to {word}" in until(log, "%LINEPROTO-5-UPDOWN")
        config(sw, "logging trap errors")
        config(sw, "no logging host 10.3.0.4")
    shown = sw.cli("show logging")
    assert re.search(rf"^{stamp}: %LINK-3-UPDOWN: Interface {name}, changed state to down$", shown, re.M), shown
    assert "Trap logging: level errors" in shown
    # the daemon's own warnings are there as well: of its last one, and of this one
    with open(sw.startup(), "w", encoding="utf-8") as f:
        f.write("nonsense\nhostname box\n")
    sw.kill()
    sw.start_swcfgd()
    assert re.search(r": %TANDEM-4-WARNING: startup-config: line 1: nonsense: .*$", sw.cli("show logging"), re.M)
    assert ": %SYS-5-RESTART: System restarted" in sw.cli("show logging")


def offer(ns, mac):
    """What a client that asks for an address is offered, or None: the address, the server, who has passed it on."""
    def ask():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"eth0\0")
            s.bind(("0.0.0.0", 68))
            s.settimeout(1)
            station = bytes.fromhex(mac.replace(":", ""))
            head = struct.pack("!BBBBIHH4s4s4s4s16s", 1, 1, 6, 0, 0x1234567, 0, 0x8000, b"", b"", b"", b"", station)
            s.sendto(head + bytes(192) + b"\x63\x82\x53\x63" + b"\x35\x01\x01\xff" + bytes(60), ("255.255.255.255", 67))
            try:
                said = s.recv(2048)
            except TimeoutError:
                return None
            return tuple(socket.inet_ntoa(said[at:at + 4]) for at in (16, 24))

    return net.in_netns(ns.name, ask)


def test_dhcp_relay(switch, folder):
    sw, s, systemd, servers = switch
    lease = os.path.join(folder, "leases")
    servers.append(s.ns.popen("/usr/sbin/dnsmasq", "-k", "-C", "/dev/null", "-p", "0", "--dhcp-authoritative",
                              "--dhcp-range=10.2.0.100,10.2.0.120,255.255.255.0,1h", f"--dhcp-leasefile={lease}",
                              "--no-ping", "-u", "root", stderr=subprocess.DEVNULL))
    c = sw.hosts["c"]
    assert systemd.flags() == []
    config(sw, "interface vlan 2", "ip helper-address 10.3.0.4")
    assert systemd.flags() == ["dhcp-relay"]
    assert systemd.turn() == ["dhcp-relay"]
    got = net.wait_until("an offer", lambda: offer(c.ns, c.mac))
    assert re.fullmatch(r"10\.2\.0\.1[012]\d", got[0]) and got[1] == "10.2.0.1", got
    # another swcfgd changes nothing; what goes, goes
    sw.cli("write memory")
    sw.kill()
    sw.start_swcfgd()
    assert systemd.flags() == []
    net.wait_until("an offer", lambda: offer(c.ns, c.mac))
    config(sw, "interface vlan 2", "shutdown", "no shutdown")
    assert systemd.turn() == ["dhcp-relay"]
    net.wait_until("an offer", lambda: offer(c.ns, c.mac))
    config(sw, "interface vlan 2", "no ip helper-address")
    assert systemd.turn() == ["dhcp-relay"] and "dhcp-relay" not in systemd.running
    assert offer(c.ns, c.mac) is None


def test_ntp(switch, folder):
    sw, s, systemd, servers = switch
    with pytest.raises(AssertionError, match="% chronyd is not reached: "):
        sw.cli("show ntp status")
    where = os.path.join(folder, "server")
    os.makedirs(where)
    with open(os.path.join(where, "conf"), "w", encoding="utf-8") as f:
        f.write(f"local stratum 8\nallow\nuser root\nbindcmdaddress {where}/sock\npidfile {where}/pid\ncmdport 0\n")
    servers.append(s.ns.popen("/usr/sbin/chronyd", "-x", "-d", "-f", f"{where}/conf", stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL))
    systemd.chronyd()
    net.wait_until("chronyd", lambda: "Clock is unsynchronized, stratum 16" in sw.cli("show ntp status"))
    config(sw, "ntp server 10.3.0.4 iburst", "ntp server 10.3.0.99")
    assert systemd.flags() == ["ntp"] and systemd.turn() == []
    net.wait_until("the server to be followed", lambda: re.search(
        r"^\*~10\.3\.0\.4 +- +8 +\d+ +\d+ +\d+ ", sw.cli("show ntp associations"), re.M))
    assert re.search(r"^ ~10\.3\.0\.99 +- +0 +- +\d+ +0 ", sw.cli("show ntp associations"), re.M)
    net.wait_until("the clock to follow it", lambda: (
        "Clock is synchronized, stratum 9, reference is 10.3.0.4\n" in sw.cli("show ntp status")))
    config(sw, "no ntp server 10.3.0.4", "no ntp server 10.3.0.99")
    systemd.turn()
    net.wait_until("nobody to be asked", lambda: "10.3.0" not in sw.cli("show ntp associations"))


def test_snmp(switch):
    sw, s, systemd, _ = switch

    def get(community, oid):
        said = s.ns.exec("snmpget", "-v2c", "-c", community, "-t", "1", "-r", "4", "-Oqv", "10.3.0.1", oid, check=False)
        return said.strip().strip('"')

    config(sw, "hostname box", "snmp-server location Rack 7, left", "snmp-server contact noc")
    assert systemd.flags() == []
    config(sw, "snmp-server community s3cret ro")
    assert systemd.turn() == ["snmpd"]
    net.wait_until("snmpd", lambda: get("s3cret", "1.3.6.1.2.1.1.6.0") == "Rack 7, left")
    assert get("s3cret", "1.3.6.1.2.1.1.5.0") == "box"
    assert get("s3cret", "1.3.6.1.2.1.1.4.0") == "noc"
    assert get("s3cret", "1.3.6.1.2.1.1.1.0").startswith("Tandem Software, Version ")
    assert get("public", "1.3.6.1.2.1.1.6.0") == ""
    config(sw, "no snmp-server community s3cret")
    assert systemd.turn() == ["snmpd"] and "snmpd" not in systemd.running


def test_lldp(switch, folder):
    sw, s, systemd, servers = switch
    own = os.path.join(folder, "lldpd")
    with open(f"{own}.conf", "w", encoding="utf-8") as f:
        f.write("configure lldp tx-interval 1\n")
    servers.append(s.ns.popen("/usr/sbin/lldpd", "-d", "-u", own, "-O", f"{own}.conf", stderr=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL))
    ports = [n for n in sw.links() if "/" in n]
    short = next(re.sub("^([A-Z][a-z])[A-Za-z]+", r"\1", n) for n in ports if n.endswith("/4"))
    assert "port4" not in sw.ns.ip("-o link show")
    config(sw, "hostname box", "lldp run")
    assert sw.ns.ip("-o link show").count(" port") == len(ports)
    assert systemd.turn() == ["lldp"]
    net.wait_until("lldpd to answer", lambda: os.path.exists(os.path.join(sw.run_dir, "services/neighbors")))
    row = net.wait_until("the neighbour to be heard", lambda: re.search(
        rf"^\S+ +{short} +\d+ +.*$", sw.cli("show lldp neighbors"), re.M), timeout=3 * net.PATIENCE)
    assert row
    assert "Port Description: eth0\n" in sw.cli("show lldp neighbors detail")

    def heard_there():
        return s.ns.exec("lldpcli", "-u", own, "-f", "keyvalue", "show", "neighbors", check=False)

    said = net.wait_until("the switch to be heard", lambda: heard_there() if "port.local=" in heard_there() else "",
                          timeout=3 * net.PATIENCE)
    assert f"lldp.eth0.port.local={short}\n" in said and "lldp.eth0.chassis.name=box\n" in said
    # nobody else has it, and the other host is no neighbour of anybody
    assert sw.cli("show lldp neighbors").endswith("Total entries displayed: 1\n")
    # a cable that is pulled has nobody at its other end
    s.ns.ip("link set eth0 down")
    net.wait_until("the neighbour to be gone", lambda: "displayed: 0" in sw.cli("show lldp neighbors"))
    config(sw, "no lldp run")
    assert systemd.turn() == ["lldp"] and "lldp" not in systemd.running
    net.wait_until("the devices to be gone", lambda: " port" not in sw.ns.ip("-o link show"))
    with pytest.raises(AssertionError, match="LLDP is not enabled"):
        sw.cli("show lldp neighbors")
