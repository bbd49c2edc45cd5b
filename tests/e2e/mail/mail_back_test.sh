#!/usr/bin/env bash
# mail_back_test.sh TIDEMARK CLOUD: a message that comes back is no longer gone, is found once,
# and is never inserted a second time (M21).
. "$(dirname "$0")/../stage.sh"
messages=30

start_cloud --seed 8 --mailbox "$user=$messages,size=3000" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 # no pacing: the cloud has no quota here
there() { ask "$api/messages?includeSpamTrash=true&maxResults=500" | jq '.messages | length'; }
gone() { for db in "$archive"/*.db; do sqlite3 "$db" 'SELECT gmail_id FROM message WHERE gone_ms IS NOT NULL'; done; }
stored() { for db in "$archive"/*.db; do sqlite3 "$db" 'SELECT gmail_id FROM message'; done; }
sync() { t mail sync --quiet "$@" >"$dir/out" 2>&1; }
# Some messages are denied, in lists, histories and gets, until the archive calls them gone.
hide() {
    curl -sSf "$origin/_cloud/faults" -d '{"rate":0.2,"fault":"hidden"}' >/dev/null
    curl -sSf "$origin/_cloud/history/expire" -d "{\"user\":\"$user\"}" >/dev/null
    for _ in 1 2 3; do sync --force; done
    [ "$(gone | wc -l)" -gt 0 ] || fail "nothing is gone: $(cat "$dir/out")"
}
unhide() { curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null; }

sign_in
sync || fail "sync: $(cat "$dir/out")"

# ---- they return, and a listing names them
hide
unhide
sync --force || fail "sync: $? $(cat "$dir/out")"
[ "$(gone | wc -l)" -eq 0 ] || fail "a listing names them, and they are still gone: $(gone)"
[ "$(stored | sort | uniq -d | wc -l)" -eq 0 ] && [ "$(stored | wc -l)" -eq "$messages" ] || fail "$(stored | wc -l) are stored"

# ---- they return, and history reports only a change of labels
hide
unhide
sync || fail "sync: $? $(cat "$dir/out")" # adopts where the history stands
id=$(gone | head -1)
[ -n "$id" ] || id=$(stored | head -1)
curl -sSf "$origin/_cloud/mail/label" -d "{\"user\":\"$user\",\"ids\":[\"$id\"],\"add\":[\"STARRED\"]}" >/dev/null
sync || fail "sync: $? $(cat "$dir/out")"
gone | grep -q "$id" && fail "its labels change, and it is still gone"
[ "$(t mail search is:starred in:anywhere --limit 100 --json | jq "[.messages[] | select(.id == \"$id\")] | length")" -eq 1 ] ||
    fail "$id is not found once"

# ---- they return, and a restore that does not know it inserts nothing
hide
unhide
n=$(gone | wc -l)
[ "$n" -gt 0 ] || fail "nothing is gone"
t mail restore in:anywhere --yes --json >"$dir/out" 2>"$dir/err" || fail "restore: $? $(cat "$dir/out" "$dir/err")"
[ "$(there)" -eq "$messages" ] || fail "there are $(there) messages in Gmail now, not $messages: $(cat "$dir/out")"
[ "$(gone | wc -l)" -eq 0 ] || fail "the restore saw them and they are still gone"
sync || fail "sync: $? $(cat "$dir/out")"
[ "$(stored | wc -l)" -eq "$messages" ] || fail "$(stored | wc -l) are stored after a restore"

# ---- what really is gone is inserted, once
id=$(stored | head -1)
curl -sSf "$origin/_cloud/mail/delete" -d "{\"user\":\"$user\",\"ids\":[\"$id\"]}" >/dev/null
sync || fail "sync: $? $(cat "$dir/out")"
[ "$(there)" -eq $((messages - 1)) ] || fail "not deleted"
for _ in 1 2; do
    t mail restore in:anywhere --yes --json >"$dir/out" 2>"$dir/err" || fail "restore: $? $(cat "$dir/out" "$dir/err")"
    [ "$(there)" -eq "$messages" ] || fail "a restore leaves $(there) messages"
done

echo "$failed failed"
[ "$failed" -eq 0 ]
