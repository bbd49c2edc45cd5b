#!/usr/bin/env bash
# mail_cli_test.sh TIDEMARK CLOUD: what a user sees of the mirror and does while it runs:
# two syncs at once, status during a sync, Ctrl-C, plain lines, events, the live block on a
# terminal, bad messages, accounts (M6, M6b, decision 10).
. "$(dirname "$0")/../stage.sh"
other=bob@example.com
total=40
serve --seed 11 --quota 2026 --mailbox "$user=$total" \
    --mailbox "$other=3" --token tok-ada="$user" --token tok-bob="$other"
t() { timeout 100 "$tidemark" --home "$dir/home" "$@"; }
fetched() { curl -sS "$origin/_cloud/stats" | jq ".users.\"$user\".fetched.messages // 0"; }

# ---- before anything is there
t mail status >"$dir/out" 2>"$dir/err" && fail "a status without an account"
grep -q 'account add' "$dir/err" || fail "no hint: $(cat "$dir/err")"
t account add gmail "$user" --endpoint "$origin" --bearer tok-ada >"$dir/out" || fail "account add"
[ "$(t mail status --json | jq -r '.accounts[0].last_run')" = never ] || fail "a run before the first"
t mail sync nobody@example.com 2>"$dir/err" && fail "a sync of an unknown account"
t mail bad >"$dir/out" || fail "bad mail of an empty archive: $(cat "$dir/out")"

# ---- a running sync, and all commands that work during it
"$tidemark" --home "$dir/home" mail sync >"$dir/first.out" 2>"$dir/first.err" &
first=$!
for _ in $(seq 200); do
    [ "$(fetched)" -ge 3 ] && break
    kill -0 "$first" 2>/dev/null || break
    pause
done
t mail status >"$dir/out" 2>"$dir/err" || fail "status beside a sync: $(cat "$dir/err")"
grep -q 'and is running' "$dir/out" || fail "it does not say that it runs: $(cat "$dir/out")"
t mail status --json >"$dir/out" || fail "status --json beside a sync"
jq -e '.accounts[0] | .engine and .last_run == "running" and .quota_max_units == 6000 and .quota_used_units > 0
    and (.gaps | length > 0 and all(.to_unix_ms > .from_unix_ms and .state != "covered"))
    and .free_bytes > 0 and .messages_total == '$total "$dir/out" >/dev/null || fail "status: $(cat "$dir/out")"
t account list --json | jq -e '.accounts[0].signed_in == "yes"' >/dev/null || fail "signed in"
grep -rq tok-ada "$dir/out" && fail "a token is shown"

# ---- a second sync joins it; Ctrl-C ends the watching, not the work
"$tidemark" --home "$dir/home" mail sync --json >"$dir/second.out" 2>"$dir/second.err" &
second=$!
"$tidemark" --home "$dir/home" mail sync >"$dir/third.out" 2>"$dir/third.err" &
third=$!
for _ in $(seq 100); do
    grep -q "Process $first works" "$dir/third.err" && grep -q '"progress"' "$dir/second.err" && break
    pause
done
kill -INT "$third"
wait "$third"
code=$?
[ $code -eq 5 ] || fail "a watcher that is interrupted ends with $code: $(cat "$dir/third.err")"
grep -q "process $first continues" "$dir/third.out" || fail "it does not say who continues: $(cat "$dir/third.out")"
kill -0 "$first" || fail "the watcher took the work with it"

# ---- an account more while it runs
t account add gmail "$other" --endpoint "$origin" --bearer tok-bob >"$dir/out" 2>"$dir/err" ||
    fail "account add beside a sync: $(cat "$dir/err")"

# ---- Ctrl-C ends the work; the one that watched takes over and finishes
kill -INT "$first"
wait "$first"
code=$?
[ $code -eq 5 ] || fail "an interrupted sync ends with $code: $(cat "$dir/first.err")"
grep -q 'mail sync. to resume' "$dir/first.out" || fail "how to resume: $(cat "$dir/first.out")"
grep -q "$user: .* of $total .*tidemark" "$dir/first.err" || fail "no plain line: $(cat "$dir/first.err")"
grep -q $'\033' "$dir/first.err" && fail "a terminal was talked to that is none"
wait "$second"
code=$?
[ $code -eq 0 ] || fail "the sync that took over ended with $code: $(tail -n 3 "$dir/second.err")"
[ "$(wc -l <"$dir/second.out")" -eq 1 ] || fail "not one JSON object: $(cat "$dir/second.out")"
jq -e ".accounts[0].stored == $total and .accounts[0].cycles_open == 0" "$dir/second.out" >/dev/null ||
    fail "it did not finish: $(cat "$dir/second.out")"
jq -es 'length > 2 and all(.event == "progress" and .account == "'$user'" and has("left_ms") and has("quota_max_units"))
    and .[-1].stored == '$total' and .[-1].total == '$total' and .[-1].left_ms == 0' "$dir/second.err" >/dev/null ||
    fail "events: $(tail -n 2 "$dir/second.err")"
stats=$(curl -sS "$origin/_cloud/stats")
[ "$(jq ".users.\"$user\".violations" <<<"$stats")" -eq 0 ] || fail "violations: $stats"
again=$(jq ".users.\"$user\".fetched | .total - .messages" <<<"$stats")
[ "$again" -le 20 ] || fail "$again messages were fetched twice"
t mail status "$user" --json | jq -e '.accounts[0] | .last_run == "done" and .gaps == [] and .covered_beyond == []
    and .stored == '$total' and .watermark_unix_ms > 0 and (.engine | not)' >/dev/null || fail "status at the end"
t mail status "$user" >"$dir/out"
grep -q 'gaps *none' "$dir/out" || fail "status: $(cat "$dir/out")"

# ---- the live block, on a terminal of 60 columns
if script -qec true /dev/null >/dev/null 2>&1; then
    on_terminal() {
        TERM=xterm script -qec "stty cols 60 rows 12; '$tidemark' --home '$dir/home' mail sync" /dev/null >"$dir/tty" </dev/null
    }
    on_terminal || fail "a sync on a terminal: $(cat "$dir/tty")"
    grep -qF $'\033[32m[' "$dir/tty" || fail "no bar: $(cat -v "$dir/tty")"
    grep -qF $'\033[?25h' "$dir/tty" || fail "the cursor stays hidden"
    [ "$(grep -oF $'\033[?25l' "$dir/tty" | wc -l)" -eq "$(grep -oF $'\033[?25h' "$dir/tty" | wc -l)" ] ||
        fail "the cursor is hidden more often than shown"
    NO_COLOR=1 on_terminal || fail "a sync without colours"
    grep -qE $'\033\\[[0-9;]*m' "$dir/tty" && fail "NO_COLOR: $(cat -v "$dir/tty")"
    sed -n '/25l/,$p' "$dir/tty" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g; s/\r//g' | grep -E '(msg/s|left )' |
        awk 'length > 59 { bad = 1 } END { exit bad }' || fail "a line is too wide: $(cat -v "$dir/tty")"
else
    echo "script(1) cannot make a terminal here: the live block is not tried"
fi

# ---- a message that cannot be fetched
bad=$(printf 'From: b@example.org\r\nTo: %s\r\nSubject: poison\r\n\r\nx\r\n' "$user" |
    curl -sSf -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$user" | jq -r .id)
printf 'From: b@example.org\r\nSubject: good\r\n\r\nx\r\n' |
    curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$user" || fail "deliver"
curl -sSf -o /dev/null "$origin/_cloud/faults" -d "{\"method\":\"gmail.users.messages.get\",\"id\":\"$bad\",\"fault\":\"500\"}" || fail "plant"
t mail sync "$user" --quiet --set retry.attempts_max=2 >"$dir/out" 2>"$dir/err"
code=$?
[ $code -eq 3 ] || fail "a sync with a bad message ends with $code: $(cat "$dir/out" "$dir/err")"
grep -q 'mail bad' "$dir/out" || fail "it does not say where: $(cat "$dir/out")"
t mail bad --json | jq -e ".items | length == 1 and .[0].item == \"$bad\" and .[0].state == \"bad\"" >/dev/null || fail "mail bad"
t mail bad explain "$bad" >"$dir/out" || fail "explain: $(cat "$dir/out")"
grep -q '500' "$dir/out" || fail "no reason: $(cat "$dir/out")"
t mail bad explain "${bad:0:12}" >"$dir/out" || fail "explain by the beginning of an id: $(cat "$dir/out")"
grep -q '500' "$dir/out" || fail "no reason by the beginning of an id: $(cat "$dir/out")"
t mail bad explain "${bad:0:3}" 2>"$dir/err" && fail "three characters name nothing"
t mail bad explain nothing 2>"$dir/err" && fail "nothing is explained"
t mail bad explain 2>"$dir/err"
[ $? -eq 2 ] || fail "explain without an id is usage"
t mail bad forget 2>"$dir/err"
[ $? -eq 2 ] || fail "there is no mail bad forget"
t mail status "$user" --json | jq -e '.accounts[0] | .bad == 1 and .last_run == "bad_items" and .gaps == []' >/dev/null ||
    fail "status with a bad message: $(t mail status "$user" --json)"

# ---- one that is stored and cannot be read
shard=$(ls "$dir/home/archive/$user"/*.db | head -n 1)
unread=$(sqlite3 "$shard" "SELECT gmail_id FROM message LIMIT 1")
sqlite3 "$shard" "UPDATE message SET mark = 3, problem = 'planted' WHERE gmail_id = '$unread'"
t mail bad --json | jq -e ".unreadable | length == 1 and .[0].id == \"$unread\" and .[0].problem == \"planted\"" >/dev/null ||
    fail "an unreadable message is not named"
[ "$(t mail status "$user" --json | jq '.accounts[0].unreadable')" -eq 1 ] || fail "it is not counted"
t mail bad explain "$unread" | grep -q 'stored byte for byte' || fail "it is not explained"
t mail bad retry "$unread" --json | jq -e '.unreadable == 1 and .still_unreadable == 0 and .count == 0' >/dev/null || fail "retry $unread"
sqlite3 "$shard" "UPDATE message SET mark = 3, problem = 'planted' WHERE gmail_id = '$unread'"
t mail bad explain "$bad" "$unread" --json | jq -e ".messages[0].items[0].item == \"$bad\" and .messages[1].unreadable[0].id == \"$unread\"" >/dev/null || fail "two are not explained"
t mail bad retry "$bad" nothing 2>"$dir/err" && fail "one of two does not exist"
t mail bad --json | jq -e '.items[0].state == "bad"' >/dev/null || fail "it was retried beside one that does not exist"
t mail bad retry "$bad" "$unread" --json | jq -e '.unreadable == 1 and .still_unreadable == 0 and .count == 1' >/dev/null || fail "retry of two"
t mail sync "$user" --quiet --set retry.attempts_max=2 >"$dir/out" 2>"$dir/err"
t mail bad --json | jq -e '.items[0].state == "bad"' >/dev/null || fail "it is not bad again: $(cat "$dir/out" "$dir/err")"

# ---- and both again
curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail "no more faults"
t mail bad retry --account "$user" >"$dir/out" || fail "retry: $(cat "$dir/out")"
grep -q 'retrying 1 message' "$dir/out" || fail "retry: $(cat "$dir/out")"
t mail sync --quiet >"$dir/out" || fail "the sync after the retry: $(cat "$dir/out")"
t mail bad --json | jq -e '.items == [] and .unreadable == []' >/dev/null || fail "bad mail is left"
t mail status --json | jq -e '[.accounts[].stored] == ['$((total + 2))', 3]' >/dev/null || fail "not all is stored"

# ---- an account that is removed
t account remove "$other" >"$dir/out" || fail "remove: $(cat "$dir/out")"
t account remove "$other" 2>"$dir/err" && fail "removed twice"
t account list --json | jq -e ".accounts | all(.account != \"$other\" or (.mail | not))" >/dev/null || fail "it is listed"
[ -d "$dir/home/archive/$other" ] || fail "its archive is gone"
t mail sync --quiet --json | jq -e '.accounts | length == 1' >/dev/null || fail "a sync after a removal"
# Its archive is read if it is named, and no reason to ask which account is meant.
one=$(sqlite3 "$(ls "$dir/home/archive/$user"/*.db | head -n 1)" 'SELECT gmail_id FROM message LIMIT 1')
left=$(sqlite3 "$(ls "$dir/home/archive/$other"/*.db | head -n 1)" 'SELECT gmail_id FROM message LIMIT 1')
t mail show "$one" >"$dir/out" 2>"$dir/err" || fail "an archive that was left is in the way: $(cat "$dir/err")"
t mail show "$left" --account "$other" >"$dir/out" 2>"$dir/err" || fail "an archive that was left: $(cat "$dir/err")"
t account remove "$user" >/dev/null 2>&1 || fail "remove $user"
t mail show "$one" >"$dir/out" 2>"$dir/err" || fail "an id is looked for in all archives: $(cat "$dir/err")"
t mail export "$dir/left" >"$dir/out" 2>"$dir/err" && fail "one of two archives that were left was chosen"
grep -q 'there are 2 mail archives' "$dir/err" && grep -q -- '--account' "$dir/err" || fail "no clear word: $(cat "$dir/err")"
t mail show "$one" --account "$user" >"$dir/out" 2>"$dir/err" || fail "an archive that was left: $(cat "$dir/err")"

echo "$failed failed"
[ "$failed" -eq 0 ]
