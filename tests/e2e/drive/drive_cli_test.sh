#!/usr/bin/env bash
# The commands of drives through the program, against OneDrive in the local cloud: a folder that is
# adopted, both directions, conflicts, deletions that wait, ignored paths, a plan that changes nothing,
# files that are compared again.
source "$(dirname "$0")/../stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=5,size=2000 --token tok=ada@example.com
one=$dir/One
graph() { curl -sSf -H 'Authorization: Bearer tok' "$@"; }
put() { graph -o /dev/null -X PUT "$origin/v1.0/me/drive/root:/$1:/content" --data-binary "$2" || fail "put $1"; }
online() { graph -L "$origin/v1.0/me/drive/root:/$1:/content"; }
says() { grep -qF -- "$1" "$dir/out" || fail "no \"$1\" in: $(cat "$dir/out" "$dir/err")"; }
complains() { grep -qF -- "$1" "$dir/err" || fail "no \"$1\" in: $(cat "$dir/out" "$dir/err")"; }
holds() { jq -e "$1" "$dir/out" >/dev/null || fail "not $1: $(cat "$dir/out")"; }
files() { (cd "$one" && find . -type f ! -name '.tidemark-*' ! -path './.tidemark-*' -exec sha256sum {} + | sort -k 2); }
calls() { curl -sSf "$origin/_cloud/stats" | jq "$1"; }

ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok
says 'drive add DIR'
ends 0 drive list; says 'There is no drive'
ends 0 drive status; says 'There is no drive'

# ---- a folder with files is adopted: what is the same online is not transferred
mkdir "$one"
echo same >"$one/same.txt"
echo mine >"$one/both.txt"
put same.txt $'same\n'
put both.txt theirs
ends 0 drive add "$one" --json
holds '.drive == "One" and .mode == "two-way" and .type == "personal" and .entries == 2'
[ -s "$one/.tidemark-root" ] || fail "no marker"
ends 0 drive ignore add One '*.tmp' 'cache/'
ends 0 drive ignore list --json; holds '.patterns == ["*.tmp", "cache/"]'
ends 0 drive ignore remove One 'cache/'
ends 1 drive ignore remove One 'cache/'; complains 'there is no pattern'
ends 1 drive ignore add One '/'; complains 'Nothing was changed'
printf 'skip_file = "a/*.x"\n' >"$dir/config"
ends 1 drive ignore import One "$dir/config" --format onedrive; complains 'line 1'
printf 'skip_file = "*.bak"\nskip_dir = "cache"\n' >"$dir/config"
ends 0 drive ignore import One "$dir/config" --format onedrive --json; holds '.added == 3'
ends 0 drive ignore import One "$dir/config" --format onedrive --json; holds '.added == 0'
touch "$one/x.tmp" "$one/y.bak" "$one/bad:name"
ln -s /etc "$one/link"

# ---- a plan changes nothing on either side
before=$(files)
ends 0 drive plan --json
holds '.drives[0].counts.download == 6 and .drives[0].counts.record == 1 and .drives[0].counts.upload_new == 1'
holds '[.drives[0].actions[] | select(.conflict)] | length > 0'
[ "$before" = "$(files)" ] || fail "a plan changed the folder"
[ "$(online both.txt)" = theirs ] || fail "a plan changed OneDrive"

# ---- both directions; the conflict is kept, and shown
ends 3 drive sync --json
holds '.accounts[0].outcome == "bad_items" and .accounts[0].drives[0].downloaded == 6'
[ "$(cat "$one/both.txt")" = theirs ] || fail "the version from OneDrive has not the name"
[ "$(cat "$one"/both.conflict-*.txt)" = mine ] || fail "the version from here is lost"
[ "$(online "$(basename "$one"/both.conflict-*.txt)")" = mine ] || fail "the copy is not online"
ends 3 drive status --json
holds '.drives[0] | .mounted and .files == 8 and .conflicts == 1 and .owed == [] and .waiting == 0 and .tidemark_unix_ms > 0'
holds '[.drives[0].skipped[] | .path] | sort == ["bad:name", "link", "x.tmp", "y.bak"]'
ends 3 drive status
says 'has a character that OneDrive does not allow'
says 'link: is a link'
says 'x.tmp: is ignored'
ends 3 drive conflicts list --json
holds '.conflicts | length == 1 and .[0].kind == "create_create" and .[0].path == "both.txt"'
id=$(jq .conflicts[0].id "$dir/out")
ends 0 drive conflicts show "$id"; says 'the version from here'
ends 2 drive conflicts resolve "$id" --keep mine; complains 'both, local or remote'
ends 1 drive conflicts resolve 999; complains 'no conflict 999'
ends 0 drive conflicts resolve "$id" --keep local
[ "$(cat "$one/both.txt")" = mine ] || fail "the version from here was not taken"
ends 0 drive sync
[ "$(online both.txt)" = mine ] || fail "the version from here was not sent"
ends 0 drive status --json; holds '.drives[0] | .files == 7 and .conflicts == 0'

# ---- no change: few calls, nothing moves
before=$(files)
ends 0 drive sync --json
holds '.accounts[0].drives[0] | .downloaded == 0 and .uploaded == 0'
[ "$before" = "$(files)" ] || fail "a sync without changes changed files"

# ---- changes of both sides
echo new >"$one/new.txt"
put more.txt more
ends 0 drive sync
[ "$(online new.txt)" = new ] || fail "new.txt is not online"
[ "$(cat "$one/more.txt")" = more ] || fail "more.txt is not here"

# ---- files here compared with what was synced
ends 0 drive verify --json; holds '.drives[0].same == 9'
touch -r "$one/new.txt" "$dir/time"
echo nEw >"$one/new.txt"
touch -r "$dir/time" "$one/new.txt"
echo longer >>"$one/more.txt"
ends 3 drive verify --json
holds '.drives[0] | .damaged == 1 and .changed == 1 and .same == 7'
ends 0 drive sync

# ---- many deletions wait; the rest goes on
for i in $(seq 40); do echo "$i" >"$one/many$i"; done
ends 0 drive sync
rm "$one"/many*
echo later >"$one/later.txt"
ends 3 drive sync; says '40 deletions that wait'
[ "$(online later.txt)" = later ] || fail "deletions that wait kept others from it"
[ "$(online many7)" = 7 ] || fail "a deletion did not wait"
ends 3 drive deletions list --json
holds '.drives[0].deletions | length == 40 and all(.delete == "online")'
listed=$(jq -r .drives[0].listed "$dir/out")
ends 2 drive deletions accept One; complains '--listed'
ends 1 drive deletions accept One --listed 7; complains 'list them again'
ends 0 drive deletions restore One --listed "$listed"
ends 0 drive sync
[ "$(cat "$one/many7")" = 7 ] || fail "many7 did not come back"
rm "$one"/many*
ends 3 drive sync
ends 3 drive deletions list --json
listed=$(jq -r .drives[0].listed "$dir/out")
ends 0 drive deletions accept One --listed "$listed"
ends 0 drive sync
online many7 2>/dev/null && fail "an accepted deletion was not made"
ends 0 drive deletions; says 'No deletion waits'

# ---- a file whose bytes never fit is owed by name, and placed only if a user accepts it
put odd.bin odd
fault '{"method":"graph.download.get","fault":"garbage","rate":1}'
ends 3 drive sync; says '1 owed'
[ ! -e "$one/odd.bin" ] || fail "wrong bytes were placed"
ends 3 drive status; says 'owed: odd.bin: 3 downloads had another size or hash'
ends 1 drive accept One same.txt; complains 'no download'
ends 0 drive accept One odd.bin
ends 0 drive sync
[ -s "$one/odd.bin" ] || fail "an accepted file was not placed"
no_faults
ends 0 drive sync --json; holds '.accounts[0].drives[0] | .downloaded == 0 and .uploaded == 0 and .owed_count == 0'
rm "$one/odd.bin"
ends 0 drive sync

# ---- modes
ends 2 drive mode One sideways; complains 'no mode'
ends 0 drive mode One download-only
echo held >"$one/held.txt"
ends 0 drive sync
online held.txt 2>/dev/null && fail "download-only sent a file"
ends 0 drive mode One two-way
ends 0 drive sync
[ "$(online held.txt)" = held ] || fail "held.txt was not sent afterwards"

# ---- other commands know drives
ends 0 status; says 'drive'
ends 0 account list; says 'ada@example.com'
ends 1 ledger copy "$dir/home/state.db" "$dir/copy.db"; complains 'drive remove'
[ ! -e "$dir/copy.db" ] || [ "$(sqlite3 "$dir/copy.db" 'SELECT count(*) FROM job' 2>/dev/null || echo 0)" = 0 ] ||
    fail "a refused copy copied"
ends 0 backup "$dir/backup" --json; holds '.drive_files == 0'
[ ! -e "$dir/backup/One" ] || fail "a backup copied a user's files"

# ---- removing leaves all files, and the folder can be added again
before=$(files)
ends 0 drive remove One
[ "$before" = "$(files)" ] || fail "removing a drive changed files"
[ ! -e "$one/.tidemark-root" ] || fail "the marker stayed"
[ "$(online new.txt)" != "" ] || fail "removing a drive removed files online"
[ "$(state "SELECT count(*) FROM sqlite_master WHERE name GLOB 'drive_1_*'")" = 0 ] || fail "its tables stayed"
ends 0 drive add "$one" --name again
ends 0 drive sync --json
holds ".accounts[0].drives[0] | .drive == \"again\" and .downloaded == 0 and .uploaded == 2 and .files == 13"

# ---- its account goes: so do the drive and its marker, and no file
before=$(files)
ends 0 account remove ada@example.com
[ "$before" = "$(files)" ] || fail "removing an account changed files"
[ ! -e "$one/.tidemark-root" ] || fail "the marker stayed after its account"
[ "$(online new.txt)" != "" ] || fail "removing an account removed files online"
ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok
ends 0 drive list; says 'There is no drive'
ends 0 drive add "$one"
ends 0 drive sync --json; holds '.accounts[0].drives[0] | .downloaded == 0 and .uploaded == 0'

exit $((failed > 0))
