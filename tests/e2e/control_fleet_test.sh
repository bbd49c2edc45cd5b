#!/usr/bin/env bash
# control_fleet_test.sh TIDEMARK CLOUD: what a person says on one machine every worker obeys
# (E9.4): pause and resume of a kind and of an account, halt and resume, and cancel, told from a
# home where nothing runs to two workers that are in the middle of it.  Once with hints, once
# where hints do not get through.
. "$(dirname "$0")/stage.sh"
start_postgres
ada=ada@example.com
bob=bob@example.com
serve --seed 3 --quota off --latency 40 --mailbox "$ada=4000" --mailbox "$bob=4000" --token ta="$ada" --token tb="$bob"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 TIDEMARK_FLEET_LEASE=6s TIDEMARK_FLEET_LOOK=2s TIDEMARK_FLEET_POLL=500ms
export TIDEMARK_WORKERS_STOP_GRACE=200ms
t() { "$tidemark" --home "$dir/$home" --ledger "$far" "$@"; }
tell() { "$tidemark" --home "$dir/elsewhere" --ledger "$far" "$@" >"$dir/told" 2>&1 || fail "$*: $(cat "$dir/told")"; }
sql() { psql -qtAX "$near" -c "$1"; }
calls() { curl -sS "$origin/_cloud/stats" | jq ".users.\"$1\".calls // 0"; }
running() { # jobs that run, of an account or of all
    sql "SELECT count(*) FROM tidemark.job j JOIN tidemark.account a ON a.id = j.account
        WHERE j.state = 1 AND a.name LIKE '${1:-%}'"
}
more() { [ "$(calls "$1")" -gt "$2" ]; }
works() { # account: it asks for more than it has
    until_true 20 more "$1" "$(($(calls "$1") + 3))" || fail "$1 does not continue ($2): $(tail -n 3 "$dir"/*.log) $(cat "$dir/told")"
}
quiet() { [ "$(running "$1")" = 0 ]; }
# Whatever comes next would only say it again, and slowly.
give_up() { [ "$failed" -eq 0 ] || exit 1; }
rests() { # account, why: nothing runs, and nothing is asked for any more
    local before
    until_true 20 quiet "$1" || fail "$1: $(running "$1") jobs run still ($2): $(cat "$dir/told")"
    # On a busy machine the cloud still reads calls that were canceled on their way.
    for _ in 1 2 3 4 5; do
        before=$(calls "$1")
        until_true 1 more "$1" "$before" || return
    done
    fail "$1 is asked for although nothing may run ($2)"
}

part() { # name of the database, what is added to the URL
    psql -q "$url" -c "CREATE DATABASE $1" || fail "CREATE DATABASE"
    far=${url%%\?*}
    near="${far%/*}/$1?${url#*\?}"
    far=$near$2
    home=one$1
    t ledger migrate >"$dir/out" 2>&1 || fail "migrate: $(cat "$dir/out")"
    t account add gmail "$ada" --endpoint "$origin" --bearer ta >"$dir/out" 2>&1 || fail "add: $(cat "$dir/out")"
    home=two$1
    t account add gmail "$bob" --endpoint "$origin" --bearer tb >"$dir/out" 2>&1 || fail "add: $(cat "$dir/out")"
    for home in "one$1" "two$1"; do
        "$tidemark" --home "$dir/$home" --ledger "$far" worker >"$dir/$home.log" 2>&1 &
        pid[$home]=$!
    done
    "$tidemark" --home "$dir/elsewhere" --ledger "$far" mail sync --quiet >"$dir/out" 2>&1 &
    pid[watcher]=$!
    works "$ada" start
    works "$bob" start

    # A kind: both processes.
    for kind in mail.plan mail.list mail.fetch; do tell jobs pause --kind "$kind"; done
    rests "$ada" "kinds paused"
    rests "$bob" "kinds paused"
    for kind in mail.plan mail.list mail.fetch; do tell jobs resume --kind "$kind"; done
    give_up
    works "$ada" "kinds resumed"
    works "$bob" "kinds resumed"

    # An account: its own process, and no other.
    tell jobs pause --account "$bob"
    rests "$bob" "paused"
    works "$ada" "the other is paused"
    tell jobs resume --account "$bob"
    works "$bob" resumed
    tell account halt "$ada" --reason "a try"
    rests "$ada" halted
    works "$bob" "the other is halted"
    tell account resume "$ada"
    works "$ada" "resumed after the halt"

    give_up

    # Cancel while no call ever returns: running jobs are canceled in both processes.
    kill -9 "${pid[watcher]}" 2>/dev/null
    wait "${pid[watcher]}" 2>/dev/null
    curl -sSf -o "$dir/out" "$origin/_cloud/faults" -d '{"method":"gmail.*","fault":"latency","ms":600000}' || fail "a slow cloud"
    struck() { curl -sS "$origin/_cloud/faults" | jq -e '[.. | .struck? // 0] | add > 3'; }
    until_true 20 struck || fail "nothing waits for the cloud"
    running=("$(running "$ada")" "$(running "$bob")")
    [[ ${running[0]} -gt 0 && ${running[1]} -gt 0 ]] || fail "not both have something to cancel: ${running[*]}"
    tell jobs cancel --all
    until_true 20 quiet "$ada" || fail "ada: $(running "$ada") jobs run after a cancel"
    until_true 20 quiet "$bob" || fail "bob: $(running "$bob") jobs run after a cancel"
    [ "$(sql "SELECT count(*) FROM tidemark.job WHERE state < 2")" = 0 ] || fail "jobs are left after a cancel of all"
    curl -sSf -o "$dir/out" -X DELETE "$origin/_cloud/faults" || fail "a quick cloud"
    for home in "one$1" "two$1"; do
        kill -TERM "${pid[$home]}"
        wait "${pid[$home]}" || fail "$home ended with $?: $(tail -n 2 "$dir/$home.log")"
        unset "pid[$home]"
    done
    unset 'pid[watcher]'
}
part hints ''
part deaf '&tidemark_pooler=1'
echo "pause, resume, halt and cancel reach both: failed $failed"
[ "$failed" -eq 0 ]
