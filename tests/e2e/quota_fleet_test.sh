#!/usr/bin/env bash
# quota_fleet_test.sh TIDEMARK CLOUD: three workers, two mailboxes each, and one project whose
# minute is too small for them (E4.1).  By the cloud's count no minute is ever crossed, neither
# while they share it out, nor when one of them is killed and comes back at once; what they may
# have they use; and in the end everything is mirrored.
#
# The cloud's clock runs fifteen times as fast as ours, so that its minute is four seconds.
. "$(dirname "$0")/stage.sh"
start_postgres
project=3000 # units a minute; the users alone would use 36,000
speed=15
messages=60 # in each mailbox, 20 units each
mailboxes=()
for user in a b c d e f; do
    mailboxes+=(--mailbox "$user@example.com=$messages" --token "t$user=$user@example.com")
done
serve --seed 7 --latency 10 "${mailboxes[@]}"
curl -sSf -o "$dir/out" "$origin/_cloud/quota" -d "{\"project_units_per_minute\":$project}" || fail "quota: $(cat "$dir/out")"
curl -sSf -o "$dir/out" "$origin/_cloud/clock" -d "{\"speed\":$speed}" || fail "clock: $(cat "$dir/out")"
export TIDEMARK_GOVERNOR_GMAIL_PROJECT_UNITS=$project TIDEMARK_GOVERNOR_GMAIL_WINDOW=$((60000 / speed))ms
export TIDEMARK_FLEET_LEASE=2s TIDEMARK_FLEET_LOOK=500ms
t() { "$tidemark" --home "$dir/$home" --ledger "$url" "$@"; }
worker() { # home
    "$tidemark" --home "$dir/$1" --ledger "$url" worker >>"$dir/$1.log" 2>&1 &
    pid[$1]=$!
}
home=one
t ledger migrate >"$dir/out" 2>&1 || fail "migrate: $(cat "$dir/out")"
for place in one:a one:b two:c two:d three:e three:f; do
    home=${place%:*}
    user=${place#*:}
    t account add gmail "$user@example.com" --endpoint "$origin" --bearer "t$user" >"$dir/out" 2>&1 || fail "account add $user: $(cat "$dir/out")"
done
for home in one two three; do
    worker "$home"
done
home=watcher
timeout 200 "$tidemark" --home "$dir/watcher" --ledger "$url" mail sync --quiet >"$dir/out" 2>&1 &
watcher=$!

# now, units of all, units of the worker that has spent least
spent() {
    curl -sS "$origin/_cloud/stats" | jq -r '.now, ([.users[].units] | add // 0),
        ([["a", "b"], ["c", "d"], ["e", "f"]] as $w | .users as $u | $w | map(map($u[. + "@example.com"].units // 0) | add) | min)' | paste -sd ' '
}
until_spent() { # which of the three, how many: sets now, units, least
    local left=600
    while :; do
        read -r now units least < <(spent)
        [ "${!1}" -ge "$2" ] && return
        left=$((left - 1))
        { [ "$left" -gt 0 ] && kill -0 "$watcher" 2>/dev/null; } || break
        read -rt 0.1 <> <(:) || true
    done
    fail "only ${!1} of $2 ($1) were spent: $(tail -n 2 "$dir"/*.log)"
}
# Each has its share; then two minutes of the cloud's, and what was used in them.
until_spent least 100
from_now=$now from_units=$units
until_spent units $((from_units + 2 * project))
share=$(((units - from_units) * 60000 * 100 / (now - from_now) / project))
# All of it on a machine with time for us; where others keep it busy, answers take a part of
# such a short minute, and a charge counts until its answer.
[ "$share" -ge 20 ] || fail "only $share % of the project's units are used"

# One dies in the middle and is there again at once: what it has spent still counts.
strike "${pid[two]}" || fail "the second had ended: $(tail -n 2 "$dir/two.log")"
worker two
wait "$watcher" || fail "the sync: $(cat "$dir/out") $(tail -n 2 "$dir"/*.log)"
for place in one:a one:b two:c two:d three:e three:f; do
    home=${place%:*}
    stored=$(t mail status --json 2>"$dir/out" | jq ".accounts[] | select(.account == \"${place#*:}@example.com\").stored")
    [ "$stored" = "$messages" ] || fail "$place has $stored messages: $(cat "$dir/out")"
done
curl -sS "$origin/_cloud/stats" >"$dir/stats"
[ "$(jq -c .violations "$dir/stats")" = '[]' ] || fail "violations: $(jq -c .violations "$dir/stats" | head -c 600)"
jq -e '[.users[].refused | to_entries[]] == []' "$dir/stats" >/dev/null || fail "refused: $(jq -c '[.users[].refused]' "$dir/stats")"
echo "one project, three workers, one killed: $share % of its units used, none too many; failed $failed"
[ "$failed" -eq 0 ]
