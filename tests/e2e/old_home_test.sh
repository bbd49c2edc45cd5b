#!/usr/bin/env bash
# old_home_test.sh TIDEMARK CLOUD FIXTURE: this version opens a home of version 0.2 (tests/fixtures/home-0.2) and works on
# with it: every command reads it, the next sync fetches only what is new, and nothing of it is lost (M8, M17).
. "$(dirname "$0")/stage.sh"
site=sc-domain:example.com
tar -C "$dir" -xzmf "$3" || exit 1
now=$(date +%s)
clock=${now}000 start_cloud --mailbox "$user=1" --token "fixture=$user" --site "$site=$user,rows=8" # has days up to today
sqlite3 "$dir/home/state.db" "UPDATE console_account SET endpoint = '$origin'"
start_cloud --seed 12 --state "$dir/cloud/state" --token "fixture=$user"
sqlite3 "$dir/home/state.db" "UPDATE mail_account SET endpoint = '$origin'"
old=$(md5sum "$dir/home/config.yaml")
# json FILTER ARGUMENT...: whether the command's JSON satisfies the filter.
json() {
    local filter=$1
    shift
    t "$@" --json >"$dir/out" 2>"$dir/err" || fail "tidemark $* failed: $(cat "$dir/out" "$dir/err")"
    jq -e "$filter" "$dir/out" >/dev/null || fail "tidemark $*: not $filter: $(cat "$dir/out")"
}
day() { date -u -d "@$((now - $1 * 86400))" +%F; }
contents() { t mail export "$1" in:anywhere >/dev/null || fail "export"; }

# ---- every command reads it
ends 0 ledger check
ends 0 jobs doctor
ends 0 config check
json '[.settings[] | select(.origin != "default") | .name] | sort == ["governor.gmail.window_units", "governor.onedrive.in_flight_max", "retry.attempts_max", "workers.count"]' config list
json '[.accounts[].name] | length == 2' account list
json '.accounts[0] | .stored == 48 and .bad == 1 and .gaps == [] and .last_run == "bad_items"' mail status
json '.items | length == 1 and .[0].state == "bad"' mail bad
json '.manifests | length == 1 and .[0].removed == 3' mail manifest
json '.messages | length == 3' mail manifest 1 --state removed
json '.messages | length == 1' mail search is:starred
json '.series[0] | .tidemark == "2026-10-05" and .rows_missing == 0' console status
json '.checked == 48 and .damage == [] and .copies.exact == 48' mail verify
contents "$dir/before"

# ---- the next sync fetches what is new, and the message that was bad
printf 'From: b@example.org\r\nTo: %s\r\nSubject: after the upgrade\r\n\r\nnew\r\n' "$user" |
    curl -sSf -o /dev/null --data-binary @- "$origin/_cloud/mail?user=$user" || fail "deliver"
json '.accounts[0] | .stored == 49 and .cycles_open == 0' mail sync --quiet
[ "$(curl -sS "$origin/_cloud/stats" | jq ".users.\"$user\".fetched.total")" -eq 1 ] || fail "old messages are fetched again"
ends 0 mail bad retry
json '.accounts[0] | .stored == 50 and .bad == 0' mail sync --quiet
json '.messages | length == 2' mail search 'subject:(upgrade OR poison)'
json '.days == 2' console backfill "$site" --type image --from "$(day 11)" --to "$(day 10)" --quiet
json '.messages > 5 and .refused == []' mail archive --older-than 1y --mode trash --dry-run
json '.done.trash.messages == 3' mail restore --manifest 1 --yes

# ---- a copy, and nothing is lost
json '.messages == 50 and .console_rows == 44 and .not_copied == []' backup "$dir/copy"
json '.checked == 50 and .damage == [] and .copies.exact == 50' mail verify
contents "$dir/after"
for file in "$dir"/before/*; do
    cmp -s "$file" "$dir/after/${file##*/}" || fail "${file##*/} is lost"
done
[ "$old" = "$(md5sum "$dir/home/config.yaml")" ] || fail "the settings changed"
ends 0 ledger check
ends 0 jobs doctor

echo "$failed failed"
[ "$failed" -eq 0 ]
