#!/usr/bin/env bash
# log_test.sh TIDEMARK CLOUD: every command that runs an engine writes the log of its home,
# `tidemark log` reads it, and totals outlive the process (E9.4, E6.4, M4).
. "$(dirname "$0")/stage.sh"
start_cloud --seed 5 --mailbox "$user=30" --token tok-ada="$user"
t() { timeout 100 "$tidemark" --home "$dir/home" "$@"; }

t log >"$dir/out" || fail "a log before there is one"
grep -q 'no lines' "$dir/out" || fail "it says nothing: $(cat "$dir/out")"
sign_in "$user" tok-ada
t mail sync >/dev/null 2>"$dir/err" || fail "sync: $(cat "$dir/err")"

# ---- what it says, and to whom
t log --json >"$dir/out" || fail "log --json"
jq -e '.lines | length > 0 and any(.event == "engine started") and all(has("time") and has("run"))' \
    "$dir/out" >/dev/null || fail "lines: $(cat "$dir/out")"
run=$(jq -r '.lines[-1].run' "$dir/out")
[ ${#run} -eq 32 ] || fail "a run is named $run"
job=$(t jobs list --json | jq '.items[0].id')
[ "$(t jobs show "$job" --json | jq -r ".job.run // .run")" = "$run" ] ||
    fail "no job row has the run of the log"
t log | grep -q 'engine started' || fail "nothing for people"
[ "$(stat -c %a "$dir/home/tidemark.log")" = 600 ] || fail "others may read it"
grep -q tok-ada "$dir/home/tidemark.log" && fail "a token in the log"

# ---- every command that runs an engine writes a run of its own
engines() { t log --limit 10000 --json | jq '[.lines[] | select(.event == "engine started").run] | unique | length'; }
writes() {
    local before
    before=$(engines)
    ends 0 "$@"
    [ "$(engines)" -eq $((before + 1)) ] || fail "tidemark $*: $before runs in the log, then $(engines)"
}
writes mail archive in:anywhere --limit 2 --mode trash --dry-run
writes mail archive in:anywhere --limit 2 --mode trash --yes
writes mail restore --manifest 1 --yes
site=sc-domain:example.com
start_cloud --seed 7 --clock "$(date +%s)000" --mailbox "$user=1" --token tok-ada="$user" --site "$site=$user,rows=3"
t account add console "$site" --endpoint "$origin" --bearer tok-ada >/dev/null || fail "account add console"
writes console backfill "$site" --days 2 --quiet
writes console sync --quiet

# ---- filters
t mail sync >/dev/null 2>&1 || fail "the second sync"
[ "$(t log --run "${run:0:8}" --json | jq '[.lines[].run] | unique | length')" = 1 ] || fail "--run"
t log --run "${run:0:8}" --json | jq -e --arg run "$run" '.lines | all(.run == $run)' >/dev/null ||
    fail "--run names another"
[ "$(t log --level error --json | jq '.lines | length')" = 0 ] || fail "--level error"
[ "$(t log --limit 1 --json | jq '.lines | length')" = 1 ] || fail "--limit"
t log --account "$user" --json | jq -e --arg user "$user" '.lines | all(.account == $user)' >/dev/null ||
    fail "--account"
t log --level loud 2>"$dir/err"
[ $? -eq 2 ] && grep -q 'there is no level "loud"' "$dir/err" || fail "an odd level: $(cat "$dir/err")"

# ---- lines that are no lines, and control bytes, are shown safely
printf 'half a li' >>"$dir/home/tidemark.log"
printf '\n{"time":"x","level":"info","run":"r","event":"e","detail":"\\u001b[31mred"}\n' >>"$dir/home/tidemark.log"
t log >"$dir/out" || fail "a log with a damaged line"
grep -q $'\033' "$dir/out" && fail "control bytes reach the terminal"
[ "$(t log --json | jq .unreadable)" = 1 ] || fail "the damaged line is not counted"

# ---- from a place on, also after the file was set aside, and from the beginning when it is gone
line() { printf '{"time":"2026-11-16T00:00:0%s.000Z","level":"info","run":"r","event":"line %s"}\n' "$1" "$1" >>"$dir/home/tidemark.log"; }
tail_is() { # EVENTS: of what came since the last time
    t log --json ${place:+--after "$place"} >"$dir/out" || fail "log --after: $(cat "$dir/out")"
    place=$(jq -r .next "$dir/out")
    [ "$(jq -c '[.lines[].event]' "$dir/out")" = "$1" ] || fail "line ${BASH_LINENO[0]}: since the last time: $(cat "$dir/out")"
}
place=$(t log --json --limit 1 | jq -r .next)
tail_is '[]'
line 1
tail_is '["line 1"]'
printf '{"time":"x","level":"info","run":"r","ev' >>"$dir/home/tidemark.log"
tail_is '[]'
printf 'ent":"whole"}\n' >>"$dir/home/tidemark.log"
tail_is '["whole"]'
line 2
mv "$dir/home/tidemark.log" "$dir/home/tidemark.log.1"
tail_is '["line 2"]'
line 3
tail_is '["line 3"]'
rm "$dir/home/tidemark.log"
mv "$dir/home/tidemark.log.1" "$dir/home/tidemark.log"
t log --json --after "$place" | jq -e '.lines | map(.event) | index("line 1") != null' >/dev/null || fail "a place that is gone"
ends 2 log --after nonsense

# ---- it does not grow without end
TIDEMARK_LOG_FILE_BYTES=65536 TIDEMARK_LOG_FILES=2 TIDEMARK_LOG_LEVEL=debug t mail sync --force \
    >/dev/null 2>&1 || fail "a verbose sync"
for _ in 1 2 3 4 5 6; do
    head -c 70000 /dev/zero | tr '\0' 'x' >>"$dir/home/tidemark.log"
    TIDEMARK_LOG_FILE_BYTES=65536 TIDEMARK_LOG_FILES=2 t mail sync >/dev/null 2>&1 || fail "a sync"
done
[ "$(find "$dir/home" -name 'tidemark.log*' | wc -l)" = 3 ] ||
    fail "set aside: $(ls "$dir/home")"

# ---- --follow
mkfifo "$dir/lines"
"$tidemark" --home "$dir/home" log --follow --json --limit 1 >"$dir/lines" 2>/dev/null &
follower=$!
stage_pids+=("$follower")
exec 4<"$dir/lines"
read -rt 60 -u 4 _ || fail "the first line of --follow"
t mail sync >/dev/null 2>&1 || fail "a sync beside --follow"
seen=
while [ -z "$seen" ] && read -rt 60 -u 4 line; do
    case $line in *'"engine started"'*) seen=1 ;; esac
done
[ -n "$seen" ] || fail "--follow missed the start of an engine"
kill -INT "$follower"
wait "$follower"

# ---- totals of all runs
t jobs stats --json | jq -e '.accounts[0] | .account == "'$user'" and .calls >= 30' >/dev/null ||
    fail "totals: $(t jobs stats --json)"
t jobs stats | grep -q 'API CALLS' || fail "totals for people"
exit $((failed > 0))
