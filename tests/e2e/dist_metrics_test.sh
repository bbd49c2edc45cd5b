#!/usr/bin/env bash
# dist_metrics_test.sh TIDEMARK CLOUD DASHBOARD RULES: every metric and every label that the dashboard and the alert
# rules name is in /metrics of a running `tidemark serve` (E9.5), whose counters do not go back.
. "$(dirname "$0")/stage.sh"
dashboard=$3
rules=$4
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
start_cloud --seed 5 --mailbox "$user=40" --token tok-ada="$user" --drive bob@example.com=3,size=100 --token tok-bob=bob@example.com
start_serve
ends 0 account add gmail "$user" --endpoint "$origin" --bearer tok-ada
fault '{"method":"gmail.users.messages.*","count":1,"fault":"503"}' # an error to be counted
ends 0 mail sync --quiet
ends 0 account add onedrive bob@example.com --endpoint "$origin" --bearer tok-bob
ends 0 drive add "$dir/One"
ends 0 drive sync --quiet
ends 0 drive sync --quiet # which knows of a complete round
ends 0 token add prometheus --scope metrics
key=$(cat "$dir/out")
ask_metrics() { curl -sSf -o "$1" -H "Authorization: Bearer $key" "$page/metrics"; }
scrape() { until_true 60 ask_metrics "$1" || fail "no metrics"; } # a busy machine may answer 503: too slow
scrape "$dir/first"
scrape "$dir/metrics" # now there is a request to /metrics to be counted

# ---- what they name: metrics without the suffixes of a histogram, and labels by which they choose or add up
jq -r '.. | .expr? // empty, (.query? | objects | .query)' "$dashboard" >"$dir/exprs" || fail "the dashboard is no JSON"
python3 - "$rules" >>"$dir/exprs" <<'END' || fail "the rules cannot be read"
import re, sys
text = open(sys.argv[1], encoding="utf-8").read()
for found in re.finditer(r"^( *)expr:(.*(?:\n\1 +.*)*)", text, re.M):
    print(" ".join(found.group(2).split()))
END
[ "$(grep -c . "$dir/exprs")" -gt 30 ] || fail "few expressions: $(cat "$dir/exprs")"
grep -oE 'tidemark_[a-z_]+' "$dir/exprs" | sed -E 's/_(bucket|sum|count)$//' | sort -u >"$dir/named"
sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p' "$dir/metrics" | sort >"$dir/exported"
comm -23 "$dir/named" "$dir/exported" >"$dir/unknown"
[ ! -s "$dir/unknown" ] || fail "not exported: $(tr '\n' ' ' <"$dir/unknown")"
[ "$(grep -c . "$dir/named")" -ge 20 ] || fail "few metrics: $(cat "$dir/named")"
# After a sync all have lines, but for those of alerts and of what blocks an account.
for name in $(grep -vE '^tidemark_(alerts|blocked_seconds_total)$' "$dir/named"); do
    grep -qE "^$name(_count)?[{ ]" "$dir/metrics" || fail "$name has no line"
done
# LABEL=: a choice; by (LABEL): a sum.  `instance` and `job` are Prometheus's, `le` a histogram's.
{
    grep -oE '[a-z]+(=|=~|!=)"' "$dir/exprs" | sed -E 's/[^a-z].*//'
    grep -oE '(by|on) \([a-z, ]+\)' "$dir/exprs" | sed -E 's/^(by|on) //' | grep -oE '[a-z]+'
} | sort -u | grep -vxE 'instance|job' >"$dir/labels"
for label in $(grep -vxE 'reason|condition|severity' "$dir/labels"); do
    grep -qE "[{,]$label=\"" "$dir/metrics" || fail "no line has the label $label"
done
grep -q '^account$' "$dir/labels" || fail "labels: $(cat "$dir/labels")"

# ---- the lines
for line in "tidemark_items_stored_total\{account=\"$user\"\} 40" "tidemark_items_left\{account=\"$user\"\} 0" \
    "tidemark_stream_mark_timestamp_seconds\{account=\"$user\",stream=\"mail\"\} [1-9]" \
    "tidemark_stream_gaps\{account=\"$user\",stream=\"mail\"\} 0" 'tidemark_queue_depth\{system="mail"\} 0' \
    "tidemark_call_errors_total\{account=\"$user\",code=\"503\"\} [1-9]" \
    'tidemark_call_duration_seconds_count\{method="gmail.messages.get"\} [1-9]' \
    'tidemark_job_duration_seconds_bucket\{system="mail",le="\+Inf"\} [1-9]' 'tidemark_jobs_finished_total\{system="mail",outcome="done"\} [1-9]' \
    "tidemark_transfer_bytes_total\{account=\"$user\",direction=\"down\"\} [1-9]" "tidemark_quota_units_total\{account=\"$user\",limit=\"account\"\} [1-9]" \
    'tidemark_http_request_duration_seconds_count\{route="GET /metrics"\} [1-9]' 'tidemark_ledger_up 1' 'tidemark_metrics_left_out 0' \
    'tidemark_console_queries_waiting 0' 'tidemark_drive_conflicts\{drive="One"\} 0' 'tidemark_drive_deletions_waiting\{drive="One"\} 0' \
    'tidemark_drive_owed\{drive="One"\} 0' 'tidemark_drive_bad\{drive="One"\} 0' 'tidemark_drive_round_age_seconds\{drive="One"\} [0-9]'; do
    grep -qE "^$line" "$dir/metrics" || fail "no $line: $(cat "$dir/metrics")"
done
# No label is an id: neither of a message nor of a run.
ids=$(state "SELECT name FROM stream"; t jobs list --json --limit 50 | jq -r '.. | .run? // empty')
for id in $ids; do grep -qF "\"$id\"" "$dir/metrics" && fail "the label $id"; done

# ---- counters do not go back: not by a halt, not by the removal of what was counted
ends 0 account halt "$user" --reason test
ends 0 account resume "$user"
ends 0 mail sync --quiet
scrape "$dir/later"
awk '
    /^# TYPE/ { type[$3] = $4; next }
    /^#/ { next }
    {
        name = $0; sub(/[{ ].*/, "", name); base = name; sub(/_(bucket|sum|count)$/, "", base)
        series = $0; sub(/ [^ ]*$/, "", series)
        counts = type[name] == "counter" || type[base] == "histogram"
        if (NR == FNR) { if (counts) before[series] = $NF } else if (counts) { now[series] = $NF }
    }
    END {
        for (series in before) {
            compared++
            if (!(series in now) || now[series] + 0 < before[series] + 0) { print series, before[series], now[series]; bad = 1 }
        }
        exit bad || compared < 20
    }' "$dir/metrics" "$dir/later" >"$dir/back" || fail "counters went back: $(cat "$dir/back")"
grep -qE "^tidemark_blocked_seconds_total\{account=\"$user\",reason=\"halted\"\} " "$dir/later" || fail "the halt was not counted: $(grep blocked "$dir/later")"

# ---- the format, by Prometheus's own tool
if command -v promtool >/dev/null; then
    promtool check metrics <"$dir/later" >"$dir/promtool" 2>&1 || fail "promtool: $(cat "$dir/promtool")"
    promtool check rules "$rules" >"$dir/promtool" 2>&1 || fail "promtool: $(cat "$dir/promtool")"
else
    echo "skipped: promtool (package prometheus) is not here; format and rules were not checked by it"
fi
stop_serve 0

exit "$((failed > 0))"
