#!/usr/bin/env bash
# identity_test.sh TIDEMARK CLOUD: the sign-in of an account is the one of its mailbox, at adding and
# at every start; a server that is dead, odd or unsafe is refused (M16, M19a).
. "$(dirname "$0")/../stage.sh"
start_cloud --seed 22 --mailbox ada@example.com=7 \
    --mailbox bob@example.com=5 --token tok-ada=ada@example.com --token tok-bob=bob@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
add() { ends "$1" account add gmail "$2" --endpoint "$3" --bearer "$4"; }
calls() { curl -sSf "$origin/_cloud/stats" | jq "[.users.\"$1@example.com\".methods // {} | to_entries[] | select(.key | test(\"$2\")) | .value.calls] | add // 0"; }

# ---- another one's token: nothing is added, nothing is kept
add 4 ada@example.com "$origin" tok-bob
grep -q 'bob@example.com, not of ada@example.com' "$dir/err" || fail "whose: $(cat "$dir/err")"
t account list --json 2>/dev/null | jq -e '.accounts | length == 0' >/dev/null || fail "it was added: $(t account list)"
[ -z "$(ls -A "$dir/home/secrets" 2>/dev/null)" ] || fail "its token was kept: $(ls "$dir/home/secrets")"
# ... also in other letters it is the same mailbox
add 0 Ada@Example.com "$origin" tok-ada
t account remove Ada@Example.com >/dev/null 2>&1 || fail "remove"
add 0 ada@example.com "$origin" tok-ada
add 0 bob@example.com "$origin" tok-bob

# ---- endpoints that are no good
add 1 ada@example.com http://127.0.0.1:1 tok-ada
grep -q '127.0.0.1:1' "$dir/err" && grep -qi 'connect' "$dir/err" || fail "host and reason: $(cat "$dir/err")"
add 1 ada@example.com https://no-such-host.invalid tok-ada
grep -q 'no-such-host.invalid' "$dir/err" || fail "host: $(cat "$dir/err")"
add 2 ada@example.com http://mail.example.com tok-ada
grep -q 'http is allowed on this machine' "$dir/err" || fail "plain http: $(cat "$dir/err")"
for odd in http://127.0.0.1.example.com:80 http://user@127.0.0.1:80 ftp://127.0.0.1 127.0.0.1:80 http:// "http://127.0.0.1:80/path" \
    "http://127.0.0.1:80?x" http://127.0.0.1:99999 http://127.0.0.1:x 'https://a b' https://; do
    add 2 ada@example.com "$odd" tok-ada
done
add 4 ada@example.com "$origin" nonsense
grep -q 'does not accept this sign-in' "$dir/err" || fail "a token of no account: $(cat "$dir/err")"
t account list --json | jq -e --arg o "$origin" '.accounts | map(select(.endpoint == $o)) | length == 2' >/dev/null ||
    fail "a refused one changed an account: $(t account list)"
ends 2 account add console https://example.com/ --endpoint http://example.com --bearer x

# ---- the token is changed behind its back: nothing is read, nothing is written
ends 0 mail sync --quiet
ends 0 mail archive older_than:1d --account ada@example.com --mode trash --limit 2 --yes
secret=$(grep -l tok-ada "$dir/home/secrets"/*)
other=$(grep -l tok-bob "$dir/home/secrets"/*)
cp "$secret" "$dir/ada.secret"
printf 'From: x@example.org\r\nSubject: of bob\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
    --data-binary @- "$origin/_cloud/mail?user=bob@example.com" || fail deliver
sed 's/tok-ada/tok-bob/' "$dir/ada.secret" >"$secret"
before=$(calls bob 'messages|history|labels')
ends 4 mail sync ada@example.com --quiet
grep -q 'ada@example.com: .*mailbox of bob@example.com, not of ada@example.com' "$dir/out" || fail "sync: $(cat "$dir/out" "$dir/err")"
[ "$(calls bob 'messages|history|labels')" -eq "$before" ] || fail "bob's mailbox was read"
ends 4 mail sync ada@example.com --force --quiet
t mail status ada@example.com --json | jq -e '.accounts[0] | .stored == 7 and .gone == 0' >/dev/null || fail "ada's archive: $(t mail status --json)"
ends 4 mail archive older_than:1d --account ada@example.com --yes
ends 4 mail archive older_than:1d --account ada@example.com --no-sync --yes
ends 4 mail restore --manifest 1 --yes
curl -sSf "$origin/_cloud/users" | jq -e '.users | map(select(.email == "bob@example.com"))[0].messages == 6' >/dev/null ||
    fail "bob's mailbox changed: $(curl -sS "$origin/_cloud/users")"

# ---- repaired: it continues, and a sync without news stays below four calls
cp "$dir/ada.secret" "$secret"
ends 0 mail sync ada@example.com --quiet
curl -sSf -o /dev/null -X POST "$origin/_cloud/stats/reset" || fail reset
ends 0 mail sync ada@example.com --quiet
[ "$(calls ada .)" -le 3 ] || fail "a sync without news made $(calls ada .) calls"
[ -n "$other" ] || fail "no secret of bob's"

exit "$((failed > 0))"
