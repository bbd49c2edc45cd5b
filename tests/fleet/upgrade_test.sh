#!/usr/bin/env bash
# upgrade_test.sh MEMBER NEXT AFTER: machines are upgraded one after the other.  NEXT is a program
# of a version to come whose tables still serve MEMBER: it upgrades them under three that work,
# they go on, old and new ones join and work side by side.  AFTER's tables no longer do: who is
# too old is fenced off at once, says so and ends, and changes nothing any more.
set -uo pipefail
here=$(dirname "$(realpath "$0")")
member=$(realpath "$1") next=$(realpath "$2") after=$(realpath "$3")
cluster=$here/../support/pg_cluster.sh
dir=$(mktemp -d)
server=
declare -A pid
failed=0
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1" >&2
    failed=$((failed + 1))
}
end() {
    local one
    for one in "${pid[@]}"; do kill -KILL "$one" 2>/dev/null; done
    wait 2>/dev/null
    [ -z "$server" ] || "$cluster" stop "$server"
    rm -rf "$dir"
}
trap end EXIT
server=$("$cluster" start --fast)
status=$?
[ "$status" -eq 0 ] || exit "$status"
export TIDEMARK_FLEET_LEASE=4s TIDEMARK_FLEET_LOOK=1s
query() { psql -X -q -t -A -v ON_ERROR_STOP=1 -d "$url" -c "$1"; }
until_true() { # SECONDS COMMAND...
    local left=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep 0.1 # until it has come, not for it to come
    done
}
start() { # name, program
    "$2" work "$url" "$dir/$1" 40 >"$dir/log.$1" 2>&1 &
    pid[$1]=$!
}
fresh() { # database, jobs
    url=${server%%\?*}
    psql -X -q -d "$server" -c "CREATE DATABASE $1" || exit 1
    url="${url%/*}/$1?${server#*\?}"
    query "CREATE TABLE effect (job bigint NOT NULL, value bigint NOT NULL)" || exit 1
    "$member" fill "$url" "$dir/fill.$1" "$2" || exit 1
    for i in 1 2 3; do start "$i" "$member"; done
    until_true 60 written 300 || fail "they do not work: $(tail -n 2 "$dir"/log.*)"
}
written() { [ "$(query "SELECT count(*) FROM effect")" -ge "$1" ]; }
# An upgrade among transactions may lose against one of them; then it is run again.
upgrade() { until_true 60 "$1" fill "$url" "$dir/upgrade" 0 || fail "no upgrade: $("$1" fill "$url" "$dir/upgrade" 0 2>&1)"; }
marks() { query "SELECT max(value) FILTER (WHERE key = 'version'), max(value) FILTER (WHERE key = 'oldest_program') FROM tidemark.meta"; }

# ---- tables that serve the old ones, too
jobs=2400
fresh compatible "$jobs"
[ "$(marks)" = "1|1" ] || fail "the tables are of $(marks), not of 1|1"
upgrade "$next"
[ "$(marks)" = "2|1" ] || fail "the tables are of $(marks), not of 2|1"
had=$(query "SELECT count(*) FROM effect")
until_true 60 written $((had + 200)) || fail "they do not go on: $(tail -n 2 "$dir"/log.*)"
for i in 1 2 3; do kill -0 "${pid[$i]}" 2>/dev/null || fail "process $i ended: $(tail -n 2 "$dir/log.$i")"; done
[ "$(query "SELECT count(*) FROM tidemark.member WHERE dead AND name LIKE '%process ${pid[1]}'")" = 0 ] || fail "they lost their leases"
for i in 1 2 3; do kill -TERM "${pid[$i]}"; done
for i in 1 2 3; do wait "${pid[$i]}" || fail "process $i did not end well: $(tail -n 2 "$dir/log.$i")"; done
pid=()
start new "$next"   # the first that is upgraded
start old "$member" # and one that comes back as it was
done_all() { [ "$("$member" watch "$url")" = 0 ]; }
until_true 120 done_all || fail "work is left: $(tail -n 2 "$dir"/log.*)"
for i in "${!pid[@]}"; do kill -TERM "${pid[$i]}"; done
for i in "${!pid[@]}"; do
    wait "${pid[$i]}" || fail "process $i did not end well: $(tail -n 2 "$dir/log.$i")"
    grep -q "^done [1-9]" "$dir/log.$i" || fail "process $i did nothing: $(cat "$dir/log.$i")"
done
pid=()
"$member" check "$url" "$jobs" >"$dir/out" 2>&1 || fail "check: $(cat "$dir/out")"

# ---- tables that do not
fresh incompatible "$jobs"
upgrade "$after"
[ "$(marks)" = "2|2" ] || fail "the tables are of $(marks), not of 2|2"
# Everything but what joins and leaves by itself: a sum over all rows.
sum() {
    query "SELECT md5(string_agg(x, ',' ORDER BY x)) FROM (SELECT 'j' || j::text AS x FROM tidemark.job j
        UNION ALL SELECT 'd' || d::text FROM tidemark.job_done d UNION ALL SELECT 's' || s::text FROM tidemark.stream s
        UNION ALL SELECT 'c' || c::text FROM tidemark.cycle c UNION ALL SELECT 'e' || e::text FROM effect e
        UNION ALL SELECT 'm' || m.owner || m.dead FROM tidemark.member m UNION ALL SELECT 'n' || n::text FROM tidemark.meta n) all_rows"
}
query "SELECT count(*) FROM tidemark.member WHERE NOT dead" | grep -qx 0 || fail "somebody old is still a member"
before=$(sum)
gone() { ! kill -0 "${pid[$1]}" 2>/dev/null; }
for i in 1 2 3; do
    until_true 30 gone "$i" || { fail "process $i works on: $(tail -n 2 "$dir/log.$i")"; exit 1; }
    wait "${pid[$i]}" && fail "process $i ended as if nothing were: $(tail -n 2 "$dir/log.$i")"
    grep -q "schema 2 needs a program of schema 2 or newer, this one has 1" "$dir/log.$i" || fail "process $i does not say why: $(cat "$dir/log.$i")"
    unset "pid[$i]"
done
"$member" fill "$url" "$dir/late" 100 >"$dir/out" 2>&1 && fail "an old program comes in"
grep -q "install a newer Tidemark" "$dir/out" || fail "it is not said what to do: $(cat "$dir/out")"
[ "$(sum)" = "$before" ] || fail "somebody too old changed something"
start new "$after"
until_true 120 done_all || fail "work is left: $(tail -n 2 "$dir"/log.new)"
kill -TERM "${pid[new]}" && wait "${pid[new]}" || fail "the new one did not end well"
pid=()
"$member" check "$url" "$jobs" >"$dir/out" 2>&1 || fail "check: $(cat "$dir/out")"
echo "old and new side by side, and the too old fenced off: failed $failed"
[ "$failed" -eq 0 ]
