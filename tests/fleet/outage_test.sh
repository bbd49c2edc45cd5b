#!/usr/bin/env bash
# outage_test.sh MEMBER: what a shared ledger's server does to its users: it is
# restarted, crashes, is away for longer than a lease, has no connections left, no room on its disk, and
# ends statements that take too long.  The processes live, wait and continue; every job takes
# effect exactly once.
set -uo pipefail
here=$(dirname "$(realpath "$0")")
member=$(realpath "$1")
export TIDEMARK_FLEET_LEASE=5s TIDEMARK_FLEET_LOOK=1s
cluster=$here/../support/pg_cluster.sh
dir=$(mktemp -d)
pids=()
url=
failed=0
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1" >&2
    failed=$((failed + 1))
}
mounted= log=
end() {
    local pid
    for pid in "${pids[@]}"; do kill -KILL "$pid" 2>/dev/null; done
    wait 2>/dev/null
    [ -z "$url" ] || "$cluster" stop "$url"
    [ -z "$mounted" ] || umount "$mounted"
    rm -rf "$dir" ${log:+"$log"} ${mounted:+"$mounted"}
}
trap end EXIT

# A disk of its own, small, where we may mount one: it will be filled.
place=$(mktemp -d /tmp/tide-pg.XXXXXX)
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=320m tmpfs "$place" 2>/dev/null; then
    mounted=$place
else
    echo "skipped: the full disk (no small disk can be mounted here)"
fi
url=$("$cluster" start --dir "$place" --set max_connections=20 --set superuser_reserved_connections=3)
status=$?
if [ "$status" -ne 0 ]; then
    rmdir "$place" 2>/dev/null
    exit "$status"
fi
query() { psql -X -q -t -A -d "$url" -c "$1"; }
query "CREATE TABLE effect (job bigint NOT NULL, value bigint NOT NULL)" || exit 1
as_server() {
    if [ "$(id -u)" -eq 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}
bin=$(pg_config --bindir)
# Not on the disk that will be full, where its last line would be cut off.
log=$(as_server mktemp /tmp/tide-pg-log.XXXXXX)
server() { as_server "$bin/pg_ctl" -D "$place/data" -l "$log" -w -t 60 "$@" >/dev/null; }

jobs=12000
"$member" fill "$url" "$dir/fill" "$jobs" || exit 1
for i in 1 2 3; do
    "$member" work "$url" "$dir/$i" 100 >"$dir/$i.log" 2>&1 &
    pids+=($!)
done
written() { query "SELECT count(*) FROM effect" 2>/dev/null || echo 0; }
alive() {
    local pid
    for pid in "${pids[@]}"; do
        kill -0 "$pid" 2>/dev/null || fail "a process ended: $1"
    done
}
within() { # SECONDS COMMAND...: whether it comes true
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        ((SECONDS < until)) || return 1
        sleep 0.2
    done
}
# How often each process has lost its lease, and whether all did once more.
declare -A lost
lost_by() { grep -c "lease lost" "$dir/$1.log"; }
remember_lost() { for i in 1 2 3; do lost[$i]=$(lost_by "$i"); done; }
all_lost() {
    local i
    for i in 1 2 3; do (($(lost_by "$i") > lost[$i])) || return 1; done
}
more_than() { (($(written) > $1)); }
# goes_on WHAT: more rows come within a minute.
goes_on() {
    local before
    before=$(written)
    within 60 more_than $((before + 50)) || more_than "$before" || fail "no more work: $1"
    alive "$1"
    "$member" watch "$url" >/dev/null || fail "watch: $1"
}
goes_on "at the start"
server restart -m fast
goes_on "after a restart"
server restart -m immediate
goes_on "after a crash of the server"

remember_lost
server stop -m fast
within 60 all_lost || fail "not all notice that their leases ran out"
alive "while the server is away"
server start
goes_on "after it was away"

# Other clients have all connections, and ours are cut.
hogs=()
for i in $(seq 1 20); do
    psql -X -q -d "$url" -c "SELECT pg_sleep(8)" >/dev/null 2>&1 &
    hogs+=($!)
done
query "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
       AND query NOT LIKE '%pg_sleep%' AND pid <> pg_backend_pid()" >/dev/null 2>&1
alive "while there are no connections"
for pid in "${hogs[@]}"; do wait "$pid" 2>/dev/null; done
goes_on "after there were no connections"

# Statements are ended by a time-out: another client holds a lock for long.
query "ALTER DATABASE $(query 'SELECT current_database()') SET statement_timeout = '300ms'"
query "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
       AND pid <> pg_backend_pid()" >/dev/null
psql -X -q -d "$url" -c "SET statement_timeout = 0; BEGIN;
    LOCK TABLE tidemark.job IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(4)" >/dev/null 2>&1
alive "while statements are ended by a time-out"
query "ALTER DATABASE $(query 'SELECT current_database()') RESET statement_timeout"
goes_on "after statements were ended by a time-out"

if [ -n "$mounted" ]; then
    # A quick machine may have done all of it by now.
    "$member" fill "$url" "$dir/fill" $((jobs + 4000)) "$jobs" || fail "more work"
    jobs=$((jobs + 4000))
    dd if=/dev/zero of="$place/ballast" bs=1M 2>/dev/null
    within 60 grep -q "No space left on device" "$log" || fail "no process met the full disk"
    alive "while the disk is full"
    rm "$place/ballast"
    server status || server start # a full disk may end the server itself
    goes_on "after the disk was full"
fi

all_done() { [ "$("$member" watch "$url")" = 0 ]; }
within 180 all_done || fail "work is left"
for pid in "${pids[@]}"; do kill -TERM "$pid"; done
for pid in "${pids[@]}"; do wait "$pid" || fail "a process did not end well"; done
pids=()
"$member" check "$url" "$jobs" >/dev/null || fail "check"
[ "$failed" -eq 0 ] || {
    tail -n 3 "$dir"/*.log "$log" >&2
    exit 1
}
echo "restarted, crashed, away, full of connections, timed out, full disk: nothing lost"
