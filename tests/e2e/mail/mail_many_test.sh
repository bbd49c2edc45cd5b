#!/usr/bin/env bash
# mail_many_test.sh TIDEMARK CLOUD: more than a few of what a command takes a list of; addresses that contain
# others, which a removal must not take for them; several archives, of which one cannot be read.
. "$(dirname "$0")/../stage.sh"
users=("$user" bob@example.com cat@example.com dan@example.com eve@example.com fay@example.com)
boxes=()
for one in "${users[@]}"; do boxes+=(--mailbox "$one=0" --token "tok-$one=$one"); done
start_cloud --seed 33 "${boxes[@]}"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
for one in "${users[@]}"; do sign_in "$one" "tok-$one"; done
day=86400000
base=1704067200000 # 2024-01-01T00:00:00Z
at=0
# deliver USER FROM SUBJECT [LINE...]: prints the id.
deliver() {
    local to=$1 from=$2 subject=$3
    shift 3
    { printf '%s\r\n' "From: $from" "To: $to" "Subject: $subject" 'Content-Type: text/plain' "$@" '' "text of $subject"; } |
        curl -sSf -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$to&date=$((base + at * day))" | jq -r .id
}
ids() { jq -r '[.messages[].id] | join(" ")' "$dir/out"; }
# finds IDS QUERY...: newest first.
finds() {
    local want=$1
    shift
    ends 0 mail search --json "$@"
    [ "$(ids)" = "$want" ] || fail "$*: \"$(ids)\", not \"$want\""
}

# ---- lists without a small end
at=1 whole=$(deliver "$user" 'Bob <bob@example.com>' whole)
at=2 longer=$(deliver "$user" 'Jim Bob <jim.bob@example.com>' longer)
at=3 abroad=$(deliver "$user" 'Bob <bob@example.com.au>' abroad)
at=4 named=$(deliver "$user" '"bob@example.com" <ann@other.example>' named)
at=5 under=$(deliver "$user" 'bob@mail.example.com' under 'Cc: bob@example.com, "ann@x.example" <jim.ann@x.example>')
ends 0 mail sync "${users[@]}" --quiet
ends 0 mail status "${users[@]}" --json
[ "$(jq '.accounts | length' "$dir/out")" -eq ${#users[@]} ] || fail "status of ${#users[@]}: $(cat "$dir/out")"
ends 0 mail heal "${users[@]}"
parts=()
for part in $(seq 9); do
    mkdir -p "$dir/part/Takeout/Mail"
    printf 'From x@y Mon Jan  5 10:00:00 2015\nFrom: old%s@example.com\nSubject: part %s\n\nkept\n\n' "$part" "$part" >"$dir/part/Takeout/Mail/all.mbox"
    tar -C "$dir/part" -czf "$dir/takeout-20260101T000000Z-00$part.tgz" Takeout
    parts+=("$dir/takeout-20260101T000000Z-00$part.tgz")
done
ends 0 mail import "${parts[@]}" --account fay@example.com --json
[ "$(jq .stored "$dir/out")" -eq 9 ] || fail "nine parts: $(cat "$dir/out")"

# ---- an address is that address, a domain that domain
finds "$whole" from:bob@example.com
finds "$whole" 'from:"bob@example.com"'
finds "$under $named $abroad $longer" -from:bob@example.com --account "$user"
finds "$longer $whole" from:@example.com --account "$user"
finds "$under $named $longer $whole" from:example.com --account "$user"
finds "$under" cc:bob@example.com
finds '' to:ann@x.example
# What removes mail takes nothing else either.
ends 0 mail archive --account "$user" --mode trash --no-sync --yes --json from:bob@example.com
[ "$(jq .removed "$dir/out")" -eq 1 ] || fail "another sender's mail: $(cat "$dir/out")"
ends 0 mail manifest 1 --state removed --json
[ "$(ids)" = "$whole" ] || fail "removed: $(ids)"
# The beginning of an id is enough here, too.
ends 0 mail restore --manifest 1 "${whole:0:14}" --dry-run --json
[ "$(jq '[.planned[] | .messages] | add' "$dir/out")" -eq 1 ] || fail "a short id: $(cat "$dir/out")"
ends 0 mail restore --manifest 1 "${longer}" --dry-run --json
[ "$(jq '[.planned[] | .messages] | add' "$dir/out")" -eq 0 ] || fail "another id: $(cat "$dir/out")"
ends 0 mail restore --manifest 1 "${whole:0:14}" --yes
ends 0 mail archive --account "$user" --mode trash --no-sync --dry-run --json from:@example.com.au
[ "$(jq .messages "$dir/out")" -eq 1 ] || fail "a domain: $(cat "$dir/out")"

# ---- what is advised is one command for one account, which a shell takes as it is
# pasted: runs the command of the last output as a dry run.
pasted() {
    local command
    command=$(sed -n 's/^`\(tidemark .*\)` would free.*/\1/p' "$dir/out")
    [ -n "$command" ] || { fail "no advice: $(cat "$dir/out")"; return; }
    bash -c "tidemark() { '$tidemark' \"\$@\"; }; $command --no-sync --dry-run --json" >"$dir/dry" 2>"$dir/err" || fail "pasted: $command: $(cat "$dir/err")"
}
bulk=$(head -c 60000 /dev/zero | tr '\0' x | fold -w 70)
at=6 plans=$(deliver bob@example.com 'Shop <offers@shop.example>' plans "X-Bulk: 1" '' "$bulk")
at=7 spam=$(deliver bob@example.com 'Spam <offers@spam.example>' spam '' "$bulk$bulk")
api_bob() { curl -sSf -H 'Authorization: Bearer tok-bob@example.com' -H 'Content-Type: application/json' "$@"; }
label=$(api_bob "$api/labels" -d '{"name":"Bob'"'"'s plans"}' | jq -r .id)
api_bob -o /dev/null "$api/messages/$plans/modify" -d "{\"addLabelIds\":[\"$label\"]}" || fail "a label"
api_bob -o /dev/null "$api/messages/$spam/modify" -d '{"addLabelIds":["SPAM"],"removeLabelIds":["INBOX"]}' || fail "spam"
ends 0 mail sync --quiet
for flags in '' '--account bob@example.com' '--by domain' '--by label'; do
    ends 0 mail stats $flags
    grep -q -- '--account bob@example.com' "$dir/out" || fail "stats $flags names no account: $(cat "$dir/out")"
    pasted
    [ "$(jq .messages "$dir/dry")" -eq 1 ] || fail "stats $flags: $(cat "$dir/out" "$dir/dry")"
done
# An imported message was never in Gmail: nothing of it is there to be removed.
ends 0 mail stats --account fay@example.com
grep -q 'would free' "$dir/out" && fail "imported mail cannot be freed: $(cat "$dir/out")"
grep -q '^9 messages, .*; 0 of them, 0 B, are in Gmail' "$dir/out" || fail "imported: $(cat "$dir/out")"
ends 0 mail labels --json
jq -e '.labels[] | select(.name == "Bob'"'"'s plans") | .messages == 1 and .in_gmail == 1 and .unread == 1 and .type == "user" and .query == "label:\"Bob'"'"'s plans\""' "$dir/out" >/dev/null || fail "labels: $(cat "$dir/out")"
ends 0 mail stats --by label in:anywhere --limit 1000 --json
jq -S '[.groups[] | {name, messages, bytes, in_gmail, in_gmail_bytes, oldest_unix_ms, newest_unix_ms, query}] | sort_by(.name)' "$dir/out" >"$dir/walked"
t mail labels --json | jq -S '[.labels[] | {name, messages, bytes, in_gmail, in_gmail_bytes, oldest_unix_ms, newest_unix_ms, query}] | sort_by(.name)' >"$dir/grouped"
cmp -s "$dir/walked" "$dir/grouped" || fail "labels and stats differ: $(diff "$dir/walked" "$dir/grouped")"

# ---- a label of one account is no mistake in the others (M20)
finds "$plans" "label:\"bob's plans\""
finds '' "label:\"bob's plans\" label:unread from:nobody@shop.example"
finds "$plans $under" "{label:\"bob's plans\" subject:under}"
ends 1 mail search "label:\"bob's plans\"" --account "$user"
grep -q 'tidemark mail labels' "$dir/err" || fail "no hint: $(cat "$dir/err")"
ends 0 mail stats "label:\"bob's plans\"" --json
[ "$(jq .all.messages "$dir/out")" -eq 1 ] || fail "stats of a label: $(cat "$dir/out")"
for command in search stats; do
    ends 1 mail $command "label:\"bob's plan\""
    grep -q "no label \"bob's plan\".*did you mean \"Bob's plans\"" "$dir/err" || fail "$command: $(cat "$dir/err")"
    ends 1 mail $command "{label:\"bob's plans\" label:nowhere}"
    grep -q 'no label "nowhere"' "$dir/err" || fail "$command: $(cat "$dir/err")"
done
ends 0 mail stats --limit 0
grep -q 'no messages match' "$dir/out" && fail "stats --limit 0: $(cat "$dir/out")"
ends 1 mail show "${plans:0:3}"
grep -q 'too short' "$dir/err" || fail "three characters of an id: $(cat "$dir/err")"

# ---- the same mailbox in other letters is the same mailbox (M16)
ends 1 account add gmail BOB@example.com --endpoint "$origin" --bearer tok-bob@example.com
grep -q 'here already, as bob@example.com' "$dir/err" || fail "another spelling: $(cat "$dir/err")"
[ ! -e "$dir/home/archive/BOB@example.com" ] || fail "another spelling has an archive"
sign_in bob@example.com tok-bob@example.com

# ---- a directory that is no archive of its own hides no other
cp -r "$archive" "$archive.old"
ends 3 mail search --json from:bob@example.com
[ "$(ids)" = "$whole" ] || fail "hits beside a stray directory: $(cat "$dir/out")"
jq -e --arg name "$user.old" '[.broken[] | select(.account == $name)] | length == 1 and (.[0].remedy | test("elsewhere"))' "$dir/out" >/dev/null || fail "it is not named: $(cat "$dir/out")"
ends 3 mail search from:bob@example.com
grep -q "$user.old cannot be read" "$dir/err" || fail "no warning: $(cat "$dir/err")"
ends 3 mail stats --json
[ "$(jq .all.messages "$dir/out")" -eq 16 ] || fail "stats beside it: $(cat "$dir/out")"
ends 3 mail labels --json
ends 3 mail show "$plans" --json
[ "$(jq -r .id "$dir/out")" = "$plans" ] || fail "show beside it: $(cat "$dir/out")"
ends 1 mail search from:bob@example.com --account "$user.old"
rm -r "$archive.old"

# ---- an import goes where the mailbox is, however its name is spelled; what was only imported is here, too
printf 'From: x@example.org\r\nSubject: from a file\r\n\r\nx\r\n' >"$dir/one.eml"
ends 0 mail import "$dir/one.eml" --account BOB@Example.com --json
jq -e '.account == "bob@example.com"' "$dir/out" >/dev/null || fail "an import under another spelling: $(cat "$dir/out")"
[ ! -e "$dir/home/archive/BOB@Example.com" ] || fail "an import made another archive"
ends 0 mail import "$dir/one.eml" --account New@example.com --quiet # needs no sign-in
ends 1 account add gmail new@example.com --endpoint "$origin" --bearer tok-bob@example.com
grep -q 'here already, as New@example.com' "$dir/err" || fail "an archive in other letters: $(cat "$dir/err")"

echo "$failed failed"
[ "$failed" -eq 0 ]
