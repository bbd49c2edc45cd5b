#!/usr/bin/env bash
# serve_actions_test.sh TIDEMARK CLOUD SEED_LEDGER: what the API of `tidemark serve` changes, once per Idempotency-Key,
# also over a kill, and never more than the client saw (E1.11, E9.1).
. "$(dirname "$0")/stage.sh"
seed=$3
mkdir "$dir/home" && "$seed" "$dir/home" || fail seed
ends 0 jobs pause --account me@example.com # nothing runs: the states stay what the test made them
start_serve
ends 0 token add worker --scope work
work=$(cat "$dir/out")
ends 0 token add viewer --scope look
look=$(cat "$dir/out")
curl -sSf -o "$dir/openapi.json" "$page/api/v1/openapi.json" || fail openapi
# post PATH CODE KEY BODY [CURL-ARGUMENT...]: its answer is in $dir/body.
post() {
    local path=$1 want=$2 key=$3 body=$4 code
    shift 4
    code=$(ask_page -o "$dir/body" -D "$dir/head" -H "Authorization: Bearer ${as:-$work}" -H "Content-Type: ${type:-application/json}" \
        -H "Idempotency-Key: $key" -d "$body" "$@" "$page/api/v1/$path")
    [[ $code != 2* ]] || "$(dirname "$0")/openapi_check.py" "$dir/openapi.json" post "/api/v1/$path" "$code" "$dir/body" || fail "line ${BASH_LINENO[0]}"
    [ "$code" = "$want" ] || fail "line ${BASH_LINENO[0]}: $path answered $code, not $want: $(head -c 500 "$dir/body")"
}
get() { # PATH: its answer
    local code
    code=$(ask_page -o "$dir/got" -H "Authorization: Bearer $look" "$page/api/v1/$1")
    [ "$code" = 200 ] || fail "$1 answered $code: $(cat "$dir/got")"
    cat "$dir/got"
}
holds() { jq -e "$1" "$dir/body" >/dev/null || fail "line ${BASH_LINENO[0]}: not $1: $(cat "$dir/body")"; }
job_is() { [ "$(get "jobs/$1" | jq -r .job.state)" = "$2" ] || fail "line ${BASH_LINENO[0]}: job $1 is $(get "jobs/$1" | jq -c .job.state), not $2"; }

# ---- what matches a filter, if as many match as the client saw
post jobs/retry 409 k1 '{"filter":{"state":"failed"},"expect":2}'
holds '.code == "changed" and (.detail | contains("1 job matches now, not 2")) and (.help | length > 0)'
job_is 2 failed
post jobs/retry 200 k2 '{"filter":{"state":"failed","kind":"mail.history"},"expect":1}'
holds '.count == 1'
job_is 2 pending
cp "$dir/body" "$dir/first"

# ---- the same key and body: the same answer, and nothing is done again
ends 0 jobs cancel 2
post jobs/retry 200 k2 '{"filter":{"state":"failed","kind":"mail.history"},"expect":1}'
cmp -s "$dir/body" "$dir/first" || fail "another answer: $(cat "$dir/body")"
job_is 2 canceled
post jobs/retry 409 k1 '{"filter":{"state":"failed"},"expect":2}' # a refusal, too
post jobs/retry 422 k2 '{"filter":{"state":"failed"},"expect":1}'
holds '.code == "idempotency_key"'
post jobs/cancel 422 k2 '{"filter":{"state":"failed","kind":"mail.history"},"expect":1}' # another path
ends 0 token add other --scope work
other=$(cat "$dir/out")
as=$other post accounts/me@example.com/resume 200 k2 '{}' # keys of another client are its own

# ---- by ids: those that are gone or cannot be changed are not counted
post jobs/retry 200 k3 '{"ids":[2,"5",999]}'
holds '.count == 2'
job_is 2 pending
job_is 5 pending
post jobs/cancel 200 k4 '{"filter":{"account":"me@example.com","state":"pending"},"expect":'"$(get 'jobs?account=me@example.com&state=pending' | jq .total)"'}'
holds '.count > 3'
get 'jobs?account=me@example.com&state=pending' | jq -e '.total == 0 and .items == [] and .next == null' >/dev/null || fail "jobs are left"
post jobs/accept 200 k5 '{"ids":[2]}'
job_is 2 "done"
post jobs/accept 404 k6 '{"ids":[999]}'
post jobs/retry 404 k7 '{"filter":{"account":"nobody@example.com"},"expect":0}'

# ---- bad items
post bad/accept 409 k8 '{"filter":{"state":"bad"},"expect":2}'
post bad/accept 200 k9 '{"filter":{"state":"bad"},"expect":1}'
holds '.count == 1'
get bad | jq -e '[.items[] | {item, state}] == [{"item":"item-1","state":"accepted"},{"item":"item-2","state":"gone"}] and .total == 2' >/dev/null ||
    fail "bad: $(get bad)"
post bad/retry 200 k10 '{"ids":["item-1"],"filter":{"account":"me@example.com"}}'
get 'bad?state=retrying' | jq -e '.total == 1' >/dev/null || fail "bad: $(get bad)"
post bad/retry 404 k11 '{"ids":["item-9"]}'

# ---- lists come in pages without an offset
get 'bad?limit=1' >"$dir/page1"
next=$(jq -r '.next | @uri' "$dir/page1")
get "bad?limit=1&after=$next" | jq -e '.items[0].item == "item-2" and .total == 2' >/dev/null || fail "the second page: $(get "bad?limit=1&after=$next")"
ids=()
after=
while :; do
    get "jobs?limit=3$after" >"$dir/page1"
    mapfile -t -O "${#ids[@]}" ids < <(jq '.items[].id' "$dir/page1")
    next=$(jq -r '.next // empty' "$dir/page1")
    [ -n "$next" ] || break
    after=\&after=$next
done
[ "${ids[*]}" = "$(seq -s ' ' "$(get jobs | jq .total)" -1 1)" ] || fail "pages of jobs: ${ids[*]}"

# ---- accounts, kinds, schedules
post accounts/me@example.com/halt 200 k20 '{"reason":"a visitor"}'
holds '.account == "me@example.com" and .halted'
get accounts | jq -e '.accounts[] | select(.account == "me@example.com") | .halted and .halt_reason == "a visitor"' >/dev/null || fail "not halted"
post accounts/me@example.com/resume 200 k21 ''
get accounts | jq -e '.accounts[] | select(.account == "me@example.com") | .halted | not' >/dev/null || fail "not resumed"
post accounts/nobody/halt 404 k22 '{}'
post kinds/mail.fetch/pause 200 k23 '{}'
holds '.kind == "mail.fetch" and .paused'
[ "$(state "SELECT paused FROM kind WHERE name = 'mail.fetch'")" = 1 ] || fail "not paused"
post kinds/mail.fetch/resume 200 k24 '{}'
[ "$(state "SELECT paused FROM kind WHERE name = 'mail.fetch'")" = 0 ] || fail "not resumed"
post kinds/none/pause 404 k25 '{}'
ends 0 schedule add --name copy --at 'daily 03:30' -- backup "$dir/copy"
post schedules/copy/run 202 k26 '{}'
ran() { get schedules | jq -e '.schedules[0] | .last == "done" and .runs == 1 and .wanted_unix_ms == null'; }
until_true 60 ran || fail "not run: $(get schedules)"
post schedules/copy/run 202 k26 '{}'
get schedules | jq -e '.schedules[0].runs == 1 and .schedules[0].wanted_unix_ms == null' >/dev/null || fail "run again: $(get schedules)"
post schedules/none/run 404 k27 '{}'

# ---- what is wrong changes nothing
before=$(state "SELECT group_concat(id || state) FROM job; SELECT count(*) FROM serve_once")
wrong() { post jobs/cancel 400 "w$((++wrongs))" "$1"; }
wrongs=0
for body in '' '[]' '{' '{"filter":{}}' '{"expect":1}' '{"filter":{"state":"failed"},"expect":-1}' '{"filter":{"state":"failed"},"expect":"1x"}' \
    '{"filter":{"home":"/tmp"},"expect":0}' '{"filter":{"all":""},"expect":0}' '{"filter":{"item":"a"},"expect":0}' '{"filter":[],"expect":0}' \
    '{"ids":[]}' '{"ids":[1],"expect":1}' '{"ids":[-1]}' '{"ids":[1.5]}' '{"ids":[null]}' '{"ids":["--all"]}' '{"ids":"1"}' \
    '{"filter":{"state":"lost"},"expect":0}' '{"filter":{"kind":"a\u0000b"},"expect":0}' '{"ids":[1],"all":true}' '{"filter":{"state":["failed"]},"expect":0}' \
    "{\"filter\":{\"kind\":\"$(printf 'x%.0s' $(seq 9000))\"},\"expect\":0}" "{\"ids\":[$(seq -s , 51)]}"; do
    wrong "$body"
done
post 'jobs/cancel?state=failed' 400 "w$((++wrongs))" '{"ids":[1]}'
post accounts/me@example.com/halt 400 "w$((++wrongs))" '{"reason":7}'
post accounts/me@example.com/sync 400 "w$((++wrongs))" '{"filter":{}}'
type=application/x-www-form-urlencoded post jobs/cancel 415 x1 'ids=1'
post jobs/cancel 400 '' '{"ids":[6]}'
as=$look post jobs/cancel 403 x2 '{"ids":[6]}'
head -c 1100000 /dev/zero | tr '\0' ' ' >"$dir/large"
post jobs/cancel 413 x3 "@$dir/large"
after=$(state "SELECT group_concat(id || state) FROM job; SELECT count(*) - $wrongs FROM serve_once")
[ "$before" = "$after" ] || fail "something changed: $before, then $after"

# ---- a crash between the effect and its answer: the row has none.  What was done is not done again.
ends 0 jobs retry 2 5
ends 0 jobs cancel 2 5
post jobs/accept 200 c1 '{"filter":{"state":"canceled"},"expect":'"$(get 'jobs?state=canceled' | jq .total)"'}'
count=$(jq .count "$dir/body")
[ "$count" -gt 2 ] || fail "accepted: $(cat "$dir/body")"
body='{"filter":{"state":"canceled"},"expect":'$count'}'
strike "$server" || fail "serve had ended"
[ "$(state "UPDATE serve_once SET status = 0, body = x'' WHERE key = 'c1'; SELECT changes()")" = 1 ] || fail "no row of c1"
start_serve
post jobs/accept 409 c1 "$body"
holds '.code == "changed"'
post jobs/accept 409 c1 "$body" # and stays so
# A crash before the effect: it is done now.
ends 0 account halt me@example.com
state "INSERT INTO serve_once SELECT home, who, 'c2', x'00', begun_unix_ms, 0, x'' FROM serve_once WHERE key = 'c1'"
post accounts/me@example.com/resume 422 c2 '{}' # of another request
post accounts/me@example.com/resume 200 c3 '{}'
strike "$server" || fail "serve had ended"
state "UPDATE serve_once SET status = 0, body = x'' WHERE key = 'c3'"
start_serve
post accounts/me@example.com/resume 200 c3 '{}'
holds '.halted == false'

# A run that started before the crash is the one that was asked for.
post schedules/copy/run 202 c4 '{}'
again() { get schedules | jq -e '.schedules[0] | .last == "done" and .runs == 2 and .wanted_unix_ms == null'; }
until_true 60 again || fail "not run: $(get schedules)"
strike "$server" || fail "serve had ended"
[ "$(state "UPDATE serve_once SET status = 0, body = x'' WHERE key = 'c4'; SELECT changes()")" = 1 ] || fail "no row of c4"
start_serve
post schedules/copy/run 202 c4 '{}'
again >/dev/null || fail "one request, two runs: $(get schedules)"

# ---- killed at any time while it answers: asked again, it is done once
for turn in 1 2 3 4 5 6; do
    curl -sS -o /dev/null -H "Authorization: Bearer $work" -H 'Content-Type: application/json' -H "Idempotency-Key: turn$turn" \
        -d '{}' "$page/api/v1/schedules/copy/run" 2>/dev/null &
    asked=$!
    read -rt "0.0$((RANDOM % 10))" <> <(:)
    strike "$server" || fail "serve had ended"
    wait "$asked" 2>/dev/null
    start_serve
    post schedules/copy/run 202 "turn$turn" '{}'
    settled() { get schedules | jq -e '.schedules[0] | .wanted_unix_ms == null and .last == "done"'; }
    until_true 60 settled || fail "turn $turn: $(get schedules)"
done

# ---- answers are forgotten after a day
state "UPDATE serve_once SET begun_unix_ms = begun_unix_ms - 86400001 WHERE key = 'k2'"
post jobs/retry 409 k2 '{"filter":{"state":"failed","kind":"mail.history"},"expect":1}'
stop_serve 0
ends 0 ledger check

exit "$((failed > 0))"
