#!/usr/bin/env bash
# serve_test.sh TIDEMARK CLOUD: `tidemark serve` is the one engine of a home without any other service: all
# commands hand over to it, its page answers only who may ask, and without work it does not wake up (E12.2).
. "$(dirname "$0")/stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
start_cloud --seed 5 --mailbox "$user=30" --token tok-ada="$user"
# answers CODE CURL-ARGUMENTS...: what the page answers is in $dir/body.
answers() {
    local code want=$1
    shift
    code=$(curl -sS -o "$dir/body" -w '%{http_code}' "$@")
    [ "$code" = "$want" ] || fail "line ${BASH_LINENO[0]}: $* answered $code, not $want: $(head -c 400 "$dir/body")"
}
said() { grep -qE "$1" "$dir/serve.log"; }

# ---- a home that does not exist yet
ends 1 metrics
ends 1 open --address
grep -q 'does not run' "$dir/err" || fail "open without serve: $(cat "$dir/err")"
start_serve
[ -S "$dir/home/engine.sock" ] || fail "no control socket"
answers 200 "$page/healthz"
[ "$(jq -c . "$dir/body")" = '{"ok":true}' ] || fail "health: $(cat "$dir/body")"
answers 200 "$page/"
grep -q '<title>Tidemark' "$dir/body" || fail "the page: $(head -c 200 "$dir/body")"
answers 421 -H 'Host: evil.example' "$page/healthz"
answers 401 "$page/metrics"
ends 0 open --address
[ "$(cat "$dir/out")" = "$page/" ] || fail "address: $(cat "$dir/out")"

# ---- a home has one of them, a port too
ends 1 serve --listen 127.0.0.1:0
grep -q 'one .tidemark serve' "$dir/err" || fail "a second one: $(cat "$dir/err")"
timeout 150 "$tidemark" --home "$dir/other" serve --listen "${page#http://}" >"$dir/out" 2>"$dir/err"
[ $? -eq 1 ] && grep -q 'another port' "$dir/err" || fail "a taken port: $(cat "$dir/err")"
ends 2 serve --listen 0.0.0.0:7433
ends 2 serve --listen 127.0.0.1:70000

# ---- commands hand over
ends 0 account add gmail "$user" --endpoint "$origin" --bearer tok-ada
ends 0 mail sync --quiet --json
jq -e '.handed_over and .accounts[0].stored == 30' "$dir/out" >/dev/null || fail "sync: $(cat "$dir/out")"
ends 0 status --json
jq -e '.engine and .accounts[0].stored == 30' "$dir/out" >/dev/null || fail "status: $(cat "$dir/out")"
ends 0 mail search subject:a --json # what was fetched is indexed by the resident process
found() { t mail search in:anywhere --limit 100 --json | jq -e '.messages | length == 30'; }
until_true 60 found || fail "not indexed: $(t mail search in:anywhere --json | head -c 300)"

# ---- tokens and metrics: one text, over HTTP and in the terminal
ends 2 token add prometheus
ends 1 token add prometheus --scope page
ends 0 token add prometheus --scope metrics
key=$(cat "$dir/out")
[ ${#key} -eq 43 ] || fail "a key: $key"
answers 200 -H "Authorization: Bearer $key" "$page/metrics"
cp "$dir/body" "$dir/metrics"
for line in 'tidemark_build_info\{version="[^"]+"\} 1' 'tidemark_jobs_finished_total\{system="mail",outcome="done"\} [1-9]' \
    "tidemark_calls_total\{account=\"$user\",method=\"gmail.messages.get\",class=\"ok\"\} [1-9]" "tidemark_account_state\{account=\"$user\",state=\"running\"\} 1" \
    'tidemark_http_requests_total\{route="GET /healthz",status="2xx"\} 1' 'tidemark_http_requests_total\{route="none",status="4xx"\} [1-9]'; do
    grep -qE "^$line" "$dir/metrics" || fail "no $line: $(cat "$dir/metrics")"
done
ends 0 metrics
diff <(grep '^#' "$dir/metrics") <(grep '^#' "$dir/out") >/dev/null || fail "two texts of metrics"
# Each metric stands together, after its help and its type.
awk '/^# HELP/ { if (seen[$3]++) exit 1 } /^tidemark/ { split($1, name, "{"); if (index(name[1], last) != 1) exit 1 } /^# TYPE/ { last = $3 }' \
    "$dir/metrics" || fail "the order of metrics"
answers 403 -H "Authorization: Bearer $key" -H 'Origin: http://127.0.0.1:1' "$page/metrics"
ends 0 token list --json
jq -e '.tokens[0] | .name == "prometheus" and .scope == "metrics" and .state == "valid" and (has("key") | not)' "$dir/out" >/dev/null || fail "tokens: $(cat "$dir/out")"
ends 0 token revoke 1
answers 401 -H "Authorization: Bearer $key" "$page/metrics"
ends 0 token list
grep -qE '^1 +prometheus +metrics +revoked' "$dir/out" || fail "revoked: $(cat "$dir/out")"
grep -rqF "$key" "$dir/home" "$dir/serve.log" && fail "the key is stored or logged"

# ---- a browser: it shows a code, the terminal compares it
ask() {
    curl -sSf -H 'Content-Type: application/json' -d '{}' "$page/api/v1/pairings" >"$dir/pairing" || fail "no pairing"
    ticket=$(jq -r .ticket "$dir/pairing")
    curl -sS -o "$dir/key" -w '%{http_code}' -H "Authorization: Pairing $ticket" "$page/api/v1/pairings" >"$dir/key.code" &
    browser=$!
}
ask
t open --json >"$dir/out" 2>"$dir/err" <<<y || fail "open: $(cat "$dir/out" "$dir/err")"
wait "$browser"
[ "$(cat "$dir/key.code")" = 200 ] || fail "the browser got $(cat "$dir/key.code"): $(cat "$dir/key")"
[ "$(jq -r .code "$dir/out")" = "$(jq -r .code "$dir/pairing")" ] || fail "another code: $(cat "$dir/out")"
grep -q "code $(jq -r .code "$dir/pairing")" "$dir/err" || fail "the question: $(cat "$dir/err")"
answers 200 -H "Authorization: Bearer $(jq -r .key "$dir/key")" "$page/metrics"
until_true 30 curl -sSf -o "$dir/pairing" -H 'Content-Type: application/json' -d '{}' "$page/api/v1/pairings" || fail "no second pairing"
t open >"$dir/out" 2>"$dir/err" <<<n && fail "a refusal that succeeds"
grep -q Refused "$dir/out" || fail "refused: $(cat "$dir/out" "$dir/err")"

# ---- settings: a file that changes is noticed, and SIGHUP reads it in any case
echo 'workers.count: 5' >"$dir/home/config.yaml"
until_true 30 said 'setting changed.*workers.count' || fail "the file was not noticed: $(cat "$dir/serve.log")"
kill -HUP "$server"
until_true 30 said 'settings reloaded' || fail "SIGHUP: $(cat "$dir/serve.log")"
echo 'workers.count: many' >"$dir/home/config.yaml.new"
mv "$dir/home/config.yaml.new" "$dir/home/config.yaml" # as editors do
until_true 30 said 'settings refused' || fail "a wrong file: $(cat "$dir/serve.log")"
rm "$dir/home/config.yaml"

# ---- without work nothing wakes up: no thread is scheduled for seconds
# Each thread of ours has a name; one with that of the process belongs to a sanitizer, and wakes up all the time.
switches() {
    local task main
    main=$(cat /proc/"$server"/comm)
    for task in /proc/"$server"/task/*; do
        [ "${task##*/}" != "$server" ] && [ "$(cat "$task/comm")" = "$main" ] || cat "$task/status"
    done | awk '/^Name/ { name = $2 } /ctxt_switches/ { sum[name] += $2 } END { for (name in sum) print name, sum[name] }' | sort
}
# It may take a while on a busy machine until the last work is over.
sleeps() {
    switches >"$dir/switches"
    read -rt 5 <> <(:)
    switches | diff "$dir/switches" - >"$dir/woken"
}
until_true 3 sleeps || fail "it wakes up without work: $(cat "$dir/woken")"

# ---- SIGTERM while a job runs: the end comes in time, and the next one continues
fault '{"method":"gmail.*","fault":"latency","ms":600000}'
printf 'From: b@example.org\r\nSubject: x\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
    --data-binary @- "$origin/_cloud/mail?user=$user" || fail deliver
"$tidemark" --home "$dir/home" mail sync --quiet >"$dir/sync.out" 2>&1 & # without `timeout`, which would die in its place
watcher=$!
stage_pids+=("$watcher")
struck() { curl -sS "$origin/_cloud/faults" | jq -e '[.. | .struck? // 0] | add > 0'; }
until_true 60 struck || fail "no job waits for the cloud"
strike "$watcher" || fail "the command had ended: $(cat "$dir/sync.out")"
stop_in_time 5
grep -q '1 put back' "$dir/serve.out" || fail "put back: $(cat "$dir/serve.out")"
[ ! -e "$dir/home/engine.sock" ] || fail "the socket is left"
no_faults
start_serve
fetched() { t status --json | jq -e '.accounts[0] | .stored == 31 and .jobs_running + .jobs_waiting == 0'; }
until_true 60 fetched || fail "not continued: $(t status --json)"
ends 0 token list --json
jq -e '[.tokens[].state] | sort == ["revoked", "valid"]' "$dir/out" >/dev/null || fail "tokens after a restart: $(cat "$dir/out")"

# ---- kill -9: nothing is lost, and the socket of the dead does not matter
strike "$server" || fail "serve had ended"
start_serve
answers 200 "$page/healthz"

# ---- a home that is deleted or moved: it ends, and writes nothing that nobody finds
homeless() { # WHAT
    local code
    until_true 30 bash -c "! kill -0 $server" || { fail "it runs on: $1"; kill -KILL "$server"; }
    wait "$server"
    code=$?
    [ "$code" -ne 0 ] || fail "it ended with 0: $1"
    grep -q 'was deleted or moved' "$dir/serve.log" || fail "$1: $(cat "$dir/serve.log")"
}
mv "$dir/home" "$dir/aside"
homeless "moved"
[ ! -e "$dir/home" ] || fail "it left a home: $(ls -A "$dir/home")"
ln -s aside "$dir/home" # no event tells when the link is removed, as with a parent directory
start_serve
rm "$dir/home"
kill -HUP "$server"
homeless "its link removed"
mv "$dir/aside" "$dir/home"
start_serve
kill -STOP "$server"
mv "$dir/home" "$dir/aside"
mv "$dir/aside" "$dir/home"
touch "$dir/home/engine.lock"
kill -CONT "$server"
kill -HUP "$server"
until_true 30 said 'settings reloaded' || fail "moved away and back: $(cat "$dir/serve.log")"
stop_serve 0

exit "$((failed > 0))"
