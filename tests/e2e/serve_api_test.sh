#!/usr/bin/env bash
# serve_api_test.sh TIDEMARK CLOUD: the API of `tidemark serve` has the objects that commands print with --json, and
# describes itself (E9.1).
. "$(dirname "$0")/stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
start_cloud --seed 5 --mailbox "$user=20" --token tok-ada="$user"
start_serve
ends 0 account add gmail "$user" --endpoint "$origin" --bearer tok-ada
ends 0 mail sync --quiet
ends 0 schedule add --at 'daily 03:30' mail sync
ends 0 token add viewer --scope look
look=$(cat "$dir/out")
ends 0 token add scraper --scope metrics
scrape=$(cat "$dir/out")
# get PATH CODE [KEY]: its answer is in $dir/body.
get() {
    local code
    code=$(ask_page -D "$dir/head" -o "$dir/body" -H "Authorization: Bearer ${3-$look}" "$page/api/v1/$1")
    [ "$code" = "$2" ] || fail "line ${BASH_LINENO[0]}: $1 answered $code, not $2: $(head -c 500 "$dir/body")"
}

# ---- each route has the object of its command
same() { # PATH ARGUMENT...
    local path=$1
    shift
    get "$path" 200
    t "$@" --json | jq -S . >"$dir/cli.json"
    jq -S . "$dir/body" >"$dir/api.json"
    diff "$dir/cli.json" "$dir/api.json" >"$dir/diff" || fail "line ${BASH_LINENO[0]}: $path is not $*: $(head -n 20 "$dir/diff")"
}
same accounts account list
same jobs jobs list
same 'jobs?state=done&limit=3' jobs list --state done --limit 3
[ "$(jq '.items | length' "$dir/body")" = 3 ] || fail "three jobs: $(cat "$dir/body")"
before=$(jq '.items[-1].id' "$dir/body")
same "jobs?state=done&limit=3&after=$before" jobs list --state done --limit 3 --after "$before"
same "jobs?account=ada%40example.com" jobs list --account "$user"
same "jobs/$before" jobs show "$before"
same "jobs/$before/why" jobs explain "$before"
same bad bad list
same alerts alerts
same schedules schedule list
same settings config list
same console/status console status # each system brings its own
get state 200
jq -e '.engine and .accounts[0].account == "ada@example.com" and .accounts[0].stored == 20' "$dir/body" >/dev/null || fail "state: $(cat "$dir/body")"
get 'log?level=info&limit=5' 200
jq -e '.lines | length > 0 and length <= 5' "$dir/body" >/dev/null || fail "log: $(head -c 300 "$dir/body")"


# ---- streams and series
same streams stream list
stream_id=$(jq '.streams[0].id' "$dir/body")
same "streams/$stream_id/cycles" stream cycles "$stream_id"
for name in rate quota held; do
    get "series/$name?account=$user" 200
    jq -e --arg name "$name" '.name == $name and .step_ms == 10000 and (.series | length) == 1 and (.series[0].values | length) == 360' "$dir/body" >/dev/null ||
        fail "$name: $(head -c 300 "$dir/body")"
    get "series/$name?span=day" 200
    jq -e '.step_ms == 300000 and (.series[0].values | length) == 288' "$dir/body" >/dev/null || fail "$name of a day: $(head -c 300 "$dir/body")"
done
get series/rate 200
jq -e '[.series[0].values[]] | add == 20' "$dir/body" >/dev/null || fail "20 messages were stored: $(cat "$dir/body")"
get series/held 200
jq -e '.series[0].values | .[0] == 0 and .[-1] == 20' "$dir/body" >/dev/null || fail "held: $(cat "$dir/body")"
get series/quota 200
jq -e '[.series[0].values[]] | add >= 400' "$dir/body" >/dev/null || fail "20 units each: $(cat "$dir/body")"
get state 200
jq -e '.accounts[0] | .exact == 20 and .rate_per_minute >= 0 and .quota_max_units > 0' "$dir/body" >/dev/null || fail "state: $(cat "$dir/body")"

# ---- what is wrong is a problem with words
problem() { # PATH CODE WORDS
    get "$1" "$2"
    grep -qi '^content-type: application/problem+json' "$dir/head" || fail "$1: $(cat "$dir/head")"
    jq -e --arg words "$3" '(.status | . >= 400) and (.code | length > 0) and (.detail | contains($words))' "$dir/body" >/dev/null ||
        fail "line ${BASH_LINENO[0]}: $1: $(cat "$dir/body")"
}
problem 'jobs?state=lost' 400 'no state'
problem 'jobs?color=red' 400 'no such parameter'
problem 'jobs?home=/tmp' 400 'no such parameter' # flags of all commands are not offered
problem 'log?follow=1' 400 'no such parameter'   # nor what would never end
problem 'jobs/999999' 404 '999999'
problem 'jobs/--all' 400 'not a number' # an argument is never a flag
problem "jobs?kind=$(printf 'x%.0s' $(seq 1200))" 404 'no kind'
problem 'series/nothing' 404 'rate, quota and held'
problem 'series/rate?span=year' 400 'no span'
problem 'streams/999/cycles' 404 '999'
problem 'streams/0/cycles' 404 'no stream 0'
problem 'nothing' 404 ''

# ---- who may
get state 401 ''
# How to get a key: a program makes one; a browser, which says where a request comes from, is paired.
told() { # WORDS PATH HEADER...
    curl -sS "${@:3}" "$page/$2" | jq -e --arg words "$1" '.status == 401 and (.help | contains($words))' >/dev/null ||
        fail "line ${BASH_LINENO[0]}: $2 does not say \"$1\": $(curl -sS "${@:3}" "$page/$2")"
}
told 'tidemark token add NAME --scope look' api/v1/state
told 'tidemark token add NAME --scope look' api/v1/state -H 'Authorization: Bearer nothing'
told 'tidemark token add NAME --scope metrics' metrics
told 'tidemark token add NAME --scope work' api/v1/mail/search
told 'tidemark open' api/v1/state -H 'Sec-Fetch-Site: same-origin'
told 'tidemark open' api/v1/state -H "Origin: $page" -H 'Authorization: Bearer nothing'
get state 403 "$scrape"
code=$(curl -sS -o /dev/null -w '%{http_code}' "$page/api/v1/state?key=$look")
[ "$code" = 401 ] || fail "a key in the query: $code"
code=$(curl -sS -o /dev/null -w '%{http_code}' -X POST -H "Authorization: Bearer $look" "$page/api/v1/state")
[ "$code" = 405 ] || fail "POST: $code"

# ---- its description is made from what it serves
get openapi.json 200 ''
cp "$dir/body" "$dir/openapi.json"
jq -e '.openapi == "3.1.0" and (.paths | length > 10)' "$dir/openapi.json" >/dev/null || fail "openapi: $(head -c 300 "$dir/body")"
jq -e '.paths["/api/v1/jobs"].get.parameters[] | select(.name == "state") | .schema.enum == ["pending", "running", "done", "failed", "canceled"]' \
    "$dir/openapi.json" >/dev/null || fail "the parameters of jobs: $(jq '.paths["/api/v1/jobs"]' "$dir/openapi.json")"
jq -e '[.paths[][] | .responses | has("default")] | all' "$dir/openapi.json" >/dev/null || fail "answers"
while read -r path; do
    case $path in
    # has no end, no key, no such item here; mail, drives and the assistant have tests of their own
    *stream | /app/* | /v/* | *pairings | *"{item}" | */mail/* | */assistant/* | *"{drive}"*) continue ;;
    esac
    path=${path//\{job\}/$before}
    path=${path//\{name\}/rate}
    path=${path//\{stream\}/$stream_id}
    code=$(ask_page -o "$dir/body" --max-time 40 -H "Authorization: Bearer $look" "$page$path")
    [ "$code" = 200 ] || fail "$path is described and answers $code"
    [[ $path != /api/* || $path == *openapi.json ]] ||
        "$(dirname "$0")/openapi_check.py" "$dir/openapi.json" get "$path" 200 "$dir/body" || fail "$path"
done < <(jq -r '.paths | to_entries[] | select(.value.get) | .key' "$dir/openapi.json")

# ---- live: a page that looks gets the state, and what changes
curl -sSN --max-time 60 -H "Authorization: Bearer $look" "$page/api/v1/stream?topics=state" >"$dir/stream" 2>/dev/null &
stream=$!
until_true 30 grep -q '^event: state' "$dir/stream" || fail "no state: $(cat "$dir/stream")"
printf 'From: b@example.org\r\nSubject: x\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
    --data-binary @- "$origin/_cloud/mail?user=$user" || fail deliver
ends 0 mail sync --quiet
now_stored() { sed -n 's/^data: //p' "$dir/stream" | tail -n 1 | jq -e '.accounts[0].stored == 21'; }
until_true 30 now_stored || fail "not live: $(tail -n 3 "$dir/stream" | head -c 600)"
kill "$stream"
wait "$stream" 2>/dev/null

# ---- many ask at once, and each gets a whole answer
for i in $(seq 40); do
    curl -sS -o "$dir/many.$i" -H "Authorization: Bearer $look" "$page/api/v1/jobs?limit=50" &
    many+=("$!")
done
wait "${many[@]}"
for i in $(seq 40); do
    jq -e '(.items | length > 0) or .status == 503' "$dir/many.$i" >/dev/null || fail "one of many: $(head -c 200 "$dir/many.$i")"
done
stop_serve 0

exit "$((failed > 0))"
