#!/usr/bin/env bash
# alerts_serve_test.sh TIDEMARK CLOUD: a resident process sends mail about alerts (E6.4): it is told where while it
# runs, sends one when an alert comes, and one when it has ended; API, metrics and commands show the same alert.
. "$(dirname "$0")/stage.sh"
. "$(dirname "$0")/smtp_stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
start_cloud --seed 3 --mailbox "$user=10" --token tok="$user"
get() { curl -sS -H "Authorization: Bearer $key" "$page$1"; }
counted() { get /metrics | grep -E '^tidemark_alerts\{.*condition="metadata"' | grep -qE " $1\$"; }
cleared() { t alerts --json | jq -e '.alerts == []'; }

start_serve
sign_in
ends 0 mail sync --quiet
ends 0 token add reader --scope look
key=$(cat "$dir/out")
post_office box
ends 0 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port"
ends 0 config set alerts.metadata_budget 1KiB --quiet
ends 0 mail sync --quiet # an account that is used is measured
until_true 120 has_mails box 1 || fail "no mail: $(cat "$dir/serve.log")"
mail_has box 0 "^Subject: Tidemark: critical: metadata, $user"
ends 0 alerts --json
jq -e '.alerts | length == 1 and .[0].notified_unix_ms > 0' "$dir/out" >/dev/null || fail "alerts: $(cat "$dir/out")"
get /api/v1/alerts | jq -e --slurpfile said "$dir/out" '.alerts == $said[0].alerts' >/dev/null ||
    fail "the API has $(get /api/v1/alerts), the command $(cat "$dir/out")"
counted 1 || fail "metrics: $(get /metrics | grep tidemark_alerts)"

# ---- mail about one account goes to its own address from now on, other accounts have none
ends 0 config set "accounts.$user.alerts.mail.to" desk@example.com
ends 0 config unset alerts.mail.to

# ---- it ends within the hour: the all-clear waits, over a restart too
ends 0 config set alerts.metadata_budget 64MiB --quiet
ends 0 mail sync --quiet
until_true 120 cleared || fail "it lasts: $(t alerts)"
stop_serve 0
only box 1
state "UPDATE notice_state SET sent = sent - 3600000" || fail "the hour"
start_serve
until_true 60 has_mails box 2 || fail "no all-clear: $(cat "$dir/serve.log")"
mail_has box 1 "^Subject: Tidemark: all clear: metadata, $user"
mail_has box 1 '-> <desk@example.com>'
stop_serve 0
only box 2
[ "$failed" -eq 0 ]
