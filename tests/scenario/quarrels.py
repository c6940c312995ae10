# SPDX-License-Identifier: Apache-2.0
"""What was done to the daemons and when, and which of their warnings that excuses: those of the one that was killed,
and what a fault plan or the other one's death makes them say, in the time around it. All others are failures."""

import collections
import datetime
import re
import time

AFTER = 0.3  # seconds that a daemon may go on warning when all is well again: a log's line may be late by that
# What the daemon that lives says of the other's death, and what a fault plan makes them say
LOST = r"the ASIC is lost|no ASIC|attach|io: |carrier|the packet thread"
SAYS = {"reset": "a fault plan said so|" + LOST, "delay": r"not answered|timed out|" + LOST, "fail": r"fault|fail"}


class Quarrels:
    """Times are those of the logs: UTC, seconds."""

    def __init__(self):
        self.times = []  # [daemon, pattern, from, until (None: not over)]
        self.dead = set()
        self.ever = set()  # that have been killed
        self.excused = collections.Counter()  # for report.py

    def kill(self, daemon):
        other = "switchd" if daemon == "asicd" else "asicd"
        now = time.time()
        self.times += [[daemon, LOST, now, None], [other, LOST, now, None]]
        self.dead.add(daemon)
        self.ever.add(daemon)

    def killed(self, daemon):
        """Has it ever been?"""
        return daemon in self.ever

    def up(self):
        self.dead.clear()

    def fault(self, kind):
        self.times += [[d, SAYS.get(kind, "fault"), time.time(), None] for d in ("asicd", "switchd")]

    def calm(self):
        """The switch is in sync: what a daemon's death made them say is over, a fault plan is not."""
        if not self.dead:
            self._end((LOST,))

    def clear(self):
        """No fault plan is armed any more."""
        self._end(None)

    def _end(self, patterns):
        until = time.time() + AFTER
        for t in self.times:
            if t[3] is None and (patterns is None or t[1] in patterns):
                t[3] = until

    def excuse(self, daemon, line):
        """Is that line of its log to be expected?"""
        said = re.match(r"(\S+)Z ", line)
        if not said:
            return False
        at = datetime.datetime.fromisoformat(said[1] + "+00:00").timestamp()
        excused = any(d == daemon and start - 0.1 <= at <= (until or at) and re.search(pattern, line)
                      for d, pattern, start, until in self.times)
        if excused:
            text = re.sub("[0-9]+", "N", line.split("Z ", 1)[1].strip()[:80])
            self.excused[f"allowed: a warning for what was done to the daemons: {daemon}: {text}"] += 1
        return excused
