#!/usr/bin/env bash
# console_workers_test.sh TIDEMARK CLOUD: 1, 3 and 5 workers under the quota store the same rows, and none
# crosses it, by the server's own count (B5, B13).  The server's minute takes six seconds, and so does ours: a run
# then reaches it within seconds, on a slow machine too.
. "$(dirname "$0")/../stage.sh"
site=sc-domain:example.com
token=tok-90b1c6fe

serve --seed 7 --latency 5 --mailbox "$user=1" --token "$token=$user" --site "$site=$user,rows=250"
say() { curl -sSf -X POST -d "$2" "$origin/_cloud/$1" >/dev/null || fail "$1"; }
rows() { sqlite3 "$dir/$1/archive/console/sc-domain%3Aexample.com.db" \
    "SELECT date, type, query, page, country, device, clicks, impressions, position FROM analytics ORDER BY 1, 2, 3, 4, 5, 6"; }
units=100
say quota "{\"console_per_minute\":$units}"
say clock '{"speed":10}'
from=$(date -u -d '-40 days' +%F)
to=$(date -u -d '-21 days' +%F)

for workers in 1 3 5; do
    home=$dir/$workers
    t() { timeout 100 "$tidemark" --home "$home" --set "governor.console.site_units=$units" --set governor.console.window=6s --set governor.stray=1ms "$@"; }
    t account add console "$site" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add"
    say clock '{"advance":"2m"}' # what another run spent is out of the window
    say stats/reset '{}'
    t console backfill "$site" --from "$from" --to "$to" --rows 60 --workers "$workers" --quiet --json >"$dir/out" || fail "$workers workers: $(cat "$dir/out")"
    curl -sSf "$origin/_cloud/stats" >"$dir/stats"
    [ "$(jq '.queries > 120 and .refused == 0 and .rows_missing == 0' "$dir/out")" = true ] || fail "$workers workers: $(cat "$dir/out")"
    [ "$(jq "[.violations[]?] | length" "$dir/stats")" -eq 0 ] || fail "$workers workers cross the quota: $(jq -c .violations "$dir/stats")"
    [ "$(jq "[.sites[] | .offered_calls_highest_in_60s] | max as \$most | \$most > $units * 0.9 and \$most <= $units" "$dir/stats")" = true ] ||
        fail "$workers workers: the quota was not in force, or crossed: $(jq -c .sites "$dir/stats")"
    rows "$workers" >"$dir/rows.$workers"
    [ "$(wc -l <"$dir/rows.$workers")" -eq $((20 * 250)) ] || fail "$workers workers: $(wc -l <"$dir/rows.$workers") rows"
    cmp -s "$dir/rows.1" "$dir/rows.$workers" || fail "other rows with $workers workers"
done

echo "$failed failed"
[ "$failed" -eq 0 ]
