#!/usr/bin/env bash
# Every command for people and for programs, and every kind of bad input: the
# exit code, a message that says what to do, and nothing changed.
# cli_test.sh TIDEMARK SEED_LEDGER MAN_PAGE
set -u
tidemark=$1 seed=$2 man_page=$3
unset "${!TIDEMARK_@}" XDG_STATE_HOME XDG_CONFIG_HOME
tmp=$(mktemp -d)
engine_pid=
trap '[ -n "$engine_pid" ] && kill "$engine_pid" 2>/dev/null; chmod -R u+w "$tmp" 2>/dev/null; rm -rf "$tmp"' EXIT
export HOME=$tmp/home
mkdir -p "$HOME"
home=$tmp/state
failures=0 checks=0

fail() { printf 'FAILED: %s\n' "$*" >&2; failures=$((failures + 1)); }

# run CODE COMMAND...: runs tidemark, keeps out and err, checks the exit code.
run() {
    local want=$1; shift
    checks=$((checks + 1))
    out=$("$tidemark" "$@" 2>"$tmp/err"); code=$?
    err=$(cat "$tmp/err")
    [ "$code" -eq "$want" ] || fail "tidemark $*: exit code $code, expected $want: $out $err"
    command_line="tidemark $*"
}
says() { [[ "$out" == *"$1"* ]] || fail "$command_line: no \"$1\" in: $out"; }
complains() { [[ "$err" == *"$1"* ]] || fail "$command_line: no \"$1\" in: $err"; }
holds() { jq -e "$1" >/dev/null 2>&1 <<<"$out" || fail "$command_line: not $1: $out"; }
# both CODE WORD FILTER COMMAND...: for people, then for programs.
both() {
    local want=$1 word=$2 filter=$3; shift 3
    run "$want" --home "$home" "$@"; says "$word"
    run "$want" --home "$home" "$@" --json; holds "$filter"; holds '.alerts | type == "array"'
}
fresh() { rm -rf "$home"; mkdir "$home"; "$seed" "$home" || { echo "seed failed" >&2; exit 1; }; }
sums() { (cd "$1" && find . -type f ! -name '*-shm' ! -name '*-wal' -exec sha256sum {} + | sort); }

# ---- no directory is needed
run 0 --version; says "tidemark "
run 0 --version --json; holds '.version | length > 0'
run 0 --help; says "jobs list"
# What a new user needs is at the top.
[ "$("$tidemark" --help | grep -oE '^  (account add|status|mail sync|console sites|jobs list) ' | tr -s ' \n' ' ')" = ' account add status mail sync console sites jobs list ' ] ||
    fail "the order of --help"
run 0 jobs --help; says "jobs explain ID"
run 0 jobs list --help; says "--after ID"
run 0 help jobs list; says "--after ID"
run 0 help; says "findings"
# One column of sentences, whatever stands before it.
"$tidemark" --help | awk '/^  [a-z].*[^.][.]$/ && substr($0, 29, 1) != " " { bad = 1; print } END { exit bad }' >&2 ||
    fail "--help: a command runs into its sentence"

# ---- `tidemark` alone: where things stand, and the next step; it makes nothing
run 0 --home "$tmp/empty"; says "tidemark account add gmail EMAIL"; says "$tmp/empty"
run 0 --home "$tmp/empty" --json; holds '.accounts == [] and .next.command == "account add gmail EMAIL"'
[ ! -e "$tmp/empty" ] || fail "it made a directory"

# ---- usage
run 2 jbos list; complains "Did you mean \`tidemark jobs\`"
run 2 jobs lst; complains "Did you mean \`tidemark jobs list\`"
run 2 jobs; complains "needs a subcommand"
run 2 jobs list --stat failed; complains "Did you mean --state"
run 2 jobs list --json --nonsense-flag; holds '.error.status == "invalid"'
run 2 jobs show; complains "ID"
run 2 jobs show 1 2; complains "too many"
run 2 --home "$home" jobs show one; complains "not a number"
run 2 jobs list --limit; complains "needs a value"
run 2 --home "$home" jobs list --limit -1; complains '--limit "-1" is not a number'
run 2 --home "$home" jobs list --limit 99999999999999999999; complains "too large"
run 2 --home "$home" jobs pause; complains "no kind or account to pause"
# A value that cannot be is a wrong command line, wherever it stands.
run 2 --home "$home" console backfill sc-domain:example.org --days 0; complains "from 1 to"
run 2 --home "$home" console backfill sc-domain:example.org --workers x; complains '--workers "x" is not a number'
run 2 --home "$home" console backfill sc-domain:example.org --type songs; complains "--help"
run 2 --home "$home" account add imap ada@example.org; complains "gmail, console"
run 2 --home "$home" account add gmail ada; complains "ada@example.com"
run 2 --home "$home" account add gmail ada@example.org --for fun; complains "sync, archive, delete"
run 2 --home "$home" mail sync --since someday; complains "2019"
run 2 --home "$home" mail export out --format pst; complains "eml, maildir, mbox"
run 2 --home "$home" ledger copy a.db b.db --verify --dry-run; complains "Give one"
[ ! -e "$home" ] || fail "a wrong command line made a directory"
run 2 jobs list --json=yes; complains "takes no value"
run 2 -x; complains "two dashes"

# ---- a home that is none
: >"$tmp/file"
run 1 --home "$tmp/file" jobs stats; complains "Not a directory"; complains "--home DIR"

# ---- looking
fresh
both 0 'ID' '(.items | length) == 10 and .total == 10' jobs list
says '"next":null'
both 0 'failed' '[.items[].id] == [2] and .total == 1' jobs list --state failed
both 0 'mail.fetch' '.items | length > 0 and all(.kind == "mail.fetch")' jobs list --kind mail.fetch
both 0 'halted@' '[.items[].id] == [8]' jobs list --account halted@example.com
both 0 '10 in all; older ones: --after 9' '[.items[].id] == [10, 9] and .next == "9" and .total == 10' jobs list --limit 2
both 0 '7' '[.items[].id] == [8, 7]' jobs list --limit 2 --after 9
both 0 'the provider said 500' '.job.error == "the provider said 500" and .job.payload.items == ["a","b"]' jobs show 2
# Times are in the user's zone for people, in UTC for programs.
created() { TZ=$1 "$tidemark" --home "$home" jobs show 2 | sed -n 's/^created *//p'; }
checks=$((checks + 1))
[ $(($(date -ud "$(created JST-9)" +%s) - $(date -ud "$(created UTC)" +%s))) -eq 32400 ] ||
    fail "jobs show: not the time in the user's zone: $(created JST-9), $(created UTC)"
[ "$(TZ=JST-9 "$tidemark" --home "$home" jobs show 2 --json | jq -r .job.created)" = "$("$tidemark" --home "$home" jobs show 2 --json | jq -r .job.created)" ] ||
    fail "jobs show --json: the time depends on the zone"
run 0 --home "$home" jobs show 6; says 'one?[31m' # control characters never reach the terminal
both 0 'it finished' '.reasons[0].why == "done"' jobs explain 1
both 0 'jobs retry 2' '.reasons[0].why == "failed"' jobs explain 2
both 0 'blocked by failed job 2: retry it with `tidemark jobs retry 2`' '.reasons[0].why == "blocked_by_failed" and .reasons[0].job == 2' jobs explain 3
both 0 'not before' '.reasons[0].why == "not_before" and .reasons[0].until_unix_ms > 0' jobs explain 4
both 0 'canceled' '.reasons[0].why == "canceled"' jobs explain 5
both 0 'no engine is running: start one' '.reasons[0].why == "no_engine"' jobs explain 6
both 0 'running' '.reasons[0].why == "running"' jobs explain 7
both 0 'halted since' '.reasons[0].why == "account_halted" and (.reasons[0].text | contains("the owner asked"))' jobs explain 8
both 0 'jobs resume --kind verify' '.reasons[0].why == "kind_paused"' jobs explain 9
both 0 'mail.history' '.totals.failed == 1 and .totals.done == 2 and .totals.running == 1 and .totals.blocked == 1' jobs stats
both 0 'bad_rate' '.alerts[0].level == "critical" and .alerts[0].account == "me@example.com"' alerts
both 0 'cannot be decoded' '[.items[].item] | sort == ["item-1", "item-2"]' bad list
both 0 'item-2' '[.items[].item] == ["item-2"]' bad list --state gone
both 0 'bad accept' '.items[0].reason == "cannot be decoded"' bad explain item-1
both 0 'halted' '.accounts | length == 2 and any(.halted)' account list
both 0 'good' '.good and .problems == []' ledger check

# ---- alerts come first (E6.4)
run 0 --home "$home" jobs stats
[[ $(head -1 <<<"$out") == "ALERT critical: bad_rate on me@example.com: 2 % of"* ]] || fail "alert line: $out"
run 0 --home "$home" config get workers.count
[[ $(head -1 <<<"$out") == "ALERT critical"* ]] || fail "alert line before config: $out"
"$seed" "$home" alert
run 0 --home "$home" jobs stats; says 'and 1 more: `tidemark alerts`'

# ---- reading leaves every byte as it was
fresh
before=$(sums "$home")
for words in "jobs list" "jobs show 2" "jobs explain 3" "jobs stats" "alerts" "bad list" "account list" "ledger check" "config list"; do
    run 0 --home "$home" $words
done
[ "$before" == "$(sums "$home")" ] || fail "a reading command changed a file"

# ---- changing, without an engine
fresh
both 0 'retrying 1 job' '.count >= 0' jobs retry 2
run 0 --home "$home" jobs show 2 --json; holds '.job.state == "pending"'
run 0 --home "$home" jobs retry 1; says "job 1 is done: nothing to retry"
run 0 --home "$home" jobs cancel 6; says "canceled 1 job"
run 0 --home "$home" jobs show 6 --json; holds '.job.state == "canceled"'
run 0 --home "$home" jobs cancel --account halted@example.com --json; holds '.count == 1 and .engine == false'
run 0 --home "$home" jobs cancel 7 --json; holds '.count == 1'
run 0 --home "$home" jobs show 7 --json; holds '.job.state == "canceled"'
run 0 --home "$home" jobs retry --state canceled --json; holds '.count == 4'
run 2 --home "$home" jobs cancel; complains "--all"
run 0 --home "$home" jobs cancel --all --json; holds '.count > 0'
run 0 --home "$home" jobs accept 5 --json; holds '.count == 1'
run 0 --home "$home" jobs show 5 --json; holds '.job.state == "done"'
both 0 'paused kind mail.fetch' '.paused' jobs pause --kind mail.fetch --account me@example.com
run 0 --home "$home" jobs stats; says "account paused, kind paused"
! grep -q ' $' <<<"$out" || fail "jobs stats: a blank at the end of a line"
run 0 --home "$home" account list --json; holds '.accounts[] | select(.account == "me@example.com").paused'
both 0 'resumed kind mail.fetch' '.paused == false' jobs resume --kind mail.fetch --account me@example.com
run 2 --home "$home" jobs pause; complains "--kind"
# An engine that is starting has the lock and not yet the socket: a change waits for it.
cat >"$tmp/starting.py" <<'PYTHON'
import fcntl, os, socket, sys, time
home = sys.argv[1]
lock = open(home + "/engine.lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
lock.write("engine, process %d, run 0\n" % os.getpid())
lock.flush()
print("held", flush=True)
sys.stdin.readline()  # the command runs
time.sleep(0.3)       # so that it finds no socket
listener = socket.socket(socket.AF_UNIX)
listener.bind(home + "/engine.sock")
listener.listen()
client = listener.accept()[0]
print(client.makefile().readline(), end="", flush=True)
client.sendall(b'{"ok":true}\n{"end":"ok"}\n')
os.unlink(home + "/engine.sock")
PYTHON
coproc STARTING { exec python3 "$tmp/starting.py" "$home"; }
engine_pid=$STARTING_PID
exec 7<&"${STARTING[0]}" 8>&"${STARTING[1]}" # bash forgets them when it ends
read -r _ <&7
echo >&8
run 0 --home "$home" jobs pause --kind mail.fetch
read -t 10 -r asked <&7 && [[ $asked == *mail.fetch* ]] || fail "the engine that was starting was not asked: $asked"
kill "$engine_pid" 2>/dev/null
engine_pid=
exec 7<&- 8>&-
run 0 --home "$home" jobs purge --json; holds '.count == 1'
run 1 --home "$home" jobs show 1; complains "there is no job 1"
run 2 --home "$home" jobs purge --older-than soon; complains "7d"
run 0 --home "$home" bad accept item-1; says "accepted 1 item"
run 0 --home "$home" bad accept item-2 --json; holds '.count == 1'
run 0 --home "$home" bad list --json; holds 'any(.items[]; .item == "item-1" and .state == "accepted")'
run 0 --home "$home" bad retry --all --json; holds '.count == 2'
run 2 --home "$home" bad retry; complains "--all"
both 0 'halted account me@example.com' '.halted' account halt me@example.com --reason "on holiday"
run 0 --home "$home" account list; says "on holiday"
both 0 'resumed account' '.halted == false' account resume me@example.com
run 0 --home "$home" ledger check; says "good"
run 0 --home "$home" --quiet jobs retry 5

# ---- backup
run 0 --home "$home" backup "$tmp/copy.db"; says "copied"
[ "$(sqlite3 "$tmp/copy.db" 'PRAGMA integrity_check')" == ok ] || fail "the copy is damaged"
run 1 --home "$home" backup "$tmp/copy.db"; complains "name a new file"
run 0 --home "$home" backup "$tmp/copies" --json; holds '.bytes > 0'
[ -f "$tmp/copies/state.db" ] || fail "no ledger in the copy"
run 1 --home "$home" backup "$home"; complains "another directory"
run 1 --home "$home" backup "$tmp/nowhere/copy.db"; complains "directory"

# ---- settings
both 0 'workers.count' '.settings | length > 60' config list
both 0 '16' '.setting.number == 16 and .setting.origin == "default"' config get workers.count
run 0 --home "$home" --quiet --set workers.count=9 config get workers.count; says 9
printf '# mine\nworkers:\n  count: 8 # eight\n' >"$home/config.yaml"
run 0 --home "$home" config get workers.count; says "config.yaml:3"
run 0 --home "$home" config list --verbose; says "a process that does not renew its lease for this long is dead; others run its jobs"
run 0 --home "$home" config set workers.count 12; says "workers.count = 12"
run 0 --home "$home" config set stall.after 20m --json; holds '.setting.number == 1200000'
[ "$(cat "$home/config.yaml")" == $'# mine\nworkers:\n  count: 12 # eight\nstall.after: 20m' ] || fail "config set: $(cat "$home/config.yaml")"
both 0 'settings are valid' '.good and .changed == 2' config check
TIDEMARK_WORKERS_COUNT=3 TIDEMARK_WORKERS_RESERVED_BULK=0 run 0 --home "$home" config get workers.count; says "env TIDEMARK_WORKERS_COUNT"
TIDEMARK_NONSENSE=1 run 1 --home "$home" config check; complains TIDEMARK_NONSENSE
run 0 --home "$home" config list --changed --json; holds '[.settings[].name] == ["workers.count", "stall.after"]'
before=$(sums "$home")
run 2 --home "$home" config set workers.count 65; complains "between 1 and 64"
run 1 --home "$home" config set workers.cuont 6; complains "Did you mean workers.count"
run 1 --home "$home" config get nonsense; complains "config list"
run 2 --home "$home" --set workers.count=many config list; complains "whole number"
[ "$before" == "$(sums "$home")" ] || fail "a refused setting changed a file"
printf 'workers:\n  count: 8\n  count: 9\n' >"$home/config.yaml"
run 1 --home "$home" config check; complains "config.yaml:3"; complains "config check"
run 1 --home "$home" config set stall.after 5m; complains "config.yaml:3"
printf 'a: "1\n' >"$home/config.yaml"
run 1 --home "$home" config check; complains "not YAML"
run 1 --home "$home" config check --json; holds '.error.status == "invalid" and (.error.hint | length > 0)'
[ "$(cat "$home/config.yaml")" == 'a: "1' ] || fail "bad YAML was changed"
rm "$home/config.yaml"
TIDEMARK_HOME=$home run 0 jobs stats
run 0 config set workers.count 5; [ -f "$HOME/.config/tidemark/config.yaml" ] || fail "no XDG config: $out $err"

# ---- unknown names
for words in "jobs show 99" "jobs explain 99" "jobs retry 99" "jobs cancel 99"; do
    run 1 --home "$home" $words; complains "there is no job 99"; complains "tidemark jobs list"
done
run 1 --home "$home" jobs list --kind nonsense; complains "there is no kind"; complains "jobs stats"
run 1 --home "$home" jobs list --account nobody; complains "there is no account"
run 2 --home "$home" jobs list --state odd; complains "pending, running"
run 1 --home "$home" account halt nobody; complains "account list"
run 1 --home "$home" bad explain nothing; complains "bad list"
run 1 --home "$home" bad retry nothing --json; holds '.error.status == "not_found"'

# ---- ledgers that are none
# refused WORD: reading and changing are refused, and no byte changes.
refused() {
    local words before
    before=$(sums "$home")
    for words in "jobs list" "jobs retry --all" "alerts" "ledger check" "jobs purge" "account halt me@example.com"; do
        run 1 --home "$home" $words; complains "$1"
        [ "$(wc -l <<<"$err")" -ge 2 ] || fail "$command_line: does not say what to do: $err"
        run 1 --home "$home" $words --json; holds '.error.hint | length > 0'
    done
    [ "$before" == "$(sums "$home" | grep -v engine.lock)" ] || fail "a refused ledger was changed ($1)"
}
home=$tmp/missing; run 1 --home "$home" jobs list; complains "--home DIR"; [ -e "$home" ] && fail "made a directory"
run 1 --home "$home" jobs retry --all; [ -e "$home" ] && fail "a change made a directory"
mkdir "$home"; run 1 --home "$home" jobs cancel --all; complains "no ledger"
[ -z "$(ls -A "$home")" ] || fail "files in an empty directory: $(ls -A "$home")"
home=$tmp/state

fresh; rm -f "$home"/state.db-*; head -c 100000 /dev/urandom >"$home/state.db"; refused "state.db"
fresh; sqlite3 "$home/state.db" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null; rm -f "$home"/state.db-*
size=$(stat -c %s "$home/state.db"); dd if=/dev/urandom of="$home/state.db" bs=512 seek=2 count=$((size / 512 - 2)) conv=notrunc status=none
refused "state.db"
rm -rf "$home"; mkdir "$home"; sqlite3 "$home/state.db" 'CREATE TABLE diary (day TEXT); PRAGMA user_version = 3'; refused "state.db"
rm -rf "$home"; mkdir "$home"; printf 'Dear diary' >"$home/state.db"; refused "state.db"
fresh; version=$(sqlite3 "$home/state.db" 'PRAGMA user_version'); sqlite3 "$home/state.db" "PRAGMA user_version = $((version + 1))" ; refused "newer"

# ---- a directory that cannot be written (root can, so it changes its user)
other=()
if [ "$(id -u)" -eq 0 ]; then
    command -v setpriv >/dev/null && other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    chmod 755 "$tmp"
fi
if [ "$(id -u)" -ne 0 ] || { [ ${#other[@]} -gt 0 ] && "${other[@]}" test -x "$tidemark"; }; then
    fresh; sqlite3 "$home/state.db" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
    before=$(sums "$home")
    [ "$(id -u)" -eq 0 ] && chown -R 65534:65534 "$home"
    chmod 400 "$home"/*; chmod 500 "$home"
    program=$tidemark
    tidemark=as_other
    as_other() { "${other[@]}" "$program" "$@"; }
    run 1 --home "$home" jobs retry --all; complains "belong to you"
    run 1 --home "$home" account halt me@example.com --json; holds '.error.hint | length > 0'
    run 1 --home "$home" config set workers.count 8; complains "config.yaml"
    tidemark=$program
    chmod -R u+w "$home"
    [ "$before" == "$(sums "$home")" ] || fail "a read-only directory was changed"
fi

# ---- an engine answers
fresh
coproc engine { "$seed" "$home" engine; }
engine_pid=$engine_PID
read -r ready <&"${engine[0]}"
[ "$ready" == ready ] || fail "the engine did not start"
run 0 --home "$home" jobs retry --all --json; holds '.count == 42 and .engine'
run 0 --home "$home" jobs explain 6; says "no units until the next window"
run 0 --home "$home" jobs explain 6 --json; holds '.reasons[0].why == "quota"'
run 1 --home "$home" account halt me@example.com; complains "the engine knows no such account"; complains "account list"
run 0 --home "$home" jobs list --json; holds '.items | length == 10'
run 0 --home "$home" jobs show 2 --json; holds '.job.state == "failed"' # the engine decided, not we
kill -9 "$engine_pid"; wait "$engine_pid" 2>/dev/null; engine_pid=
run 0 --home "$home" jobs retry 2 --json; holds '.engine == false and .count == 1' # a dead socket is no engine

# ---- --help, man page and completion agree
completion=$("$tidemark" completion)
[ "$completion" = "$("$tidemark" completion bash)" ] || fail "bash is not the default"
bash -n <<<"$completion" || fail "the completion is not bash"
for shell in zsh fish; do
    "$tidemark" completion "$shell" >"$tmp/script" || fail "no completion for $shell"
    grep -q 'completion --line -- ' "$tmp/script" || fail "the completion for $shell: $(cat "$tmp/script")"
    ! command -v "$shell" >/dev/null || "$shell" -n "$tmp/script" || fail "the completion is not $shell"
done
run 2 completion tcsh; complains "bash, zsh, fish"
mkdir "$tmp/bin"
ln -s "$(realpath "$tidemark")" "$tmp/bin/tidemark"
# completes WANT LINE: what bash would offer at the end of that line.
completes() {
    local offered
    offered=$(PATH=$tmp/bin:$PATH bash -c 'eval "$1"; COMP_LINE=$2 COMP_POINT=${#2}; _tidemark; echo "${COMPREPLY[*]}"' - "$completion" "$2" 2>&1)
    [ "$offered" = "$1" ] || fail "completion of \"$2\": \"$offered\", not \"$1\""
}
completes "ledger" "tidemark led"
completes "check copy" "tidemark --ledger postgres://h/d ledger c"
completes "--verify" "tidemark ledger copy --veri"
completes "gmail console onedrive chat" "tidemark account add "
completes "mail mail\\,console\\,drive\\,assistant\\,reader" "tidemark worker --kinds m"
completes "eml maildir mbox" "tidemark mail export --format "
completes "maildir" "tidemark mail export --format=mai"
completes "list" "tidemark mail bad l"
completes "setup test" "tidemark alerts "
completes "workers.count" "tidemark config set workers.c"
completes "workers.count=" "tidemark --set workers.c"
completes "debug" "tidemark config set log.level d"
completes "" "tidemark config set stall.after "
completes "--mode" "tidemark mail archive --mode"
completes "archive.guard" "tidemark config unset --account ada archive."
completes "" "tidemark config unset --account ada workers."
completes "sync archive delete assistant alerts" "tidemark account add gmail ada@example.com --for "
completes "" "tidemark --home $tmp/missing account halt m"
[ ! -e "$tmp/missing" ] || [ -z "$(ls -A "$tmp/missing")" ] || fail "completing made a file"
(cd "$tmp" && completes "file" "tidemark backup fil")
# An alert or a wrong settings file says nothing there.
printf 'a: "1\n' >"$home/config.yaml"
completes "" "tidemark --home $home account halt m"
completes "jobs" "tidemark --home $home job"
rm "$home/config.yaml"
# What --help says: each command is in one section, and each example is a command line that exists.
commands=$("$tidemark" --help | sed -n '/^Accounts:/,/^Global flags:/p' | grep '^  [a-z]' | sed -E 's/^  //; s/ {2,}.*//; s/ [[A-Z].*//')
[ -z "$(sort <<<"$commands" | uniq -d)" ] || fail "twice in --help: $(sort <<<"$commands" | uniq -d)"
[ "$("$tidemark" --help | grep -E '^[A-Z][A-Za-z ]+:$' | paste -sd ' ')" = 'First steps: Accounts: Mail: Console: Drive: Assistant: Reader: By itself: Copies and settings: For programs: Engine: Global flags:' ] ||
    fail "the sections of --help: $("$tidemark" --help | grep -E '^[A-Z][A-Za-z ]+:$' | paste -sd ' ')"
for group in $("$tidemark" completion --line -- '' | cut -f 1); do
    grep -qE "^$group( |\$)" <<<"$commands" || fail "--help lacks $group"
done
examples=0
while read -r line; do
    words=$(sed -E 's/ -- / /; s/"[^"]*"/word/g; s/>.*//' <<<"$line")
    name=$(cut -d ' ' -f 2-3 <<<"$words")
    grep -qxE "${name% *}|$name" <<<"$commands" || fail "an example of no command: $line"
    grep -qxF "$name" <<<"$commands" || name=${name% *}
    for flag in $(grep -oE -- '--[a-z-]+' <<<"$words"); do
        "$tidemark" $name --help | grep -q -- "^  $flag[ =]" || "$tidemark" --help | grep -q -- "^  $flag " || fail "an example with a flag that is none: $line"
    done
    examples=$((examples + 1))
done < <({ "$tidemark" --help; for group in $(cut -d ' ' -f 1 <<<"$commands" | sort -u); do "$tidemark" "$group" --help; done; } |
    sed -n 's/^  \(tidemark [a-z].*\)/\1/p' | sed -E 's/ {3,}.*//')
for name in search show browse saved labels stats status bad verify heal manifest export import archive restore sync; do
    "$tidemark" mail "$name" --help | grep -q "^  tidemark mail " || fail "mail $name --help has no example"
done
"$tidemark" mail browse --help | grep -q '^  space, u ' || fail "mail browse --help has no keys"
for word in writer.lock damaged- .mail-searches.lock BROWSER 'mail import takeout' 'mail stats --by'; do
    sed 's/\\-/-/g' "$man_page" | sed -n '/^.SH ENVIRONMENT/,$p' | grep -qF -- "$word" || fail "the manual's FILES, ENVIRONMENT or EXAMPLES lack $word"
done
[ "$(uniq -d "$man_page" | grep -c '^\.TP')" -eq 0 ] || fail "an empty entry in the manual"
[ "$examples" -gt 30 ] || fail "only $examples examples"
man_text=$(sed 's/\\-/-/g' "$man_page")
while read -r group verb _; do
    name="$group${verb:+ $verb}"
    [[ "$man_text" == *"$name"* ]] || fail "the man page lacks \"$name\""
    "$tidemark" completion --line -- $group "${verb:+${verb%?}}" | cut -f 1 | grep -qxF -- "${verb:-}" || [ -z "$verb" ] || fail "the completion lacks \"$name\""
    offered=$("$tidemark" completion --line -- $name --)
    for flag in $("$tidemark" $name --help | grep -o -- '^  --[a-z-]*'); do
        [[ "$man_text" == *"$flag"* ]] || fail "the man page lacks $flag of $name"
        grep -qF -- "$flag	" <<<"$offered" || fail "the completion lacks $flag of $name"
    done
done <<<"$commands"
if command -v man >/dev/null; then
    warnings=$(man --warnings -l "$man_page" 2>&1 >/dev/null)
    [ -z "$warnings" ] || fail "man page: $warnings"
fi

# ---- the output cannot be written
"$tidemark" --home "$home" jobs list >/dev/full 2>"$tmp/err"; [ $? -eq 1 ] || fail "/dev/full"

printf '%d commands run, %d failures\n' "$checks" "$failures"
[ "$failures" -eq 0 ]
