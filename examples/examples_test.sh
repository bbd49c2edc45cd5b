#!/usr/bin/env bash
# examples_test.sh NAME PROGRAM: runs an example on SQLite and, when TIDE_TEST_POSTGRES names a
# database, on PostgreSQL; kills it half-way, and checks the result.
set -euo pipefail
name=$1
program=$(realpath "$2")
EARLY=75
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() {
    echo "$name: $*" >&2
    [ -z "${log:-}" ] || cat "$log" >&2
    exit 1
}

# expect STATUS ARGS...: runs the program; its output is in $log.
expect() {
    local status=$1 rc=0
    shift
    "$program" "$@" >"$log" 2>&1 || rc=$?
    [ "$rc" = "$status" ] || die "ended with $rc, not with $status: $*"
}

# Ten milliseconds, without a program: one would take much longer where others run beside.
exec 9<> <(:)
tick() { read -rt 0.01 <&9 || true; }

# kill_at NUMBER QUERY ARGS...: kills the program once the query's number has been reached.  It is stopped
# during each check; where it ended before all the same, the status is 75 (EARLY).
kill_at() {
    local number=$1 query=$2 pid now
    shift 2
    "$program" "$@" >"$log" 2>&1 &
    pid=$!
    while tick; do
        kill -STOP "$pid" 2>/dev/null || break
        now=$(sql "$query" 2>/dev/null) || now=
        [ "${now:-0}" -lt "$number" ] || break
        kill -CONT "$pid"
    done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null && exit "$EARLY"
    [ $? -eq 137 ] || die "it failed before it could be killed at $number"
}

# on_sqlite: the example on SQLite; from the beginning a few times, if it was too quick to be killed.
on_sqlite() {
    local rc
    for _ in 1 2 3 4 5; do
        rm -rf "$state"
        rc=0
        ("$name") || rc=$? # what fails says so by die()
        [ "$rc" = "$EARLY" ] || return "$rc"
    done
    die "it ended five times before it could be killed"
}

# on_postgres ARGS...: once, for its tables stay there.
on_postgres() {
    local rc=0
    ("$name" --ledger "$ledger" "$@") || rc=$?
    [ "$rc" != "$EARLY" ] || die "it ended before it could be killed"
    return "$rc"
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
    local shipped='SELECT count(*) FROM orders WHERE shipped = 1'
    kill_at 5 "$shipped" "$state" "$@"
    [ -n "$ledger" ] || for number in 20 40; do kill_at $number "$shipped" "$state" "$@"; done
    expect 0 "$state" "$@"
    grep -qx '90 of 90 orders shipped once, 10 refused' "$log" || die "not all orders"
    [ "$(sql 'SELECT count(*) FROM orders')" = 90 ] || die "orders that were refused are there"
    expect 0 "$state" "$@" # nothing left to do
}

channel() {
    local running='SELECT count(*) FROM job WHERE state = 1'
    [ -z "$ledger" ] || running='SELECT count(*) FROM tidemark.job WHERE state = 1'
    kill_at 1 "$running" "$state" "$@"
    expect 3 "$state" "$@" --cancel-at 100
    grep -q '^canceled at [12][0-9][0-9] of 300' "$log" || die "not canceled"
    expect 0 "$state" "$@"
    local began
    began=$(sed -n 's/^ok at 300 of 300 metres; this run began at \([0-9]*\)$/\1/p' "$log")
    [ -n "$began" ] && [ "$began" -ge 100 ] || die "did not resume"
    expect 0 "$state" "$@"
    grep -q 'this run began at -1$' "$log" || die "dug again"
}

days() {
    local pages='SELECT count(*) FROM diary'
    kill_at 20 "$pages" "$state" "$@"
    [ -n "$ledger" ] || for number in 60 120; do kill_at $number "$pages" "$state" "$@"; done
    expect 0 "$state" "$@"
    grep -q '^complete up to day 40; 0 pages beyond it$' "$log" || die "not complete"
    [ "$(sql 'SELECT count(*) FROM diary')" = 200 ] || die "pages are missing"
}

log=$dir/log
ledger=
state=$dir/sqlite
on_sqlite
echo "$name: ok on SQLite"
if [ -n "${TIDE_TEST_POSTGRES:-}" ]; then
    ledger=$TIDE_TEST_POSTGRES
    state=$dir/postgres
    on_postgres
    echo "$name: ok on PostgreSQL"
    if [ "$name" = orders ]; then
        psql -X -q "$ledger" -c 'DROP TABLE orders'
        on_postgres --mine
        echo "$name: ok on PostgreSQL, on a connection of its own"
    fi
fi
