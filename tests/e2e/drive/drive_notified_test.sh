#!/usr/bin/env bash
# drive_notified_test.sh TIDEMARK CLOUD: OneDrive tells `tidemark serve` of changes by its webhook: the file comes without a poll,
# what is forged does nothing, a restart keeps the subscription, and without one the drive is polled (D9).
source "$(dirname "$0")/../stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=3,size=500 --token tok=ada@example.com
one=$dir/One
graph() { curl -sSf -H 'Authorization: Bearer tok' "$@"; }
put() { graph -o /dev/null -X PUT "$origin/v1.0/me/drive/root:/$1:/content" --data-binary "$2" || fail "put $1"; }
here() { [ "$(cat "$one/$1" 2>/dev/null)" = "$2" ]; }
subscriptions() { graph "$origin/v1.0/subscriptions" | jq -c "[.value[] | $1]"; }
said() { grep -qE "$1" "$dir/serve.log"; }
metric() { t metrics | sed -n "s/^tidemark_$1 //p"; }
outcome() { metric "webhook_requests_total{outcome=\"$1\"}"; }
ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok
ends 0 drive add "$one"

# ---- its address must be safe, and is enough where only drives are told of
ends 2 --set serve.webhook.listen=127.0.0.1:0 serve --listen 127.0.0.1:0
ends 2 --set serve.webhook.listen=127.0.0.1:0 --set serve.webhook.url=http://sync.example.org serve --listen 127.0.0.1:0
grep -q 'notifications must not go to' "$dir/err" || fail "over http: $(cat "$dir/err")"

# ---- a subscription that cannot be made: the drive is polled
poll=(--set drive.rescan=6h)
start_serve "${poll[@]}" --set drive.poll=2s --set serve.webhook.listen=127.0.0.1:0 --set serve.webhook.url=http://127.0.0.1:9
hook=$(sed -n 's#.*takes pushes.*\(http://127.0.0.1:[0-9]*\)/webhook/onedrive.*#\1#p' "$dir/serve.log")
[ -n "$hook" ] || fail "no address: $(cat "$dir/serve.log")"
fetched() { [ "$(find "$one" -type f ! -name '.tidemark-*' | wc -l)" = 3 ]; }
until_true 60 fetched || fail "not synced: $(cat "$dir/serve.log")"
put polled.txt polled
until_true 60 here polled.txt polled || fail "not polled: $(cat "$dir/serve.log")"
said 'watching is in trouble.*[Vv]alidation' || fail "it does not say why: $(cat "$dir/serve.log")"
[ "$(subscriptions .id)" = '[]' ] || fail "a subscription without its handshake: $(subscriptions .)"
stop_serve 0

# ---- with one: a change comes without a poll
hooked=("${poll[@]}" --set drive.poll=6h --set "serve.webhook.listen=${hook#http://}" --set "serve.webhook.url=$hook")
[ "$(state 'SELECT count(*) FROM drive_subscription')" = 0 ] || fail "one is stored that was not made"
start_serve "${hooked[@]}"
subscribed() { [ "$(subscriptions "select(.notificationUrl == \"$hook/webhook/onedrive\") | .resource" | jq length)" = 1 ] && [ "$(outcome validated)" -ge 1 ]; }
until_true 60 subscribed || fail "no subscription: $(subscriptions .) $(cat "$dir/serve.log")"
settled() { t drive status --json | jq -e '.drives[0] | .waiting == 0 and (.looking | not)'; }
until_true 60 settled || fail "not at rest"
put told.txt told
until_true 60 here told.txt told || fail "not told: $(cat "$dir/serve.log"; t metrics | grep webhook)"
accepted() { [ "$(outcome accepted)" -ge 1 ]; }
until_true 30 accepted || fail "not counted: $(t metrics | grep webhook)"
grep -q "$(state 'SELECT secret FROM drive_subscription')" "$dir/serve.log" "$dir/home/tidemark.log" && fail "the secret is logged"

# ---- what is forged does nothing; a burst is one look
until_true 60 settled || fail "not at rest"
id=$(state 'SELECT id FROM drive_subscription')
secret=$(state 'SELECT secret FROM drive_subscription')
post() { # CODE CURL-ARGUMENT...
    local code want=$1
    shift
    code=$(curl -sS -o "$dir/body" -w '%{http_code}' "$@")
    [ "$code" = "$want" ] || fail "line ${BASH_LINENO[0]}: answered $code, not $want: $(head -c 300 "$dir/body")"
}
notice() { printf '{"value":[{"subscriptionId":"%s","clientState":"%s","resource":"me/drive/root"}]}' "$1" "$2"; }
syncs() { state "SELECT count(*) FROM job j JOIN kind k ON k.id = j.kind WHERE k.name = 'drive.sync'"; }
quiet() { # the file that came is seen as a change here, too, and looked at a moment later
    before=$(syncs)
    sleep 4
    settled && [ "$(syncs)" = "$before" ]
}
until_true 60 quiet || fail "still looking: $(cat "$dir/serve.log")"
forged=$(outcome forged)
post 202 -H 'Content-Type: application/json' -d "$(notice "$id" wrong)" "$hook/webhook/onedrive"
post 202 -H 'Content-Type: application/json' -d "$(notice "$id" "${secret%?}")" "$hook/webhook/onedrive"
post 202 -H 'Content-Type: application/json' -d "$(notice 00000000-0000-0000-0000-000000000000 "$secret")" "$hook/webhook/onedrive"
post 202 -H 'Content-Type: application/json' -d '{"value":[{"subscriptionId":"'"$id"'"}]}' "$hook/webhook/onedrive"
post 400 -H 'Content-Type: application/json' -d '{"value":"x"}' "$hook/webhook/onedrive"
post 400 -H 'Content-Type: application/json' -d 'x' "$hook/webhook/onedrive"
post 413 -H 'Content-Type: application/json' -d "$(head -c 70000 /dev/zero | tr '\0' ' ')" "$hook/webhook/onedrive"
post 404 -d x "$hook/webhook/gmail" # there is no Gmail here
post 404 -X GET "$hook/api/v1/state"
[ "$(outcome forged)" = $((forged + 4)) ] || fail "forged: $(t metrics | grep webhook)"
[ "$(syncs)" = "$before" ] || fail "a forged notification made a job"
for _ in $(seq 20); do post 202 -H 'Content-Type: application/json' -d "$(notice "$id" "$secret")" "$hook/webhook/onedrive"; done
looked() { [ "$(syncs)" -gt "$before" ]; }
until_true 30 looked || fail "a genuine one makes no job"
until_true 60 settled || fail "not at rest"
[ $(($(syncs) - before)) -lt 15 ] || fail "20 notifications made $(($(syncs) - before)) jobs"

# ---- the handshake gives back what was sent, as text
post 200 -X POST "$hook/webhook/onedrive?validationToken=Validation%3A%20%3Cb%3E"
[ "$(cat "$dir/body")" = 'Validation: <b>' ] || fail "not the token: $(cat "$dir/body")"
curl -sS -D "$dir/head" -o /dev/null -X POST "$hook/webhook/onedrive?validationToken=x"
grep -qi '^content-type: text/plain' "$dir/head" && grep -qi '^x-content-type-options: nosniff' "$dir/head" || fail "head: $(cat "$dir/head")"

# ---- a restart keeps it
stop_serve 0
start_serve "${hooked[@]}"
put again.txt again
until_true 60 here again.txt again || fail "after a restart: $(cat "$dir/serve.log")"
until_true 60 settled || fail "not at rest"
[ "$(state 'SELECT id FROM drive_subscription')" = "$id" ] && [ "$(subscriptions .id)" = "[\"$id\"]" ] || fail "another subscription: $(subscriptions .id)"

# ---- one that OneDrive no longer knows is made anew when it is renewed
graph -X DELETE "$origin/v1.0/subscriptions/$id" || fail "delete"
sqlite3 "$dir/home/state.db" 'SELECT 1' >/dev/null
stop_serve 0
sqlite3 "$dir/home/state.db" "UPDATE drive_subscription SET expires_ms = $(date +%s)000 + 3600000" || fail "the ledger"
start_serve "${hooked[@]}"
anew() { [ "$(subscriptions .id | jq length)" = 1 ] && [ "$(state 'SELECT id FROM drive_subscription')" != "$id" ]; }
until_true 60 anew || fail "not made anew: $(subscriptions .) $(cat "$dir/serve.log")"
put anew.txt anew
until_true 60 here anew.txt anew || fail "not told by the new one: $(cat "$dir/serve.log")"
stop_serve 0
exit $((failed > 0))
