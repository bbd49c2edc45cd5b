#!/usr/bin/env bash
# toy_system_test.sh TOY: the commands that belong to no system work for a system that they do not
# know (E12.1), also while another engine has the directory (E12.2).
. "$(dirname "$0")/../../e2e/stage.sh"  "$1" "$1"
account() { t account "$@" --endpoint http://127.0.0.1:1 --bearer tok >"$dir/out" 2>&1; }
of() { t status --json | jq -c "[.accounts[] | select(.account == \"$1\")][0] | $2"; }

t --help | grep -q '^  toy sync \[NAME...\]' || fail "its command: $(t --help)"
t account add --help | grep -q '^  toy NAME .*play' || fail "its provider: $(t account add --help)"
t completion --line -- account add '' | grep -q '^toy' || fail "its completion"
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

# ---- a process that ends while it is asked: the command does the work itself
cat >"$dir/ends.py" <<'PYTHON'
"""ends.py HOME: has the directory, as an engine has it, until a job is asked of it."""
import fcntl, json, os, socket, sys
lock = open(f"{sys.argv[1]}/engine.lock", "a")
fcntl.flock(lock, fcntl.LOCK_EX)
path = f"{sys.argv[1]}/engine.sock"
server = socket.socket(socket.AF_UNIX)
server.bind(path)
os.chmod(path, 0o600)
server.listen()
print("ready", flush=True)
answers = {"ping": {"ok": True, "pid": os.getpid(), "run": "0" * 32}, "snapshot": {"ok": True, "snapshot": {}}}
while True:
    peer = server.accept()[0]
    asked = json.loads(peer.makefile().readline())["op"]
    if asked not in answers:
        print(asked)
        os.unlink(path)
        sys.exit()
    peer.sendall((json.dumps(answers[asked]) + '\n{"end":"ok"}\n').encode())
    peer.close()
PYTHON
python3 "$dir/ends.py" "$dir/home" >"$dir/ends.out" 2>&1 &
ends_pid=$!
stage_pids+=("$ends_pid")
until_true 60 grep -q ready "$dir/ends.out" || fail "it does not begin: $(cat "$dir/ends.out")"
ends 0 toy sync one
wait "$ends_pid"
grep -qx enqueue "$dir/ends.out" || fail "it was not asked: $(cat "$dir/ends.out")"

# ---- a resident process runs it, and its schedule
start_serve
watching() { [ -e "$dir/home/archive/toy/watching" ]; }
until_true 60 watching || fail "serve does not watch: $(cat "$dir/serve.log")"
grep -q 'watching.*the toys.*all of them' "$dir/serve.log" || fail "it does not say so: $(cat "$dir/serve.log")"
ends 0 toy sync one --json
jq -e '.handed_over' "$dir/out" >/dev/null || fail "not handed over to serve: $(cat "$dir/out")"
ends 0 metrics
for line in 'tidemark_toy_shown 0' 'tidemark_items_stored_total{account="one"} 5' 'tidemark_jobs_finished_total{system="toy",outcome="done"} 1'; do
    grep -qxF "$line" "$dir/out" || fail "no metric $line: $(cat "$dir/out")"
done
ends 2 schedule add --at hourly account list
grep -q 'These can: backup, toy sync' "$dir/err" || fail "what can be scheduled: $(cat "$dir/err")"
ends 0 schedule add --at 'every 1s' toy sync one
scheduled() { [ "$(of one .stored)" -ge 7 ]; }
until_true 60 scheduled || fail "its schedule: $(t schedule list) $(cat "$dir/serve.log")"
ends 0 schedule remove toy-sync
at_rest() { [ "$(of one .now)" = '"idle"' ]; }
until_true 60 at_rest || fail "it does not rest: $(t status)"
stop_serve 0
! watching || fail "serve ended and still watches"
stored=$(of one .stored)

# ---- a copy, and a home from it
ends 0 backup "$dir/copy"
grep -q "$stored toys" "$dir/out" || fail "backup: $(cat "$dir/out")"
head -c 40000 /dev/urandom >"$dir/home/archive/toy/large"
sqlite3 "$dir/home/archive/toy/rows.db" 'CREATE TABLE one(n); INSERT INTO one VALUES(7)'
ends 0 backup "$dir/more"
cmp -s "$dir/home/archive/toy/large" "$dir/more/archive/toy/large" || fail "a file is not the same in the copy"
[ "$(sqlite3 "$dir/more/archive/toy/rows.db" 'SELECT n FROM one')" = 7 ] || fail "no database in the copy"
t account remove two >/dev/null 2>&1 || fail remove
[ "$(t status --json | jq -c '[.accounts[].account]')" = '["one"]' ] || fail "removed: $(t status)"
timeout 150 "$tidemark" --home "$dir/new" restore "$dir/copy" >"$dir/out" 2>&1 || fail "restore: $(cat "$dir/out")"
[ "$(timeout 150 "$tidemark" --home "$dir/new" status --json | jq -c '[.accounts[] | [.account, .stored]]')" = "[[\"one\",$stored],[\"two\",0]]" ] ||
    fail "restored: $(timeout 150 "$tidemark" --home "$dir/new" status)"

# ---- its tool, through `mcp`: calls run beside each other and the session, and can be canceled
touch "$dir/hold"
coproc mcp { TOY_HOLD=$dir/hold exec "$tidemark" --home "$dir/home" mcp 2>"$dir/mcp.err"; }
mcp_pid=$!
stage_pids+=("$mcp_pid")
say() { printf '%s\n' "$1" >&"${mcp[1]}"; }
hear() { # FILTER: of the next line
    local line
    read -rt 30 line <&"${mcp[0]}" || fail "no answer; $(cat "$dir/mcp.err")"
    jq -e "$1" <<<"$line" >/dev/null || fail "line ${BASH_LINENO[0]}: not $1: $line"
}
call() { say '{"jsonrpc":"2.0","id":'"$1"',"method":"tools/call","params":{"name":"toy_hold","arguments":{"word":"w'"$1"'"}}}'; }
say '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
hear '.id == 0 and .result.protocolVersion == "2025-11-25"'
say '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
hear '[.result.tools[].name] == ["list_accounts","status","toy_hold"]'
for id in $(seq 10 25); do call "$id"; done # as many as may wait
say '{"jsonrpc":"2.0","id":2,"method":"ping"}'
hear '.id == 2 and .result == {}'
call 26
hear '.id == 26 and .error.code == -32000'
call 11
hear '.id == 11 and .error.code == -32600'
for id in $(seq 11 24); do # one runs, most wait
    say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":'"$id"'}}'
done
say '{"jsonrpc":"2.0","id":3,"method":"ping"}' # when this is answered, they are canceled
hear '.id == 3'
rm "$dir/hold"
exec {mcp_in}>&"${mcp[1]}"- # the end of the input: what was asked is answered first
exec {mcp_in}>&-
answers=$(timeout 60 cat <&"${mcp[0]}")
wait "$mcp_pid" || fail "mcp ended with $?: $(cat "$dir/mcp.err")"
[ "$(jq -c '[.id, .result.structuredContent.word]' <<<"$answers" | sort)" = $'[10,"w10"]\n[25,"w25"]' ] ||
    fail "not the answers to 10 and 25 alone: $answers"

exit "$((failed > 0))"
