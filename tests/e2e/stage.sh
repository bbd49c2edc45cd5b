# stage.sh: what the end-to-end scripts begin with.  Sourced with the paths of tidemark
# and tidemark-cloud as $1 and $2; leaves a temporary directory in $dir and a count of failures.
# A script that sets a trap on EXIT itself calls `leave` there, or ends and removes all of it.
set -uo pipefail
export TZ=UTC # times are shown in the local zone
unset DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR # files, not the user's keyring
tidemark=$(realpath "$1")
cloud=$(realpath "$2")
dir=$(mktemp -d)
failed=0
# fail TEXT: names the line of the script, also when a function of this file calls it.
fail() {
    local i=1
    while [ "${BASH_SOURCE[i]:-$0}" != "$0" ]; do i=$((i + 1)); done
    echo "FAILED: line ${BASH_LINENO[i - 1]}: $1" >&2
    failed=$((failed + 1))
}
stage_pids=() # ended with the script; only added to
leave() {
    if [ ${#stage_pids[@]} -gt 0 ]; then
        kill -CONT "${stage_pids[@]}" 2>/dev/null
        kill "${stage_pids[@]}" 2>/dev/null
    fi
    rm -rf "$dir"
}
trap leave EXIT
# The cloud's time at its start.  Generated mail is dated back from it, so it must not be today's.
clock=1794700000000
# serve OPTION...: a local cloud; its address is in $origin, Gmail's API in $api, its id in $cloud_pid.
serve() {
    exec 3< <(exec "$cloud" --listen 127.0.0.1:0 --quiet "$@")
    cloud_pid=$!
    stage_pids+=("$cloud_pid")
    read -r _ origin <&3 || { echo "the cloud did not start" >&2; exit 1; }
    api=$origin/gmail/v1/users/me
}
# The same without a quota, and at $clock.
start_cloud() { serve --quota off --clock "$clock" "$@"; }
# The user of most scripts.  sign_in: the account of $user, or of $1, with the token tok, or $2.
user=ada@example.com
archive=$dir/home/archive/$user
sign_in() {
    t account add gmail "${1:-$user}" --endpoint "$origin" --bearer "${2:-tok}" >/dev/null || fail "account add"
}
# Gmail's API, as $user; $api is set once the cloud runs.
ask() { curl -sSf -H 'Authorization: Bearer tok' "$@"; }
# fault RULE: a fault of the cloud; no_faults: none any more.
fault() { curl -sSf -o /dev/null "$origin/_cloud/faults" -d "$1" || fail "fault $1"; }
no_faults() { curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail "faults"; }
# The ledger, and what the last --json in $dir/out says of the first account.
state() { sqlite3 "$dir/home/state.db" "$1"; }
field() { jq -r ".accounts[0].$1" "$dir/out"; }
# start_postgres: a server of its own, in $url; skips the test where there is none.  Processes in
# stage_pids and pid[] end with the script.
start_postgres() {
    cluster=$(dirname "${BASH_SOURCE[0]}")/../support/pg_cluster.sh
    url=$("$cluster" start --fast 2>"$dir/pg.err")
    if [ $? -eq 77 ]; then
        cat "$dir/pg.err"
        exit 77
    fi
    declare -gA pid
    trap leave_postgres EXIT
}
leave_postgres() {
    kill -9 "${stage_pids[@]}" "${pid[@]}" 2>/dev/null
    wait 2>/dev/null
    "$cluster" stop "$url"
    rm -rf "$dir"
}
# start_serve ARGUMENT...: `tidemark serve` on that home and a free port; its process is $server, its page is
# at $page (without a slash at the end), and what it says is in $dir/serve.log.
start_serve() {
    : >"$dir/serve.log"
    "$tidemark" --home "$dir/home" serve --listen 127.0.0.1:0 "$@" >"$dir/serve.out" 2>"$dir/serve.log" &
    server=$!
    stage_pids+=("$server")
    until_true 60 grep -q 'serving' "$dir/serve.log" || { echo "it does not serve: $(cat "$dir/serve.log")" >&2; exit 1; }
    page=$(sed -n 's#.*serving.*\(http://127.0.0.1:[0-9]*\)/.*#\1#p' "$dir/serve.log")
}
# stop_serve CODE...: ends it as a service manager does; it must end with one of these codes.
stop_serve() {
    local code
    kill -TERM "$server"
    wait "$server"
    code=$?
    [[ " $* " = *" $code "* ]] || fail "serve ended with $code, not $*: $(cat "$dir/serve.log" "$dir/serve.out")"
}
# stop_in_time CODE...: stop_serve, within 15 s: far less than a call that hangs.  A job has 5 s to end, and a sanitizer
# on a busy machine adds seconds of its own; serve_stop_test.sh checks the 6 s of the plain build.
stop_in_time() {
    local before took_ms
    before=$(date +%s%N)
    stop_serve "$@"
    took_ms=$((($(date +%s%N) - before) / 1000000))
    [ "$took_ms" -lt 15000 ] || fail "line ${BASH_LINENO[0]}: the end took $took_ms ms"
}
# ask_page CURL-ARGUMENT...: the status of an answer of the page.  One that is not ready in time is asked for again, as a
# client does: a loaded machine is slow.
ask_page() {
    local code
    for _ in $(seq 100); do
        code=$(curl -sS -w '%{http_code}' "$@")
        [ "$code" = 503 ] || break
        pause
    done
    echo "$code"
}
# t ARGUMENT...: tidemark with the home of this test.
t() { timeout 150 "$tidemark" --home "$dir/home" "$@"; }
# ends CODE ARGUMENT...: the same, with this exit code; its output is in $dir/out and $dir/err.
ends() {
    local code want=$1
    shift
    t "$@" >"$dir/out" 2>"$dir/err"
    code=$?
    [ "$code" -eq "$want" ] || fail "tidemark $* ended with $code, not $want: $(cat -v "$dir/out" "$dir/err")"
}
pause() { read -rt 0.1 <> <(:) || true; }
# until_true SECONDS COMMAND...: waits until the command succeeds; false: it did not in time.
until_true() {
    local left=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        pause
    done
}
# strike PID: kills a child with SIGKILL and waits for it; its exit status is in $ended.  False if it
# had ended before: `kill` cannot tell, since it succeeds on a child that was not waited for.
strike() {
    kill -9 "$1" 2>/dev/null
    wait "$1" 2>/dev/null
    ended=$?
    [ "$ended" -eq 137 ]
}
# own_minute CURL-ARGUMENTS...: a call of the script's own at $origin.  The cloud's clock is
# moved on before and after it, so that its units are in no minute that tidemark spends from:
# a governor counts what its own process asks, and takes the account's quota as its own.
own_minute() {
    local code
    next_minute
    curl -sSf "$@"
    code=$?
    next_minute
    return "$code"
}
next_minute() {
    curl -sSf -o /dev/null "$origin/_cloud/clock" -d '{"advance":"61s"}' || fail "the clock"
}
