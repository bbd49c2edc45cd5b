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
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1" >&2
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
# serve OPTION...: a local cloud; its address is in $origin, its id in $pid.
serve() {
    exec 3< <(exec "$cloud" --listen 127.0.0.1:0 --quiet "$@")
    pid=$!
    stage_pids+=("$pid")
    read -r _ origin <&3 || { echo "the cloud did not start" >&2; exit 1; }
}
# The same without a quota, and at $clock.
start_cloud() { serve --quota off --clock "$clock" "$@"; }
# t ARGUMENT...: tidemark with the home of this test.
t() { timeout 60 "$tidemark" --home "$dir/home" "$@"; }
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
