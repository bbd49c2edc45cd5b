#!/usr/bin/env bash
# waiting_test.sh TIDEMARK CLOUD: an account whose server cannot be reached.  Host, reason, next try
# and last outcome are said wherever one looks, the others finish, and --timeout ends it (E9.1, E9.3).
. "$(dirname "$0")/stage.sh"
start_cloud --seed 23 --mailbox ada@example.com=6 --token tok-ada=ada@example.com
# begin_other ADDRESS OPTIONS...: bob's server; its origin in $away.
begin_other() {
    local address=$1
    shift
    exec 4< <(exec "$cloud" --listen "$address" --quiet --seed 24 --quota off --clock "$clock" --mailbox bob@example.com=5 \
        --token tok-bob=bob@example.com "$@")
    other=$!
    stage_pids+=("$other")
    read -r _ away <&4
}
end_other() {
    kill "$other"
    while kill -0 "$other" 2>/dev/null; do pause; done
}
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the clouds have no quota here
# It comes back to its port.  Those below 32768 are given to no other program that asks for a free one.
until begin_other "127.0.0.1:$((20000 + RANDOM % 12000))"; do :; done
host=${away#*//}
t account add gmail ada@example.com --endpoint "$origin" --bearer tok-ada >/dev/null || fail "add ada"
t account add gmail bob@example.com --endpoint "$away" --bearer tok-bob >/dev/null || fail "add bob"
t account list --json | jq -e '.accounts | all(.last_ok_unix_ms > 0 and .last_failure == null and .signed_in == "yes")' >/dev/null ||
    fail "just added: $(t account list --json)"
ends 0 mail sync --quiet
ends 2 mail sync --timeout soon
end_other
printf 'From: x@example.org\r\nSubject: new\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
    --data-binary @- "$origin/_cloud/mail?user=ada@example.com" || fail deliver

# ---- the others finish, the time is kept, and the line names host and reason
ends 5 mail sync --json --timeout 6s
jq -e '.timed_out and ([.accounts[] | {(.account): .outcome}] | add) == {"ada@example.com":"done","bob@example.com":"unfinished"}' \
    "$dir/out" >/dev/null || fail "outcomes: $(cat "$dir/out")"
jq -e '.accounts[] | select(.account == "ada@example.com").stored == 7' "$dir/out" >/dev/null || fail "ada's mail: $(cat "$dir/out")"
jq -e --arg h "$host" '.accounts[] | select(.account == "bob@example.com") | .reason | contains($h) and test("connect"; "i")' \
    "$dir/out" >/dev/null || fail "its reason: $(cat "$dir/out")"
jq -es --arg h "$host" 'map(select(.account == "bob@example.com" and .note != null and (.note | test("next try in") and contains($h)))) | length > 0' \
    "$dir/err" >/dev/null || fail "the progress does not say it: $(tail -n 3 "$dir/err")"
ends 5 mail sync bob@example.com --timeout 1s
grep -q "^bob@example.com: .*$host" "$dir/out" || fail "bob's line: $(cat "$dir/out")"
grep -q 'Out of time' "$dir/out" || fail "why it ended: $(cat "$dir/out")"

# ---- afterwards, without an engine
ends 0 mail status bob@example.com
grep -q "failed.*$host" "$dir/out" && grep -q 'last answer' "$dir/out" || fail "status: $(cat "$dir/out")"
t mail status bob@example.com --json | jq -e --arg h "$host" '.accounts[0] | .last_failed_unix_ms > .last_ok_unix_ms and .last_ok_unix_ms > 0
    and (.last_failure | contains($h))' >/dev/null || fail "status --json: $(t mail status bob@example.com --json)"
ends 0 account list
grep 'bob@example.com' "$dir/out" | grep -qE "20[0-9-]+ [0-9:]+ .*20[0-9-]+ [0-9:]+" || fail "account list: $(cat "$dir/out")"
t account list --json | jq -e --arg h "$host" '[.accounts[] | {(.account): (.last_failed_unix_ms > .last_ok_unix_ms)}] | add == {"ada@example.com":false,"bob@example.com":true}' \
    >/dev/null || fail "account list --json: $(t account list --json)"
job=$(t jobs list --account bob@example.com --state pending --json | jq '.items[0].id')
ends 0 jobs explain "$job"
grep -q "$host" "$dir/out" || fail "explain without an engine: $(cat "$dir/out")"

# ---- while it waits
t mail sync bob@example.com --quiet >"$dir/sync.out" 2>"$dir/sync.err" &
sync=$!
stage_pids+=("$sync")
for _ in $(seq 100); do
    t jobs explain "$job" --json >"$dir/out" 2>"$dir/err"
    jq -e '.reasons[0].until_unix_ms > 0' "$dir/out" >/dev/null 2>&1 && break
    pause
done
jq -e --arg h "$host" '.reasons | any((.text | contains($h)) and .until_unix_ms > 0)' "$dir/out" >/dev/null || fail "explain: $(cat "$dir/out")"
tells_next_try() { t mail status bob@example.com | grep -q 'next try'; } # not while it tries
until_true 30 tells_next_try || fail "status during it: $(t mail status bob@example.com)"

# ---- the server is back: it continues by itself, and status no longer shows the failure
begin_other "$host"
wait "$sync" || fail "it did not come back: $(cat "$dir/sync.out" "$dir/sync.err")"
t mail status bob@example.com --json | jq -e '.accounts[0] | .last_ok_unix_ms > .last_failed_unix_ms' >/dev/null ||
    fail "afterwards: $(t mail status bob@example.com --json)"
t mail status bob@example.com >"$dir/out"
grep -q "failed.*$host" "$dir/out" && fail "a failure of long ago is kept: $(cat "$dir/out")"
end_other

# ---- an untrusted certificate is a reason, too
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/key.pem" -out "$dir/cert.pem" -days 2 -subj /CN=localhost 2>/dev/null
begin_other 127.0.0.1:0 --tls "$dir/cert.pem,$dir/key.pem"
ends 1 account add gmail bob@example.com --endpoint "$away" --bearer tok-bob
grep -qi 'certificate' "$dir/err" && grep -q "${away#*//}" "$dir/err" || fail "a certificate: $(cat "$dir/err")"
# ... also when it is no longer good for an account that is there
sqlite3 "$dir/home/state.db" "UPDATE mail_account SET endpoint = '$away' WHERE email = 'bob@example.com'" || fail "sqlite3"
for patience in 3s 30s; do # a busy machine may need the second
    ends 5 mail sync bob@example.com --timeout "$patience"
    grep -qi 'certificate' "$dir/out" && break
done
grep -i "^bob@example.com: .*certificate" "$dir/out" | grep -q "${away#*//}" || fail "sync: $(cat "$dir/out")"
ends 0 mail status bob@example.com
grep -i 'failed.*certificate' "$dir/out" | grep -q "${away#*//}" || fail "status: $(cat "$dir/out")"

exit "$((failed > 0))"
