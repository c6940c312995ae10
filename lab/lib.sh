# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2016,SC2034 # apt expands its own $(...); names are used by whoever reads this file
#
# What the lab's scripts share: where things are, who may, the mirror, stages that survive an interruption, quoting.
# Read by `.`, with LAB_NAME set to the name that messages begin with.

TOP=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
LAB=${TANDEM_LAB:-${TANDEM_OUT:-$TOP/out}/lab} # chroot, image, kernel: everything that is made once
SUITE=trixie

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "$LAB_NAME" "$*" >&2; exit "${CODE:-1}"; }
have() { command -v "$1" >/dev/null 2>&1; }
now() { date +%s; }
size_of() { du -sh --apparent-size "$1" 2>/dev/null | cut -f1; }

need_root() {
	[ "$(id -u)" = 0 ] || die "needs root (chroot, network namespaces, TAP): run it as root"
}

need_tools() { # command=package...
	lacking=
	for pair; do
		PATH=$PATH:/usr/sbin:/sbin have "${pair%%=*}" || lacking="$lacking ${pair#*=}"
	done
	[ -z "$lacking" ] || die "needs the Debian packages$lacking: run \`./run lab\` once, or: apt-get install --no-install-recommends$lacking"
}

# 'it''s' -> words that a shell reads back unchanged
quote() {
	for w; do
		printf "'%s' " "$(printf '%s' "$w" | sed "s/'/'\\\\''/g")"
	done
}

# The lines of sources.list for $SUITE: this machine's own sources with their suite's name replaced.
sources() {
	codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	lines=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
		sort -u | awk -v old="$codename" -v new="$SUITE" '
			($2 == old || $2 == old "-updates" || $2 == old "-security") && $3 == "main" && $4 == "Debian" {
				sub(old, new, $2)
				print "deb " $1 " " $2 " main"
			}')
	if [ -z "$lines" ]; then die "apt knows no Debian mirror: run apt-get update"; fi
	printf '%s\n' "$lines"
}

# One run at a time makes things; the others wait for it. Called with descriptor 9 free.
lock() {
	mkdir -p "$LAB"
	exec 9>"$LAB/lock"
	if ! flock -n 9; then
		say "lab: another run prepares the lab or builds the driver, waiting for it ..."
		flock 9
	fi
}

unlock() { flock -u 9; exec 9>&-; }

# A stage is done when its stamp holds its fingerprint: what it is made from, never what the archive has today.
fresh() { # stage fingerprint
	[ -e "$LAB/$1.stamp" ] && [ "$(cat "$LAB/$1.stamp")" = "$2" ]
}

stamp() { # stage fingerprint
	printf '%s\n' "$2" >"$LAB/$1.stamp.new"
	mv "$LAB/$1.stamp.new" "$LAB/$1.stamp"
}

# Runs a command in the build chroot, in a mount namespace of its own: nothing to unmount, whatever happens.
# /out is the lab's folder; /proc and /dev are there.
in_build() {
	unshare --mount --propagation private sh -euc '
		root=$1 lab=$2
		shift 2
		mkdir -p "$root/out"
		mount --bind "$lab" "$root/out"
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		exec chroot "$root" env -i HOME=/root LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
		sh "$LAB/build" "$LAB" "$@"
}
