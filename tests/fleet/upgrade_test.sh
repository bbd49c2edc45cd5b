#!/usr/bin/env bash
# upgrade_test.sh MEMBER NEXT AFTER: machines are upgraded one after the other.  NEXT is a program
# of a version to come whose tables still serve MEMBER: it upgrades them under three that work,
# they continue, old and new ones join and work side by side.  AFTER's tables no longer do: who is
# too old is fenced off at once, says so and ends, and changes nothing any more.
. "$(dirname "$0")/stage.sh"
member=$(realpath "$1") next=$(realpath "$2") after=$(realpath "$3")
cluster_start --fast
server=$url
export TIDEMARK_FLEET_LEASE=4s TIDEMARK_FLEET_LOOK=1s
start() { # name, program, how long a job takes at most, in ms
    "$2" work "$url" "$dir/$1" "${3:-400}" >"$dir/log.$1" 2>&1 &
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
jobs=2400 # 20 s of work for three: more than they get done until they are asked to end
fresh compatible "$jobs"
[ "$(marks)" = "1|1" ] || fail "the tables are of $(marks), not of 1|1"
upgrade "$next"
[ "$(marks)" = "2|1" ] || fail "the tables are of $(marks), not of 2|1"
had=$(query "SELECT count(*) FROM effect")
until_true 60 written $((had + 200)) || fail "they do not continue: $(tail -n 2 "$dir"/log.*)"
for i in 1 2 3; do kill -0 "${pid[$i]}" 2>/dev/null || fail "process $i ended: $(tail -n 2 "$dir/log.$i")"; done
[ "$(query "SELECT count(*) FROM tidemark.member WHERE dead AND name LIKE '%process ${pid[1]}'")" = 0 ] || fail "they lost their leases"
for i in 1 2 3; do kill -TERM "${pid[$i]}"; done
for i in 1 2 3; do wait "${pid[$i]}" || fail "process $i did not end well: $(tail -n 2 "$dir/log.$i")"; done
pid=()
start new "$next" 200   # the first that is upgraded
start old "$member" 200 # and one that comes back as it was
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
query "SELECT count(*) FROM tidemark.member WHERE NOT dead" | grep -qx 0 || fail "an old process is still a member"
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
[ "$(sum)" = "$before" ] || fail "a process that is too old changed something"
start new "$after" 2
until_true 120 done_all || fail "work is left: $(tail -n 2 "$dir"/log.new)"
kill -TERM "${pid[new]}" && wait "${pid[new]}" || fail "the new one did not end well"
pid=()
"$member" check "$url" "$jobs" >"$dir/out" 2>&1 || fail "check: $(cat "$dir/out")"
echo "old and new side by side, and the too old fenced off: failed $failed"
[ "$failed" -eq 0 ]
