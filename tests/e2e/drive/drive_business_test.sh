#!/usr/bin/env bash
# A drive of a business: its id has letters of both cases, and is sent as the server gave it (D13).  Both directions, and
# the same drive is not added twice.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
user=ada@example.com
serve --quota off --drive "$user=3,size=500,business" --token "$token=$user"
ends 0 account add onedrive "$user" --endpoint "$origin" --bearer "$token"
id=$(graph "$origin/v1.0/me/drive" | jq -r .id)
[ "$id" != "${id,,}" ] || fail "the cloud has no id with both cases: $id"

ends 0 drive add "$one" --json
holds ".type == \"business\" and .drive_id == \"$id\""
put below.txt online
echo mine >"$one/mine.txt"
ends 0 drive sync
here below.txt online || fail "nothing came"
[ "$(online mine.txt)" = mine ] || fail "nothing was sent"
same_trees 'a business drive'
[ "$(violations)" = '{}' ] || fail "violations: $(violations)"

ends 1 drive add "$dir/Two"; complains 'is synced already'
ends 0 drive remove One
ends 0 drive add "$one" --drive "$id" --json; holds ".drive_id == \"$id\""
ends 1 drive add "$dir/Two" --drive "${id,,}"; complains 'cannot see a drive'
