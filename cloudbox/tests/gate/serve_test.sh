#!/usr/bin/env bash
# tidemark-cloud from outside, with curl as its client: what it answers byte for
# byte, what every fate of an answer looks like to a client, what survives a kill,
# and what it says about bad options.
# serve_test.sh TIDEMARK_CLOUD MAN_PAGE
set -u
cloud=$(realpath "$1") man_page=$(realpath "$2")
tmp=$(mktemp -d)
cd "$tmp" || exit 1
pid= extra=()
end() {
    local p
    for p in $pid "${extra[@]}"; do kill -KILL "$p" 2>/dev/null; done
    rm -rf "$tmp"
}
trap end EXIT
failures=0 checks=0

fail() { printf 'FAILED: %s\n' "$*" >&2; failures=$((failures + 1)); }
check() { checks=$((checks + 1)); "$@" || fail "line ${BASH_LINENO[0]}: $*"; }
is() { checks=$((checks + 1)); [ "$1" == "$2" ] || fail "line ${BASH_LINENO[0]}: \"$1\" is not \"$2\""; }
has() { checks=$((checks + 1)); [[ "$1" == *"$2"* ]] || fail "line ${BASH_LINENO[0]}: no \"$2\" in \"$1\""; }

# start ARG...: a cloud on a free port; sets pid, origin and gmail.
start() {
    rm -f ready
    mkfifo ready
    "$cloud" --listen 127.0.0.1:0 "$@" >ready 2>err &
    pid=$!
    if ! read -r -t 60 word origin <ready; then
        fail "line ${BASH_LINENO[0]}: not ready: $* $(cat err)"
        origin=http://127.0.0.1:1
        return 1
    fi
    is "$word" ready
    gmail=$origin/gmail/v1/users/me
}
# stop [SIGNAL]: ends it; sets code and took_ms.
stop() {
    local from
    from=$(date +%s%N)
    kill "-${1:-TERM}" "$pid"
    wait "$pid" 2>/dev/null
    code=$?
    took_ms=$((($(date +%s%N) - from) / 1000000))
    pid=
}
# refuse CODE TEXT ARG...: it must not start.
refuse() {
    local want=$1 text=$2 out
    shift 2
    out=$(timeout 60 "$cloud" "$@" 2>&1 >stdout)
    is $? "$want"
    has "$out" "$text"
    is "$(cat stdout)" ""
}
auth='Authorization: Bearer t'
get() { curl -sS -m 30 -H "$auth" "$@"; }
# sees CODE CURL-ARG...: the exit code of curl.
sees() {
    local want=$1
    shift
    get -o body "$@" 2>curl.err
    is $? "$want"
}
user=(--mailbox ada@example.com=50,size=20kB --token t=ada@example.com --seed 5)
free=(--quota off --concurrency 100000)
raw_of() { get "$gmail/messages/$1?format=raw" | jq -j .raw | tr '_-' '/+' | base64 -d; }
rule() { is "$(get -o body -w '%{http_code}' -d "$1" "$origin/_cloud/faults")" 200; }
calm() { get -o body -X DELETE "$origin/_cloud/faults"; }

# ---- options -------------------------------------------------------------------------
refuse 2 "did you mean --mailbox" --mailbx a=1
refuse 2 "two dashes" mailbox
refuse 2 "needs a value" --seed
refuse 2 "takes no value" --quiet=1
refuse 2 "EMAIL=MESSAGES" --mailbox ada=1
refuse 2 "from 0 to" --mailbox ada@example.com=many
refuse 2 "50 MiB" --mailbox ada@example.com=1,size=1GiB
refuse 2 "from 1000 bytes" --mailbox ada@example.com=1,size=999
refuse 2 "twice" --mailbox a@example.com=1 --mailbox a@example.com=2
refuse 2 "[,business]" --drive ada@example.com
refuse 2 "from 0 to" --drive ada@example.com=1,private
refuse 2 "2026, legacy or off" --quota 2025
refuse 2 "TOKEN=EMAIL" --token secret
refuse 2 "SITE=EMAIL" --site example.com
refuse 2 "topics/T=http" --topic projects/p/topics/t=ftp://x
refuse 2 "METHOD=FAULT" --fault 503
refuse 2 "from 0 to 1" --fault 'gmail.*=503@2'
refuse 2 "ADDRESS:PORT" --listen example.com:80
refuse 2 "from 1 to" --history-days 0
refuse 2 "2026-05-04" --clock yesterday
refuse 2 "exclude each other" --quiet --verbose
refuse 2 "--public twice" --listen 0.0.0.0:0
refuse 2 "--public twice" --listen 0.0.0.0:0 --public
refuse 1 "not a directory" --listen 127.0.0.1:0 --corpus "$cloud"
refuse 1 "nowhere" --listen 127.0.0.1:0 --corpus nowhere
refuse 1 "nowhere.pem" --listen 127.0.0.1:0 --tls nowhere.pem,nowhere.key
refuse 1 "no address of this machine" --listen 192.0.2.1:0 --public --public
has "$("$cloud" --version)" "tidemark-cloud "
help=$("$cloud" --help)
is $? 0
has "$help" demo-token
completion=$("$cloud" --completion)
for option in $(grep -oE '^  --[a-z-]+' <<<"$help"); do
    check grep -qF -- ".B ${option//-/\\-}" "$man_page"
    has "$completion" "$option"
done
is "$(grep -A1 '^\.TP' "$man_page" | grep -c '^\.B \\-\\-')" "$(grep -cE '^  --' <<<"$help")"

# ---- without any option: a mailbox to look at -----------------------------------------
start
has "$(cat err)" demo-token
is "$(curl -sS -H 'Authorization: Bearer demo-token' "$gmail/profile" | jq .messagesTotal)" 1000
refuse 1 "port ${origin##*:} is taken" --listen "${origin#http://}"
stop INT
is "$code" 0

# ---- drives -----------------------------------------------------------------------------
start "${user[@]}" "${free[@]}" --drive ada@example.com=3,size=9,business --state drives
is "$(get "$origin/v1.0/me/drive" | jq -r .driveType)" business
is "$(get "$origin/_cloud/drive?user=ada@example.com" | grep -c '^file 9 ')" 3
stop
refuse 1 "drives differ" --listen 127.0.0.1:0 "${user[@]}" --drive ada@example.com=3,size=9 --state drives
start "${user[@]}" "${free[@]}" --drive ada@example.com=3,size=9,business --state drives
is "$(get "$origin/v1.0/me/drive" | jq -r .driveType)" business
stop

# ---- answers ---------------------------------------------------------------------------
mkdir -p mail/sub
printf 'From: a@example.com\r\nSubject: first\r\n\r\nbytes: \xff\xfe \r\n.\n' >mail/1.eml
{ printf 'Subject: long\n\n'; head -c 300000 /dev/urandom; } >mail/sub/2.MSG
printf 'no head at all' >mail/sub/3.txt
printf 'not a message' >mail/readme.md
: >mail/empty.eml
ln -s nowhere mail/lost.eml
start "${user[@]}" "${free[@]}" --corpus ada@example.com=mail
has "$(cat err)" "skipped mail/empty.eml"
has "$(cat err)" "skipped mail/lost.eml"
has "$(cat err)" "3 messages for ada@example.com"
get "$gmail/messages?maxResults=500&includeSpamTrash=true" >list
is "$(jq '.messages | length' list)" 53
for n in 52 51 50; do raw_of "$(jq -r ".messages[$n].id" list)" >"raw.$n"; done
check cmp raw.50 mail/1.eml
check cmp raw.51 mail/sub/2.MSG
check cmp raw.52 mail/sub/3.txt
id=$(jq -r '.messages[0].id' list)
one="$gmail/messages/$id?format=raw"

get "$one" >plain
is "$(get -o packed -w '%{http_code}' -H 'Accept-Encoding: gzip' "$one")" 200
check cmp <(gunzip <packed) plain
has "$(get -D - -o /dev/null -H 'Accept-Encoding: br, gzip;q=0.5' "$one")" "Content-Encoding: gzip"
for refused in identity 'gzip;q=0' 'gzip; q=0.000, br' 'gzipped'; do
    get -H "Accept-Encoding: $refused" "$one" >answer
    check cmp answer plain
done
get -H 'Accept-Encoding: gzip' "$gmail/profile" >answer # too small to pack
is "$(jq -r .emailAddress answer)" ada@example.com

is "$(get -I -o head -w '%{http_code} %{size_download}' "$one")" "200 0"
is "$(tr -d '\r' <head | sed -n 's/^Content-Length: //p')" "$(stat -c %s plain)"
is "$(get -w '%{num_connects} ' -o body "$one" -o body "$one" -o body "$one")" "1 0 0 "
has "$(get -v -o body -H 'Expect: 100-continue' -d '{}' "$origin/_cloud/quota" 2>&1)" "HTTP/1.1 100"
has "$(get -X OPTIONS -D - -o body "$gmail/profile")" "HTTP/1.1 "
# A slash that is escaped stays inside its segment.
is "$(get -o body -w '%{http_code}' "$origin/gmail/v1/users/ada%40example.com/profile")" 200
is "$(get "$gmail%2Fprofile" | jq -r '.error.message')" \
    "$(get "$origin/nothing" | jq -r '.error.message')"
long=$(printf 'x%.0s' $(seq 60000))
is "$(get -o body -w '%{http_code}' "$gmail/profile?key=$long")" 200
is "$(get -o body -w '%{http_code}' -H "X-Long: $long" "$gmail/profile")" 200
many=()
for n in $(seq 70); do many+=(-H "X-$n: $n"); done
is "$(get -o body -w '%{http_code}' "${many[@]}" "$gmail/profile")" 431
is "$(get -o body -w '%{http_code}' -X POST -H 'Content-Length: 300000000' "$gmail/messages/send")" 413
head -c 175000000 /dev/zero | get -o body -X POST -H 'Expect:' -T - "$gmail/messages/send" 2>/dev/null
is "$(get -o body -w '%{http_code}' "$gmail/profile")" 200 # still there
has "$(curl -sS --http1.0 -D - -o body -H "$auth" "$one")" "200 OK"
check cmp body plain

# ---- fates: what a client sees ----------------------------------------------------------
fates() {
    rule '{"method":"gmail.users.getProfile","fault":"stall-start","ms":60000,"count":1}'
    sees 28 -m 0.3 "$gmail/profile"
    rule '{"method":"gmail.users.getProfile","fault":"stall-start","ms":200,"count":1}'
    sees 52 "$gmail/profile"
    rule '{"method":"gmail.users.getProfile","fault":"stall-head","ms":60000,"count":1}'
    sees 28 -m 0.3 -D head "$gmail/profile"
    has "$(cat head)" "HTTP/1.1 200"
    rule '{"method":"gmail.users.getProfile","fault":"stall-body","ms":60000,"count":1}'
    sees 28 -m 0.5 -D head "$gmail/profile"
    check [ "$(stat -c %s body)" -gt 0 ]
    rule '{"method":"gmail.users.getProfile","fault":"stall-body","ms":200,"count":1}'
    sees 18 "$gmail/profile"
    rule '{"method":"gmail.users.getProfile","fault":"reset-before","count":1}'
    sees 56 "$gmail/profile"
    rule '{"method":"gmail.users.getProfile","fault":"reset-after","count":1}'
    sees 56 "$gmail/profile"
    rule '{"method":"gmail.users.messages.get","fault":"truncate","count":1}'
    sees 18 "$one"
    check cmp -n "$(stat -c %s body)" body plain
    check [ "$(stat -c %s body)" -gt 1000 ]
    rule '{"method":"gmail.users.messages.get","fault":"truncate","count":1}'
    sees 18 --compressed "$one"
    rule '{"method":"gmail.users.messages.get","fault":"slow","bytes_per_s":40000,"count":1}'
    sees 0 -w '%{time_total}\n' "$one" >time
    check cmp body plain
    check [ "$(cut -d. -f1 time)" -lt 3 ]
    check awk '{ exit !($1 > 0.4) }' time
    rule '{"method":"gmail.users.messages.get","fault":"latency","ms":300,"count":1}'
    sees 0 -w '%{time_total}\n' "$one" >time
    check cmp body plain
    check awk '{ exit !($1 >= 0.3 && $1 < 5) }' time
    calm
    sees 0 "$one"
    check cmp body plain
}
fates
stop
is "$code" 0

# ---- slots: whoever gives up no longer counts as in flight -----------------------------
start "${user[@]}" --quota 2026 --concurrency 1 \
    --fault '{"method":"gmail.users.getProfile","fault":"stall-start","ms":60000,"count":1}'
sees 28 -m 0.5 "$gmail/profile"
for _ in $(seq 100); do
    status=$(get -o body -w '%{http_code}' "$gmail/profile")
    [ "$status" == 200 ] && break
    sleep 0.1
done
is "$status" 200
stop

# ---- held: done, and not answered before its rule is deleted, also as a part of a batch ---
start "${user[@]}" --quota 2026 --concurrency 1
one="$gmail/messages/$(get "$gmail/messages?maxResults=1" | jq -r '.messages[0].id')"
rule '{"method":"gmail.users.messages.get","fault":"held"}'
struck() { curl -sS "$origin/_cloud/faults" | jq '[.. | .struck? // empty] | add'; }
# strikes N CURL-ARG...: starts a call that is held, the N-th.
strikes() {
    local want=$1
    shift
    curl -sS -H "$auth" -o held -w "%{http_code}" "$@" >held.code & # a process of its own, to be killed
    held=$!
    for _ in $(seq 200); do
        [ "$(struck)" == "$want" ] && return
        sleep 0.05
    done
    fail "call $want was never held"
}
strikes 1 "$one"
is "$(get -o body -w '%{http_code}' "$gmail/profile")" 429 # its place in flight is taken
check kill -0 "$held"
kill "$held" && wait "$held" 2>/dev/null
for _ in $(seq 100); do # one who gives up gives it back
    status=$(get -o body -w '%{http_code}' "$gmail/profile")
    [ "$status" == 200 ] && break
    sleep 0.1
done
is "$status" 200
printf -- '--b\r\nContent-Type: application/http\r\n\r\nGET %s\r\n\r\n--b--\r\n' "/${one#"$origin"/}" >parts
strikes 2 -H 'Content-Type: multipart/mixed; boundary=b' --data-binary @parts "$origin/batch/gmail/v1"
calm
wait "$held"
is "$(cat held.code)" 200
has "$(cat held)" "HTTP/1.1 200 OK"
stop

# ---- many that wait, and an end in spite of them --------------------------------------
start "${user[@]}" "${free[@]}" --latency 400,200
for n in $(seq 300); do printf 'url = "%s/profile"\noutput = "/dev/null"\n' "$gmail"; done >urls
from=$(date +%s%N)
get -Z --parallel-max 300 -K urls -w '%{http_code}\n' -f >codes 2>/dev/null
check [ $((($(date +%s%N) - from) / 1000000)) -lt 20000 ] # one by one: 150 s
is "$(grep -c 200 codes)" 300
rule '{"method":"gmail.users.messages.get","fault":"stall-body","ms":600000}'
rule '{"method":"gmail.users.getProfile","fault":"latency","ms":600000}'
rule '{"method":"gmail.users.labels.list","fault":"slow","bytes_per_s":1}'
id=$(get "$gmail/messages?maxResults=1" | jq -r '.messages[0].id')
asked() { get "$origin/_cloud/stats" | jq '[.users[].calls] | add'; }
before=$(asked)
for n in $(seq 20); do
    get -m 100 -D "head.message.$n" -o /dev/null "$gmail/messages/$id" 2>/dev/null &
    extra+=($!)
    get -m 100 -o /dev/null "$gmail/profile" 2>/dev/null &
    extra+=($!)
    get -m 100 -D "head.labels.$n" -o /dev/null "$gmail/labels" 2>/dev/null &
    extra+=($!)
done
# All of them are known, and those that get a head have it: the rest is their stalls.
all_stall() { [ "$(asked)" -ge $((before + 60)) ] && [ "$(grep -l " 200" head.* | wc -l)" -eq 40 ]; }
for _ in $(seq 300); do
    all_stall && break
    sleep 0.1
done
check all_stall
stop
is "$code" 0
check [ "$took_ms" -lt 20000 ] # the stalls take ten minutes
wait "${extra[@]}" 2>/dev/null
extra=()

# ---- TLS ----------------------------------------------------------------------------------
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -keyout key.pem -out cert.pem 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=other -keyout other.pem -out o.pem 2>/dev/null
refuse 1 "no certificate with its key" --listen 127.0.0.1:0 --tls cert.pem,other.pem
refuse 1 "no certificate with its key" --listen 127.0.0.1:0 --tls key.pem,key.pem
start "${user[@]}" "${free[@]}" --tls cert.pem,key.pem
is "${origin%%:*}" https
export CURL_CA_BUNDLE=$tmp/cert.pem
id=$(get "$gmail/messages?maxResults=1" | jq -r '.messages[0].id')
one="$gmail/messages/$id?format=raw"
get "$one" >plain
check [ "$(stat -c %s plain)" -gt 20000 ]
has "$(get --tls-max 1.2 -D - -o body "$one")" "200 OK"
fates
stop
is "$code" 0
unset CURL_CA_BUNDLE

# ---- state ----------------------------------------------------------------------------------
start "${user[@]}" "${free[@]}" --state kept
insert() { # NUMBER
    jq -n --arg raw "$(printf 'From: x@example.com\r\nSubject: kept %s\r\n\r\nbody\r\n' "$1" | base64 -w0 |
        tr '/+' '_-')" '{raw: $raw}' |
        get -f -H 'Content-Type: application/json' -d @- "$gmail/messages" | jq -r .id
}
last=
for n in $(seq 25); do last=$(insert "$n"); done
history=$(get "$gmail/profile" | jq -r .historyId)
refuse 1 "in use by another" --listen 127.0.0.1:0 --state kept "${user[@]}"
stop KILL
is "$code" 137
start "${user[@]}" "${free[@]}" --state kept
has "$(cat err)" "changes taken up again"
is "$(get "$gmail/profile" | jq .messagesTotal)" 75
is "$(get "$gmail/profile" | jq -r .historyId)" "$history"
has "$(raw_of "$last")" "kept 25"
stop
cp kept whole

start --state kept --token t=ada@example.com --quiet # what is not said is taken from the file
is "$(get "$gmail/profile" | jq .messagesTotal)" 75
stop
refuse 1 "begun with other options" --state kept --mailbox ada@example.com=51,size=20kB --listen 127.0.0.1:0
refuse 1 "--mailbox ada@example.com=50,size=20000" --state kept --seed 6 --listen 127.0.0.1:0

head -c -7 whole >kept # a crash in the middle of a line
start "${user[@]}" "${free[@]}" --state kept
has "$(cat err)" "was not finished"
total=$(get "$gmail/profile" | jq .messagesTotal)
check [ "$total" -ge 74 ]
insert 26 >/dev/null
stop
start "${user[@]}" "${free[@]}" --state kept
is "$(get "$gmail/profile" | jq .messagesTotal)" $((total + 1))
stop
for damage in '4s/op/oq/' '3d' '3p' '3s/^./z/'; do
    sed "$damage" whole >kept
    refuse 1 "kept is damaged in line" --state kept "${user[@]}" --listen 127.0.0.1:0
done
printf 'not ours\n' >kept
refuse 1 "is no state of tidemark-cloud" --state kept "${user[@]}" --listen 127.0.0.1:0
head -c 5 whole >kept # a crash while it was created
start "${user[@]}" "${free[@]}" --state kept
is "$(get "$gmail/profile" | jq .messagesTotal)" 50
stop
refuse 1 "not a file" --state /dev/null --listen 127.0.0.1:0

# Killed at any moment: whatever was answered is there afterwards.
rm -f kept
start "${user[@]}" "${free[@]}" --state kept
for round in 1 2 3; do
    : >answered
    (for n in $(seq 500); do insert "$n" >>answered 2>/dev/null; done) &
    writer=$!
    extra+=($writer)
    for _ in $(seq 200); do [ "$(wc -l <answered)" -ge $((round * 5)) ] && break; sleep 0.05; done
    stop KILL
    kill "$writer"
    wait "$writer" 2>/dev/null
    extra=()
    start "${user[@]}" "${free[@]}" --state kept
    get "$gmail/messages?maxResults=500&includeSpamTrash=true" | jq -r '.messages[].id' | sort >there
    is "$(grep . answered | sort | comm -23 - there)" ""
done
stop

# A disk that is full: what cannot be kept is not answered, and the cloud ends.
rm -f kept ready
mkfifo ready
(ulimit -f 40 && exec "$cloud" --listen 127.0.0.1:0 "${user[@]}" "${free[@]}" --state kept >ready 2>err) &
pid=$!
read -r -t 60 _ origin <ready
gmail=$origin/gmail/v1/users/me
: >answered
for n in $(seq 300); do
    got=$(insert "$n" 2>/dev/null)
    [ -z "$got" ] && break
    echo "$got" >>answered
done
wait "$pid"
is $? 1
pid=
has "$(cat err)" "write kept"
check [ "$(wc -l <answered)" -gt 10 ]
start "${user[@]}" "${free[@]}" --state kept
get "$gmail/messages?maxResults=500&includeSpamTrash=true" | jq -r '.messages[].id' | sort >there
is "$(sort answered | comm -23 - there)" ""
stop

# ---- pushes: one cloud notifies another ------------------------------------------------
start --verbose
sink=$origin
extra=("$pid")
mv err sink.err
start "${user[@]}" "${free[@]}" --verbose --topic "projects/p/topics/t=$sink/_cloud/stats/reset"
get -o body -H 'Content-Type: application/json' -d '{"topicName":"projects/p/topics/t"}' "$gmail/watch"
insert 1 >/dev/null
for _ in $(seq 100); do
    grep -q "^push .*/_cloud/stats/reset: 200" err && break
    sleep 0.1
done
has "$(cat err)" "/_cloud/stats/reset: 200"
has "$(cat sink.err)" "POST /_cloud/stats/reset 200"
check grep -Eq "^POST /_cloud/stats/reset 200 [0-9]+ bytes [0-9]+ ms at [0-9]+\.[0-9]{6}$" sink.err
stop
pid=${extra[0]} extra=()
stop
is "$code" 0

# ---- a service account ------------------------------------------------------------------
start "${user[@]}" --service-account robot@project.iam.gserviceaccount.com=key.json --state robots
is "$(jq -r .token_uri key.json)" "$origin/token"
is "$(stat -c %a key.json)" 600
before=$(jq -r .private_key key.json)
stop
start "${user[@]}" --service-account robot@project.iam.gserviceaccount.com=key.json --state robots
is "$(jq -r .token_uri key.json)" "$origin/token"
is "$(jq -r .private_key key.json)" "$before"
stop

if [ "$failures" -gt 0 ]; then
    echo "$failures of $checks checks failed" >&2
    exit 1
fi
echo "$checks checks"
