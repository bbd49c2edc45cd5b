#!/usr/bin/env bash
# console_queue_test.sh TIDEMARK CLOUD: requests that wait too long for their turn raise an alert that
# `tidemark alerts` and other commands show; a run in which they do not clears it (E6.4, B13).
. "$(dirname "$0")/../stage.sh"
site=sc-domain:example.com
token=tok-3fd7a204

serve --seed 7 --quota off --mailbox "$user=1" --token "$token=$user" --site "$site=$user,rows=3"
t() { timeout 150 "$tidemark" --home "$dir/home" --set alerts.queue_full_after=1s "$@"; }
alerts() { t alerts --json | jq -r '[.alerts[] | "\(.condition) \(.account)"] | join(",")'; }

t account add console "$site" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add"
t console backfill "$site" --days 2 --workers 1 --batch 1 --quiet >"$dir/out" 2>&1 || fail "backfill: $(cat "$dir/out")"
[ -z "$(alerts)" ] || fail "a run without trouble raised: $(alerts)"

# One request at a time, each of four seconds: the second one waits longer than it may.
curl -sSf -X POST -d '{"method":"batch","fault":"latency","ms":4000}' "$origin/_cloud/faults" >/dev/null || fail "faults"
t console backfill "$site" --days 6 --workers 1 --batch 1 --quiet >"$dir/out" 2>&1 &
run=$!
while [ -z "$(alerts)" ] && kill -0 "$run" 2>/dev/null; do :; done
[ "$(alerts)" = "queue console" ] || fail "no alert of the queue: $(alerts)"
t alerts | grep -q 'the queue of requests waiting for a batch is full' || fail "alerts: $(t alerts)"
t account list | head -n 1 | grep -q queue || fail "the first line of another command: $(t account list)"
curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null || fail "faults"
wait "$run" || fail "backfill: $(cat "$dir/out")"
t console sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"
[ -z "$(alerts)" ] || fail "still shown after a run without trouble: $(alerts)"

echo "$failed failed"
[ "$failed" -eq 0 ]
