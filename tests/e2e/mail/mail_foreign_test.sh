#!/usr/bin/env bash
# mail_foreign_test.sh TIDEMARK CLOUD: a shard that the ledger cannot vouch for (an older copy
# without a proof, a file of another time) never lets the archiver act on its labels (M4, M13).
. "$(dirname "$0")/../stage.sh"
messages=60

start_cloud --seed 8 \
    --mailbox "$user=$messages,size=3000" --token tok="$user" --mailbox bob@example.com=4 --token tok-bob=bob@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 # no pacing: the cloud has no quota here
on_server() { ask "$api/messages/$1?format=minimal" >/dev/null 2>&1; }
sync() { t mail sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"; }
label() { curl -sSf "$origin/_cloud/mail/label" -d "{\"user\":\"$user\",\"ids\":[\"$1\"],\"add\":[\"STARRED\"]}" >/dev/null; }
# The newest of that year without a star is to be deleted; the starred one must stay.
spares() { # what
    t mail archive "in:anywhere -is:starred before:$((${year%.db} + 1))/01/01" --limit 1 --mode delete --yes --json >"$dir/out" 2>"$dir/err"
    on_server "$victim" || fail "$1: $victim was deleted by the labels of an older time"
}

sign_in
sync
sync # adopted, and noted as proven
for year in $(ls "$archive" | grep 'db$'); do # with two messages at least
    [ "$(sqlite3 "$archive/$year" 'SELECT count(*) FROM message')" -lt 3 ] || break
done
victim=$(sqlite3 "$archive/$year" "SELECT gmail_id FROM message WHERE id NOT IN (SELECT message FROM message_label
    JOIN label ON label.id = message_label.label WHERE label.label IN ('DRAFT', 'STARRED', 'TRASH', 'SPAM')) ORDER BY id DESC LIMIT 1")
cp "$archive/$year" "$dir/old.db"
label "$victim"
deleted=$(sqlite3 "$archive/$year" "SELECT gmail_id FROM message WHERE gmail_id != '$victim' ORDER BY id LIMIT 1")
curl -sSf "$origin/_cloud/mail/delete" -d "{\"user\":\"$user\",\"ids\":[\"$deleted\"]}" >/dev/null || fail "delete"
is_gone() { [ "$(sqlite3 "$archive/$year" "SELECT count(*) FROM message WHERE gmail_id = '$deleted' AND gone_ms IS NOT NULL")" -eq 1 ]; }
sync
sync
is_gone || fail "$deleted is not gone"
[ "$(sqlite3 "$archive/$year" "SELECT count(*) FROM message_label JOIN label ON label.id = message_label.label
    JOIN message ON message.id = message_label.message WHERE gmail_id = '$victim' AND label.label = 'STARRED'")" -eq 1 ] ||
    fail "the star is not known"

# ---- an older copy, and no proof of its time is left
state "DELETE FROM mail_proof"
cp "$archive/$year" "$dir/new.db"
rm -f "$archive/$year"*
cp "$dir/old.db" "$archive/$year"
spares "before a sync"
sync
spares "an older copy"
is_gone || fail "an older copy: nothing found out that $deleted is gone"
[ "$(state "SELECT count(*) FROM mail_gap")" -eq 1 ] || fail "no gap is remembered"

# ---- a file that the ledger does not know, made before the last run
state "DELETE FROM mail_gap; DELETE FROM mail_shard WHERE name = '${year%.db}'"
spares "a file from elsewhere"
[ "$(state "SELECT count(*) FROM mail_gap")" -eq 1 ] || fail "no gap is remembered for a file from elsewhere"

# ---- and the archiver still works for what it can ask about
t mail archive "in:anywhere -is:starred before:$((${year%.db} + 4))/01/01" --limit 30 --mode delete --yes --json >"$dir/out" 2>"$dir/err"
[ "$(jq -r .removed "$dir/out")" -gt 0 ] || fail "nothing was removed at all: $(cat "$dir/out" "$dir/err")"
on_server "$victim" || fail "$victim was deleted at last"

# ---- a manifest that is being planned is left alone by dry runs and runs of other accounts
t account add gmail bob@example.com --endpoint "$origin" --bearer tok-bob >/dev/null || fail "add bob"
sync
ours=$(state "SELECT account FROM mail_manifest LIMIT 1")
state "INSERT INTO mail_manifest(account, mode, query, watermark_ms, made_ms, planned_ms, ended_ms) VALUES ($ours, 1, 'half planned', 0, 1, 0, 0)" || fail "sqlite3"
planning() { state "SELECT count(*) FROM mail_manifest WHERE query = 'half planned'"; }
ends 0 mail archive in:anywhere --account bob@example.com --limit 1 --dry-run
[ "$(planning)" -eq 1 ] || fail "a dry run of bob's forgot what is planned for $user"
ends 0 mail archive in:anywhere --account bob@example.com --limit 1 --mode trash --yes
[ "$(planning)" -eq 1 ] || fail "a run of bob's forgot what is planned for $user"
# A process that has opened the archive of an account is the only one that plans for it.
t mail archive in:anywhere --account "$user" --limit 1 --mode trash --yes >"$dir/out" 2>&1
[ "$(planning)" -eq 0 ] || fail "its own run keeps what a crash left of planning: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
