#!/usr/bin/env bash
# mail_page_test.sh TIDEMARK CLOUD: a shard that opens and has damaged pages inside (M19).  `mail
# heal` names it, sets it aside, copies out what can be read and fetches the rest; what exists
# nowhere else is either copied or named by `mail lost`.
. "$(dirname "$0")/../stage.sh"

serve --seed 8 --quota off --clock 1794700000000 --mailbox "$user=3000,size=1000" --token tok="$user"
t() { timeout 150 "$tidemark" --home "$dir/home" --set governor.gmail.window_units=0 "$@"; }
db=$archive/2026.db
sql() { sqlite3 "$db" "$1"; }
export_to() {
    rm -rf "$1"
    t mail export "$1" in:anywhere >/dev/null || fail "export to $1"
}
# A leaf page in the middle of a table is overwritten, all of it.
spoil() { # table
    local pages page bytes
    sql 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
    pages=$(sql "SELECT pageno FROM dbstat WHERE name = '$1' AND pagetype = 'leaf' ORDER BY path")
    page=$(sed -n 2p <<<"$pages")
    [ "$(wc -l <<<"$pages")" -ge 3 ] || fail "$1 has too few pages: $pages"
    bytes=$(sql 'PRAGMA page_size')
    head -c "$bytes" /dev/zero | tr '\0' '\245' |
        dd of="$db" bs="$bytes" seek=$((page - 1)) conv=notrunc status=none
}

sign_in
t mail sync --quiet --since 2026-01-01 >/dev/null || fail "sync"
# Most of it exists nowhere else from now on.
t mail archive in:anywhere before:2026-09-01 --mode delete --yes --json >"$dir/out" 2>"$dir/err" ||
    fail "archive: $(cat "$dir/out" "$dir/err")"
t mail sync --quiet --since 2026-01-01 >/dev/null || fail "sync after the archiver"
all=$(sql 'SELECT count(*) FROM message')
only=$(sql 'SELECT count(*) FROM message WHERE gone_ms IS NOT NULL')
{ [ "$only" -gt 100 ] && [ "$((all - only))" -gt 30 ]; } || fail "$only of $all are only copies"
export_to "$dir/before"
sqlite3 "$db" 'SELECT m.gmail_id, l.label FROM message_label ml JOIN message m ON m.id = ml.message
    JOIN label l ON l.id = ml.label ORDER BY 1, 2' >"$dir/labels"
old=$(sql 'SELECT id FROM shard')

spoil message
spoil content
t mail verify >"$dir/out" 2>&1
[ $? -eq 3 ] && grep -q '2026' "$dir/out" || fail "verify does not name the shard: $(cat "$dir/out")"
t mail heal --quiet >"$dir/out" 2>&1
rc=$?
grep -q '2026.db' "$dir/out" || fail "heal does not name the shard: $(cat "$dir/out")"
grep -q 'damaged-' "$dir/out" || fail "heal does not say where the damaged file is: $(cat "$dir/out")"
aside=$(echo "$archive"/damaged-*/2026.db)
[ -f "$aside" ] || fail "the damaged file was not kept: $(ls "$archive")"
[ "$(sql 'SELECT id FROM shard')" != "$old" ] || fail "the shard is the damaged one"
[ "$(sql 'PRAGMA integrity_check')" = ok ] || fail "the new shard: $(sql 'PRAGMA integrity_check')"

# Every message is there with the bytes it had, or it is named as lost.
healed=$(cat "$dir/out")
export_to "$dir/after"
t mail lost --json >"$dir/lost" 2>&1
lost=$(jq -r '.accounts[0].lost.messages[].id' "$dir/lost" | sort)
for file in "$dir"/before/*.eml; do
    id=$(basename "$file" .eml)
    [ -f "$dir/after/$id.eml" ] || echo "$id"
done | sort >"$dir/missing"
diff <(printf '%s' "$lost${lost:+$'\n'}") "$dir/missing" >"$dir/diff" ||
    fail "missing and lost are not the same: $(head -5 "$dir/diff")"
missing=$(wc -l <"$dir/missing")
[ "$missing" -gt 0 ] || fail "the damage struck no message that exists nowhere else"
[ $((only - missing)) -gt 100 ] || fail "$missing of $only only copies are lost: readable ones were not copied"
for file in "$dir"/after/*.eml; do
    cmp -s "$file" "$dir/before/$(basename "$file")" || fail "$(basename "$file") differs"
done
[ "$(sql 'SELECT count(*) FROM message')" -eq $((all - missing)) ] || fail "some that Gmail has were not fetched"
[ "$rc" -eq 3 ] || fail "heal ended with $rc, with mail lost: $healed"
# The cloud agrees: what was fetched again is what it has.
curl -sSf -H 'Authorization: Bearer tok' "$origin/gmail/v1/users/me/messages?includeSpamTrash=true&maxResults=500&q=after:1767225600" |
    jq -r '.messages[].id' | sort >"$dir/there"
[ "$(wc -l <"$dir/there")" -eq $((all - only)) ] || fail "the cloud has $(wc -l <"$dir/there")"
while read -r id; do
    printf 'url = "%s/gmail/v1/users/me/messages/%s?format=raw"\noutput = "%s"\n' "$origin" "$id" "$dir/$id.json"
done <"$dir/there" >"$dir/urls"
curl -sSf -H 'Authorization: Bearer tok' -K "$dir/urls" || fail "the cloud does not answer"
while read -r id; do
    jq -r .raw "$dir/$id.json" | tr -- '-_' '+/' | base64 -d | cmp -s - "$dir/after/$id.eml" ||
        fail "$id is not what the cloud has"
done <"$dir/there"
# Labels, what is gone, and a second heal that finds nothing to do.
sqlite3 "$db" 'SELECT m.gmail_id, l.label FROM message_label ml JOIN message m ON m.id = ml.message
    JOIN label l ON l.id = ml.label ORDER BY 1, 2' >"$dir/labels_after"
grep -v -F -f "$dir/missing" "$dir/labels" | diff - "$dir/labels_after" >"$dir/diff" ||
    fail "labels differ: $(head -5 "$dir/diff")"
[ "$(sql 'SELECT count(*) FROM message WHERE gone_ms IS NOT NULL')" -eq $((only - missing)) ] ||
    fail "what is gone from Gmail is not marked"
t mail lost accept >/dev/null 2>&1 || fail "accept"
t mail heal --quiet >"$dir/out" 2>&1 || fail "a second heal: $(cat "$dir/out")"
t mail verify >"$dir/out" 2>&1 || fail "verify: $(cat "$dir/out")"
[ "$(find "$archive" -name 'damaged-*' | wc -l)" -eq 1 ] || fail "the second heal set something aside"

# A heal that died after the file was moved: the next one copies what it had not.
rm "$db"* "$archive"/damaged-*/copied
t mail heal --quiet >"$dir/out" 2>&1 || fail "a heal after one that died: $(cat "$dir/out")"
[ "$(sql 'SELECT count(*) FROM message WHERE gone_ms IS NOT NULL')" -eq $((only - missing)) ] ||
    fail "only copies were not copied again: $(cat "$dir/out")"
[ "$(sql 'SELECT count(*) FROM message')" -eq $((all - missing)) ] || fail "not all is back: $(cat "$dir/out")"
t mail verify >"$dir/out" 2>&1 || fail "verify, again: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
