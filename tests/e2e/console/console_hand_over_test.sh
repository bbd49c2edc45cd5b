#!/usr/bin/env bash
# console_hand_over_test.sh TIDEMARK CLOUD: a command that finds its home in use hands its work to the
# process that has it, and ends as if it had done the work itself: exit code, summary, fields and events
# of --json (E12.2).  If that process dies, it takes over.
. "$(dirname "$0")/../stage.sh"
token=tok-2f60d1ab
one=sc-domain:one.example
two=sc-domain:two.example
lost=sc-domain:lost.example

start_cloud --seed 7 --clock "$(date +%s)000" --mailbox "$user=1" --token "$token=$user" --token tok-bob=bob@example.com \
    --site "$one=$user,rows=40" --site "$two=$user,rows=5" --site "$lost=bob@example.com,rows=5"
t() { timeout 150 "$tidemark" --home "$dir/home" --set governor.console.site_units=0 "$@"; }
# Every batch takes two seconds, and the one that has the home needs many, one after another: it asks
# for one row at a time.
slow() { curl -sSf -X POST -d '{"method":"batch","fault":"latency","ms":2000}' "$origin/_cloud/faults" >/dev/null || fail "faults"; }
quick() { curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null || fail "faults"; }
running() { sqlite3 "$dir/home/state.db" "SELECT count(*) FROM job WHERE state = 1" 2>/dev/null || echo 0; }
# hold AGE: a backfill of a day that has the home until `quick`; its id is in $first.
hold() {
    slow
    day=$(date -u -d "-$1 days" +%F)
    "$tidemark" --home "$dir/home" --set governor.console.site_units=0 console backfill "$one" --from "$day" --to "$day" --rows 1 \
        --json >"$dir/first" 2>"$dir/first.err" &
    first=$!
    stage_pids+=("$first")
    while [ "$(running)" -eq 0 ] && kill -0 "$first" 2>/dev/null; do pause; done
}

t account add console "$one" "$two" "$lost" --endpoint "$origin" --bearer "$token" >/dev/null 2>"$dir/err" || fail "account add"
grep -q "warning: this sign-in cannot read $lost" "$dir/err" || fail "no warning: $(cat "$dir/err")"
for site in "$one" "$two"; do
    t console backfill "$site" --days 2 --quiet >"$dir/out" 2>&1 || fail "backfill: $(cat "$dir/out")"
done
t console sync --json >"$dir/alone" 2>"$dir/alone.err" || fail "sync: $(cat "$dir/alone.err")"
t console sites --json >"$dir/sites" || fail "sites"
jq -e '.handed_over == false' "$dir/alone" >/dev/null || fail "handed over with no other process: $(cat "$dir/alone")"

# ---- while another process has the home
hold 60
t console sites --json >"$dir/out" 2>"$dir/err" || fail "sites beside a backfill: $(cat "$dir/err")"
cmp -s "$dir/sites" "$dir/out" || fail "other sites: $(cat "$dir/out")"
ends 1 console backfill "$lost" --days 2 --json
jq -e '.error.text | contains("sufficient permission")' "$dir/out" >/dev/null || fail "not why it is refused: $(cat "$dir/out")"
jq -se 'all(.handed_over)' "$dir/err" >/dev/null || fail "refused beside: $(cat "$dir/err")"
ends 0 console remove "$lost"
grep -q "^removed $lost" "$dir/out" || fail "remove beside a backfill: $(cat "$dir/out")"
ends 1 console remove "$lost" # it is gone
grep -q "site $lost was not added" "$dir/err" || fail "removed twice: $(cat "$dir/err")"
grep -q "console status. shows the sites" "$dir/err" || fail "no hint, or another one: $(cat "$dir/err")"
# It is added again, and refused again; then with a sign-in that can read it.
t account add console "$lost" --endpoint "$origin" --bearer "$token" >/dev/null 2>&1 || fail "account add again"
ends 1 console backfill "$lost" --days 2 --json
jq -e '.error.text | contains("sufficient permission")' "$dir/out" >/dev/null || fail "not refused again: $(cat "$dir/out")"
t console remove "$lost" >/dev/null || fail "remove again"
t account add console "$lost" --name bob --endpoint "$origin" --bearer tok-bob >/dev/null || fail "account add with another sign-in"
ends 0 console backfill "$lost" --days 2 --json
jq -e '.handed_over and .days > 0' "$dir/out" >/dev/null || fail "not with the new sign-in: $(cat "$dir/out")"
t account remove bob >/dev/null || fail "remove the other sign-in"
kill -0 "$first" 2>/dev/null || fail "the first one ended too early: $(cat "$dir/first" "$dir/first.err")"
t console sync "$one" "$two" --json >"$dir/second" 2>"$dir/second.err" &
second=$!
t console backfill "$two" --days 4 >"$dir/third" 2>"$dir/third.err" &
third=$!
until grep -q handed_over.:true "$dir/second.err" && grep -q "works in this directory" "$dir/third.err"; do
    kill -0 "$second" "$third" 2>/dev/null || break
    pause
done
kill -0 "$first" 2>/dev/null || fail "the first one ended too early: $(cat "$dir/first" "$dir/first.err")"
quick
wait "$second" || fail "the second one ended with $?: $(cat "$dir/second" "$dir/second.err")"
wait "$third" || fail "the third one ended with $?: $(cat "$dir/third" "$dir/third.err")"
wait "$first" || fail "the first one ended with $?: $(cat "$dir/first" "$dir/first.err")"
# If the first one ends before the work of the second is done, the second takes over; the result is the same.
jq -e '.days > 0 and .rows > 0 and .rows_missing == 0' "$dir/second" >/dev/null || fail "the second one: $(cat "$dir/second")"
[ "$(jq -c 'keys' "$dir/second")" = "$(jq -c 'keys' "$dir/alone")" ] || fail "other fields: $(jq -c 'keys' "$dir/second" "$dir/alone")"
jq -se 'length > 0 and all(.event == "progress" and .system == "console" and .account == "console") and any(.handed_over)' "$dir/second.err" >/dev/null ||
    fail "events: $(cat "$dir/second.err")"
[ "$(jq -sc '.[-1] | del(.handed_over) | keys' "$dir/second.err")" = "$(jq -sc '.[-1] | del(.handed_over) | keys' "$dir/alone.err")" ] || fail "other events: $(cat "$dir/second.err")"
grep -q "rocess $first works in this directory" "$dir/third.err" || fail "who does it: $(cat "$dir/third.err")"
grep -Eq '^[0-9]+ days stored with [0-9]+ rows; [0-9]+ queries in [0-9]+ HTTP requests, 0 refused$' "$dir/third" || fail "the summary: $(cat "$dir/third")"
[ "$(t console status "$two" --json | jq '.series[0].days_left')" -eq 0 ] || fail "days are left: $(t console status)"

# ---- a process of another system does it as well
: >"$dir/first.err" # the shell may look at it before the process has opened it
t account add gmail "$user" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add gmail"
curl -sSf -X POST -d '{"method":"gmail.*","fault":"latency","ms":600000}' "$origin/_cloud/faults" >/dev/null || fail "faults"
"$tidemark" --home "$dir/home" mail sync --json >"$dir/first" 2>"$dir/first.err" &
first=$!
stage_pids+=("$first")
while ! grep -q event "$dir/first.err" && kill -0 "$first" 2>/dev/null; do pause; done
t console backfill "$two" --days 6 --json >"$dir/second" 2>"$dir/second.err" || fail "beside mail: $(cat "$dir/second" "$dir/second.err")"
jq -e '.handed_over and .days > 0' "$dir/second" >/dev/null || fail "beside mail: $(cat "$dir/second")"
kill -TERM "$first"
wait "$first"
code=$?
[ "$code" -eq 5 ] || fail "mail sync ended with $code: $(cat "$dir/first" "$dir/first.err")"
quick

# ---- it dies: the one that waits takes over
hold 90
: >"$dir/second.err"
t console sync "$two" --json >"$dir/second" 2>"$dir/second.err" &
second=$!
while ! grep -q handed_over.:true "$dir/second.err" && kill -0 "$second" 2>/dev/null; do pause; done
strike "$first" || fail "the first one ended too early: $(cat "$dir/first.err")"
quick
wait "$second" || fail "after a take-over: $? $(cat "$dir/second" "$dir/second.err")"
jq -e '.handed_over == false and .days > 0' "$dir/second" >/dev/null || fail "after a take-over: $(cat "$dir/second")"

# ---- it dies and another one starts: what was asked of the first one is asked again
account_jobs() { sqlite3 "$dir/home/state.db" "SELECT count(*) FROM job JOIN kind ON kind.id = kind WHERE name = 'tidemark.account' AND state $1"; }
is_asked() { [ "$(account_jobs "= 0")" -gt 0 ]; }
is_over() { [ "$(account_jobs "< 2")" -eq 0 ]; }
hold 91
t jobs pause --kind tidemark.account >/dev/null || fail "pause"
"$tidemark" --home "$dir/home" console remove "$two" >"$dir/second" 2>"$dir/second.err" &
second=$!
stage_pids+=("$second")
until_true 20 is_asked || fail "nothing was asked: $(cat "$dir/second.err")"
kill -STOP "$second"
strike "$first" || fail "the first one ended too early: $(cat "$dir/first.err")"
t jobs resume --kind tidemark.account >/dev/null || fail "resume"
hold 91
until_true 20 is_over || fail "the job of the first one is left: $(t jobs list)"
[ "$(sqlite3 "$dir/home/state.db" "SELECT account FROM console_site WHERE site = '$two'")" -ne 0 ] || fail "removed by a process that was not asked"
kill -CONT "$second"
wait "$second" || fail "remove, asked twice: $? $(cat "$dir/second" "$dir/second.err")"
grep -q "^removed $two" "$dir/second" || fail "remove, asked twice: $(cat "$dir/second")"
[ "$(sqlite3 "$dir/home/state.db" "SELECT account FROM console_site WHERE site = '$two'")" -eq 0 ] || fail "said to be removed, and is there"
t account add console "$two" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add after a removal"
quick
strike "$first"

# ---- the site that is being fetched is removed: its jobs end, and so does the one that waits for them
hold 120
ends 0 console remove "$one"
wait "$first"
[ "$(sqlite3 "$dir/home/state.db" "SELECT count(*) FROM job JOIN kind ON kind.id = kind WHERE state IN (0, 1) AND name LIKE 'console.%'")" -eq 0 ] || fail "jobs are left: $(t jobs list)"
[ "$(t console sites --json | jq -c '[.sites[] | select(.added).site]')" = "[\"$two\"]" ] || fail "sites: $(t console sites)"
quick

echo "$failed failed"
[ "$failed" -eq 0 ]
