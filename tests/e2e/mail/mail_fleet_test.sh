#!/usr/bin/env bash
# mail_fleet_test.sh TIDEMARK CLOUD: mail and search analytics on a ledger in PostgreSQL,
# alone and as a fleet.  The same is stored as with a ledger in a file, also by a program
# that is killed; a worker takes an account only where its archive is, and takes over one
# whose archive it shares when the process that had it dies (E1.7, E1.8).
. "$(dirname "$0")/../stage.sh"
cluster=$(dirname "$0")/../../support/pg_cluster.sh
url=$("$cluster" start --fast 2>"$dir/pg.err")
if [ $? -eq 77 ]; then
    cat "$dir/pg.err"
    rm -rf "$dir"
    exit 0
fi
ada=ada@example.com
bob=bob@example.com
carol=carol@example.com
site=sc-domain:example.com
last_day=$(date -u -d '-16 days' +%F) # final, and the server keeps sixteen months
days="--to $last_day --from $(date -u -d '-35 days' +%F)"
lease='--set fleet.lease=3s --set fleet.look=1s'
mkfifo "$dir/ready" "$dir/silence"
exec 4<>"$dir/silence" # never written to
"$cloud" --listen 127.0.0.1:0 --quiet --seed 5 --quota off --latency 8 \
    --mailbox "$ada=300" --mailbox "$bob=60" --mailbox "$carol=120" --token ta="$ada" --token tb="$bob" \
    --token tc="$carol" --site "$site=$ada,rows=250" >"$dir/ready" &
cloud_pid=$!
one_pid=
two_pid=
finish() {
    for pid in $one_pid $two_pid $cloud_pid; do
        kill -9 "$pid" 2>/dev/null
    done
    "$cluster" stop "$url"
    rm -rf "$dir"
}
trap finish EXIT
read -r _ origin <"$dir/ready" || exit 1
# The quotas are not what is tried here.  (A project's quota that one process gives back is
# another one's a minute later.)
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=100000000 TIDEMARK_GOVERNOR_GMAIL_PROJECT_UNITS=0
export TIDEMARK_GOVERNOR_CONSOLE_PROJECT_UNITS=0 TIDEMARK_GOVERNOR_CONSOLE_SITE_UNITS=0
rest() { read -rt "$1" -u 4 || true; } # a pause, not a synchronisation
t() { "$tidemark" --home "$dir/$home" "$@"; }
# A database of its own for each part.
# A part that cannot begin would only fail a hundred times.
must() { "$@" || { fail "$*: $(tail -n 3 "$dir/out")"; exit 1; }; }
fresh() {
    psql -q "$url" -c "CREATE DATABASE $1" || fail "CREATE DATABASE $1"
    far=${url%%\?*}
    far="${far%/*}/$1?${url#*\?}"
    must t --ledger "$far" ledger migrate >"$dir/out" 2>&1
}
sql() { psql -qtAX "$far" -c "$1"; }
figure() { curl -sS "$origin/_cloud/stats" | jq ".users.\"$1\" | $2 // 0"; }
deliver() {
    printf 'From: x@example.org\r\nSubject: late %s\r\n\r\nnew\r\n' "$2" |
        curl -sSf --data-binary @- "$origin/_cloud/mail?user=$1" >/dev/null || fail "deliver"
}
add() { # account, token, more arguments before the command
    local account=$1 token=$2
    shift 2
    t "$@" account add gmail "$account" --endpoint "$origin" --bearer "$token" >"$dir/out" 2>&1 ||
        fail "account add $account: $(cat "$dir/out")"
}
# What is stored, message by message: bytes, date, thread, labels.
content() { # home, account
    local shard
    for shard in "$dir/$1/archive/$2"/*.db; do
        sqlite3 "$shard" "SELECT m.gmail_id, m.thread_id, m.internal_ms, hex(c.hash),
            (SELECT group_concat(n, ' ') FROM (SELECT b.label AS n FROM message_label a
                JOIN label b ON b.id = a.label WHERE a.message = m.id ORDER BY 1))
            FROM message m JOIN content c ON c.id = m.content"
    done | sort
}

# ---- with a ledger in a file: the measure
home=plain
add "$ada" ta
t mail sync --quiet >"$dir/out" || fail "a sync with a file: $(cat "$dir/out")"
content plain "$ada" >"$dir/measure"
[ "$(wc -l <"$dir/measure")" -eq 300 ] || fail "$(wc -l <"$dir/measure") messages with a file"
t account add console "$site" --endpoint "$origin" --bearer ta >"$dir/out" || fail "account add console"
t console backfill "$site" $days --rows 96 --quiet >"$dir/out" || fail "backfill with a file"

# ---- the same on PostgreSQL
home=far
fresh alone
add "$ada" ta --ledger "$far"
[ -s "$dir/far/archive/$ada/archive.id" ] || fail "the archive has no id"
[ "$(sql "SELECT archive FROM tidemark.account WHERE name = '$ada'")" = "$(cat "$dir/far/archive/$ada/archive.id")" ] ||
    fail "the ledger does not name the archive"
sql "SELECT secret FROM tidemark.account" | grep -q ': file' || fail "the place of the secret: $(sql 'SELECT secret FROM tidemark.account')"
[ ! -e "$dir/far/state.db" ] || fail "a state.db beside a shared ledger"
t --ledger "$far" mail sync --quiet --json >"$dir/out" 2>"$dir/err" || fail "a sync on PostgreSQL: $(cat "$dir/out" "$dir/err")"
[ "$(jq '.accounts[0].stored' "$dir/out")" -eq 300 ] || fail "stored: $(cat "$dir/out")"
[ "$(jq '.accounts[0].cycles_open' "$dir/out")" -eq 0 ] || fail "work is left: $(cat "$dir/out")"
content far "$ada" >"$dir/far.content"
cmp -s "$dir/measure" "$dir/far.content" || fail "not the same messages: $(diff "$dir/measure" "$dir/far.content" | head -n 3)"
before=$(figure "$ada" .calls)
t --ledger "$far" mail sync --quiet >"$dir/out" || fail "a sync without news"
[ $(($(figure "$ada" .calls) - before)) -le 3 ] || fail "$(($(figure "$ada" .calls) - before)) calls for nothing new"
t --ledger "$far" mail status --json >"$dir/out" || fail "mail status"
[ "$(jq '.accounts[0].stored' "$dir/out")" -eq 300 ] || fail "status: $(cat "$dir/out")"
t --ledger "$far" mail verify >"$dir/out" || fail "verify: $(tail -n 2 "$dir/out")"
t --ledger "$far" mail bad >"$dir/out" || fail "mail bad: $(cat "$dir/out")"
grep -rq '"ta"\|:ta' <(sql "SELECT * FROM tidemark.account") && fail "the token is in the ledger"

# ---- search analytics
t --ledger "$far" account add console "$site" --endpoint "$origin" --bearer ta >"$dir/out" 2>&1 || fail "account add console: $(cat "$dir/out")"
t --ledger "$far" console backfill "$site" $days --rows 96 --quiet >"$dir/out" 2>&1 ||
    fail "backfill on PostgreSQL: $(cat "$dir/out")"
rows() { sqlite3 "$dir/$1/archive/console/sc-domain%3Aexample.com.db" \
    "SELECT date, type, query, page, country, device, clicks, impressions, position FROM analytics ORDER BY 1, 2, 3, 4, 5, 6"; }
rows plain >"$dir/rows.plain"
rows far >"$dir/rows.far"
[ "$(wc -l <"$dir/rows.plain")" -eq 5000 ] || fail "$(wc -l <"$dir/rows.plain") rows"
cmp -s "$dir/rows.plain" "$dir/rows.far" || fail "not the same rows: $(diff "$dir/rows.plain" "$dir/rows.far" | head -n 4)"
[ "$(t --ledger "$far" console status --json | jq -r '.series[0].tidemark')" = "$last_day" ] || fail "tidemark: $(t --ledger "$far" console status)"

# ---- killed, again and again
home=killed
fresh killed
add "$ada" ta --ledger "$far"
for i in 1 2 3 4 5; do
    # Held up after some messages, so that the kill finds it at work on a machine of any speed.
    curl -sSf -o /dev/null "$origin/_cloud/faults" \
        -d '{"method":"gmail.users.messages.get","after":40,"fault":"stall-start","ms":600000}' || fail "hold it up"
    seen=$(figure "$ada" .fetched.total)
    "$tidemark" --home "$dir/killed" --ledger "$far" $lease mail sync --quiet >"$dir/out" 2>&1 &
    one_pid=$!
    for _ in $(seq 400); do
        [ "$(figure "$ada" .fetched.total)" -ge $((seen + 30)) ] && break
        kill -0 "$one_pid" 2>/dev/null || break
        rest 0.05
    done
    strike "$one_pid" || fail "it ended before kill $i: $(cat "$dir/out")"
    one_pid=
    curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null || fail "let it go"
done
timeout 120 "$tidemark" --home "$dir/killed" --ledger "$far" $lease mail sync --quiet --json >"$dir/out" 2>"$dir/err" ||
    fail "the sync after the kills: $(cat "$dir/out" "$dir/err")"
content killed "$ada" >"$dir/killed.content"
cmp -s "$dir/measure" "$dir/killed.content" || fail "not the same after kills: $(diff "$dir/measure" "$dir/killed.content" | head -n 3)"
[ "$(sql "SELECT count(*) FROM tidemark.job WHERE state < 2")" -eq 0 ] || fail "jobs are left"

# ---- two workers; carol's archive is shared by both, ada's is at the first, bob's at the second
home=one
fresh fleet
add "$ada" ta --ledger "$far"
add "$carol" tc --ledger "$far"
home=two
add "$bob" tb --ledger "$far"
mkdir -p "$dir/two/archive"
ln -s "$dir/one/archive/$carol" "$dir/two/archive/$carol"
add "$carol" tc --ledger "$far"
t --ledger "$far" account add gmail "$ada" --endpoint "$origin" --bearer ta >"$dir/out" 2>&1 && fail "ada's archive is elsewhere"
grep -q 'is not here' "$dir/out" || fail "it is not said that ada is elsewhere: $(cat "$dir/out")"
owner() { sql "SELECT m.name FROM tidemark.account a JOIN tidemark.member m ON m.owner = a.owner AND NOT m.dead WHERE a.name = '$1'"; }
wait_owner() { # account, process: until it holds the account
    for _ in $(seq 300); do
        [ "$(owner "$1")" = "$(hostname), process $2" ] && return 0
        rest 0.1
    done
    fail "$1 is held by '$(owner "$1")', not by process $2"
}
"$tidemark" --home "$dir/one" --ledger "$far" $lease worker >"$dir/one.log" 2>&1 &
one_pid=$!
# From a machine that has none of the archives: asked for, and watched in the ledger.
home=watcher
timeout 100 "$tidemark" --home "$dir/watcher" --ledger "$far" $lease mail sync "$ada" "$carol" --json >"$dir/out" 2>"$dir/err" ||
    fail "a sync elsewhere: $(cat "$dir/out" "$dir/err" "$dir/one.log")"
[ "$(jq .handed_over "$dir/out")" = true ] || fail "not handed over: $(cat "$dir/out")"
[ "$(jq '[.accounts[].cycles_open] | add' "$dir/out")" -eq 0 ] || fail "work is left: $(cat "$dir/out")"
[ -z "$(find "$dir/watcher" -name '*@*')" ] || fail "the watcher made an archive"
content one "$ada" >"$dir/one.content"
cmp -s "$dir/measure" "$dir/one.content" || fail "not the same by a worker: $(diff "$dir/measure" "$dir/one.content" | head -n 3)"
[ "$(content one "$carol" | wc -l)" -eq 120 ] || fail "carol: $(content one "$carol" | wc -l)"
wait_owner "$carol" "$one_pid"
"$tidemark" --home "$dir/two" --ledger "$far" $lease worker >"$dir/two.log" 2>&1 &
two_pid=$!
timeout 150 "$tidemark" --home "$dir/watcher" --ledger "$far" $lease mail sync "$bob" --quiet >"$dir/out" 2>&1 || fail "bob: $(cat "$dir/out")"
[ "$(content two "$bob" | wc -l)" -eq 60 ] || fail "bob: $(content two "$bob" | wc -l)"
[ "$(owner "$carol")" = "$(hostname), process $one_pid" ] || fail "carol went from hand to hand"

# The first dies: carol's mail comes by the second, ada's waits for the first.
deliver "$ada" 1
deliver "$carol" 1
strike "$one_pid" || fail "the first had ended: $(cat "$dir/one.log")"
one_pid=
timeout 150 "$tidemark" --home "$dir/watcher" --ledger "$far" $lease mail sync "$carol" --quiet >"$dir/out" 2>&1 ||
    fail "carol after the death: $(cat "$dir/out" "$dir/two.log")"
[ "$(content two "$carol" | wc -l)" -eq 121 ] || fail "carol by the second: $(content two "$carol" | wc -l)"
wait_owner "$carol" "$two_pid"
"$tidemark" --home "$dir/watcher" --ledger "$far" $lease mail sync "$ada" --quiet >"$dir/watch.out" 2>&1 &
watch_pid=$!
rest 8 # more than two leases: time enough to take what must not be taken
[ -z "$(owner "$ada")" ] || fail "ada was taken by $(owner "$ada")"
[ ! -e "$dir/two/archive/$ada" ] || fail "the second made an archive of ada's"
"$tidemark" --home "$dir/one" --ledger "$far" $lease worker >"$dir/one.log" 2>&1 &
one_pid=$!
wait "$watch_pid" || fail "ada when the first is back: $(cat "$dir/watch.out")"
[ "$(content one "$ada" | wc -l)" -eq 301 ] || fail "ada: $(content one "$ada" | wc -l)"

# A command in the worker's own directory hands over to it.
home=one
timeout 150 "$tidemark" --home "$dir/one" --ledger "$far" $lease mail sync "$ada" --quiet --json >"$dir/out" 2>&1 || fail "beside the worker: $(cat "$dir/out")"
[ "$(jq .handed_over "$dir/out")" = true ] || fail "not handed over to the worker beside: $(cat "$dir/out")"

# Workers that are asked to end put all jobs back and leave.
kill "$one_pid" "$two_pid"
wait "$one_pid" || fail "the first: $(tail -n 3 "$dir/one.log")"
wait "$two_pid" || fail "the second: $(tail -n 3 "$dir/two.log")"
one_pid=
two_pid=
[ "$(sql "SELECT count(*) FROM tidemark.account WHERE owner IS NOT NULL AND owner <> 0")" -eq 0 ] || fail "accounts are held by no member"
[ "$(sql "SELECT count(*) FROM tidemark.job WHERE state < 2")" -eq 0 ] || fail "jobs are left in the fleet"
echo "mail fleet: failed $failed"
[ "$failed" -eq 0 ]
