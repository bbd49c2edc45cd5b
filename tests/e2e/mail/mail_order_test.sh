#!/usr/bin/env bash
# mail_order_test.sh TIDEMARK CLOUD: a first sync that the quota makes slow fetches the newest mail first; interrupted, it says
# truly since when everything is there, and the tidemark passes nothing that is missing (M4, M6b, E5.1).
. "$(dirname "$0")/../stage.sh"
unset "${!TIDEMARK_@}"
start_cloud --seed 7 --mailbox "$user=1600" --token "tok=$user"
# Of the server: id and time of every message, newest first.
page=
while :; do
    ask "$api/messages?maxResults=500&includeSpamTrash=true&fields=nextPageToken,messages/id${page:+&pageToken=$page}" >"$dir/page" || fail "listing"
    jq -r '.messages[].id' "$dir/page" >>"$dir/ids"
    page=$(jq -r '.nextPageToken // ""' "$dir/page")
    [ -n "$page" ] || break
done
[ "$(wc -l <"$dir/ids")" -eq 1600 ] || fail "the server lists $(wc -l <"$dir/ids")"
# ids of what is stored, sorted.
stored() { t mail search in:anywhere --json --limit 10000 | jq -r '.messages[].id' | sort; }
at() { ask "$api/messages/$1?format=minimal" | jq -r .internalDate; }

# ---- by itself, the newest first
sign_in
ends 0 mail sync --max 60 --quiet --json
jq -e '.accounts[0].complete_since_unix_ms > 0' "$dir/out" >/dev/null || fail "the end does not say how far back: $(cat "$dir/out")"
stored >"$dir/stored"
[ "$(wc -l <"$dir/stored")" -ge 50 ] && [ "$(wc -l <"$dir/stored")" -le 60 ] || fail "stored: $(wc -l <"$dir/stored")"
head -40 "$dir/ids" | sort >"$dir/newest"
[ -z "$(comm -23 "$dir/newest" "$dir/stored")" ] || fail "not the newest first: $(comm -23 "$dir/newest" "$dir/stored" | wc -l) of 40 are missing"
ends 0 mail status --json
since=$(field complete_since_unix_ms)
[ "$(field watermark_unix_ms)" -eq 0 ] || fail "the tidemark passed what is missing: $(cat "$dir/out")"
# Everything since then is here, and there is something; the message before it tells that it is no later than it must be.
here=0
while read -r id; do
    [ "$(at "$id")" -ge "$since" ] || break
    grep -qx "$id" "$dir/stored" || fail "$id came after $since and is missing"
    here=$((here + 1))
done < <(head -61 "$dir/ids")
[ "$here" -ge 20 ] || fail "complete since $since are only $here messages"
ends 0 mail status
grep -qE '^  newest     everything since 20[0-9-]{8} [0-9:]{8} is stored' "$dir/out" && grep -q '^  tidemark   none yet' "$dir/out" ||
    fail "for people: $(cat "$dir/out")"

# ---- on request the oldest first: the tidemark moves, and nothing is said about the newest
rm -rf "$dir/home"
sign_in
ends 2 mail sync --oldest-first --newest-first
ends 0 mail sync --max 60 --oldest-first --quiet
ends 0 mail status --json
[ "$(field complete_since_unix_ms)" -eq 0 ] && [ "$(field watermark_unix_ms)" -gt 0 ] || fail "oldest first: $(cat "$dir/out")"
stored >"$dir/stored"
tail -30 "$dir/ids" | sort >"$dir/oldest"
[ -z "$(comm -23 "$dir/oldest" "$dir/stored")" ] || fail "not the oldest first"

# ---- either way it ends with everything, and the tidemark says so
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=600000
ends 0 mail sync --newest-first --quiet
ends 0 mail status --json
[ "$(field stored)" -eq 1600 ] && [ "$(field complete_since_unix_ms)" -eq 0 ] && [ "$(jq '.accounts[0].gaps | length' "$dir/out")" -eq 0 ] ||
    fail "the end: $(cat "$dir/out")"
[ "$(field watermark_unix_ms)" -gt "$(at "$(head -1 "$dir/ids")")" ] || fail "the tidemark: $(cat "$dir/out")"

[ "$failed" -eq 0 ] || exit 1
echo "order: fine"
