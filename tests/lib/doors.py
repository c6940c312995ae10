# SPDX-License-Identifier: Apache-2.0
"""The doors of the appliance beside root's: programs in a pseudo-terminal as somebody, telnet, and an sshd of our own.

Users are those of a passwd that is mounted over /etc/passwd in the mount namespace of the daemon alone, and of sshd.
"""

import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import time

from . import net
from .appliance import ChipSwitch
from .switch import binaries

UIDS = {"bob": 61001, "al": 61002, "eve": 61003}  # eve is nobody's in the configuration


def bound(over, *words):
    """A command that sees files in the places of others."""
    mounts = "".join(f"mount --bind '{a}' '{b}' && " for a, b in over)
    return ["sh", "-c", f'{mounts}exec "$0" "$@"', *[str(w) for w in words]]


class Door:
    """A program in a pseudo-terminal: typed at and read."""

    def __init__(self, ns, *words, uid=None, env=None):
        mine, theirs = pty.openpty()
        self.fd = mine
        self.seen = ""
        if uid:
            words = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *words)
        try:
            self.process = ns.popen(*words, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                                    env={**os.environ, **(env or {})})
        finally:
            os.close(theirs)

    def until(self, *patterns, patience=net.PATIENCE):
        """Reads until the end of what is shown is one of these; what was shown."""
        wanted = re.compile("(?:" + "|".join(patterns) + r")\s*\Z")
        text, end = "", time.monotonic() + patience
        while not wanted.search(text):
            data = self.some(end - time.monotonic())
            if not data:
                raise EOFError(f"nothing more is shown: {text[-400:]!r}")
            text += data
        return text

    def some(self, patience):
        """What is shown next; nothing: it is over, or nothing comes."""
        if patience <= 0 or not select.select([self.fd], [], [], patience)[0]:
            return ""
        try:
            data = os.read(self.fd, 65536).decode("utf-8", "replace")
        except OSError:  # the other end is closed
            data = ""
        self.seen += data
        return data

    def type(self, text, *patterns):
        os.write(self.fd, text.encode())
        return self.until(*patterns) if patterns else ""

    def end(self):
        """Its status, once it is over."""
        while self.some(net.PATIENCE):
            pass
        return self.process.wait(net.PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        os.close(self.fd)
        self.process.wait(net.PATIENCE)


class Telnet:
    """A client that speaks as much of telnet as it must."""

    def __init__(self, address, port):
        self.s = socket.create_connection((address, port), timeout=net.PATIENCE)
        self.s.sendall(b"\xff\xfb\x1f\xff\xfa\x1f\x00\x50\x00\x32\xff\xf0")  # a window of 80 by 50
        self.raw = b""

    def until(self, pattern):
        text = b""
        while not re.search(pattern, text):
            more = self.s.recv(4096)
            if not more:
                raise EOFError(f"the connection is closed: {text!r}")
            text += more
            self.raw += more
        return text.decode("ascii", "replace")

    def type(self, text, pattern):
        self.s.sendall(text.encode())
        return self.until(pattern)


class UserSwitch(ChipSwitch):
    """An appliance where UIDS are users of Unix."""

    def __init__(self, prefix, folder, profile="tiny"):
        super().__init__(prefix, profile)
        self.folder = folder
        self.shell = os.path.join(folder, "swlogin")
        shutil.copy(os.path.join(binaries(), "swlogin"), self.shell)
        os.chmod(self.shell, 0o755)
        self.passwd = os.path.join(folder, "passwd")
        with open("/etc/passwd", encoding="utf-8") as f:
            others = [line for line in f if not line.startswith("sshd:")]
        users = [f"{name}:x:{uid}:{uid}::{folder}/home-{name}:{self.shell}\n" for name, uid in UIDS.items()]
        with open(self.passwd, "w", encoding="utf-8") as f:
            f.writelines(others + users + ["sshd:x:61000:65534::/run/sshd:/usr/sbin/nologin\n"])
        self.sshd = None

    def _daemon(self, name, *words):
        if name != "swcfgd":
            super()._daemon(name, *words)
            return
        with open(os.path.join(self.run_dir, f"{name}.log"), "ab") as log:
            path = os.path.join(binaries(), name)
            command = bound([(self.passwd, "/etc/passwd")], path, "--name", self.instance, *words)
            self.running[name] = self.ns.popen(*command, stderr=log)

    def login(self, user=None, *words):
        """swlogin at a terminal, as a user of Unix."""
        return Door(self.ns, self.shell, *words, uid=UIDS[user or "eve"], env={"SHELL": "/bin/sh"})

    def start_sshd(self, port):
        """Of our own, with keys and the appliance's secrets by PAM; the service's name is that of the program."""
        home = self.folder
        os.makedirs("/run/sshd", mode=0o755, exist_ok=True)
        for name, uid in UIDS.items():
            ssh = os.path.join(home, f"home-{name}")
            os.makedirs(ssh, exist_ok=True)
            os.chown(ssh, uid, uid)
        for key in ("host", "user"):
            if not os.path.exists(f"{home}/{key}"):
                net.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{home}/{key}")
        shutil.copy("/usr/sbin/sshd", f"{home}/tandem-sshd")
        pam = f"{home}/pam.d"
        os.makedirs(pam, exist_ok=True)
        with open(os.path.join(os.path.dirname(__file__), "../../packaging/ssh/pam"), encoding="utf-8") as f:
            service = f.read().replace("/usr/bin/swlogin", self.shell)
        for name in ("tandem-sshd", "sshd"):
            with open(f"{pam}/{name}", "w", encoding="utf-8") as f:
                f.write(service)
        with open(os.path.join(os.path.dirname(__file__), "../../packaging/ssh/sshd_config"), encoding="utf-8") as f:
            config = f.read()
        with open(f"{home}/sshd_config", "w", encoding="utf-8") as f:
            f.write(f"Port {port}\nListenAddress 127.0.0.1\nHostKey {home}/host\nPidFile {home}/sshd.pid\n"
                    f"AuthorizedKeysFile {home}/user.pub\nStrictModes no\n" + config)
        self.sshd = self.ns.popen(*bound([(self.passwd, "/etc/passwd"), (pam, "/etc/pam.d")],
                                         f"{home}/tandem-sshd", "-D", "-e", "-f", f"{home}/sshd_config"),
                                  stderr=subprocess.DEVNULL if not os.environ.get("TANDEM_KEEP") else None)
        self.port = port
        net.wait_until("sshd to listen", lambda: f":{port} " in self.ns.exec("ss", "-ltn"))

    def ssh(self, user, *words, options=(), stdin="", secret=None):
        """What `ssh USER@…` says, and its status."""
        env = dict(os.environ)
        key = ["-i", f"{self.folder}/user", "-o", "PreferredAuthentications=publickey"]
        if secret is not None:
            ask = os.path.join(self.folder, f"ask-{user}")
            with open(ask, "w", encoding="utf-8") as f:
                f.write(f"#!/bin/sh\necho '{secret}'\n")
            os.chmod(ask, 0o700)
            env |= {"SSH_ASKPASS": ask, "SSH_ASKPASS_REQUIRE": "force"}
            key = ["-o", "PreferredAuthentications=password,keyboard-interactive", "-o", "PubkeyAuthentication=no"]
        quiet = [w for o in ("UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=no", "LogLevel=ERROR",
                             "NumberOfPasswordPrompts=1") for w in ("-o", o)]
        r = subprocess.run(["ip", "netns", "exec", self.ns.name, "ssh", "-F", "none", "-p", str(self.port), *key,
                            *quiet, *options, f"{user}@127.0.0.1", *words],
                           input=stdin, capture_output=True, text=True, timeout=2 * net.PATIENCE, env=env)
        return r.stdout + r.stderr, r.returncode

    def delete(self):
        if self.sshd and self.sshd.poll() is None:
            self.sshd.terminate()
            self.sshd.wait(net.PATIENCE)
        super().delete()
