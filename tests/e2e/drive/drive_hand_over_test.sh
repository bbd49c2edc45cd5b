#!/usr/bin/env bash
# Commands of drives while `tidemark serve` has the home: that process makes the change or does the
# work, and the command ends as if it had done it itself.
source "$(dirname "$0")/../stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=6,size=500 --token tok=ada@example.com
holds() { jq -e "$1" "$dir/out" >/dev/null || fail "not $1: $(cat "$dir/out" "$dir/err")"; }
graph() { curl -sSf -H 'Authorization: Bearer tok' "$@"; }
online() { graph -L "$origin/v1.0/me/drive/root:/$1:/content"; }
ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok
start_serve
ends 0 drive add "$dir/One"
ends 0 drive ignore add One '*.tmp'
ends 0 drive sync --json
holds '.handed_over and .accounts[0].outcome == "done" and .accounts[0].drives[0].files == 6'
echo new >"$dir/One/new.txt"
touch "$dir/One/x.tmp"
ends 0 drive plan --json; holds '.drives[0].counts.upload_new <= 1'
ends 0 drive sync --json; holds '.handed_over'
[ "$(online new.txt)" = new ] || fail "new.txt is not online"
online x.tmp 2>/dev/null && fail "an ignored file was sent"
ends 0 drive status --json; holds '.drives[0] | .files == 7 and .waiting == 0'
# What the page shows of it.
ends 0 token add viewer --scope look
key=$(cat "$dir/out")
[ "$(ask_page -o "$dir/out" -H "Authorization: Bearer $key" "$page/api/v1/drive/status")" = 200 ] || fail "the page has no drives"
holds '.drives[0] | .drive == "One" and .conflict_list == [] and .last_changes[0].name == "new.txt" and .last_changes[0].action == "upload_new"'
ends 0 account sync ada@example.com
ends 0 drive mode One upload-only
ends 0 drive list --json; holds '.drives[0].mode == "upload-only"'
ends 0 drive sync One --no-wait
ends 1 drive add "$dir/One/inside"
grep -q 'inside the folder' "$dir/err" || fail "no reason: $(cat "$dir/err")"
ends 0 drive remove One
ends 0 drive list --json; holds '.drives == []'
[ "$(cat "$dir/One/new.txt")" = new ] || fail "a file went with its drive"
ends 0 drive add "$dir/One"
ends 0 drive sync --json; holds '.accounts[0].drives[0] | .downloaded == 0'
# Looking does not wait for the account's transfers: this one would take ten minutes.
ends 0 config set bandwidth.up 20000
head -c 12000000 /dev/zero >"$dir/One/long.bin"
ends 0 drive sync One --no-wait
uploads() { t drive status --json | jq -e '.drives[0].uploading.files == 1'; }
until_true 30 uploads || fail "the upload does not begin: $(t drive status)"
ends 0 drive plan One --json; holds '.drives[0].drive == "One"'
uploads >/dev/null || fail "a plan waited for an upload"
ends 0 config set bandwidth.up 0
ends 0 drive sync One
[ "$(online long.bin | wc -c)" = 12000000 ] || fail "long.bin is not online"
stop_serve 0
ends 0 drive status --json
exit $((failed > 0))
