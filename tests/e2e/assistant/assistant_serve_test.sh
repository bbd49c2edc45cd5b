#!/usr/bin/env bash
# assistant_serve_test.sh TIDEMARK CLOUD: the assistant inside `tidemark serve`: it looks for mail by itself, when
# a push or a request says so, goes on with a configuration that became wrong, waits over its budget, and
# leaves nothing behind (J3, J4, J6, J20, J27, J28).
. "$(dirname "$0")/../stage.sh"
. "$(dirname "$0")/assistant_stage.sh"
serve --quota off --mailbox "$user=0" --token "tok=$user"
yaml=$dir/home/assistant.yaml
category 'meet on Friday' needs_response
has_drafts() { [ "$(drafts)" = "$1" ]; }
alerted() { t alerts --json | jq -e "[.alerts[].condition] | index(\"$1\")"; }
not_alerted() { ! alerted "$1"; }
failed_jobs() { t jobs list --state failed --json | jq .total; }

# ---- a process that runs before all else hears of it
start_serve
sign_in
add_chat
ends 0 assistant onboard "$user"
planned() { [ "$(state "SELECT count(*) FROM schedule WHERE name LIKE 'assistant.%'")" = 3 ]; }
until_true 60 planned || fail "nothing is planned: $(state 'SELECT name FROM schedule')"
stop_serve 0 5 # a job that looks for mail may be put back

# ---- what came while none ran is found at the start; intervals come from the environment, too
arrive 'Lunch' 'Shall we meet on Friday? I would like to know.'
GMA_SYNC_FALLBACK_INTERVAL_MINUTES=7 GMA_SYNC_FULL_SYNC_INTERVAL_HOURS=3 start_serve
until_true 60 has_drafts 1 || fail "not found at the start: $(t jobs list)"
intervals=$(state "SELECT group_concat(name || '=' || (period / 60000), ' ') FROM (SELECT * FROM schedule WHERE name LIKE 'assistant.%' ORDER BY name)")
[ "$intervals" = 'assistant.fallback=7 assistant.full=180 assistant.watch=1440' ] || fail "intervals: $intervals"

# ---- by request
request() {
    [ "$(ask_page -o /dev/null -H "Authorization: Bearer $key" -H 'Content-Type: application/json' -d "{\"account\":\"$user\"}" "$page/api/sync")" = 202 ] ||
        fail "by request"
}
ends 0 token add program --scope work
key=$(cat "$dir/out")
arrive 'Dinner' 'Or shall we meet on Friday evening?'
request
until_true 60 has_drafts 2 || fail "not synced by request: $(t jobs list)"
stop_serve 0 5 # a job that looks for mail may be put back

# ---- by a push; the watch is renewed at the start.  A request is none.
t assistant status | grep -q 'none yet' || fail "a push before any came: $(t assistant status)"
topic=projects/p/topics/mail
hook_set=(--set "serve.webhook.keys=$origin/oauth2/v3/certs" --set "serve.webhook.sender=pubsub-push@tidemark-cloud.iam.gserviceaccount.com")
address_of() { sed -n 's#.*takes pushes.*\(http://127.0.0.1:[0-9]*/webhook/gmail\).*#\1#p' "$dir/serve.log"; }
start_serve --set serve.webhook.listen=127.0.0.1:0 --set serve.webhook.audience=x "${hook_set[@]}"
hook=$(address_of)
stop_serve 0 5 # a job that looks for mail may be put back
curl -sSf -o /dev/null "$origin/_cloud/topics" -d "{\"topic\":\"$topic\",\"url\":\"$hook\"}" || fail topic
start_serve --set "serve.webhook.listen=$(sed -E 's#http://([^/]*)/.*#\1#' <<<"$hook")" --set "serve.webhook.audience=$hook" \
    --set "mail.push_topic=$topic" "${hook_set[@]}"
pushed() { t metrics | grep -q '^tidemark_webhook_requests_total{outcome="accepted"} [1-9]'; }
until_true 60 pushed || fail "no watch: $(cat "$dir/serve.log")" # Gmail tells at once that it watches
curl -sSf -o /dev/null "$origin/_cloud/clock" -d '{"advance":"2s"}' || fail clock
arrive 'Supper' 'We could meet on Friday night.'
until_true 60 has_drafts 3 || fail "no push: $(t jobs list; cat "$dir/serve.log")"
push_shown() { t assistant status --json | jq -e '.accounts[0].pushed_unix_ms > 0' >/dev/null; }
until_true 30 push_shown || fail "the push is not shown: $(t assistant status)"

# ---- a configuration that becomes wrong: the last good one holds, and it is said; corrected: it counts at once
cp "$yaml" "$dir/good.yaml"
sed -i 's/full_sync_days: 60/full_sync_dayz: 60/' "$yaml"
arrive 'Tea' 'Could we meet on Friday for tea?'
request
until_true 60 has_drafts 4 || fail "the good configuration is lost: $(drafts) drafts"
ends 1 assistant sync # what a user begins is refused, with the line
until_true 60 alerted assistant_config || fail "no alert: $(t alerts)"
ends 0 assistant status
grep -q 'full_sync_dayz' "$dir/out" || fail "status does not say it: $(cat "$dir/out")"
cp "$dir/good.yaml" "$yaml"
ends 0 assistant sync --wait
until_true 60 not_alerted assistant_config || fail "the alert stays"

# ---- over the budget mail waits for tomorrow, and nothing fails
sed -i 's/^budget:.*/budget:\n  tokens_per_day: 10/' "$yaml"
arrive 'Cake' 'Could we meet on Friday for cake?'
ends 5 assistant sync --wait
grep -q 'budget' "$dir/out" || fail "it is not said why: $(cat "$dir/out" "$dir/err")"
until_true 60 alerted assistant_budget || fail "no alert: $(t alerts)"
t status >"$dir/out"
grep -q 'budget of 10 tokens' "$dir/out" || fail "the account does not say why: $(cat "$dir/out")"
[ "$(drafts) $(failed_jobs)" = '4 0' ] || fail "over the budget: $(drafts) drafts, $(failed_jobs) failed"
stop_serve 0 5 # a job that looks for mail may be put back

# ---- the chat account that it asks stays; a mail account takes what was recorded with it
ends 1 account remove model
grep -q 'models.account' "$dir/err" || fail "removing the model: $(cat "$dir/err")"
ends 0 account remove "$user"
for table in user label email event draft call sync tally; do
    [ "$(state "SELECT count(*) FROM assistant_$table")" = 0 ] || fail "rows stay in assistant_$table"
done
[ "$(state 'SELECT count(*) FROM job JOIN account ON account.id = job.account WHERE account.name LIKE "%@%" AND job.state < 2')" = 0 ] ||
    fail "jobs stay: $(t jobs list)"
ends 0 account remove model
ends 0 assistant status

[ $failed -eq 0 ] || exit 1
echo "assistant_serve: fine"
