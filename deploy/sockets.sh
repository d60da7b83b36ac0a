# shellcheck shell=bash
# sockets.sh - finds the process that listens on a TCP port, from /proc; sourced by deploy/run.

# "INODE PORT" of each listening socket.
listening() {
	awk 'FNR > 1 && $4 == "0A" {n = split($2, at, ":"); print $10, at[n]}' /proc/net/tcp /proc/net/tcp6 2>/dev/null |
		while read -r inode port; do echo "$inode $((16#$port))"; done
}

sockets_of() { # pid; inodes of its sockets
	local fd link
	for fd in /proc/"$1"/fd/*; do
		link=$(readlink "$fd" 2>/dev/null) || continue
		case $link in socket:*) link=${link#socket:[}; echo "${link%]}" ;; esac
	done
}

# port_of PID: the port that the process listens on; nothing if none.
port_of() {
	awk 'NR == FNR {mine[$1]; next} $1 in mine {print $2; exit}' <(sockets_of "$1") <(listening)
}

port_is_taken() { # port
	listening | awk -v port="$1" '$2 == port {found = 1} END {exit !found}'
}

# holder_of PORT: "NAME (process PID)" as far as this user may see it.
holder_of() {
	local inode fd pid
	inode=$(listening | awk -v port="$1" '$2 == port {print $1; exit}')
	for fd in /proc/[0-9]*/fd/*; do
		[ "$(readlink "$fd" 2>/dev/null)" = "socket:[$inode]" ] || continue
		pid=${fd#/proc/}
		pid=${pid%%/*}
		echo "$(cat "/proc/$pid/comm") (process $pid)"
		return
	done
	echo "a process of another user"
}
