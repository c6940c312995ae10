#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck disable=SC2317,SC1091,SC2016,SC2012 # a trap calls finish; apt expands its own $(...); plain names
#
# Proves ./run on a machine that has nothing: makes a minimal Debian root and runs `./run demo` or `./run test` in it.
#
#   tests/fresh-root.sh bookworm demo         tests/fresh-root.sh trixie test unit
#
# The mirror is the one of this machine's own apt configuration. FRESH_DIR: where the root goes (about 3 GB);
# FRESH_KEEP=1 leaves it there.

set -eu

suite=${1:-}
what=${2:-}
case $what in demo|test|lint|build) ;; *)
	echo "usage: tests/fresh-root.sh SUITE demo|test|lint|build [ARGUMENTS]" >&2
	exit 2 ;;
esac
shift 2

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
for tool in mmdebstrap git; do
	command -v "$tool" >/dev/null || { echo "fresh-root: needs $tool: apt-get install $tool" >&2; exit 1; }
done
[ "$(id -u)" = 0 ] || { echo "fresh-root: needs root" >&2; exit 1; }

root=${FRESH_DIR:-/var/tmp}/tandem-fresh-$suite-$$

mounts() { awk -v r="$root" '$2 == r || index($2, r "/") == 1 { print $2 }' /proc/mounts | sort -r; }

finish() {
	rc=$?
	trap - EXIT
	for m in $(mounts); do umount "$m" || umount -l "$m"; done
	if [ -z "$(mounts)" ] && [ -z "${FRESH_KEEP:-}" ]; then rm -rf --one-file-system "$root"; fi
	exit "$rc"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# "MIRROR SUITE COMPONENTS" lines for the wanted suite: this machine's sources with its suite's name replaced
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
sources=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' 2>/dev/null |
	sed 's,/ , ,' | sort -u |
	awk -v old="$codename" -v new="$suite" '
		$2 == old || $2 == old "-updates" || $2 == old "-security" {
			sub(old, new, $2)
			if ($3 == "main" && $0 ~ /Debian/) print "deb " $1 " " $2 " main"
		}')
[ -n "$sources" ] || { echo "fresh-root: apt knows no Debian mirror: run apt-get update" >&2; exit 1; }

echo "== a minimal $suite in $root"
began=$(date +%s)
printf '%s\n' "$sources" | mmdebstrap --quiet --mode=root --variant=apt "$suite" "$root" -
echo "   made in $(($(date +%s) - began)) s: $(chroot "$root" dpkg-query -W | wc -l) packages, $(du -sh "$root" | cut -f1)"
for tool in make cc git python3 cargo sudo ip; do
	if chroot "$root" sh -c "command -v $tool" >/dev/null 2>&1; then echo "   (it has $tool)"; fi
done

# the checkout as others get it: the last commit, no build output
mkdir -p "$root/root/tandem"
git -C "$top" archive --format=tar HEAD | tar -x -C "$root/root/tandem"

# what a real machine has: its own way out to the archives
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
if [ -d /usr/local/share/ca-certificates ]; then
	mkdir -p "$root/usr/local/share/ca-certificates"
	cp -R /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
fi

# a root of its own is a mount point: ip netns exec changes how it is shared
mount --bind "$root" "$root"
mount --make-private "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --make-rslave "$root/sys"
mount --rbind /dev "$root/dev"
mount --make-rslave "$root/dev"
mount -t tmpfs tmpfs "$root/run"

echo "== ./run $what -y $*"
began=$(date +%s)
rc=0
env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb ${TANDEM_LONG:+TANDEM_LONG=1} \
	chroot "$root" sh -c 'cd /root/tandem && exec ./run "$@"' sh "$what" -y "$@" </dev/null || rc=$?
echo "== ./run $what ended with $rc after $(($(date +%s) - began)) s"
left=$(ls "$root/run/netns" 2>/dev/null | wc -l)
[ "$left" = 0 ] || { echo "fresh-root: $left namespaces were left behind"; rc=1; }
if [ -e "$root/usr/sbin/policy-rc.d" ]; then echo "fresh-root: policy-rc.d was left behind"; rc=1; fi
mkdir -p "$top/out/fresh"
cp "$root"/root/tandem/out/demo.json "$top/out/fresh/demo-$suite.json" 2>/dev/null || :
cp -R "$root"/root/tandem/out/test "$top/out/fresh/test-$suite" 2>/dev/null || :
exit "$rc"
