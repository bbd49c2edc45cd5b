#!/usr/bin/env bash
# failover_test.sh MEMBER: the server of a shared ledger is lost, its standby answers in its
# place and refuses to write until somebody promotes it.  The processes, who know both by
# name, live, wait and go on there; every job takes effect exactly once.
set -uo pipefail
here=$(dirname "$(realpath "$0")")
member=$(realpath "$1")
cluster=$here/../support/pg_cluster.sh
dir=$(mktemp -d)
standby=$(mktemp -d /tmp/tide-pg.XXXXXX)
pids=()
url=
failed=0
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1" >&2
    failed=$((failed + 1))
}
bin=$(pg_config --bindir 2>/dev/null)
as_server() {
    if [ "$(id -u)" -eq 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}
end() {
    local pid
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    wait 2>/dev/null
    [ -z "$url" ] || "$cluster" stop "$url"
    [ ! -f "$standby/data/postmaster.pid" ] ||
        as_server "$bin/pg_ctl" -D "$standby/data" -m immediate -w stop >/dev/null
    rm -rf "$dir" "$standby"
}
trap end EXIT

url=$("$cluster" start)
status=$?
[ "$status" -eq 0 ] || exit "$status"
primary=${url#*host=}
primary=${primary%%&*}
both=${url/host=$primary/host=$primary,$standby}
second=${url/host=$primary/host=$standby}
[ "$(id -u)" -ne 0 ] || chown postgres "$standby"
as_server "$bin/pg_basebackup" -h "$primary" -U postgres -D "$standby/data" -R -X stream \
    --checkpoint=fast || exit 1
as_server tee -a "$standby/data/postgresql.conf" >/dev/null <<<"unix_socket_directories = '$standby'"
as_server "$bin/pg_ctl" -D "$standby/data" -l "$standby/log" -w -t 60 start >/dev/null || exit 1
# What was committed on the first is on the second too.
psql -X -q -d "$url" -c "ALTER SYSTEM SET synchronous_standby_names = '*'" \
    -c "ALTER SYSTEM SET synchronous_commit = 'remote_apply'" -c "SELECT pg_reload_conf()" \
    -c "CREATE TABLE effect (job bigint NOT NULL, value bigint NOT NULL)" >/dev/null || exit 1

jobs=3000
"$member" fill "$both" "$dir/fill" "$jobs" || exit 1
for i in 1 2; do
    "$member" work "$both" "$dir/$i" 100 >"$dir/$i.log" 2>&1 &
    pids+=($!)
done
written() { psql -X -q -t -A -d "$1" -c "SELECT count(*) FROM effect" 2>/dev/null || echo 0; }
alive() {
    local pid
    for pid in "${pids[@]}"; do
        kill -0 "$pid" 2>/dev/null || fail "a process ended: $1"
    done
}
# goes_on URL WHAT: more rows come within a minute.
goes_on() {
    local before until=$((SECONDS + 60))
    before=$(written "$1")
    while ((SECONDS < until)); do
        (($(written "$1") > before + 50)) && break
        sleep 0.2 # until something came, not for it to come
    done
    (($(written "$1") > before)) || fail "nothing goes on: $2"
    alive "$2"
}
goes_on "$url" "at the start"
as_server "$bin/pg_ctl" -D "$primary/data" -m immediate -w stop >/dev/null
sleep 6 # how long only the standby answers
alive "while only the standby answers"
as_server "$bin/pg_ctl" -D "$standby/data" -w promote >/dev/null || exit 1
goes_on "$second" "after the standby was promoted"

until=$((SECONDS + 120))
while ((SECONDS < until)) && [ "$("$member" watch "$second")" != 0 ]; do sleep 0.5; done
for pid in "${pids[@]}"; do kill -TERM "$pid"; done
for pid in "${pids[@]}"; do wait "$pid" || fail "a process did not end well"; done
pids=()
"$member" check "$second" "$jobs" >/dev/null || fail "check"
[ "$failed" -eq 0 ] || {
    tail -n 3 "$dir"/*.log "$standby/log" >&2
    exit 1
}
echo "failed over: nothing lost"
