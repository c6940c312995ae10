#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2016 # what the host expands
#
# The chip's process, ended and started from inside the machine.

# Killed; its words are kept for the next one
asic_kill() {
	host 'p=$(cat $TANDEM_RUN/asic/asicd.pid); [ -s $TANDEM_RUN/cmd ] || tr "\0" "\n" </proc/$p/cmdline >$TANDEM_RUN/cmd
		kill -9 $p; while [ -e /proc/$p/exe ]; do sleep 0.02; done'
}
# In a session of its own, but not with a priority of its own (sched(7), autogroup): beside a machine that has more of it
# the chip would take half a second for an answer.
asic_start() {
	host 'set --; while IFS= read -r w; do set -- "$@" "$w"; done <$TANDEM_RUN/cmd
		nice=$(sed "s/.* //" /proc/self/autogroup 2>/dev/null)
		export TANDEM_RUN nice
		setsid sh -c '\''[ -z "$nice" ] || echo "$nice" >/proc/self/autogroup
			"$@" & p=$!; while [ -d "$TANDEM_RUN" ] && kill -0 $p; do sleep 1; done; kill $p'\'' - "$@" \
			>>$LAB_RUN/asicd.log 2>&1 </dev/null &
		n=0; until [ -S $TANDEM_RUN/asic/asicd.sock ] || [ $n = 100 ]; do sleep 0.05; n=$((n + 1)); done'
}
