# SPDX-License-Identifier: Apache-2.0
"""The operator's command: idempotent up and down, exit codes 0/1/2, errors of one line, stable keys, capture, trace.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import os
import struct
import subprocess
import time

import pytest

from lib import net
from lib.switch import binaries


@pytest.fixture
def sw(make):
    return make.asic().route_hosts(2)


def call(sw, *words):
    """Exit code, standard output, standard error."""
    r = subprocess.run(["ip", "netns", "exec", sw.ns.name, os.path.join(binaries(), "tandem"), *words],
                       capture_output=True, text=True, timeout=60)
    return r.returncode, r.stdout, r.stderr


def test_up_and_down_are_idempotent(sw):
    pids = sw.pid("asicd"), sw.pid("switchd")
    assert "runs already" in sw.tandem("up")
    assert (sw.pid("asicd"), sw.pid("switchd")) == pids
    with pytest.raises(net.CommandError) as e:
        sw.tandem("up", "--profile", "tiny")
    assert e.value.code == 1 and "down first" in e.value.said
    sw.tandem("down")
    assert not net.pid_alive(pids[0], "asicd") and not net.pid_alive(pids[1], "switchd")
    assert "does not run" in sw.tandem("down")
    # the front panel is whole again: no filter left behind
    assert "bpf" not in sw.front.exec("tc", "filter", "show", "dev", "p1", "ingress", check=False)
    # and `up` alone starts the same switch again
    sw.tandem("up", timeout=60)
    assert len([p for p in sw.show("ports") if p["attachment"]]) == 2


def test_a_second_switch_fails_whole_and_takes_nothing(sw):
    other = sw.instance + "-b"
    front = sw.ports()["swp1"]["attachment"].removeprefix("af_packet:")
    code, _, err = call(sw, "--name", other, "up", "--profile", "tiny", "--port", f"swp1={front}")
    assert code == 1 and "is a port of another asicd" in err and err.count("\n") == 1, err
    # a chip of its own, but no room for its switchd's swp1: the chip goes, too
    sw.ns.exec("ip", "link", "add", "x0", "type", "veth", "peer", "name", "x1")
    code, _, err = call(sw, "--name", other, "up", "--profile", "tiny", "--port", "swp1=x0")
    assert code == 1 and "swp1 is there already" in err, err
    assert call(sw, "--name", other, "status")[0] == 1
    assert "clsact" not in sw.ns.exec("tc", "qdisc", "show", "dev", "x0")
    # a start that failed is not what `up` alone repeats
    code, _, err = call(sw, "--name", other, "up", "--profile", "nope", "--port", "swp1=x0")
    assert code == 1 and "nope" in err, err
    code, _, err = call(sw, "--name", other, "up", "--timeout", "10")
    assert "nope" not in err, err
    call(sw, "--name", other, "down")
    assert sw.hosts["h1"].ping("10.2.0.2")


def test_instance_comes_from_the_namespace(sw):
    code, out, _ = call(sw, "status", "-j")
    assert code == 0 and f'"instance":"{sw.instance}"' in out.replace(" ", "")


def test_exit_codes_and_one_line_errors(sw):
    for words, want in (
            (["show", "ports"], 0), (["show", "routes", "10.1.0.0/24"], 0), (["show", "routes", "no such word"], 1),
            (["explain", "neighbour", "10.9.9.9"], 1), (["show", "nonsense"], 2), (["trace", "swp1"], 2),
            (["trace", "swp1", "xyz"], 2), (["trace", "swp99", "00" * 60], 1), (["up", "--port", "swp1"], 2),
            (["--name", "../x", "status"], 2), (["--name", "nosuch", "status"], 1), (["--name", "nosuch", "sync"], 1),
            (["--name", "nosuch", "show", "ports"], 1), (["fault", "flip", "routes", "9.9.9.9/32"], 1)):
        code, _, err = call(sw, *words)
        assert code == want, f"tandem {' '.join(words)}: exit code {code}, wanted {want}: {err}"
        if want == 1 and err:
            assert err.startswith("tandem: ") and err.count("\n") == 1, err


def test_stable_keys(sw):
    ports = {p["name"]: p for p in sw.show("ports")}
    assert {"name", "port", "attachment", "link", "speed_mbps", "counters", "netdev", "ifindex", "mac", "mtu",
            "admin_up", "bridge", "state", "reason"} <= set(ports["swp1"])
    assert {"rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_dropped", "tx_dropped"} \
        <= set(ports["swp1"]["counters"])
    assert ports["swp1"]["link"] is True and ports["swp1"]["counters"]["rx_packets"] > 0
    assert {"reason", "class", "packets", "bytes", "dropped"} <= set(sw.show("traps")["items"][0])
    route = next(r for r in sw.show("routes") if r["prefix"] == "10.1.0.0/24")
    assert {"family", "vrf", "prefix", "table", "metric", "desired", "installed", "state", "reason"} <= set(route)
    neigh = next(r for r in sw.show("neighbours") if r["address"] == "10.2.0.2")
    assert neigh["dev"] == "swp2" and neigh["state"] == "offloaded"
    for what in ("fdb", "drops", "nexthops", "nhgs", "rifs", "vlans"):
        assert isinstance(sw.show(what), list)
    for what in ("routes", "neighbours", "fdb"):
        assert isinstance(sw.show(what, "--hw"), list)
    status = sw.json("status")
    assert status["switchd"]["sync"]["policy"] == "trap" and status["asicd"]["device"] == "attached"


def test_every_table_is_readable(sw):
    for what in ("ports", "fdb", "routes", "neighbours", "resources", "traps", "drops", "rifs"):
        lines = sw.tandem("show", what).splitlines()
        assert lines and lines[0].isupper(), f"{what}: no heading"
        assert not any(line != line.rstrip() for line in lines), f"{what}: blanks at the end of a line"
    assert "pid" in sw.tandem("status")


def test_trace_shows_the_stages_and_changes_nothing(sw):
    def sent():
        return sw.ports()["swp2"]["counters"]["tx_packets"]

    def traces():
        before = sent()
        sw.json("trace", "swp1", "--icmp", "10.1.0.2", "10.2.0.2")
        time.sleep(0.1)
        return sent() == before

    t = sw.json("trace", "swp1", "--icmp", "10.1.0.2", "10.2.0.2")
    assert t["egress"] == ["swp2"], t
    stages = [s["stage"] for s in t["items"]]
    assert "parser" in stages and "l3_lookup" in stages, stages
    t = sw.json("trace", "swp1", "--udp", "10.1.0.2", "10.1.0.1:179")
    assert not t["egress"] and "cpu" in str(t).lower(), t
    # the kernel may ask for a neighbour meanwhile: once in a while, not every time
    assert any(traces() for _ in range(5)), "each trace sent a frame"
    assert "verdict" in sw.tandem("trace", "swp1", "--tcp", "10.1.0.2", "10.2.0.2")


def test_capture_is_pcap_with_what_was_asked_for(sw, tmp_path):
    path = tmp_path / "c.pcap"
    p = sw.ns.popen(os.path.join(binaries(), "tandem"), "--name", sw.instance, "capture", "swp1", "icmp", "-c", "4",
                    "-w", str(path))
    net.wait_until("the capture to begin", lambda: path.exists() and path.stat().st_size >= 24, timeout=5)
    sw.hosts["h1"].ping("10.2.0.2", count=5, check=True)
    assert p.wait(10) == 0
    raw = path.read_bytes()
    magic, = struct.unpack_from("=I", raw)
    assert magic in (0xA1B2C3D4, 0xA1B23C4D)
    frames, at = [], 24
    while at < len(raw):
        _, _, kept, full = struct.unpack_from("=IIII", raw, at)
        assert kept == full
        frames.append(raw[at + 16:at + 16 + kept])
        at += 16 + kept
    assert len(frames) == 4
    assert all(f[12:14] == b"\x08\x00" and f[23] == 1 for f in frames)
    kinds = {f[34] for f in frames}
    assert kinds == {0, 8}, f"both directions were wanted, ICMP types seen: {kinds}"


def test_second_switch_beside_the_first(sw, make):
    other = make.asic(profile="tiny")
    other.host("h1", 1).address("10.1.0.2/24")
    other.start()
    assert other.json("status")["asicd"]["profile"] == "tiny"
    assert sw.json("status")["asicd"]["profile"] != "tiny"
    assert sw.hosts["h1"].ping("10.2.0.2") == 1


def test_sockets_are_private(sw):
    for name in ("asicd.sock", "switchd.sock", "driver.sock"):
        mode = os.stat(os.path.join(sw.run_dir, name)).st_mode & 0o777
        assert mode == 0o600, f"{name}: {mode:o}"
    assert os.stat(sw.run_dir).st_mode & 0o777 == 0o700
