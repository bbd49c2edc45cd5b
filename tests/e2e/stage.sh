# stage.sh: what the end-to-end scripts begin with.  Sourced with the paths of tidemark
# and tidemark-cloud as $1 and $2; leaves a temporary directory in $dir, which the script
# removes, and a count of failures.
set -uo pipefail
unset DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR # files, not a person's keyring
tidemark=$(realpath "$1")
cloud=$(realpath "$2")
dir=$(mktemp -d)
failed=0
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1" >&2
    failed=$((failed + 1))
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
