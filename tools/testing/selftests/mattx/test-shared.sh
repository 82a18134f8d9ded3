#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Shared memory that one process alone can reach moves with it; whoever asks for
# its file meanwhile waits until it is back; whatever the end, the file has it all.
# timeout: 900
# debug: yes
# shellcheck disable=SC2317

. "$(dirname "$0")/lib.sh"

tmpfs=/dev/shm/mattx-test
layered=/var/tmp/mattx-test
disk=$T/disk
mke2fs -q -t ext4 "$work/image" 8M && run_on 1 "cat >/tmp/image" <"$work/image"
on 1 "umount $disk 2>/dev/null; rm -rf $tmpfs $layered $disk; mkdir $tmpfs $layered $disk; modprobe loop
	mount -o loop /tmp/image $disk" || not_ok "an ext4 file system" "$out"
dirs=("$tmpfs" "$layered" "$disk")

# sees TEXT DIR ROUNDS - another process at home has the file as it is now
sees()
{
	on 1 shared look "$2/kept" "$3"
	expect "$1" "$out" good
}

at_home()
{
	on 1 wait_until 60 "! mattxctl ps | grep -q ^out"
}

# away NAME - it is, and works there; $rounds is how far it got
away()
{
	is_out "$pid" 2 || migrate "$pid" node2 || return
	on 1 advance "$1" 3 || return
	on 1 progress "$1"
	rounds=$out
}

start shared shared "${dirs[@]}" || finish_test
for i in 1 2 3; do
	check "$i: there and back" round_trip shared "$pid"
done

# --- somebody asks for a file ---

for dir in "${dirs[@]}"; do
	check "is away" away shared
	sees "another process sees what it has stored in $dir" "$dir" "$rounds"
	check "it came home for that" at_home
	on 1 advance shared || not_ok "it goes on" "$out"
done
for what in /memfd:shared /dev/zero; do
	check "is away" away shared
	on 1 "m=\$(grep ' $what' /proc/$pid/maps)
		shared look /proc/$pid/map_files/\${m%% *} $rounds"
	expect "root sees what it has stored in $what" "$out" good
	check "it came home for that" at_home
	on 1 advance shared || not_ok "it goes on" "$out"
done
check "is away" away shared
good_end shared shared ""
sees "what it had at its end is in its file" "$tmpfs" "$rounds"

# --- who shares it ---

# refused TEXT REGEX - before anything is frozen
refused()
{
	local status

	migrate "$pid" node2
	status=$?
	expect_match "$1: is refused" "$status $out" "^1 mattxctl: PID $pid: .*$2"
	on 1 mattxctl check "$pid"
	expect_match "$1: check says so" "$? $out" "^1 .*$2"
}

start shared shared "${dirs[@]}" || finish_test
worker=$pid
for how in map hold; do
	for dir in "${dirs[@]}"; do
		start other shared $how "$dir/kept" || finish_test
		other=$pid
		pid=$worker
		words="is shared with process $other"
		[ $how = map ] ||
			words="is shared, process $other has its file open"
		refused "$how $dir" "$words"
		good_end other shared ""
	done
done
check "alone again, it moves" round_trip shared "$worker"
good_end shared shared ""
start odd shared beyond "$tmpfs" || finish_test
refused "beyond" "beyond the end"
good_end odd shared ""

# --- the same memory at several addresses ---

for dir in "$tmpfs" "$layered"; do
	start twice shared twice "$dir" || finish_test
	for i in 1 2 3; do
		check "twice in $dir, $i" round_trip twice "$pid"
	done
	good_end twice shared ""
done

# --- read-only, on a tmpfs, where others write to such files ---

view=$tmpfs/view
on 1 "printf '%0196608d' 0 | tr 0 v >$view"
start view shared view "$view" || finish_test
worker=$pid
start other shared hold "$view" || finish_test
pid=$worker
refused "read-only" "its file is open for writing"
good_end other shared ""
for i in 1 2 3; do
	check "read-only, $i" round_trip view "$worker"
done
check "read-only: is away" migrate "$worker" node2
on 1 "printf x | dd of=$view conv=notrunc status=none"
on 1 status view
expect "read-only: it sees what somebody else has written" "$out" "exit 0"
on 1 "printf v | dd of=$view conv=notrunc status=none"
start view shared view "$view" || finish_test
check "read-only: is away again" migrate "$pid" node2
on 1 advance view || not_ok "it goes on" "$out"
good_end view shared ""
on 1 "wait_until 60 'printf x | dd of=$view conv=notrunc oflag=nonblock status=none'"
expect "read-only: when it has ended there, nobody waits" "$? $out" "0 "

# --- ends ---

# ends NAME STATUS COMMAND - away, in that way; every file has all
ends()
{
	local text=$1 want=$2 dir

	start shared shared "${dirs[@]}" || finish_test
	check "$text: is away" away shared
	guest_pid 2 "$pid"
	guest=$out
	"${@:3}"
	on 1 status shared
	expect "$text: its parent sees it" "$out" "$want"
	for dir in "${dirs[@]}"; do
		sees "$text: $dir has what it stored" "$dir" "$rounds"
	done
	check "$text: nothing is out or in" nothing_out
}

kill_at_home() { on 1 kill "-$1" "$pid"; }
kill_there() { on 2 kill "-$1" "$guest"; }

ends "exit" "exit 0" kill_at_home TERM
ends "killed at home" "signal 9" kill_at_home KILL
ends "killed there" "signal 9" kill_there KILL
ends "a signal" "signal 10" kill_at_home USR1
ends "dumps core" "signal 6 core" kill_at_home ABRT
on 1 "rm -f /tmp/core.*"

# --- calls that would show that file and memory are two ---

calls=17
on 1 mkdir -p "$T/calls.d"
for dir in "$T/calls.d" "$layered"; do
	start calls shared calls "$dir" || finish_test
	for ((i = 1; i <= calls; i++)); do
		is_out "$pid" 2 || migrate "$pid" node2 || {
			not_ok "goes out for call $i" "$out"
			break
		}
		on 1 kill -USR1 "$pid"
		on 1 reach calls $i 60 || {
			on 1 "tail -n 3 $T/calls/stdout"
			not_ok "call $i is made, after:" "$out"
			break
		}
		[ $i != 1 ] || check "the first needs not go home" is_out "$pid" 2
	done
	expect "all calls were made in $dir" "$i" $((calls + 1))
	on 1 status calls
	on 1 "grep FAIL $T/calls/stdout || tail -n 1 $T/calls/stdout"
	expect "each was right" "$out" "shared: all as it should be"
done

on 1 "umount $disk; rm -rf $tmpfs $layered /tmp/image"
check "nothing is out or in" nothing_out
finish_test
