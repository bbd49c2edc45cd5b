#!/usr/bin/env bash
# mail_copy_test.sh TIDEMARK CLOUD: what is known about a copy is kept with it (M19a).  A message
# that is shorter than the server says is stored, counted, fetched again, and never a reason to
# remove it from Gmail; what Gmail does not have is not asked of it.
. "$(dirname "$0")/../stage.sh"
messages=20

start_cloud --seed 8 --mailbox "$user=$messages,size=3000" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 # no pacing: the cloud has no quota here
there() { ask "$api/messages?includeSpamTrash=true&maxResults=500" | jq '.messages | length'; }
copies() { t mail status --json | jq -r ".accounts[0].copies.$1"; }
fault() { curl -sSf "$origin/_cloud/faults" -d "{\"method\":\"gmail.users.messages.get\",\"rate\":1,\"fault\":\"$1\"}" >/dev/null; }
honest() { curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null; }
sql() { for db in "$archive"/*.db; do sqlite3 "$db" "$1"; done | paste -sd+ | bc; }

sign_in

# ---- the server gives half of every message
fault raw-half
t mail sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"
grep -q "$messages shorter than" "$dir/out" || fail "sync says nothing: $(cat "$dir/out")"
[ "$(copies short)" = "$messages" ] || fail "status counts $(copies short) short copies"
[ "$(copies exact)" = 0 ] || fail "status counts $(copies exact) exact copies"
t mail status | grep -q "$messages shorter than" || fail "status does not say it"
t mail verify >"$dir/out" || true
grep -q "$messages shorter than" "$dir/out" || fail "verify says nothing: $(cat "$dir/out")"
for mode in inbox trash delete; do
    t mail archive in:anywhere --mode $mode --yes --json >"$dir/out" 2>"$dir/err"
    [ "$(jq -r '.removed // 0' "$dir/out")" = 0 ] || fail "$mode removed $(jq .removed "$dir/out") on halves"
done
[ "$(there)" -eq "$messages" ] || fail "$(there) of $messages are left in Gmail"
t mail archive in:anywhere --mode delete --dry-run --json >"$dir/out" 2>&1
grep -q 'shorter than Gmail says' "$dir/out" || fail "the dry run does not say why: $(cat "$dir/out")"

# ---- it tells the truth again: one command heals
honest
t mail heal --quiet >"$dir/out" 2>&1 || fail "heal: $(cat "$dir/out")"
[ "$(copies short)" = 0 ] && [ "$(copies exact)" = "$messages" ] || fail "after an honest heal: $(t mail status)"
same() {
    rm -rf "$dir/eml"
    t mail export "$dir/eml" in:anywhere >/dev/null || fail "$1: export"
    for file in "$dir"/eml/*.eml; do
        ask "$api/messages/$(basename "$file" .eml)?format=raw" | jq -r .raw | tr -- '-_' '+/' | base64 -d |
            cmp -s - "$file" || fail "$1: $(basename "$file") differs"
    done
    [ "$(find "$dir/eml" -name '*.eml' | wc -l)" -eq "$messages" ] || fail "$1: not all were exported"
}
same "half"
t mail verify >"$dir/out" || fail "verify: $(cat "$dir/out")"

# ---- an empty one is fetched again by the next sync, and never takes the place of a whole one
fault raw-empty
printf 'From: b@example.org\r\nSubject: new\r\n\r\nnew text of some length\r\n' >"$dir/new.eml"
id=$(curl -sSf -X POST -H 'Content-Type: message/rfc822' --data-binary @"$dir/new.eml" \
    "$origin/_cloud/mail?user=$user" | jq -r .id)
t mail sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"
[ "$(copies short)" = 1 ] && [ "$(copies exact)" = "$messages" ] || fail "an empty one: $(t mail status)"
[ "$(sql 'SELECT count(*) FROM message WHERE bytes = 0')" -eq 1 ] || fail "the empty one is not stored"
honest
t mail sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"
t mail show --raw "$id" | cmp -s - "$dir/new.eml" || fail "the empty one is not healed"
[ "$(copies short)" = 0 ] || fail "it still counts: $(t mail status)"
[ "$(t mail search 'text of some length' in:anywhere --json | jq -r '.messages[0].id')" = "$id" ] ||
    fail "what came later is not found"
messages=$((messages + 1))

# ---- a damaged message: verify names it and the command, the command heals it byte for byte
damaged() { # what sql-per-shard
    for db in "$archive"/*.db; do sqlite3 "$db" "$2"; done
    t mail verify >"$dir/out"
    [ $? -eq 3 ] || fail "$1: verify does not end with 3"
    grep -q 'DAMAGED' "$dir/out" && grep -q 'tidemark mail heal' "$dir/out" || fail "$1: verify says $(cat "$dir/out")"
    t mail heal --quiet >"$dir/out" 2>&1 || fail "$1: heal: $(cat "$dir/out")"
    t mail verify >"$dir/out" || fail "$1: not whole after healing: $(cat "$dir/out")"
    same "$1"
}
damaged "bodies" 'UPDATE content SET body = zeroblob(length(body))'
damaged "one shorter" 'UPDATE content SET body = substr(body, 1, length(body) - 5)
    WHERE id IN (SELECT content FROM message ORDER BY id LIMIT 1)'
damaged "pieces" 'UPDATE piece SET body = zeroblob(length(body)); UPDATE content SET bytes = bytes + 1
    WHERE id IN (SELECT content FROM message ORDER BY id DESC LIMIT 1)'
# A fetch that has to be tried again belongs to the run: it ends when the message is healed.
curl -sSf "$origin/_cloud/faults" -d '{"method":"gmail.users.messages.get","count":1,"fault":"503"}' >/dev/null || fail "fault"
damaged "tried again" 'UPDATE content SET body = substr(body, 1, length(body) - 5)
    WHERE id IN (SELECT content FROM message ORDER BY id LIMIT 1)'
# A check that failed is made again by the next sync.
sqlite3 "$dir/home/state.db" "UPDATE job SET state = 3 WHERE id = (SELECT max(j.id) FROM job j
    JOIN kind k ON k.id = j.kind WHERE k.name = 'mail.heal')" || fail "sqlite3"
failed_jobs() { t mail status --json | jq '.accounts[0].failed_jobs'; }
[ "$(failed_jobs)" -eq 1 ] || fail "$(failed_jobs) checks have failed: the test shows nothing"
t mail sync --quiet >"$dir/out" 2>&1 || fail "sync after a failed check: $? $(cat "$dir/out")"
[ "$(failed_jobs)" -eq 0 ] || fail "a failed check stays failed"
# What Gmail does not give back stays known as damaged, and is no proof.
for db in "$archive"/*.db; do sqlite3 "$db" "UPDATE content SET body = zeroblob(length(body)) WHERE id IN
    (SELECT content FROM message WHERE gmail_id = '$id')"; done
curl -sSf "$origin/_cloud/faults" -d "{\"method\":\"gmail.users.messages.get\",\"id\":\"$id\",\"rate\":1,\"fault\":\"404\"}" >/dev/null
t mail show "$id" >"$dir/out" 2>&1 && fail "a damaged message is shown"
grep -q 'tidemark mail heal' "$dir/out" || fail "show names no way out: $(cat "$dir/out")"
t mail heal --quiet >/dev/null 2>&1
[ "$(copies damaged)" = 1 ] || fail "damaged: $(t mail status)"
t mail archive in:anywhere --mode delete --dry-run --json >"$dir/out" 2>&1
grep -q 'damaged on disk' "$dir/out" || fail "a damaged copy is no reason to refuse: $(cat "$dir/out")"
honest
t mail heal --quiet >"$dir/out" 2>&1
[ "$(copies damaged)" = 0 ] || fail "still damaged: $(cat "$dir/out") $(t mail status)"
same "at last"

# ---- damaged messages that Gmail does not have: it is not asked for them again and again
harm() { for db in "$archive"/*.db; do sqlite3 "$db" "UPDATE content SET body = zeroblob(length(body)) WHERE id IN
    (SELECT content FROM message WHERE gmail_id LIKE '$1')"; done; }
calls() { # of a sync
    curl -sSf -X POST "$origin/_cloud/stats/reset" >/dev/null
    t mail sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"
    curl -sSf "$origin/_cloud/stats" | jq ".users.\"$user\".calls"
}
recorded() { state 'SELECT count(*) FROM bad'; }
# From a file, under an id of ours: the file makes it whole, and takes no label.
printf 'Date: Mon, 5 Jan 2026 10:00:00 +0000\r\nSubject: from a file\r\n\r\nof a file\r\n' >"$dir/file.eml"
t mail import "$dir/file.eml" --account "$user" --label Kept >"$dir/out" || fail "import: $(cat "$dir/out")"
t mail sync --quiet >/dev/null 2>&1 || fail "sync after an import"
harm 'import-%'
t mail verify >"$dir/out" && fail "a damaged import is whole"
grep -q '1 damaged message came from files' "$dir/out" || fail "verify does not say it: $(cat "$dir/out")"
grep -q 'to fetch damaged messages' "$dir/out" && fail "verify would fetch it: $(cat "$dir/out")"
t mail heal --quiet >"$dir/out" 2>&1
[ "$(copies damaged)" = 1 ] && [ "$(t mail status --json | jq '.accounts[0].imported_damaged')" = 1 ] || fail "an import: $(t mail status)"
t mail status | grep -q 'mail import. with the same files' || fail "status does not say it: $(t mail status)"
some=$(calls)
[ "$some" -le 3 ] && [ "$(recorded)" -eq 0 ] || fail "Gmail was asked for an import: $some calls, $(recorded) recorded"
# An earlier version asked, and recorded it as owed: that is forgotten without a call.
own=$(for db in "$archive"/*.db; do sqlite3 "$db" "SELECT gmail_id FROM message WHERE gmail_id LIKE 'import-%'"; done)
state "INSERT INTO bad (account, kind, item, state, first_seen, last_tried, retries, reason) SELECT a.id, k.id, '$own', 0, 1, 1, 0, 'x'
    FROM account a, kind k WHERE a.name = '$user' AND k.name = 'mail.fetch'"
[ "$(recorded)" -eq 1 ] || fail "nothing is recorded: the test shows nothing"
t mail bad retry --all >/dev/null 2>&1 || t bad retry --all >/dev/null || fail "bad retry"
some=$(calls)
[ "$some" -le 3 ] && [ "$(recorded)" -eq 0 ] || fail "an earlier record: $some calls, $(recorded) recorded"
t mail import "$dir/file.eml" --account "$user" --json >"$dir/out" || fail "import again: $(cat "$dir/out")"
[ "$(jq .stored "$dir/out")" -eq 1 ] || fail "its file does not heal it: $(cat "$dir/out")"
t mail show --raw "$own" | cmp -s - "$dir/file.eml" || fail "it is not whole"
[ "$(copies damaged)" = 0 ] || fail "it still counts: $(t mail status)"
t mail search label:Kept in:anywhere --json | grep -q "$own" || fail "its label is lost"
t mail verify >"$dir/out" || fail "verify: $(cat "$dir/out")"
# Of a Takeout, under its Gmail id: deleted before the Takeout was imported, and no listing says so.
printf 'From %d@xxx Mon Jan 05 10:00:00 +0000 2026\nX-GM-THRID: %d\nX-Gmail-Labels: Inbox\nSubject: deleted since\n\nx\n' \
    0x18c0ffee00000001 0x18c0ffee00000001 >"$dir/takeout.mbox"
t mail import "$dir/takeout.mbox" --account "$user" --json >"$dir/out" || fail "Takeout: $(cat "$dir/out")"
[ "$(jq .held "$dir/out")" -eq 1 ] || fail "it is not held: $(cat "$dir/out")"
harm 18c0ffee00000001
t mail heal --quiet >"$dir/out" 2>&1
[ "$(sql "SELECT count(*) FROM message WHERE gmail_id = '18c0ffee00000001' AND gone_ms IS NOT NULL")" -eq 1 ] ||
    fail "it is not known to be gone: $(t mail status)"
t mail heal --quiet >"$dir/out" 2>&1
some=$(calls)
[ "$some" -le 3 ] && [ "$(recorded)" -eq 0 ] || fail "Gmail was asked for what is gone: $some calls, $(recorded) recorded"
t mail import "$dir/takeout.mbox" --account "$user" >"$dir/out" || fail "Takeout again: $(cat "$dir/out")"
t mail verify >"$dir/out" || fail "the Takeout does not heal it: $(cat "$dir/out")"

# ---- and now they may go
t mail archive in:anywhere --mode delete --yes --json >"$dir/out" 2>"$dir/err" || fail "archive: $(cat "$dir/out" "$dir/err")"
[ "$(jq -r .removed "$dir/out")" -gt 10 ] || fail "exact copies are refused: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
