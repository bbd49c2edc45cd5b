#!/usr/bin/env bash
# accounts_test.sh TIDEMARK CLOUD: several accounts of which one is broken.  The others finish,
# each account has its line, the exit code is the worst one, and no worker works for an account that
# was not named (M16, E7.2, E9.1, decision 10).
. "$(dirname "$0")/stage.sh"
start_cloud --seed 21 --mailbox ada@example.com=12 \
    --mailbox bob@example.com=9 --mailbox eve@example.com=6 --token tok-ada=ada@example.com \
    --token tok-bob=bob@example.com --token tok-eve=eve@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
add() { t account add gmail "$1@example.com" --endpoint "$origin" --bearer "tok-$1" >"$dir/out" 2>&1 || fail "add $1: $(cat "$dir/out")"; }
stored() { t mail status "$1@example.com" --json | jq '.accounts[0].stored'; }
deliver() {
    printf 'From: b@example.org\r\nSubject: %s\r\n\r\nx\r\n' "$2" | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
        --data-binary @- "$origin/_cloud/mail?user=$1@example.com" || fail "deliver"
}
add ada
add bob
add eve

# ---- a sign-in that is no longer accepted: the others finish, and the code says so
curl -sSf -o /dev/null "$origin/_cloud/token/revoke" -d '{"user":"bob@example.com"}' || fail revoke
ends 4 mail sync --quiet
[ "$(stored ada) $(stored eve)" = "12 6" ] || fail "healthy accounts did not finish: $(stored ada) $(stored eve)"
grep -q '^ada@example.com: 12 new, 12 stored' "$dir/out" || fail "ada's line: $(cat "$dir/out")"
grep -q '^eve@example.com: 6 new, 6 stored' "$dir/out" || fail "eve's line: $(cat "$dir/out")"
grep -q '^bob@example.com: .*sign-in' "$dir/out" || fail "bob's line: $(cat "$dir/out")"
grep -q 'account add gmail bob@example.com' "$dir/out" "$dir/err" || fail "what to do about bob: $(cat "$dir/out" "$dir/err")"
ends 4 mail sync --json
jq -e '[.accounts[] | {(.account): .outcome}] | add == {"ada@example.com":"done","bob@example.com":"signed_out","eve@example.com":"done"}' \
    "$dir/out" >/dev/null || fail "outcomes: $(cat "$dir/out")"
jq -e '.accounts[] | select(.outcome == "signed_out") | .reason | test("sign in again")' "$dir/out" >/dev/null || fail "its reason: $(cat "$dir/out")"
# ... and those that are named alone are not touched by it
ends 0 mail sync ada@example.com eve@example.com --quiet
grep -q bob "$dir/out" "$dir/err" && fail "bob was not asked for: $(cat "$dir/out" "$dir/err")"

# ---- signed in again, and at once
curl -sSf -o /dev/null "$origin/_cloud/token" -d '{"user":"bob@example.com","token":"tok-bob2"}' || fail token
t account add gmail bob@example.com --endpoint "$origin" --bearer tok-bob2 >/dev/null || fail "sign in again"
ends 0 mail sync --quiet
[ "$(stored bob)" -eq 9 ] || fail "bob did not come back: $(stored bob)"

# ---- halted: said, and not success
deliver ada one
deliver bob two
t account halt bob@example.com --reason 'on holiday' >/dev/null || fail halt
ends 1 mail sync --quiet
grep -q '^bob@example.com: .*halted.*on holiday' "$dir/out" || fail "bob's line: $(cat "$dir/out")"
grep -q 'account resume bob@example.com' "$dir/out" "$dir/err" || fail "what to do about a halt: $(cat "$dir/out" "$dir/err")"
[ "$(stored ada) $(stored bob)" = "13 9" ] || fail "beside a halted account: $(stored ada) $(stored bob)"
ends 1 mail sync bob@example.com --json
jq -e '.accounts[0].outcome == "halted" and .accounts[0].reason == "on holiday"' "$dir/out" >/dev/null || fail "outcome: $(cat "$dir/out")"
# ... and status says so whatever the last run came to, and how to resume
says_halted() {
    t mail status bob@example.com >"$dir/out" || fail "status"
    grep -q '^  halted .*on holiday.*account resume bob@example.com' "$dir/out" || fail "$1: $(cat "$dir/out")"
    t mail status bob@example.com --json | jq -e '.accounts[0] | .halted and .halt_reason == "on holiday" and (.paused | not)' >/dev/null || fail "$1: --json"
}
says_halted "with work left"
t jobs cancel --account bob@example.com >/dev/null || fail cancel
says_halted "with a canceled job"
t account resume bob@example.com >/dev/null || fail resume
ends 0 mail sync bob@example.com --quiet
t mail status bob@example.com --json | jq -e '.accounts[0] | .last_run == "done" and .failed_jobs == 1' >/dev/null ||
    fail "a job that was canceled before the last run spoils it: $(t mail status bob@example.com --json)"
deliver bob three
t jobs pause --account bob@example.com >/dev/null || fail pause
ends 1 mail sync bob@example.com --quiet
grep -q '^bob@example.com: .*paused' "$dir/out" || fail "bob's line: $(cat "$dir/out")"
t mail status bob@example.com >"$dir/out" || fail "status"
grep -q '^  paused .*jobs resume --account bob@example.com' "$dir/out" || fail "paused: $(cat "$dir/out")"
t jobs resume --account bob@example.com >/dev/null || fail "resume jobs"
ends 0 mail sync --quiet
[ "$(stored bob)" -eq 11 ] || fail "after a resume: $(stored bob)"

# ---- what waits of another account stays where it is
deliver eve left-1
deliver eve left-2
t mail sync eve@example.com --max 1 --quiet >/dev/null 2>&1
[ "$(stored eve)" -eq 7 ] || fail "--max 1 stored $(stored eve)"
ends 0 mail sync ada@example.com --quiet
[ "$(stored eve)" -eq 7 ] || fail "a sync of ada fetched eve's mail: $(stored eve)"
ends 0 mail sync eve@example.com --quiet
[ "$(stored eve)" -eq 8 ] || fail "the rest of eve: $(stored eve)"

# ---- the same through a running sync: it works for who is asked for, and each command ends with its own
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"method":"gmail.users.messages.get","user":"ada@example.com","fault":"held"}' || fail slow
for i in 1 2 3; do deliver ada "slow-$i"; done
deliver bob beside
t mail sync ada@example.com --quiet >"$dir/first.out" 2>"$dir/first.err" &
first=$!
for _ in $(seq 100); do
    t mail status ada@example.com --json | jq -e '.accounts[0] | .engine and .jobs_running > 0' >/dev/null && break
    pause
done
ends 0 mail sync bob@example.com --quiet
[ "$(stored bob)" -eq 12 ] || fail "bob beside ada: $(stored bob)"
grep -q '^bob@example.com: 1 new' "$dir/out" || fail "bob's line: $(cat "$dir/out")"
grep -q ada "$dir/out" && fail "ada was not asked for: $(cat "$dir/out")"
kill -0 "$first" 2>/dev/null || fail "the first sync ended early: nothing was handed over"
t account halt eve@example.com --reason away >/dev/null || fail halt
ends 1 mail sync eve@example.com bob@example.com --json
jq -e '.handed_over and ([.accounts[] | {(.account): .outcome}] | add) == {"bob@example.com":"done","eve@example.com":"halted"}' \
    "$dir/out" >/dev/null || fail "handed over: $(cat "$dir/out")"
t account resume eve@example.com >/dev/null || fail resume

# ---- accounts of any system are added and removed by the engine that runs (E12.2)
ends 0 account add console sc-domain:example.org --endpoint "$origin" --bearer tok-ada
ends 0 console status --json
t account list --json | jq -e --arg o "$origin" '.accounts[] | select(.account == "console") | .signed_in == "yes" and .endpoint == $o' >/dev/null ||
    fail "added beside a sync: $(t account list --json)"
deliver eve unread
t account halt eve@example.com --reason away >/dev/null || fail halt
ends 1 mail sync eve@example.com --quiet
ends 0 account remove eve@example.com
t mail status --json | jq -e '[.accounts[].account] == ["ada@example.com","bob@example.com"]' >/dev/null || fail "removed beside a sync: $(t mail status --json)"
t jobs list --account eve@example.com --json | jq -e '.items | all(.state == "done" or .state == "canceled")' >/dev/null ||
    fail "jobs of a removed account: $(t jobs list --account eve@example.com)"
ends 0 account remove console
ends 1 account remove console
kill -0 "$first" 2>/dev/null || fail "the first sync ended early: nothing was handed over"
curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail faults
wait "$first" || fail "the first sync: $(cat "$dir/first.err")"
grep -q bob "$dir/first.out" && fail "the first one tells of bob: $(cat "$dir/first.out")"
[ "$(stored ada)" -eq 16 ] || fail "ada has $(stored ada)"

# ---- an account that is removed while it is synced: its jobs end, and its archive stays
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"method":"gmail.users.messages.get","user":"ada@example.com","fault":"held"}' || fail slow
deliver ada last
t mail sync ada@example.com bob@example.com --quiet >"$dir/first.out" 2>"$dir/first.err" &
first=$!
for _ in $(seq 100); do
    t mail status ada@example.com --json | jq -e '.accounts[0] | .engine and .jobs_running > 0' >/dev/null && break
    pause
done
ends 0 account remove ada@example.com
[ -d "$dir/home/archive/ada@example.com" ] || fail "its archive is gone"
wait "$first"
[ $? -eq 0 ] && fail "a sync of a removed account succeeds: $(cat "$dir/first.out")"
t mail status --json | jq -e '[.accounts[].account] == ["bob@example.com"]' >/dev/null || fail "ada is still there: $(t mail status --json)"
ends 0 mail sync --quiet

# ---- what a user cancels is not done
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"method":"gmail.*","user":"bob@example.com","fault":"latency","ms":600000}' || fail slow
deliver bob canceled
t mail sync bob@example.com --json >"$dir/first.out" 2>"$dir/first.err" &
first=$!
for _ in $(seq 100); do
    t mail status bob@example.com --json | jq -e '.accounts[0] | .engine and .jobs_running > 0' >/dev/null && break
    pause
done
ends 0 jobs cancel --account bob@example.com
wait "$first"
[ $? -eq 3 ] || fail "a sync that was canceled: $(cat "$dir/first.out" "$dir/first.err")"
jq -e '.accounts[0].outcome == "bad_items"' "$dir/first.out" >/dev/null || fail "canceled: $(cat "$dir/first.out")"

exit "$((failed > 0))"
