# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What an EESSI test's shell on a node knows besides node.sh. lib.sh feeds it to
# that shell. A run has its directory in $W, with a copy of $W/input in it.

W=/tmp/mattx-eessi

# software MODULE PROGRAM - EESSI's, of the newest version that has it, where
# EESSI is mounted; else the node's own
software()
{
	local root=/cvmfs/software.eessi.io/versions init=
	local -a versions

	# asked for by its name, it is mounted if it can be
	if [ -d "$root" ]; then
		mapfile -t versions < <(printf '%s\n' "$root"/*/init/bash | sort -r)
		for init in "${versions[@]}"; do
			# shellcheck disable=SC1090
			(. "$init" && module load "$1") >/dev/null 2>&1 || continue
			# shellcheck disable=SC1090
			. "$init" >/dev/null 2>&1
			module load "$1" >/dev/null 2>&1
			break
		done
	fi
	command -v "$2"
}

# launch NAME COMMAND - COMMAND is a program and its words, which becomes the
# process whose PID is printed
launch()
{
	local d=$W/$1

	rm -rf "$d"
	cp -r "$W/input" "$d" || return
	(
		cd "$d" || exit
		setsid bash -c "exec $2" >stdout 2>stderr &
		echo $! >pid.new
		mv pid.new pid
		wait $!
		echo "exit $?" >status
	) </dev/null >/dev/null 2>&1 9>&- &
	wait_until 60 "[ -s $d/pid ]" && cat "$d/pid"
}

# ended NAME [SECONDS] - how, when it has
ended()
{
	wait_until "${2:-600}" "[ -e $W/$1/status ]" && cat "$W/$1/status"
	tail -n 5 "$W/$1/stderr"
}

# still NAME COMMAND - an unmoved run, from beginning to end; prints how many seconds it took
still()
{
	local begin=$SECONDS status

	launch "$@" >/dev/null
	status=$(ended "$1")
	[ "${status%%$'\n'*}" = "exit 0" ] || { echo "$status"; return 1; }
	echo $((SECONDS - begin))
}

# look PID - used[TID], in nanoseconds of CPU time, of each thread; TIDs are
# those it knows itself by, which are the same at home and away
declare -A used
look()
{
	local task ns text tid=$'NSpid:[^\n]*[^0-9]([0-9]+)\n'

	used=()
	for task in /proc/"$1"/task/[0-9]*; do
		read -r ns _ <"$task/schedstat" && text=$(<"$task/status") &&
			[[ $text =~ $tid ]] && used[${BASH_REMATCH[1]}]=$ns
	done 2>/dev/null
	[ ${#used[@]} -gt 0 ]
}

# busiest PID N MS - the N threads that have used most, if each has used MS
busiest()
{
	local tid

	look "$1" || return
	for tid in "${!used[@]}"; do
		[ "${used[$tid]}" -lt $(($3 * 1000000)) ] ||
			echo "${used[$tid]} $tid"
	done | sort -rn | awk -v n="$2" 'NR <= n { tids = tids " " $2 }
		END { if (NR < n) exit 1; print tids }'
}

# workers PID N MS - the same, when it is so
workers()
{
	wait_until 300 "busiest $1 $2 $3 >$W/workers || [ ! -d /proc/$1 ]"
	cat "$W/workers"
	[ -s "$W/workers" ]
}

# all_work PID MS TID... - until each of these threads has used MS more
all_work()
{
	local pid=$1 more=$(($2 * 1000000)) tid late end=$((SECONDS + 180))
	local -A goal

	shift 2
	look "$pid"
	for tid; do
		goal[$tid]=$((${used[$tid]:-0} + more))
	done
	while look "$pid"; do
		late=
		for tid; do
			[ "${used[$tid]:-0}" -ge "${goal[$tid]}" ] || late+=" $tid"
		done
		[ -n "$late" ] || return 0
		[ $SECONDS -le $end ] || { echo "no progress of thread$late"; return 1; }
		pause 0.2
	done
	echo "PID $pid is no longer there"
	return 1
}

# count FILE - its lines
count()
{
	local -a lines=()

	[ ! -e "$1" ] || mapfile -t lines <"$1"
	echo ${#lines[@]}
}

# grows FILE N - until it has N lines more
grows()
{
	local goal end=$((SECONDS + 180))

	goal=$(($(count "$1") + $2))
	until [ "$(count "$1")" -ge $goal ]; do
		[ $SECONDS -le $end ] || { echo "$1 does not grow"; return 1; }
		pause 0.2
	done
}

# rank_pid RANK NAME - the process of that name that is that rank of an MPI job
rank_pid()
{
	local pid

	for pid in $(pgrep -x "$2"); do
		tr '\0' '\n' <"/proc/$pid/environ" | grep -qx "PMIX_RANK=$1" &&
			echo "$pid"
	done 2>/dev/null | grep .
}

# same FILE - of both runs; the first lines that differ
same()
{
	[ -s "$W/still/$1" ] && diff "$W/still/$1" "$W/moved/$1" | head -n 8
	[ "${PIPESTATUS[0]}" = 0 ]
}

# end_runs - what was launched here, and its children
end_runs()
{
	local d

	for d in "$W"/*/; do
		[ ! -s "$d/pid" ] || [ -e "$d/status" ] ||
			pkill -KILL -s "$(cat "$d/pid")"
	done
	for d in "$W"/*/; do
		[ ! -s "$d/pid" ] || wait_until 20 "[ -e $d/status ]"
	done
	rm -rf "${W:?}" /var/tmp/mattx-jre
}
