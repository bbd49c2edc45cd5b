#!/usr/bin/env bash
# failover_test.sh MEMBER: the server of a shared ledger dies for good and its standby takes
# over, at another address.  Replication is synchronous, so nothing that was committed is lost;
# processes that name both addresses (target_session_attrs=read-write) wait while no server can be
# written to, continue at the other one, and every job takes effect exactly once.
. "$(dirname "$0")/stage.sh"
member=$(realpath "$1")
second=$(mktemp -d /tmp/tide-pg.XXXXXX)
clusters+=("$second")
trap 'end; rm -rf "$second"' EXIT
cluster_start --set wal_level=replica --set hot_standby=on
first=${url#*host=} && first=${first%%&*}
database=${url#postgres:///} && database=${database%%\?*}
bin=$(pg_config --bindir 2>/dev/null)
[ -x "$bin/pg_basebackup" ] || bin=$(dirname "$(ls /usr/lib/postgresql/*/bin/pg_basebackup | sort -V | tail -1)")
as_server() {
    if [ "$(id -u)" -eq 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}
server() { # directory, what to do
    local at=$1
    shift
    as_server "$bin/pg_ctl" -D "$at/data" -l "$at/log" -w -t 60 "$@" >>"$dir/ctl" 2>&1 || fail "pg_ctl $*: $(tail -n 3 "$dir/ctl")"
}
query() { psql -X -q -t -A -h "$1" -U postgres -d "$database" -c "$2"; }

# ---- a standby, without which nothing is committed
[ "$(id -u)" -ne 0 ] || chown postgres "$second"
as_server "$bin/pg_basebackup" -h "$first" -U postgres -D "$second/data" -R -X stream --checkpoint=fast --no-sync ||
    exit 1
echo "unix_socket_directories = '$second'" | as_server tee -a "$second/data/postgresql.auto.conf" >/dev/null
server "$second" start
query "$first" "ALTER SYSTEM SET synchronous_standby_names = '*'"
query "$first" "SELECT pg_reload_conf()" >/dev/null
in_step() { [ "$(query "$first" "SELECT sync_state FROM pg_stat_replication")" = sync ]; }
until_true 30 in_step || { fail "the standby does not follow: $(tail -n 5 "$second/log")"; exit 1; }

# ---- a fleet that names both
jobs=4000
both="postgres:///$database?host=$first,$second&user=postgres&target_session_attrs=read-write"
export TIDEMARK_FLEET_LEASE=5s TIDEMARK_FLEET_LOOK=1s
query "$first" "CREATE TABLE effect (job bigint NOT NULL, value bigint NOT NULL)" || exit 1
"$member" fill "$both" "$dir/fill" "$jobs" || exit 1
for i in 1 2 3 4; do
    # The last one takes any server that answers, as behind an address that moves: it meets the standby
    # while that is none to write to.
    [ "$i" -lt 4 ] || both=${both%&target*}
    "$member" work "$both" "$dir/$i" 60 >"$dir/log.$i" 2>&1 &
    pid[$i]=$!
done
written() { [ "$(query "$1" "SELECT count(*) FROM effect")" -ge "$2" ]; }
alive() {
    local i
    for i in "${!pid[@]}"; do
        kill -0 "${pid[$i]}" 2>/dev/null || fail "process $i ended: $1: $(tail -n 2 "$dir/log.$i")"
    done
}
until_true 60 written "$first" 500 || fail "nothing is done at the first: $(tail -n 2 "$dir"/log.*)"

# ---- the first dies in the middle of it; for longer than a lease there is only a standby
server "$first" stop -m immediate
all_lost() { # COUNT: so many processes gave up what they hold
    [ "$(grep -l "lease lost" "$dir"/log.* | wc -l)" -ge "$1" ]
}
until_true 60 all_lost "${#pid[@]}" || fail "not all notice that their leases ran out: $(tail -n 2 "$dir"/log.*)"
alive "while there is only a standby"
done_before=$(query "$second" "SELECT count(*) FROM effect")
server "$second" promote
until_true 60 written "$second" $((done_before + 200)) || fail "no work at the second: $(tail -n 2 "$dir"/log.*)"
alive "at the second"
"$member" watch "postgres:///$database?host=$second&user=postgres" >/dev/null || fail "watch"
all_done() { [ "$("$member" watch "postgres:///$database?host=$second&user=postgres")" = 0 ]; }
until_true 120 all_done || fail "work is left"
for i in "${!pid[@]}"; do kill -TERM "${pid[$i]}"; done
for i in "${!pid[@]}"; do wait "${pid[$i]}" || fail "process $i did not end well: $(tail -n 2 "$dir/log.$i")"; done
pid=()
"$member" check "postgres:///$database?host=$second&user=postgres" "$jobs" >"$dir/out" 2>&1 || fail "check: $(cat "$dir/out")"
echo "failed over after $done_before of $jobs jobs; failed $failed"
[ "$failed" -eq 0 ]
