#!/usr/bin/env bash
# mail_restore_test.sh TIDEMARK CLOUD: what was deleted at the local cloud is put back from
# the archive, once, whatever happens meanwhile (M14, E1.9).
. "$(dirname "$0")/../stage.sh"
mkdir "$dir/corpus"
printf 'From: a@example.org\r\nDate: Tue, 04 Jun 2013 10:11:12 +0000\r\nSubject: no id\r\n\r\none\r\n' >"$dir/corpus/1.eml"
printf 'From: a@example.org\r\nDate: Tue, 04 Jun 2013 10:11:12 +0000\r\nSubject: no id\r\n\r\ntwo\r\n' >"$dir/corpus/2.eml"
printf 'From: a@example.org\r\nSubject: neither date nor id\r\n\r\nthree\r\n' >"$dir/corpus/3.eml"
printf 'From: a@example.org\nMessage-ID: <odd"(id)@example.org>\nDate: 4 Jun 2013 10:11:13 +0000\n\nfour\n' >"$dir/corpus/4.eml"
printf 'no header at all, \001 and \000 and \377\r\n' >"$dir/corpus/5.eml"

serve --seed 5 --quota 2026 --mailbox "$user=20" --corpus "$user=$dir/corpus" --token tok="$user"
ask() { own_minute -H 'Authorization: Bearer tok' -H 'Content-Type: application/json' "$@"; }
steer() { curl -sSf -X POST "$origin/_cloud/$1" -d "$2" >/dev/null || fail "steer $1 $2"; }
fault() { steer faults "$1"; }
calm() { curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null || fail "calm"; }
stats() { curl -sSf "$origin/_cloud/stats" | jq ".users.\"$user\"$1"; }
t() { timeout 120 "$tidemark" --home "$dir/home" "$@"; }
sync() { t mail sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"; }
sql() { sqlite3 -cmd '.timeout 5000' "$dir/home/state.db" "$@"; }
# Every message of the server: its bytes, its labels by name, its second, its id; sorted.
listing() {
    local labels
    labels=$(ask "$api/labels" | jq -c '[.labels[] | {key: .id, value: .name}] | from_entries')
    ask "$api/messages?maxResults=500&includeSpamTrash=true" |
        jq -r --arg api "$api" '.messages[] | "url = \"\($api)/messages/\(.id)?format=raw\""' >"$dir/urls"
    ask -K "$dir/urls" | jq -r --argjson names "$labels" '[.raw,
        ([.labelIds // [] | .[] | $names[.]] | sort | join(",")),
        (.internalDate | tonumber / 1000 | floor | tostring), .id] | join(" ")' | sort >"$1"
}
# Nothing lost, nothing twice, with the labels of before: two listings but for ids and dates.
same() { diff <(cut -d' ' -f1,2 "$1") <(cut -d' ' -f1,2 "$2") >"$dir/diff" || fail "$3: $(sed -E 's/[^ ]{60,} //' "$dir/diff")"; }
ids_of() { ask "$api/messages?maxResults=500&includeSpamTrash=true" | jq -c "[.messages[].id][$1]"; }
delete() { ask -X POST -d "{\"ids\":$1}" "$api/messages/batchDelete" || fail "delete"; }
# Waits until a JSON value of the referee is at least so large.
wait_for() {
    for _ in $(seq 150); do
        [ "$(stats "$1" || echo 0)" -ge "$2" ] && return
        read -rt 0.2 <> <(:) || true
    done
    fail "$1 did not become $2"
}
inserts='.methods."gmail.users.messages.insert".calls // 0'

# Ten times Gmail's quota, at the cloud and here: kept just as exactly, in a tenth of the time.
steer quota '{"user_units_per_minute":60000}'
t config set governor.gmail.window_units 60000 >"$dir/out" || fail "config set"
t account add gmail "$user" --endpoint "$origin" --bearer tok >"$dir/out" || fail "account add"
for id in $(ask "$api/messages?labelIds=TRASH" | jq -r '.messages // [] | .[].id'); do
    ask -X POST "$api/messages/$id/untrash" >/dev/null || fail "untrash"
done
label=$(ask -X POST -d '{"name":"Boats/Small"}' "$api/labels" | jq -r .id)
some=$(ids_of '0:2')
ask -X POST -d "{\"ids\":$some,\"addLabelIds\":[\"$label\"]}" "$api/messages/batchModify" || fail "label"
sync
listing "$dir/before"
[ "$(wc -l <"$dir/before")" -eq 25 ] || fail "25 messages are there"

# ---- nothing to do, and how to ask
t mail restore in:anywhere --dry-run >"$dir/out" || fail "a dry run of nothing"
grep -q nothing "$dir/out" || fail "nothing: $(cat "$dir/out")"
t mail restore 2>"$dir/err" </dev/null
[ $? -eq 2 ] || fail "which messages?"
t mail restore --manifest 7 --yes 2>"$dir/err" && fail "there is no manifest 7"
t mail restore frmo:ada --yes 2>"$dir/err" && fail "an operator that does not exist"
t mail restore x --account nobody@example.com --yes 2>"$dir/err" && fail "there is no such account"

# ---- twelve are deleted, among them all that have no Message-ID, and their label too
gone=$(jq -cn --argjson a "$(ids_of 0:7)" --argjson b "$(ids_of -5:)" '$a + $b')
delete "$gone"
ask -X DELETE "$api/labels/$label" || fail "delete a label"
sync
old=$(jq -r '.[0]' <<<"$gone")
t mail show "$old" --raw >"$dir/old.eml" || fail "show what is gone"
t mail restore in:anywhere --dry-run --json >"$dir/out" || fail "dry run: $(cat "$dir/out")"
[ "$(jq .planned.insert.messages "$dir/out")" -eq 12 ] || fail "planned: $(cat "$dir/out")"
[ "$(sql 'SELECT count(*) FROM mail_manifest')" -eq 0 ] || fail "a dry run wrote a manifest"
t mail restore in:anywhere </dev/null 2>"$dir/err"
[ $? -eq 2 ] || fail "without --yes and without a terminal"
[ "$(sql 'SELECT count(*) FROM mail_manifest')" -eq 0 ] || fail "nothing was confirmed"
t mail restore in:anywhere --yes --limit 5 --json >"$dir/out" 2>"$dir/err" || fail "restore five: $(cat "$dir/out")"
jq -se 'length > 0 and all(.event == "progress" and .system == "mail" and .handed_over == false and has("quota_max_units")) and .[-1].restored == 5 and .[-1].left_ms == 0' "$dir/err" >/dev/null || fail "progress: $(cat "$dir/err")"
[ "$(jq .done.insert.messages "$dir/out")" -eq 5 ] || fail "five: $(cat "$dir/out")"
t mail restore in:anywhere --yes --json --quiet >"$dir/out" || fail "restore: $(cat "$dir/out")"
[ "$(jq .done.insert.messages "$dir/out")" -eq 7 ] || fail "seven: $(cat "$dir/out")"
listing "$dir/after"
same "$dir/before" "$dir/after" "restored by query"
[ "$(ask "$api/labels" | jq '[.labels[] | select(.name == "Boats/Small")] | length')" -eq 1 ] || fail "the label was not made once"
grep -q Boats/Small "$dir/after" || fail "no message has the label"
# Dated by the Date header, where there is one.
[ "$(grep -c ' 137034067[23] ' "$dir/after")" -eq 3 ] || fail "dates: $(cut -d" " -f2- "$dir/after")"

# ---- again, and a sync
before=$(stats .calls)
t mail restore in:anywhere --yes --json >"$dir/out" || fail "restore nothing"
[ "$(stats .calls)" -eq "$before" ] || fail "a second restore asked the server"
before=$(stats .fetched.total)
sync
[ "$(stats .fetched.total)" -eq "$before" ] || fail "the sync fetched what was restored"
t mail show "$old" --raw >"$dir/new.eml" || fail "show by the former id"
cmp -s "$dir/old.eml" "$dir/new.eml" || fail "the former id shows something else"
new=$(sql "SELECT restored_id FROM mail_removal WHERE gmail_id = '$old'")
[ "$(t mail search in:anywhere --limit 100 --json | jq "[.messages[].id | select(. == \"$new\")] | length")" -eq 1 ] || fail "the new id is not found once"
[ "$(t mail search in:anywhere --limit 100 --json | jq '.messages | length')" -eq 25 ] || fail "the archive has not 25 messages"
t mail verify >"$dir/out" || fail "verify: $(cat "$dir/out")"
for shard in "$dir/home/archive/$user"/*.db; do sqlite3 "$shard" "SELECT gmail_id FROM message WHERE gone_ms IS NOT NULL"; done >"$dir/out"
[ -s "$dir/out" ] && fail "still gone: $(cat "$dir/out")"

# ---- killed in the middle, and again
delete "$(ids_of '0:12')"
sync
# The fifth insert is not answered, so that the kill finds it at work on a machine of any speed.
fault '{"method":"gmail.users.messages.insert","after":4,"fault":"latency","ms":600000}'
before=$(stats "$inserts")
"$tidemark" --home "$dir/home" mail restore in:anywhere --yes --quiet >"$dir/out" 2>&1 &
restore=$!
wait_for "$inserts" $((before + 5))
strike "$restore" || fail "it ended before it was killed: $(cat "$dir/out")"
calm
[ "$(sql 'SELECT count(*) FROM mail_removal WHERE state = 2')" -eq 8 ] || fail "not eight of twelve were left to do after the kill"
t mail restore in:anywhere --yes --quiet >"$dir/out" || fail "restore after the kill: $(cat "$dir/out")"
listing "$dir/after"
same "$dir/before" "$dir/after" "killed and restored"
[ "$(sql 'SELECT count(*) FROM mail_removal WHERE state <> 4')" -eq 0 ] || fail "entries are left"
[ "$(sql 'SELECT count(*) FROM mail_manifest WHERE ended_ms = 0')" -eq 0 ] || fail "a manifest is left"
[ "$(sql 'SELECT count(*) FROM intent WHERE state <> 1')" -eq 0 ] || fail "intents are left open"

# ---- lost answers: the call took effect, and no answer arrived
delete "$(ids_of '-12:')"
sync
fault '{"method":"gmail.users.messages.insert","rate":0.4,"fault":"reset-after"}'
fault '{"method":"gmail.users.messages.insert","rate":0.1,"fault":"503"}'
t mail restore in:anywhere --yes --quiet >"$dir/out" || fail "restore through faults: $(cat "$dir/out")"
[ "$(curl -sS "$origin/_cloud/faults" | jq '[.. | .struck? // 0] | add')" -gt 0 ] || fail "no answer was lost"
calm
listing "$dir/after"
same "$dir/before" "$dir/after" "answers lost"

# ---- killed while the answer is on its way, and a sync fetches what was inserted
sync
delete "$(ids_of '-3:')"
sync
fault '{"method":"gmail.users.messages.insert","fault":"stall-start","ms":30000,"count":1}'
before=$(ids_of 0: | jq length)
"$tidemark" --home "$dir/home" mail restore in:anywhere --yes --quiet >"$dir/out" 2>&1 &
restore=$!
for _ in $(seq 150); do
    [ "$(ids_of 0: | jq length)" -gt "$before" ] && break
    read -rt 0.2 <> <(:) || true
done
strike "$restore" || fail "it ended before it was killed: $(cat "$dir/out")"
calm
sync
t mail restore in:anywhere --yes --quiet --json >"$dir/out" || fail "restore after a sync: $(cat "$dir/out")"
[ "$(jq .stored_twice "$dir/out")" -eq 1 ] || fail "stored twice: $(cat "$dir/out")"
listing "$dir/after"
same "$dir/before" "$dir/after" "a sync came first"
before=$(stats .fetched.total)
sync
[ "$(stats .fetched.total)" -eq "$before" ] || fail "fetched again"

# ---- the sign-in does not allow it
two=$(ids_of '0:2')
delete "$two"
sync
fault '{"method":"gmail.users.messages.insert","fault":"403"}'
t mail restore in:anywhere --yes --quiet >"$dir/out" 2>"$dir/err"
[ $? -eq 4 ] || fail "a missing scope: $(cat "$dir/out" "$dir/err")"
grep -q 'account add gmail' "$dir/err" || fail "no command that repairs it: $(cat "$dir/err")"
calm

# ---- a damaged copy is refused by name, the other comes back
bad=$(jq -r '.[0]' <<<"$two")
for shard in "$dir/home/archive/$user"/*.db; do
    sqlite3 "$shard" "UPDATE content SET body = zeroblob(length(body)) WHERE id = (SELECT content FROM message WHERE gmail_id = '$bad')"
done
t mail restore in:anywhere --yes --quiet >"$dir/out" 2>"$dir/err"
[ $? -eq 3 ] || fail "damage must end with 3: $(cat "$dir/out" "$dir/err")"
grep -q "REFUSED  $bad" "$dir/out" || fail "damage is not named: $(cat "$dir/out")"
[ "$(ids_of 0: | jq length)" -eq 24 ] || fail "the other one is not back: $(ids_of 0: | jq length) $(cat "$dir/out")"

# ---- by manifest: out of the inbox, into the trash, one of them emptied from it
listing "$dir/before"
entry() { # MANIFEST ID
    local shard row
    for shard in "$dir/home/archive/$user"/*.db; do
        row=$(sqlite3 "$shard" "SELECT quote(m.thread_id)||','||quote(hash)||','||m.bytes||','||internal_ms||','||
            quote((SELECT coalesce(group_concat(l.label, ' '), '') FROM message_label ml JOIN label l ON l.id = ml.label WHERE ml.message = m.id))
            FROM message m JOIN content c ON c.id = content WHERE gmail_id = '$2'")
        [ -n "$row" ] && sql "INSERT INTO mail_removal VALUES(NULL, $1, '$2', $row, 2, '', '', 0)"
    done
}
inbox=$(ask "$api/messages?labelIds=INBOX" | jq -c '[.messages[].id][:3]')
rest=$(ids_of 0: | jq -c --argjson i "$inbox" '[.[] | select(. as $x | $i | index($x) | not)]')
trash=$(jq -c '.[1:5]' <<<"$rest")
account=$(sql 'SELECT account FROM mail_account')
sql "INSERT INTO mail_manifest(id, account, mode, query, made_ms, ended_ms, watermark_ms)
    VALUES(101, $account, 0, 'a', 1, 1, 0), (102, $account, 1, 'b', 1, 1, 0)"
for id in $(jq -r '.[]' <<<"$inbox"); do entry 101 "$id"; done
for id in $(jq -r '.[]' <<<"$trash"); do entry 102 "$id"; done
[ "$(sql 'SELECT count(*) FROM mail_removal WHERE manifest > 100')" -eq 7 ] || fail "seven entries"
ask -X POST -d "{\"ids\":$inbox,\"removeLabelIds\":[\"INBOX\"]}" "$api/messages/batchModify" || fail "archive"
for id in $(jq -r '.[]' <<<"$trash"); do ask -X POST "$api/messages/$id/trash" >/dev/null || fail "trash"; done
delete "$(jq -c '.[:1]' <<<"$trash")"
one=$(jq -r '.[0]' <<<"$inbox")
t mail restore --manifest 101 "$one" --yes --quiet --json >"$dir/out" || fail "one: $(cat "$dir/out")"
[ "$(jq .done.inbox.messages "$dir/out")" -eq 1 ] || fail "one of a manifest: $(cat "$dir/out")"
t mail restore --manifest 101 --yes --quiet --json >"$dir/out" || fail "inbox: $(cat "$dir/out")"
[ "$(jq .done.inbox.messages "$dir/out")" -eq 2 ] || fail "the other two: $(cat "$dir/out")"
t mail restore --manifest 102 --yes --quiet --json >"$dir/out" || fail "trash: $(cat "$dir/out")"
[ "$(jq -c '[.done.trash.messages, .done.insert.messages]' "$dir/out")" = '[3,1]' ] || fail "trash: $(cat "$dir/out")"
listing "$dir/after"
same "$dir/before" "$dir/after" "restored by manifest"
before=$(stats .fetched.total)
sync
[ "$(stats .fetched.total)" -eq "$before" ] || fail "fetched after a restore by manifest"
[ "$(sql 'SELECT count(*) FROM mail_removal WHERE manifest > 100 AND state = 4')" -eq 7 ] || fail "seven are restored"
for id in $(sql 'SELECT restored_id FROM mail_removal WHERE manifest > 100'); do
    ask "$api/messages/$id?format=minimal" >/dev/null || fail "$id is no id of the server's"
done
[ "$(stats .violations)" -eq 0 ] || fail "violations: $(stats "")"

echo "$failed failed"
[ "$failed" -eq 0 ]
