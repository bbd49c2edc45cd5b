#!/usr/bin/env bash
# mail_copy_test.sh TIDEMARK CLOUD: what is known about a copy is kept with it (M19a).  A message
# that is shorter than the server says is stored, counted, fetched again, and never a reason to
# remove it from Gmail.
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

# ---- and now they may go
t mail archive in:anywhere --mode delete --yes --json >"$dir/out" 2>"$dir/err" || fail "archive: $(cat "$dir/out" "$dir/err")"
[ "$(jq -r .removed "$dir/out")" -gt 10 ] || fail "exact copies are refused: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
