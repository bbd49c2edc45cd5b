#!/usr/bin/env bash
# examples_test.sh NAME PROGRAM: runs an example on SQLite and, when TIDE_TEST_POSTGRES names a
# database, on PostgreSQL; kills it on the way, and looks at what it left.
set -euo pipefail
name=$1
program=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() {
    echo "$name: $*" >&2
    [ -z "${log:-}" ] || cat "$log" >&2
    exit 1
}

# expect STATUS ARGS...: runs the program; its words are in $log.
expect() {
    local status=$1 rc=0
    shift
    "$program" "$@" >"$log" 2>&1 || rc=$?
    [ "$rc" = "$status" ] || die "ended with $rc, not with $status: $*"
}

# When it is killed does not matter: whatever it had done must be enough to go on from.  In the
# foreground timeout waits until the program is gone.
kill_after() {
    local seconds=$1
    shift
    timeout --foreground -s KILL "$seconds" "$program" "$@" >/dev/null 2>&1 || true
}

# sql QUERY: one number from the program's own table.
sql() {
    if [ -n "$ledger" ]; then
        psql -X -q -A -t "$ledger" -c "$1"
    else
        sqlite3 "$state/state.db" "$1"
    fi
}

orders() {
    kill_after 0.2 "$state" "$@"
    [ -n "$ledger" ] || for seconds in 0.05 0.1 0.3; do kill_after $seconds "$state" "$@"; done
    expect 0 "$state" "$@"
    grep -qx '90 of 90 orders shipped once, 10 refused' "$log" || die "not all orders"
    [ "$(sql 'SELECT count(*) FROM orders')" = 90 ] || die "orders that were refused are there"
    expect 0 "$state" "$@" # nothing left to do
}

channel() {
    kill_after 0.5 "$state" "$@"
    expect 3 "$state" "$@" --cancel-at 100
    grep -q '^canceled at [12][0-9][0-9] of 300' "$log" || die "not canceled"
    expect 0 "$state" "$@"
    local began
    began=$(sed -n 's/^ok at 300 of 300 metres; this run began at \([0-9]*\)$/\1/p' "$log")
    [ -n "$began" ] && [ "$began" -ge 100 ] || die "did not go on where it was"
    expect 0 "$state" "$@"
    grep -q 'this run began at -1$' "$log" || die "dug again"
}

days() {
    kill_after 0.4 "$state" "$@"
    [ -n "$ledger" ] || for seconds in 0.1 0.6; do kill_after $seconds "$state" "$@"; done
    expect 0 "$state" "$@"
    grep -q '^complete up to day 40; 0 pages beyond it$' "$log" || die "not complete"
    [ "$(sql 'SELECT count(*) FROM diary')" = 200 ] || die "pages are missing"
}

log=$dir/log
ledger=
state=$dir/sqlite
"$name"
echo "$name: ok on SQLite"
if [ -n "${TIDE_TEST_POSTGRES:-}" ]; then
    ledger=$TIDE_TEST_POSTGRES
    state=$dir/postgres
    "$name" --ledger "$ledger"
    echo "$name: ok on PostgreSQL"
    if [ "$name" = orders ]; then
        psql -X -q "$ledger" -c 'DROP TABLE orders'
        orders --ledger "$ledger" --mine
        echo "$name: ok on PostgreSQL, on a connection of its own"
    fi
fi
