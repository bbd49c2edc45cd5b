#!/usr/bin/env bash
# mail_export_test.sh TIDEMARK CLOUD: an export overwrites nothing that it did not write, loses nothing of an
# earlier one, has each message once, and one damaged message does not end it (M17).
. "$(dirname "$0")/../stage.sh"
start_cloud --seed 7 --mailbox "$user=40" --token tok-1="$user"
t() { timeout 150 "$tidemark" --home "$dir/home" --set governor.gmail.window_units=0 "$@"; }
sign_in "$user" tok-1
t mail sync --quiet >/dev/null || fail "sync"
messages=$(t mail search in:anywhere --limit 100 --json | jq '.messages | length')
[ "$messages" -eq 40 ] || fail "$messages messages"
id=$(t mail search in:anywhere --limit 1 --json | jq -r '.messages[0].id')

# ---- a file of another program stays
printf 'my own notes\n' >"$dir/notes.mbox"
t mail export "$dir/notes.mbox" >"$dir/out" 2>&1 && fail "a foreign file is replaced: $(cat "$dir/out")"
[ "$(cat "$dir/notes.mbox")" = 'my own notes' ] || fail "a foreign file is gone"
grep -q 'notes.mbox' "$dir/out" && grep -q -- '--replace' "$dir/out" || fail "neither file nor way out: $(cat "$dir/out")"
mkdir "$dir/eml"
printf 'my own notes\n' >"$dir/eml/$id.eml"
t mail export "$dir/eml" >"$dir/out" 2>&1 && fail "a foreign file among others is replaced"
[ "$(cat "$dir/eml/$id.eml")" = 'my own notes' ] || fail "a foreign .eml is gone"
[ "$(find "$dir/eml" -name '*.eml' | wc -l)" -eq 40 ] || fail "the other 39 were not written"
grep -q "$id.eml" "$dir/out" || fail "the file is not named: $(cat "$dir/out")"
t mail export "$dir/eml" --replace >"$dir/out" 2>&1 || fail "--replace: $(cat "$dir/out")"
grep -q 'my own notes' "$dir/eml/$id.eml" && fail "--replace does not replace"

# ---- a narrower query does not shrink an earlier export
t mail export "$dir/all.mbox" >/dev/null || fail "export"
before=$(sha256sum <"$dir/all.mbox")
subject=$(t mail search in:anywhere --limit 1 --json | jq -r '.messages[0].subject')
t mail export "$dir/all.mbox" "subject:\"$subject\"" >"$dir/out" 2>&1 && fail "an export is shrunk: $(cat "$dir/out")"
[ "$(sha256sum <"$dir/all.mbox")" = "$before" ] || fail "the earlier export is gone"
t mail export "$dir/all.mbox" --json >"$dir/out" || fail "the same export again"
[ "$(jq '.there' "$dir/out")" -eq 40 ] || fail "the same export again: $(cat "$dir/out")"

# ---- a message whose flags changed is there once
t mail export "$dir/maildir" --format maildir >/dev/null || fail "maildir"
curl -sSf -X POST -d "{\"user\":\"$user\",\"ids\":[\"$id\"],\"add\":[\"STARRED\",\"UNREAD\"]}" "$origin/_cloud/mail/label" >/dev/null || fail "label"
t mail sync --quiet >/dev/null || fail "sync"
old=$(find "$dir/maildir/cur" -name "$id*")
mv "$old" "${old}R" # a mail program noted an answer
t mail export "$dir/maildir" --format maildir >"$dir/out" || fail "maildir again: $(cat "$dir/out")"
[ "$(find "$dir/maildir" -type f | wc -l)" -eq 40 ] || fail "$(find "$dir/maildir" -type f | wc -l) files for 40 messages"
find "$dir/maildir/cur" -name "$id:2,*" | grep -Eq ':2,[^S]*F[^S]*R?$' || fail "flags: $(find "$dir/maildir/cur" -name "$id*")"
find "$dir/maildir/cur" -name "$id:2,*R*" | grep -q . || fail "the answer is forgotten: $(find "$dir/maildir/cur" -name "$id*")"

# ---- one damaged message does not end an export
damaged=$(t mail search in:anywhere --limit 40 --json | jq -r '.messages[20].id')
for shard in "$dir"/home/archive/*/*.db; do
    sqlite3 "$shard" "UPDATE content SET body = CAST(zeroblob(length(body)) AS BLOB) WHERE id IN (SELECT content FROM message WHERE gmail_id = '$damaged')" || fail "sqlite3"
done
for format in eml maildir mbox; do
    t mail export "$dir/damaged-$format" --format "$format" >"$dir/out" 2>&1
    code=$?
    [ "$code" -eq 3 ] || fail "$format: a damaged message ends with $code: $(cat "$dir/out")"
    grep -q "$damaged" "$dir/out" || fail "$format: it is not named: $(cat "$dir/out")"
    grep -q '39 messages written' "$dir/out" || fail "$format: $(cat "$dir/out")"
done

echo "$failed failed"
[ "$failed" -eq 0 ]
