#!/usr/bin/env bash
# mail_return_test.sh TIDEMARK CLOUD: a sync comes back by itself once what stopped it is
# gone, and never says that all is well while work is left that nothing will do (E5.2, M5, M6a).
. "$(dirname "$0")/../stage.sh"
messages=40

start_cloud --seed 8 --clock 2026-06-01T00:00:00Z --mailbox "$user=$messages,size=2000" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0
# How often and how slowly it tries is not what is tested.
export TIDEMARK_RETRY_ATTEMPTS_MAX=2
export TIDEMARK_RETRY_BACKOFF_START=5ms TIDEMARK_RETRY_BACKOFF_MAX=20ms
export TIDEMARK_BREAKER_PAUSE_FIRST=5ms TIDEMARK_BREAKER_PAUSE_MAX=20ms
deliver() {
    printf 'From: b@example.org\r\nSubject: %s\r\n\r\nnew\r\n' "$1" >"$dir/new.eml"
    curl -sSf -o /dev/null -X POST -H 'Content-Type: message/rfc822' --data-binary @"$dir/new.eml" \
        "$origin/_cloud/mail?user=$user" || fail "mail"
    messages=$((messages + 1))
}
since= # --since 1y: fewer slices, where every one of them fails
run() { t mail sync --quiet --json $since >"$dir/out" 2>"$dir/err"; }
# A run that leaves something undone says so and does not succeed.
undone() {
    local code
    run
    code=$?
    [ "$code" -eq 3 ] || fail "$1: exit $code with $(field cycles_open) cycles open"
    [ "$(field cycles_open)" -gt 0 ] || fail "$1: nothing is open"
    t mail sync --quiet $since >"$dir/text" 2>&1 && fail "$1: a second run succeeds"
    grep -q 'not synced' "$dir/text" || fail "$1: the text does not say what is left: $(cat "$dir/text")"
}
whole() {
    run || fail "$1: exit $? $(cat "$dir/out" "$dir/err")"
    [ "$(field stored)" -eq "$messages" ] || fail "$1: $(field stored) of $messages are stored"
    [ "$(field cycles_open)" -eq 0 ] || fail "$1: $(field cycles_open) cycles are open"
    [ "$(field bad)" -eq 0 ] || fail "$1: $(field bad) are bad"
    [ "$(state "SELECT count(*) FROM job WHERE state IN (3, 4)")" -eq 0 ] || fail "$1: failed jobs stay"
}

sign_in

# ---- a first sync whose listings fail, after the plan was made
fault '{"method":"gmail.users.messages.list","rate":1,"after":8,"fault":"500"}'
since='--since 1y'
undone "failed listings"
no_faults
run || fail "failed listings: exit $?"
[ "$(field cycles_open)" -eq 0 ] || fail "failed listings: $(field cycles_open) cycles are open"
since=
whole "failed listings"

# ---- more failed histories than runs may wait on top of each other
fault '{"method":"gmail.users.history.list","rate":1,"fault":"500"}'
for i in 1 2 3 4; do
    undone "failed history $i"
done
deliver late
run # the ninth: nothing more is opened
no_faults
whole "failed histories"

# ---- a run that fails before anything is opened: the next one does what it was asked for
fault '{"method":"gmail.users.labels.list","rate":1,"fault":"500"}'
for i in 1 2; do
    run && fail "failed plan $i: exit 0"
done
no_faults
whole "failed plans"

# ---- unless it was asked for more
fault '{"method":"gmail.users.labels.list","rate":1,"fault":"500"}'
t mail sync --quiet --force >/dev/null 2>&1 && fail "failed forced plan: exit 0"
no_faults
run || fail "after a failed forced plan: exit $?"
[ "$(field failed_jobs)" -eq 1 ] || fail "a forced run that failed is forgotten by one without force"
t mail sync --quiet --force >/dev/null 2>&1 || fail "forced again: exit $?"
whole "failed forced plan"

# ---- a history id that is none, and one that cannot be
for id in 12x 999999999999999 99999999999999999999999; do
    deliver "$id"
    state "UPDATE mail_mark SET history_id = '$id'"
    whole "history id $id"
    deliver "after $id"
    whole "after history id $id"
done

for lie in history-garbled history-ahead; do
    deliver "$lie"
    fault "{\"method\":\"gmail.*\",\"rate\":1,\"fault\":\"$lie\"}"
    run # whatever it says
    no_faults
    deliver "after $lie"
    whole "$lie"
done

# ---- an id that cannot be: the listing is asked for again
deliver id
fault '{"method":"gmail.users.history.list","count":3,"fault":"id-garbled"}'
run
no_faults
whole "garbled id"

# ---- tokens that lead nowhere
for lie in page-loop page-restart; do
    deliver "$lie"
    fault "{\"method\":\"gmail.users.history.list\",\"rate\":1,\"fault\":\"$lie\"}"
    undone "history: $lie"
    no_faults
    whole "history: $lie"
done
rm -rf "$dir/home"
sign_in
fault '{"method":"gmail.users.messages.list","rate":1,"after":8,"fault":"page-loop"}'
since='--since 1y'
undone "looping listing"
no_faults
run || fail "looping listing: exit $?"
[ "$(field cycles_open)" -eq 0 ] || fail "looping listing: $(field cycles_open) cycles are open"
since=
whole "looping listing"

# ---- a person's cancel stays until a person takes it back
fault '{"method":"gmail.users.history.list","rate":1,"fault":"500"}'
undone "before the cancel"
state "UPDATE job SET state = 4 WHERE state = 3"
no_faults
undone "canceled"
t jobs retry --state canceled >/dev/null 2>&1 || fail "retry"
whole "canceled"

[ "$failed" -eq 0 ] || exit 1
echo "a sync comes back: ok"
