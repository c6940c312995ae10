# SPDX-License-Identifier: Apache-2.0
"""Who comes in to the appliance, by which door, and what nobody gets to without a secret."""

import concurrent.futures
import os
import random
import re
import shutil
import stat
import subprocess

import pytest

from lib import net
from lib.doors import UIDS, Door, Telnet, UserSwitch
from lib.switch import PREFIX, binaries

CONFIG = (
    "username bob privilege 15 secret hunter2", "username al secret 0 swordfish", "enable secret letmein",
    "username zed privilege 15 secret abracadabra",  # whose name random keys may be: it is refused after five
    "banner motd #Keep out!#", "hostname box",
)
# what privileged commands show, what no session shows, and what is not to be the switch's
SECRETS = ("argon2id", "root:x:0", "uid=")


@pytest.fixture(scope="module")
def switch():
    """One appliance for all: what a test sets it takes back."""
    folder = f"/run/{PREFIX}{os.getpid()}-doors"
    os.makedirs(folder, mode=0o755)
    sw = UserSwitch(f"{PREFIX}{os.getpid()}-d-", folder)
    try:
        sw.host("h", 1)
        sw.start()
        sw.cli("configure terminal", *CONFIG, "end")
        yield sw
    finally:
        if os.environ.get("TANDEM_KEEP"):
            print(sw.log("swcfgd"))
        sw.delete()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def doors():
    made = []
    yield lambda door: made.append(door) or door
    for door in made:
        door.close()


def test_who_is_nobody_is_asked(switch, doors):
    """Unix knows eve, the configuration does not: Username and Password, up to al's level and no further."""
    door = doors(switch.login("eve"))
    assert "Keep out!" in door.until("Username:")
    door.type("al\r", "Password:")
    assert "swordfish" not in door.type("swordfish\r", "box>")
    assert "level is 1" in door.type("show privilege\r", "box>")
    for closed in ("configure terminal", "show running-config", "copy running-config flash:x", "write erase", "reload"):
        assert "Invalid input" in door.type(closed + "\r", "box>"), closed
    door.type("enable\r", "Password:")
    assert "Bad secrets" in door.type("1\r", "Password:") + door.type("2\r", "Password:") + door.type("3\r", "box>")
    door.type("enable\r", "Password:")
    assert "letmein" not in door.type("letmein\r", "box#")
    assert re.search(r"\* *\d+ vty \d+ +al ", door.type("show users\r", "box#"))
    assert "argon2id" in door.type("show running-config | include secret\r", "box#")
    door.type("exit\r")
    assert door.end() == 0
    log = switch.log("swcfgd")
    assert "(al has logged in)" in log and "has level 15" in log and "show running-config" in log, log[-2000:]
    for secret in ("swordfish", "letmein", "hunter2"):
        assert secret not in log, secret


def test_a_user_of_unix_has_its_own_level(switch, doors):
    """The kernel says who is there; what is said beside it is not believed."""
    doors(switch.login("bob")).until("box#")
    doors(switch.login("al")).until("box>")
    doors(switch.login("bob", "--ask")).until("Username:")
    r = subprocess.run(as_user("eve", switch, switch.shell, "-c", "show vlan"), capture_output=True, text=True,
                       timeout=net.PATIENCE)
    assert r.returncode == 1 and "Log in at a terminal first" in r.stderr and not r.stdout, r


def as_user(name, switch, *words):
    """A command as a user, in the switch's namespace."""
    return ["ip", "netns", "exec", switch.ns.name, "setpriv", f"--reuid={UIDS[name]}", f"--regid={UIDS[name]}",
            "--clear-groups", *words]


def python(name, switch, program):
    """What a user's program prints."""
    return subprocess.run(as_user(name, switch, "/usr/bin/python3", "-c", program), capture_output=True, text=True,
                          timeout=net.PATIENCE).stdout


def test_what_a_user_says_at_the_socket_itself(switch):
    """Without swlogin: no more than with it."""
    path = f"/run/tandem/{switch.instance}.login"
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o666
    assert stat.S_IMODE(os.stat(f"/run/tandem/{switch.instance}").st_mode) == 0o700
    program = """import socket
def say(path, text):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(10)
    try:
        s.connect(path)
        s.sendall(text)
        s.shutdown(socket.SHUT_WR)
        said = b""
        while True:
            more = s.recv(4096)
            if not more: break
            said += more
    except OSError as e:
        said = str(e).encode()
    print(text, said)
for way in (b"", b" cli", b" console x", b" vty x", b" self x", b" cli cli cli"):
    say(%r, b"tandem-session 1 terminal 80 24" + way + b"\\n")
say(%r, b"tandem-session 1 check\\nal\\nswordfish\\n")
say(%r, b"tandem-session 1 terminal 80 24\\n")
"""
    said = python("eve", switch, program % (path, path, f"/run/tandem/{switch.instance}/swcfgd.sock"))
    rows = said.splitlines()
    assert len(rows) == 8, said
    assert all("Username: " in r and "box" not in r for r in rows[:6]), said
    assert "swcli speaks to it" in rows[6] and "yes" not in rows[6], said
    assert "Permission denied" in rows[7], said
    said = python("bob", switch, program % (path, path, "/nowhere"))
    assert [r.count("box#") for r in said.splitlines()[:6]] == [1, 0, 0, 0, 1, 0], said


KEYS = ["\r", "\r", "\x03", "\x1a", "\x04", "\x1c", "\x1b[A", "\x1b", "\t", "?", " ", "\x00", "\xff", "zed\r",
        "root\r", "enable\r", "enable 15\r", "conf t\r", "hostname owned\r", "do show run\r", "show run\r",
        "show startup-config\r", "!sh\r", "sh\r", "bash\r", "| sh\r", "show version | include `id`\r", "$(id)\r",
        ";id\r", "show vlan ||id\r",
        "copy flash:../../etc/passwd running-config\r", "more /etc/passwd\r", "\x1d", "~.", "\x16",
        "write\r", "\x13\x11", "username eve privilege 15 secret x\r", "A" * 300, "\x7f" * 9, "line vty 0 15\r",
        "disable\r", "exit", "z"]


def test_nobody_else_says_what_users_are_called(switch):
    """Who says that is nobody's, as much else may be: another process of nobody's may not look into it."""
    (pid,) = net.run("pgrep", "-P", str(switch.running["swcfgd"].pid)).split()
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        status = f.read()
    assert "\nUid:\t65534\t65534\t65534\t65534\n" in status and "\nCapPrm:\t0000000000000000\n" in status, status
    r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "cat", f"/proc/{pid}/environ"],
                       capture_output=True, text=True, timeout=net.PATIENCE)
    assert r.returncode and "Permission denied" in r.stderr, r


@pytest.mark.parametrize("who", ["eve", "al"])
def test_whatever_is_typed(switch, doors, who):
    """Random keys, a terminal of the kernel's, who is not in and who has level 1: no shell, no level, nothing changed.
    PROPTEST_RNG_SEED draws others."""
    draw = random.Random(f"{os.environ.get('PROPTEST_RNG_SEED', '20260101')} {who}")
    before = switch.cli("show running-config")
    seen = ""
    for _ in range(3):
        door = doors(switch.login(who))
        door.until("Username:", "box>")
        for _ in range(40):
            try:
                os.write(door.fd, "".join(draw.choices(KEYS, k=draw.randint(1, 8))).encode("latin-1"))
            except OSError:  # three wrong answers, or an exit
                break
            door.some(0.02)
        # what is under way comes to its end: a prompt behind a line of its own, or the end
        while door.process.poll() is None and door.some(0.3):
            pass
        children = net.run("pgrep", "-P", str(door.process.pid), check=False)
        assert children.strip() == "", "a process below the door"
        seen += door.seen
    assert switch.cli("show running-config") == before
    # the name in a prompt, not in what is typed, of which ESC swallows a letter
    for wrong in (*SECRETS, "box#", "owned>", "owned#", "owned("):
        assert wrong not in seen, (wrong, seen[-3000:])
    if who == "eve":
        assert "box>" not in seen


def test_a_line_at_the_box(switch, doors):
    """swcon, as agetty runs it: RETURN first, then line console 0; `enable` asks for the secret; idle: the end."""
    words = (os.path.join(binaries(), "swcon"), "--name", switch.instance)
    switch.cli("configure terminal", "line console 0", "exec-timeout 0 1", "end")
    try:
        door = doors(Door(switch.ns, *words))
        door.until("get started.")
        os.write(door.fd, b"x\x03\x1a")
        # however late it is read
        door.type("\r", "Nothing was typed for 1 s: the session is closed")
        assert "box>" in door.seen and door.end() == 0
    finally:
        switch.cli("configure terminal", "no line console 0", "end")
    door = doors(Door(switch.ns, "/sbin/agetty", "--noissue", "--skip-login", "--login-program", words[0],
                      "--keep-baud", "115200,9600", "-", "vt220"))
    door.until("get started.")
    door.type("\r", "box>")
    said = door.type("show users\r", "box>")
    assert "*  0 con 0 " in said and "pts/" in said, said
    door.type("enable\r", "Password:")


def test_telnet_on_loopback(switch):
    port = 2323
    swclid = os.path.join(binaries(), "swclid")
    with pytest.raises(net.CommandError, match="no address of loopback"):
        switch.ns.exec(swclid, "--name", switch.instance, "--listen", f"0.0.0.0:{port}")
    process = switch.ns.popen(swclid, "--name", switch.instance, "--listen", f"127.0.0.1:{port}")
    try:
        net.wait_until("swclid to listen", lambda: f":{port} " in switch.ns.exec("ss", "-ltn"))

        def talk():
            client = Telnet("127.0.0.1", port)
            assert "Keep out!" in client.until(b"Username: $")
            client.type("bob\r\n", b"Password: $")
            assert "hunter2" not in client.type("hunter2\r\0", b"box#$")
            shown = client.type("show users\r\n", b"box#$")
            assert re.search(r"\* *\d+ vty \d+ +bob .* 127\.0\.0\.1", shown), shown
            client.s.sendall(b"exit\r\n")
            while more := client.s.recv(4096):
                client.raw += more
            # it echoes, and asked for the window; nothing that is not telnet's is above ASCII
            assert client.raw.startswith(b"\xff\xfb\x01\xff\xfb\x03\xff\xfd\x03\xff\xfd\x1f"), client.raw[:20]
            assert max(client.raw[12:]) < 128
        net.in_netns(switch.ns.name, talk)
    finally:
        process.terminate()
        process.wait(net.PATIENCE)


def test_ssh(switch):
    """OpenSSH's own server: by key and by the appliance's secret, a command or a session, and nothing else."""
    if not os.path.exists("/usr/sbin/sshd"):
        pytest.fail("needs sshd: apt-get install openssh-server (./run test does that)")
    switch.start_sshd(2222)
    said, status = switch.ssh("bob", "show privilege")
    assert (said, status) == ("Current privilege level is 15\n", 0)
    said, status = switch.ssh("al", "show running-config")
    assert "Invalid input" in said and status == 1, said
    # a session by a terminal, of the right user from the right place
    said, status = switch.ssh("bob", options=("-tt",), stdin="show users\rconfigure terminal\rvlan 77\rend\rexit\r")
    assert re.search(r"\* *\d+ vty \d+ +bob .* 127\.0\.0\.1", said) and "box(config-vlan)#" in said, said
    assert "\n77 " in switch.cli("show vlan brief")
    switch.cli("configure terminal", "no vlan 77", "end")
    # what is asked for as a program is a command of the console, which has none such
    programs: list[tuple[str, ...]] = [("sh", "-c", "id"), ("/bin/bash",), ("-s", "sftp"), ("scp -f /etc/passwd",),
                                       ("show vlan; id",)]
    with concurrent.futures.ThreadPoolExecutor() as at_once:
        for words, (said, status) in zip(programs, at_once.map(lambda w: switch.ssh("bob", *w), programs)):
            assert status != 0 and not any(s in said for s in SECRETS), (words, said)
    said, status = switch.ssh("bob", "-N", options=("-o", "ExitOnForwardFailure=yes", "-R", "7777:127.0.0.1:1"))
    assert status != 0, said
    # the secret of the configuration, by PAM; who is not in it, and root, are not asked twice
    assert switch.ssh("al", "show privilege", secret="swordfish") == ("Current privilege level is 1\n", 0)
    wrong = [("al", "swordfisH"), ("eve", "swordfish"), ("root", "hunter2")]
    with concurrent.futures.ThreadPoolExecutor() as at_once:
        answers = at_once.map(lambda w: switch.ssh(w[0], "show users", secret=w[1]), wrong)
        for who, (said, status) in zip(wrong, answers):
            assert status == 255 and "vty" not in said, (who, said)
    # by a key eve is who she is, and that is nobody
    said, status = switch.ssh("eve", "show privilege")
    assert status == 1 and "level" not in said, said
    assert "(al was refused)" in switch.log("swcfgd")
