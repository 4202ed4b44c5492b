#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# In a guest: a server, clients that keep it busy, and a recording of the machine's timers in
# /out. Run by record.
# usage: load.sh nginx|redis

SECONDS_BEFORE=2
SECONDS_RECORDED=15
SECONDS_LOADED=20
DIRECTORY=/tmp/server
TALK=selftests/apps/talk

start_nginx() {
	port=8080
	text=$(printf 'GET / HTTP/1.1\r\nHost: x\r\n\r\n.')
	text=${text%.}
	cat > $DIRECTORY/conf <<-EOT
		user root;
		daemon off;
		pid $DIRECTORY/pid;
		error_log $DIRECTORY/errors;
		events { }
		http {
			access_log off;
			client_body_temp_path $DIRECTORY/1;
			proxy_temp_path $DIRECTORY/2;
			fastcgi_temp_path $DIRECTORY/3;
			uwsgi_temp_path $DIRECTORY/4;
			scgi_temp_path $DIRECTORY/5;
			keepalive_timeout 5s;
			server {
				listen 127.0.0.1:$port;
				location / { return 200 "here\n"; }
			}
		}
	EOT
	nginx -e $DIRECTORY/errors -c $DIRECTORY/conf &
}

start_redis() {
	port=6379
	text=$(printf 'PING\r\n.')
	text=${text%.}
	redis-server --save '' --port $port --bind 127.0.0.1 --timeout 5 > $DIRECTORY/log &
}

listening() {
	nc 127.0.0.1 "$port" < /dev/null > /dev/null 2>&1
}

# Connections that are kept: each of these has a busy one, and some that fall silent.
keep_talking() {
	for _ in 1 2 3 4 5 6 7 8; do
		$TALK "$port" 10 $((SECONDS_LOADED * 1000)) "$text" > /dev/null 2>&1 &
	done
}

# New connections, one after the other.
come_and_go() {
	while :; do
		printf '%s' "$text" | nc -w 1 127.0.0.1 "$port" > /dev/null 2>&1
		usleep 100000
	done
}

mkdir -p $DIRECTORY
"start_$1"
until listening; do
	sleep 0.1
done
keep_talking
come_and_go &
sleep $SECONDS_BEFORE
twbench record "/out/$1.trace" --seconds $SECONDS_RECORDED \
	--note "$1 and its clients, Linux $(uname -r), $(nproc) CPUs"
