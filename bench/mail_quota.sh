#!/usr/bin/env bash
# bench/mail_quota.sh [--minutes N] [--kill-every SECONDS] [--faults PERCENT [--refusals]]
#                     [--json] [--programs DIR]
# Real minutes of `tidemark mail sync` against the real `tidemark-cloud` under the
# rules of 2026: how much of the 6,000 units a minute is used, how many calls are
# refused, how often a rule is broken, all by the cloud's own record.  The mailbox
# has more messages than the time allows, all of 1,000 bytes.  Two minutes pass
# before the first figure, until the windows are full.  With --kill-every the
# program is killed with SIGKILL about that often and restarted at once; with
# --faults PERCENT of the calls fail (500, 503, resets, cut answers), and with
# --refusals three in ten of these are refusals for a rate that was not reached.
set -uo pipefail
cd "$(dirname "$0")/.."
unset DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR # files, not the user's keyring
minutes=15
kill_every=0
faults=0
refusals=0
json=
programs=build
while [ $# -gt 0 ]; do
    case $1 in
    --minutes) minutes=$2; shift ;;
    --kill-every) kill_every=$2; shift ;;
    --faults) faults=$2; shift ;;
    --programs) programs=$2; shift ;;
    --refusals) refusals=0.3 ;;
    --json) json=1 ;;
    *) sed -n '2,3s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
    shift
done

dir=$(mktemp -d)
# Copies, so that a build in between has no effect.
cp "$programs/src/cli/tidemark" "$programs/cloudbox/serve/tidemark-cloud" "$dir" || exit 1
user=ada@example.com
mkfifo "$dir/ready" "$dir/silence"
exec 4<>"$dir/silence" # never written to
"$dir/tidemark-cloud" --listen 127.0.0.1:0 --quiet --seed 11 --quota 2026 \
    --mailbox "$user=$(((minutes + 3) * 320 + 500)),size=1000" --token tok="$user" >"$dir/ready" &
cloud=$!
sync=
finish() {
    kill "$cloud" 2>/dev/null
    if [ -n "$sync" ]; then
        kill -9 "$sync" 2>/dev/null
        wait "$sync" 2>/dev/null
    fi
    rm -rf "$dir"
}
trap finish EXIT
read -r _ origin <"$dir/ready" || exit 1
stats() { curl -sS "$origin/_cloud/stats" | jq -c ".users.\"$user\" + {now: .now}"; }

start_sync() {
    "$dir/tidemark" --home "$dir/home" mail sync --quiet >"$dir/out" 2>&1 &
    sync=$!
}
# Waits; kills the program meanwhile with --kill-every.
pass() {
    local until=$((SECONDS + $1)) next=$((SECONDS + kill_every))
    while [ "$SECONDS" -lt "$until" ]; do
        read -rt 0.2 -u 4 || true
        if ! kill -0 "$sync" 2>/dev/null; then
            echo "mail_quota: the sync ended by itself: $(cat "$dir/out")" >&2
            exit 1
        fi
        if [ "$kill_every" -gt 0 ] && [ "$SECONDS" -ge "$next" ]; then
            kill -9 "$sync"
            wait "$sync" 2>/dev/null
            kills=$((kills + 1))
            start_sync
            next=$((SECONDS + kill_every * 2 / 3 + RANDOM % (kill_every * 2 / 3 + 1)))
        fi
    done
}

"$dir/tidemark" --home "$dir/home" account add gmail "$user" --endpoint "$origin" --bearer tok >/dev/null || exit 1
if [ "$faults" != 0 ]; then
    # Rules apply in turn: the shares add up, except for calls that two rules would match.
    jq -nc --argjson percent "$faults" --argjson refused "$refusals" '
        (1 - $refused) as $failed
        | [["503", 0.4 * $failed], ["500", 0.2 * $failed], ["reset-after", 0.2 * $failed],
           ["truncate", 0.2 * $failed], ["429", 0.7 * $refused], ["403-user-rate", 0.3 * $refused]]
        | map(select(.[1] > 0) | {method: "gmail.*", fault: .[0], rate: (.[1] * $percent / 100)})' |
        curl -sSf --data-binary @- "$origin/_cloud/faults" >/dev/null || exit 1
fi
kills=0
start_sync
pass 120
before=$(stats)
pass $((minutes * 60))
after=$(stats)
highest=$(jq .offered_units_highest_in_60s <<<"$after")

figure() { # name value unit to
    if [ -n "$json" ]; then
        printf '{"name":"%s","value":%s,"unit":"%s","to":"%s"}\n' "$@"
    else
        printf '%-40s %12s %-8s %s\n' "$@"
    fi
}
span_ms=$(($(jq .now <<<"$after") - $(jq .now <<<"$before")))
difference() { jq -n --argjson a "$after" --argjson b "$before" "$1"; }
calls=$(difference '$a.calls - $b.calls')
refused=$(difference '([$a.refused[]] | add // 0) - ([$b.refused[]] | add // 0)')
struck=$(difference '[$a, $b] | map([.methods[].status | to_entries[] | select(.key != "200") | .value] | add // 0) | .[0] - .[1]')
units=$(difference '$a.units - $b.units')
name=mail_quota
[ "$kill_every" -eq 0 ] || name=${name}_killed
[ "$faults" = 0 ] || name=${name}_faults
[ "$refusals" = 0 ] || name=${name}_refusals
figure "${name}_minutes" "$(awk "BEGIN{printf \"%.2f\", $span_ms / 60000}")" min ""
figure "${name}_used" "$(awk "BEGIN{printf \"%.2f\", 100 * ($units - $refused * 20) / ($span_ms / 60000 * 6000)}")" % "6000 units a minute"
figure "${name}_fetched" "$(difference '$a.fetched.messages - $b.fetched.messages')" messages ""
figure "${name}_fetched_again" "$(jq '.fetched | .total - .messages' <<<"$after")" messages ""
figure "${name}_refused" "$(awk "BEGIN{printf \"%.4f\", 100 * $refused / ($calls > 0 ? $calls : 1)}")" % "of $calls calls"
figure "${name}_not_200" "$struck" calls ""
figure "${name}_highest_window" "$highest" units "6000 units"
figure "${name}_windows_crossed" "$(jq '.refused["user-minute"] // 0' <<<"$after")" calls none
figure "${name}_violations" "$(jq .violations <<<"$after")" calls none
[ "$kill_every" -eq 0 ] || figure "${name}_kills" "$kills" kills ""
[ "$(jq '.refused["user-minute"] // 0' <<<"$after")" -eq 0 ]
