# SPDX-License-Identifier: Apache-2.0
"""FRR's zebra and bgpd in a namespace, with files, sockets and pids in a folder of their own.

The system's FRR is not touched: -N gives each instance a name of its own, and every path is set explicitly.
"""

import grp
import os
import pwd
import signal
import subprocess

from . import net

HOME = "/usr/lib/frr"


def available():
    return os.path.exists(os.path.join(HOME, "bgpd"))


class Frr:
    """One router's daemons. `folder` must be reachable for the user frr."""

    def __init__(self, ns, folder, name):
        self.ns = ns
        self.name = name
        self.folder = os.path.join(folder, name)
        os.makedirs(self.folder, exist_ok=True)
        self.started = []
        self._own(self.folder)

    def _own(self, path):
        os.chown(path, pwd.getpwnam("frr").pw_uid, grp.getgrnam("frr").gr_gid)

    def _write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        self._own(path)
        return path

    def start(self, bgp_config, zebra_config="", listen="0.0.0.0"):
        """Starts zebra, then bgpd; `bgp_config` is bgpd's configuration text, `listen` where it takes sessions."""
        return self.start_all({"zebra": zebra_config, "bgpd": bgp_config}, listen)

    def start_all(self, daemons, listen="0.0.0.0"):
        """Starts these, in order, each with its configuration's text."""
        head = f"hostname {self.name}\nlog file {self.folder}/DAEMON.log informational\n"
        for daemon, text in daemons.items():
            config = self._write(f"{daemon}.conf", head.replace("DAEMON", daemon) + text)
            extra = ["-p", "179", "-l", listen] if daemon == "bgpd" else []
            words = ["ip", "netns", "exec", self.ns.name, os.path.join(HOME, daemon), "-d", "-N", self.name,
                     "-f", config, "-i", os.path.join(self.folder, f"{daemon}.pid"),
                     "-z", os.path.join(self.folder, "zserv.api"), "--vty_socket", self.folder, "-P", "0", *extra]
            # into a file, not a pipe: the daemon in the background may hold it open for good
            said = os.path.join(self.folder, f"{daemon}.start")
            with open(said, "w", encoding="utf-8") as f:
                code = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=f, stderr=f, timeout=30).returncode
            if code != 0:
                with open(said, encoding="utf-8") as f:
                    raise net.CommandError(words, code, f.read())
            if daemon not in self.started:
                self.started.append(daemon)
            net.wait_until(f"{daemon} of {self.name} to answer",
                           lambda d=daemon: os.path.exists(os.path.join(self.folder, f"{d}.vty")), timeout=10)
        return self

    def kill(self, daemon):
        """As a crash: a new one finds its socket there."""
        with open(os.path.join(self.folder, f"{daemon}.pid"), encoding="utf-8") as f:
            pid = int(f.read())
        os.kill(pid, signal.SIGKILL)
        net.wait_until(f"{daemon} to be gone", lambda: not net.pid_alive(pid, daemon))

    def vty(self, *commands, timeout=20):
        """One or more vtysh commands; what they printed."""
        words = ["vtysh", "--vty_socket", self.folder]
        for c in commands:
            words += ["-c", c]
        return net.run(*words, timeout=timeout, check=False)

    def stop(self):
        for daemon in reversed(self.started):
            net.end_by_pid_file(os.path.join(self.folder, f"{daemon}.pid"), daemon)
        self.started = []


def stop_leftovers(folder):
    """Ends the daemons that an earlier run left behind in `folder`."""
    if not os.path.isdir(folder):
        return
    for name in sorted(os.listdir(folder)):
        for daemon in ("bgpd", "ospfd", "ripd", "zebra"):
            net.end_by_pid_file(os.path.join(folder, name, f"{daemon}.pid"), daemon)
