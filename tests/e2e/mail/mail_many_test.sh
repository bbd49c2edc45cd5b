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
ends 0 mail restore --manifest 1 --yes
ends 0 mail archive --account "$user" --mode trash --no-sync --dry-run --json from:@example.com.au
[ "$(jq .messages "$dir/out")" -eq 1 ] || fail "a domain: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
