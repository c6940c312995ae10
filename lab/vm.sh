# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2016,SC2153,SC2034 # names that lab/run sets, and the other way round
#
# One virtual machine: its folder, its cables, asicd beside it, its life and its end. Read by `.` after lib.sh.

BACKEND=pci LOAD=y PROFILE=spectrum-sn2700 PORTS=4 CABLES='' PARAMS='' ASICD='' ACPI='' KERNEL=6.12 ICOUNT=''
MACHINE=q35 CPU=qemu64,+rdrand,+ssse3,+sse4.1,+sse4.2,+popcnt
SMP='' MEM='' TIMEOUT=300 RESULTS='' ENVS='' ALLOW_WARN='' KEEP='' SHELL_VM='' NO_BUILD='' TTY='' APPEND=''
RUN='' NS='' SOCK='' PIDS='' MADE_LINKS='' BIN=''
IVSHMEM_SIZE=32M IVSHMEM_VECTORS=8 # asicd's region needs no more
BOOT_ALLOWANCE=90 # seconds a boot may take on a loaded machine, on top of the script's own time

# Kernel messages that a run never shows (promise: never a WARN), one pattern a line
ALARMS=$TOP/lab/alarms

vm_check() {
	case $BACKEND in none|null) CABLE_ALL='' ;; *) CABLE_ALL=y ;; esac
	if [ -n "$ICOUNT" ] && [ "$BACKEND" = pci ]; then
		CODE=2 die "--icount can't go with asicd: virtual time jumps while the host's processes still work; use --backend null"
	fi
	if [ -n "$ICOUNT" ]; then
		[ "${SMP:-1}" = 1 ] || CODE=2 die "--icount has one CPU, not $SMP"
		SMP=1
	fi
	SMP=${SMP:-2}
	# KASAN's shadow and lockdep's tables, and everything three times slower
	if [ "$KERNEL" = debug ]; then MEM=${MEM:-2048} BOOT_ALLOWANCE=300; fi
	MEM=${MEM:-1024}
	if [ "$BACKEND" != pci ] && [ -n "$CABLES" ]; then
		CODE=2 die "--cable needs ports that forward: use --backend pci"
	fi
	need_root
	need_tools qemu-system-x86_64=qemu-system-x86 ip=iproute2 flock=util-linux
}

# The folder with asicd, tandem and the ivshmem server: the newest build, or the one that TANDEM_BIN names.
vm_binaries() {
	BIN=${TANDEM_BIN:-}
	if [ -z "$BIN" ]; then
		target=${CARGO_TARGET_DIR:-$TOP/target}
		for d in "$target/release" "$target/debug"; do
			if [ ! -x "$d/asicd" ] || [ ! -x "$d/tandem" ]; then continue; fi
			if [ -z "$BIN" ] || [ -n "$(find "$d/asicd" -newer "$BIN/asicd")" ]; then BIN=$d; fi
		done
	fi
	if [ "$BACKEND" = pci ]; then
		for b in asicd tandem-ivshmem-server; do
			[ -x "${BIN:-/nowhere}/$b" ] ||
				die "there is no $b in ${BIN:-$TOP/target}: run ./run build, or set TANDEM_BIN"
		done
	fi
}

vm_prepare() {
	"$TOP/lab/prepare"
	vm_binaries
	if [ "$KERNEL" = debug ]; then "$TOP/lab/debug-kernel"; fi
	if [ "$BACKEND" != none ] && [ -z "$NO_BUILD" ]; then "$TOP/kernel/build" --kernel "$KERNEL" >&2; fi
}

vm_open() {
	id=$(date +%m%d-%H%M%S)-$$
	RUN=$LAB/runs/$id
	NS=tlab-$$
	if [ -n "$SHELL_VM" ]; then TIMEOUT=86400; fi
	mkdir -p "$RUN/vm"
	SOCK=$(mktemp -d "${TMPDIR:-/tmp}/tlab.XXXXXX") # short: a UNIX socket's path ends at 107 characters
	trap vm_close EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 143' TERM
	SHARE=${RESULTS:-$RUN/share}
	mkdir -p "$SHARE"
	SHARE=$(CDPATH='' cd -- "$SHARE" && pwd)
	G=$SHARE/.lab
	rm -rf "$G"
	mkdir -p "$G"
	cp "$TOP/lab/guest/init" "$TOP/lab/guest/host" "$ALARMS" "$G/"
	for c in out err ctl; do mkfifo "$SOCK/$c.in" "$SOCK/$c.out"; done
}

# Everything this run made, whatever way it ends; only its own processes, by their numbers.
vm_close() {
	rc=$?
	trap - EXIT
	trap '' HUP INT TERM
	[ -z "$TTY" ] || stty "$TTY"
	for p in $PIDS; do kill "$p" 2>/dev/null || :; done
	for p in $PIDS; do
		n=0
		# QEMU's own time-out kills it after 5 s
		while kill -0 "$p" 2>/dev/null && [ $n -lt 70 ]; do sleep 0.1; n=$((n + 1)); done
		kill -KILL "$p" 2>/dev/null || :
	done
	for pair in $MADE_LINKS; do ip -n "${pair%%:*}" link del "${pair#*:}" 2>/dev/null || :; done
	if [ -e "/run/netns/$NS" ]; then ip netns del "$NS" || :; fi
	[ -z "$SOCK" ] || rm -rf "$SOCK"
	if [ -n "$RUN" ]; then
		rm -rf "$RUN/vm" "$SHARE/.lab/modules"
		if [ "$rc" = 0 ] && [ -z "$KEEP" ]; then
			rm -rf "$RUN" "$SHARE/.lab"
		else
			# the logs of runs that failed stay for a day
			find "$LAB/runs" -mindepth 1 -maxdepth 1 -mmin +1440 -exec rm -rf {} +
		fi
	fi
	exit "$rc"
}

vm_env() { # what .lab/env tells process 1
	load='' n=0
	if [ -n "$LOAD" ]; then
		case $BACKEND in
		pci) load="clsw clsw_pci" ;;
		null) load="clsw clsw_null" ;;
		esac
	fi
	# shellcheck disable=SC2046,SC2183 # the terminal's size is two numbers
	printf "LAB_TIMEOUT=%s LAB_HOSTNAME=lab LAB_BACKEND=%s LAB_PORTS=%s LAB_PROFILE=%s LAB_LOAD='%s' LAB_BIN='%s' LAB_SHELL='%s' LAB_NICS=%s LAB_ROWS=%s LAB_COLS=%s\n" \
		"$TIMEOUT" "$BACKEND" "$PORTS" "$(quote "$PROFILE")" "$load" "$BIN" "$SHELL_VM" "$CABLE_ALL" \
		$(stty size 2>/dev/null | grep -v '^0' || echo 24 80)
	for m in $load; do
		n=$((n + 1))
		words=
		for p in $PARAMS; do
			case $p in
			"$m":*) words="$words ${p#*:}" ;;
			*:*) ;;
			*) [ "$m" != clsw ] || words="$words $p" ;;
			esac
		done
		if [ "$m" = clsw_null ]; then
			case " $words" in *" ports="*) ;; *) words="ports=$PORTS $words" ;; esac
			case " $words" in *" profile="*) ;; *) words="profile=$PROFILE $words" ;; esac
		fi
		printf 'LAB_PARAMS_%s=%s\n' "$n" "$(quote "$words")"
	done
}

vm_script() { # script quoted-arguments
	vm_env >"$G/env"
	what=$1
	case $what in
	*/*) ;;
	*) if [ -f "$what" ]; then what=./$what; fi ;;
	esac
	case $what in
	*/*)
		dir=$(CDPATH='' cd -- "$(dirname -- "$what")" && pwd)
		file=$dir/$(basename -- "$what")
		case $file in
		"$TOP"/*) inside=/host/${file#"$TOP"/} ;;
		*) cp "$file" "$G/script"; inside=/run/lab/.lab/script ;;
		esac
		shell=
		[ -x "$file" ] || case $file in *.py) shell='python3' ;; *) shell='sh' ;; esac
		printf 'exec env %s%s %s %s\n' "$ENVS" "$shell" "$(quote "$inside")" "$2" >"$G/command"
		;;
	*) printf 'exec env %s %s %s\n' "$ENVS" "$(quote "$what")" "$2" >"$G/command" ;;
	esac
	if [ "$BACKEND" != none ] && [ -d "$LAB/modules-$KERNEL" ]; then cp -R "$LAB/modules-$KERNEL" "$G/modules"; fi
}

# The front panel: a namespace that nothing else uses, with one interface per port.
vm_cable() {
	NICS=
	ip netns add "$NS"
	ip netns exec "$NS" sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv6.conf.all.disable_ipv6=1
	[ -n "$CABLE_ALL" ] || return 0
	k=0
	while [ $k -lt "$PORTS" ]; do
		k=$((k + 1))
		ip -n "$NS" link show "p$k" >/dev/null 2>&1 && continue
		to=
		for c in $CABLES; do
			if [ "${c%%=*}" = "$k" ]; then to=${c#*=}; fi
		done
		case $to in
		'')
			ip -n "$NS" tuntap add "p$k" mode tap
			NICS="$NICS $k" ;;
		*[!0-9]*)
			peer=${to%%:*} if=eth0
			case $to in *:*) if=${to#*:} ;; esac
			[ -e "/run/netns/$peer" ] || die "--cable $k=$to: there is no network namespace $peer: run ip netns add $peer"
			ip -n "$NS" link add "p$k" type veth peer name "$if" netns "$peer" ||
				die "--cable $k=$to: no interface $if in $peer"
			MADE_LINKS="$MADE_LINKS $NS:p$k" ;;
		*)
			[ "$to" -le "$PORTS" ] || die "--cable $k=$to: there are $PORTS ports"
			ip -n "$NS" link add "p$k" type veth peer name "p$to"
			ip -n "$NS" link set "p$to" up ;;
		esac
		ip -n "$NS" link set "p$k" up
	done
}

spawn() { # log command...: in the background, its number remembered
	log=$1
	shift
	"$@" >"$log" 2>&1 </dev/null &
	PIDS="$PIDS $!"
}

wait_for() { # what pid log test...
	what=$1 pid=$2 log=$3
	shift 3
	n=0
	until "$@"; do
		kill -0 "$pid" 2>/dev/null || die "$what ended: $(tail -n 1 "$log") (all of it: $log)"
		n=$((n + 1))
		[ $n -lt 600 ] || die "$what is not ready after 30 s: $log"
		sleep 0.05
	done
}

vm_start_asic() {
	[ "$BACKEND" = pci ] || return 0
	words=
	k=0
	while [ $k -lt "$PORTS" ]; do
		k=$((k + 1))
		words="$words --port swp$k=p$k@$NS"
	done
	spawn "$RUN/ivshmem-server.log" "$BIN/tandem-ivshmem-server" --socket "$SOCK/ivshmem" --size "$IVSHMEM_SIZE" \
		--vectors "$IVSHMEM_VECTORS"
	wait_for "the ivshmem server" "$!" "$RUN/ivshmem-server.log" test -S "$SOCK/ivshmem"
	# shellcheck disable=SC2086 # lists of words
	TANDEM_RUN=$SOCK spawn "$RUN/asicd.log" "$BIN/asicd" --name asic --profile "$PROFILE" --carrier "ivshmem:$SOCK/ivshmem" \
		$words $ASICD
	ASIC_PID=$!
	wait_for asicd "$ASIC_PID" "$RUN/asicd.log" test -S "$SOCK/asic/asicd.sock"
}

# What `host COMMAND` asks for inside the machine is done here.
vm_serve() {
	asked=
	trap 'trap - TERM; [ -z "$asked" ] || kill "$asked" 2>/dev/null; exit 143' TERM
	while read -r _; do
		rc=0
		(
			cd "$TOP" || exit
			LAB_NS=$NS LAB_ASIC=asic TANDEM_RUN=$SOCK PATH=${BIN:+$BIN:}$PATH LAB_RUN=$RUN
			export LAB_NS LAB_ASIC TANDEM_RUN PATH LAB_RUN
			exec timeout 120 sh "$G/host.command"
		) >"$G/host.out" 2>"$G/host.err" </dev/null &
		asked=$!
		wait "$asked" || rc=$?
		asked=
		echo "$rc"
	done <"$SOCK/ctl.out" >"$SOCK/ctl.in"
}

vm_qemu_args() {
	if [ -n "$ICOUNT" ]; then
		echo "-accel tcg,thread=single -icount shift=2,sleep=off"
	else
		echo "-accel tcg,thread=multi"
	fi
	case $MACHINE in q35) bus=pcie.0 ;; *) bus=pci.0 ;; esac
	echo "-machine $MACHINE,usb=off,smm=off,hpet=off -cpu $CPU"
	echo "-smp $SMP -m $MEM -nodefaults -no-user-config -display none -no-reboot"
	echo "-device virtio-serial-pci,max_ports=8"
	for c in out err ctl; do
		echo "-chardev pipe,id=$c,path=$SOCK/$c -device virtserialport,chardev=$c,name=lab.$c"
	done
	if [ -n "$SHELL_VM" ]; then
		echo "-chardev stdio,id=tty,signal=off -device virtconsole,chardev=tty"
	fi
	for k in ${NICS:-}; do
		i=$((k - 1))
		addr=$(printf '0x%x.%x' $((8 + i / 8)) $((i % 8)))
		echo "-netdev tap,id=n$k,ifname=p$k,script=no,downscript=no,vhost=off"
		echo "-device virtio-net-pci,id=p$k,netdev=n$k,bus=$bus,addr=$addr,multifunction=on,romfile=,csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ufo=off,mq=off,ctrl_vlan=off,mac=$(printf '02:54:4e:00:%02x:%02x' $((k / 256)) $((k % 256)))"
	done
	if [ "$BACKEND" = pci ]; then
		echo "-chardev socket,path=$SOCK/ivshmem,id=asic -device ivshmem-doorbell,chardev=asic,vectors=$IVSHMEM_VECTORS"
	fi
}

# Starts QEMU with these words, passes on what the machine says, and waits for its end: qemu_rc.
vm_qemu() {
	cat "$SOCK/out.out" &
	cat_out=$!
	cat "$SOCK/err.out" >&2 &
	cat_err=$!
	PIDS="$PIDS $cat_out $cat_err"
	if [ -n "$SHELL_VM" ]; then
		# the terminal's own keys, Ctrl-C too, belong to the shell inside
		TTY=$(stty -g 2>/dev/null || :)
		[ -z "$TTY" ] || stty raw -echo
		"$@" <&3 2>"$RUN/qemu.log" &
	else
		"$@" >"$RUN/qemu.log" 2>&1 </dev/null &
	fi
	qemu=$!
	PIDS="$qemu $PIDS"
	qemu_rc=0
	wait "$qemu" || qemu_rc=$?
	if [ -n "$TTY" ]; then stty "$TTY"; fi
	TTY=
	# what it said is all through when the pipes' other ends are closed
	if [ -s "$RUN/console.log" ]; then wait "$cat_out" "$cat_err" || :; fi
}

# Starts the machine and waits for it; the script's exit code, or 97.
vm_run() {
	kernel=$LAB/boot
	if [ "$KERNEL" = debug ]; then kernel=$LAB/debug; fi
	acpi=
	if [ -n "$ACPI" ]; then
		case $ACPI in
		*.asl)
			# in the run's folder, which the chroot sees; the share may be anywhere
			cp "$ACPI" "$RUN/table.asl"
			in_build iasl -p "/out/${RUN#"$LAB"/}/table" "/out/${RUN#"$LAB"/}/table.asl" >"$RUN/iasl.log" 2>&1 ||
				die "$ACPI does not compile: $RUN/iasl.log"
			acpi=$RUN/table.aml ;;
		*) acpi=$ACPI ;;
		esac
	fi
	vm_serve &
	serve=$!
	PIDS="$PIDS $serve"
	append="console=ttyS0 loglevel=5 panic=-1 net.ifnames=0 mitigations=off nokaslr tsc=reliable"
	# Nor does its timer tick in time for the test that a boot makes of it (a panic on a loaded machine); and nobody here
	# wants 20 s of tests of ciphers.
	append="$append no_timer_check cryptomgr.notests"
	# a busy host may not run a processor of ours for half a minute
	append="$append watchdog_thresh=60"
	# An emulated processor that has to wait while it measures its clock is wrong by as much ever after (seen: 12 times
	# too fast); the power-management timer is the host's time, whatever the load. Virtual time has no such trouble.
	[ -n "$ICOUNT" ] || append="$append clocksource=acpi_pm"
	# Nor does a chip that is a process of a busy host answer within what silicon needs (seen: 280 ms in which the
	# hypervisor gave its processor to somebody else)
	[ -n "$ICOUNT" ] || append="$append clsw.silent_ms=500"
	[ -n "$ALLOW_WARN" ] || append="$append oops=panic"
	# built in, these would make their first devices at boot; as modules they don't. kmemleak looks only when told to
	if [ "$KERNEL" = debug ]; then append="$append dummy.numdummies=0 bonding.max_bonds=0 ifb.numifbs=0 kmemleak=on"; fi
	# while the disk works, virtual time leaps: nobody hangs then
	[ -z "$ICOUNT" ] || append="$append sysctl.kernel.hung_task_timeout_secs=0"
	TMPDIR=$RUN/vm
	export TMPDIR # the disk's throw-away layer
	# shellcheck disable=SC2046,SC2086 # lists of words
	set -- $(vm_qemu_args)
	if [ -n "$acpi" ]; then set -- "$@" -acpitable "file=$acpi"; fi
	if [ -n "$BIN" ]; then set -- "$@" -virtfs "local,path=$BIN,mount_tag=bin,security_model=none,readonly=on,multidevs=remap"; fi
	set -- ip netns exec "$NS" timeout --foreground --kill-after=5 $((TIMEOUT + BOOT_ALLOWANCE)) qemu-system-x86_64 "$@" \
		-serial "file:$RUN/console.log" -kernel "$kernel/vmlinuz" -initrd "$kernel/initramfs.gz" -append "$append $APPEND" \
		-drive "file=$LAB/root.ext4,format=raw,if=none,id=root,snapshot=on,cache=unsafe" \
		-device virtio-blk-pci,drive=root \
		-virtfs "local,path=$SHARE,mount_tag=lab,security_model=none,multidevs=remap" \
		-virtfs "local,path=$TOP,mount_tag=host,security_model=none,readonly=on,multidevs=remap"
	exec 3<&0
	vm_qemu "$@"
	# QEMU's emulation with several threads ends on an assertion of its own now and then, at boot; no machine does
	if [ ! -e "$G/up" ] && grep -q 'qemu-system.*Assertion .* failed' "$RUN/qemu.log"; then
		say "lab: the emulator failed before the machine was up; once more: $(grep -m 1 Assertion "$RUN/qemu.log")"
		mv "$RUN/qemu.log" "$RUN/qemu.first.log"
		kill "$cat_out" "$cat_err" 2>/dev/null || : # those of pipes that were never opened
		vm_qemu "$@"
	fi
	if [ -s "$G/code" ]; then return "$(cat "$G/code")"; fi
	if [ "${qemu_rc:-0}" = 124 ] || [ "${qemu_rc:-0}" = 137 ]; then return 124; fi
	return 97
}

# The kernel's own messages decide too.
vm_verdict() { # code
	code=$1
	log=$RUN/console.log
	if [ -s "$G/dmesg" ]; then
		cp "$G/dmesg" "$RUN/dmesg"
		log=$RUN/dmesg
	fi
	if grep -Eqf "$ALARMS" "$log" 2>/dev/null; then
		KEEP=y
		say "lab: the kernel complained (all of it: $log):"
		tr -d '\r' <"$log" | awk -v alarms="$(paste -sd'|' "$ALARMS")" '
			$0 ~ alarms && !left { left = 45 }
			left { print "   " $0; left-- }
			/---\[ end / { left = 0; if (++shown == 3) exit }' >&2
		[ -n "$ALLOW_WARN" ] || exit 99
	fi
	case $code in
	98) say "lab: the driver would not load:"; sed 's/^/   /' "$G/failed" >&2 ;;
	97)
		say "lab: the machine ended without an answer; its console's last lines ($RUN/console.log):"
		{ tail -n 15 "$RUN/console.log"; tail -n 5 "$RUN/qemu.log"; } 2>/dev/null | tr -d '\r' | sed 's/^/   /' >&2 ;;
	124) say "lab: not done after $TIMEOUT s ($log)" ;;
	esac
	exit "$code"
}
