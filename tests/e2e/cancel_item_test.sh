#!/usr/bin/env bash
# cancel_item_test.sh TIDEMARK CLOUD: `jobs cancel --item` finds the jobs of a message, with and
# without a running process, and `jobs retry --item` undoes it (E9.4).
. "$(dirname "$0")/stage.sh"
start_cloud --seed 5 --mailbox ada@example.com=300 --token tok=ada@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
mkdir "$dir/home"
sign_in
fetches() { state "SELECT count(*) FROM job WHERE state = 0 AND json_array_length(payload, '\$.items') > 1"; }
# The first item of a job that is not finished.
an_item() { state "SELECT json_extract(payload, '\$.items[0]') FROM job WHERE state = 0 AND json_array_length(payload, '\$.items') > 1 LIMIT 1"; }
states_of() { state "SELECT DISTINCT state FROM job WHERE payload LIKE '%\"$1\"%'"; }

# ---- a sync that is killed leaves jobs; no process runs
fault '{"method":"gmail.users.messages.get","fault":"held"}'
"$tidemark" --home "$dir/home" mail sync --quiet >"$dir/sync.out" 2>&1 &
sync=$!
has_fetches() { [ "$(fetches)" -ge 2 ]; }
until_true 60 has_fetches || fail "no jobs: $(cat "$dir/sync.out")"
strike "$sync" || fail "the sync ended by itself: $(cat "$dir/sync.out")"
item=$(an_item)
[ -n "$item" ] || fail "no item"
ends 1 jobs cancel --item nosuchitem
grep -q 'no job that can be canceled has the item "nosuchitem"' "$dir/err" || fail "no such item: $(cat "$dir/err")"
ends 2 jobs cancel --item ''
ends 1 jobs cancel --item "$item" --account eve@example.com
ends 1 jobs cancel --item "$item" --kind mail.list
before=$(fetches)
ends 0 jobs cancel --item "$item"
grep -q '^canceled 1 job$' "$dir/out" && grep -Eq '^job [0-9]+ has [0-9]+ other items?: canceled with it$' "$dir/out" || fail "cancel: $(cat "$dir/out")"
[ "$(states_of "$item")" = 4 ] || fail "its job is not canceled: $(states_of "$item")"
[ "$(fetches)" -eq $((before - 1)) ] || fail "other jobs were canceled: $before, $(fetches)"
ends 1 jobs cancel --item "$item" # canceled already
ends 0 jobs retry --item "$item" --json
jq -e --arg item "$item" '.count == 1 and .item == $item and (.jobs | length) == 1 and (.engine | not)' "$dir/out" >/dev/null || fail "retry: $(cat "$dir/out")"
[ "$(states_of "$item")" = 0 ] || fail "its job does not wait again: $(states_of "$item")"

# ---- beside a running process: the job runs, or waits, and ends
"$tidemark" --home "$dir/home" mail sync --quiet --json >"$dir/sync.out" 2>"$dir/sync.err" &
sync=$!
stage_pids+=("$sync")
runs() { t status --json | jq -e '.engine and .accounts[0].jobs_running > 0'; }
until_true 60 runs || fail "no sync: $(cat "$dir/sync.err")"
ends 0 jobs cancel --item "$item" --json
jq -e '.engine and .count + (.running | length) >= 1' "$dir/out" >/dev/null || fail "by the engine: $(cat "$dir/out")"
is_canceled() { [ "$(states_of "$item")" = 4 ]; }
until_true 30 is_canceled || fail "it still works on the item: $(states_of "$item")"
no_faults
ends 0 jobs retry --item "$item"
wait "$sync" # with an exit code that depends on when the retry came
ends 0 mail sync --quiet
[ "$(t status --json | jq '.accounts[0].stored')" -eq 300 ] || fail "not all mail: $(t status)"
[ "$(states_of "$item")" = 2 ] || fail "the job of the item is not done: $(states_of "$item")"
exit "$((failed > 0))"
