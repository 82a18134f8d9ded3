#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# nginx, a single process, serves files to curl and ab: small ones and large ones, whole and
# unbroken, wherever it is.
# timeout: 900

# shellcheck disable=SC2317
. "$(dirname "$0")/lib.sh"

need nginx curl ab
on 1 "mkdir -p $P/www && cd $P/www && seq 1 50 >small && seq 1 400000 >large"
on 1 "printf '%s\\n' $(printf %q "daemon off;
master_process off;
pid $P/nginx.pid;
error_log stderr warn;
events { worker_connections 256; }
http {
	access_log off;
	client_body_temp_path $P/body; proxy_temp_path $P/proxy; fastcgi_temp_path $P/fastcgi;
	uwsgi_temp_path $P/uwsgi; scgi_temp_path $P/scgi;
	sendfile on;
	keepalive_requests 100000;
	server { listen 127.0.0.1:8080; root $P/www; }
}") >$P/nginx.conf"
run nginx "nginx -e stderr -c $P/nginx.conf"
check "answers" on 1 "wait_until 60 'curl -s -o /dev/null http://127.0.0.1:8080/small'"

serves()
{
	on 1 "cd $P; for f in small large small; do
			curl -sSf http://127.0.0.1:8080/\$f | cmp - www/\$f || exit 1; done
		[ \$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8080/none) = 404 ] || exit 1
		curl -sSf -r 1000-1999 http://127.0.0.1:8080/large | cmp -n 1000 -i 0:1000 - www/large || exit 1" &&
		on 1 "ab -q -k -c 8 -n 200 http://127.0.0.1:8080/small" &&
		[[ $out == *'Failed requests:        0'* ]]
}

# one download that lasts as long as the moves: slow enough for that
client download "sh -c 'curl -sSf --limit-rate 60k http://127.0.0.1:8080/large | cmp - www/large && echo same'"
for i in 1 2 3; do
	cycle "$i" "$pid" serves
done
client_ends download $'exit 0\nsame'
served_end nginx "$pid" QUIT "exit 0"
finish_test
