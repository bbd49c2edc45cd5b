#!/usr/bin/env bash
# Folders that another user shares, through the program: a shortcut is a drive of its own in the folder at its place.
# Whatever happens to its folder, its shortcut or its target, nothing is deleted, and it is shown by name.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
bob=bob@example.com
serve --quota off --drive "$user=0" --drive "$bob=0" --token tok="$user" --token bobtok="$bob"
hers() { curl -sSf -o "$dir/other" "$origin/_cloud/drive/$1" -d "{\"user\":\"$bob\",$2}" || fail "hers $1 $2"; }
at_bobs() { curl -sSf "$origin/_cloud/drive?user=$bob" | grep -q " $1\$"; }
hers put '"path":"Team/plan.txt","content":"plan"'
hers put '"path":"Team/deep/old.txt","content":"old"'
hers put '"path":"secret.txt","content":"secret"'
other shortcut "\"path\":\"Shared\",\"to\":{\"user\":\"$bob\",\"path\":\"Team\"}"
put mine.txt mine
join

# ---- one sync attaches it and brings what is in it; both ways, and nothing of it is the user's own
ends 0 drive ignore add One '*.tmp' '/top/'
ends 0 drive sync
says 'One/Shared: downloaded 2 files'
here Shared/plan.txt plan || fail "it did not come: $(find "$one")"
here Shared/deep/old.txt old || fail "what is below did not come"
[ ! -e "$one/secret.txt" ] || fail "more came than is shared"
echo new >"$one/Shared/new.txt"
echo scratch >"$one/Shared/x.tmp"
rm "$one/Shared/deep/old.txt"
hers put '"path":"Team/plan.txt","content":"plan two"'
ends 0 drive sync
ends 0 drive sync One # a shared folder belongs to the drive that it is in
here Shared/plan.txt 'plan two' || fail "a change did not come: $(cat "$one/Shared/plan.txt")"
at_bobs Team/new.txt || fail "a new file did not go: $(curl -sSf "$origin/_cloud/drive?user=$bob")"
! at_bobs Team/x.tmp || fail "rules of the drive do not count in it"
! tree | grep -q ' Shared/' || fail "it was sent as the user's own: $(tree)"
ends 0 drive list
says 'One/Shared'
ends 0 drive list --json
holds '.drives | length == 2 and .[0].parent == null and .[1].parent == "One" and .[1].shared == "attached"'
ends 0 drive status
says 'shared: Shared is the drive "One/Shared"'
says 'shared with you, in drive "One"'
ends 0 drive status --json
holds '.drives[0] | .skipped == [] and .skipped_here == 0 and .skipped_online == 0 and .shared_folders[0].state == "attached"'
holds '.drives[1] | .drive == "One/Shared" and .parent == "One" and .trouble == null and .mounted'
ends 0 drive verify
ends 0 drive plan One/Shared
ends 0 drive mode One download-only
ends 0 drive list --json
holds '[.drives[].mode] == ["download-only", "download-only"]'
ends 0 drive mode One two-way
ends 1 drive add "$one/Shared/inner"
complains 'inside'

# ---- its target refuses: shown, exit status 3, and nothing is deleted
other shortcut '"path":"Shared","lost":true'
ends 3 drive sync
ends 3 drive status
says 'not synced: Shared: is a shared folder:'
here Shared/plan.txt 'plan two' || fail "a share that was lost deleted files"
other shortcut '"path":"Shared","lost":false'
ends 0 drive sync

# ---- removed here: detached, the target is untouched; an empty folder brings it again
rm -rf "$one/Shared"
ends 0 drive sync
ends 0 drive status
says 'its folder was removed or moved here'
at_bobs Team/plan.txt || fail "the target was deleted"
tree | grep -q ' Shared$' || fail "the shortcut was deleted"
mkdir "$one/Shared"
ends 0 drive sync
here Shared/plan.txt 'plan two' || fail "it did not come again"

# ---- renamed online: its folder follows
other move '"path":"Shared","to":"Ours"'
ends 0 drive sync
[ ! -e "$one/Shared" ] || fail "the old place is still there"
here Ours/plan.txt 'plan two' || fail "it did not follow: $(find "$one")"
ends 0 drive list
says 'One/Ours'

# ---- its shortcut is gone: the files stay, neither sent nor deleted
other delete '"path":"Ours"'
ends 3 drive sync
ends 3 drive status
says 'its shortcut is gone online'
here Ours/plan.txt 'plan two' || fail "files went with the shortcut"
! tree | grep -q ' Ours' || fail "they were sent: $(tree)"
at_bobs Team/plan.txt || fail "they were deleted at their owner's"
rm -rf "$one/Ours"
ends 0 drive sync
ends 0 drive list --json
holds '.drives | length == 1'

# ---- ended by its user: files stay; removing the drive takes what is in it along
other shortcut "\"path\":\"Again\",\"to\":{\"user\":\"$bob\",\"path\":\"Team\"}"
ends 0 drive sync
ends 0 drive remove One/Again
says 'is not synced any more'
ends 0 drive sync
[ -e "$one/Again/plan.txt" ] || fail "files went"
ends 0 drive list --json
holds '.drives | length == 1'
rm -rf "$one/Again" && mkdir "$one/Again"
ends 0 drive sync
here Again/plan.txt 'plan two' || fail "it did not come again"
ends 0 drive remove One
[ ! -e "$one/.tidemark-root" ] && [ ! -e "$one/Again/.tidemark-root" ] || fail "a marker stays"
ends 0 drive list --json
holds '.drives == []'
at_bobs Team/plan.txt || fail "the target was deleted"
[ "$(violations)" = '{}' ] || fail "violations: $(violations)"
exit $((failed > 0))
