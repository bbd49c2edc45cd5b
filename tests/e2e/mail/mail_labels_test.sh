#!/usr/bin/env bash
# mail_labels_test.sh TIDEMARK CLOUD: labels that changed behind an expired history id are read by
# listing each label, never message by message (M19); a listing that leaves messages out takes no
# label away; kills between any two steps change nothing.
. "$(dirname "$0")/../stage.sh"
messages=40

start_cloud --seed 19 --mailbox "$user=$messages,size=1000" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 # no pacing: the cloud has no quota here
post() { curl -sSf -X POST -H 'Content-Type: application/json' -d "$2" "$origin/_cloud/$1" >/dev/null || fail "$1 $2"; }
calls() { curl -sSf "$origin/_cloud/stats" | jq "[.users.\"$user\".methods // {} | to_entries[] | select(.key | test(\"$1\")) | .value.calls] | add // 0"; }
expire() { post history/expire "{\"user\":\"$user\"}"; }
label() { # ADD REMOVE ID...
    local add=$1 remove=$2
    shift 2
    post mail/label "{\"user\":\"$user\",\"ids\":$(printf '%s\n' "$@" | jq -R . | jq -sc .),\"add\":$add,\"remove\":$remove}"
}
server_labels() {
    sed "s#.*#url = \"$api/messages/&?format=minimal\"#" "$dir/ids" |
        curl -sSf -H 'Authorization: Bearer tok' -K - | jq -c '[.id, ([.labelIds[]?] | sort)]' | sort
}
stored_labels() {
    local db
    for db in "$archive"/*.db; do
        sqlite3 "$db" "SELECT json_array(m.gmail_id, json((SELECT json_group_array(label) FROM (SELECT l.label FROM
            message_label n JOIN label l ON l.id = n.label WHERE n.message = m.id ORDER BY l.label)))) FROM message m"
    done | sort
}
same() { # WHAT
    server_labels >"$dir/server"
    stored_labels >"$dir/stored"
    cmp -s "$dir/server" "$dir/stored" || fail "$1: $(diff "$dir/server" "$dir/stored" | head -5)"
}

ask "$api/messages?includeSpamTrash=true&maxResults=500" | jq -r '.messages[].id' >"$dir/ids"
mapfile -t ids <"$dir/ids"
[ ${#ids[@]} -eq $messages ] || fail "the mailbox has ${#ids[@]} messages"
work=$(ask -X POST -H 'Content-Type: application/json' -d '{"name":"Work/Now"}' "$api/labels" | jq -r .id)
old=$(ask -X POST -H 'Content-Type: application/json' -d '{"name":"Old"}' "$api/labels" | jq -r .id)
label "[\"$old\",\"STARRED\"]" '[]' "${ids[@]:0:20}"
sign_in
ends 0 mail sync --quiet
same "the first sync"

# ---- changes that no history tells: labels added, taken, deleted, and created since
change() {
    label "[\"$work\",\"IMPORTANT\"]" '["UNREAD","INBOX"]' "${ids[@]:$1:15}"
    label '["UNREAD","TRASH"]' '["STARRED"]' "${ids[@]:$2:10}"
    expire
}
change 5 10
ask -X DELETE "$api/labels/$old" >/dev/null || fail "deleting a label"
new=$(ask -X POST -H 'Content-Type: application/json' -d '{"name":"New"}' "$api/labels" | jq -r .id)
label "[\"$new\"]" '[]' "${ids[@]:30:5}"
expire
curl -sSf -o /dev/null -X POST "$origin/_cloud/stats/reset"
ends 0 mail sync --quiet
[ "$(calls 'messages.get')" -eq 0 ] || fail "$(calls 'messages.get') messages were asked for"
[ "$(calls 'messages.list')" -le 60 ] || fail "$(calls 'messages.list') listings for $messages messages"
same "an expired history id"
[ "$(t mail search label:new --json | jq '.messages | length')" -eq 5 ] || fail "a new label is not found by its name"
[ "$(state 'SELECT count(*) FROM mail_gap')" -eq 0 ] || fail "the gap stays open"
[ "$(state 'SELECT (SELECT count(*) FROM mail_labels) + (SELECT count(*) FROM mail_seen) + (SELECT count(*) FROM mail_listing)')" -eq 0 ] ||
    fail "the listing leaves something behind"

# ---- the history continues from there
label '["STARRED"]' '["IMPORTANT"]' "${ids[@]:36:3}"
ends 0 mail sync --quiet
same "history after it"

# ---- a listing that leaves messages out takes nothing away, and the archiver still asks
stored_labels >"$dir/before"
fault '{"method":"gmail.users.messages.list","rate":0.1,"fault":"hidden"}'
expire
ends 0 mail sync --quiet
no_faults
stored_labels >"$dir/after"
cmp -s "$dir/before" "$dir/after" || fail "hidden messages lost labels: $(diff "$dir/before" "$dir/after" | head -5)"
[ "$(state 'SELECT count(*) FROM mail_gap')" -eq 1 ] || fail "an incomplete listing closes the gap"
expire
ends 0 mail sync --quiet
[ "$(state 'SELECT count(*) FROM mail_gap')" -eq 0 ] || fail "a complete listing does not close the gap"

# ---- killed between any two steps
for round in 1 2 3; do
    change $((round * 7)) $((round * 9))
    for wait in 0.1 0.15 0.2 0.3 0.4 0.6; do
        "$tidemark" --home "$dir/home" mail sync --quiet >/dev/null 2>&1 &
        sync=$!
        read -rt $wait <> <(:) || true
        strike $sync || true
    done
    ends 0 mail sync --quiet
    same "killed, round $round"
done
t mail verify >"$dir/out" || fail "verify: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
