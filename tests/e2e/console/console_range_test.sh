#!/usr/bin/env bash
# console_range_test.sh TIDEMARK CLOUD: which days are fetched, and which are compared (B2, B10, B11).
. "$(dirname "$0")/../stage.sh"
site=sc-domain:example.com
token=tok-2f6d1a90

serve --seed 7 --quota off --mailbox "$user=1" --token "$token=$user" --site "$site=$user,rows=3"
t() { timeout 150 "$tidemark" --home "$dir/$home" --set governor.console.site_units=0 "$@"; }
add() { t account add console "$site" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add"; }
series() { t console status --json | jq -r ".series[0].$1"; }
rule() { curl -sSf -X POST -H 'Content-Type: application/json' -d "$1" "$origin/_cloud/faults" >/dev/null; }
quiet() { curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null; }

# ---- two ranges of the same length are compared, or none
home=compare
add
t console backfill "$site" --days 42 --quiet >/dev/null || fail "42 days"
t console report "$site" --compare >"$dir/out" || fail "report: $(cat "$dir/out")"
grep -Eq '(clicks|impressions) [+-][0-9]' "$dir/out" && fail "28 days are compared with 14: $(cat "$dir/out")"
grep -q '14 of 28 days' "$dir/out" || fail "the days that are missing are not counted: $(cat "$dir/out")"
fetch=$(grep -o 'console backfill [^`]*' "$dir/out")
[ -n "$fetch" ] || fail "no command that fetches them: $(cat "$dir/out")"
t console report "$site" --compare --json >"$dir/out" || fail "report --json"
[ "$(jq -c '[.compared.days_missing, .change]' "$dir/out")" = '[14,null]' ] || fail "JSON: $(jq -c 'del(.top, .range.days, .compared.days)' "$dir/out")"
# shellcheck disable=SC2086 # the words of a command
t $fetch --quiet >/dev/null || fail "the command that it names: $fetch"
t console report "$site" --compare >"$dir/out" || fail "report"
grep -Eq 'clicks [+-][0-9.]+ %  impressions [+-][0-9.]+ %' "$dir/out" || fail "nothing is compared: $(cat "$dir/out")"
t console report "$site" --compare --json >"$dir/out" || fail "report --json"
[ "$(jq '(.range.days | length) == 28 and (.compared.days | length) == 28 and .compared.days_missing == 0
    and ([.range.days[], .compared.days[] | .final] | all)
    and (.change.clicks - (.range.clicks - .compared.clicks) / .compared.clicks | fabs < 1e-9)' "$dir/out")" = true ] ||
    fail "28 final days against 28: $(jq -c 'del(.top)' "$dir/out")"
[ "$(jq -r .range.to "$dir/out")" = "$(series tidemark)" ] || fail "not up to the last final day"
# A hole inside the range counts as well.
sqlite3 "$dir/compare/archive/console/sc-domain%3Aexample.com.db" \
    "DELETE FROM day WHERE date = '$(jq -r '.compared.days[9].date' "$dir/out")'" || fail "sqlite3"
t console report "$site" --compare | grep -q '27 of 28 days' || fail "a hole is not counted"

# ---- backfill without a range is sixteen months, whatever was fetched before; sync keeps the range
home=range
add
t console backfill "$site" --days 10 --quiet >/dev/null || fail "ten days"
floor=$(series floor)
t console sync --quiet >/dev/null || fail "sync"
[ "$(series floor)" = "$floor" ] || fail "sync fetches more than was asked for: from $(series floor)"
t console backfill "$site" --quiet >"$dir/out" || fail "all days: $(cat "$dir/out")"
[ "$(series days)" -ge 480 ] || fail "$(series days) days after a backfill of all: $(t console status)"
[ "$(series days_left)" -eq 0 ] || fail "days are left: $(t console status)"
[ "$(jq -n --arg from "$(series first)" --arg mark "$(series tidemark)" '($mark + "T00:00:00Z" | fromdate) - ($from + "T00:00:00Z" | fromdate) == 479 * 86400')" = true ] ||
    fail "not sixteen months up to the mark: $(t console status)"

# ---- a plan that is still waiting does not swallow a larger one
home=waiting
add
rule '{"method":"webmasters.*","fault":"latency","ms":30000}'
"$tidemark" --home "$dir/waiting" --set governor.console.site_units=0 console backfill "$site" --days 10 --quiet >/dev/null 2>&1 &
run=$!
for _ in $(seq 400); do
    [ "$(sqlite3 "$dir/waiting/state.db" "SELECT count(*) FROM job WHERE state = 1" 2>/dev/null || echo 0)" -ge 1 ] && break
    read -rt 0.05 <> <(:) || true
done
kill -9 "$run"
wait "$run" 2>/dev/null
quiet
t console backfill "$site" --from "$(date -u -d '-30 days' +%F)" --to "$(date -u -d '-8 days' +%F)" --quiet >"$dir/out" 2>&1 || fail "a larger range: $(cat "$dir/out")"
for day in -30 -9; do
    sqlite3 "$dir/waiting/archive/console/sc-domain%3Aexample.com.db" "SELECT count(*) FROM day WHERE date = '$(date -u -d "$day days" +%F)'" | grep -qx 1 ||
        fail "the day $day is not there: $(t console status)"
done

echo "$failed failed"
[ "$failed" -eq 0 ]
