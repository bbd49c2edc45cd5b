#!/usr/bin/env bash
# odd_test.sh TIDEMARK CLOUD: what comes from outside and is odd: control bytes in labels, absurd
# dates, documents that are no mail, many accounts, a closed pipe, a stopped holder (M17, E7.2).
. "$(dirname "$0")/../stage.sh"
start_cloud --seed 25 --mailbox ada@example.com=6 --token tok-ada=ada@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
raw() { grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$@"; }
t account add gmail ada@example.com --endpoint "$origin" --bearer tok-ada >/dev/null || fail add

# ---- labels with control bytes, from the server and from a file
label=$(curl -sSf -H 'Authorization: Bearer tok-ada' -H 'Content-Type: application/json' \
    -d '{"name":"bad\u001b[31mred\u0007\u009b2J"}' "$origin/gmail/v1/users/me/labels" | jq -r .id)
message=$(printf 'From: b@example.org\r\nSubject: odd\r\n\r\nx\r\n' | curl -sSf -H 'Content-Type: message/rfc822' \
    --data-binary @- "$origin/_cloud/mail?user=ada@example.com" | jq -r .id)
curl -sSf -o /dev/null "$origin/_cloud/mail/label" -d "{\"user\":\"ada@example.com\",\"ids\":[\"$message\"],\"add\":[\"$label\"]}" || fail label
ends 0 mail sync --quiet
ends 0 mail show "$message"
grep -q 'red' "$dir/out" || fail "its label is not shown: $(cat -v "$dir/out")"
raw "$dir/out" && fail "control bytes of a label reach the terminal: $(cat -v "$dir/out")"
printf 'From x Thu Jan  1 00:00:00 2015\nX-Gmail-Labels: =?UTF-8?Q?=1B[31mfile=07?=\nFrom: a@example.org\nSubject: imported\n\nbody\n' >"$dir/take.mbox"
ends 0 mail import "$dir/take.mbox" --account ada@example.com
id=$(t mail search subject:imported --json | jq -r '.messages[0].id // .results[0].id')
ends 0 mail show "$id"
raw "$dir/out" && fail "control bytes of an imported label: $(cat -v "$dir/out")"
# ... and errors show what was typed without talking to the terminal
ends 1 mail show $'no\e[31msuch'
raw "$dir/err" && fail "control bytes in an error: $(cat -v "$dir/err")"

# ---- an absurd date in a note of ours ends no import
ends 0 mail export "$dir/one.mbox" subject:odd --account ada@example.com
sed -E '/^X-Tidemark/ s/[0-9]{13}/9223372036854775807/' "$dir/one.mbox" >"$dir/absurd.mbox"
cmp -s "$dir/one.mbox" "$dir/absurd.mbox" && fail "no date to spoil in $(head -n 5 "$dir/one.mbox")"
printf 'From: c@example.org\nSubject: behind it\nDate: Tue, 6 Jan 2015 10:00:00 +0000\n\nbody\n' >"$dir/next.eml"
ends 0 mail import "$dir/absurd.mbox" "$dir/next.eml" --account new@example.com --json
jq -e '.stored == 2' "$dir/out" >/dev/null || fail "an absurd date: $(cat "$dir/out")"

# ---- a PDF is no mail, named or found, whatever it is called
printf '%%PDF-1.4\n1 0 obj\n<< /Type: /Catalog >>\n' >"$dir/bill.pdf"
mkdir "$dir/folder"
cp "$dir/bill.pdf" "$dir/folder/bill.eml"
cp "$dir/next.eml" "$dir/folder/message.eml"
cp "$dir/next.eml" "$dir/plainname"
ends 1 mail import "$dir/bill.pdf" --account pdf@example.com
grep -q 'neither a message nor a mailbox' "$dir/err" || fail "a PDF: $(cat "$dir/err")"
ends 0 mail import "$dir/folder" --account pdf@example.com --json
jq -e '.stored == 1 and .files_skipped == 1' "$dir/out" >/dev/null || fail "a PDF called .eml: $(cat "$dir/out")"
ends 0 mail import "$dir/plainname" --account pdf@example.com --json
jq -e '.messages == 1' "$dir/out" >/dev/null || fail "a message without a suffix: $(cat "$dir/out")"

# ---- a closed pipe is no error
set +o pipefail
t config list --json 2>"$dir/err" | true
[ "${PIPESTATUS[0]}" -eq 0 ] || fail "a closed pipe ends with ${PIPESTATUS[0]}"
for _ in 1 2 3; do (t config list 2>>"$dir/err"; echo $? >"$dir/code") | head -c 1 >/dev/null; done
[ "$(cat "$dir/code")" -eq 0 ] || fail "a closed pipe: $(cat "$dir/err")"
[ -s "$dir/err" ] && fail "a closed pipe is reported: $(cat "$dir/err")"
set -o pipefail
t config list >/dev/full 2>"$dir/err" && fail "a full disk is not told"

# ---- many accounts
many=$(t account list --json | jq '.accounts | length')
for table in account mail_account; do
    columns=$(sqlite3 "$dir/home/state.db" "SELECT group_concat(name) FROM pragma_table_info('$table')")
    values=$(sed -E 's/(^|,)(id|account)(,|$)/\11000+n\3/; s/(^|,)(name|email)(,|$)/\1("u"||n||"@example.com")\3/' <<<"$columns" | tr '"' "'")
    sqlite3 "$dir/home/state.db" "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<70)
        INSERT INTO $table($columns) SELECT $values FROM c, (SELECT * FROM $table LIMIT 1)" || fail "more rows of $table"
done
[ "$(t account list --json | jq '.accounts | length')" -eq $((many + 70)) ] || fail "rows were not made"
ends 0 mail status --json
[ "$(jq '.accounts | length' "$dir/out")" -gt 70 ] || fail "status shows $(jq '.accounts | length' "$dir/out") accounts"
ends 4 mail sync --json
jq -e '(.accounts | length) > 70 and (.accounts[] | select(.account == "ada@example.com").outcome == "done")' "$dir/out" >/dev/null ||
    fail "sync: $(jq -c '[.accounts[].outcome] | group_by(.) | map({(.[0]): length})' "$dir/out")"

# ---- a holder that is stopped
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"method":"gmail.*","fault":"latency","ms":300000}' || fail slow
"$tidemark" --home "$dir/home" mail sync ada@example.com --quiet >"$dir/sync.out" 2>&1 &
sync=$!
stage_pids+=("$sync")
for _ in $(seq 100); do
    t mail status ada@example.com --json 2>/dev/null | jq -e '.accounts[0].engine' >/dev/null && break
    pause
done
t mail sync ada@example.com --max 1 >"$dir/out" 2>"$dir/err" && fail "--max was taken by a running sync"
grep -q -- '--max' "$dir/err" || fail "--max: $(cat "$dir/err")"
kill -STOP "$sync" || fail "the sync has ended: $(cat "$dir/sync.out")"
for command in 'mail sync ada@example.com' 'account halt ada@example.com' 'jobs retry --all' 'jobs pause --account ada@example.com' 'account list'; do
    begun=$(date +%s%N)
    # shellcheck disable=SC2086
    t $command >"$dir/out" 2>"$dir/err"
    spent=$((($(date +%s%N) - begun) / 1000000))
    grep -q "process $sync .*stopped" "$dir/err" || fail "$command does not say it: $(cat "$dir/err")"
    [ "$spent" -lt 10000 ] || fail "$command took $spent ms"
done
kill -CONT "$sync"
kill "$sync"
wait "$sync"

# ---- a command that is stopped while it holds the home has no socket
curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail quick
flock --no-fork "$dir/home/engine.lock" sleep 600 &
holder=$!
stage_pids+=("$holder")
is_held() { ! flock -n "$dir/home/engine.lock" true; }
until_true 20 is_held || fail "the lock is free"
echo "tidemark command, process $holder" >"$dir/home/engine.lock"
kill -STOP "$holder"
for command in 'mail sync ada@example.com' 'account halt ada@example.com' 'jobs pause --account ada@example.com'; do
    # shellcheck disable=SC2086
    t $command >"$dir/out" 2>"$dir/err"
    grep -q "process $holder, is stopped; .kill -CONT $holder. resumes it" "$dir/err" || fail "$command does not say it: $(cat "$dir/err")"
done
strike "$holder"

exit "$((failed > 0))"
