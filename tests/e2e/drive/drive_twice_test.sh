#!/usr/bin/env bash
# More than one at once: two syncs of one home, two homes for one folder, a program that writes a file while it is sent, a
# clock that is put back, several drives of which one is broken.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=30,size=3000 --token tok=ada@example.com \
    --drive bob@example.com=4,size=500 --token bob=bob@example.com
join

# ---- two syncs of one home: one works, the other waits for it or hands its wish over; nothing is fetched twice
for i in $(seq 20); do echo "mine $i" >"$one/mine$i.txt"; done
codes=()
for i in 1 2 3; do
    "$tidemark" --home "$dir/home" drive sync >"$dir/sync$i.out" 2>&1 &
    pids[i]=$!
done
for i in 1 2 3; do
    wait "${pids[i]}"
    codes+=($?)
done
[ "${codes[*]}" = '0 0 0' ] || fail "three syncs at once: ${codes[*]}: $(cat "$dir"/sync?.out)"
same_trees "three syncs at once"
[ "$(drive_stat bytes_again)" = 0 ] || fail "fetched twice: $(drive_stat bytes_again)"
[ "$(calls graph.upload.put)" -le 20 ] || fail "sent twice: $(calls graph.upload.put)"

# ---- a second home for the same folder: its marker says that it is taken
second() { timeout 150 "$tidemark" --home "$dir/home2" "$@" >"$dir/out" 2>"$dir/err"; }
second account add onedrive "$user" --endpoint "$origin" --bearer tok || fail "an account of a second home"
marker=$(cat "$one/.tidemark-root")
second drive add "$one"
[ $? -eq 1 ] || fail "a second home took the folder: $(cat "$dir/out")"
complains 'has the marker of a drive already'
[ "$marker" = "$(cat "$one/.tidemark-root")" ] || fail "the marker was changed"
second drive list
says 'There is no drive'
ends 0 drive sync

# ---- a second program that copies the folder with its marker gets no drive of the first one
cp -a "$one" "$dir/Copy"
ends 1 drive add "$dir/Copy" --name copy
complains 'marker of a drive already'

# ---- a file that is written while it is sent: what is online is never half of it, and in the end it is the last version
dd if=/dev/urandom of="$one/growing.bin" bs=1M count=12 2>/dev/null
fault '{"method":"graph.upload.put","fault":"latency","ms":400}'
begin drive sync
sending() { [ "$(calls graph.upload.put)" -ge 21 ]; }
until_true 60 sending || fail "it is not sent: $(cat "$dir/run.err")"
echo more >>"$one/growing.bin"
finish 0
no_faults
ends 0 drive sync
online growing.bin | cmp -s - "$one/growing.bin" || fail "the version online is another one"
[ "$(bin | grep -c growing)" = 0 ] || fail "half a file was online: $(bin)"
same_trees "a file that grows"
# One that never rests: it is left out, the others go on.
(while :; do date +%N >>"$one/log.txt"; done) &
writer=$!
stage_pids+=("$writer")
echo calm >"$one/calm.txt"
t drive sync >"$dir/out" 2>"$dir/err"
code=$?
kill "$writer"
wait "$writer" 2>/dev/null
[ "$code" = 0 ] || [ "$code" = 3 ] || fail "a file that never rests: ended with $code: $(cat "$dir/out" "$dir/err")"
[ "$(online calm.txt)" = calm ] || fail "a file that never rests keeps others away"
ends 0 drive sync
online log.txt | cmp -s - "$one/log.txt" || fail "the last version is not online"

# ---- two drives, one of them not mounted: the other one is synced, and the exit code says that one was not
ends 0 account add onedrive bob@example.com --endpoint "$origin" --bearer bob
ends 0 drive add "$dir/Bob" --account bob@example.com
ends 0 drive sync
mv "$dir/Bob" "$dir/away"
echo goes >"$one/goes.txt"
ends 1 drive sync
says 'not there'
complains 'Nothing was deleted'
[ "$(online goes.txt)" = goes ] || fail "the other drive was not synced"
t drive sync --json >"$dir/out" 2>"$dir/err"
holds '[.accounts[] | select(.account == "ada@example.com")][0].outcome == "done"'
holds '[.accounts[] | select(.account == "bob@example.com")][0].outcome == "failed"'
[ "$(curl -sSf "$origin/_cloud/drive?user=bob@example.com" | grep -c '^file')" = 4 ] || fail "bob's files were deleted"
mv "$dir/away" "$dir/Bob"
ends 0 drive sync

# ---- an account that is refused: the other one goes on
curl -sSf -o /dev/null "$origin/_cloud/token/revoke" -d '{"user":"bob@example.com"}'
echo again >"$one/again.txt"
echo his >"$dir/Bob/his.txt"
ends 4 drive sync
says 'bob@example.com'
says 'account add'
[ "$(online again.txt)" = again ] || fail "the other account was not synced"
[ "$(cat "$dir/Bob/his.txt")" = his ] || fail "his file is lost"
exit $((failed > 0))
