#!/usr/bin/env bash
# serve_send_test.sh TIDEMARK CLOUD: drafts of `tidemark serve` at the server (K11): copied when they are quiet or closed, changed,
# shown once, removed; without a network, after kill -9.  And a message with attachments of 25 MB whose upload is cut twice, by
# kill -9 and by the network: it goes on where it was, is sent once, and every byte of it arrives.
. "$(dirname "$0")/stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
export TIDEMARK_READER_HOLD=0s TIDEMARK_READER_QUIET=2s
bob=bob@example.com
serve --quota off --seed 5 --clock "$(date +%s%3N)" --mailbox "$user=0" --mailbox "$bob=0" --token tok="$user" --token bobs="$bob"
start_serve
sign_in
ends 0 token add work --scope work
work=$(cat "$dir/out")
mail=mail/$user
keys=0
send() { # METHOD PATH CODE TYPE CURL-ARGUMENT...
    local code method=$1 path=$2 want=$3 type=$4
    shift 4
    keys=$((keys + 1))
    code=$(ask_page -X "$method" -o "$dir/body" -H "Authorization: Bearer $work" -H "Content-Type: $type" -H "Idempotency-Key: s$keys" "$@" "$page/api/v1/$path")
    [ "$code" = "$want" ] || fail "line ${BASH_LINENO[0]}: $path answered $code, not $want: $(head -c 400 "$dir/body")"
}
put() { send PUT "$1" 200 application/json -d "$2"; }
act() { send POST "$mail/actions" "${2:-200}" application/json -d "$1"; }
listed() { # LABEL: subjects of its list
    ask_page -o "$dir/body" -H "Authorization: Bearer $work" "$page/api/v1/$mail/lists/$1" >/dev/null
    jq -r '[.items[].subject] | join(" ")' "$dir/body"
}
at_server() { # the texts of all drafts at the server, in a line
    local id text=
    for id in $(ask "$api/drafts" | jq -r '.drafts[]?.id'); do
        text+=" $(ask "$api/drafts/$id?format=raw" | jq -r .message.raw | tr -- '-_' '+/' | base64 -di 2>/dev/null | tr -d '\r' | sed '1,/^$/d' | head -n 1)"
    done
    echo "${text# }"
}
server_has() { [ "$(at_server)" = "$1" ]; }
polled() { ends 0 reader fetch "$user" --folder DRAFT; }

# ---- copied when it is quiet, changed, and shown once
ends 0 reader fetch "$user" --folder INBOX # from now on the mailbox is looked at
put "$mail/drafts/d1" '{"to":"bob@example.com","subject":"Plan","text":"first"}'
until_true 60 server_has first || fail "at the server: $(at_server)"
put "$mail/drafts/d1" '{"to":"bob@example.com","subject":"Plan","text":"second"}'
until_true 60 server_has second || fail "at the server: $(at_server)"
polled
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(listed DRAFT)$(listed ALL)" = "" ] || fail "it is shown twice: $(listed DRAFT), $(listed ALL)"
    pause
done
# ---- without a network it is kept here; closed, it is there as soon as the network is
fault '{"method":"*","fault":"503"}'
put "$mail/drafts/d1" '{"to":"bob@example.com","subject":"Plan","text":"third"}'
act '{"do":"keep","messages":[],"draft":"d1"}'
jq -e '.id == 0' "$dir/body" >/dev/null || fail "an action: $(cat "$dir/body")"
act '{"do":"keep","messages":[],"draft":"none"}' 404
act '{"do":"keep","messages":[]}' 400
strike "$server" || fail "it had ended"
no_faults
server_has second || fail "at the server without a network: $(at_server)"
start_serve
until_true 60 server_has third || fail "after kill -9: $(at_server)"
# ---- thrown away
send DELETE "$mail/drafts/d1" 200 application/json
until_true 60 server_has '' || fail "it is still there: $(at_server)"

# ---- 25 MB: the upload is killed half way, then cut; then again
head -c 20000000 /dev/urandom >"$dir/a.bin"
head -c 5000000 /dev/urandom >"$dir/b.bin"
put "$mail/drafts/d2" '{"to":"bob@example.com","subject":"Large","text":"Both files."}'
send PUT "$mail/drafts/d2/attachments/a.bin" 200 application/octet-stream --data-binary "@$dir/a.bin"
send PUT "$mail/drafts/d2/attachments/b.bin" 200 application/octet-stream --data-binary "@$dir/b.bin"
parts() { curl -sSf "$origin/_cloud/stats" | jq '[.users["'"$user"'"].methods["gmail.users.drafts.create"].calls, .users["'"$user"'"].methods["gmail.users.drafts.update"].calls] | map(. // 0) | add'; }
beyond() { [ "$(parts)" -ge "$1" ]; }
before=$(parts)
fault '[{"method":"gmail.users.drafts.*","fault":"reset-before","count":1,"after":20},{"method":"gmail.users.drafts.*","fault":"latency","ms":150}]'
act '{"do":"send","messages":[],"draft":"d2"}'
action=$(jq .id "$dir/body")
for part in 6 14; do # of 34
    until_true 60 beyond $((before + part)) || fail "the upload did not get to part $part: $(parts)"
    strike "$server" || fail "it had ended"
    [ "$(ask "$api/messages?q=in:sent" | jq '.messages // [] | length')" = 0 ] || fail "it was sent too early"
    start_serve
done
done_is() {
    ask_page -o "$dir/body" -H "Authorization: Bearer $work" "$page/api/v1/$mail/actions" >/dev/null
    jq -e --argjson id "$action" '.items[] | select(.id == $id) | .state == "done"' "$dir/body"
}
until_true 200 done_is || fail "not sent: $(head -c 600 "$dir/body")"
[ "$(parts)" -lt $((before + 34 + 20)) ] || fail "the upload began again: $(parts) calls"
[ "$(ask "$api/messages?q=in:sent" | jq '.messages // [] | length')" = 1 ] || fail "not sent once"
server_has '' || fail "a draft is left: $(at_server)"
got=$(curl -sSf -H 'Authorization: Bearer bobs' "$api/messages" | jq -r '.messages // [] | map(.id) | join(" ")')
[ -n "$got" ] && [ "${got#* }" = "$got" ] || fail "bob has: $got"
curl -sSf -H 'Authorization: Bearer bobs' -o "$dir/raw" "$api/messages/$got?format=raw" || fail "bob's message"
python3 - "$dir" <<'PYTHON' || fail "other bytes arrived"
import base64, email, json, sys
where = sys.argv[1]
with open(f"{where}/raw", encoding="utf-8") as file:
    message = email.message_from_bytes(base64.urlsafe_b64decode(json.load(file)["raw"] + "=="))
files = {part.get_filename(): part.get_payload(decode=True) for part in message.walk() if part.get_filename()}
assert sorted(files) == ["a.bin", "b.bin"], sorted(files)
for name, content in files.items():
    with open(f"{where}/{name}", "rb") as file:
        assert file.read() == content, name
PYTHON
echo "the upload took $(($(parts) - before)) calls"
violations=$(curl -sSf "$origin/_cloud/stats" | jq -c .violations)
[ "$violations" = "[]" ] || fail "violations: $violations"
[ "$(find "$dir/home/archive/reader/$user" -type f | wc -l)" = 0 ] || fail "files are left: $(find "$dir/home/archive/reader")"
stop_serve 0
exit "$((failed > 0))"
