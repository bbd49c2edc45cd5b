#!/usr/bin/env bash
# What OneDrive refuses or lies about: each item is shown by name with the reason, nothing is placed or lost, other items go
# on, and it comes by itself when the reason is gone.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=0 --token tok=ada@example.com
join
put first.txt first
ends 0 drive sync
status() { t drive status >"$dir/out" 2>"$dir/err"; }

# ---- bytes of another size, and of another hash, than OneDrive says
put longer.bin 'a file of more than sixteen bytes'
put same.bin 'sixteen bytes ok' # what comes instead has sixteen, too
fault '{"method":"graph.download.get","fault":"garbage","rate":1}'
ends 3 drive sync
says '2 owed'
says '`tidemark drive status` lists what is owed'
status
says 'owed: longer.bin: 3 downloads had another size or hash than OneDrive says'
says 'owed: same.bin: 3 downloads had another size or hash than OneDrive says'
[ ! -e "$one/longer.bin" ] && [ ! -e "$one/same.bin" ] || fail "wrong bytes were placed"
find "$one" -name '*.partial' | grep -q . && fail "wrong bytes are kept: $(ls -la "$one")"
ends 0 drive accept One same.bin
ends 3 drive sync
[ "$(stat -c %s "$one/same.bin" 2>/dev/null)" = 16 ] || fail "an accepted file was not placed"
cmp -s "$one/same.bin" <(printf 'sixteen bytes ok') && fail "the cloud did not lie"
no_faults
[ "$(tree | grep -c ' same.bin$')" = 1 ] || fail "an accepted file changed online"
ends 0 drive sync
here longer.bin 'a file of more than sixteen bytes' || fail "the other file did not come afterwards"
same_trees "after lies"

# ---- a hash in the list that the item does not have
fault '{"method":"graph.drive.delta","fault":"wrong-hash","rate":1}'
put listed.txt listed
ends 0 drive sync
here listed.txt listed || fail "a wrong hash in a list: $(cat "$dir/out")"
no_faults

# ---- malware: said by the list, and said only when its bytes are asked for
put bad.exe evil
other mark '"path":"bad.exe","as":"malware"'
put worse.exe worse
fault '{"method":"graph.download.get","fault":"malware","rate":1}'
t drive sync >"$dir/out" 2>"$dir/err"
code=$?
[ "$code" -eq 3 ] || fail "malware: ended with $code: $(cat "$dir/out" "$dir/err")"
[ ! -e "$one/bad.exe" ] && [ ! -e "$one/worse.exe" ] || fail "malware was placed"
status
says 'bad.exe'
says 'worse.exe'
says 'malware'
no_faults
other delete '"path":"worse.exe"'
other mark '"path":"bad.exe","as":"none"'
ends 0 drive sync
here bad.exe evil || fail "a file that is clean again did not come"

# ---- a name that is too long for this disk
long=$(printf '€%.0s' $(seq 90)) # 90 letters, 270 bytes
put "$long" long
ends 0 drive sync
status
says 'not synced: €€€'
says 'is too long'
[ "$(find "$one" -name '*€*' | wc -l)" = 0 ] || fail "a long name was cut: $(ls "$one")"
[ "$(tree | grep -c '€€')" = 1 ] || fail "a long name was deleted online"
other delete "\"path\":\"$long\""
ends 0 drive sync

# ---- OneDrive is full: uploads wait, downloads come
curl -sSf -o /dev/null "$origin/_cloud/drive" -d "{\"user\":\"$user\",\"total\":1000}"
head -c 5000 /dev/urandom >"$one/too-much.bin"
put comes.txt comes
head -c 5000 /dev/urandom >"$one/too-much-too.bin"
ends 3 drive sync
says '2 owed'
status
says 'owed: too-much.bin: there is no room in this OneDrive: delete something there, or get more'
here comes.txt comes || fail "a full OneDrive keeps downloads away: $(cat "$dir/out")"
[ -s "$one/too-much.bin" ] || fail "the file is lost"
curl -sSf -o /dev/null "$origin/_cloud/drive" -d "{\"user\":\"$user\",\"total\":1000000000}"
ends 0 drive sync
same_trees "with quota again"

# ---- what may only be read, and what is open elsewhere
echo denied >"$one/denied.txt"
fault '{"method":"graph.drive.upload.create","fault":"403","rate":1}'
ends 3 drive sync
status
says 'held: / and all in it: it is read-only online'
gone_online denied.txt || fail "a refused file is online"
here denied.txt denied || fail "a refused file is lost"
no_faults
ends 0 drive sync
[ "$(online denied.txt)" = denied ] || fail "it did not go online when it was allowed"
mv "$one/denied.txt" "$one/renamed.txt"
rm "$one/first.txt"
fault '{"method":"graph.drive.item.update","fault":"locked","rate":1}'
fault '{"method":"graph.drive.item.delete","fault":"locked","rate":1}'
t drive sync --timeout 40s >"$dir/out" 2>"$dir/err"
code=$?
[ "$code" -eq 3 ] || fail "locked items: ended with $code: $(cat "$dir/out" "$dir/err")"
status
says 'owed: renamed.txt'
says 'owed: first.txt'
[ "$(online denied.txt)" = denied ] || fail "a locked item changed online"
[ "$(online first.txt)" = first ] || fail "a locked item was deleted"
no_faults
ends 0 drive sync
[ "$(online renamed.txt)" = denied ] || fail "it was not renamed afterwards"
gone_online first.txt || fail "it was not deleted afterwards"
same_trees "at the end"
exit $((failed > 0))
