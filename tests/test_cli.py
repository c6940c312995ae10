# SPDX-License-Identifier: Apache-2.0
"""The operator's command: idempotent up and down, exit codes 0/1/2, errors of one line, stable keys, capture, trace.

    h1 10.1.0.2 ── swp1 ── switch ── swp2 ── h2 10.2.0.2
"""

import json
import os
import shutil
import signal
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from lib import net
from lib.switch import TOP, binaries


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
    assert code == 1 and "is a port of a switch already" in err and err.count("\n") == 1, err
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


def test_long_lists_come_in_pages(sw):
    """Neighbours for more than a page: the command shows all of them, and who reads by hand has none of them twice."""
    want = {f"172.16.{n >> 8}.{n & 255}" for n in range(1200)}
    sw.ns.exec("ip", "-batch", "-", stdin="".join(
        f"neigh add {addr} lladdr 02:00:00:00:00:77 dev swp1 nud permanent\n" for addr in sorted(want)))
    sw.sync()
    assert want <= {row["address"] for row in sw.show("neighbours")}
    seen, at = [], ""
    while at is not None:
        page = sw.api("switchd", "GET", f"/v1/neighbours?limit=100{at}")
        assert 0 < len(page["items"]) <= 100
        seen += [(row["address"], row["dev"]) for row in page["items"]]
        at = f"&cursor={page['next']}" if page["next"] is not None else None
    assert want <= {addr for addr, _ in seen} and len(seen) == len(set(seen))
    for what in ("neighbours", "fdb", "mdb"):
        with pytest.raises(AssertionError, match="400 .*no page ended there"):
            sw.api("switchd", "GET", f"/v1/{what}?cursor=nonsense")


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


def alone(ns, run, *words, cwd="/"):
    """A call in a namespace with a directory of instances of its own: exit code, standard output, standard error."""
    tandem = os.path.join(binaries(), "tandem")
    words = ["ip", "netns", "exec", ns.name, tandem, *words]
    env = {**os.environ, "TANDEM_RUN": str(run)}
    r = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=cwd, env=env)
    return r.returncode, r.stdout, r.stderr


@pytest.fixture
def bare(make, tmp_path):
    """A namespace without a switch, and a folder for one's files."""
    sw = make.asic()
    yield sw.ns, tmp_path
    alone(sw.ns, tmp_path / "run", "down")


def test_files_and_the_directory_may_be_relative(bare):
    ns, folder = bare
    shutil.copy(os.path.join(TOP, "profiles", "tiny.toml"), folder / "my.toml")
    code, _, err = alone(ns, "run", "up", "--profile", "my.toml", "--timeout", "20", cwd=folder)
    assert code == 0, err
    # the same switch by the whole path, and nothing below the daemons' own working directory
    code, out, _ = alone(ns, folder / "run", "down")
    assert code == 0 and out.count("stopped") == 2, out
    # `up` alone finds the profile from anywhere
    code, _, err = alone(ns, folder / "run", "up")
    assert code == 0, err
    assert alone(ns, "run", "down", cwd=folder)[1].count("stopped") == 2


def test_a_switch_with_other_settings_is_refused_and_named(bare):
    ns, folder = bare
    assert alone(ns, folder / "run", "up", "--profile", "tiny")[0] == 0
    for words, told in ((["--policy", "fail"], "policy trap, not fail"), (["--latency"], "latency off, not on"),
                        (["--log", "debug"], "log info, not debug"),
                        (["--profile", "nxp-t1040"], "profile tiny, not nxp")):
        code, _, err = alone(ns, folder / "run", "up", *words)
        assert code == 1 and told in err and "down first" in err and err.count("\n") == 1, err
    code, out, _ = alone(ns, folder / "run", "up")
    assert code == 0 and out.count("runs already") == 2, out
    # nothing is written down of a switch that systemd started: its switchd is asked
    os.unlink(folder / "run" / ns.name / "config.toml")
    code, _, err = alone(ns, folder / "run", "up", "--policy", "fail")
    assert code == 1 and "policy trap, not fail" in err, err
    assert alone(ns, folder / "run", "up")[0] == 0


def test_a_refused_argument_is_named_and_not_repeated(bare):
    ns, folder = bare
    code, _, err = alone(ns, folder / "run", "up", "--profile", "tiny", "--port", "swp1=bogus:x")
    assert code == 2 and "unknown kind 'bogus'" in err and "--help" not in err and err.count("\n") == 1, err
    (folder / "f.toml").write_text("profile = \"tiny\"\n[storm.swp1]\nbogus = 3\n", encoding="utf-8")
    code, _, err = alone(ns, folder / "run", "up", "-f", folder / "f.toml")
    assert code == 2 and "no kind of storm" in err, err
    code, _, err = alone(ns, folder / "run", "up", "--profile", "tiny")
    assert code == 0, err
    code, _, err = alone(ns, folder / "run", "up", "--log", "warning")
    assert code == 2 and "wanted error, warn" in err and err.count("\n") == 1, err


def test_many_calls_at_once_start_one_switch(bare):
    ns, folder = bare
    with ThreadPoolExecutor(4) as pool:
        calls = [pool.submit(alone, ns, folder / "run", "up", "--profile", "tiny") for _ in range(4)]
    said = [c.result() for c in calls]
    assert all(code == 0 for code, _, _ in said), said
    assert sum("asicd started" in out for _, out, _ in said) == 1, said
    pids = {line.split("pid ")[1].split(")")[0] for _, out, _ in said for line in out.splitlines() if "asicd" in line}
    assert len(pids) == 1, said


def test_a_hung_or_dead_daemon_hides_not_the_other(sw):
    pid = sw.pid("asicd")
    os.kill(pid, signal.SIGSTOP)
    try:
        code, out, _ = call(sw, "status")
        assert code == 1 and "did not answer" in out and f"pid {sw.pid('switchd')}" in out, out
        code, out, err = call(sw, "explain", "route", "10.1.0.0/24")
        assert code == 0 and "10.1.0.0/24" in out, err
    finally:
        os.kill(pid, signal.SIGCONT)
    sw.kill("asicd")
    net.wait_until("switchd to know it", lambda: "no ASIC is attached" in sw.tandem("status", check=False), timeout=5)
    code, out, err = call(sw, "show", "ports", "swp1", "-j")
    assert code == 0 and json.loads(out)[0]["netdev"] == "swp1" and "asicd is not running" in err, (out, err)


def test_who_may_not_look_is_told_so(sw):
    # ordinary users may not read the build's folder
    copy = os.path.join("/tmp", f"{sw.instance}-tandem")
    shutil.copy(os.path.join(binaries(), "tandem"), copy)
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    try:
        for words in (["status"], ["--name", sw.instance, "down"], ["explain", "route", "10.1.0.0/24"]):
            r = subprocess.run(["ip", "netns", "exec", sw.ns.name, *nobody, copy, *words],
                               capture_output=True, text=True, timeout=20)
            assert r.returncode == 1 and "permission denied" in r.stderr and sw.instance in r.stderr, (words, r)
            assert r.stdout == "" and r.stderr.count("\n") == 1, r
    finally:
        os.unlink(copy)


def test_explain_at_a_place(sw):
    assert sw.json("explain", "neighbour", "10.1.0.2@swp1")["object"].startswith("10.1.0.2 dev swp1")
    assert call(sw, "explain", "neighbour", "10.1.0.2@swp2")[0] == 1
    code, _, err = call(sw, "explain", "route", "")
    assert code == 2 and "give a prefix or an address" in err, err


def test_one_document_and_plain_words(sw, tmp_path):
    said = sw.json("port", "storm", "swp1", "--broadcast", "5", "--multicast", "6")
    assert "broadcast at most 5" in said["applied"] and "multicast at most 6" in said["applied"], said
    assert len(sw.show("ports", "--limit", "1")) == 1 and len(sw.show("traps", "--limit", "2")["items"]) == 2
    path = tmp_path / "c.pcap"
    p = sw.ns.popen(os.path.join(binaries(), "tandem"), "--name", sw.instance, "capture", "swp1", "-w", str(path),
                    stderr=subprocess.PIPE, text=True)
    net.wait_until("the capture to begin", lambda: path.exists() and path.stat().st_size >= 24, timeout=5)
    sw.tandem("down")
    assert p.communicate(timeout=10)[1] == "tandem: asicd has ended\n" and p.returncode == 1


def test_parts_of_ports_by_their_names(make):
    """A part has the number that another port has where nothing is split: it is not that port, nor is its limit."""
    sw = make.asic(profile="spectrum-sn2700")
    sw.start()
    for words in (["port", "limit", "swp1s1", "100"], ["capture", "swp1s1", "-c", "1", "-w", "/dev/null"]):
        code, _, err = call(sw, *words)
        assert code == 1 and err.startswith("tandem: no port swp1s1: swp1 is not split") and err.count("\n") == 1, err
    sw.tandem("port", "storm", "swp2", "--broadcast", "5")
    assert [r["port"] for r in sw.show("storms")] == [2]
    sw.tandem("port", "split", "swp1", "2")
    assert not sw.show("storms"), "the limit of swp2 is not that of swp1s1"
    assert "swp2" in str(sw.json("status")["switchd"]["warnings"])
    sw.tandem("port", "limit", "swp1s1", "100")
    assert "when it is there again" in sw.json("port", "storm", "swp2", "--broadcast", "off")["applied"]
    assert call(sw, "port", "storm", "swp2", "--broadcast", "off")[0] == 1, "nothing is kept of it any more"
    sw.tandem("port", "unsplit", "swp1")
    assert not sw.show("storms") and "storm" not in str(sw.json("status")["switchd"]["warnings"])
