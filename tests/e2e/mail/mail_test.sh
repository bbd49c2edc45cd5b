#!/usr/bin/env bash
# mail_test.sh TIDEMARK CLOUD: a mailbox is mirrored from the local cloud, the
# program killed in the middle, and the archive compared byte for byte with what
# the cloud holds (M1-M10, M17).
. "$(dirname "$0")/../stage.sh"
messages=40
mkdir "$dir/corpus"
printf 'no header at all, \001 and \000 and \377\r\n' >"$dir/corpus/1.eml"
printf 'Subject: bare\rcarriage\r\n\r\nbody without an end' >"$dir/corpus/2.eml"
printf 'From: x@example.org\nMessage-ID: <lf@example.org>\nSubject: line feeds only\n\nHarbour\n' >"$dir/corpus/3.eml"

serve --seed 5 --quota 2026 \
    --mailbox "$user=$messages" --corpus "$user=$dir/corpus" --token tok-5f3a9c71="$user"
ask() { own_minute -H 'Authorization: Bearer tok-5f3a9c71' "$@"; }
t() { "$tidemark" --home "$dir/home" "$@"; }
total=$((messages + 3))

# ---- an account, and what goes wrong with one
t mail sync --json >"$dir/out" 2>/dev/null
[ $? -eq 1 ] || fail "a sync without an account must fail"
t account add imap "$user" 2>"$dir/err" && fail "there is no provider imap"
t account add gmail nobody 2>"$dir/err" && fail "an account without an address"
t account add gmail "$user" --bearer tok-5f3a9c71 2>"$dir/err" && fail "a bearer needs an endpoint"
t account add gmail "$user" --endpoint "$origin" --bearer tok-5f3a9c71 >"$dir/out" || fail "account add"
grep -q tok-5f3a9c71 "$dir/home/state.db" && fail "the token is in the ledger"
[ -z "$(find "$dir/home/secrets" -type f ! -perm 600)" ] || fail "a secret others can read"

# ---- sync, killed in the middle, and again
"$tidemark" --home "$dir/home" mail sync --quiet >"$dir/out" 2>&1 &
sync=$!
for _ in $(seq 300); do
    stored=$(curl -sS "$origin/_cloud/stats" | jq ".users.\"$user\".fetched.messages // 0")
    [ "${stored:-0}" -ge 8 ] && break
    kill -0 "$sync" 2>/dev/null || break
    read -rt 0.1 <> <(:) || true
done
kill -9 "$sync"
wait "$sync" 2>/dev/null
t mail sync --quiet --json >"$dir/out" || fail "the sync after the kill: $?"
[ "$(jq '.accounts[0].stored' "$dir/out")" -eq "$total" ] || fail "not all are stored: $(cat "$dir/out")"
[ "$(jq '.accounts[0].cycles_open' "$dir/out")" -eq 0 ] || fail "work is left"
stats=$(curl -sS "$origin/_cloud/stats")
[ "$(jq ".users.\"$user\".violations" <<<"$stats")" -eq 0 ] || fail "violations: $stats"
again=$(jq ".users.\"$user\".fetched | .total - .messages" <<<"$stats")
[ "$again" -le 20 ] || fail "$again messages were fetched twice after one kill"

# ---- nothing new costs next to nothing
before=$(jq ".users.\"$user\".calls" <<<"$stats")
t mail sync --quiet >"$dir/out" || fail "a sync without news"
after=$(curl -sS "$origin/_cloud/stats" | jq ".users.\"$user\".calls")
[ $((after - before)) -le 3 ] || fail "$((after - before)) calls for nothing new"

# ---- byte for byte
t mail export "$dir/eml" >"$dir/out" || fail "export"
[ "$(find "$dir/eml" -name '*.eml' | wc -l)" -eq "$total" ] || fail "exported: $(cat "$dir/out")"
for file in "$dir"/eml/*.eml; do
    id=$(basename "$file" .eml)
    ask "$api/messages/$id?format=raw" | jq -r .raw | tr -- '-_' '+/' | base64 -d >"$dir/raw"
    cmp -s "$dir/raw" "$file" || fail "$id differs after export"
    t mail show "$id" --raw >"$dir/shown" || fail "show --raw $id"
    cmp -s "$dir/raw" "$dir/shown" || fail "$id differs in show --raw"
done
t mail verify >"$dir/out" || fail "verify: $(cat "$dir/out")"
grep -q "$total messages read back, 0 damaged" "$dir/out" || fail "verify says $(cat "$dir/out")"

# ---- an alert is shown, but never among a message's bytes
sqlite3 "$dir/home/state.db" "INSERT INTO alert VALUES('disk', 0, 2, 1, NULL, 'planted')"
t mail show "$id" --raw >"$dir/shown" 2>"$dir/err" || fail "show --raw beside an alert"
cmp -s "$dir/raw" "$dir/shown" || fail "an alert spoils a message: $(head -c 100 "$dir/shown")"
grep -q planted "$dir/err" || fail "the alert is not shown: $(cat "$dir/err")"
sqlite3 "$dir/home/state.db" "DELETE FROM alert"

# ---- finding
[ "$(t mail search rfc822msgid:lf@example.org --json | jq '.messages | length')" -eq 1 ] || fail "search by Message-ID"
[ "$(t mail search harbour subject:feeds --json | jq '.messages | length')" -eq 1 ] || fail "search by words"
t mail search frmo:ada 2>"$dir/err" && fail "an operator that does not exist"
grep -q from "$dir/err" || fail "no hint: $(cat "$dir/err")"

# ---- news: a message, a label, a deletion
first=$(t mail search in:anywhere --limit 1 --json | jq -r '.messages[0].id')
ask -X POST -H 'Content-Type: application/json' -d '{"addLabelIds":["STARRED"]}' "$api/messages/$first/modify" >/dev/null
printf 'From: b@example.org\r\nTo: ada@example.com\r\nSubject: late arrival\r\n\r\nnew\r\n' |
    curl -sSf -X POST -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$user" >/dev/null ||
    fail "deliver"
t mail sync --quiet >"$dir/out" || fail "a sync with news"
[ "$(t mail search subject:late --json | jq '.messages | length')" -eq 1 ] || fail "the late arrival is not found"
[ "$(t mail search is:starred --json | jq "[.messages[].id] | index(\"$first\")")" != null ] || fail "the star is not there"

# ---- damage is named
shard=$(ls -S "$dir/home/archive/$user"/*.db | head -n 1)
sqlite3 "$shard" "UPDATE content SET hash = zeroblob(32) WHERE rowid = (SELECT min(rowid) FROM content)"
t mail verify >"$dir/out"
[ $? -eq 3 ] || fail "damage must end with 3: $(cat "$dir/out")"
grep -q DAMAGED "$dir/out" || fail "damage is not named"

# ---- a token that is refused
curl -sSf -X POST -H 'Content-Type: application/json' -d "{\"user\":\"$user\"}" "$origin/_cloud/token/revoke" >/dev/null
timeout 150 "$tidemark" --home "$dir/home" mail sync --quiet >"$dir/out" 2>"$dir/err"
code=$?
[ $code -eq 4 ] || fail "a refused token ends with $code: $(cat "$dir/err")"
grep -q 'account add' "$dir/err" || fail "no command that repairs it: $(cat "$dir/err")"

echo "$failed failed"
[ "$failed" -eq 0 ]
