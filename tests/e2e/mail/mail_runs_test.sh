#!/usr/bin/env bash
# mail_runs_test.sh TIDEMARK CLOUD: removals, a restore and a sync of several accounts in the process
# that has the directory, at once (E12.2, M11-M14); and what it takes with it when it is killed
# (decision 22).
. "$(dirname "$0")/../stage.sh"
start_cloud --seed 7 --mailbox ada@example.com=20 --mailbox bob@example.com=20 --mailbox eve@example.com=20 \
    --mailbox slow@example.com=3 --token a=ada@example.com --token b=bob@example.com --token e=eve@example.com \
    --token s=slow@example.com
for user in ada bob eve slow; do
    t account add gmail "$user@example.com" --endpoint "$origin" --bearer "${user:0:1}" >/dev/null || fail "account add $user"
done
ends 0 mail sync --quiet
trashed() { curl -sSf "$origin/gmail/v1/users/me/messages?labelIds=TRASH&maxResults=500" -H "Authorization: Bearer $1" | jq '.messages // [] | length'; }
batches() { curl -sSf "$origin/_cloud/stats" | jq "[.users.\"$1@example.com\".methods | to_entries[] | select(.key | test(\"modify|Modify\")).value.calls] | add // 0"; }
# For this account no call is answered: a sync of it holds the directory.
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"user":"slow@example.com","method":"gmail.*","fault":"held"}' || fail slow
hold() {
    "$tidemark" --home "$dir/home" mail sync slow@example.com --quiet >"$dir/hold.out" 2>&1 &
    holder=$!
    stage_pids+=("$holder")
    for _ in $(seq 300); do
        t mail status slow@example.com --json 2>/dev/null | jq -e '.accounts[0].engine' >/dev/null && return
        pause
    done
    fail "no process holds the directory: $(cat "$dir/hold.out")"
}
hold

# ---- a dry run there, and one here, say the same
before=$(trashed a)
ends 0 mail archive in:anywhere --mode trash --account ada@example.com --dry-run --json
jq -e '.handed_over and .messages > 0 and (.by_year | length) > 0 and (.by_label | length) > 0' "$dir/out" >/dev/null || fail "dry run: $(cat "$dir/out")"
all=$(jq .messages "$dir/out")
jq 'del(.handed_over)' "$dir/out" >"$dir/there"
[ "$(trashed a)" -eq "$before" ] || fail "a dry run changed something"

# ---- two removals and a sync at once
t mail archive in:anywhere --mode trash --account ada@example.com --yes --json >"$dir/a.out" 2>"$dir/a.err" &
a=$!
t mail archive in:anywhere --mode trash --account bob@example.com --yes --json >"$dir/b.out" 2>"$dir/b.err" &
b=$!
t mail sync eve@example.com --force --json >"$dir/e.out" 2>"$dir/e.err" &
e=$!
wait "$a" || fail "ada: $(cat "$dir/a.out" "$dir/a.err")"
wait "$b" || fail "bob: $(cat "$dir/b.out" "$dir/b.err")"
wait "$e" || fail "eve: $(cat "$dir/e.out" "$dir/e.err")"
for user in a b; do
    jq -e '.handed_over and .removed > 0 and .refused_count == 0' "$dir/$user.out" >/dev/null || fail "$user: $(cat "$dir/$user.out")"
done
[ "$(jq .removed "$dir/a.out")" -eq "$all" ] || fail "ada: $(jq .removed "$dir/a.out") removed, not $all"
[ "$(trashed a)" -eq $((before + all)) ] || fail "ada has $(trashed a) in the trash"
[ "$(jq .manifest "$dir/a.out")" -ne "$(jq .manifest "$dir/b.out")" ] || fail "one manifest for both"

# ---- a restore of one while mail of another is removed
t mail restore --manifest "$(jq .manifest "$dir/a.out")" --yes --json >"$dir/r.out" 2>"$dir/r.err" &
r=$!
ends 0 mail archive in:anywhere --mode trash --account eve@example.com --yes --json
jq -e '.handed_over and .removed > 0' "$dir/out" >/dev/null || fail "eve: $(cat "$dir/out")"
wait "$r" || fail "restore: $(cat "$dir/r.out" "$dir/r.err")"
jq -e --argjson all "$all" '.handed_over and .done.trash.messages == $all and (.refused | length) == 0' "$dir/r.out" >/dev/null || fail "restore: $(cat "$dir/r.out")"
[ "$(trashed a)" -eq "$before" ] || fail "ada still has $(trashed a) in the trash"
# Its plan needs no engine.
ends 0 mail restore --manifest "$(jq .manifest "$dir/b.out")" --dry-run --json
jq -e '.planned.trash.messages > 0' "$dir/out" >/dev/null || fail "a plan: $(cat "$dir/out")"

# ---- the process is killed in the middle of a batch: the command continues in its own process
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"user":"ada@example.com","method":"gmail.users.messages.batchModify","fault":"held","count":1}' || fail latency
t mail archive in:anywhere --mode trash --account ada@example.com --yes --json >"$dir/a.out" 2>"$dir/a.err" &
a=$!
for _ in $(seq 300); do
    [ "$(sqlite3 -cmd '.timeout 5000' "$dir/home/state.db" "SELECT count(*) FROM mail_removal WHERE state = 1")" -gt 0 ] && break
    pause
done
strike "$holder" || fail "the holder had ended: $(cat "$dir/hold.out")"
wait "$a" || fail "after the kill: $(cat "$dir/a.out" "$dir/a.err")"
jq -e --argjson all "$all" '(.handed_over | not) and .removed == $all' "$dir/a.out" >/dev/null || fail "after the kill: $(cat "$dir/a.out")"
[ "$(trashed a)" -eq $((before + all)) ] || fail "after the kill ada has $(trashed a) in the trash"

# ---- interrupted, the other process stops as well; both are killed: a sync does not resume it, not even if its job is retried
ends 0 mail restore --manifest "$(jq .manifest "$dir/a.out")" --yes --json
ends 0 mail sync ada@example.com --quiet
hold
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"user":"ada@example.com","method":"gmail.users.history.list","fault":"held"}' || fail latency
sql() { sqlite3 -cmd '.timeout 5000' "$dir/home/state.db" "$1"; }
unfinished() { sql "SELECT max(id) FROM mail_manifest WHERE planned_ms > 0 AND ended_ms = 0"; }
removing() { sql "SELECT count(*) FROM job JOIN kind ON kind.id = job.kind WHERE kind.name = 'mail.remove' AND job.state IN (0, 1)"; }
# archive ARGUMENT...: in the background, until its batch is under way.
archive() {
    "$tidemark" --home "$dir/home" mail archive "$@" --yes --no-sync --json >"$dir/a.out" 2>"$dir/a.err" &
    a=$!
    stage_pids+=("$a")
    for _ in $(seq 300); do
        [ "$(removing)" -gt 0 ] && [ -n "$(unfinished)" ] && return
        pause
    done
    fail "no batch began: $(cat "$dir/a.out" "$dir/a.err")"
}
archive in:anywhere --mode trash --account ada@example.com
kill -INT "$a"
wait "$a"
[ $? -eq 5 ] || fail "interrupted: $(cat "$dir/a.out" "$dir/a.err")"
left=$(unfinished)
jq -e --arg resume "--resume $left" '.error.hint | contains($resume)' "$dir/a.out" >/dev/null || fail "interrupted: $(cat "$dir/a.out")"
[ "$(removing)" -eq 0 ] || fail "the process still removes"
archive --resume "$left"
strike "$a"
strike "$holder"
curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null || fail calm
calls=$(batches ada)
ends 0 mail sync ada@example.com --quiet
ends 0 jobs retry --kind mail.remove --state canceled --json
[ "$(jq .count "$dir/out")" -gt 0 ] || fail "no job was left: $(cat "$dir/out")"
t mail sync ada@example.com --quiet >"$dir/out" 2>&1
[ "$(batches ada)" -eq "$calls" ] || fail "a sync resumed manifest $left"
ends 0 mail archive --resume "$left" --yes --json
jq -e --argjson all "$all" '.removed == $all' "$dir/out" >/dev/null || fail "resume: $(cat "$dir/out")"

exit "$((failed > 0))"
