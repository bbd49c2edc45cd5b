#!/usr/bin/env bash
# pooler_test.sh MEMBER: through PgBouncer in transaction mode every transaction may have
# another connection of the server: named statements and LISTEN are not to be had.  The fleet
# works all the same, and says nothing twice; once with the pooler configured, once without.
set -uo pipefail
here=$(dirname "$(realpath "$0")")
member=$(realpath "$1")
cluster=$here/../support/pg_cluster.sh
pgbouncer=$(command -v pgbouncer || ls /usr/sbin/pgbouncer 2>/dev/null) || {
    echo "skipped: PgBouncer is not installed"
    exit 77
}
dir=$(mktemp -d /tmp/tide-pool.XXXXXX)
url=
pids=()
failed=0
end() {
    local pid
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    [ ! -f "$dir/pid" ] || kill -TERM "$(cat "$dir/pid")" 2>/dev/null
    wait 2>/dev/null
    [ -z "$url" ] || "$cluster" stop "$url"
    rm -rf "$dir"
}
trap end EXIT
url=$("$cluster" start --fast)
status=$?
[ "$status" -eq 0 ] || exit "$status"
query() { PGOPTIONS="-c client_min_messages=warning" psql -X -q -t -A -d "$url" -c "$1"; }
query "CREATE TABLE effect (job bigint NOT NULL, value bigint NOT NULL)" || exit 1

host=${url#*host=}
host=${host%%&*}
name=${url#*:///}
name=${name%%\?*}
echo '"postgres" ""' >"$dir/users"
cat >"$dir/ini" <<INI
[databases]
* = host=$host user=postgres
[pgbouncer]
unix_socket_dir = $dir
listen_addr =
auth_type = any
auth_file = $dir/users
pool_mode = transaction
default_pool_size = 3
max_client_conn = 50
ignore_startup_parameters = extra_float_digits,options
pidfile = $dir/pid
logfile = $dir/log
INI
# It refuses to be root.
as_user=()
if [ "$(id -u)" -eq 0 ]; then
    chown -R postgres "$dir"
    as_user=(runuser -u postgres --)
fi
(cd / && "${as_user[@]}" "$pgbouncer" -d "$dir/ini") || {
    cat "$dir/log" >&2
    exit 1
}
# It returns before it listens.
answers() { psql -X -q -t -A -c "SELECT 1" "postgres:///$name?host=$dir&port=6432&user=postgres"; }
until=$((SECONDS + 60))
until answers >/dev/null 2>"$dir/answer"; do
    ((SECONDS < until)) || {
        cat "$dir/answer" "$dir/log" >&2
        exit 1
    }
    sleep 0.05
done
for told in '&tidemark_pooler=1' ''; do
    query "TRUNCATE effect; DROP SCHEMA IF EXISTS tidemark CASCADE"
    pooled="postgres:///$name?host=$dir&port=6432&user=postgres$told"
    state=$(mktemp -d)
    "$member" fill "$pooled" "$state/fill" 3000 || failed=1
    for i in 1 2 3; do
        "$member" work "$pooled" "$state/$i" 20 >"$state/$i.log" 2>&1 &
        pids+=($!)
    done
    until=$((SECONDS + 90))
    while ((SECONDS < until)) && [ "$("$member" watch "$url")" != 0 ]; do sleep 0.2; done
    for pid in "${pids[@]}"; do kill -TERM "$pid"; done
    for pid in "${pids[@]}"; do wait "$pid" || failed=1; done
    pids=()
    "$member" check "$url" 3000 >/dev/null || failed=1
    [ "$failed" -eq 0 ] || tail -n 3 "$state"/*.log "$dir/log" >&2
    rm -rf "$state"
done
[ "$failed" -eq 0 ] || exit 1
echo "through a pooler, told of it and not: every job once"
