# SPDX-License-Identifier: Apache-2.0
"""Network namespaces, cables between them, and commands inside them. Standard library only."""

import ctypes
import functools
import os
import subprocess
import threading
import time

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def process_control(option, value):
    """prctl(2)."""
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


class CommandError(Exception):
    """A command failed: its words, exit code and what it said."""

    def __init__(self, words, code, said):
        super().__init__(f"`{' '.join(words)}` ended with {code}: {said.strip()}")
        self.code = code
        self.said = said


PATIENCE = 60.0  # for what is to come: the end of a test that hangs, and no verdict on a machine that has other work


def run(*words, timeout=PATIENCE, check=True, stdin=None):
    """Runs a command to its end and returns what it printed (standard output)."""
    words = [str(w) for w in words]
    r = subprocess.run(words, input=stdin, capture_output=True, text=True, timeout=timeout)
    if check and r.returncode != 0:
        raise CommandError(words, r.returncode, r.stderr or r.stdout)
    return r.stdout


def kernel_does(*commands):
    """Does this kernel take these commands, one after the other, in a namespace of their own that ends with them?"""
    try:
        run("unshare", "--net", "sh", "-ec", "\n".join(commands))
    except CommandError:
        return False
    return True


def kernel_makes(*kind):
    """Has this kernel links of a type: kernel_makes("vrf", "table", "4242")?"""
    return kernel_does(f"ip link add probe type {' '.join(kind)}")


def wait_until(what, condition, timeout=PATIENCE, every=0.05):
    """Waits for `condition()` to be true, so long and no less than others do; says in one line what did not happen."""
    timeout = max(timeout, PATIENCE)
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout:g} s: {what}")
        time.sleep(every)


def in_netns(name, function, *args):
    """Runs `function` in a thread that has entered the namespace; sockets made there stay there."""
    box = {}

    def body():
        try:
            fd = os.open(f"/run/netns/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                if _libc.setns(fd, CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), f"setns to {name}")
            finally:
                os.close(fd)
            box["value"] = function(*args)
        except BaseException as e:  # handed to the caller below
            box["error"] = e

    t = threading.Thread(target=body)
    t.start()
    t.join()
    if "error" in box:
        raise box["error"]
    return box["value"]


class Namespace:
    """A network namespace that lives as long as this object's `with` block (or until `delete`)."""

    def __init__(self, name):
        self.name = name
        run("ip", "netns", "add", name)
        run("ip", "-n", name, "link", "set", "lo", "up")
        self.children = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.delete()

    def exec(self, *words, **kw):
        """Runs a command inside."""
        return run("ip", "netns", "exec", self.name, *words, **kw)

    def ip(self, *words, **kw):
        """`ip -n NAME ...`; each argument may hold several words."""
        flat = [w for part in words for w in str(part).split()]
        return run("ip", "-n", self.name, *flat, **kw)

    def ip_batch(self, lines, family="-4", timeout=120):
        """Many `ip` commands in one process."""
        return run("ip", "-n", self.name, family, "-batch", "-", stdin="\n".join(lines) + "\n", timeout=timeout)

    def bridge(self, *words, **kw):
        flat = [w for part in words for w in str(part).split()]
        return run("bridge", "-n", self.name, *flat, **kw)

    def popen(self, *words, **kw):
        """Starts a process inside; it is ended at the latest with the namespace."""
        p = subprocess.Popen(["ip", "netns", "exec", self.name, *[str(w) for w in words]], **kw)
        self.children.append(p)
        return p

    def sysctl(self, **settings):
        """Sets net.* values: dots of the name are written as two underscores. A kernel that was booted without IPv6 has
        no settings of it."""
        def put():
            for key, value in settings.items():
                if key.startswith("ipv6__") and not os.path.exists("/proc/sys/net/ipv6"):
                    continue
                with open("/proc/sys/net/" + key.replace("__", "/"), "w", encoding="utf-8") as f:
                    f.write(f"{value}\n")

        in_netns(self.name, put)

    def read(self, path):
        """A file as seen from inside."""
        if not path.startswith("/proc/"):
            return self.exec("cat", path).strip()  # /sys is another one there

        def get():
            with open(path, encoding="utf-8") as f:
                return f.read().strip()

        return in_netns(self.name, get)

    def delete(self):
        for p in self.children:
            if p.poll() is None:
                p.terminate()
        for p in self.children:
            try:
                p.wait(3)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait(3)
        run("ip", "netns", "del", self.name, check=False)


def cable(a, a_dev, b, b_dev, a_mac=None, b_mac=None):
    """A veth pair between two namespaces, both ends up. An end whose namespace has no IPv6 of its own stays mute."""
    run("ip", "link", "add", a_dev, "netns", a.name, *(["address", a_mac] if a_mac else []), "type", "veth",
        "peer", "name", b_dev, "netns", b.name, *(["address", b_mac] if b_mac else []))
    a.ip("link set", a_dev, "up")
    b.ip("link set", b_dev, "up")


def stat(pid):
    """A process's words in /proc/PID/stat from its state on (state, parent, group, session, …); None if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def pid_alive(pid, comm=None):
    """Is that process there, and is it the program we think it is?"""
    words = stat(pid)
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
            name = f.read().strip()
    except OSError:
        return False
    return words is not None and words[0] != "Z" and (comm is None or name == comm)


def busy(pid):
    """Is a thread of that process working, or waiting for a processor? The one that asks does not count."""
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return False
    own = str(threading.get_native_id())
    return any(t != own and (stat(f"{pid}/task/{t}") or "S")[0] == "R" for t in tasks)


@functools.cache
def softirq_threads():
    """The kernel's threads for what an interrupt did not get done, packets among it."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                if f.read().startswith("ksoftirqd/"):
                    found.append(pid)
        except OSError:
            pass  # gone meanwhile
    return found


def end_by_pid_file(path, comm, timeout=5.0):
    """Ends the process that a pid file names, if it is still that program."""
    try:
        with open(path, encoding="utf-8") as f:
            pid = int(f.read().split()[0])
    except (OSError, ValueError, IndexError):
        return
    for sig, patience in ((15, timeout), (9, 2.0)):
        if not pid_alive(pid, comm):
            return
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            return
        end = time.monotonic() + patience
        while pid_alive(pid, comm) and time.monotonic() < end:
            time.sleep(0.02)


def namespaces(prefix):
    """Names under /run/netns that begin with `prefix`."""
    try:
        return sorted(n for n in os.listdir("/run/netns") if n.startswith(prefix))
    except FileNotFoundError:
        return []
