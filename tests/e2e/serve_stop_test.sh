#!/usr/bin/env bash
# serve_stop_test.sh TIDEMARK CLOUD: SIGTERM ends `tidemark serve` in time while mail arrives faster than it can be
# indexed, its service manager hears of it all the while, and the next one continues (E7.4, M9).
. "$(dirname "$0")/stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=100000000 TIDEMARK_GOVERNOR_GMAIL_PROJECT_UNITS=1000000000 TIDEMARK_GOVERNOR_GMAIL_IN_FLIGHT=100
messages=60000
start_cloud --seed 9 --mailbox "$user=$messages" --token tok="$user"
stored() { t status --json | jq -e ".accounts[0].stored $1" >/dev/null; }

start_serve
sign_in
ends 0 mail sync --no-wait
until_true 60 stored '> 5000' || fail "no backfill: $(t status --json)"
before=$(date +%s%N)
kill -TERM "$server"
wait "$server"
code=$?
[ "$code" -eq 5 ] || [ "$code" -eq 0 ] || fail "serve ended with $code: $(cat "$dir/serve.log" "$dir/serve.out")" # jobs were put back, or not
took_ms=$((($(date +%s%N) - before) / 1000000))
stored "< $messages" || fail "the backfill had ended: nothing was tested"
echo "the end took $took_ms ms"
[ "$took_ms" -lt 6000 ] || fail "the end took $took_ms ms"

# ---- nothing is lost, and all of it is found
start_serve
synced() { stored "== $messages" && t status --json | jq -e '.accounts[0] | .jobs_running + .jobs_waiting == 0'; }
until_true 120 synced || fail "not continued: $(t status --json)"
newest=$(t mail search in:anywhere --limit 1 --json | jq -r '.messages[0].id // empty')
[ -n "$newest" ] || fail "nothing is found"
stop_serve 0
exit $((failed > 0))
