#!/usr/bin/env bash
# assistant_fleet_test.sh TIDEMARK CLOUD: the assistant on PostgreSQL with two workers: each has a user, one of them
# the chat account.  Threads of both are answered once, whichever worker is killed (J1, J17).
. "$(dirname "$0")/../stage.sh"
. "$(dirname "$0")/assistant_stage.sh"
start_postgres
ada=$user ben=ben@example.com
serve --quota off --mailbox "$ada=0" --mailbox "$ben=0" --token "tok=$ada" --token "tok-ben=$ben"
export TIDEMARK_FLEET_LEASE=3s TIDEMARK_FLEET_LOOK=1s TIDEMARK_GOVERNOR_GMAIL_PROJECT_UNITS=0
category 'meet on Friday' needs_response
on() { # HOME ARGUMENT...
    local home=$1
    shift
    timeout 120 "$tidemark" --home "$dir/$home" --ledger "$url" "$@"
}
work() { # HOME: `tidemark worker` there
    : >"$dir/$1.log"
    "$tidemark" --home "$dir/$1" --ledger "$url" worker >"$dir/$1.out" 2>>"$dir/$1.log" &
    pid[$1]=$!
    until_true 60 grep -q joined "$dir/$1.log" || { echo "$1 does not work: $(cat "$dir/$1.log")" >&2; exit 1; }
}
drafts_at() { # TOKEN
    curl -sSf -H "Authorization: Bearer $1" "$api/drafts" | jq '.drafts // [] | length'
}
have() { [ "$(drafts_at tok) $(drafts_at tok-ben)" = "$1" ]; }
sql() { psql -qtAX "$url" -c "$1"; }
failed_jobs() { on a jobs list --state failed --json | jq '.jobs | length'; }

on a ledger migrate >/dev/null || { fail migrate; exit 1; }
(umask 077 && echo key-0a1B2c3D4e5F6a7B8c9D >"$dir/key")
on a account add gmail "$ada" --endpoint "$origin" --bearer tok >/dev/null || fail "account add $ada"
on b account add gmail "$ben" --endpoint "$origin" --bearer tok-ben >/dev/null || fail "account add $ben"
on b account add chat model --key-file "$dir/key" --model tide-good --fast-model tide-fast --endpoint "$origin" >/dev/null || fail "the chat account"
for one in "a $ada" "b $ben"; do
    on ${one% *} assistant onboard "${one#* }" >"$dir/out" 2>&1 || fail "onboard ${one#* }: $(cat "$dir/out")"
done
[ "$(sql 'SELECT count(*) FROM tidemark.assistant_user WHERE onboarded_ms > 0')" = 2 ] || { fail "users"; exit 1; }

# ---- both workers: a question of one is asked by the other
work a
work b
arrive 'Lunch' 'Shall we meet on Friday? I would like to know.' "$ada"
arrive 'Lunch' 'Shall we meet on Friday? I would like to know.' "$ben"
on a assistant sync --wait >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"
until_true 60 have '1 1' || fail "drafts: $(drafts_at tok) $(drafts_at tok-ben): $(on a jobs list)"
[ "$(failed_jobs)" = 0 ] || fail "failed: $(on a jobs list --state failed)"
[ "$(sql "SELECT count(*) FROM tidemark.schedule WHERE name LIKE 'assistant.%'")" = 3 ] || fail "not planned"

# ---- one is killed at work, and comes back: everything once
for i in 1 2 3 4 5 6; do
    arrive "Talk $i" "Shall we meet on Friday? This is question $i." "$ada"
    arrive "Talk $i" "Shall we meet on Friday? This is question $i." "$ben"
done
on b assistant sync >/dev/null 2>&1 || fail "asking"
busy() { [ "$(sql "SELECT count(*) FROM tidemark.assistant_call")" -ge "$1" ]; }
until_true 60 busy 8 || fail "nothing is asked"
strike "${pid[b]}" || fail "b had ended: $ended"
work b
until_true 60 busy 14 || fail "it does not go on"
strike "${pid[a]}" || fail "a had ended: $ended"
work a
until_true 120 have '7 7' || fail "drafts after kills: $(drafts_at tok) $(drafts_at tok-ben): $(on a jobs list)"
on a assistant sync --full --wait >"$dir/out" 2>&1 || fail "a full sync: $(cat "$dir/out")"
have '7 7' || fail "drafts twice: $(drafts_at tok) $(drafts_at tok-ben)"
[ "$(sql "SELECT count(*) FROM tidemark.assistant_email WHERE status = 'drafted'")" = 14 ] ||
    fail "records: $(sql 'SELECT status, count(*) FROM tidemark.assistant_email GROUP BY 1')"
for one in a b; do
    kill -TERM "${pid[$one]}"
    wait "${pid[$one]}"
    code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 5 ] || fail "$one ended with $code: $(cat "$dir/$one.log")"
done

[ $failed -eq 0 ] || exit 1
echo "assistant_fleet: fine"
