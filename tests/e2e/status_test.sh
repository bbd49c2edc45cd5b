#!/usr/bin/env bash
# status_test.sh TIDEMARK CLOUD: `tidemark status` has a line for each account of every system, also
# while an engine runs, with alerts before it (E9.3, E12.1).
. "$(dirname "$0")/stage.sh"
start_cloud --seed 5 --mailbox ada@example.com=12 --mailbox bob@example.com=9 \
    --token tok-ada=ada@example.com --token tok-bob=bob@example.com --site sc-domain:example.com=ada@example.com,rows=20
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
is() { # FILTER: of `status --json`
    ends 0 status --json
    jq -e "$1" "$dir/out" >/dev/null || fail "line ${BASH_LINENO[0]}: not $1: $(cat "$dir/out")"
}
of() { echo ".accounts[] | select(.account == \"$1\")"; }
mkdir "$dir/home"
ends 1 status # no ledger
for name in ada bob; do
    ends 0 account add gmail "$name@example.com" --endpoint "$origin" --bearer "tok-$name"
done
ends 0 account add console sc-domain:example.com --endpoint "$origin" --bearer tok-ada

# ---- before the first sync
is '(.engine | not) and ([.accounts[] | {(.account): .system}] | add) == {"ada@example.com":"mail","bob@example.com":"mail","console":"console"}'
is '.accounts | all(.tidemark == null and .stored == 0 and .now == "idle" and .ruler == null and .pace == null)'
is '[.systems[].name] == ["mail", "console", "drive", "assistant", "reader"] and .lanes == null and .jobs.running == 0 and .jobs.failed == 0'

# ---- synced, fetched, halted
ends 0 mail sync --quiet
last=$((clock / 86400000 - 10))
ends 0 console backfill sc-domain:example.com --from "$(date -u -d "@$(((last - 3) * 86400))" +%F)" --to "$(date -u -d "@$((last * 86400))" +%F)" --quiet
ends 0 account halt bob@example.com --reason 'on holiday'
is "$(of ada@example.com) | .stored == 12 and .gaps == 0 and .left == 0 and .left_is_known and .tidemark_unix_ms > 0 and .now == \"idle\""
is "$(of bob@example.com) | .now == \"halted\" and (.why | test(\"on holiday\"))"
is "$(of console) | .stored > 0 and .left == 0 and .unit == \"rows of search analytics\" and (.tidemark | test(\"^20[0-9]{2}-[0-9]{2}-[0-9]{2}$\"))"
# How complete each is, for a display; nothing of it has a gap.
is "$(of ada@example.com) | .ruler | (.cells | test(\"^={96}$\")) and .from_unix_ms < .to_unix_ms"
is "$(of console) | .ruler | (.cells | test(\"^={96}$\")) and .to_unix_ms - .from_unix_ms == 4 * 86400000"
is "$(of bob@example.com) | .halted_unix_ms > 0 and .halt_reason == \"on holiday\""
is "$(of ada@example.com) | .halted_unix_ms == null and .halt_reason == null"
ends 0 console status --json
jq -e '.series[0].calendar == "===="' "$dir/out" >/dev/null || fail "the days: $(cat "$dir/out")"
ends 0 status
grep -Eq '^ada@example.com +mail +2[0-9-]{9} .* 12 messages .* idle$' "$dir/out" || fail "ada's line: $(cat "$dir/out")"
grep -Eq '^bob@example.com .* halted: on holiday$' "$dir/out" || fail "bob's line: $(cat "$dir/out")"
grep -Eq '^console +console +20' "$dir/out" || fail "console's line: $(cat "$dir/out")"

# ---- while an engine runs: what runs, the quota
curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"method":"gmail.users.messages.get","fault":"held"}' || fail slow
printf 'From: b@example.org\r\nSubject: x\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
    --data-binary @- "$origin/_cloud/mail?user=ada@example.com" || fail deliver
t mail sync ada@example.com --quiet >"$dir/first.out" 2>&1 &
first=$!
seen=
for _ in $(seq 100); do
    t status --json 2>/dev/null | jq -e ".engine and ($(of ada@example.com) | .now == \"running\" and .jobs_running > 0 and .quota_max_units == 60000 and .pace.in_flight_max > 0 and (.ruler.cells | test(\"/$\"))) and .lanes.bulk.running + .lanes.interactive.running > 0 and .jobs.running > 0" >/dev/null && seen=1 && break
    kill -0 "$first" 2>/dev/null || break
    pause
done
[ -n "$seen" ] || fail "it does not say that it runs: $(t status --json)"
curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail faults
wait "$first" || fail "sync: $(cat "$dir/first.out")"

# ---- a removed account has no line; an archive that cannot be read is noted, the others are shown
ends 0 account remove bob@example.com
is '[.accounts[].account] == ["ada@example.com","console"]'
for shard in "$dir"/home/archive/ada@example.com/*.db; do echo broken >"$shard"; done
is "$(of ada@example.com) | .note | test(\"mail verify\")"
is "$(of console) | .stored > 0"

# ---- an account whose entry in its system is lost, or names another one, says so and what to do; the others are shown
start_serve
ends 0 token add viewer --scope look
look=$(cat "$dir/out")
told() { # what the command and the API say of ada
    is "$(of ada@example.com) | .now == \"broken\" and (.why | test(\"entry in the mail system is missing.*account add gmail\")) and .tidemark == null and (.left_is_known | not)"
    is "$(of console) | .stored > 0 and .now == \"idle\""
    local code
    code=$(ask_page -o "$dir/state" -H "Authorization: Bearer $look" "$page/api/v1/state")
    [ "$code" = 200 ] && cmp -s <(jq -S '[.accounts[] | {account, now, why}]' "$dir/state") <(jq -S '[.accounts[] | {account, now, why}]' "$dir/out") ||
        fail "the state is $code: $(cat "$dir/state")"
    [ "$(ask_page -o "$dir/metrics" -H "Authorization: Bearer $look" "$page/metrics")" = 200 ] && grep -qx 'tidemark_accounts_broken 1' "$dir/metrics" &&
        grep -q '^tidemark_stream_gaps{account="console"' "$dir/metrics" && ! grep -q '^tidemark_stream_gaps{account="ada@example.com"' "$dir/metrics" ||
        fail "the metrics: $(grep -v '^#' "$dir/metrics")"
}
state "UPDATE mail_account SET email = 'else@example.com' WHERE email = 'ada@example.com'"
told
state "DELETE FROM mail_account"
told
ends 0 account list --json
jq -e '.accounts | map({(.account): .problem}) | add | (.["ada@example.com"] | test("account add gmail")) and .["bob@example.com"] == null and .console == null' "$dir/out" >/dev/null ||
    fail "account list: $(cat "$dir/out")"
stop_serve 0
ends 0 status
grep -Eq '^ada@example.com +mail .* its entry in the mail system is missing' "$dir/out" || fail "ada's line: $(cat "$dir/out")"
# What it says helps.
ends 0 account add gmail ada@example.com --endpoint "$origin" --bearer tok-ada
is "$(of ada@example.com) | .now == \"idle\""

exit "$((failed > 0))"
