#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the daemons of an earlier revision and prints the folder that they are in: for tests/test_upgrade.py and for benches.
#
#   tests/old-version.sh [REVISION]        default: the last revision before kept formats changed, below
set -eu
cd "$(dirname "$0")/.."
revision=$(git rev-parse --verify --quiet "${1:-9c165da}^{commit}") || {
	echo "tests/old-version.sh: this clone has no revision ${1:-9c165da}: git fetch --unshallow" >&2
	exit 1
}
case ${TANDEM_OUT:-} in /*) out=$TANDEM_OUT ;; *) out=$PWD/${TANDEM_OUT:-out} ;; esac
out=$out/old/$revision
bin=$out/target/release
if ! [ -x "$bin/tandem" ]; then
	mkdir -p "$out/tree"
	git archive "$revision" | tar -x -C "$out/tree"
	(cd "$out/tree" && CARGO_TARGET_DIR=$out/target "${CARGO:-cargo}" build --release --locked \
		-p tandem-asicd -p tandem-switchd -p tandem-cli) >&2
	rm -rf "$out/tree"
fi
echo "$bin"
