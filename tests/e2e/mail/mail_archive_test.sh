#!/usr/bin/env bash
# mail_archive_test.sh TIDEMARK CLOUD: mail is taken out of the local cloud in each mode,
# with everything planted that must be refused, and with the program killed on the way.
# What was there at the beginning is on the server or in the archive, always (M11-M15a).
. "$(dirname "$0")/../stage.sh"
messages=80

serve --seed 7 --quota off --auto-consent --mailbox "$user=$messages" --token tok="$user"
post() { curl -sSf -X POST -H 'Content-Type: application/json' -d "$2" "$origin/_cloud/$1" >/dev/null; }
# The cloud has no quota here, and so we need none of our own.
fast=(--set governor.gmail.window_units=0)
t() { timeout 150 "$tidemark" --home "$dir/home" "${fast[@]}" "$@"; }
labels() { ask "$api/messages/$1?format=minimal" | jq -r '.labelIds[]?' | sort | tr '\n' ' '; }
on_server() { ask "$api/messages/$1?format=minimal" >/dev/null 2>&1; }
stats() { curl -sS "$origin/_cloud/stats" | jq ".users.\"$user\""; }
changing() { stats | jq '[.methods | to_entries[] | select(.key | test("modify|delete|trash|batch"; "i")) | .value.calls] | add // 0'; }
reason() { jq -r ".refused[] | select(.id == \"$1\") | .reason" "$dir/out"; }

sign_in
t mail archive older_than:1d 2>"$dir/err" && fail "nothing is synced yet"
grep -q 'mail sync' "$dir/err" || fail "no hint to sync: $(cat "$dir/err")"
t mail sync --quiet >/dev/null || fail "sync"
t mail export "$dir/before" in:anywhere >/dev/null || fail "export"
everything=$(ls "$dir/before" | sed 's/\.eml$//')
[ "$(wc -l <<<"$everything")" -eq "$messages" ] || fail "not all of it is there at the beginning"

# Every message of the beginning is on the server, or in the archive with its bytes.
nothing_lost() {
    local id here
    here=$(ask "$api/messages?includeSpamTrash=true&maxResults=500" | jq -r '.messages[]?.id')
    rm -rf "$dir/now"
    t mail export "$dir/now" in:anywhere >/dev/null || fail "$1: export"
    for id in $(comm -23 <(sort <<<"$everything") <(sort <<<"$here")); do
        cmp -s "$dir/now/$id.eml" "$dir/before/$id.eml" || fail "$1: $id is lost"
    done
}

# ---- what is not said is not done
t mail archive 2>"$dir/err"
[ $? -eq 2 ] || fail "an empty query must be refused"
grep -q in:anywhere "$dir/err" || fail "no hint: $(cat "$dir/err")"
for query in '***' '"' '-' '( )' 'older_than:1y ★' 'label:nosuch' 'frmo:x' 'a OR'; do
    t mail archive "$query" --yes >"$dir/out" 2>"$dir/err" && fail "\"$query\" was taken: $(cat "$dir/out")"
done
t mail archive 'a OR' --older-than 1y --yes >/dev/null 2>&1 && fail "a filter became an alternative"
t mail archive x --mode all 2>/dev/null && fail "there is no mode all"
[ "$(changing)" -eq 0 ] || fail "something was changed"

# ---- a dry run
before=$(md5sum <<<"$(ask "$api/messages?maxResults=500&includeSpamTrash=true")")
t mail archive --older-than 1y --dry-run --mode trash --json >"$dir/out" || fail "dry run: $(cat "$dir/out")"
count=$(jq .messages "$dir/out")
[ "$count" -gt 30 ] || fail "the dry run finds $count"
[ "$(jq '[.by_year[].messages] | add' "$dir/out")" -eq "$count" ] || fail "years do not add up"
[ "$(jq '.calls' "$dir/out")" -eq 2 ] || fail "calls: $(jq .calls "$dir/out")"
[ "$(jq '.units' "$dir/out")" -eq 52 ] || fail "units: $(jq .units "$dir/out")"
jq -e '.by_label[] | select(.name == "INBOX")' "$dir/out" >/dev/null || fail "no label is named"
[ "$(changing)" -eq 0 ] || fail "a dry run changed something"
[ "$before" = "$(md5sum <<<"$(ask "$api/messages?maxResults=500&includeSpamTrash=true")")" ] || fail "the mailbox changed"
t mail manifest --json >"$dir/out" || fail "manifest"
[ "$(jq '.manifests | length' "$dir/out")" -eq 0 ] || fail "a dry run left a manifest"

# ---- the guard
t mail archive --older-than 1y --mode trash >"$dir/out" 2>"$dir/err" </dev/null && fail "many messages without a confirmation"
grep -q -- --yes "$dir/err" || fail "no hint: $(cat "$dir/err")"
t mail archive --older-than 1y --limit 3 --mode delete >"$dir/out" 2>"$dir/err" </dev/null && fail "deleted without a confirmation"
t --set archive.guard=2 mail archive --older-than 1y --limit 3 >"$dir/out" 2>"$dir/err" </dev/null && fail "archive.guard is ignored"
[ "$(changing)" -eq 0 ] || fail "a guarded run changed something"

# ---- out of the inbox
t mail archive --older-than 1y --limit 4 --json >"$dir/out" 2>"$dir/err" || fail "inbox: $(cat "$dir/out")"
jq -se 'length > 0 and all(.event == "progress" and .system == "mail" and .handed_over == false and has("quota_max_units")) and .[-1].removed == 4 and .[-1].total == 4' "$dir/err" >/dev/null || fail "progress: $(cat "$dir/err")"
[ "$(jq .removed "$dir/out")" -eq 4 ] || fail "removed: $(cat "$dir/out")"
t mail manifest 1 --state removed --json >"$dir/manifest" || fail "manifest 1"
for id in $(jq -r '.messages[].id' "$dir/manifest"); do
    [[ $(labels "$id") == *INBOX* ]] && fail "$id is still in the inbox"
    [[ $(jq -r ".messages[] | select(.id == \"$id\") | .labels" "$dir/manifest") == *INBOX* ]] || fail "the manifest does not know where $id was"
done
# The archive has learned of it.
[ "$(t mail search in:inbox in:anywhere --limit 200 --json | jq "[.messages[].id] | index(\"$id\")")" = null ] || fail "the archive does not know that $id left"

# ---- what must be refused, each by name and still on the server
ids=($(t mail search in:inbox older_than:30d --limit 12 --json | jq -r '.messages[].id'))
[ "${#ids[@]}" -ge 8 ] || fail "too few to plant in"
# The newest first: what lies at the mark, and nothing else, is past it.
past=${ids[0]} bad=${ids[1]} damaged=${ids[2]} changed=${ids[3]} gone=${ids[4]} other=${ids[5]} fine=${ids[6]}
undo=()
for db in "$dir/home/archive/$user"/*.db; do
    undo+=("$db" "$(sqlite3 "$db" "SELECT 'UPDATE content SET body = ' || quote(body) || ', hash = ' || quote(hash) || ' WHERE id = ' || id || ';' FROM content WHERE id IN (SELECT content FROM message WHERE gmail_id IN ('$damaged', '$other'))")")
    sqlite3 "$db" "UPDATE content SET body = CAST(zeroblob(length(body)) AS BLOB) WHERE id IN (SELECT content FROM message WHERE gmail_id = '$damaged')"
    sqlite3 "$db" "UPDATE content SET hash = zeroblob(32) WHERE id IN (SELECT content FROM message WHERE gmail_id = '$other')"
done
kind=$(sqlite3 "$dir/home/state.db" "SELECT id FROM kind WHERE name = 'mail.fetch'")
account=$(sqlite3 "$dir/home/state.db" "SELECT id FROM account WHERE name = '$user'")
sqlite3 "$dir/home/state.db" "INSERT INTO bad (account, kind, item, state, first_seen, last_tried, retries, reason) VALUES ($account, $kind, '$bad', 0, 1, 1, 0, 'planted')" ||
    fail "plant a bad item"
post mail/label "{\"user\":\"$user\",\"ids\":[\"$changed\"],\"add\":[\"STARRED\"]}"
post mail/delete "{\"user\":\"$user\",\"ids\":[\"$gone\"]}"
everything=$(grep -v "$gone" <<<"$everything") # by another client, and it is in the archive
past_ms=$(ask "$api/messages/$past?format=minimal" | jq -r .internalDate)
cursor=$(sqlite3 "$dir/home/state.db" "SELECT cursor FROM stream WHERE name LIKE 'mail.%'")
sqlite3 "$dir/home/state.db" "UPDATE stream SET cursor = '$past_ms' WHERE name LIKE 'mail.%'"
t mail archive in:inbox --no-sync --mode delete --yes --dry-run --json >"$dir/out" || fail "dry run: $(cat "$dir/out")"
[[ $(reason "$bad") == 'recorded as bad' ]] || fail "dry run, bad: $(reason "$bad")"
[[ $(reason "$damaged") == 'damaged on disk'* ]] || fail "dry run, damaged: $(reason "$damaged")"
[[ $(reason "$changed") == changed* ]] || fail "dry run, changed: $(reason "$changed")"
t mail archive in:inbox --no-sync --mode delete --yes --json >"$dir/out"
[ $? -eq 3 ] || fail "refused ones must end with 3: $(cat "$dir/out")"
[[ $(reason "$bad") == 'recorded as bad' ]] || fail "bad: $(reason "$bad")"
[[ $(reason "$damaged") == 'damaged on disk'* ]] || fail "damaged: $(reason "$damaged")"
[[ $(reason "$other") == 'damaged on disk'* ]] || fail "another hash: $(reason "$other")"
[[ $(reason "$changed") == changed* ]] || fail "changed: $(reason "$changed")"
[[ $(reason "$gone") == 'no longer in Gmail' ]] || fail "gone: $(reason "$gone")"
[[ $(reason "$past") == *tidemark* ]] || fail "past the tidemark: $(reason "$past")"
for id in "$bad" "$damaged" "$changed" "$past" "$other"; do
    on_server "$id" || fail "$id was removed"
done
on_server "$fine" && fail "$fine was not removed"
for id in $(jq -r '.refused[].id' "$dir/out"); do
    [ "$id" = "$gone" ] || on_server "$id" || fail "$id was refused and removed"
done
sqlite3 "$dir/home/state.db" "UPDATE stream SET cursor = '$cursor' WHERE name LIKE 'mail.%'; DELETE FROM bad"
for ((i = 0; i < ${#undo[@]}; i += 2)); do
    sqlite3 "${undo[i]}" <<<"${undo[i + 1]}" || fail "heal"
done
nothing_lost "after the refusals"

# ---- an expired history id: nothing is done before a sync
t mail sync --quiet >/dev/null || fail "sync"
post history/expire "{\"user\":\"$user\"}"
calls=$(changing)
t mail archive older_than:1d --no-sync --mode trash --yes >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] || fail "an expired history must end with 1: $(cat "$dir/out" "$dir/err")"
grep -q 'mail sync' "$dir/err" || fail "no hint: $(cat "$dir/err")"
grep -q -- '--resume' "$dir/err" || fail "no word of going on: $(cat "$dir/err")"
[ "$(changing)" -eq "$calls" ] || fail "something was changed with an expired history"

# ---- killed while Gmail answers: the change was made, the answer never came
t mail sync --quiet >/dev/null
kills=0
for at in messages.batchDelete history.list messages.batchDelete; do
    post faults "{\"method\":\"gmail.users.$at\",\"count\":1,\"fault\":\"stall-start\",\"ms\":20000}" || fail "plant a stall"
    "$tidemark" --home "$dir/home" "${fast[@]}" mail archive older_than:1d --limit 6 --mode delete --yes --no-sync --quiet >"$dir/out" 2>&1 &
    run=$!
    for _ in $(seq 200); do
        [ "$(curl -sS "$origin/_cloud/faults" | jq '.faults[0].struck')" -ge 1 ] && break
        kill -0 "$run" 2>/dev/null || break
        read -rt 0.05 <> <(:) || true
    done
    strike "$run" && kills=$((kills + 1))
    curl -sS -X DELETE "$origin/_cloud/faults" >/dev/null
    nothing_lost "after a kill in $at"
    number=$(t mail manifest --json | jq '.manifests[0].manifest')
    t mail sync --quiet >"$dir/out" 2>&1 # a sync does not resume it
    [ "$(t mail manifest --json | jq '.manifests[0].ended_unix_ms')" -eq 0 ] || fail "the run ended without us"
    t mail archive --resume "$number" --yes --json >"$dir/out" 2>"$dir/err"
    code=$?
    [ $code -eq 0 ] || [ $code -eq 3 ] || fail "resume after $at: $code $(cat "$dir/err")"
    [ "$(t mail manifest "$number" --json | jq '[.planned, .asked] | add')" -eq 0 ] || fail "something is left of $number"
    for id in $(t mail manifest "$number" --state removed --json | jq -r '.messages[].id'); do
        on_server "$id" && fail "$id counts as removed and is there"
    done
    nothing_lost "after going on"
done
[ "$kills" -eq 3 ] || fail "$kills kills of 3 struck"

# ---- failures on the way are waited out; nothing is fetched for any of this
fetched=$(stats | jq .fetched.total)
post faults '[{"method":"gmail.users.messages.batchModify","count":1,"fault":"503"},{"method":"gmail.users.messages.batchModify","count":1,"after":1,"fault":"reset-after"}]'
t mail archive older_than:3y --limit 5 --mode trash --yes --json >"$dir/out" 2>"$dir/err"
[ "$(jq .removed "$dir/out")" -eq 5 ] || fail "removed: $(cat "$dir/out" "$dir/err")"
[ "$(stats | jq .fetched.total)" -eq "$fetched" ] || fail "a message was fetched"
[ "$(stats | jq .violations)" -eq 0 ] || fail "violations"
nothing_lost "at the end"

# ---- scopes: sync asks for reading, the rest when it is needed
t2() { timeout 150 "$tidemark" --home "$dir/scoped" "${fast[@]}" "$@"; }
printf '#!/bin/sh\nexec curl -sSL -o /dev/null "$1"\n' >"$dir/browser"
chmod +x "$dir/browser"
sign_in() {
    BROWSER="$dir/browser" t2 account add gmail "$user" --endpoint "$origin" --for "$1" >"$dir/out" 2>"$dir/err" ||
        fail "sign in for $1: $(cat "$dir/err")"
}
sign_in sync
grep -q 'to read mail' "$dir/err" || fail "it does not say what it asks for"
t2 mail sync --quiet >/dev/null || fail "sync with reading alone"
t2 mail archive in:anywhere --limit 1 --mode trash --yes >"$dir/out" 2>"$dir/err"
[ $? -eq 4 ] || fail "reading alone must end with 4: $(cat "$dir/err")"
grep -q "account add gmail $user --for archive" "$dir/err" || fail "no command: $(cat "$dir/err")"
sign_in archive
t2 mail archive in:anywhere --limit 1 --mode trash --yes >"$dir/out" 2>"$dir/err" || fail "trash with gmail.modify: $(cat "$dir/err")"
t2 mail archive in:anywhere --limit 1 --mode delete --yes >"$dir/out" 2>"$dir/err"
[ $? -eq 4 ] || fail "gmail.modify must not delete: $(cat "$dir/err")"
grep -q "for delete" "$dir/err" || fail "no command: $(cat "$dir/err")"
sign_in delete
t2 mail archive in:anywhere --limit 1 --mode delete --yes >"$dir/out" 2>"$dir/err" || fail "delete with all: $(cat "$dir/err")"
t2 account add gmail "$user" --endpoint "$origin" --bearer tok --for reading 2>/dev/null && fail "there is no such purpose"
# Where the scopes are not known the server tells.
post faults '{"method":"gmail.users.messages.*","fault":"403","count":1}'
t mail archive in:anywhere --limit 2 --mode trash --yes --no-sync >"$dir/out" 2>"$dir/err"
[ $? -eq 4 ] || fail "the server's 403 must end with 4: $(cat "$dir/err")"
grep -q -- "--for archive" "$dir/err" || fail "no command: $(cat "$dir/err")"

echo "$failed failed"
[ "$failed" -eq 0 ]
