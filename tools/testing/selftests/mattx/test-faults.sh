#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Every numbered fault: the process is unharmed where it was, the cause is told,
# and the next migration works. The numbers come from uapi/mattx.h and
# daemon/fault.h; one that is new there has to be put into a list here.
# timeout: 900
# debug: yes

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

# "NODE POINT" each. On the way out node 1 is the home and node 2 the host.
outs=()
for point in 1 2 3 8 100 102 107 120 121 122 123 124 125 126 127 128 129 130 131 132; do
	outs+=("1 $point")
done
for point in 4 5 6 7 9 101 103 150 151 152 153 154 155 156 157 158; do
	outs+=("2 $point")
done
backs=()
for point in 1 2 8 100 102 107 108 140 141 142 143 144; do
	backs+=("2 $point")
done
for point in 3 5 6 7 9 101 103 170 171 172 173 174 175 176; do
	backs+=("1 $point")
done
# where they cannot be reached by a migration
others=(104 105 106)

# --- none is forgotten ---

# all_points FILE FIRST - numbers of the enumerators FAULT_* of that file
all_points()
{
	# shellcheck disable=SC2016
	awk -v first="$2" '
		/^enum (mattx|daemon)_fault \{/ { on = 1; n = first; next }
		/^\};/ { on = 0 }
		on && /^\t(MATTX_)?FAULT_/ {
			if (match($0, /= *[0-9]+/))
				n = substr($0, RSTART + 1, RLENGTH - 1) + 0
			if ($1 !~ /_NONE|FAULT_DAEMON/)
				print n
			n++
		}' "$top/$1"
}

known=" ${outs[*]} ${backs[*]} ${others[*]} "
forgotten=
while read -r point; do
	[[ $known == *" $point "* ]] || forgotten+=" $point"
done < <(all_points uapi/mattx.h 0; all_points daemon/fault.h 100)
expect "every fault point has its place here" "$forgotten" ""

# --- a walk there and back, each step of which fails once ---

# fails TEXT NODE POINT COMMAND... - it must, by that fault
fails()
{
	local text=$1 node=$2 point=$3 status

	shift 3
	on "$node" mattxctl fault "$point" 1 || {
		not_ok "$text" "mattxctl fault: $out"
		return
	}
	on 1 mattxctl "$@"
	status=$?
	on_cause=$out
	on "$node" mattxctl fault "$point" 0
	if [ $status = 0 ]; then
		not_ok "$text" "it did not fail"
	elif [[ $on_cause == *$'\n'* ]] ||
		[[ ! $on_cause =~ ^mattxctl:\ PID\ $pid:\ node2:\ .+ ]]; then
		not_ok "$text" "the cause: $on_cause"
	elif [ "$point" -ge 120 ] && [[ $on_cause != *"fault point $point"* ]]; then
		not_ok "$text" "the cause does not name it: $on_cause"
	elif ! on 1 advance threads 1; then
		not_ok "$text" "afterwards it stands still: $out"
	else
		ok "$text (${on_cause#mattxctl: PID "$pid": node2: })"
	fi
}

start threads threads 11 || finish_test
steps=${#outs[@]}
[ ${#backs[@]} -le "$steps" ] || steps=${#backs[@]}
for ((i = 0; i < steps; i++)); do
	if [ $i -lt ${#outs[@]} ]; then
		read -r node point <<<"${outs[$i]}"
		fails "out, node $node, fault $point" "$node" "$point" \
			migrate "$pid" node2
	fi
	is_out "$pid" 2 || migrate "$pid" node2 || {
		not_ok "the next migration works" "$out"
		break
	}
	if [ $i -lt ${#backs[@]} ]; then
		read -r node point <<<"${backs[$i]}"
		fails "home, node $node, fault $point" "$node" "$point" \
			home "$pid"
		[ "$point" != 108 ] || nodes_up
		is_out "$pid" 2 || not_ok "it is still out" "$out"
	fi
	home "$pid" || {
		not_ok "the next way home works" "$out"
		break
	}
done
expect "it could go out and come home after each" "$i" "$steps"
on 2 "pgrep -x threads || true"
expect "nothing is left on node 2" "$out" ""

# --- the others: connections are made again ---

for point in 104 105; do
	check "goes out before the connection is lost" migrate "$pid" node2
	on 1 mattxctl fault $point 1
	on 2 "daemon stop; daemon start"
	check "fault $point: the nodes see each other again" nodes_up
	on 1 mattxctl fault $point 0
	check "fault $point: the guest goes on" on 1 advance threads 1
	check "fault $point: it comes home" home "$pid"
done
on 1 mattxctl fault 106 1
on 2 "daemon stop; rmmod mattx; daemon start"
check "fault 106: the nodes see each other again" nodes_up
on 1 mattxctl fault 106 0
check "a round trip after all this" round_trip threads "$pid"
good_end threads threads ""
check "nothing is out or in" nothing_out
finish_test
