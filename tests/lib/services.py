# SPDX-License-Identifier: Apache-2.0
"""The part of systemd for daemons of the appliance: runs packaging's script where its path unit would, and daemons as
their units say, in the switch's namespace."""

import os
import re
import shlex
import shutil
import signal
import subprocess

from . import net

PACKAGING = os.path.join(os.path.dirname(__file__), "../../packaging")
NEEDS = {"chronyd": "chrony", "snmpd": "snmpd", "snmpget": "snmp", "dnsmasq": "dnsmasq-base", "lldpd": "lldpd"}


def missing():
    """Debian packages that are not here."""
    found = [os.path.join(folder, name) for name in NEEDS for folder in ("/usr/sbin", "/usr/bin")]
    there = {os.path.basename(path) for path in found if os.path.exists(path)}
    return [package for name, package in NEEDS.items() if name not in there]


class Systemd:
    """For one switch. `folder`: where its own chronyd is, and the commands that stand in for systemd's and chrony's."""

    def __init__(self, sw, folder):
        self.sw = sw
        self.folder = folder
        self.asked = os.path.join(folder, "asked")
        self.running = {}
        self.folders = {}
        self.bound = {}  # units that go with another
        os.makedirs(os.path.join(folder, "sources"))
        os.mkdir(os.path.join(folder, "socket"), mode=0o700)  # chronyd makes none where others may look
        self._command("systemctl", f'echo "$*" >>{self.asked}')
        self._command("chronyc", f'exec /usr/bin/chronyc -h {folder}/socket/chronyd "$@"')

    def _command(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def chronyd(self):
        """The machine's clock is nobody's to set here."""
        config = os.path.join(self.folder, "chrony.conf")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"sourcedir {self.folder}/sources\nbindcmdaddress {self.folder}/socket/chronyd\n"
                    f"pidfile {self.folder}/chronyd.pid\nuser root\n")
        self.running["chronyd"] = self.sw.ns.popen("/usr/sbin/chronyd", "-x", "-d", "-f", config,
                                                   stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                                   start_new_session=True)
        net.wait_until("chronyd to answer", lambda: os.path.exists(f"{self.folder}/socket/chronyd"))

    def flags(self):
        return sorted(os.listdir(os.path.join(self.sw.run_dir, "services/changed")))

    def turn(self):
        """What tandem-services@.path does when a flag is there; which daemons were begun anew, or ended."""
        env = {**os.environ, "PATH": f"{self.folder}:{os.environ['PATH']}", "CHRONY_SOURCES": f"{self.folder}/sources"}
        subprocess.run([os.path.join(PACKAGING, "services/tandem-services"), self.sw.instance], env=env, check=True,
                       stdout=subprocess.DEVNULL, timeout=60)
        told = []
        if os.path.exists(self.asked):
            with open(self.asked, encoding="utf-8") as f:
                for line in f:
                    name = re.fullmatch(rf"restart tandem-([a-z-]+)@{self.sw.instance}\.service", line.strip())[1]
                    told.append(name)
                    self.restart(name)
            os.unlink(self.asked)
        return told

    def restart(self, name):
        self.end(name)
        with open(os.path.join(PACKAGING, f"systemd/tandem-{name}@.service"), encoding="utf-8") as f:
            lines = [line.strip().replace("%i", self.sw.instance) for line in f]
        unit: dict[str, str] = dict(line.split("=", 1) for line in lines if re.match(r"[A-Z]\w*=", line))
        wanted = unit.get("ConditionFileNotEmpty")
        if wanted and not (os.path.exists(wanted) and os.path.getsize(wanted)):
            return
        env = {**os.environ, **dict(x.split("=", 1) for x in unit.get("Environment", "").split())}
        with open(os.path.join(self.folder, f"{name}.log"), "ab") as log:
            if "RuntimeDirectory" in unit:
                self.folders[name] = os.path.join("/run", unit["RuntimeDirectory"])
                os.makedirs(self.folders[name], mode=0o755, exist_ok=True)
            if "ExecStartPre" in unit:
                subprocess.run(shlex.split(unit["ExecStartPre"]), check=True)
            command = unit["ExecStart"].replace("/usr/lib/tandem", f"{PACKAGING}/services")
            self.running[name] = self.sw.ns.popen(*shlex.split(command), env=env, stdout=log, stderr=log,
                                                  start_new_session=True)
        for other in re.findall(r"tandem-([a-z-]+)@", unit.get("Wants", "")):
            self.bound[other] = name
            self.restart(other)

    def end(self, name):
        for other in [o for o, to in self.bound.items() if to == name]:
            del self.bound[other]
            self.end(other)
        process = self.running.pop(name, None)
        if process:
            # all of the unit's, as systemd does
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(10)
        shutil.rmtree(self.folders.pop(name, ""), ignore_errors=True)

    def log(self, name):
        path = os.path.join(self.folder, f"{name}.log")
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def stop(self):
        for name in list(self.running):
            self.end(name)
