#!/usr/bin/env bash
# mail_loss_test.sh TIDEMARK CLOUD: an archive is compared with what the ledger and the manifests
# know about it, never only with itself (M4, M19a).  What is missing is named by verify and
# status, exit code 3; what exists nowhere else is reported until the user accepts it; a damaged shard
# does not keep the others from answering.
. "$(dirname "$0")/../stage.sh"
messages=40

start_cloud --seed 8 --mailbox "$user=$messages,size=3000" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 # no pacing: the cloud has no quota here
status() { t mail status --json >"$dir/out" 2>"$dir/err"; }
count() { sqlite3 "$archive/$1.db" 'SELECT count(*) FROM message'; }
# verify and status say WORDS and end with 3.
misses() { # what words
    t mail verify >"$dir/out" 2>&1
    [ $? -eq 3 ] || fail "$1: verify ended with $?: $(cat "$dir/out")"
    grep -q "$2" "$dir/out" || fail "$1: verify does not say \"$2\": $(cat "$dir/out")"
    t mail status >"$dir/out" 2>&1
    [ $? -eq 3 ] || fail "$1: status did not end with 3: $(cat "$dir/out")"
    grep -q "$2" "$dir/out" || fail "$1: status does not say \"$2\": $(cat "$dir/out")"
}
whole() { # what
    t mail verify >"$dir/out" 2>&1 || fail "$1: verify: $(cat "$dir/out")"
    status || fail "$1: status ended with $?: $(cat "$dir/out" "$dir/err")"
    [ "$(field 'lost.messages | length')" -eq 0 ] || fail "$1: $(field lost)"
}

sign_in
t mail sync --quiet >/dev/null || fail "sync"
t mail sync --quiet >/dev/null || fail "sync"
whole "at the beginning"
cp -r "$archive" "$dir/backup"

# ---- a shard is deleted, emptied, the archive is gone: each is named, and a sync heals it
n=$(count 2022)
rm "$archive"/2022.db*
misses "deleted" "2022.db is missing, with $n message"
t mail sync --quiet >"$dir/out" 2>&1 || fail "sync after a deletion: $? $(cat "$dir/out")"
whole "deleted, after a sync"
: >"$archive/2021.db"
misses "emptied" "2021.db is missing"
t mail sync --quiet >"$dir/out" 2>&1 || fail "sync after an emptied shard: $? $(cat "$dir/out")"
whole "emptied, after a sync"
rm -rf "$dir/home/archive"
misses "all of it" "2021.db is missing"
t mail status >"$dir/out" 2>&1
grep -q 'everything since the beginning is stored' "$dir/out" && fail "status says that everything is stored: $(cat "$dir/out")"
t mail sync --quiet >"$dir/out" 2>&1 || fail "sync after losing everything: $? $(cat "$dir/out")"
whole "all of it, after a sync"

# ---- a truncated shard: the others answer, it is named, and one command heals it
all=$(t mail search in:anywhere --limit 100 --json | jq '.messages | length')
[ "$all" -eq "$messages" ] || fail "$all of $messages are found"
n=$(count 2022)
before=$(TZ=UTC t mail search in:anywhere before:2022 --limit 100 --json | jq '.messages | length')
for bytes in 50 5000 30000; do
    truncate -s "$bytes" "$archive/2022.db"
    rm -f "$archive"/2022.db-*
    t mail search in:anywhere --limit 100 --json >"$dir/out" 2>"$dir/err"
    [ $? -eq 3 ] || fail "a search over a shard of $bytes bytes: exit code"
    [ "$(jq '.messages | length' "$dir/out")" -eq $((messages - n)) ] || fail "$bytes: $(jq '.messages | length' "$dir/out") are found"
    [ "$(jq -r '.broken[0].shard' "$dir/out")" = 2022 ] || fail "$bytes: the shard is not named: $(cat "$dir/out")"
    t mail search in:anywhere --limit 100 >/dev/null 2>"$dir/err"
    grep -q '2022.db cannot be read' "$dir/err" || fail "$bytes: not named: $(cat "$dir/err")"
    # A page opens only the years that it shows, and the next one to see whether there is more.
    t mail search "in:inbox before:2022" in:anywhere --limit 1 --json >"$dir/out" || fail "$bytes: earlier years alone: $? $(jq -c .broken "$dir/out")"
    t mail search in:anywhere --oldest-first --limit $((before - 1)) --json >"$dir/out" || fail "$bytes: the years before: $? $(jq -c .broken "$dir/out")"
    t mail search in:anywhere --oldest-first --limit 1 --after "$(jq -r .next "$dir/out")" --json >"$dir/out"
    [ $? -eq 3 ] && [ "$(jq -r '.broken[0].shard' "$dir/out")" = 2022 ] || fail "$bytes: the page before it: $(jq -c .broken "$dir/out")"
    id=$(sqlite3 "$archive/2023.db" 'SELECT gmail_id FROM message LIMIT 1')
    t mail show "$id" >/dev/null 2>&1
    [ $? -eq 3 ] || fail "$bytes: a message of another year is not shown"
    misses "truncated to $bytes" "2022"
    t mail sync --quiet >"$dir/out" 2>&1 && fail "$bytes: a sync took no notice: $(cat "$dir/out")"
    grep -q '2022.db' "$dir/out" && grep -q 'mail heal' "$dir/out" || fail "$bytes: sync says $(cat "$dir/out")"
    t mail heal --quiet >"$dir/out" 2>&1 || fail "$bytes: heal: $? $(cat "$dir/out")"
    [ "$(count 2022)" -eq "$n" ] || fail "$bytes: $(count 2022) of $n are back"
    [ "$(find "$archive" -path '*damaged-*' -name 2022.db -size "${bytes}c" | wc -l)" -eq 1 ] || fail "$bytes: the file was not kept"
    whole "truncated to $bytes, healed"
    rm -rf "$archive"/damaged-*
done

# ---- a file of another account under the name of a shard: every command says to move it away, and
# heal, which does not touch it, is not named
mv "$archive/2022.db" "$dir/ours.db"
cp "$dir/ours.db" "$archive/2022.db"
sqlite3 "$archive/2022.db" "UPDATE shard SET account = 'bob@example.com'" || fail "sqlite3"
misses "foreign" "2022.db cannot be read.* Move the file"
t mail verify >"$dir/out" 2>&1
grep -q 'mail heal' "$dir/out" && fail "verify names heal for a foreign file: $(cat "$dir/out")"
t mail search in:anywhere --limit 100 --json >"$dir/out" 2>/dev/null
[[ "$(jq -r '.broken[0].remedy' "$dir/out")" = 'Move the file'* ]] || fail "search does not say what to do: $(cat "$dir/out")"
for command in sync heal; do
    t mail "$command" --json >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] || fail "$command over a foreign file: exit code, $(cat "$dir/out")"
    [[ "$(field remedy)" = 'Move the file'*'mail sync'* ]] || fail "$command names no way out: $(field reason) $(field remedy)"
done
[ "$(sqlite3 "$archive/2022.db" 'SELECT account FROM shard')" = bob@example.com ] || fail "the foreign file was touched"
rm "$archive"/2022.db*
t mail sync --quiet >"$dir/out" 2>&1 || fail "sync without the foreign file: $? $(cat "$dir/out")"
whole "the foreign file is moved away"

# ---- what exists nowhere else: deleted by the archiver, or gone from Gmail
gone=$(sqlite3 "$archive/2023.db" 'SELECT gmail_id FROM message ORDER BY id LIMIT 1')
curl -sSf "$origin/_cloud/mail/delete" -d "{\"user\":\"$user\",\"ids\":[\"$gone\"]}" >/dev/null
t mail sync --quiet >/dev/null || fail "sync"
t mail archive 'in:anywhere after:2023/01/01 before:2024/01/01' --mode delete --yes --json >"$dir/out" 2>/dev/null || fail "archive: $(cat "$dir/out")"
removed=$(jq .removed "$dir/out")
[ "$removed" -gt 0 ] || fail "nothing was removed"
copies=$((removed + 1))
status
[ "$(field copies.only_here)" -ge 1 ] || fail "only here: $(field copies)"
cp -r "$archive" "$dir/full"
rm "$archive"/2023.db*
misses "only copies" "$copies message.* nowhere else"
grep -q 'tidemark mail lost' "$dir/out" || fail "nothing says what to do: $(cat "$dir/out")"
for _ in 1 2 3; do # it stays
    t mail sync --quiet >"$dir/out" 2>&1
    [ $? -eq 3 ] || fail "sync hides the loss: $(cat "$dir/out")"
    grep -q "$copies message.* nowhere else" "$dir/out" || fail "sync does not tell: $(cat "$dir/out")"
done
misses "only copies, after syncs" "$copies message.* nowhere else"
t mail lost >"$dir/out" 2>&1
[ $? -eq 3 ] || fail "lost: exit code"
grep -q "$gone" "$dir/out" || fail "lost does not name $gone: $(cat "$dir/out")"
[ "$(grep -cE '^  lost +[0-9a-f]{16}$' "$dir/out")" -eq "$copies" ] || fail "lost names not all: $(cat "$dir/out")"
# The backup comes back: nothing is lost any more.
rm -f "$archive"/2023.db*
cp "$dir/full/2023.db" "$archive/"
t mail sync --quiet >"$dir/out" 2>&1 || fail "with the backup: $? $(cat "$dir/out")"
t mail sync --quiet >"$dir/out" 2>&1 || fail "with the backup, again: $? $(cat "$dir/out")"
whole "the backup is back"
# It is lost for good, and accepted.
rm "$archive"/2023.db*
t mail sync --quiet >/dev/null 2>&1
misses "for good" "$copies message.* nowhere else"
# A sync has the archive open: it records it.
curl -sSf -o /dev/null -X POST -d '{"method":"gmail.users.history.list","fault":"latency","ms":600000}' "$origin/_cloud/faults" || fail "faults"
begin_sync() {
    "$tidemark" --home "$dir/home" mail sync --json >/dev/null 2>"$dir/sync.err" &
    started+=($!)
    stage_pids+=($!)
    # It need not listen yet: a command waits for an engine that is starting.
    until_true 20 grep -q "engine, process $!," "$dir/home/engine.lock" || fail "no sync: $(cat "$dir/sync.err")"
}
is_asked() { [ "$(sqlite3 "$dir/home/state.db" "SELECT count(*) FROM job JOIN kind ON kind.id = kind WHERE name = 'mail.accept' AND state = 0")" -gt 0 ]; }
# ask_to_accept: a command that waits for the sync, which cannot do it yet.
ask_to_accept() {
    begin_sync
    t jobs pause --kind mail.accept >/dev/null || fail "pause"
    "$tidemark" --home "$dir/home" mail lost accept >"$dir/out" 2>&1 &
    asks=$!
    stage_pids+=("$asks")
    until_true 20 is_asked || fail "nothing was asked: $(cat "$dir/out")"
}
# Both are killed: what was asked is never done.
ask_to_accept
strike "$asks" || fail "accept ended: $(cat "$dir/out")"
strike "${started[-1]}" || fail "the sync ended: $(cat "$dir/sync.err")"
t jobs resume --kind mail.accept >/dev/null || fail "resume"
begin_sync
is_left() { ! is_asked; }
until_true 20 is_left || fail "the job is left"
kill -TERM "${started[-1]}"
wait "${started[-1]}"
misses "asked of one that was killed" "$copies message.* nowhere else"
# Only the sync is killed: the command does it itself.
sqlite3 "$dir/home/state.db" ".backup $dir/lost.db" || fail "sqlite3"
ask_to_accept
strike "${started[-1]}" || fail "the sync ended: $(cat "$dir/sync.err")"
wait "$asks" || fail "accept after the sync was killed: $? $(cat "$dir/out")"
t jobs resume --kind mail.accept >/dev/null || fail "resume"
whole "accepted by the command"
rm "$dir/home"/state.db*
cp "$dir/lost.db" "$dir/home/state.db"
misses "the ledger before" "$copies message.* nowhere else"
begin_sync
t mail lost accept >"$dir/out" 2>&1 || fail "accept: $(cat "$dir/out")"
grep -q 'the loss is accepted' "$dir/out" || fail "accept: $(cat "$dir/out")"
whole "accepted"
kill -TERM "${started[-1]}"
wait "${started[-1]}"
curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail "faults"
t mail sync --quiet >"$dir/out" 2>&1 || fail "accepted, sync: $? $(cat "$dir/out")"
t mail lost >"$dir/out" 2>&1 || fail "accepted, lost: $(cat "$dir/out")"

# ---- a new shard is lost after an interrupted run: what the run did not do again is fetched again
rm -rf "$dir/home"
for i in 1 2 3 4 5 6; do
    printf 'From: b@example.org\r\nSubject: old %s\r\n\r\nold\r\n' "$i" >"$dir/old.eml"
    curl -sSf -o /dev/null -X POST -H 'Content-Type: message/rfc822' --data-binary @"$dir/old.eml" \
        "$origin/_cloud/mail?user=$user&date=1000000000000" || fail "old mail"
done
gets() { curl -sSf "$origin/_cloud/stats" | jq ".users[\"$user\"].methods[\"gmail.users.messages.get\"].calls"; }
wanted=$(($(gets) + 4)) # the fourth of the oldest slice is not answered
curl -sSf -o /dev/null "$origin/_cloud/faults" \
    -d '{"method":"gmail.users.messages.get","rate":1,"after":3,"fault":"latency","ms":60000}' || fail "fault"
sign_in
"$tidemark" --home "$dir/home" --set workers.count=1 --set workers.reserved_interactive=0 \
    mail sync --quiet >"$dir/out" 2>&1 &
pid=$!
while kill -0 "$pid" 2>/dev/null && [ "$(gets)" -lt "$wanted" ]; do sleep 0.05; done
kill -INT "$pid"
wait "$pid"
curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail "faults"
[ "$(count 2001)" -eq 3 ] || fail "an interrupted run stored $(count 2001) of 3: $(cat "$dir/out")"
rm "$archive"/2001.db*
t mail sync --quiet >"$dir/out" 2>&1 || fail "after an interrupted run: $? $(cat "$dir/out")"
[ "$(count 2001)" -eq 6 ] || fail "a new shard was lost, and $(count 2001) of 6 are fetched"
whole "a new shard was lost"

# ---- a run is killed before any of its jobs ended: the next run records what it stored, even if it
# fetches nothing; a loss after that is noticed
rm -rf "$dir/home"
sign_in
known() { sqlite3 "$dir/home/state.db" 'SELECT count(*) FROM mail_shard' 2>/dev/null; }
# killed_when AFTER COMMAND...: a sync of which the server answers AFTER fetches, killed when COMMAND is true.
killed_when() {
    curl -sSf -o /dev/null "$origin/_cloud/faults" \
        -d '{"method":"gmail.users.messages.get","rate":1,"after":'"$1"',"fault":"latency","ms":60000}' || fail "fault"
    shift
    "$tidemark" --home "$dir/home" --set workers.count=1 --set workers.reserved_interactive=0 \
        mail sync --quiet >"$dir/out" 2>&1 &
    pid=$!
    while kill -0 "$pid" 2>/dev/null && ! "$@"; do sleep 0.05; done
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null
    curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail "faults"
}
three_stored() { [ "$(count 2001 2>/dev/null)" = 3 ]; }
is_recorded() { [ "$(known)" = 1 ]; }
killed_when 3 three_stored
[ "$(known)" -eq 0 ] || fail "$(known) shards are known although no job ended: the test shows nothing"
killed_when 0 is_recorded
three_stored || fail "the second run fetched something: the test shows nothing"
rm "$archive"/2001.db*
misses "a killed run" "2001.db is missing, with 3 messages"

echo "$failed failed"
[ "$failed" -eq 0 ]
