#!/usr/bin/env bash
# What a sync promises about transfers: both directions go on at once, a large file keeps no other waiting, what was
# transferred before a kill stays, half of a file is continued, and a server's error costs no file.  Judged by the cloud's
# count of calls and bytes and by the order in which things end, not by speed.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
options=()
for name in both large down up half error; do options+=(--token "$name=$name@example.com"); done
serve --quota off --drive both@example.com=0 --drive large@example.com=60,size=100 --drive down@example.com=100,size=20000 \
    --drive up@example.com=0 --drive half@example.com=0 --drive error@example.com=10,size=300 "${options[@]}"
# fresh NAME: another user, an empty folder and a home without a memory.
fresh() {
    no_faults
    user=$1@example.com token=$1 one=$dir/$1
    rm -rf "$dir/home"
    mkdir "$one"
    curl -sSf -o /dev/null -X POST "$origin/_cloud/stats/reset"
    join --name One
}
partials() { find "$one" -name '.tidemark-*.partial' -size "+${1:-0}c" 2>/dev/null | grep -q .; }
synced() { [ "$(t drive status --json | jq '.drives[0].files')" = "$1" ]; }
count_of() { find "$one" -type f ! -name '.tidemark-*' ! -name 'mine*' | wc -l; }

# ---- both directions at once: with the same rate and the same bytes each way, both take little longer than one.  A sync
# that did one after the other would take twice as long.
fresh both
seconds() { # DOWN UP: how long a sync of four files in each wanted direction takes
    local i began
    for i in 1 2 3 4; do
        [ "$1" = 0 ] || put_made "down-$3-$i.bin" 2000000 "$RANDOM$i"
        [ "$2" = 0 ] || head -c 2000000 /dev/urandom >"$one/up-$3-$i.bin"
    done
    began=$(date +%s%N)
    t drive sync --quiet --set bandwidth.down=2MB --set bandwidth.up=2MB >/dev/null || fail "a sync with limits"
    echo $((($(date +%s%N) - began) / 1000000))
}
# On a machine that does not reach the limits (4 s each) it is the processor that both share.
overlap() { [ $((both * 100)) -le $((longer > 5000 ? (down + up) * 80 : longer * 115)) ]; }
for try in 1 2 3; do # a machine that stops for a second is no proof
    down=$(seconds 1 0 "d$try")
    up=$(seconds 0 1 "u$try")
    both=$(seconds 1 1 "b$try")
    longer=$((down > up ? down : up))
    overlap && break
done
overlap || fail "both directions took $both ms, down $down, up $up"
[ "$longer" -ge 2500 ] || fail "the limits did not hold: down $down ms, up $up"
same_trees "after both directions"

# ---- a large file keeps nobody waiting: answers trickle, so that four large files take minutes; all small ones, in both
# directions, are there long before
fresh large
for i in 1 2 3 4; do put_made "large$i.bin" 500000000 "$i"; done
for i in $(seq 20); do echo "$i" >"$one/mine$i.txt"; done
fault '{"method":"graph.download.get","fault":"slow","bytes_per_s":2000000}'
begin drive sync
small_done() { [ "$(count_of)" = 60 ] && [ "$(tree | grep -c ' mine')" = 20 ]; }
until_true 60 small_done || fail "small files wait for large ones: $(count_of) of 60 here, $(tree | grep -c ' mine') of 20 online: $(t status --json)"
until_true 20 partials || fail "no large file is on its way: $(ls -la "$one")"
ls "$one"/large* >/dev/null 2>&1 && fail "a large file was finished first"
kill -0 "$running" 2>/dev/null || fail "the sync has ended: $(cat "$dir/run.out" "$dir/run.err")"
ends 0 drive status
says 'downloading 4 files (1.9 GiB)'

# ---- what changes here while they run is planned within five seconds, by a second command
echo during >"$one/during.txt"
t drive sync --no-wait >/dev/null || fail "a sync while one runs"
until_true 30 online during.txt || fail "a change during a transfer waits: $(cat "$dir/run.err")"
partials || fail "the large files were done before"
wrote=$(($(stat -c %.3Y "$one/during.txt" | tr -d .)))
planned=$(state "SELECT min(created) FROM job WHERE json_extract(payload, '\$.name') = 'during.txt'")
[ $((planned - wrote)) -le 5000 ] || fail "it was planned $((planned - wrote)) ms after it was written"
kill -INT "$running"
finish 5
[ "$(tree | grep -c '^file')" = 85 ] || fail "an interrupt changed the drive: $(tree | grep -c '^file')"

# ---- a kill after 99 of 100 downloads: one is fetched again at most
fresh down
fault '{"method":"graph.download.get","after":99,"rate":1,"fault":"stall-body","ms":100000}'
begin drive sync
until_true 60 synced 99 || fail "99 of 100 did not come: $(t drive status)"
strike "$running" || fail "it had ended before"
no_faults
ends 0 drive sync --json
holds '.accounts[0].drives[0].files == 100'
[ "$(drive_stat bytes_again)" -le 20000 ] || fail "fetched again: $(drive_stat bytes_again) bytes"
[ "$(drive_stat downloads)" -le 101 ] || fail "downloads: $(drive_stat downloads)"
same_trees "after a kill of downloads"

# ---- the same upwards; the last one was taken by the server, whose answer is lost with the process
fresh up
for i in $(seq 100); do head -c 20000 /dev/urandom >"$one/g$i.bin"; done
fault '{"method":"graph.upload.put","after":99,"rate":1,"fault":"stall-start","ms":100000}'
begin drive sync
until_true 60 synced 99 || fail "99 of 100 were not sent: $(t drive status)"
strike "$running" || fail "it had ended before"
no_faults
ends 0 drive sync --json
holds '.accounts[0].drives[0] | .files == 100 and .conflicts == 0'
[ "$(calls graph.upload.put)" -le 101 ] || fail "uploads: $(calls graph.upload.put)"
same_trees "after a kill of uploads"

# ---- half of a file: an upload sends one fragment (5 MiB) again at most, a download less than a piece
fresh half
head -c 26000000 /dev/urandom >"$one/up.bin" # five fragments
fault '{"method":"graph.upload.put","after":3,"rate":1,"fault":"stall-start","ms":100000}'
begin drive sync
fourth() { [ "$(calls graph.upload.put)" -ge 4 ]; }
until_true 60 fourth || fail "four fragments were not sent: $(calls graph.upload.put)"
strike "$running" || fail "it had ended before"
no_faults
tree | grep -q up.bin && fail "half of a file can be seen online"
ends 0 drive sync
[ "$(calls graph.upload.put)" -le 6 ] || fail "fragments that were sent: $(calls graph.upload.put), not 5 or 6"
[ "$(calls graph.drive.upload.create)" = 1 ] || fail "sessions: $(calls graph.drive.upload.create)"
put_made down.bin 30000000 9
fault '{"method":"graph.download.get","fault":"stall-body","ms":100000}'
begin drive sync
until_true 60 partials 14000000 || fail "half of the file did not come: $(ls -la "$one")"
strike "$running" || fail "it had ended before"
[ ! -e "$one/down.bin" ] || fail "half of a file has its name"
no_faults
ends 0 drive sync
# The cloud counts an answer when it begins, and half of the first one was never sent.
[ "$(drive_stat bytes_again)" -le $((15000000 + 1048576)) ] || fail "fetched again: $(drive_stat bytes_again) bytes"
same_trees "after half files"

# ---- one error of the server costs no file, in neither direction, wherever it strikes
fresh error
for i in $(seq 10); do echo "h $i" >"$one/h$i.txt"; done
for method in graph.download.get graph.upload.put graph.drive.upload.create graph.drive.item.get graph.drive.delta; do
    fault "{\"method\":\"$method\",\"count\":1,\"fault\":\"500\"}"
done
ends 0 drive sync
same_trees "after errors of the server"
[ "$(curl -sSf "$origin/_cloud/faults" | jq '[.. | .struck? // empty] | add')" = 5 ] || fail "no error struck: $(curl -sSf "$origin/_cloud/faults")"

# ---- an item that fails again and again is owed by name; the token goes on, others come, and it comes by itself
put failing.txt failing
echo easy >"$one/easy.txt"
fault '{"method":"graph.download.get","rate":1,"fault":"500"}'
ends 3 drive sync
says '1 owed'
tree | grep -q ' easy.txt$' || fail "another file was not sent"
ends 3 drive status
says 'owed: failing.txt'
no_faults
ends 0 drive sync
here failing.txt failing || fail "it did not come in the next run: $(cat "$dir/out")"
ends 0 drive status
[ "$(violations)" = '{}' ] || fail "violations: $(violations)"
exit $((failed > 0))
