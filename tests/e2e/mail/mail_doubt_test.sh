#!/usr/bin/env bash
# mail_doubt_test.sh TIDEMARK CLOUD: is it the message, or is it us?  A few messages that always
# fail are decided without slowing the others (E4.5, E6.1); an account that refuses or denies
# everything marks nothing bad and nothing gone (E6.2, M6a).
. "$(dirname "$0")/../stage.sh"
messages=40

start_cloud --seed 8 --clock 2026-06-01T00:00:00Z \
    --mailbox "$user=$messages,size=2000" --token tok="$user" \
    --mailbox bob@example.com=30,size=2000 --token tok-bob=bob@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0
export TIDEMARK_RETRY_BACKOFF_START=20ms TIDEMARK_RETRY_BACKOFF_MAX=100ms
run() { t mail sync --quiet --json >"$dir/out" 2>"$dir/err"; }
# Marked in the archive, or recorded by the ledger.
gone() {
    echo $(($(t mail status --json | jq '.accounts[0].gone') + $(sqlite3 "$dir/home/state.db" "SELECT count(*) FROM bad")))
}
ids() {
    curl -sSf -H 'Authorization: Bearer tok' "$origin/gmail/v1/users/me/messages?maxResults=500&includeSpamTrash=true" |
        jq -r '.messages[].id'
}
deliver() { # N
    for ((i = 0; i < $1; i++)); do
        printf 'From: b@example.org\r\nSubject: news %s\r\n\r\nnew\r\n' "$i" >"$dir/new.eml"
        curl -sSf -o /dev/null -X POST -H 'Content-Type: message/rfc822' --data-binary @"$dir/new.eml" \
            "$origin/_cloud/mail?user=$user" || fail "mail"
    done
    messages=$((messages + $1))
}

sign_in

# ---- seven of forty messages always fail: the others are stored, and these are bad soon
for id in $(ids | head -n 7); do
    fault "{\"method\":\"gmail.users.messages.get\",\"id\":\"$id\",\"rate\":1,\"fault\":\"503\"}"
done
run
code=$?
[ "$code" -eq 3 ] || fail "bad messages: exit $code"
[ "$(field stored)" -eq $((messages - 7)) ] || fail "$(field stored) are stored"
[ "$(field bad)" -eq 7 ] || fail "$(field bad) are bad"
[ "$(field cycles_open)" -eq 0 ] || fail "bad messages: $(field cycles_open) cycles are open"
no_faults
t mail bad retry --all >/dev/null 2>&1 || t bad retry --all >/dev/null || fail "bad retry"
run || fail "retried: exit $?"
[ "$(field stored)" -eq "$messages" ] && [ "$(field bad)" -eq 0 ] || fail "retried: $(cat "$dir/out")"

# ---- a lasting 403: what worked before does not work either, so nothing is called bad
deliver 30
fault '{"method":"gmail.users.messages.get","rate":1,"fault":"403"}'
run && fail "403: exit 0"
[ "$(t mail status --json | jq '.accounts[0].bad')" -eq 0 ] || fail "403: $(t mail status --json | jq '.accounts[0].bad') are bad"
t account list >"$dir/list"
grep -q halted "$dir/list" || fail "403: the account is not halted: $(cat "$dir/list")"
no_faults
t account resume "$user" >/dev/null || fail "resume"
run || fail "after the 403: exit $? $(cat "$dir/out" "$dir/err")"
[ "$(field stored)" -eq "$messages" ] || fail "after the 403: $(field stored) of $messages"

# ---- a lasting 404: what is stored is denied too, so nothing is called gone
deliver 20
fault '{"method":"gmail.users.messages.get","rate":1,"fault":"404"}'
timeout -s INT 4 "$tidemark" --home "$dir/home" mail sync --quiet >"$dir/text" 2>&1 && fail "404: exit 0"
[ "$(gone)" -eq 0 ] || fail "404: $(gone) are gone"
no_faults
run || fail "after the 404: exit $? $(cat "$dir/out" "$dir/err")"
[ "$(field stored)" -eq "$messages" ] || fail "after the 404: $(field stored) of $messages"
[ "$(gone)" -eq 0 ] || fail "after the 404: $(gone) are gone"

# ---- a complete listing that names nothing, or too little, deletes nothing and is not the end
for lie in list-empty list-short; do
    curl -sSf -o /dev/null "$origin/_cloud/history/expire" -d "{\"user\":\"$user\"}"
    deliver 20
    fault "{\"method\":\"gmail.users.messages.list\",\"rate\":1,\"fault\":\"$lie\"}"
    run && fail "$lie: exit 0"
    [ "$(gone)" -eq 0 ] || fail "$lie: $(gone) are gone"
    no_faults
    run || fail "after $lie: exit $? $(cat "$dir/out" "$dir/err")"
    [ "$(field stored)" -eq "$messages" ] || fail "after $lie: $(field stored) of $messages"
done

# ---- the same in a first sync: at once, and behind the plan's back.  Bob's mail is spread over years: the
# slices that are listed before the lie begins name little of it, whichever they are
for after in 0 12; do
    rm -rf "$dir/home"
    sign_in bob@example.com tok-bob
    fault "{\"method\":\"gmail.users.messages.list\",\"rate\":1,\"after\":$after,\"fault\":\"list-empty\"}"
    run && fail "first sync, empty after $after: exit 0, $(field stored) of 30"
    no_faults
    run || fail "first sync after the lie: exit $? $(cat "$dir/out" "$dir/err")"
    [ "$(field stored)" -eq 30 ] || fail "first sync: $(field stored) of 30"
done

# ---- a listing that leaves out a few is believed, and reported
rm -rf "$dir/home"
sign_in
fault '{"rate":0.15,"fault":"hidden"}'
run || fail "a few are hidden: exit $? $(cat "$dir/out" "$dir/err")"
hidden=$((messages - $(field stored)))
[ "$hidden" -gt 4 ] || fail "a few are hidden: $hidden"
[ "$(field unlisted)" -eq "$hidden" ] || fail "sync says $(field unlisted) of $hidden"
t mail status | grep -q "unlisted .* $hidden messages more" || fail "status does not tell of $hidden: $(t mail status)"
no_faults
t mail sync --quiet --force >"$dir/text" 2>&1 || fail "sync --force: $(cat "$dir/text")"
t mail status --json >"$dir/out"
[ "$(field stored) $(field unlisted)" = "$messages 0" ] || fail "after --force: $(field stored), $(field unlisted) unlisted"

# ---- a message that the listing leaves out is asked for itself, also when the one that is to prove
# that the server answers was deleted meanwhile
curl -sSf -o /dev/null "$origin/_cloud/history/expire" -d "{\"user\":\"$user\"}"
newest=$(ids | sort | tail -n 1)
fault "{\"method\":\"gmail.users.messages.list\",\"id\":\"$(ids | tail -n 1)\",\"rate\":1,\"fault\":\"hidden\"}"
fault "{\"method\":\"gmail.users.messages.get\",\"id\":\"$newest\",\"rate\":1,\"fault\":\"404\"}"
run || fail "left out: exit $? $(cat "$dir/out" "$dir/err")"
[ "$(gone)" -eq 0 ] || fail "left out: $(gone) are gone: $(sqlite3 "$dir/home/state.db" 'SELECT item FROM bad')"
no_faults

# ---- what was really deleted is gone
deleted=$(ids | tail -n 3 | jq -R . | jq -sc .)
curl -sSf -o /dev/null "$origin/_cloud/mail/delete" -d "{\"user\":\"$user\",\"ids\":$deleted}" || fail "delete"
curl -sSf -o /dev/null "$origin/_cloud/history/expire" -d "{\"user\":\"$user\"}"
run || fail "deleted: exit $? $(cat "$dir/out" "$dir/err")"
[ "$(gone)" -eq 3 ] || fail "deleted: $(gone) are gone"
[ "$(field cycles_open)" -eq 0 ] || fail "deleted: work is left"

# ---- a single message that is left out is reported, also when new mail has made up for it
rm -rf "$dir/home"
user=bob@example.com messages=30
sign_in "$user" tok-bob
hidden=$(curl -sSf -H 'Authorization: Bearer tok-bob' "$origin/gmail/v1/users/me/messages" | jq -r '.messages[3].id')
fault "{\"method\":\"gmail.*\",\"id\":\"$hidden\",\"rate\":1,\"fault\":\"hidden\"}"
run || fail "one is hidden: exit $? $(cat "$dir/out" "$dir/err")"
[ "$(field stored) $(field unlisted)" = "29 1" ] || fail "one is hidden: $(field stored), $(field unlisted) unlisted"
no_faults
deliver 5
run || fail "new mail: exit $? $(cat "$dir/out" "$dir/err")"
[ "$(field stored) $(field unlisted)" = "34 1" ] || fail "new mail: $(field stored), $(field unlisted) unlisted"
t mail sync --quiet --force >"$dir/text" 2>&1 || fail "sync --force: $(cat "$dir/text")"
t mail status --json >"$dir/out"
[ "$(field stored) $(field unlisted)" = "35 0" ] || fail "after --force: $(field stored), $(field unlisted) unlisted"

# ---- nor does a message make up for it that was listed and is gone since: the server does not count it
rm -rf "$dir/home"
sign_in "$user" tok-bob
denied=$(curl -sSf -H 'Authorization: Bearer tok-bob' "$origin/gmail/v1/users/me/messages" | jq -r '.messages[9].id')
fault "{\"method\":\"gmail.*\",\"id\":\"$hidden\",\"rate\":1,\"fault\":\"hidden\"}"
fault "{\"method\":\"gmail.users.messages.get\",\"id\":\"$denied\",\"rate\":1,\"fault\":\"404\"}"
run || fail "one is denied: exit $? $(cat "$dir/out" "$dir/err")"
[ "$(gone)" -eq 1 ] || fail "one is denied: $(gone) are gone"
curl -sSf -o /dev/null "$origin/_cloud/mail/delete" -d "{\"user\":\"$user\",\"ids\":[\"$denied\"]}" || fail "delete"
run || fail "one is gone: exit $? $(cat "$dir/out" "$dir/err")"
[ "$(field stored) $(field unlisted)" = "33 1" ] || fail "one is gone: $(field stored), $(field unlisted) unlisted"
no_faults

# ---- a first sync that is stopped before it is planned has no known beginning
rm -rf "$dir/home"
sign_in "$user" tok-bob
fault '{"method":"gmail.users.messages.list","rate":1,"fault":"latency","ms":60000}'
t mail sync --quiet --timeout 1s >"$dir/text" 2>&1 && fail "stopped: exit 0"
t mail status >"$dir/text" 2>&1
grep -q 'last run   stopped before its end' "$dir/text" || fail "stopped: $(cat "$dir/text")"
no_faults
t account remove "$user" >"$dir/text" 2>&1 || fail "remove: $(cat "$dir/text")"
grep -q 'revoked' "$dir/text" && fail "a token given by hand cannot be revoked: $(cat "$dir/text")"

[ "$failed" -eq 0 ] || exit 1
echo "in doubt: ok"
