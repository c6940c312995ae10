# SPDX-License-Identifier: Apache-2.0
"""A switch that speaks OpenFlow, by its daemon and its command: real controllers, several of them, bad ones, none."""

import json
import os
import random
import signal
import socket
import ssl
import struct

import pytest

from lib import net, openflow
from lib.openflow import EQUAL, ERROR, FEATURES_REQUEST, MASTER, PACKET_IN, PORT_STATUS, ROLE_REPLY, Peer

CONTROLLER = ("--controller", f"tcp:127.0.0.1:{openflow.PORT}")
LISTENING = ("--controller", f"ptcp:127.0.0.1:{openflow.PORT}")


@pytest.fixture
def sw(request):
    yield from openflow.lives(request, openflow.Switch(openflow.new()))


@pytest.mark.parametrize("version", ["1.0", "1.3"])
def test_a_learning_controller_comes_goes_and_comes_back(sw, version):
    sw.up(*CONTROLLER, "--datapath-id", "0xabc", "--versions", version)
    assert sw.pings(1, 2, 1) == 0  # secure: nothing was told
    app = sw.app(f"learning{version.replace('.', '')}.py")
    sw.connected()
    sw.reaches(1, 2)
    sw.reaches(2, 1)
    assert sw.status()["datapath_id"] == "0000000000000abc"
    [row] = sw.show("controllers")
    assert (row["version"], row["state"], row["errors"]) == (version, "connected", 0)
    assert row["packet_ins"] > 0
    flows = [f for f in sw.show("flows") if f["priority"]]
    assert any("in_port=1" in f["match"] and f["instructions"] == "output:2" for f in flows), flows
    app.kill()
    app.wait(5)
    net.wait_until("the controller to be missed", lambda: sw.status()["controllers"] == 0)
    # its flows forward on
    assert sw.answered(1, 2)
    sw.app(f"learning{version.replace('.', '')}.py")
    sw.connected()
    sw.reaches(2, 1)


def test_without_a_controller_it_may_be_an_ordinary_switch(sw):
    sw.up(*CONTROLLER, "--fail", "standalone")
    sw.reaches(1, 2)
    assert sw.status()["standalone"]
    app = sw.app("learning13.py")
    sw.connected()
    assert not sw.status()["standalone"]
    sw.reaches(1, 2)
    app.kill()
    app.wait(5)
    sw.reaches(1, 2)
    assert sw.status()["standalone"]
    counted = {p["name"]: p["rx_packets"] for p in sw.show("ports")}
    assert counted["swp1"] > 0 and counted["swp2"] > 0


def test_masters_and_slaves(sw):
    sw.up(*LISTENING)
    a, b = sw.peer(), sw.peer()
    a.role(MASTER, 1)
    assert struct.unpack_from("!I", a.wait(ROLE_REPLY))[0] == MASTER
    b.role(MASTER, 2)
    b.wait(ROLE_REPLY)
    rows = [r["role"] for r in sw.show("controllers") if r["state"] == "connected"]
    assert sorted(rows) == ["master", "slave"]
    a.flow(0xfffffffd, priority=0)
    assert a.error() == (1, 10)  # IS_SLAVE
    a.role(MASTER, 1)
    assert a.error() == (11, 0)  # STALE
    b.flow(0xfffffffd, priority=0)
    b.barrier()
    sw.pings(1, 2, 1)
    assert b.wait(PACKET_IN)
    # a slave hears of ports, not of packets
    sw.hosts[1].ip("link set eth0 down")
    assert a.next()[0] == PORT_STATUS
    assert b.wait(PORT_STATUS)
    a.role(EQUAL, 0)
    a.wait(ROLE_REPLY)
    a.flow(2, in_port=1)
    a.barrier()
    assert len(sw.show("flows")) == 2


def test_garbage_harms_nobody_else(sw):
    sw.up(*LISTENING)
    good = sw.peer()
    good.flow(0xfffffffb)  # FLOOD
    good.barrier()
    chance = random.Random(7)
    for n in range(60):
        bad = sw.peer(hello=n % 2 == 0)
        try:
            for _ in range(20):
                length = chance.choice([0, 4, 8, 16, 60, 65535])
                body = chance.randbytes(max(0, min(length, 2000) - 8))
                head = struct.pack("!BBHI", chance.choice([1, 4, 4, 9]), chance.randrange(40), length, n)
                bad.s.sendall(head + body)
        except OSError:
            pass  # it was disconnected
        bad.close()
    # half a message, and then nothing
    half = sw.peer()
    half.s.sendall(b"\x04\x0e\x00")
    assert sw.answered(1, 2)
    assert good.ask(FEATURES_REQUEST)
    sw.connected(2)  # the good one, and who is not done with its message
    # one that floods the switch with what is answered by much, and reads nothing
    mute = sw.peer()
    mute.s.settimeout(2)
    asks = struct.pack("!BBHIHH4x", 4, 18, 16, 1, 12, 0)
    try:
        for _ in range(2000):
            mute.s.sendall(asks * 50)
    except OSError:
        pass
    assert sw.answered(1, 2)
    waiting = max(r.get("waiting_bytes", 0) for r in sw.show("controllers"))
    assert waiting < 4 << 20, waiting
    with open(f"/proc/{sw.pid()}/status", encoding="utf-8") as f:
        resident = [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0]
    assert resident < 150_000, f"{resident} kB"


def test_hellos_that_do_not_fit_are_refused_in_words(sw):
    sw.up(*LISTENING, "--versions", "1.3")
    peer = sw.peer(hello=False)
    assert peer.next()[0] == openflow.HELLO
    peer.s.sendall(struct.pack("!BBHI", 1, openflow.HELLO, 8, 5))
    kind, _, body = peer.next()
    assert kind == ERROR and struct.unpack_from("!HH", body) == (0, 0)
    assert b"speaks OpenFlow 1.3" in body
    assert peer.next() is None


def test_peers_do_not_fill_the_log(sw):
    sw.up(*LISTENING)
    good = sw.peer()
    for n in range(500):
        good.send(ERROR, struct.pack("!HH", 1, n % 9))
    good.barrier()
    for _ in range(100):
        peer = sw.peer(hello=False)
        peer.s.sendall(struct.pack("!BBHI", 9, FEATURES_REQUEST, 8, 5))
        while peer.next():
            pass
        peer.close()
    for _ in range(100):
        sw.peer().close()
    lines = [line for line in sw.log().splitlines() if "controller" in line]
    assert any(" says: " in line for line in lines), lines
    assert len(lines) < 50, f"{len(lines)} lines: {lines[-1]}"


def test_links_and_ports_that_come_and_go(sw):
    sw.up(*LISTENING)
    peer = sw.peer()
    sw.hosts[0].ip("link set eth0 down")
    down = peer.wait(PORT_STATUS)
    assert down[0] == 2 and struct.unpack_from("!I", down, 8)[0] == 1
    assert sw.show("ports")[0]["link"] == "down"
    sw.hosts[0].ip("link set eth0 up")
    assert peer.wait(PORT_STATUS)[0] == 2
    sw.host(3)
    assert "port 9" in sw.tandem("openflow", "port", "add", "swp3=p3:9")
    added = peer.wait(PORT_STATUS)
    assert added[0] == 0 and struct.unpack_from("!I", added, 8)[0] == 9
    peer.flow(0xfffffffb)
    peer.barrier()
    sw.reaches(1, 3)
    for words, why in [(("add", "swp3=p3"), "cabled to p3 already"), (("add", "swp4=p2:9"), "number 9 already"),
                       (("add", "swp4=none"), "no interface none"), (("del", "swp7"), "no port swp7"),
                       (("add", "what"), "no '='")]:
        code, _, err = sw.call("port", *words)
        assert code == 1 and why in err and err.count("\n") == 1, err
    sw.tandem("openflow", "port", "del", "swp3")
    while peer.wait(PORT_STATUS)[0] != 1:
        pass
    assert [p["name"] for p in sw.show("ports")] == ["swp1", "swp2"]
    # its netdev goes, and comes back under the same name
    sw.ns.ip("link del p2")
    net.wait_until("swp2 to be down", lambda: sw.show("ports")[1]["link"] == "down")
    net.cable(sw.hosts[1], "eth0", sw.ns, "p2")
    sw.hosts[1].ip("addr add 10.0.0.2/24 dev eth0")
    sw.reaches(1, 2)


def test_the_machine_itself_is_the_port_local(sw):
    sw.up(*LISTENING, "--local", "of0")
    sw.ns.ip("addr add 10.0.0.9/24 dev of0")
    sw.ns.ip("link set of0 up")
    peer = sw.peer()
    peer.flow(0xfffffffe, in_port=1)
    peer.flow(1, in_port=0xfffffffe)
    peer.barrier()
    sw.reaches(1, 9)
    assert [p["name"] for p in sw.show("ports")] == ["swp1", "swp2", "local"]
    assert sw.show("flows")[0]["match"] in ("in_port=1", "in_port=LOCAL")


def test_the_command_starts_stops_and_shows(sw):
    code, _, err = sw.call("show", "flows")
    assert code == 1 and "ofagentd is not running" in err and err.count("\n") == 1
    # 2: it can't be, wherever it is said; 1: it is not there
    for words, ends, why in [
            (("--port", "swp1=none"), 1, "no interface none"), (("--port", "x"), 2, "no '='"),
            (("--controller", "tcp:127.0.0.1:0"), 2, "no TCP port"),
            (("--controller", "ssl:127.0.0.1"), 2, "need --private-key, --certificate and --ca-cert"),
            (("--controller", "pssl:", "--private-key", "/none", "--certificate", "/none", "--ca-cert", "/none"), 1,
             "/none"),
            (("--controller", "ptcp:192.0.2.1:9"), 1, "ptcp:192.0.2.1:9"),
            (("--datapath-id", "none"), 2, "wanted a number, 0xHEX or 16 hexadecimal digits"),
            (("--versions", "1.2"), 2, "'1.2' is not spoken"),
            (("--port", "swp3=p3:x"), 2, "x is no number of a port"),
            (("--port", "swp1=p1", "--port", "swp3=p1"), 2, "p1 is cabled twice: to swp1 and to swp3"),
            (("--local", "lo"), 1, "there is an interface of this name"),
            (("--ca-cert", "/none"), 2, "for controllers by ssl: and pssl:, and there is none"),
            (("--lsi", "red:"), 2, "a port is missing")]:
        code, _, err = sw.call("up", *words)
        assert code == ends and why in err and err.count("\n") == 1, (words, err)
    assert "started" in sw.up(*LISTENING)
    status = sw.tandem("status")
    assert "ofagentd  pid" in status and "2 ports" in status and "not running" not in status, status
    assert "runs already" in sw.up(*LISTENING)
    assert "runs already" in sw.up(ports=[])
    code, _, err = sw.call("up", "--port", "swp1=p1")
    assert code == 1 and "other options" in err
    code, _, err = sw.call("show", "groups", "--table", "1")
    assert code == 2 and "--table is of flows" in err and err.count("\n") == 1, err
    peer = sw.peer()
    peer.flow(2, in_port=1)
    peer.flow(0xfffffffd, priority=0)
    peer.barrier()
    text = sw.tandem("openflow", "show", "flows")
    assert text.splitlines()[0].split()[:4] == ["TABLE", "PRIORITY", "MATCH", "DOES"]
    assert "in_port=1" in text and "output:2" in text and "CONTROLLER" in text
    for what in ("groups", "meters", "tables", "ports", "controllers"):
        assert sw.tandem("openflow", "show", what).strip()
    frame = "02:00:00:00:00:02 02:00:00:00:00:01 0800" + "00" * 46
    text = sw.tandem("openflow", "trace", "swp1", frame)
    assert "table 0" in text and "port 2" in text, text
    steps = json.loads(sw.tandem("-j", "openflow", "trace", "2", frame))["items"]
    assert [s["stage"] for s in steps] == ["table 0", "controller"]
    code, _, err = sw.call("trace", "swp9", frame)
    assert code == 1 and "no port swp9" in err
    code, _, err = sw.call("trace", "swp1", frame + "00" * 16384)
    assert code == 1 and "has 16444 bytes, not 14 to 16384" in err, err
    assert "stopped" in sw.tandem("openflow", "down")
    assert "does not run" in sw.tandem("openflow", "down")
    assert "bpf" not in sw.ns.exec("tc", "filter", "show", "dev", "p1", "ingress", check=False)
    assert not os.path.exists(os.path.join(sw.folder, "ofagentd.sock"))
    # and by itself, as it was
    sw.up(ports=[])
    assert len(sw.show("ports")) == 2


def test_sizes_are_the_commands_too(sw):
    sw.up(*LISTENING, "--queues", "2", "--packet-in-rate", "1", "--probe", "60")
    peer = sw.peer()
    queues = peer.ask(22, struct.pack("!I4x", 0xffffffff))  # of any port
    assert len(queues) == 8 + 2 * 2 * 16
    with open(f"/proc/{sw.pid()}/cmdline", encoding="utf-8") as f:
        words = f.read().split("\0")
    assert [words[words.index(o) + 1] for o in ("--packet-in-rate", "--probe")] == ["1", "60"]


def test_killed_and_started_again(sw):
    sw.up(*CONTROLLER)
    sw.app("learning13.py")
    sw.connected()
    sw.reaches(1, 2)
    sw.kill()
    assert sw.pings(1, 2, 1) == 0
    sw.up(*CONTROLLER)
    sw.connected()
    sw.reaches(1, 2)
    sw.kill(signal.SIGTERM)
    assert "bpf" not in sw.ns.exec("tc", "filter", "show", "dev", "p1", "ingress", check=False)


def make_keys(folder):
    """One authority, certificates of 127.0.0.1 and 127.0.0.9 from it; another one, and one of 127.0.0.1 from it."""
    def openssl(*words):
        net.run("openssl", *words)

    for name in ("ca", "other"):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem")
    for name, address, by in (("us", "127.0.0.1", "ca"), ("misnamed", "127.0.0.9", "ca"),
                              ("foreign", "127.0.0.1", "other")):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=us",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")
        (folder / "ext").write_text(f"subjectAltName=IP:{address}\n")
        openssl("x509", "-req", "-in", folder / f"{name}.csr", "-CA", folder / f"{by}.pem",
                "-CAkey", folder / f"{by}.key", "-CAcreateserial", "-days", "2", "-extfile", folder / "ext",
                "-out", folder / f"{name}.pem")
    return ("--private-key", folder / "us.key", "--certificate", folder / "us.pem", "--ca-cert", folder / "ca.pem")


def test_tls_both_ways(sw, tmp_path):
    keys = make_keys(tmp_path)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    client = ssl.create_default_context(cafile=tmp_path / "ca.pem")
    for context in (server, client):
        context.load_cert_chain(tmp_path / "us.pem", tmp_path / "us.key")
        context.load_verify_locations(tmp_path / "ca.pem")
    listener = net.in_netns(sw.ns.name, socket.create_server, ("127.0.0.1", 6700))
    listener.settimeout(15)
    sw.up("--controller", "ssl:127.0.0.1:6700", "--controller", f"pssl:127.0.0.1:{openflow.PORT}", *keys)
    called = Peer(server.wrap_socket(listener.accept()[0], server_side=True), 4, True)
    assert called.ask(FEATURES_REQUEST)

    def call(context):
        s = net.in_netns(sw.ns.name, socket.create_connection, ("127.0.0.1", openflow.PORT), 10)
        return context.wrap_socket(s, server_hostname="127.0.0.1")

    caller = Peer(call(client), 4, True)
    for n in range(3000):  # more than one record, and than one read
        caller.flow(2, priority=n)
    caller.barrier()
    sw.connected(2)
    assert len(sw.show("flows")) == 3000
    # who shows no certificate of the authority's, or none, is no controller
    for name in ("foreign", None):
        stranger = ssl.create_default_context(cafile=tmp_path / "ca.pem")
        if name:
            stranger.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
        with pytest.raises((ssl.SSLError, OSError, TypeError)):
            Peer(call(stranger), 4, True).ask(FEATURES_REQUEST)
    sw.connected(2)
    assert caller.ask(FEATURES_REQUEST)


@pytest.mark.parametrize("name, why", [("misnamed", "not valid for name"), ("foreign", "UnknownIssuer")])
def test_a_controller_that_shows_a_wrong_certificate_is_refused(sw, tmp_path, name, why):
    keys = make_keys(tmp_path)
    listener = net.in_netns(sw.ns.name, socket.create_server, ("127.0.0.1", 6700))
    listener.settimeout(15)
    sw.up("--controller", "ssl:127.0.0.1:6700", *keys)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / f"{name}.pem", tmp_path / f"{name}.key")
    with pytest.raises(OSError):
        s = server.wrap_socket(listener.accept()[0], server_side=True)
        s.settimeout(5)
        if not s.recv(1):
            raise OSError("hung up")
    net.wait_until("the reason to be shown", lambda: why in (sw.show("controllers")[0]["error"] or ""), timeout=5)
    assert sw.status()["controllers"] == 0
    # and the right one is taken when it is called again
    server.load_cert_chain(tmp_path / "us.pem", tmp_path / "us.key")
    assert Peer(server.wrap_socket(listener.accept()[0], server_side=True), 4, True).ask(FEATURES_REQUEST)


def test_unix_sockets_both_ways(sw, tmp_path):
    here, there = str(tmp_path / "here.sock"), str(tmp_path / "there.sock")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(there)
    listener.listen()
    listener.settimeout(15)
    sw.up("--controller", f"punix:{here}", "--controller", f"unix:{there}")
    assert os.stat(here).st_mode & 0o777 == 0o600
    s, _ = listener.accept()
    called = Peer(s, 4, True)
    assert called.ask(FEATURES_REQUEST)
    c = socket.socket(socket.AF_UNIX)
    c.connect(here)
    caller = Peer(c, 4, True)
    assert caller.ask(FEATURES_REQUEST)
    sw.connected(2)
    sw.tandem("openflow", "down")
    assert not os.path.exists(here)
