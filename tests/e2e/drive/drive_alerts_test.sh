#!/usr/bin/env bash
# drive_alerts_test.sh TIDEMARK CLOUD: a drive that stops, deletions that wait and a sign-in that is refused are alerts (E6.4)
# in commands, the API, /metrics and mail, and end when they are mended: in `tidemark serve` and in single runs.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
source "$(dirname "$0")/../smtp_stage.sh"
serve --quota off --drive ada@example.com=30,size=500 --token tok=ada@example.com --drive bob@example.com=3,size=500 --token tokb=bob@example.com
join
ends 0 drive sync --quiet
get() { curl -sS -H "Authorization: Bearer $key" "$page$1"; }
has() { [ "$(get /metrics | grep -cE "$1")" -ge 1 ]; }
counted() { has "^tidemark_alerts\{condition=\"$1\",severity=\"$2\"\} 1\$"; }
metric() { has "^tidemark_$1\{drive=\"One\"\} $2\$"; }
alerted() { t alerts --json | jq -e --arg c "$1" '[.alerts[].condition] == [$c]'; }
cleared() { t alerts --json | jq -e '.alerts == []'; }

# ---- single runs: the folder is away, and back
mv "$one" "$dir/away"
t drive sync --quiet >/dev/null 2>&1
ends 0 alerts
says 'drive_stopped'
says 'critical'
ends 0 alerts --json
holds '.alerts[0] | .account == "ada@example.com" and (.text | startswith("One: ")) and .command == "tidemark drive status"'
mv "$dir/away" "$one"
ends 0 drive sync --quiet
cleared >/dev/null || fail "it lasts: $(t alerts)"

# ---- tidemark serve: found and mended by itself, and mailed
start_serve --set drive.poll=1s
ends 0 token add reader --scope look
key=$(cat "$dir/out")
post_office box
ends 0 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port"
mv "$one" "$dir/away"
until_true 60 alerted drive_stopped >/dev/null || fail "no alert: $(cat "$dir/serve.log")"
until_true 60 has_mails box 1 || fail "no mail: $(cat "$dir/serve.log")"
mail_has box 0 "^Subject: Tidemark: critical: drive_stopped, ada@example.com"
counted drive_stopped critical || fail "metrics: $(get /metrics | grep tidemark_alerts)"
ends 0 alerts --json
get /api/v1/alerts | jq -e --slurpfile said "$dir/out" '.alerts == $said[0].alerts' >/dev/null || fail "the API: $(get /api/v1/alerts)"
mv "$dir/away" "$one"
until_true 60 cleared >/dev/null || fail "it lasts: $(t alerts)"
has '^tidemark_alerts\{' && fail "metrics: $(get /metrics | grep tidemark_alerts)"

# ---- deletions that wait; decided, they are gone
find "$one" -type f ! -name '.tidemark-*' | head -20 | xargs -d '\n' rm
until_true 60 alerted drive_deletions >/dev/null || fail "no alert: $(t alerts; t drive status)"
until_true 20 metric drive_deletions_waiting 20 || fail "metrics: $(get /metrics | grep drive_)"
t drive deletions list --json >"$dir/out" 2>"$dir/err"
ends 0 drive deletions accept One --listed "$(jq -r '.drives[0].listed' "$dir/out")"
until_true 60 cleared >/dev/null || fail "it lasts: $(t alerts)"
until_true 20 metric drive_deletions_waiting 0 || fail "metrics: $(get /metrics | grep drive_)"
until_true 60 alike # nothing waits for the user any more; the last deletions may still be on their way
same_trees "after consent"

# ---- a sign-in that is refused
curl -sSf -o /dev/null "$origin/_cloud/token/revoke" -d '{"user":"ada@example.com"}' || fail "revoke"
until_true 60 alerted drive_stopped >/dev/null || fail "no alert: $(t alerts; cat "$dir/serve.log")"
stop_serve 0

# ---- alerts go with the drive
ends 0 drive remove One
cleared >/dev/null || fail "it outlives its drive: $(t alerts)"

# ---- and with the account, while a process stays: commands, the API, metrics
ends 0 account add onedrive bob@example.com --endpoint "$origin" --bearer tokb
rm -rf "$one"
ends 0 drive add "$one" --account bob@example.com
start_serve --set drive.poll=1s
until_true 60 metric drive_deletions_waiting 0 || fail "it is not watched: $(get /metrics | grep drive_; cat "$dir/serve.log")"
mv "$one" "$dir/away"
until_true 60 alerted drive_stopped >/dev/null || fail "no alert: $(t alerts; cat "$dir/serve.log")"
counted drive_stopped critical || fail "metrics: $(get /metrics | grep tidemark_alerts)"
ends 0 account remove bob@example.com
cleared >/dev/null || fail "it outlives its account: $(t alerts)"
has '^tidemark_alerts\{' && fail "metrics: $(get /metrics | grep tidemark_alerts)"
get /api/v1/alerts | jq -e '.alerts == []' >/dev/null || fail "the API: $(get /api/v1/alerts)"
gone() { ! has '^tidemark_drive_[a-z_]*\{drive="One"\}'; }
until_true 60 gone || fail "metrics of a drive that is gone: $(get /metrics | grep drive_)"
stop_serve 0
[ "$failed" -eq 0 ]
