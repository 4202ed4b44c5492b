#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Rules for connections of Debian's nginx, which knows nothing about them.

cd "$(dirname "$0")" || exit
. ./servers.sh

rule=
PORT=8080
OTHER=8081
DRY=8082
REQUEST=$(printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\n.')
REQUEST=${REQUEST%.}

workers() {
	awk -v parent="$server" '$4 == parent { print $1 }' /proc/[0-9]*/stat 2> /dev/null
}

# Its own timeouts are long.
start() {
	mkdir -p /tmp/nginx
	cat > /tmp/nginx/conf <<-EOT
		user root;
		daemon off;
		pid /tmp/nginx/pid;
		error_log /tmp/nginx/errors info;
		events { }
		http {
			access_log off;
			client_body_temp_path /tmp/nginx/1;
			proxy_temp_path /tmp/nginx/2;
			fastcgi_temp_path /tmp/nginx/3;
			uwsgi_temp_path /tmp/nginx/4;
			scgi_temp_path /tmp/nginx/5;
			client_header_timeout 1h;
			keepalive_timeout 1h;
			keepalive_requests 1000000;
			server {
				listen 127.0.0.1:$PORT;
				listen 127.0.0.1:$OTHER;
				listen 127.0.0.1:$DRY;
				location / { return 200 "here\n"; }
				location /status { stub_status; }
			}
		}
	EOT
	nginx -e /tmp/nginx/errors -c /tmp/nginx/conf &
	server=$!
	listening $PORT && listening $OTHER && listening $DRY && worker=$(workers)
}

# nginx's own count, which includes the connection that asks.
connections() {
	wget -q -O - http://127.0.0.1:$OTHER/status | sed -n 's/^Active connections: \([0-9]*\).*/\1/p'
}

# Rules that exist before the connections. The neighbours talk to the same server, on a port that
# has no rule and on one whose rule only counts.
closes_silent() {
	no_rules && rule --port $PORT && closing=$rule && rule --port $DRY --dry-run || return
	talking=
	for port in $PORT $OTHER $DRY; do
		talk "$port" "$REQUEST" &
		talking="$talking $!"
	done
	before_the_end
	same connections "$(connections)" $((2 * SILENT + 4))
	result=$?
	# shellcheck disable=SC2086 # some processes
	wait $talking
	[ $result = 0 ] && silent_closed $PORT "$RESET" &&
		busy_open $PORT && counts closed "$closing" "$SILENT" &&
		counts matched "$closing" $((SILENT + 1))
}

# logs TEXT NUMBER: does the log have that many lines with it?
logs() {
	same "lines with '$1'" "$(grep -cF "$1" /tmp/nginx/errors)" "$2"
}

# As in Documentation/connections.rst. Half of them have made a request, half have not.
aborted_logged() {
	logs 'recv() failed (110: Connection timed out) while keepalive, client: 127.0.0.1' \
		$((SILENT / 2)) &&
		logs 'recv() failed (110: Connection timed out) while waiting for request, client' \
			$((SILENT / 2))
}

# The check whether nginx listens on this port is in the log as well.
shut_down_logged() {
	logs "client closed connection while waiting for request, client: 127.0.0.1, server: \
127.0.0.1:$PORT" $((SILENT / 2 + 1))
}

no_rule() {
	silent_open $OTHER && busy_open $OTHER
}

dry_run() {
	silent_open $DRY && busy_open $DRY && counts would_close "$rule" "$SILENT" &&
		counts matched "$rule" $((SILENT + 1))
}

# Connections that exist before the rule, closed with a shutdown.
finds_silent() {
	talk $PORT "$REQUEST" &
	talking=$!
	usleep $((LIMIT_MS * 300))
	no_rules && rule --port $PORT --action shutdown
	result=$?
	wait $talking
	[ $result = 0 ] && silent_closed $PORT "end of file" && busy_open $PORT &&
		counts closed "$rule" "$SILENT"
}

# The same processes, and they have nothing to complain about.
serves_on() {
	same answer "$(wget -q -O - http://127.0.0.1:$PORT/)" here || return
	same workers "$(workers)" "$worker" || return
	! grep -E '\[(error|crit|alert|emerg)\]' /tmp/nginx/errors | sed 's/^/# /' | grep .
}

is_loaded || load
tap_plan 8
tap "nginx serves" start
tap "a rule closes its silent connections, and not the busy one" closes_silent
tap "and nginx logs each of them" aborted_logged
tap "and none of another port" no_rule
tap "a dry run closes nothing" dry_run
tap "a rule finds connections that are there" finds_silent
tap "and nginx logs each of them, too" shut_down_logged
tap "nginx serves on" serves_on
kill "$server"
no_rules
tap_end
