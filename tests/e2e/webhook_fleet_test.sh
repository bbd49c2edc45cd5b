#!/usr/bin/env bash
# webhook_fleet_test.sh TIDEMARK CLOUD: a push that comes to one `tidemark serve` of a fleet wakes the sync in the
# process that has the archive, within a second (J6).
. "$(dirname "$0")/stage.sh"
start_postgres
# The cloud has the time of this machine: its tokens are valid for an hour from now.
serve --quota off --seed 5 --mailbox "$user=12" --token tok="$user"
# So long between two looks that only the hint of another process can be in time.
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 TIDEMARK_FLEET_LEASE=90s TIDEMARK_FLEET_LOOK=30s
topic=projects/p/topics/mail
on() { # HOME ARGUMENT...
    local home=$1
    shift
    timeout 150 "$tidemark" --home "$dir/$home" --ledger "$url" "$@"
}
member() { # HOME ARGUMENT...: `tidemark serve` there
    local home=$1
    shift
    : >"$dir/$home.log"
    "$tidemark" --home "$dir/$home" --ledger "$url" serve --listen 127.0.0.1:0 "$@" >"$dir/$home.out" 2>"$dir/$home.log" &
    pid[$home]=$!
    until_true 60 grep -q serving "$dir/$home.log" || { echo "$home does not serve: $(cat "$dir/$home.log")" >&2; exit 1; }
}
end() { # HOME
    local code
    kill -TERM "${pid[$1]}"
    wait "${pid[$1]}"
    code=$?
    [ "$code" -eq 0 ] || [ "$code" -eq 5 ] || fail "$1 ended with $code: $(cat "$dir/$1.log")"
}
stored() { on a mail status --json | jq -e ".accounts[0].stored == $1"; }
deliver() {
    printf 'From: b@example.org\r\nSubject: x\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
        --data-binary @- "$origin/_cloud/mail?user=$user" || fail deliver
    curl -sSf -o /dev/null "$origin/_cloud/clock" -d '{"advance":"2s"}' || fail clock # a push a second
}
on a ledger migrate >/dev/null || fail migrate
on a account add gmail "$user" --endpoint "$origin" --bearer tok >/dev/null || fail "account add"
member a
on a mail sync --quiet >"$dir/out" 2>&1 || fail "sync: $(cat "$dir/out")"

# ---- b has the webhook, a the archive
hook_set=(--set "serve.webhook.keys=$origin/oauth2/v3/certs" --set serve.webhook.sender=pubsub-push@tidemark-cloud.iam.gserviceaccount.com)
member b --set serve.webhook.listen=127.0.0.1:0 --set serve.webhook.audience=x "${hook_set[@]}"
hook=$(sed -n 's#.*takes pushes.*\(http://127.0.0.1:[0-9]*/webhook/gmail\).*#\1#p' "$dir/b.log")
end b
member b --set "serve.webhook.listen=$(sed -E 's#http://([^/]*)/.*#\1#' <<<"$hook")" --set "serve.webhook.audience=$hook" "${hook_set[@]}"
curl -sSf -o /dev/null "$origin/_cloud/topics" -d "{\"topic\":\"$topic\",\"url\":\"$hook\"}" || fail topic
ask -o /dev/null -X POST "$api/watch" -d "{\"topicName\":\"$topic\"}" || fail watch
woken() { [ "$(grep -c 'woken by a push' "$dir/b.log")" -ge "$1" ]; }
until_true 60 woken 1 || fail "no push came: $(cat "$dir/b.log")"
curl -sSf -o /dev/null "$origin/_cloud/clock" -d '{"advance":"2s"}' || fail clock
for n in 13 14; do
    deliver
    until_true 60 stored "$n" || fail "not woken: $(cat "$dir/a.log" "$dir/b.log")"
done
grep -q 'woken by a push' "$dir/a.log" && fail "the push came to a"
# A busy machine may delay one of the pushes; what delayed all of them would be ours.
soon=$(sed -n 's/.*woken by a push.*after_ms=\([0-9]*\).*/\1/p' "$dir/b.log" | awk '$1 < 1000' | wc -l)
[ "$soon" -ge 1 ] || fail "every push waited: $(cat "$dir/b.log")"
on a jobs list --kind mail.plan --limit 3 --json >"$dir/out" || fail "jobs"
jq -e '[.items[] | .started_unix_ms - .created_unix_ms] | min < 1000 and max < 15000' "$dir/out" >/dev/null || fail "the plans began late: $(cat "$dir/out")"
end b
end a

exit "$((failed > 0))"
