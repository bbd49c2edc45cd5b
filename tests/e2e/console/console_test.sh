#!/usr/bin/env bash
# console_test.sh TIDEMARK CLOUD [KILLS]: search analytics are fetched from the local cloud through
# batches that fail in every way, by a program that is killed; the rows are compared with
# what a quiet run stores, and with the server's own answers (B1-B11).  Pages of 90 rows do not end where the
# server's runs of ties do, so that rows fall between pages all the time.
. "$(dirname "$0")/../stage.sh"
kills_wanted=${3:-8}
domain=sc-domain:example.com
prefix=https://www.example.com/
large=sc-domain:large.example
none=sc-domain:none.example
token=tok-81c04d2e

serve --seed 7 --quota off --latency 5 \
    --mailbox "$user=1" --token "$token=$user" --site "$domain=$user,rows=250" --site "$prefix=$user,rows=40" \
    --site "$large=$user,rows=30000" --site "$none=$user,rows=1"
t() { "$tidemark" --home "$dir/$home" --set governor.console.site_units=0 "$@"; }
rule() { curl -sSf -X POST -H 'Content-Type: application/json' -d "$1" "$origin/_cloud/faults" >/dev/null; }
quiet() { curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null; }
stats() { curl -sSf "$origin/_cloud/stats"; }
# Days count from one that is 45 days ago: all are final, and none is older than the sixteen months
# that the server keeps.
now=$(date +%s)
day() { date -u -d "@$((now + ($1 - 45) * 86400))" +%F; }
days="--to $(day 29) --from $(day 0)"
many=30
[ "$kills_wanted" -le 8 ] || { days="--to $(day 29) --from $(day -396)" many=426; } # enough to be killed in
rows() { sqlite3 "$dir/$1/archive/console/sc-domain%3Aexample.com.db" \
    "SELECT date, type, query, page, country, device, clicks, impressions, position FROM analytics ORDER BY 1, 2, 3, 4, 5, 6"; }

# ---- what is wrong is said
home=quiet
t console backfill "$domain" 2>"$dir/err" && fail "a site that was not added"
grep -q 'account add console' "$dir/err" || fail "no hint: $(cat "$dir/err")"
t account add console example.com --endpoint "$origin" --bearer "$token" 2>"$dir/err" && fail "example.com is no property"
t account add console "$domain" --endpoint "$origin" --bearer wrong >"$dir/out" 2>"$dir/err"
[ $? -eq 4 ] || fail "a token that the server refuses: $(cat "$dir/out" "$dir/err")"
grep -q 'does not accept this sign-in' "$dir/err" || fail "a refused token: $(cat "$dir/err")"
[ "$(t account list --json | jq '.accounts | length')" -eq 0 ] || fail "it was added: $(t account list)"
t account add console "$domain" sc-domain:other.example --endpoint "$origin" --bearer "$token" --json >"$dir/out" || fail "account add"
[ "$(jq -c .unreadable "$dir/out")" = '["sc-domain:other.example"]' ] || fail "what it cannot read: $(cat "$dir/out")"
t console remove sc-domain:other.example >/dev/null || fail "remove"
t account add console "$domain" "$prefix" --endpoint "$origin" --bearer "$token" >"$dir/out" 2>"$dir/err" || fail "account add"
[ ! -s "$dir/err" ] || fail "account add warns: $(cat "$dir/err")"
grep -q "$token" "$dir/quiet/state.db" && fail "the token is in the ledger"
t console backfill "$domain" --from 2026-02-30 2>/dev/null && fail "2026-02-30 is no day"
t console backfill "$domain" --workers 11 2>/dev/null && fail "eleven workers"
t console backfill "$domain" --dimensions query,colour 2>"$dir/err" && fail "there is no dimension colour"
grep -q colour "$dir/err" || fail "the wrong dimension is not named: $(cat "$dir/err")"
[ "$(t console sites --json | jq '[.sites[] | select(.added)] | length')" -eq 2 ] || fail "sites"

# ---- one by one, without trouble: the measure for everything else
t console backfill "$domain" $days --rows 90 --workers 1 --quiet --json >"$dir/out" || fail "sequential: $(cat "$dir/out")"
[ "$(jq .days "$dir/out")" -eq "$many" ] || fail "$many days: $(cat "$dir/out")"
[ "$(jq '.queries == .batches' "$dir/out")" = true ] || fail "one worker sends one query at a time: $(cat "$dir/out")"
rows quiet >"$dir/rows"
[ "$(wc -l <"$dir/rows")" -eq $((many * 250)) ] || fail "$(wc -l <"$dir/rows") rows"
[ "$(jq '.readings_more > 0 and .rows_missing == 0' "$dir/out")" = true ] || fail "no row fell between pages: $(cat "$dir/out")"
[ "$(t console status --json | jq -r '.series[0] | .rows_missing + .days_incomplete')" -eq 0 ] || fail "rows are missing: $(t console status)"
[ "$(t console status --json | jq -r '.series[0].tidemark')" = "$(day 29)" ] || fail "tidemark: $(t console status)"

# ---- the same numbers as the server's
ask() { curl -sSf -H "Authorization: Bearer $token" -H 'Content-Type: application/json' -d "$1" \
    "$origin/webmasters/v3/sites/sc-domain%3Aexample.com/searchAnalytics/query"; }
theirs=$(ask "{\"startDate\":\"$(day 7)\",\"endDate\":\"$(day 7)\",\"dimensions\":[\"query\",\"page\",\"country\",\"device\"],\"rowLimit\":25000}" |
    jq -r '.rows[] | [.keys[0], .keys[1], .keys[2], .keys[3], .clicks, .impressions] | @tsv' | sort)
ours=$(sqlite3 -separator $'\t' "$dir/quiet/archive/console/sc-domain%3Aexample.com.db" \
    "SELECT query, page, country, device, CAST(clicks AS INTEGER), CAST(impressions AS INTEGER) FROM analytics WHERE date = '$(day 7)'" | sort)
[ "$theirs" = "$ours" ] || fail "a day differs from the server's"
total=$(ask "{\"startDate\":\"$(day 0)\",\"endDate\":\"$(day 29)\"}" | jq '.rows[0].clicks')
[ "$(t console report "$domain" --from "$(day 0)" --to "$(day 29)" --json | jq '.range.clicks')" = "$total" ] || fail "totals differ: $total"
[ "$(t console report "$domain" --from "$(day 0)" --to "$(day 29)" --json | jq '.range.hidden_clicks > 0')" = true ] || fail "nothing is hidden"
[ "$(t console report "$domain" --from "$(day 0)" --csv days | wc -l)" -eq 31 ] || fail "CSV of days"
[ "$(t console report "$domain" --from "$(day 0)" --csv top --by page --limit 3 | wc -l)" -eq 4 ] || fail "CSV of pages"
t console report "$domain" --from "$(day 15)" --compare >"$dir/out" || fail "report --compare"
grep -q 'compared with' "$dir/out" || fail "nothing is compared"

# ---- nothing is asked again that is final
before=$(stats | jq ".users.\"$user\".calls")
t console backfill "$domain" $days --rows 90 --quiet >/dev/null || fail "a second backfill"
after=$(stats | jq ".users.\"$user\".calls")
[ $((after - before)) -eq 1 ] || fail "$((after - before)) calls for what is there"

# ---- lost, doubled, reordered and broken parts, refusals, and kill -9
home=rough
t account add console "$domain" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add"
faults='{"method":"batch","rate":0.2,"fault":"batch-missing"},{"method":"batch","rate":0.2,"fault":"batch-extra"},
       {"method":"batch","rate":0.2,"fault":"batch-reorder"},{"method":"batch","rate":0.05,"fault":"truncate"},
       {"method":"batch","rate":0.05,"fault":"reset-after"},{"method":"webmasters.*","rate":0.03,"fault":"500"},
       {"method":"webmasters.*","rate":0.02,"fault":"garbage"},
       {"method":"webmasters.*","fault":"latency","ms":60}'
kills=0
for ((attempt = 1; kills < kills_wanted && attempt <= kills_wanted * 3; attempt++)); do
    # Held up after some queries, so that the kill finds it at work on a machine of any speed.
    queries=$((attempt * 7 % 9 + 1))
    quiet
    rule "[{\"method\":\"webmasters.searchanalytics.query\",\"after\":$((queries + 2)),\"fault\":\"latency\",\"ms\":600000},$faults]"
    before=$(stats | jq ".users.\"$user\".calls // 0")
    "$tidemark" --home "$dir/rough" --set governor.console.site_units=0 --set retry.backoff_start=50ms --set retry.attempts_max=20 \
        console backfill "$domain" $days --rows 90 --workers 4 --quiet >"$dir/out" 2>&1 &
    run=$!
    while kill -0 "$run" 2>/dev/null && [ "$(stats | jq ".users.\"$user\".calls // 0")" -lt $((before + queries)) ]; do
        read -rt 0.02 <> <(:) || true
    done
    read -rt "0.0$((attempt * 7 % 9))" <> <(:) || true # a moment, not a synchronisation
    if strike "$run"; then
        kills=$((kills + 1))
        mark=$(sqlite3 "$dir/rough/state.db" "SELECT max(cursor) FROM stream WHERE name LIKE 'console.%'" 2>/dev/null)
        gaps=$(sqlite3 "$dir/rough/archive/console/sc-domain%3Aexample.com.db" \
            "WITH RECURSIVE d(x) AS (VALUES('${days##* }') UNION ALL SELECT date(x, '+1 day') FROM d WHERE x < '${mark:-0000-00-00}')
             SELECT count(*) FROM d WHERE x <= '${mark:-0000-00-00}' AND x NOT IN (SELECT date FROM day WHERE final)" 2>/dev/null)
        [ "${gaps:-0}" -eq 0 ] || fail "the mark $mark passed $gaps days that are not stored"
    fi
done
quiet
rule "[$faults]"
t --set retry.backoff_start=50ms --set retry.attempts_max=20 console backfill "$domain" $days --rows 90 --workers 4 --quiet >"$dir/out" 2>&1
quiet
t console backfill "$domain" $days --rows 90 --quiet >"$dir/out" 2>&1 || fail "in the end: $(cat "$dir/out")"
[ "$kills" -eq "$kills_wanted" ] || fail "only $kills of $kills_wanted kills struck"
echo "killed $kills times"
rows rough >"$dir/rough.rows"
cmp -s "$dir/rows" "$dir/rough.rows" || fail "other rows after the faults: $(wc -l <"$dir/rough.rows") instead of $(wc -l <"$dir/rows")"
sqlite3 "$dir/rough/archive/console/sc-domain%3Aexample.com.db" \
    "SELECT count(*) FROM (SELECT 1 FROM analytics GROUP BY date, type, query, page, country, device HAVING count(*) > 1)" | grep -qx 0 ||
    fail "a key is stored twice"
[ "$(sqlite3 "$dir/rough/archive/console/sc-domain%3Aexample.com.db" 'SELECT count(*) FROM staged')" -eq 0 ] || fail "pages are left over"

# ---- a permanent refusal halts, with its date; once repaired, it continues
home=halted
t account add console "$domain" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add"
rule '{"method":"webmasters.searchanalytics.query","count":1,"after":20,"fault":"403"}'
timeout 150 "$tidemark" --home "$dir/halted" --set governor.console.site_units=0 console backfill "$domain" $days --rows 90 --quiet >"$dir/out" 2>"$dir/err"
code=$?
quiet
if [ $code -ne 1 ] && [ $code -ne 4 ]; then fail "a refused page ends with $code: $(cat "$dir/err")"; fi
grep -Eq '20[0-9]{2}-[0-9]{2}-[0-9]{2}:' "$dir/err" || fail "the halt does not name its day: $(cat "$dir/err")"
t account resume console >/dev/null || fail "resume"
t console backfill "$domain" $days --rows 90 --quiet >"$dir/out" 2>&1 || fail "after the halt: $(cat "$dir/out")"
rows halted >"$dir/halted.rows"
cmp -s "$dir/rows" "$dir/halted.rows" || fail "other rows after the halt"

# ---- a halt by command reaches all processes, with any calls in flight (B7)
home=slow
t account add console "$domain" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add"
rule '{"method":"webmasters.*","after":1,"fault":"latency","ms":600000}'
"$tidemark" --home "$dir/slow" --set governor.console.site_units=0 console backfill "$domain" $days --workers 5 --quiet >"$dir/out" 2>"$dir/err" &
run=$!
for _ in $(seq 200); do
    [ "$(sqlite3 "$dir/slow/state.db" "SELECT count(*) FROM job WHERE state = 1" 2>/dev/null || echo 0)" -ge 20 ] && break
    read -rt 0.05 <> <(:) || true
done
t console status >"$dir/out" 2>&1 || fail "status beside a backfill: $(cat "$dir/out")"
t account halt console --reason "for a moment" >/dev/null || fail "halt"
wait "$run" # the answers would come in ten minutes
code=$?
quiet
[ $code -eq 5 ] || fail "a halted run ends with $code: $(cat "$dir/err")"
grep -q 'account resume' "$dir/err" || fail "no way out of a halt: $(cat "$dir/err")"
t account resume console >/dev/null || fail "resume"
t console backfill "$domain" $days --rows 90 --quiet >"$dir/out" 2>&1 || fail "after the halt: $(cat "$dir/out")"
rows slow >"$dir/slow.rows"
cmp -s "$dir/rows" "$dir/slow.rows" || fail "other rows after a halt by command"

# ---- a property by URL, and kinds of search without position or queries
home=quiet
t console backfill "$prefix" $days --type web,discover --quiet >"$dir/out" || fail "a URL-prefix property: $(cat "$dir/out")"
[ "$(t console report "$prefix" --type discover --from "$(day 0)" --to "$(day 29)" --json | jq '[.top[] | select(has("position"))] | length')" -eq 0 ] ||
    fail "discover has a position"
[ "$(t console status "$prefix" --json | jq '.series | length')" -eq 2 ] || fail "two series"

# ---- an earlier day than the first: what is there is not asked for again
if [ "$many" -eq 30 ]; then
    t console backfill "$domain" --from "$(day -10)" --to "$(day 29)" --rows 90 --quiet --json >"$dir/out" || fail "ten days more"
    [ "$(jq .days "$dir/out")" -eq 10 ] || fail "not ten days: $(cat "$dir/out")"
    [ "$(t console status "$domain" --json | jq -r '.series[0].tidemark')" = "$(day 29)" ] || fail "tidemark after ten more days"
fi

# ---- days that are not final are stored, and fetched again
t console sync "$domain" --quiet --json >"$dir/out" || fail "sync: $(cat "$dir/out")"
[ "$(t console status "$domain" --json | jq '.series[0].days_not_final > 0')" = true ] || fail "no day is open"

# ---- pages that end where the day does, and days of more than one of the largest pages
home=sizes
t account add console "$domain" "$large" "$none" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add"
stored() { sqlite3 "$dir/sizes/archive/console/sc-domain%3A$1.db" "SELECT count(*) || ' ' || coalesce(min(rows), 0) || ' ' || coalesce(max(rows), 0) FROM day"; }
for size in 50 83 125 249 250 251; do
    t console backfill "$domain" --from "$(day 3)" --to "$(day 6)" --rows "$size" --again --quiet --json >"$dir/out" || fail "pages of $size: $(cat "$dir/out")"
    [ "$(jq -r '"\(.rows) \(.rows_missing)"' "$dir/out")" = '1000 0' ] || fail "pages of $size: $(cat "$dir/out")"
    [ "$(stored example.com)" = '4 250 250' ] || fail "pages of $size: $(stored example.com)"
done
rule '{"method":"webmasters.searchanalytics.query","rate":1,"fault":"list-shift"}'
t console backfill "$large" --from "$(day 3)" --to "$(day 6)" --quiet --json >"$dir/out" || fail "large days: $(cat "$dir/out")"
quiet
[ "$(stored large.example)" = '4 30000 30000' ] || fail "large days: $(stored large.example), $(cat "$dir/out")"
[ "$(jq '.readings_more > 0' "$dir/out")" = true ] || fail "nothing was lost between large pages: $(cat "$dir/out")"
[ "$(jq '.queries <= 4 * 6 + 1' "$dir/out")" = true ] || fail "too much was asked: $(cat "$dir/out")"
t console backfill "$none" --type image --from "$(day 3)" --to "$(day 6)" --quiet >/dev/null || fail "a site without a row"
[ "$(stored none.example)" = '4 0 0' ] || fail "a site without a row: $(stored none.example)"
[ "$(t console status "$none" --json | jq -r '.series[0].tidemark')" = "$(day 6)" ] || fail "tidemark of a site without a row"

# ---- a server that is late: what it has not got yet is not taken for empty days
clock() { curl -sSf -X POST -H 'Content-Type: application/json' -d "{\"set\":$2}" "$1/_cloud/clock" >/dev/null; }
home=late
early=$origin
serve --seed 7 --quota off --clock $(((now - 25 * 86400) * 1000)) \
    --mailbox "$user=1" --token "$token=$user" --site "$domain=$user,rows=250"
late=$origin origin=$early
t account add console "$domain" --endpoint "$late" --bearer "$token" >/dev/null || fail "account add"
timeout 150 "$tidemark" --home "$dir/late" console backfill "$domain" --from "$(date -u -d "@$((now - 9 * 86400))" +%F)" --quiet >"$dir/out" 2>&1 ||
    fail "a late server: $(cat "$dir/out")"
clock "$late" $((now * 1000))
timeout 150 "$tidemark" --home "$dir/late" console sync "$domain" --quiet >"$dir/out" 2>&1 || fail "after a late server: $(cat "$dir/out")"
empty=$(sqlite3 "$dir/late/archive/console/sc-domain%3Aexample.com.db" "SELECT count(*) FILTER (WHERE rows = 0) || ' of ' || count(*) FROM day")
case $empty in '0 of '[6-9]) ;; *) fail "empty days after a late server: $empty" ;; esac

# ---- a server that forgets: what is stored stays
home=quiet
clock "$origin" $(((now + 600 * 86400) * 1000))
t console backfill "$domain" $days --again --quiet >"$dir/out" 2>&1 || fail "a forgetful server: $(cat "$dir/out")"
rows quiet | awk -F'|' -v first="${days##* }" -v last="$(day 29)" '$1 >= first && $1 <= last' >"$dir/again.rows"
cmp -s "$dir/rows" "$dir/again.rows" || fail "rows were forgotten: $(wc -l <"$dir/again.rows") instead of $(wc -l <"$dir/rows")"

# ---- a token that is refused
curl -sSf -X POST -H 'Content-Type: application/json' -d "{\"user\":\"$user\"}" "$origin/_cloud/token/revoke" >/dev/null
timeout 150 "$tidemark" --home "$dir/quiet" console sync --quiet >"$dir/out" 2>"$dir/err"
code=$?
[ $code -eq 4 ] || fail "a refused token ends with $code: $(cat "$dir/err")"
grep -q 'account add console' "$dir/err" || fail "no command that repairs it: $(cat "$dir/err")"

echo "$failed failed"
[ "$failed" -eq 0 ]
