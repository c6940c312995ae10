# SPDX-License-Identifier: Apache-2.0
"""Lanes: child processes that play scenarios side by side, each on benches of its own.

    __main__ ── Work: blocks of seeds, each of one profile
        │          │ a lane stays with its block: a chip takes longer to start than a scenario to play
        └─ Lanes ──┼─ child ── Runner ── bench tnt-<pid of the child>-...
                   └─ child ── Runner ── bench

Most of a scenario is waiting for kernels and daemons, so there are more lanes than cores.
"""

import collections
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time

from lib import net
from lib.switch import sweep

from . import play
from .generate import BLOCK
from .runner import Runner

WORTH = 8        # so many tasks that a block still has are worth another lane's bench
PATIENCE = 40    # seconds until a lane that was told to end is ended
PR_SET_PDEATHSIG = 1


def default_jobs():
    return len(os.sched_getaffinity(0)) + 2


def seeds(first, count=None):
    """Blocks of tasks: (name, seed); without end if `count` is None."""
    at = first
    while count is None or at < first + count:
        end = at - at % BLOCK + BLOCK
        if count is not None:
            end = min(end, first + count)
        yield [(f"seed-{k}", k) for k in range(at, end)]
        at = end


def by_profile(tasks, profile):
    """Blocks of tasks of one profile each; `profile(source)` says which."""
    blocks = {}
    for task in tasks:
        blocks.setdefault(profile(task[1]), []).append(task)
    return list(blocks.values())


class Work:
    """Hands out tasks: first the kept scenarios, then seeds."""

    def __init__(self, *blocks):
        self.fresh = (collections.deque(b) for group in blocks for b in group)
        self.begun = []
        self.of = {}     # lane -> its block

    def take(self, lane):
        """The lane's next task; None: there is none for it."""
        mine = self.of.get(lane)
        if not mine:
            self.begun = [b for b in self.begun if b]
            mine = next(self.fresh, None)
            if mine:
                self.begun.append(mine)
            else:
                mine = max(self.begun, key=len, default=())
                if len(mine) < WORTH and any(mine is b for k, b in self.of.items() if k != lane):
                    return None
            self.of[lane] = mine
        return mine.popleft() if mine else None


class Lane:
    """One of the children, seen by its parent."""

    def __init__(self, have, shrink_s, strangers):
        self.pipe, theirs = multiprocessing.Pipe()
        self.task = None
        self.process = multiprocessing.get_context("fork").Process(
            target=live, args=(theirs, [self.pipe, *strangers], have, shrink_s, os.getpid()), daemon=True)
        self.process.start()
        theirs.close()

    def give(self, task):
        self.task = task
        self.pipe.send(task)

    def result(self):
        """What its task came to; a lane that died failed."""
        task, self.task = self.task, None
        name = task[0]
        try:
            return {"task": task, **self.pipe.recv()}
        except EOFError:
            self.process.join(PATIENCE)
            return {"task": task, "name": name, "failed": True, "died": True, "counted": {},
                    "said": [f"{name} FAILED", f"the lane that played it ended with {self.process.exitcode}"]}


class Lanes:
    """All of them; `close` ends them and leaves nothing behind."""

    def __init__(self, jobs, have, shrink_s):
        self.jobs = jobs
        self.options = have, shrink_s
        self.lanes = {}  # by number

    def play(self, work, late):
        """The results of all tasks, as they come; none is begun any more once `late()`."""
        while True:
            for number in range(self.jobs):
                lane = self.lanes.get(number)
                task = None if lane and lane.task or late() else work.take(number)
                if task:
                    if lane is None:
                        strangers = [x.pipe for x in self.lanes.values()]
                        lane = self.lanes[number] = Lane(*self.options, strangers)
                    lane.give(task)
            busy = {lane.pipe: (number, lane) for number, lane in self.lanes.items() if lane.task}
            if not busy:
                return
            for pipe in multiprocessing.connection.wait(list(busy)):
                number, lane = busy[pipe]
                result = lane.result()
                if result.get("died"):
                    self._end([number])  # another one takes its number
                yield result

    def _end(self, numbers):
        lanes = [self.lanes.pop(n) for n in numbers]
        for lane in lanes:
            if lane.process.is_alive():
                lane.process.terminate()
        until = time.monotonic() + PATIENCE
        for lane in lanes:
            lane.process.join(max(0.1, until - time.monotonic()))
            if lane.process.is_alive():
                lane.process.kill()
                lane.process.join()
            lane.pipe.close()
        mine = {lane.process.pid for lane in lanes}
        sweep(lambda pid: pid in mine)

    def close(self):
        self._end([*self.lanes])


def live(pipe, strangers, have, shrink_s, parent):
    """A lane's life: task after task until there is none, or its parent is gone or says so."""
    for s in strangers:  # ends of pipes that are the parent's: an open copy would hide its death from other lanes
        s.close()
    os.setpgid(0, 0)  # the terminal's interrupt is for the parent, who says when to end
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: play.end())
    net.process_control(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        os._exit(1)
    runner = Runner(have, shrink_s)
    try:
        while not play.ended:
            if pipe.poll(0.2):
                pipe.send(runner.examine(*pipe.recv()))
    except (EOFError, BrokenPipeError, play.Ended):
        pass
    finally:
        runner.close()
        sys.stdout.flush()
