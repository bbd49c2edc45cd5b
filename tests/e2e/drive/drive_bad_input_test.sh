#!/usr/bin/env bash
# What users type wrongly, and folders that are not what they were: each has a clear error and changes
# nothing.  And two accounts of which one is broken: the other one is synced.
source "$(dirname "$0")/../stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=4,size=500 --token tok=ada@example.com \
    --drive bob@example.com=3,size=500 --token bob=bob@example.com
says() { grep -qF -- "$1" "$dir/out" || fail "no \"$1\" in: $(cat "$dir/out" "$dir/err")"; }
complains() { grep -qF -- "$1" "$dir/err" || fail "no \"$1\" in: $(cat "$dir/out" "$dir/err")"; }
holds() { jq -e "$1" "$dir/out" >/dev/null || fail "not $1: $(cat "$dir/out")"; }
drives() { state 'SELECT count(*) FROM drive_drive' 2>/dev/null || echo 0; }

# ---- accounts
ends 1 drive add "$dir/x"; complains 'account add onedrive'
[ ! -e "$dir/x" ] || fail "a folder was made without an account"
ends 4 account add onedrive ada@example.com --endpoint "$origin" --bearer wrong; complains 'Nothing was added'
ends 2 account add onedrive 'a b' --endpoint "$origin" --bearer tok; complains 'not a name'
ends 2 account add onedrive a@x b@x --endpoint "$origin" --bearer tok; complains 'one address'
ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok

# ---- folders
touch "$dir/file"
ends 1 drive add "$dir/file"; complains 'is not a folder'
ends 1 drive add "$dir/no/such/place"; complains 'neither is the folder above'
ends 1 drive add "$dir"; complains 'keeps its own files there'
ends 1 drive add "$dir/home/sub"; complains 'keeps its own files there'
ends 1 drive add /; complains 'keeps its own files there'
mkdir "$dir/marked"
echo other >"$dir/marked/.tidemark-root"
ends 1 drive add "$dir/marked"; complains 'has the marker of a drive already'
[ "$(cat "$dir/marked/.tidemark-root")" = other ] || fail "another drive's marker was changed"
if [ "$(id -u)" -ne 0 ]; then
    mkdir -m 500 "$dir/locked"
    ends 1 drive add "$dir/locked"; complains 'cannot be read and written'
fi
ends 2 drive add "$dir/One" --mode both; complains 'no mode'
ends 2 drive add "$dir/One" --name a/b; complains 'cannot be the name'
ends 1 drive add "$dir/One" --account nobody@example.com; complains 'no drive account'
ends 1 drive add "$dir/One" --drive no-such-drive; complains 'cannot see a drive'
[ ! -e "$dir/One" ] || fail "a folder was made for a drive that was refused"
[ "$(drives)" = 0 ] || fail "a refused drive was added"

ends 0 drive add "$dir/One"
ends 1 drive add "$dir/Two"; complains 'is synced already, as drive "One"'
[ ! -e "$dir/Two" ] || fail "a folder was made for a drive that was refused"
ends 1 drive add "$dir/One/inside"; complains 'is inside the folder of drive "One"'
ends 1 drive add "$dir/Other" --name One; complains 'there is a drive "One" already'
[ "$(drives)" = 1 ] || fail "a refused drive was added"
ends 0 drive sync

# ---- names and numbers that are not there
ends 2 schedule add --at 'every 15min' -- drive sync --timeout soon; complains '--timeout soon is not a duration'
ends 1 drive sync nothing; complains 'there is no drive "nothing"'
ends 1 drive remove nothing; complains 'there is no drive "nothing"'
ends 2 drive mode One; complains 'MODE'
ends 2 drive ignore frobnicate One x; complains 'list, add, remove or import'
ends 2 drive ignore add One; complains 'needs a drive and patterns'
ends 1 drive ignore import One "$dir/none"; complains 'Name a readable file'
ends 2 drive ignore import One "$dir/file" --format tar; complains 'no format'
ends 1 drive ignore import One "$dir/file"; complains 'has no rule'
ends 2 drive conflicts frobnicate; complains 'list, show or resolve'
ends 2 drive deletions frobnicate; complains 'list, accept or restore'
ends 2 drive sync One --timeout soon; complains 'not a duration'

# ---- a folder that is not mounted, or another one: nothing is deleted
count() { curl -sSf -H 'Authorization: Bearer tok' "$origin/v1.0/me/drive/root/delta" | jq '[.value[] | select(.file)] | length'; }
[ "$(count)" = 4 ] || fail "there are not 4 files online: $(count)"
mv "$dir/One" "$dir/away"
mkdir "$dir/One"
ends 3 drive status; says 'stopped: '
ends 1 drive sync; says 'its marker .tidemark-root is missing'
ends 1 drive verify; complains 'marker'
rmdir "$dir/One"
ends 1 drive sync; says 'is not there'
mkdir "$dir/One"
echo wrong >"$dir/One/.tidemark-root"
ends 1 drive sync; says 'missing or different'
[ "$(count)" = 4 ] || fail "files were deleted online: $(count)"
rm -r "$dir/One"
mv "$dir/away" "$dir/One"
ends 0 drive sync
ends 0 drive status
[ "$(count)" = 4 ] || fail "files were deleted online: $(count)"
[ "$(find "$dir/One" -type f ! -name '.tidemark-*' | wc -l)" = 4 ] || fail "files were deleted here"

# ---- another user's sign-in must not get at a drive
ends 1 account add onedrive ada@example.com --endpoint "$origin" --bearer bob; complains "another user's"
ends 0 drive sync

# ---- two accounts, one of them broken
ends 0 account add onedrive bob@example.com --endpoint "$origin" --bearer bob
ends 2 drive add "$dir/Bob"; complains 'there are 2 OneDrive accounts'
ends 0 drive add "$dir/Bob" --account bob@example.com
rm "$dir"/home/secrets/*bob*
echo more >"$dir/One/more.txt"
t drive sync --json >"$dir/out" 2>"$dir/err"
code=$?
[ "$code" -eq 4 ] || fail "a sync with an account that is signed out ended with $code: $(cat "$dir/out" "$dir/err")"
holds '[.accounts[] | select(.account == "ada@example.com")][0].outcome == "done"'
holds '[.accounts[] | select(.account == "bob@example.com")][0].outcome == "signed_out"'
[ "$(count)" = 5 ] || fail "the other account was not synced"
ends 0 account add onedrive bob@example.com --endpoint "$origin" --bearer bob
ends 0 drive sync
[ "$(find "$dir/Bob" -type f ! -name '.tidemark-*' | wc -l)" = 3 ] || fail "bob's files did not come"

# ---- an account goes with its drives; files stay
ends 0 account remove bob@example.com
ends 0 drive list --json; holds '[.drives[].drive] == ["One"]'
[ "$(find "$dir/Bob" -type f ! -name '.tidemark-*' | wc -l)" = 3 ] || fail "files went with their account"

exit $((failed > 0))
