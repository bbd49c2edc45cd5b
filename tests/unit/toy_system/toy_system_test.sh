#!/usr/bin/env bash
# toy_system_test.sh TOY: the commands that belong to no system work for a system that they do not
# know (E12.1), also while another engine has the directory (E12.2).
. "$(dirname "$0")/../../e2e/stage.sh"  "$1" "$1"
account() { t account "$@" --endpoint http://127.0.0.1:1 --bearer tok >"$dir/out" 2>&1; }
of() { t status --json | jq -c "[.accounts[] | select(.account == \"$1\")][0] | $2"; }

t --help | grep -q '^  toy sync \[NAME...\]' || fail "its command: $(t --help)"
t account add --help | grep -q '^  toy NAME .*play' || fail "its provider: $(t account add --help)"
t completion | grep -q "'account add') words='toy'" || fail "its completion"
account add mail ada && fail "a provider that is not in the list"
account add toy one || fail "add: $(cat "$dir/out")"
grep -q 'toy sync' "$dir/out" || fail "what to do next: $(cat "$dir/out")"
[ "$(of one .stored)" = 0 ] || fail "status: $(t status)"
ends 0 toy sync one
[ "$(of one '[.stored, .unit, .now]')" = '[1,"toys","idle"]' ] || fail "status: $(t status --json)"
t account list --json | jq -e '.accounts[0] | .toy and .signed_in == "yes"' >/dev/null || fail "list: $(t account list --json)"

sqlite3 "$dir/home/state.db" "UPDATE toy_account SET endpoint = ''"
t account list | grep -q ' Google ' || fail "the provider's server: $(t account list)"

# ---- a second command hands its work over to the first
touch "$dir/hold"
TOY_HOLD=$dir/hold t toy sync one --json >"$dir/first" 2>&1 &
first=$!
for _ in $(seq 100); do [ "$(of one .now)" = '"running"' ] && break; pause; done
t toy sync one --json >"$dir/second" 2>"$dir/second.err" &
second=$!
account add toy two || fail "add beside a sync: $(cat "$dir/out")"
for _ in $(seq 100); do [ "$(of one '.jobs_running + .jobs_waiting')" = 2 ] && break; pause; done
rm "$dir/hold"
wait "$first" || fail "first: $(cat "$dir/first")"
wait "$second" || fail "second: $(cat "$dir/second" "$dir/second.err")"
jq -e '.handed_over' "$dir/second" >/dev/null || fail "not handed over: $(cat "$dir/second")"
[ "$(of one .stored)" = 3 ] || fail "after both: $(t status)"
[ "$(of two .stored)" = 0 ] || fail "the other account: $(t status)"

# ---- a copy, and a home from it
ends 0 backup "$dir/copy"
grep -q '3 toys' "$dir/out" || fail "backup: $(cat "$dir/out")"
head -c 40000 /dev/urandom >"$dir/home/archive/toy/large"
sqlite3 "$dir/home/archive/toy/rows.db" 'CREATE TABLE one(n); INSERT INTO one VALUES(7)'
ends 0 backup "$dir/more"
cmp -s "$dir/home/archive/toy/large" "$dir/more/archive/toy/large" || fail "a file is not the same in the copy"
[ "$(sqlite3 "$dir/more/archive/toy/rows.db" 'SELECT n FROM one')" = 7 ] || fail "no database in the copy"
t account remove two >/dev/null 2>&1 || fail remove
[ "$(t status --json | jq -c '[.accounts[].account]')" = '["one"]' ] || fail "removed: $(t status)"
timeout 60 "$tidemark" --home "$dir/new" restore "$dir/copy" >"$dir/out" 2>&1 || fail "restore: $(cat "$dir/out")"
[ "$(timeout 60 "$tidemark" --home "$dir/new" status --json | jq -c '[.accounts[] | [.account, .stored]]')" = '[["one",3],["two",0]]' ] ||
    fail "restored: $(timeout 60 "$tidemark" --home "$dir/new" status)"

exit "$((failed > 0))"
