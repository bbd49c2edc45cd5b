#!/usr/bin/env bash
# harbour_test.sh PROGRAM: kills the example half-way, starts it again, and counts the rows
# of its table.
set -euo pipefail
program=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

books() {
    sqlite3 "file:$dir/state/state.db?mode=ro" "SELECT count(*) FROM book WHERE line = '$1'" \
        2>/dev/null || echo 0
}

"$program" "$dir/state" >"$dir/first" 2>&1 &
pid=$!
# The program is stopped during each check: so it is killed half-way on a machine of any speed.
before=0
while [ "$before" -lt 20 ]; do
    kill -CONT "$pid" 2>/dev/null || { cat "$dir/first"; echo "it ended too early"; exit 1; }
    sleep 0.02
    kill -STOP "$pid" 2>/dev/null || { cat "$dir/first"; echo "it ended too early"; exit 1; }
    before=$(books crate)
done
kill -9 "$pid"
code=0
wait "$pid" 2>/dev/null || code=$?
[ "$code" -eq 137 ] || { cat "$dir/first"; echo "it ended before it was killed"; exit 1; }
before=$(books crate)
echo "killed with $before crates ashore"
[ "$before" -lt 300 ] || { echo "killed too late to show anything"; exit 1; }

"$program" "$dir/state" >"$dir/second" 2>&1 &
pid=$!
while [ "$(books crate)" -lt $((before + 20)) ]; do
    kill -0 "$pid" 2>/dev/null || break
done
kill -INT "$pid" 2>/dev/null || true
wait "$pid" || true
[ "$(sqlite3 "$dir/state/state.db" 'SELECT count(*) FROM claim')" = 0 ]

"$program" "$dir/state" >"$dir/third" 2>&1 || { cat "$dir/third"; exit 1; }
grep -q "all done" "$dir/third"
[ "$(books crate)" = 300 ] && [ "$(books ship)" = 30 ] ||
    { echo "$(books crate) crates, $(books ship) ships"; exit 1; }
"$program" "$dir/state" >/dev/null # nothing left to do
[ "$(books crate)" = 300 ]
echo "ok"
