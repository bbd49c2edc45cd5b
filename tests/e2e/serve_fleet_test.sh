#!/usr/bin/env bash
# serve_fleet_test.sh TIDEMARK CLOUD: several `tidemark serve` on one PostgreSQL: each shows all of it, and each time
# of a schedule runs on one of them, also when one is killed (E8.1).
. "$(dirname "$0")/stage.sh"
start_postgres
start_cloud --seed 5 --mailbox "$user=12" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 TIDEMARK_FLEET_LEASE=3s TIDEMARK_FLEET_LOOK=1s
on() { # HOME ARGUMENT...
    local home=$1
    shift
    timeout 150 "$tidemark" --home "$dir/$home" --ledger "$url" "$@"
}
declare -A pages
member() { # HOME: `tidemark serve` there
    "$tidemark" --home "$dir/$1" --ledger "$url" serve --listen 127.0.0.1:0 >"$dir/$1.out" 2>>"$dir/$1.log" &
    pid[$1]=$!
    until_true 60 grep -q "serving.*" "$dir/$1.log" || { echo "$1 does not serve: $(cat "$dir/$1.log")" >&2; exit 1; }
    pages[$1]=$(sed -n 's#.*serving.*\(http://127.0.0.1:[0-9]*\)/.*#\1#p' "$dir/$1.log" | tail -n 1)
}
on a ledger migrate >/dev/null || fail migrate
on a account add gmail "$user" --endpoint "$origin" --bearer tok >/dev/null || fail "account add"
on c schedule add --at 'every 1s' --name often backup "$dir/copy" >"$dir/out" 2>&1 || fail "schedule add: $(cat "$dir/out")"
member a
member b
of() { on c schedule list --json | jq -e ".schedules[] | select(.name == \"often\") | $1"; }
begun() { cat "$dir/a.log" "$dir/b.log" | grep -c 'event="scheduled run" schedule=often'; }

# ---- each time once
until_true 60 of '.runs >= 6' >/dev/null || fail "it does not run: $(on c schedule list --json) $(cat "$dir/a.log" "$dir/b.log")"
[ "$(begun)" -le "$(of .runs)" ] || fail "more runs than times: $(begun), $(of .runs)"
# A slot is a second: as many runs as seconds at most, however many processes there are.
of '.runs <= (.started_unix_ms - .created_unix_ms) / 1000' >/dev/null || fail "a time ran twice: $(on c schedule list --json)"

# ---- each shows all of it
on b token add viewer --scope look >"$dir/out" 2>"$dir/err" || fail "token: $(cat "$dir/err")"
key=$(cat "$dir/out")
curl -sSf -H "Authorization: Bearer $key" "${pages[b]}/api/v1/state" | jq -e '.accounts[0].account == "ada@example.com"' >/dev/null || fail "state of b"
on b mail sync --quiet --json >"$dir/out" 2>"$dir/err" || fail "sync: $(cat "$dir/out" "$dir/err")"
on a mail status --json | jq -e '.accounts[0].stored == 12' >/dev/null || fail "a did not fetch for b: $(on a mail status --json)"

# ---- one is killed: the other one goes on
kill -9 "${pid[a]}"
wait "${pid[a]}" 2>/dev/null
runs=$(of .runs)
until_true 60 of ".runs >= $((runs + 3)) and .runner != null" >/dev/null || fail "b does not go on: $(on c schedule list --json)"
of '.runner | endswith("/b")' >/dev/null || fail "who runs it: $(on c schedule list --json)"
on c schedule remove often >/dev/null || fail remove
kill -TERM "${pid[b]}"
wait "${pid[b]}"
code=$?
[ "$code" -eq 0 ] || [ "$code" -eq 5 ] || fail "b ended with $code: $(cat "$dir/b.log")"

exit "$((failed > 0))"
