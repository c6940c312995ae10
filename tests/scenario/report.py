# SPDX-License-Identifier: Apache-2.0
"""What a run of scenarios did, in lines: what was proved, what was not and why, what was allowed to differ."""

import collections

# Shares that drawn scenarios must reach, once a run has so many good volleys, or so many scenarios with some: below,
# the oracle looks away too often. Runs of 300 to 900 scenarios had 58 to 73 %, and 11 to 20 % of the scenarios. The
# kept ones are what was hard to get right once, most of them on small chips: they prove little, and would decide in a
# short run
ENOUGH, MANY = 300, 150
LEAST_CHECKED = 0.50   # of the good volleys were proved not to have touched the CPU
MOST_UNCHECKED = 0.30  # of the scenarios with good volleys proved none
# How often at most a scenario may need a rule that allows a difference, on the average
MOST_ALLOWED = {"an ICMP error that one side did not send": 0.02}


def starting(counted, prefix):
    """The counts whose name begins so, the most frequent first."""
    found = collections.Counter({k[len(prefix):]: n for k, n in counted.items() if k.startswith(prefix)})
    return ", ".join(f"{k} {n}" for k, n in found.most_common())


def report(counted):
    """Lines for people."""
    good, checked, part = (counted[k] for k in ("good volleys", "good: checked", "good: in part"))
    lines = [f"   sent: {counted['frames']} frames in {counted['volleys']} volleys, {good} of them of good packets: "
             f"{checked} ({100 * checked // max(good, 1)} %) were proved to have stayed in hardware, and of {part} "
             f"({100 * part // max(good, 1)} %) all that the kernel alone forwarded, {counted['checked']} frames",
             f"   in {counted['scenarios that proved none']} of {counted['scenarios with good volleys']} scenarios "
             f"with good volleys none was; {counted['benches']} benches"]
    for title, prefix in (("not proved", "not: "), ("commands", "command: "), ("allowed to differ", "allowed: "),
                          ("restarts and faults", "quarrel: ")):
        lines.append(f"   {title}: {starting(counted, prefix) or 'none'}")
    return lines


def short(counted):
    """What the drawn scenarios of a run proved too little of, in lines; none if they are too few to say."""
    good, some = counted["good volleys"], counted["scenarios with good volleys"]
    if good < ENOUGH:
        return []
    wrong = []
    proved = counted["good: checked"] + counted["good: in part"]
    if proved < LEAST_CHECKED * good:
        wrong.append(f"only {proved} of {good} good volleys were proved to have stayed in hardware: at least "
                     f"{100 * LEAST_CHECKED:.0f} % have to be")
    if some >= MANY and counted["scenarios that proved none"] > MOST_UNCHECKED * some:
        wrong.append(f"{counted['scenarios that proved none']} of {some} scenarios proved of no volley that it stayed "
                     f"in hardware: at most {100 * MOST_UNCHECKED:.0f} % may")
    for what, most in MOST_ALLOWED.items():
        if counted[f"allowed: {what}"] > max(3, most * counted["scenarios"]):
            wrong.append(f"{counted[f'allowed: {what}']} times in {counted['scenarios']} scenarios: {what}")
    return wrong


def too_many(new, played):
    """New seeds may fail without failing the run: one in twenty of them. More than that is a finding."""
    most = max(1, played // 20)
    return [f"{new} of {played} new scenarios failed: at most {most} may"] if new > most else []


def replays(failed, results, times):
    """A line for each scenario that failed: how often it did when it was played again beside others."""
    again = collections.Counter()
    for result in results:
        again[result["task"][1]] += result["failed"]
    return [f"{name}: {again[source]} of {times} replays failed too"
            + ("" if again[source] else ": open, until somebody says why it failed once") for name, source in failed]
