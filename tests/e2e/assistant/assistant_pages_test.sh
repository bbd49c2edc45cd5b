#!/usr/bin/env bash
# assistant_pages_test.sh TIDEMARK CLOUD SEED: the assistant's records on the command line and in the API of `tidemark serve`
# (J18, J20): the same objects, described, filtered, by pages, for keys of the right scope, without secrets; what is wrong
# is refused.
source "$(dirname "$0")/../stage.sh" "$1" "$2"
seed=$(realpath "$3")
ben=ben@example.com

# ---- where the assistant never ran there is nothing
mkdir -p "$dir/home"
start_cloud --seed 5 --mailbox "$user=3" --token tok="$user"
sign_in
for what in users show events calls runs status costs; do
    ends 0 assistant "$what" --json
done
ends 1 assistant calls 1
ends 1 assistant explain x

"$seed" "$dir/home" 240 || fail seed
start_serve
ends 0 token add worker --scope work
work=$(cat "$dir/out")
ends 0 token add viewer --scope look
look=$(cat "$dir/out")
curl -sSf -o "$dir/openapi.json" "$page/api/v1/openapi.json" || fail openapi
get() { # PATH CODE [KEY]
    local code
    code=$(ask_page -D "$dir/head" -o "$dir/body" -H "Authorization: Bearer ${3-$work}" "$page/api/v1/assistant/$1")
    [ "$code" = "$2" ] || fail "line ${BASH_LINENO[0]}: $1 answered $code, not $2: $(head -c 500 "$dir/body")"
    [[ $code != 2* ]] || "$(dirname "$0")/../openapi_check.py" "$dir/openapi.json" get "/api/v1/assistant/$1" "$code" "$dir/body" ||
        fail "line ${BASH_LINENO[0]}: $1"
    cat "$dir/body" >>"$dir/bodies"
}
is() { jq -e "$1" "$dir/body" >/dev/null || fail "line ${BASH_LINENO[0]}: not $1: $(head -c 600 "$dir/body")"; }
same() { # PATH ARGUMENT...: the route has what its command prints
    local path=$1
    shift
    get "$path" 200
    t assistant "$@" --json | jq -S . >"$dir/cli.json"
    jq -S . "$dir/body" >"$dir/api.json"
    diff "$dir/cli.json" "$dir/api.json" >"$dir/diff" || fail "line ${BASH_LINENO[0]}: $path is not $*: $(head -n 20 "$dir/diff")"
}

# ---- each route is its command
same status status
same costs costs
same users users
is '(.users | length) == 2 and (.users[0] | .account == "ada@example.com" and (.labels | length) == 9 and .history_id == "778899")'
is '.users[0].settings == [{"name":"crm_token","value":"(hidden)"},{"name":"signature","value":"Ada"}]'
same "users/$ben" users "$ben"
is '(.users | length) == 1'
same emails show
is '(.emails | length) == 50 and .total == 242 and .emails[0].thread == "hostile" and .emails[1].subject == "Harbour plan" and .emails[0].account == "ben@example.com"'
same 'emails?order=oldest&limit=2' show --order oldest --limit 2
is '[.emails[].thread] == ["t0", "t1"]'
same 'emails?status=drafted' show --status drafted
is '[.emails[].thread] == ["story"] and .total == 1 and .next == null'
same "emails?account=$ben&category=fyi" show --account "$ben" --category fyi
is '[.emails[] | .account == "ben@example.com" and .category == "fyi"] | all'
same 'emails?sender=sender7%40example.org' show --sender sender7@example.org
is '[.emails[].thread] == ["t7"] and .total == null'
same 'events?kind=draft_created' events --kind draft_created
is '[.events[] | .thread, .detail] == ["story", "r-77"]'
same "events?account=$ben&limit=500" events --account "$ben" --limit 500
is '.events | length == 4'
same 'events?thread=t7' events --thread t7
same 'calls?state=failed' calls --state failed
is '[.calls[].thread] == ["hostile", "story"] and ([.calls[] | has("prompt") or has("answer")] | any | not)'
same 'calls?state=open&kind=agent' calls --state open --kind agent
is '(.calls | length) == 1 and .calls[0].state == "open"'
same 'runs?status=done&limit=3' runs --status done --limit 3
is '(.runs | length) == 3 and .next != null'
same 'runs?status=failed' runs --status failed

# ---- a walk by pages sees each row once, in both orders
walk() { # LIST KEY ORDER
    local next='' pages=0
    : >"$dir/walked"
    while :; do
        get "$1?limit=37&order=$3${next:+&after=$next}" 200
        jq -r ".$1[] | $2" "$dir/body" >>"$dir/walked"
        next=$(jq -r '.next // ""' "$dir/body")
        pages=$((pages + 1))
        [ -n "$next" ] && [ "$pages" -lt 50 ] || break
    done
    [ "$(sort "$dir/walked" | uniq -d | wc -l)" = 0 ] || fail "$1 shows some twice"
}
for order in newest oldest; do
    walk emails .thread "$order"
    [ "$(wc -l <"$dir/walked")" = 242 ] || fail "emails: $(wc -l <"$dir/walked")"
    walk events .id "$order"
    [ "$(wc -l <"$dir/walked")" = 244 ] || fail "events: $(wc -l <"$dir/walked")"
    walk calls .id "$order"
    [ "$(wc -l <"$dir/walked")" = 245 ] || fail "calls: $(wc -l <"$dir/walked")"
    walk runs .id "$order"
    [ "$(wc -l <"$dir/walked")" = 26 ] || fail "runs: $(wc -l <"$dir/walked")"
done

# ---- one thread is one timeline, whatever table a moment is of
same "$user/threads/story" explain story --account "$user"
is '.record.subject == "Harbour plan" and .record.status == "drafted"'
is '[.timeline[].what] == ["run", "call", "event", "call", "call", "call", "draft", "event"]'
is '[.timeline[].at_unix_ms] | . == sort'
is '[.timeline[] | has("prompt") or has("answer") or has("token")] | any | not'
classify=$(jq '.timeline[1].id' "$dir/body")
run=$(jq '.timeline[0].id' "$dir/body")

# ---- prompts and answers can be read, tools of agents too
same "calls/$classify" calls "$classify"
is '.system == "You sort mail." and (.prompt | fromjson | .text == "When can you come?\nBen") and (.answer | fromjson | .category == "needs_response")'
same "calls/$classify?bytes=7" calls "$classify" --bytes 7
is '.system == "You sor" and .system_bytes == 14'
same "runs/$run" runs "$run"
is '.tools[0].tool == "search_archive" and .tools[0].arguments.query == "harbour" and .final == "Nothing to add."'
ends 0 assistant calls "$classify"
grep -q 'When can you come' "$dir/out" || fail "no prompt: $(cat "$dir/out")"
ends 0 assistant runs "$run"
grep -q 'search_archive {"query":"harbour"}' "$dir/out" || fail "no tools: $(cat "$dir/out")"

# ---- text of strangers does nothing to a terminal, and is the same text in JSON
get "$ben/threads/hostile" 200
is '.record.subject | startswith("<img src=x onerror=") and contains("\u001b[31m")'
hostile=$(jq '.timeline[] | select(.what == "call") | .id' "$dir/body")
for words in "explain hostile --account $ben" "calls $hostile" "show --account $ben" "events --account $ben" "calls --account $ben" "runs --account $ben"; do
    # shellcheck disable=SC2086
    ends 0 assistant $words
    grep -q 'onerror=' "$dir/out" || [[ $words == runs* ]] || fail "$words: $(cat -v "$dir/out")"
    ! LC_ALL=C grep -q $'\x1b' "$dir/out" || fail "$words controls the terminal: $(cat -v "$dir/out")"
done

# ---- what is wrong is refused, with words
problem() { # PATH CODE WORDS
    get "$1" "$2"
    grep -qi '^content-type: application/problem+json' "$dir/head" || fail "$1: $(cat "$dir/head")"
    jq -e --arg words "$3" '.detail | contains($words)' "$dir/body" >/dev/null || fail "line ${BASH_LINENO[0]}: $1: $(cat "$dir/body")"
}
problem 'emails?status=lost' 400 'not a status'
problem 'emails?category=x' 400 'not a category'
problem 'emails?order=random' 400 'not an order'
problem 'emails?limit=0' 400 '--limit is 1 to 500'
problem 'emails?limit=501' 400 '--limit is 1 to 500'
problem 'emails?after=1' 400 'not a place'
problem 'events?after=1.2' 400 'not a number'
problem 'events?after=0' 400 'not a place'
problem 'calls?state=lost' 400 'not a state'
problem 'emails?home=/tmp' 400 'no such parameter'
problem 'emails?json=1' 400 'no such parameter'
problem 'users/eve@example.com' 404 'does not work for'
problem 'emails?account=eve@example.com' 404 'does not work for'
problem 'calls/999999' 404 'no call'
problem 'calls/18446744073709551615' 400 'too large'
problem 'calls/--bytes' 400 'not a number'
problem 'runs/999999' 404 'no run'
problem 'runs/x' 400 'not a number'
problem "$user/threads/nothing" 404 'knows no thread'
problem "eve@example.com/threads/story" 404 'does not work for'
get "events?kind=%27%3B%20DROP%20TABLE%20assistant_event%3B--" 200
is '.events == []'

# ---- who may: numbers with `look`, text of mail with `work`, nothing is changed
for path in status costs users "users/$ben"; do get "$path" 200 "$look"; done
for path in emails events calls runs "calls/$classify" "runs/$run" "$user/threads/story"; do
    get "$path" 403 "$look"
    get "$path" 401 ''
    code=$(curl -sS -o /dev/null -w '%{http_code}' -X POST -H "Authorization: Bearer $work" -H 'Content-Type: application/json' -H 'Idempotency-Key: k' -d '{}' "$page/api/v1/assistant/$path")
    [ "$code" = 405 ] || fail "POST $path: $code"
done

# ---- nothing that was shown has a secret in it
! grep -Eq 'tok-never-shown|hunter2' "$dir/bodies" || fail "a secret is shown"
stop_serve 0 5 # a job that looks for mail may be put back
exit "$((failed > 0))"
