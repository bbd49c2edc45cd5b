#!/usr/bin/env bash
# Names in two spellings, times that are none, items that come back under another id, and a folder that another program has
# synced before: nothing is transferred that is there already.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=0 --token tok=ada@example.com
ends 0 account add onedrive "$user" --endpoint "$origin" --bearer tok

# ---- a folder that another program has synced is adopted by hashes: not a byte crosses, whatever the times say
curl -sSf -o /dev/null "$origin/_cloud/drive/fill" -d "{\"user\":\"$user\",\"files\":300,\"size\":2500}"
put 'by hand/ä b.txt' 'by hand'
put empty.txt ''
ends 0 drive add "$one"
ends 0 drive sync
same_trees "before"
ends 0 drive remove One
find "$one" -type f -exec touch -d '2001-02-03' {} + # a copy without times, as some programs make it
curl -sSf -o /dev/null -X POST "$origin/_cloud/stats/reset"
ends 0 drive add "$one"
ends 0 drive plan
says '0 downloads (0 B), 0 uploads (0 B), 0 deletions; 302 files are the same on both sides already'
ends 0 drive sync --json
holds '.accounts[0].drives[0] | .downloaded == 0 and .uploaded == 0 and .files == 302 and .conflicts == 0'
[ "$(drive_stat bytes)" = 0 ] || fail "bytes came: $(drive_stat bytes)"
[ "$(calls graph.upload.put)" = 0 ] || fail "bytes went: $(calls graph.upload.put)"
[ "$(calls graph.drive.content.put)" = 0 ] || fail "empty files went"
[ "$(find "$one" -name '*.conflict-*' | wc -l)" = 0 ] || fail "copies: $(find "$one" -name '*.conflict-*')"

# ---- renames in case alone cross, and transfer nothing
put Case.txt case
echo fold >"$one/folder case.txt"
mkdir "$one/Docs"
echo in >"$one/Docs/in.txt"
ends 0 drive sync
curl -sSf -o /dev/null -X POST "$origin/_cloud/stats/reset"
mv "$one/folder case.txt" "$one/FOLDER case.txt"
mv "$one/Docs" "$one/docs"
other move '"path":"Case.txt","to":"cASE.txt"'
ends 0 drive sync
[ "$(tree | grep -c ' FOLDER case.txt$')" = 1 ] || fail "a rename in case did not go online: $(tree | tail -n 5)"
[ "$(tree | grep -c ' docs/in.txt$')" = 1 ] || fail "a folder renamed in case did not go online: $(tree | tail -n 5)"
[ "$(ls "$one" | grep -c '^cASE.txt$')" = 1 ] || fail "a rename in case did not come: $(ls "$one")"
[ ! -e "$one/Case.txt" ] || fail "the old spelling is still here"
[ "$(drive_stat bytes)" = 0 ] && [ "$(calls graph.upload.put)" = 0 ] || fail "a rename transferred bytes"
same_trees "renames in case"

# ---- a name in another Unicode form (as a Mac writes it) is the same name: nothing is sent, renamed or doubled
put $'caf\u00e9.txt' coffee
ends 0 drive sync
here $'caf\u00e9.txt' coffee || fail "it did not come"
mv "$one"/$'caf\u00e9.txt' "$one"/$'cafe\u0301.txt'
before=$(tree)
ends 0 drive sync
[ "$before" = "$(tree)" ] || fail "another form of the name was sent: $(tree | grep caf)"
[ "$(ls "$one" | grep -c '^caf')" = 1 ] || fail "doubled here: $(ls "$one")"
echo more >>"$one"/$'cafe\u0301.txt'
ends 0 drive sync
[ "$(online $'caf%C3%A9.txt')" = 'coffeemore' ] || fail "an edit under the other form was not sent: $(tree | grep caf)"
[ "$(tree | grep -c caf)" = 1 ] || fail "doubled online: $(tree | grep caf)"
other delete '"path":"caf\u00e9.txt"'
ends 0 drive sync
[ "$(ls "$one" | grep -c '^caf')" = 0 ] || fail "its deletion did not come: $(ls "$one")"

# ---- deleted and made again online under the same name: the new bytes take the place, nothing goes to the trash
put again.txt 'first life'
ends 0 drive sync
other delete '"path":"again.txt"'
put again.txt 'second life'
ends 0 drive sync
here again.txt 'second life' || fail "the new item did not come: $(cat "$one/again.txt")"
find "$one/.tidemark-trash" -type f 2>/dev/null | grep -q again && fail "the old one was deleted"
# The same while it was edited here: both are kept.
echo 'edited here' >"$one/again.txt"
other delete '"path":"again.txt"'
put again.txt 'third life'
ends 3 drive sync
here again.txt 'third life' || fail "the new item did not come: $(cat "$one/again.txt")"
[ "$(cat "$one"/again.conflict-*.txt)" = 'edited here' ] || fail "the edit is lost: $(ls "$one")"
ends 3 drive conflicts list --json
ends 0 drive conflicts resolve "$(jq '.conflicts[0].id' "$dir/out")"
ends 0 drive sync

# ---- times that are none: null, the year 1, the future.  The bytes come, with the time at which they came
now=$(date +%s)
fault '{"method":"graph.*","fault":"odd-times","rate":1}'
for i in $(seq 20); do put "timed$i.txt" "timed $i"; done
ends 0 drive sync
for i in $(seq 20); do
    here "timed$i.txt" "timed $i" || fail "timed$i.txt did not come"
    at=$(stat -c %Y "$one/timed$i.txt")
    [ "$at" -ge "$now" ] && [ "$at" -le $(($(date +%s) + 1)) ] || fail "timed$i.txt is of $(stat -c %y "$one/timed$i.txt")"
done
no_faults
curl -sSf -o /dev/null -X POST "$origin/_cloud/stats/reset"
ends 0 drive sync --full
[ "$(drive_stat bytes)" = 0 ] && [ "$(calls graph.upload.put)" = 0 ] || fail "other times transferred bytes"
# Here: a file of the future and one from before 1970.
echo future >"$one/future.txt"
echo past >"$one/past.txt"
touch -d '2099-01-01' "$one/future.txt"
touch -d '1950-01-01' "$one/past.txt"
ends 0 drive sync
time_of() { graph "$origin/v1.0/me/drive/root:/$1" | jq -r .fileSystemInfo.lastModifiedDateTime; }
[ "$(time_of future.txt | cut -c 1-4)" -le "$(date +%Y)" ] || fail "a time of the future was sent: $(time_of future.txt)"
[ "$(online future.txt)" = future ] && [ "$(online past.txt)" = past ] || fail "odd times keep files away"
[ "$(stat -c %y "$one/future.txt" | cut -c 1-4)" = 2099 ] || fail "a user's time was changed"
ends 0 drive sync --json
holds '.accounts[0].drives[0] | .downloaded == 0 and .uploaded == 0'
same_trees "at the end"
exit $((failed > 0))
