#!/usr/bin/env bash
# webhook_test.sh TIDEMARK CLOUD: a push of Pub/Sub wakes the sync of its account within a second, is answered while
# every worker is busy, and what is forged has no effect (J3, J6).
. "$(dirname "$0")/stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 TIDEMARK_WORKERS_COUNT=1
# The cloud has the time of this machine: its tokens are valid for an hour from now.
serve --quota off --seed 5 --mailbox "$user=20" --mailbox ben@example.com=1 --token tok="$user" --token tok-ben=ben@example.com
topic=projects/p/topics/mail
sender=pubsub-push@tidemark-cloud.iam.gserviceaccount.com
hook_set=(--set "serve.webhook.keys=$origin/oauth2/v3/certs" --set "serve.webhook.sender=$sender")
said() { grep -qE "$1" "$dir/serve.log"; }
metric() { t metrics | sed -n "s/^tidemark_$1 //p"; }
outcome() { metric "webhook_requests_total{outcome=\"$1\"}"; }
stored() { t mail status --json | jq -e ".accounts[0].stored == $1"; }
deliver() { # USER
    printf 'From: b@example.org\r\nSubject: x\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
        --data-binary @- "$origin/_cloud/mail?user=$1" || fail deliver
}
cloud_push() { curl -sSf "$origin/_cloud/stats" | jq -e ".push.$1"; }
# The cloud makes one notification a second for a user and drops the others.
next_second() { curl -sSf -o /dev/null "$origin/_cloud/clock" -d '{"advance":"2s"}' || fail clock; }

# ---- off by default, and not without knowing whose pushes to take
start_serve
! said 'takes pushes' || fail "on by default"
stop_serve 0
listen=(--set serve.webhook.listen=127.0.0.1:0)
ends 2 "${listen[@]}" serve --listen 127.0.0.1:0
grep -q 'serve.webhook.audience' "$dir/err" || fail "no audience: $(cat "$dir/err")"
ends 2 "${listen[@]}" --set serve.webhook.audience=x "${hook_set[@]}" --set serve.webhook.keys=http://example.org/certs serve --listen 127.0.0.1:0
grep -q 'keys must not come from' "$dir/err" || fail "keys over http: $(cat "$dir/err")"
ends 2 --set serve.webhook.listen=0.0.0.0:7434 --set serve.webhook.audience=x "${hook_set[@]}" serve --listen 127.0.0.1:0
grep -q 'this machine alone' "$dir/err" || fail "another address: $(cat "$dir/err")"

# ---- a topic that Gmail refuses is a notice, and the sync is not disturbed
address_of() { sed -n 's#.*takes pushes.*\(http://127.0.0.1:[0-9]*/webhook/gmail\).*#\1#p' "$dir/serve.log"; }
start_serve "${listen[@]}" --set serve.webhook.audience=x "${hook_set[@]}" --set mail.push_topic=projects/p/topics/none
hook=$(address_of)
sign_in
ends 0 mail sync --quiet
stored 20 >/dev/null || fail "the first sync: $(t mail status --json)"
ends 0 mail status --json
field notice | grep -q 'no pushes to projects/p/topics/none' || fail "no notice: $(cat "$dir/out")"
stop_serve 0

# ---- on: its audience is its address, so its port had to be known first; the first sync asks Gmail to publish
curl -sSf -o /dev/null "$origin/_cloud/topics" -d "{\"topic\":\"$topic\",\"url\":\"$hook\"}" || fail topic
listen=(--set "serve.webhook.listen=$(sed -E 's#http://([^/]*)/.*#\1#' <<<"$hook")" --set "serve.webhook.audience=$hook" --set "mail.push_topic=$topic")
start_serve "${listen[@]}" "${hook_set[@]}"
[ "$(address_of)" = "$hook" ] || fail "another address: $(cat "$dir/serve.log")"
ends 0 mail sync --quiet
ends 0 mail status --json
[ "$(field notice)" = "" ] || fail "the notice stays: $(cat "$dir/out")"
accepted() { [ "$(outcome accepted)" -ge "$1" ]; }
until_true 60 accepted 1 || fail "no push came: $(cat "$dir/serve.log"; t metrics | grep webhook)" # at once
ends 0 mail sync --quiet # the second one asks Gmail nothing
[ "$(curl -sSf "$origin/_cloud/stats" | jq '[.. | objects | select(has("gmail.users.watch")) | .["gmail.users.watch"]] | length > 0')" = true ] || fail "no call of watch: $(curl -sSf "$origin/_cloud/stats" | head -c 600)"

# ---- a push wakes the sync
next_second
deliver "$user"
until_true 60 stored 21 || fail "not woken: $(cat "$dir/serve.log")"
until_true 60 accepted 2 || fail "accepted: $(t metrics | grep webhook)"
# ---- twice is once; an address that is no account here is acknowledged, counted and logged
fault '{"method":"gmail.users.watch","fault":"push-duplicate"}'
next_second
deliver "$user"
until_true 60 stored 22 || fail "not woken: $(cat "$dir/serve.log")"
repeated() { [ "$(outcome repeated)" -ge 1 ]; }
until_true 60 repeated || fail "repeated: $(t metrics | grep webhook)"
no_faults
curl -sSf -o /dev/null -X POST -H 'Authorization: Bearer tok-ben' "$api/watch" -d "{\"topicName\":\"$topic\"}" || fail "watch of ben"
unknown() { [ "$(outcome unknown)" -ge 1 ]; }
until_true 60 unknown || fail "unknown: $(t metrics | grep webhook)"
said 'a push for no account here.*ben@example.com' || fail "not logged: $(cat "$dir/serve.log")"
[ "$(cloud_push refused)" = 0 ] || fail "the cloud was refused: $(cloud_push .)"

# ---- within a second, as the programs noted it themselves: the push, the job it made, its start.  A busy machine may delay one of
# the pushes; what delayed all of them would be ours.
soon=$(sed -n 's/.*woken by a push.*after_ms=\([0-9]*\).*/\1/p' "$dir/serve.log" | awk '$1 < 1000' | wc -l)
[ "$soon" -ge 1 ] || fail "every push waited: $(grep 'woken by a push' "$dir/serve.log")"
ends 0 jobs list --kind mail.plan --limit 3 --json
jq -e '[.items[] | .started_unix_ms - .created_unix_ms] | min < 1000' "$dir/out" >/dev/null || fail "every plan began late: $(cat "$dir/out")"

# ---- what is forged has no effect
part() { printf '%s' "$1" | base64 -w 0 | tr '+/' '-_' | tr -d '='; }
now=$(date +%s)
claims="{\"iss\":\"https://accounts.google.com\",\"aud\":\"$hook\",\"email\":\"$sender\",\"email_verified\":true,\"iat\":$now,\"exp\":$((now + 3600))}"
body="{\"message\":{\"data\":\"$(printf '{"emailAddress":"%s","historyId":"1"}' "$user" | base64 -w 0)\",\"messageId\":\"forged\"},\"subscription\":\"s\"}"
post() { # CODE CURL-ARGUMENTS...
    local code want=$1
    shift
    code=$(curl -sS -o "$dir/body" -w '%{http_code}' -H 'Content-Type: application/json' "$@")
    [ "$code" = "$want" ] || fail "line ${BASH_LINENO[0]}: answered $code, not $want: $(head -c 300 "$dir/body")"
}
kid=$(curl -sSf "$origin/oauth2/v3/certs" | jq -r '.keys[0].kid')
curl -sSf "$origin/oauth2/v1/certs" | jq -r '.[]' >"$dir/key.pem"
hs256() { # as if the public key were a secret
    local text
    text=$(part "{\"alg\":\"HS256\",\"kid\":\"$kid\"}").$(part "$claims")
    printf '%s.%s' "$text" "$(printf '%s' "$text" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$(xxd -p "$dir/key.pem" | tr -d '\n')" -binary | base64 -w 0 | tr '+/' '-_' | tr -d '=')"
}
jobs_before=$(state 'SELECT count(*) FROM job')
post 401 -d "$body" "$hook"
post 401 -H "Authorization: Bearer $(part '{"alg":"none"}').$(part "$claims")." -d "$body" "$hook"
post 401 -H "Authorization: Bearer $(part "{\"alg\":\"RS256\",\"kid\":\"$kid\"}").$(part "$claims").$(part x)" -d "$body" "$hook"
post 401 -H "Authorization: Bearer $(hs256)" -d "$body" "$hook"
post 401 -H "Authorization: Bearer tok" -d "$body" "$hook"
post 401 -d "$body" "$hook?access_token=tok"
post 413 -d "$(head -c 70000 /dev/zero | tr '\0' ' ')" "$hook"
[ "$(state 'SELECT count(*) FROM job')" = "$jobs_before" ] || fail "forged pushes made jobs"
[ "$(outcome forged)" = 1 ] && [ "$(outcome no_token)" = 2 ] && [ "$(outcome bad_token)" = 3 ] && [ "$(outcome refused)" = 1 ] ||
    fail "counts: $(t metrics | grep webhook)"
timed() { [ "$(metric webhook_request_duration_seconds_count)" = "$(t metrics | awk '/^tidemark_webhook_requests_total/ { sum += $2 } END { print sum }')" ]; }
until_true 60 timed || fail "each request has one outcome and one duration: $(t metrics | grep webhook)"
grep -q "$(part "$claims")" "$dir/serve.log" "$dir/home/tidemark.log" && fail "a token is logged"

# ---- nothing of the page is behind it
for path in / /healthz /metrics /api/v1/state /api/v1/openapi.json; do
    post 404 -X GET "${hook%/webhook/gmail}$path"
done
post 404 -d '{}' "${hook%/webhook/gmail}/api/sync"
post 405 -X GET "$hook"

# ---- while the only worker is busy a push is acknowledged, and its job waits
acknowledged=$(cloud_push acknowledged)
fault '{"method":"gmail.*","fault":"latency","ms":600000}'
next_second
deliver "$user"
struck() { curl -sS "$origin/_cloud/faults" | jq -e '[.. | .struck? // 0] | add > 0'; }
until_true 60 struck || fail "no job waits for the cloud: $(cat "$dir/serve.log")"
next_second
deliver "$user"
both() { [ "$(cloud_push acknowledged)" -ge $((acknowledged + 2)) ]; }
until_true 60 both || fail "not acknowledged while busy: $(cloud_push .)"
curl -sSf -o /dev/null "$page/healthz" || fail "health while busy"
no_faults
kill -TERM "$server" # the call that hangs is put back
wait "$server"
start_serve "${listen[@]}" "${hook_set[@]}"
until_true 60 stored 24 || fail "not continued: $(t mail status --json)"

# ---- the same by request, with a key of the page
ask -o /dev/null -X POST "$api/stop" || fail stop
ends 0 token add program --scope work
work=$(cat "$dir/out")
ends 0 token add viewer --scope look
look=$(cat "$dir/out")
deliver "$user"
post 401 -d "{\"account\":\"$user\"}" "$page/api/sync"
post 403 -H "Authorization: Bearer $look" -d "{\"account\":\"$user\"}" "$page/api/sync"
post 400 -H "Authorization: Bearer $work" -d '{"account":1}' "$page/api/sync"
post 400 -H "Authorization: Bearer $work" -d "{\"account\":\"$user\",\"force_full\":\"yes\"}" "$page/api/sync"
post 404 -H "Authorization: Bearer $work" -d '{"account":"eve@example.com"}' "$page/api/sync"
post 202 -H "Authorization: Bearer $work" -d "{\"account\":\"$user\"}" "$page/api/sync"
until_true 60 stored 25 || fail "not synced by request: $(t mail status --json)"
post 202 -H "Authorization: Bearer $work" -d "{\"account\":\"$user\",\"force_full\":true}" "$page/api/sync"
relisted() { [ "$(state "SELECT count(*) FROM job JOIN kind ON kind.id = job.kind WHERE kind.name = 'mail.absent'")" -ge 1 ]; }
until_true 60 relisted || fail "force_full lists nothing: $(t jobs list --json | head -c 600)"
stop_serve 0

exit "$((failed > 0))"
