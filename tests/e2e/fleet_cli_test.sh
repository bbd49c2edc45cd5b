#!/usr/bin/env bash
# fleet_cli_test.sh TIDEMARK CLOUD SEED_LEDGER: the commands on a ledger that many machines
# share: choosing it, passwords, roles, every refusal, looking and changing without an
# engine, and a worker that joins, works, and ends when asked to (E1.7, E7.4).
if [ -z "${TIDE_TEST_POSTGRES:-}" ]; then
    "$(dirname "$0")/../support/pg_cluster.sh" run --fast "$0" "$@"
    status=$?
    [ "$status" = 77 ] && exit 0 # it has said why
    exit "$status"
fi
. "$(dirname "$0")/stage.sh"
seed=$(realpath "$3")
url=$TIDE_TEST_POSTGRES
unset "${!TIDEMARK_@}" PGPASSWORD PGUSER PGDATABASE PGHOST PGSERVICE NOTIFY_SOCKET WATCHDOG_USEC
export HOME=$dir
pids=()
trap 'for pid in "${pids[@]:+${pids[@]}}"; do kill "$pid" 2>/dev/null; done; rm -rf "$dir"' EXIT
server=${url#*host=} && server=${server%%&*}
database=${url#postgres:///} && database=${database%%\?*}
as() { echo "postgres:///$database?host=$server&user=$1"; }

psql=$(command -v psql || ls /usr/lib/postgresql/*/bin/psql | sort -V | tail -1)
# As a user who may run a server; pg_cluster.sh found its programs the same way.
server_do() {
    local ctl as=()
    ctl=$(ls /usr/lib/postgresql/*/bin/pg_ctl "$(pg_config --bindir 2>/dev/null)/pg_ctl" 2>/dev/null | sort -V | tail -1)
    [ "$(id -u)" != 0 ] || as=(runuser -u postgres --)
    (cd / && "${as[@]+"${as[@]}"}" "$ctl" -D "$server/data" -l "$server/log" -w -t 60 "$@") >/dev/null || fail "pg_ctl $*"
}
sql() { "$psql" -qXAt -h "$server" -U postgres -d "$database" -v ON_ERROR_STOP=1 -c "$1"; }
# run CODE ARGUMENTS...: a command on the shared ledger; keeps out and err.
run() {
    local want=$1 code
    shift
    out=$(timeout 150 "$tidemark" --home "$dir/home" "$@" 2>"$dir/err")
    code=$?
    err=$(cat "$dir/err")
    line="tidemark $*"
    [ "$code" -eq "$want" ] || fail "$line: exit code $code, expected $want: $out $err"
    # CLI3: what happened, and what to do about it.
    [ "$code" -eq 0 ] || [ "$want" -eq 3 ] || [[ "$*" == *--json* ]] || [ "$(wc -l <<<"$err")" -ge 2 ] ||
        fail "$line: does not say what to do: $err"
}
on() { local want=$1; shift; run "$want" --ledger "$url" "$@"; }
says() { [[ "$out" == *"$1"* ]] || fail "$line: no \"$1\" in: $out"; }
complains() { [[ "$err" == *"$1"* ]] || fail "$line: no \"$1\" in: $err"; }
hides() { [[ "$out$err" != *"$1"* ]] || fail "$line: shows $1: $out$err"; }
holds() { jq -e "$1" >/dev/null 2>&1 <<<"$out" || fail "$line: not $1: $out"; }

# ---- which ledger, and passwords
run 2 --ledger state.db jobs list; complains "not a PostgreSQL URL"
run 2 --ledger postgres://u:s3cret@h/db jobs list; complains "command line"; complains "pgpass"; hides s3cret
run 2 --ledger 'postgres://h/db?password=s3cret' jobs list; complains "command line"; hides s3cret
run 2 --set ledger.url=postgres://u:s3cret@h/db jobs list; complains "command line"; hides s3cret
run 2 config set ledger.url postgres://u:s3cret@h/db; complains "command line"; hides s3cret
run 2 ledger copy "$dir/x.db" postgres://u:s3cret@h/db; complains "command line"; hides s3cret
run 2 --json --ledger postgres://u:s3cret@h/db worker; holds '.error.status == "invalid"'; hides s3cret
for command in worker "ledger members" "ledger migrate"; do
    # shellcheck disable=SC2086
    run 2 $command; complains "needs a shared ledger"; complains "--ledger"
done
mkdir -p "$dir/home"
echo "ledger.url: 'postgres://u:s3cret@h/db'" >"$dir/home/config.yaml"
chmod 644 "$dir/home/config.yaml"
run 1 jobs list; complains "other users can read"; complains "chmod 600"; hides s3cret
chmod 600 "$dir/home/config.yaml"
run 0 config list --changed; says 'postgres://u:***@h/db'; hides s3cret
run 0 config get ledger.url --json; holds '.setting.value == "postgres://u:***@h/db"'; hides s3cret
rm "$dir/home/config.yaml"
echo "ledger.url: 'mysql://u:s3cret@h/db'" >"$dir/home/config.yaml"
run 1 config check; complains "postgres://"; hides s3cret
rm "$dir/home/config.yaml"

# ---- refusals of the server
run 1 --ledger "postgres:///$database?host=$dir/nowhere" jobs list; complains "server"
run 1 --ledger "postgres:///there_is_none?host=$server&user=postgres" jobs list
run 1 --ledger "$(as nobody_of_that_name)" jobs list; complains "role"
on 1 jobs list; complains "ledger migrate"
on 1 worker --once; complains "ledger migrate"
[ -z "$(sql "SELECT 1 FROM pg_namespace WHERE nspname = 'tidemark'")" ] || fail "a refused command made tables"

# ---- tables, and a role with no more rights than it needs
on 0 ledger migrate; says "tables of"
[ "$failed" = 0 ] || exit 1 # the rest would only say so again
on 0 ledger migrate --json; holds '.ledger | startswith("postgres://")'
on 1 ledger migrate --role there_is_none; complains "CREATE ROLE"
sql "CREATE ROLE guest LOGIN; CREATE ROLE hand LOGIN PASSWORD 'right'"
on 0 ledger migrate --role hand; says "role hand has the rights"
# It makes no table, so mail's and console's are there already.
[ "$(sql "SELECT count(*) FROM pg_tables WHERE schemaname = 'tidemark' AND tablename IN ('mail_account', 'mail_manifest', 'console_site')")" = 3 ] ||
    fail "migrate did not make the tables of mail and console"
run 1 --ledger "$(as guest)" jobs list; complains "migrate --role"
run 1 --ledger "$(as guest)" jobs cancel --all; complains "migrate --role"
run 0 --ledger "$(as hand)" jobs list; says "no jobs"
run 1 --ledger "$(as hand)" ledger migrate --role guest; complains "owner"
# Its password: wrong, in a file, in the environment.
{ echo "local all hand scram-sha-256"; cat "$server/data/pg_hba.conf"; } >"$dir/hba"
cat "$dir/hba" >"$server/data/pg_hba.conf" && sql "SELECT pg_reload_conf()" >/dev/null
until_true 10 bash -c "! PGPASSWORD=wrong '$psql' -qX -h '$server' -U hand -d '$database' -c ''" ||
    fail "the server does not ask for passwords"
PGPASSWORD=wr0ng run 1 --ledger "$(as hand)" jobs list; complains "password"; complains ".pgpass"; hides wr0ng
PGPASSWORD=right run 0 --ledger "$(as hand)" jobs list; says "no jobs"
echo "localhost:*:*:hand:right" >"$dir/.pgpass" && chmod 600 "$dir/.pgpass"
echo "$server:*:*:hand:right" >>"$dir/.pgpass"
run 0 --ledger "$(as hand)" jobs list; says "no jobs"
echo "ledger.url: 'postgres://hand:right@/$database?host=$server'" >"$dir/home/config.yaml"
chmod 600 "$dir/home/config.yaml"
rm "$dir/.pgpass"
run 0 jobs list; says "no jobs"
rm "$dir/home/config.yaml"
TIDEMARK_LEDGER_URL=$url run 0 jobs list; says "no jobs"
TIDEMARK_LEDGER_URL=postgres://nowhere.invalid/x run 0 --ledger "$url" jobs list; says "no jobs" # the flag wins

# ---- looking and changing, without any process that works
"$seed" "$url" || fail "seed"
on 0 jobs list; says "mail.fetch"; says "the provider said 500"
on 0 jobs list --state failed --json; holds '.items | length == 1 and .[0].id == 2'
on 0 jobs show 6; says "payload"
on 0 jobs explain 6; says "no member works on this ledger"
on 0 jobs explain 3 --json; holds '.reasons[0].why == "blocked_by_failed"'
on 0 jobs stats --json; holds '.totals.done == 2 and .totals.failed == 1'
on 0 alerts; says "bad_rate"
on 0 bad list; says "item-1"
on 0 account list --json; holds '.accounts | length == 2 and .[0].held == false'
on 0 ledger check; says "good"
on 0 ledger members; says "no members work"
on 0 ledger members --json; holds '.members == []'
on 0 jobs pause --kind mail.history; says "paused kind"
on 0 jobs stats --json; holds '[.counts[] | select(.kind_paused) | .kind] | index("mail.history") != null'
on 0 jobs resume --kind mail.history
on 0 jobs pause --account me@example.com; on 0 account list; says "paused"
on 0 jobs resume --account me@example.com
on 0 account halt me@example.com --reason "a try"; on 0 account list; says "a try"
on 0 account resume me@example.com
on 1 account halt no@example.com; complains "account list"
on 0 jobs retry 2; says "retrying 1 job"; [[ "$out" != *"no engine"* ]] || fail "it speaks of an engine"
on 0 jobs cancel 2; says "canceled 1 job"
on 0 jobs show 7 --json; holds '.job | has("run_by")'
on 0 jobs cancel 7; says "1 running job is asked to stop"
on 0 jobs cancel 7 --json; holds '.running == [7]' # the request is kept for the process that runs it
on 0 jobs accept 5; says "accepted 1 job"
on 0 bad retry item-1; says "retrying 1 item"
on 0 bad accept item-1; says "accepted 1 item"
on 0 jobs purge; says "removed 1 finished job"
on 1 backup "$dir/copy.db"; complains "pg_dump"
[ ! -e "$dir/home/state.db" ] || fail "a command made a ledger in the home"
[ ! -e "$dir/home/engine.lock" ] || fail "a command took the lock of the home"

# ---- the doctor: this server does not sync, and says so
on 3 jobs doctor; says "durability"; says "critical"
on 3 jobs doctor --json; holds '.healthy == false and (.symptoms[] | select(.what == "durability").level == "critical")'
run 1 --ledger "postgres:///$database?host=$dir/nowhere" jobs doctor

# ---- tables of a newer version
sql "CREATE TABLE meta_was AS SELECT * FROM tidemark.meta;
    UPDATE tidemark.meta SET value = '999' WHERE key IN ('version', 'oldest_program')"
on 1 jobs list; complains "newer"; complains "Upgrade"
on 1 worker --once; complains "newer"
on 1 ledger migrate; complains "newer"
sql "UPDATE tidemark.meta m SET value = w.value FROM meta_was w WHERE w.key = m.key"
on 0 jobs list

# ---- a worker: flags, joining, telling its service manager, ending
on 2 worker --kinds calendar; complains "mail, console"
on 2 worker --workers 0; complains "between 1"
on 2 worker --accounts a@example.com,; complains "empty name"
exec 4< <(exec python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(4096).decode().replace("\n", " "), flush=True)
' "$dir/notify")
pids+=($!)
until_true 10 test -S "$dir/notify" || fail "no socket to notify"
worker() { # in the background: its events in $dir/events
    NOTIFY_SOCKET=$dir/notify WATCHDOG_USEC=1000000 "$tidemark" --home "$dir/home" --ledger "$url" --json worker "$@" \
        >"$dir/worker.out" 2>"$dir/events" &
    worker=$!
    pids+=("$worker")
}
told() { # reads what the service manager received until a line has $1
    local said
    while read -rt 20 said <&4; do
        [[ "$said" == *"$1"* ]] && return 0
    done
    return 1
}
member() { "$tidemark" --home "$dir/home" --ledger "$url" ledger members --json | jq -e ".members | map(select(.dead | not)) | length == $1"; }
worker
told READY=1 || fail "the service manager was not told READY=1: $(cat "$dir/events")"
until_true 20 member 1 || fail "it did not join: $(cat "$dir/events")"
on 0 ledger members; says "process $worker"; says "alive"
told WATCHDOG=1 || fail "the watchdog was not told"
jq -se 'map(.event) | index("joined") != null' "$dir/events" >/dev/null || fail "no line when it joined"
on 1 worker; complains "another"; complains "home" # one for a directory
# Its server goes away and comes back: it waits, says so, and is a member still, or again.
events() { jq -se "map(.event) | index(\"$1\") != null" "$dir/events"; }
server_do stop -m immediate
until_true 30 events "ledger out of reach" || fail "no line when it lost its server: $(cat "$dir/events")"
on 1 jobs list; complains "server"
server_do start
until_true 30 events "ledger reached again" || fail "no line when it found its server: $(cat "$dir/events")"
until_true 30 member 1 || fail "it did not continue: $(cat "$dir/events")"
kill -TERM "$worker"
wait "$worker"; code=$?
[ "$code" -eq 0 ] || fail "a worker that was asked to end ended with $code: $(cat "$dir/worker.out")"
told STOPPING=1 || fail "the service manager was not told STOPPING=1"
jq -e '.interrupted and .put_back == 0' "$dir/worker.out" >/dev/null || fail "its last word: $(cat "$dir/worker.out")"
member 0 >/dev/null || fail "it did not leave"

# ---- all of it by a role that has no more rights than `ledger migrate --role` gave it, in a
# database that no role with more rights has used
sql "CREATE DATABASE little" && little=${url/$database/little}
few=${little/user=postgres/user=hand}
export PGPASSWORD=right
exec 5< <(exec "$cloud" --listen 127.0.0.1:0 --quiet --seed 6 --mailbox bob@example.com=12 --token tok-77aa=bob@example.com \
    --site sc-domain:example.org=bob@example.com,rows=20)
pids+=($!)
read -r _ little_cloud <&5
run 0 --ledger "$little" ledger migrate --role hand
there=("--endpoint" "$little_cloud" "--bearer" tok-77aa)
run 0 --ledger "$few" account add gmail bob@example.com "${there[@]}"
run 0 --ledger "$few" account add console sc-domain:example.org "${there[@]}"
run 0 --ledger "$few" mail sync --quiet --json; holds '.accounts[0].stored == 12'
run 0 --ledger "$few" console backfill sc-domain:example.org --days 2 --quiet --json; holds '.days > 0 and .refused == 0'
run 0 --ledger "$few" worker --once
# A worker in this home: what is asked for here is done by it.
NOTIFY_SOCKET=$dir/notify "$tidemark" --home "$dir/home" --ledger "$few" --json worker >"$dir/worker.out" 2>"$dir/events" &
worker=$! && pids+=("$worker")
told READY=1 || fail "the worker of few rights is not ready: $(cat "$dir/events")"
run 0 --ledger "$few" console backfill sc-domain:example.org --days 5 --json; holds '.handed_over'
jq -se 'all(.event == "progress" and .handed_over)' >/dev/null 2>&1 <<<"$err" || fail "$line: its progress is not events: $err"
run 0 --ledger "$few" console status --json; holds '.series[0].days >= 5 and .series[0].days_left == 0'
run 0 --ledger "$few" console sync; says "days stored with"; complains "rocess $worker "
run 0 --ledger "$few" account add console sc-domain:example.net "${there[@]}"
run 0 --ledger "$few" mail sync; says "12 stored"; complains "rocess $worker "
run 0 --ledger "$few" --home "$dir/other" mail sync; says "stored elsewhere"
run 0 --ledger "$few" account list; says "process $worker"
# Canceled while it is watched: the command reports that, and not bad messages.
curl -sSf -o "$dir/out" "$little_cloud/_cloud/faults" -d '{"method":"gmail.*","fault":"latency","ms":600000}' || fail "a slow cloud"
"$tidemark" --home "$dir/home" --ledger "$few" mail sync --quiet >"$dir/out" 2>&1 &
asker=$!
runs() { "$tidemark" --home "$dir/home" --ledger "$few" jobs list --kind mail.plan --state running --json | jq -e '.items | length == 1'; }
until_true 20 runs || fail "nothing is asked for: $(cat "$dir/out")"
run 0 --ledger "$few" jobs cancel --kind mail.plan; says "asked to stop"
wait "$asker"; code=$?
[ "$code" -eq 3 ] && grep -q 'were canceled' "$dir/out" || fail "a canceled sync ended with $code: $(cat "$dir/out")"
curl -sSf -o "$dir/out" -X DELETE "$little_cloud/_cloud/faults" || fail "a quick cloud"
[ -z "$(ls -d "$dir/home/beside"* 2>/dev/null)" ] || fail "what was handed over left a directory"
kill -TERM "$worker" && wait "$worker" || fail "the worker of few rights ended with $?: $(cat "$dir/worker.out")"
# Where its archive is not, an account is refused before a sign-in; the error says where it is.
run 0 --ledger "$few" account list; says "here"
run 0 --ledger "$few" --home "$dir/other" account list --json; holds '.accounts[] | select(.account == "bob@example.com") | .here == false and .signed_in == "elsewhere"'
run 1 --ledger "$few" --home "$dir/other" account add gmail bob@example.com "${there[@]}"; complains "not here"; complains "move"
[ -z "$(ls "$dir/other/secrets" 2>/dev/null)" ] || fail "a refused account left its sign-in"
run 1 --ledger "$few" --home "$dir/other" mail search x --account bob@example.com; complains "elsewhere"
run 0 --ledger "$few" ledger members; says "no members work"; says "gone in the last day"
run 0 --ledger "$few" ledger members --verbose; says "process"
run 0 --ledger "$few" jobs purge --older-than 1s; says "whole days"
# That role may copy the ledger out; into a database only its owner can.
run 0 ledger copy "$few" "$dir/out.db"; says "equal"; [[ "$out" != *DIFFERENT* ]] || fail "$line: $out"
sql "CREATE DATABASE second"
run 1 ledger copy "$dir/out.db" "${few/little/second}"; complains "owner"
run 0 ledger copy "$dir/out.db" "${little/little/second}"; says "migrate --role"
run 1 --ledger "${few/little/second}" jobs list; complains "migrate --role"
run 0 --ledger "${little/little/second}" ledger migrate --role hand
run 0 --ledger "${few/little/second}" jobs stats; says "mail.fetch"
unset PGPASSWORD
rm -rf "$dir/home/archive" "$dir/home/secrets"

# ---- a worker that starts while its server is away: it says so once, waits, and continues
ended() { # a worker was asked to end: $1 is its exit code, $2 holds for its last event
    wait "$worker"; code=$?
    [ "$code" -eq "$1" ] || fail "the worker ended with $code: $(cat "$dir/events" "$dir/worker.out")"
    jq -e "$2" "$dir/worker.out" >/dev/null || fail "its last word: $(cat "$dir/worker.out")"
}
server_do stop -m immediate
on 1 worker --once; complains "server"
worker
told "READY=1 STATUS=waiting for" || fail "the service manager was not told that it waits: $(cat "$dir/events")"
told WATCHDOG=1 || fail "the watchdog was not told while it waits"
kill -TERM "$worker"
ended 5 '.interrupted and .done == 0'
told STOPPING=1 || fail "the service manager was not told STOPPING=1 while it waits"
worker
told "STATUS=waiting for" || fail "it does not wait: $(cat "$dir/events")"
for _ in 1 2 3; do told WATCHDOG=1 || fail "the watchdog was not told while it waits"; done # some attempts later
server_do start
until_true 30 member 1 || fail "it did not continue when its server came: $(cat "$dir/events")"
told "STATUS=working on" || fail "the service manager was not told that it works"
jq -se 'map(.event) | (map(select(. == "ledger out of reach")) | length == 1)
    and index("ledger reached again") < index("joined")' "$dir/events" >/dev/null || fail "its lines: $(cat "$dir/events")"
kill -TERM "$worker"
ended 0 '.interrupted'
# It does not wait for an error that needs a change by a person.
run 1 --ledger "postgres:///there_is_none?host=$server" worker; complains "does not exist"
PGPASSWORD=wr0ng run 1 --ledger "$(as hand)" worker; complains "password"; hides wr0ng

# ---- a worker mirrors a mailbox; a command in the same home hands its work over
exec 3< <(exec "$cloud" --listen 127.0.0.1:0 --quiet --seed 5 --mailbox "$user=40" --token tok-5f3a9c71="$user")
pids+=($!)
read -r _ origin <&3
on 0 account add gmail "$user" --endpoint "$origin" --bearer tok-5f3a9c71
on 0 account list --json; holds ".accounts[] | select(.account == \"$user\") | .archive != null"
worker
told READY=1 || fail "the second worker is not ready: $(cat "$dir/events")"
on 0 mail sync --quiet --json; holds ".accounts[0].stored == 40"
events "account taken" >/dev/null || fail "no line when it took an account: $(cat "$dir/events")"
run 0 mail verify --account "$user"; says "40 messages read back, 0 damaged"
kill -INT "$worker"
wait "$worker"; code=$?
[ "$code" -eq 0 ] || fail "a worker with nothing to do ended with $code: $(cat "$dir/worker.out")"
jq -e '.done > 0 and .failed == 0 and .put_back == 0' "$dir/worker.out" >/dev/null || fail "its last word: $(cat "$dir/worker.out")"

# ---- told to end in the middle of a job: it goes back, and the exit code says so
struck() { curl -sS "$origin/_cloud/faults" | jq -e '[.. | .struck? // 0] | add > 0'; }
for signal in TERM INT; do
    curl -sSf -o "$dir/out" "$origin/_cloud/faults" -d '{"method":"gmail.*","fault":"latency","ms":600000}' || fail "a slow cloud"
    worker --set workers.stop_grace=200ms
    told READY=1 || fail "the third worker is not ready: $(cat "$dir/events")"
    # Asked for by a process that does not stay: what it asked for does.
    "$tidemark" --home "$dir/home" --ledger "$url" mail sync --quiet >"$dir/out" 2>&1 &
    asker=$!
    until_true 20 struck || fail "nothing waits for the cloud: $(cat "$dir/events" "$dir/out")"
    kill -KILL "$asker"
    wait "$asker" 2>/dev/null
    kill -"$signal" "$worker"
    wait "$worker"; code=$?
    [ "$code" -eq 5 ] || fail "SIG$signal in the middle of a job: $code, not 5: $(cat "$dir/worker.out")"
    jq -e '.interrupted and .put_back > 0 and .failed == 0' "$dir/worker.out" >/dev/null || fail "its last word: $(cat "$dir/worker.out")"
    [ "$(sql "SELECT count(*) FROM tidemark.job WHERE state = 1")" = 0 ] || fail "a job is running without a worker"
    curl -sSf -o "$dir/out" -X DELETE "$origin/_cloud/faults" || fail "a quick cloud"
done
on 0 mail sync --quiet --json; holds ".accounts[0].cycles_open == 0 and .accounts[0].failed_jobs == 0"

# ---- once: it ends by itself
on 0 worker --once --json; holds '.interrupted == false'
# The role of few rights can work, too, also where no role with more rights worked before.
sql "SET client_min_messages = warning; DROP SCHEMA tidemark CASCADE"
on 0 ledger migrate --role hand
PGPASSWORD=right run 0 --ledger "$(as hand)" worker --once; says "0 failed"

[ "$failed" = 0 ] && echo "commands on a shared ledger: all as they should be"
exit "$failed"
