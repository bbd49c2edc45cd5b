#!/usr/bin/env bash
# Drives that are watched, against OneDrive in the local cloud: changes here go online by themselves, those
# online come here, also in folders that came a moment ago; a folder that vanishes deletes nothing; the
# same in `tidemark serve`, which is told from which process it must not be taken.
source "$(dirname "$0")/../stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=3,size=2000 --token tok=ada@example.com
one=$dir/One
graph() { curl -sSf -H 'Authorization: Bearer tok' "$@"; }
put() { graph -o /dev/null -X PUT "$origin/v1.0/me/drive/root:/$1:/content" --data-binary "$2" || fail "put $1"; }
online() { [ "$(graph -L "$origin/v1.0/me/drive/root:/$1:/content" 2>/dev/null)" = "$2" ]; }
gone_online() { [ "$(curl -sS -o /dev/null -w '%{http_code}' -H 'Authorization: Bearer tok' "$origin/v1.0/me/drive/root:/$1")" = 404 ]; }
here() { [ "$(cat "$one/$1" 2>/dev/null)" = "$2" ]; }
log() { cat "$dir/watch.log"; }

ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok
ends 1 drive watch
mkdir "$one"
ends 0 drive add "$one"
ends 0 drive ignore add One '*.tmp'
ends 1 drive watch Two
grep -q 'there is no drive "Two"' "$dir/err" || fail "a name that is none: $(cat "$dir/err")"

# ---- drive watch: what was there before, then changes of each kind
echo before >"$one/before.txt"
"$tidemark" --home "$dir/home" --set drive.poll=2s drive watch One >"$dir/watch.out" 2>"$dir/watch.log" &
watch=$!
stage_pids+=("$watch")
until_true 60 online before.txt before || { fail "what was there before: $(log)"; exit 1; }
grep -q 'watching.*One.*1 folders' "$dir/watch.log" || fail "it does not say what it watches: $(log)"
fetched() { [ "$(find "$one" -type f ! -name '.tidemark-*' | wc -l)" -ge 4 ]; }
until_true 60 fetched || fail "what was online: $(find "$one")"

echo new >"$one/new.txt"
until_true 20 online new.txt new || fail "a new file: $(log)"
mkdir -p "$one/a/b/c"
echo deep >"$one/a/b/c/deep.txt"
until_true 20 online a/b/c/deep.txt deep || fail "a tree made at once: $(log)"
echo again >>"$one/a/b/c/deep.txt"
until_true 20 online a/b/c/deep.txt $'deep\nagain' || fail "a file in a folder that came: $(log)"
mv "$one/a/b" "$one/moved"
until_true 20 online moved/c/deep.txt $'deep\nagain' || fail "a folder that moved: $(log)"
until_true 20 gone_online a/b || fail "its old place: $(log)"
echo more >"$one/moved/c/more.txt"
until_true 20 online moved/c/more.txt more || fail "a file in a folder that moved: $(log)"
rm "$one/new.txt"
until_true 30 gone_online new.txt || fail "a deletion: $(log)"
echo no >"$one/no.tmp"
put theirs.txt theirs
until_true 20 here theirs.txt theirs || fail "a file that came online: $(log)"
gone_online no.tmp || fail "an ignored file is online"

# ---- the folder vanishes: nothing is deleted, and it is found again
count() { curl -sSf "$origin/_cloud/drive?user=ada@example.com" | grep -c '^file'; }
files=$(count)
mv "$one" "$dir/away"
until_true 20 grep -q 'watching is in trouble.*removed, moved or unmounted' "$dir/watch.log" || fail "it does not say so: $(log)"
mv "$dir/away" "$one"
echo back >"$one/back.txt"
until_true 40 online back.txt back || fail "after it came back: $(log)"
[ "$(count)" = $((files + 1)) ] || fail "files online: $(count), not $((files + 1))"

# ---- a second process, and the end
"$tidemark" --home "$dir/home" drive watch One >"$dir/follow.out" 2>"$dir/follow.log" &
follow=$!
stage_pids+=("$follow")
until_true 20 grep -q 'One: ' "$dir/follow.out" || fail "a second one shows nothing: $(cat "$dir/follow.log")"
grep -q 'watches the drives already' "$dir/follow.log" || fail "a second one: $(cat "$dir/follow.log")"
# seen at work, however long that takes
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"method":"graph.*","fault":"held"}' || fail slow
head -c 3000000 /dev/urandom >"$one/large.bin"
until_true 30 grep -q ' uploading\|looking for changes' "$dir/follow.out" || fail "no progress: $(cat "$dir/follow.out")"
curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail quick
kill -INT "$follow"
wait "$follow"
ended=$?
[ "$ended" = 0 ] || fail "following ended with $ended: $(cat "$dir/follow.log")"
kill -0 "$watch" || fail "it stopped the other one"
echo handed >"$one/handed.txt"
ends 0 drive sync One
online handed.txt handed || fail "a sync beside it"
kill -INT "$watch"
wait "$watch"
ended=$?
[ "$ended" = 0 ] || fail "it ended with $ended: $(log) $(cat "$dir/watch.out")"

# ---- serve watches all drives, unless it is told not to
start_serve
echo served >"$one/served.txt"
until_true 30 online served.txt served || fail "serve: $(cat "$dir/serve.log")"
ends 0 drive ignore add One 'cache/' # takes effect at once
anew() { [ "$(grep -c 'event=watching.*One' "$dir/serve.log")" = 2 ]; }
until_true 20 anew || fail "other rules: $(cat "$dir/serve.log")"
mkdir "$one/cache"
echo cached >"$one/cache/cached.txt"
echo beside >"$one/beside.txt"
until_true 20 online beside.txt beside || fail "a file after other rules: $(cat "$dir/serve.log")"
gone_online cache || fail "an ignored folder is online"
stop_serve 0
t config set drive.watch false >/dev/null || fail "config set"
start_serve
echo unwatched >"$one/unwatched.txt"
if until_true 5 online unwatched.txt unwatched; then fail "it watches all the same"; fi
ends 0 drive sync
online unwatched.txt unwatched || fail "a sync by serve: $(cat "$dir/serve.log")"
# ---- one account's own settings, while it runs: a list that says no has one account that says yes
watches() { [ "$(grep -c 'event=watching.*One' "$dir/serve.log")" = "$1" ]; }
echo meanwhile >"$one/meanwhile.txt"
ends 0 config set accounts.ada@example.com.drive.watch true
until_true 10 watches 1 || fail "its own drive.watch: $(cat "$dir/serve.log")"
until_true 20 online meanwhile.txt meanwhile || fail "what came before: $(cat "$dir/serve.log")"
ends 0 config set accounts.ada@example.com.drive.poll 1s
put polled.txt polled
until_true 20 here polled.txt polled || fail "its own drive.poll: $(cat "$dir/serve.log")"
ends 0 config set drive.watch true
ends 0 config set accounts.ada@example.com.drive.poll 1h
ends 0 config set accounts.ada@example.com.drive.watch false
rests() { # told, and no sync of an earlier look is left
    grep -q 'setting changed.*drive.watch.*ada@example.com' "$dir/serve.log" &&
        t jobs list --json | jq -e '[.jobs[]? | select(.state == "pending" or .state == "running")] == []'
}
until_true 20 rests || fail "its own drive.watch does not end: $(cat "$dir/serve.log")"
echo resting >"$one/resting.txt"
if until_true 5 online resting.txt resting; then fail "it watches all the same"; fi
ends 0 drive sync # which scans everything: nobody tells it what changed
online resting.txt resting || fail "a sync of what is no longer watched: $(cat "$dir/serve.log")"
stop_serve 0
exit "$failed"
