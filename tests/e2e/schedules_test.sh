#!/usr/bin/env bash
# schedules_test.sh TIDEMARK CLOUD: what users schedule runs at its time in `tidemark serve`, once per slot also
# over restarts and kills, and each run is shown with its result (E8.1).
. "$(dirname "$0")/stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
start_cloud --seed 5 --mailbox "$user=12" --mailbox bob@example.com=1 --token tok-ada="$user" --token tok-bob=bob@example.com
ends 0 account add gmail "$user" --endpoint "$origin" --bearer tok-ada
of() { # NAME FILTER: of `schedule list`
    t schedule list --json 2>"$dir/err" | jq -e ".schedules[] | select(.name == \"$1\") | $2" >/dev/null
}
struck() { curl -sS "$origin/_cloud/faults" | jq -e '[.. | .struck? // 0] | add > 0'; }
shown() { of "$@" || fail "line ${BASH_LINENO[0]}: $1 is not $2: $(t schedule list --json)"; }

# ---- what can be, and what cannot
ends 0 schedule list
for command in 'backup' 'mail sync' 'mail verify' 'mail archive' 'console sync'; do
    grep -qE "^  $command " "$dir/out" || fail "$command is not offered: $(cat "$dir/out")"
done
ends 2 schedule add mail sync
ends 2 schedule add --at 'daily 25:00' mail sync
ends 2 schedule add --at '0 0 31 2 *' mail sync
ends 2 schedule add --at 'every 15min' mail
ends 2 schedule add --at 'every 15min' mail show 5
grep -q 'These can: backup, mail sync' "$dir/err" || fail "what can: $(cat "$dir/err")"
ends 2 schedule add --at 'every 15min' mail sync --jitter soon
ends 2 schedule add --at 'every 15min' --name 'a b' mail sync
ends 2 schedule add --at 'every 15min' -- mail sync --no-such-flag
# Removing mail: nobody is there to be asked, so the user says so.
ends 2 schedule add --at 'weekly sun 04:00' -- mail archive --older-than 1y
grep -q -- '--yes' "$dir/err" || fail "confirmation: $(cat "$dir/err")"
# refused CODE WORDS COMMAND...: what would fail at each of its times is not stored, and the words say what is missing.
refused() {
    ends "$1" schedule add --at 'weekly sun 04:00' -- "${@:3}"
    grep -qF -- "$2" "$dir/err" || fail "line ${BASH_LINENO[0]}: \"$2\" is not said: $(cat "$dir/err")"
}
refused 2 'Give a query or a filter' mail archive --yes
refused 2 'older_than' mail archive --yes --older-than soon
refused 2 'nothing in it' mail archive --yes '()'
refused 2 'no letter and no digit' mail archive --yes 'from:ada !!!'
refused 2 'there is no mode' mail archive --yes --older-than 1y --mode shred
refused 2 '--resume' mail archive --yes --resume 1
refused 1 'no mail account "bob@example.com"' mail archive --yes --older-than 1y --account bob@example.com
refused 1 'no mail account "bob@example.com"' mail sync bob@example.com
refused 1 'no mail account "bob@example.com"' mail verify --account bob@example.com
refused 2 '--sample' mail verify --sample some
refused 2 '--since' mail sync --since soon
refused 2 '--timeout' mail sync --timeout soon
refused 2 '--max' mail sync --max 5
refused 1 'sc-domain:example.org was not added' console sync sc-domain:example.org
refused 1 'sign-in "other"' console sync --name other
refused 2 '--workers' console sync --workers 0
refused 2 'missing argument: ' backup
refused 2 'from / on' backup copy
refused 2 'missing argument: ' mail export
# A flag of the command without the `--` before it.
ends 2 schedule add --at 'every 15min' mail sync --timeout 5m
grep -qF 'goes after `--`: `tidemark schedule add ... -- mail sync --timeout ...`' "$dir/err" || fail "no --: $(cat "$dir/err")"
ends 2 schedule add --nam x mail sync
grep -qF 'Did you mean --name?' "$dir/err" || fail "a flag of its own: $(cat "$dir/err")"
ends 0 schedule list --json
[ "$(jq '.schedules | length' "$dir/out")" = 0 ] || fail "a refused one was stored: $(cat "$dir/out")"
# Accounts may be added after their schedules; with two of them, which one is archived or verified must be said.
ends 0 schedule add --at 'daily 06:00' console sync
ends 0 schedule remove console-sync
for name in ada bob; do
    "$tidemark" --home "$dir/two" account add gmail "$name@example.com" --endpoint "$origin" --bearer "tok-$name" >/dev/null || fail "add $name"
done
for command in 'mail verify' 'mail archive --older-than 1y --yes'; do
    read -ra words <<<"$command"
    "$tidemark" --home "$dir/two" schedule add --at 'weekly sun 04:00' -- "${words[@]}" >"$dir/out" 2>"$dir/err" && fail "$command of two: $(cat "$dir/out")"
    grep -q 'Name one with --account' "$dir/err" || fail "$command of two: $(cat "$dir/err")"
done

# ---- without serve they are stored and do not run
ends 0 schedule add --at 'every 1s' mail sync
ends 0 schedule add --at 'daily 03:30' --jitter 10m --name nightly backup "$dir/copy"
ends 1 schedule add --at 'daily 03:30' --name nightly backup "$dir/copy"
grep -q 'another --name' "$dir/err" || fail "the same name: $(cat "$dir/err")"
ends 0 schedule add --at 'weekly sun 04:00' -- mail archive --older-than 1y --yes
ends 0 schedule list
grep -q 'nothing starts by itself' "$dir/out" || fail "not served: $(cat "$dir/out")"
shown mail-sync '.last == "never" and .runs == 0 and .command == ["mail", "sync"]'
now_ms=$(($(date +%s) * 1000))
shown nightly ".next_unix_ms > $now_ms and .next_unix_ms < $now_ms + 86400000 + 600000 and .jitter_ms == 600000"
shown mail-archive '.command == ["mail", "archive", "--older-than", "1y", "--yes"]'

# ---- with serve they run: again and again, each slot once
start_serve
until_true 60 of mail-sync '.runs >= 3 and .last == "done"' || fail "it does not run: $(t schedule list --json) $(cat "$dir/serve.log")"
ends 0 mail status --json
jq -e '.accounts[0].stored == 12' "$dir/out" >/dev/null || fail "what it fetched: $(cat "$dir/out")"
until_true 60 of mail-sync '.last == "done" and .ended_unix_ms >= .started_unix_ms and .next_unix_ms > .started_unix_ms and (.result | contains("stored"))' ||
    fail "its result: $(t schedule list --json)"
shown nightly '.last == "never"'
# New mail arrives without a command.
printf 'From: b@example.org\r\nSubject: x\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
    --data-binary @- "$origin/_cloud/mail?user=$user" || fail deliver
stored() { t mail status --json | jq -e ".accounts[0].stored == $1"; }
until_true 60 stored 13 || fail "not fetched: $(t mail status --json)"

# ---- a run that fails is shown and logged, and its next times are tried
ends 0 schedule add --at 'every 1s' --name impossible backup /dev/null/copy
until_true 60 of impossible '.last == "failed" and .runs >= 2 and .exit_code == 1 and (.result | contains("/dev/null"))' ||
    fail "its failure: $(t schedule list --json)"
grep -q 'scheduled run failed' "$dir/serve.log" || fail "not logged: $(cat "$dir/serve.log")"
for name in impossible mail-sync; do
    ends 0 schedule remove "$name"
    of "$name" true && fail "$name is still there"
done
ends 1 schedule remove mail-sync
ends 1 schedule run mail-sync

# ---- by hand
ends 0 schedule run nightly
[ -f "$dir/copy/state.db" ] || fail "no copy: $(ls "$dir/copy")"
shown nightly '.last == "done" and .runs == 1 and .runner == "command"'

# ---- removed and added again while it runs: the new one does not wait for the old one's end
fault '{"method":"gmail.*","fault":"latency","ms":600000}'
for _ in 1 2; do
    ends 0 schedule add --at 'every 2s' --name often mail sync
    until_true 60 of often '.last == "running" and .runs == 1' || fail "it did not start: $(t schedule list --json)"
    ends 0 schedule remove often
done

# ---- killed in the middle: the next start runs it again, and only once
ends 0 schedule add --at 'every 2s' --name often mail sync
until_true 60 of often '.last == "running"' || fail "it did not start: $(t schedule list --json)"
strike "$server" || fail "serve had ended"
shown often '.last == "running" and .runs == 1'
no_faults
# The clock was an hour ahead and was set right since.
state "UPDATE serve_schedule SET started_unix_ms = started_unix_ms + 3600000, covered_unix_ms = covered_unix_ms + 3600000 WHERE name = 'often'"
start_serve
until_true 60 of often '.runs >= 2 and .last == "done"' || fail "not run again: $(t schedule list --json) $(cat "$dir/serve.log")"
ends 0 schedule remove often

# ---- stopped in the middle: in time, and the run is not recorded as ended
fault '{"method":"gmail.*","fault":"latency","ms":600000}'
ends 0 schedule add --at 'every 2s' --name often mail sync
until_true 60 of often '.last == "running"' || fail "it did not start: $(t schedule list --json)"
stop_in_time 0 5
shown often '.last == "running"'
no_faults
start_serve
until_true 60 of often '.runs >= 2 and .last == "done"' || fail "not run again after a stop: $(t schedule list --json)"
ends 0 schedule remove often
stop_serve 0

# ---- the engine puts the archiver's job back before its run sees the stop: the run does not wait for the job
start_serve --set workers.stop_grace=1ms
fault '{"method":"gmail.*","fault":"latency","ms":600000}'
# Rarely: the result of its next run would replace that of the one that is looked at.
ends 0 schedule add --at 'monthly 1 05:00' --name old -- mail archive --mode trash --no-sync --yes subject:x
ends 0 schedule run old --no-wait
until_true 60 struck || fail "the archiver does not ask: $(t schedule list --json) $(cat "$dir/serve.log")"
stop_in_time 0 5
shown old '.last == "running"'
no_faults
start_serve
until_true 60 of old '.last == "done" and (.result | contains("moved to the trash"))' || fail "not archived after a stop: $(t schedule list --json)"
stop_serve 0

exit "$((failed > 0))"
