#!/usr/bin/env bash
# status_watch_test.sh TIDEMARK CLOUD: `tidemark status --watch` shows the rows of `tidemark status`
# once a second, also while a process starts and ends, with the time left, until Ctrl-C (E9.3).
. "$(dirname "$0")/stage.sh"
start_cloud --seed 5 --mailbox ada@example.com=150 --token tok=ada@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
mkdir "$dir/home"
ends 1 status --watch # no ledger: nothing to watch
sign_in
# line_with FILTER: whether an object was printed for which it holds.
line_with() { jq -se "any(.[]; $1)" "$dir/watch"; }
# ends_on PID: Ctrl-C ends it, without an error.
ends_on() {
    kill -INT "$1"
    wait "$1" || fail "line ${BASH_LINENO[0]}: Ctrl-C ends it with $?: $(cat "$dir/watch.err")"
}

# ---- nothing runs, then a sync, then nothing again
"$tidemark" --home "$dir/home" status --watch --json >"$dir/watch" 2>"$dir/watch.err" &
watch=$!
stage_pids+=("$watch")
until_true 30 line_with '.engine == false and .accounts[0].now == "idle" and .accounts[0].time_left_ms == null' || fail "before: $(cat "$dir/watch")"
fault '{"method":"gmail.users.messages.get","fault":"held"}'
timeout 250 "$tidemark" --home "$dir/home" mail sync --quiet >"$dir/sync.out" 2>&1 &
sync=$!
until_true 60 line_with '.engine and .accounts[0].now == "running" and .accounts[0].jobs_running > 0' || fail "while it runs: $(tail -n 3 "$dir/watch")"
# All is listed before all is fetched: a message of 20 units at 60,000 a minute takes 20 ms or more.
until_true 60 line_with '.accounts[0] | .left_is_known and .left >= 50 and .time_left_ms >= .left * 20' || fail "no time left: $(tail -n 3 "$dir/watch")"
no_faults
wait "$sync" || fail "sync: $(cat "$dir/sync.out")"
until_true 30 line_with '.engine == false and .accounts[0].stored == 150 and .accounts[0].now == "idle"' || fail "after: $(tail -n 1 "$dir/watch")"
ends_on "$watch"
jq -se 'all(.[]; .accounts[0].account == "ada@example.com" and .alerts == [] and .at_unix_ms > 0)' "$dir/watch" >/dev/null || fail "a line is not whole"
# The last line is the look at the end, whenever that is.
jq -se '[.[].at_unix_ms][:-1] | [.[1:], .[:-1]] | transpose | all(.[]; .[0] - .[1] >= 990)' "$dir/watch" >/dev/null ||
    fail "more than one look a second: $(jq -sc '[.[].at_unix_ms]' "$dir/watch")"
ends 0 status --json
[ "$(tail -n 1 "$dir/watch" | jq -S 'del(.at_unix_ms)')" = "$(jq -S . "$dir/out")" ] || fail "not the object of status: $(tail -n 1 "$dir/watch")"

# ---- text into a file: only what changed
"$tidemark" --home "$dir/home" status --watch >"$dir/watch" 2>"$dir/watch.err" &
watch=$!
stage_pids+=("$watch")
until_true 30 grep -q '^ada@example.com .* 150 messages .* idle$' "$dir/watch" || fail "text: $(cat "$dir/watch")"
ends 0 account halt "$user" --reason lunch
until_true 30 grep -q '^ada@example.com .* halted: lunch$' "$dir/watch" || fail "a change: $(cat "$dir/watch")"
ends_on "$watch"
[ "$(grep -c ' idle$' "$dir/watch")" -eq 1 ] || fail "the same rows again: $(cat "$dir/watch")"
ends 0 status
[ "$(tail -n 2 "$dir/watch")" = "$(cat "$dir/out")" ] || fail "not the rows of status: $(cat "$dir/watch")"

# ---- on a terminal: redrawn in place, cut to its width, and the whole rows at the end
cat >"$dir/terminal.py" <<'PYTHON'
import fcntl, os, pty, select, signal, struct, sys, termios, time
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 60, 0, 0))
seen = b''
deadline = time.monotonic() + 60
while seen.count(b'\x1b[J') < 3 and time.monotonic() < deadline:
    if select.select([terminal], [], [], 1)[0]:
        seen += os.read(terminal, 65536)
os.write(terminal, b'\x03')  # Ctrl-C, as a user presses it
try:
    while True:
        seen += os.read(terminal, 65536)
except OSError:
    pass
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
PYTHON
timeout 120 python3 "$dir/terminal.py" "$tidemark" --home "$dir/home" status --watch >"$dir/screen" || fail "on a terminal it ends with $?"
grep -q $'\e\[2A' "$dir/screen" || fail "not in place: $(cat -v "$dir/screen")"
# The first drawing may be before the terminal has its size.
tr '\r' '\n' <"$dir/screen" | grep -a $'\e\[K' | tail -n 2 | sed $'s/\e[^a-zA-Z]*[a-zA-Z]//g' | awk 'length > 59 { exit 1 }' || fail "a row is too wide: $(cat -v "$dir/screen")"
# On 60 columns a row has two lines.
tail -n 2 "$dir/screen" | tr -d '\r' | paste -sd ' ' | grep -q '^ada@example.com .* 150 messages .* halted: lunch' || fail "no rows at the end: $(cat -v "$dir/screen")"

# ---- a reader that has enough
"$tidemark" --home "$dir/home" status --watch --json 2>"$dir/watch.err" | head -n 1 >"$dir/watch"
[ "${PIPESTATUS[0]}" -eq 0 ] || fail "its reader is gone, and it ends with an error: $(cat "$dir/watch.err")"
exit "$((failed > 0))"
