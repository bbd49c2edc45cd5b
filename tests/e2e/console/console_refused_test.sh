#!/usr/bin/env bash
# console_refused_test.sh TIDEMARK CLOUD: a site that answers 403 or 404 stops itself and no other; what
# to do is said, and works (B6).
. "$(dirname "$0")/../stage.sh"
token=tok-5be01c77
one=sc-domain:one.example
two=sc-domain:two.example
lost=sc-domain:lost.example

# Two servers with the same numbers; the second one does not let her see all sites.
both=(--seed 7 --quota off --mailbox "$user=1" --token "$token=$user" --site "$one=$user,rows=3" --site "$two=$user,rows=3")
serve "${both[@]}" --site "$lost=$user,rows=3"
first=$origin
serve "${both[@]}" --site "$lost=bob@example.com,rows=3"
second=$origin
t() { timeout 150 "$tidemark" --home "$dir/$home" --set governor.console.site_units=0 "$@"; }
file() { echo "$dir/$home/archive/console/sc-domain%3A${1#sc-domain:}.db"; }
days() { sqlite3 "$(file "$1")" "SELECT count(*) FROM day WHERE final"; }
lose_a_day() { sqlite3 "$(file "$1")" "DELETE FROM day WHERE date = (SELECT min(date) FROM day)" || fail "sqlite3"; }

# ---- a new site that is refused
home=new
t account add console "$lost" "$one" --endpoint "$second" --bearer "$token" >/dev/null || fail "account add"
t console backfill "$lost" --days 5 --quiet >"$dir/out" 2>"$dir/err" && fail "a site that she may not see: $(cat "$dir/out")"
grep -q "$lost.*sufficient permission" "$dir/err" || fail "neither site nor reason: $(cat "$dir/err")"
grep -q "console remove $lost" "$dir/err" || fail "no way out: $(cat "$dir/err")"
[ "$(t account list --json | jq -r '.accounts[0].halted')" = false ] || fail "the sign-in is halted"
t console backfill "$one" --days 5 --quiet >"$dir/out" 2>&1 || fail "another site: $(cat "$dir/out")"
[ "$(days "$one")" -eq 5 ] || fail "$(days "$one") days of another site"
t console remove "$lost" >"$dir/out" 2>&1 || fail "remove: $(cat "$dir/out")"
t console remove "$lost" >"$dir/out" 2>&1 && fail "removed twice"
grep -q 'console status\|console sites' "$dir/out" || fail "no hint: $(cat "$dir/out")"
t console sync --quiet >"$dir/out" 2>&1 || fail "sync after remove: $(cat "$dir/out")"
t console backfill "$lost" --days 5 --quiet >"$dir/out" 2>&1 && fail "a site that was removed"

# ---- one of three that is refused from now on
home=three
t account add console "$one" "$lost" "$two" --endpoint "$first" --bearer "$token" >/dev/null || fail "account add"
for site in "$one" "$lost" "$two"; do
    t console backfill "$site" --days 5 --quiet >/dev/null || fail "backfill $site"
    lose_a_day "$site"
done
t account add console "$one" --endpoint "$second" --bearer "$token" >/dev/null || fail "another server"
t console sync --quiet >"$dir/out" 2>"$dir/err" && fail "a sync that one site refuses: $(cat "$dir/out")"
grep -q "console remove $lost" "$dir/err" || fail "no way out: $(cat "$dir/err")"
[ "$(days "$one") $(days "$lost") $(days "$two")" = '5 4 5' ] || fail "the others were not fetched: $(days "$one") $(days "$two")"
t console status >"$dir/out" || fail "status"
grep -q "$lost is refused since .*sufficient permission" "$dir/out" || fail "status: $(cat "$dir/out")"
[ "$(t console status --json | jq -r '[.refused_sites[].site] | join(" ")')" = "$lost" ] || fail "status --json"
t console sync "$one" "$two" --quiet >"$dir/out" 2>&1 || fail "the others alone: $(cat "$dir/out")"

# ---- access is given back: the same command heals it
curl -sSf -X POST -d "{\"site\":\"$lost\",\"user\":\"$user\",\"rows_per_day\":3}" "$second/_cloud/sites" >/dev/null || fail "sites"
t console sync --quiet >"$dir/out" 2>&1 || fail "sync with access: $(cat "$dir/out")"
[ "$(days "$lost")" -eq 5 ] || fail "$(days "$lost") days after access was given back"
t console status >"$dir/out" || fail "status"
grep -q refused "$dir/out" && fail "status still says refused: $(cat "$dir/out")"

# ---- pages that are refused, by 403 or 404: the mark stays before them, and the next run fetches them
# All days are final, so that it does not matter whose page is refused: their order is that of threads.
final="--from $(date -u -d '-31 days' +%F) --to $(date -u -d '-20 days' +%F)"
# refuse WHICH: queries that are refused, as fields of a rule of the cloud.
refuse() {
    curl -sSf -o /dev/null -d "{\"method\":\"webmasters.searchanalytics.query\",$1}" "$first/_cloud/faults" || fail "faults"
}
accept() { curl -sSf -o /dev/null -X DELETE "$first/_cloud/faults" || fail "faults"; }
# The day that the error of the last run names.
named() { grep -Eo "$one 20[0-9]{2}-[0-9]{2}-[0-9]{2}:" "$dir/err" | head -n 1 | grep -Eo '[0-9]{4}(-[0-9]{2}){2}'; }
stored() { sqlite3 "$(file "$one")" "SELECT count(*) FROM day WHERE date = '$1'"; }
mark() { t console status --json | jq -r '.series[0].tidemark'; }
for code in 403 404; do
    home=pages$code
    t account add console "$one" "$two" --endpoint "$first" --bearer "$token" >/dev/null || fail "account add"
    # The plan asks once and each day twice: of the 18 queries that are answered, at least five complete a day.
    refuse "\"after\":18,\"count\":1,\"fault\":\"$code\""
    t console backfill "$one" $final --workers 1 --quiet >"$dir/out" 2>"$dir/err" && fail "a page with $code: $(cat "$dir/out")"
    accept
    day=$(named)
    [ -n "$day" ] || fail "$code: the day is not named: $(cat "$dir/err")"
    [ "$(stored "$day")" -eq 0 ] || fail "$code: $day was refused and is stored"
    [ "$(days "$one")" -ge 5 ] && [ "$(days "$one")" -lt 12 ] || fail "$code: $(days "$one") days are stored"
    [[ "$(mark)" < "$day" ]] || fail "$code: the mark passed $day: $(t console status)"
    [ "$(sqlite3 "$(file "$one")" "WITH RECURSIVE d(x) AS (SELECT min(date) FROM day UNION ALL SELECT date(x, '+1 day') FROM d WHERE x < '$(mark)')
        SELECT count(*) FROM d WHERE x <= '$(mark)' AND x NOT IN (SELECT date FROM day WHERE final)")" -eq 0 ] ||
        fail "$code: the mark passed a day that is not stored: $(t console status)"
    t console backfill "$one" $final --quiet >"$dir/out" 2>&1 || fail "after $code: $(cat "$dir/out")"
    [ "$(days "$one")" -eq 12 ] || fail "$code: $(days "$one") days in the end"
    [ "$(t console status --json | jq -r '.series[0].days_left')" -eq 0 ] || fail "$code: days are left: $(t console status)"
done

# ---- the days that are not final are refused: the final ones and the mark stay, and the next run fetches them
t console sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"
sqlite3 "$(file "$one")" "DELETE FROM day WHERE NOT final" || fail "sqlite3"
before="$(days "$one") $(mark)"
refuse '"after":1,"fault":"404"' # all but the plan's query
t console sync --quiet >"$dir/out" 2>"$dir/err" && fail "days that are not final, with 404: $(cat "$dir/out")"
accept
day=$(named)
[ -n "$day" ] && [ "$(stored "$day")" -eq 0 ] || fail "'$day' was refused: $(cat "$dir/err")"
[ "$(days "$one") $(mark)" = "$before" ] || fail "final days and mark were $before: $(t console status)"
t console sync --quiet >"$dir/out" 2>&1 || fail "after days that are not final: $(cat "$dir/out")"
[ "$(stored "$day")" -eq 1 ] || fail "$day is not fetched again"

echo "$failed failed"
[ "$failed" -eq 0 ]
