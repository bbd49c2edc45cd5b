#!/usr/bin/env bash
# mail_pace_test.sh TIDEMARK CLOUD: a restore under Gmail's quota asks for each message a bounded
# number of times: a call that has to wait for units does not make the ones before it again (M14,
# E4.3a).  Calls are counted, not seconds.
. "$(dirname "$0")/../stage.sh"
start_cloud --seed 12 --mailbox "$user=0" --token tok="$user"
ask() { curl -sSf -H 'Authorization: Bearer tok' -H 'Content-Type: application/json' "$@"; }
calls() { curl -sSf "$origin/_cloud/stats" | jq ".users.\"$user\".methods.\"gmail.users.$1\".calls // 0"; }
# With Gmail's quota, as users have it: 100 units a second, and nearly none at the start.
paced() { timeout 150 "$tidemark" --home "$dir/home" "$@" >"$dir/out" 2>&1 || fail "$*: $(cat "$dir/out")"; }
# more METHOD BEFORE MAX: so many calls more than before at most.
more() {
    local count=$(($(calls "$1") - $2))
    [ "$count" -le "$3" ] || fail "$count calls of $1, at most $3 expected"
}

t account add gmail "$user" --endpoint "$origin" --bearer tok >"$dir/out" || fail "account add"
for i in 1 2 3 4; do
    printf 'From: b@example.org\r\nMessage-ID: <%s@example.org>\r\nSubject: boats\r\n\r\n%s\r\n' "$i" "$i" |
        curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$user" || fail "deliver"
done
label=$(ask -X POST -d '{"name":"Boats"}' "$api/labels" | jq -r .id)
ids=$(ask "$api/messages?includeSpamTrash=true" | jq -c '[.messages[].id]')
ask -X POST -d "{\"ids\":$ids,\"addLabelIds\":[\"$label\"]}" "$api/messages/batchModify" || fail "label"
paced mail sync --quiet

# ---- deleted for good, with their label: one look for each, one insert for each
ask -X POST -d "{\"ids\":$ids}" "$api/messages/batchDelete" || fail "delete"
ask -X DELETE "$api/labels/$label" || fail "delete a label"
paced mail sync --quiet
gets=$(calls messages.get) inserts=$(calls messages.insert) labels=$(calls labels.list)
paced mail restore in:anywhere --yes
more messages.get "$gets" 8
more messages.insert "$inserts" 4
more labels.list "$labels" 4
[ "$(ask "$api/messages?includeSpamTrash=true" | jq '.messages | length')" -eq 4 ] || fail "not all came back: $(cat "$dir/out")"

# ---- moved to the trash, with two sets of labels: for each one change and one listing that shows it
ids=$(ask "$api/messages" | jq -c '[.messages[].id]')
ask -X POST -d "{\"ids\":$(jq -c .[:2] <<<"$ids"),\"addLabelIds\":[\"STARRED\"]}" "$api/messages/batchModify" || fail "star"
paced mail sync --quiet
paced mail archive in:anywhere --mode trash --yes
changes=$(calls messages.batchModify) lists=$(calls messages.list)
paced mail restore --manifest "$(t mail manifest --json | jq '[.manifests[].manifest] | max')" --yes
more messages.batchModify "$changes" 2
more messages.list "$lists" 2
[ "$(ask "$api/messages" | jq '.messages | length')" -eq 4 ] || fail "not all left the trash: $(cat "$dir/out")"
exit "$failed"
