#!/usr/bin/env bash
# serve_mail_test.sh TIDEMARK CLOUD: mail over the API of `tidemark serve`, what a frame loads of a message, and 60 forged
# requests, none of which is answered or has an effect (M9, M10).
. "$(dirname "$0")/stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
start_cloud --seed 5 --mailbox "$user=12" --mailbox bob@example.com=9 --token tok-ada="$user" --token tok-bob=bob@example.com
deliver() { curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$user" || fail deliver; }
pixel=iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==
printf '%s\r\n' 'From: Eve <eve@example.org>' 'To: ada@example.com' 'Subject: hostile zebra' 'MIME-Version: 1.0' \
    'Content-Type: multipart/mixed; boundary=b' '' '--b' 'Content-Type: multipart/related; boundary=r' '' '--r' 'Content-Type: text/html; charset=utf-8' '' \
    '<script>alert(1)</script><p onclick="x()">hello</p><img src="cid:one@x"><img src="http://10.0.0.1/beacon.png"><a href="javascript:1">l</a>' \
    '--r' 'Content-Type: image/png' 'Content-ID: <one@x>' 'Content-Transfer-Encoding: base64' '' "$pixel" '--r--' \
    '--b' 'Content-Type: text/html; name="a\"b;ö.html"' 'Content-Disposition: attachment; filename="evil ö.html"' '' '<script>alert(2)</script>' \
    '--b' 'Content-Type: application/x-evil; name=p.png' 'Content-Disposition: attachment; filename=p.png' 'Content-Transfer-Encoding: base64' '' "$pixel" '--b--' | deliver
start_serve
ends 0 account add gmail "$user" --endpoint "$origin" --bearer tok-ada
ends 0 account add gmail bob@example.com --endpoint "$origin" --bearer tok-bob
ends 0 mail sync --quiet
for scope in work look; do
    ends 0 token add "$scope" --scope "$scope"
    declare "$scope=$(cat "$dir/out")"
done
curl -sSf -o "$dir/openapi.json" "$page/api/v1/openapi.json" || fail openapi
# get PATH CODE [CURL-ARGUMENT...]: its answer is in $dir/body and $dir/head.
get() {
    local path=$1 want=$2 code
    shift 2
    code=$(ask_page -o "$dir/body" -D "$dir/head" --path-as-is -H "Authorization: Bearer ${as:-$work}" "$@" "$page$path")
    [ "$code" = "$want" ] || fail "line ${BASH_LINENO[0]}: $path answered $code, not $want: $(head -c 400 "$dir/body")"
    [[ $code != 200 || $path != /api/* ]] || "$(dirname "$0")/openapi_check.py" "$dir/openapi.json" get "$path" 200 "$dir/body" || fail "line ${BASH_LINENO[0]}"
}
holds() { jq -e "$1" "$dir/body" >/dev/null || fail "line ${BASH_LINENO[0]}: not $1: $(head -c 1500 "$dir/body")"; }
header() { grep -qix "$1"$'\r' "$dir/head" || fail "line ${BASH_LINENO[0]}: no $1: $(cat "$dir/head")"; }

# ---- search: the object of `mail search --json`, all accounts or one, in pages
get "/api/v1/mail/search?q=zebra" 200
holds '(.messages | length) == 1 and .messages[0].account == "ada@example.com" and .messages[0].subject == "hostile zebra" and .next == null'
id=$(jq -r '.messages[0].id' "$dir/body")
thread=$(jq -r '.messages[0].thread' "$dir/body")
get "/api/v1/mail/search?q=in:anywhere&account=bob@example.com&limit=5" 200
t mail search in:anywhere --account bob@example.com --limit 5 --json | jq -S . >"$dir/cli.json"
jq -S . "$dir/body" | diff -q "$dir/cli.json" - >/dev/null || fail "not the command's object"
all=$(t mail search in:anywhere --limit 1000 --json)
[ "$(jq '.messages | length' <<<"$all")" = 22 ] || fail "all accounts: $all"
jq -e '[.messages[].internal_unix_ms] | . == (sort | reverse)' <<<"$all" >/dev/null || fail "not in order of time: $all"
after= pages=
for _ in 1 2 3 4 5 6 7 8 9 10; do
    get "/api/v1/mail/search?q=in:anywhere&limit=4$after" 200
    pages+=$(jq -r '.messages[] | .account + .id' "$dir/body")$'\n'
    after=$(jq -r '.next // empty | @uri' "$dir/body")
    [ -n "$after" ] || break
    after="&after=$after"
done
[ "$(grep -v '^$' <<<"$pages")" = "$(jq -r '.messages[] | .account + .id' <<<"$all")" ] || fail "the pages are not the list: $pages"
get "/api/v1/mail/search" 400
get "/api/v1/mail/search?q=nosuch:op" 400
get "/api/v1/mail/search?q=x&after=nonsense%20" 400
get "/api/v1/mail/search?q=x&rank=1" 400
as=$look get "/api/v1/mail/search?q=zebra" 403 # look is everything but mail

# ---- a message and its thread
get "/api/v1/mail/$user/messages/$id" 200
holds '.subject == "hostile zebra" and .html and .remote_images == 1 and (.view.images | not) and (.attachments | length) == 3'
view=$(jq -r .view.path "$dir/body")
[[ $view =~ ^/v/[0-9a-f]{32}/$ ]] || fail "view: $view"
t reader show "$id" --account "$user" --json | jq -S . >"$dir/cli.json"
jq -S 'del(.view)' "$dir/body" | diff -q "$dir/cli.json" - >/dev/null || fail "not the command's object"
get "/api/v1/mail/$user/threads/$thread" 200
holds '(.messages | length) == 1 and .messages[0].subject == "hostile zebra"'
get "/api/v1/mail/$user/messages/none" 404
get "/api/v1/mail/$user/threads/none" 404
get "/api/v1/mail/$user/messages/$id?save-attachments=$dir/stolen" 400
[ ! -e "$dir/stolen" ] || fail "a request wrote files"
for account in '..' '%2e%2e%2f%2e%2e' '..%2f'"$user" '.' nobody@example.com '%2Fetc'; do
    get "/api/v1/mail/$account/messages/$id" 404
    get "/api/v1/mail/search?q=zebra&account=$account" 404
done
get '/api/v1/mail/search?q=zebra&account=' 404 # no name is the folder of all archives
jq -e '.help | contains("account list")' "$dir/body" >/dev/null || fail "what to do: $(cat "$dir/body")"
as=$look get "/api/v1/mail/$user/messages/$id" 403
as=$look get "/api/v1/mail/$user/threads/$thread" 403

# ---- what the frame loads, without a key
frame() { # PART CODE
    local code
    code=$(ask_page -o "$dir/body" -D "$dir/head" "$page${3-$view}$1")
    [ "$code" = "$2" ] || fail "line ${BASH_LINENO[0]}: $1 answered $code, not $2: $(head -c 300 "$dir/body")"
    header 'X-Content-Type-Options: nosniff'
    header 'Referrer-Policy: no-referrer'
    header 'Cross-Origin-Resource-Policy: same-origin'
    header 'Cross-Origin-Opener-Policy: same-origin'
    header 'X-DNS-Prefetch-Control: off'
    header 'Cache-Control: no-store'
}
frame html 200
header 'Content-Type: text/html; charset=utf-8'
header "Content-Security-Policy: default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-same-origin"
grep -q '>hello<' "$dir/body" || fail "the text: $(cat "$dir/body")"
! grep -qi 'script\|onclick\|10\.0\.0\.1' "$dir/body" || fail "not washed: $(cat "$dir/body")"
grep -q 'cid/0' "$dir/body" && grep -q 'img/0' "$dir/body" || fail "images: $(cat "$dir/body")"
frame cid/0 200
header 'Content-Type: image/png'
cmp -s "$dir/body" <(base64 -d <<<"$pixel") || fail "not the image"
frame cid/1 404
frame cid/x 404
frame cid/18446744073709551616 404
frame img/0 403 # nobody agreed to it
jq -e '.code == "consent"' "$dir/body" >/dev/null || fail "$(cat "$dir/body")"
number() { jq -r --arg name "$1" '.attachments[] | select(.name | contains($name)) | .number' "$dir/cli.json"; }
frame "att/$(number evil)" 200
header 'Content-Type: application/octet-stream'
header "Content-Security-Policy: sandbox; default-src 'none'"
header "Content-Disposition: attachment; filename\*=UTF-8''evil%20%C3%B6.html"
frame "att/$(number p.png)" 200
header 'Content-Type: image/png'
header "Content-Disposition: inline; filename\*=UTF-8''p.png"
frame att/0 404
frame att/9 404
frame other 404
get "/api/v1/mail/$user/messages/$id?images=yes" 200
holds '.view.images'
agreed=$(jq -r .view.path "$dir/body")
[ "$agreed" != "$view" ] || fail "the same path"
frame img/0 400 "$agreed" # an address that is not public
frame img/1 404 "$agreed"
frame html 401 "/v/$(printf '0%.0s' {1..32})/"
frame html 401 "/v/${view:3:31}/"

# ---- 12 ways x 5 requests that a page of another site, or a stranger on this machine, can send
ends 0 token add gone --scope work
gone=$(cat "$dir/out")
ends 0 token list --json
ends 0 token revoke "$(jq '.tokens[] | select(.name == "gone") | .id' "$dir/out")"
before=$(state "SELECT group_concat(id || state) FROM job; SELECT group_concat(name || halted) FROM account; SELECT count(*) FROM serve_once")
requests=(
    "GET /api/v1/state" "GET /api/v1/stream?topics=state" "POST /api/v1/jobs/cancel" "POST /api/v1/accounts/$user/halt" "GET ${view}html")
forged=0
# forge WAY HEADER...: all five, each refused; $bearer is the key, "" none; $query goes behind the path.
forge() {
    local way=$1 request method path code extra key
    shift
    for request in "${requests[@]}"; do
        method=${request%% *} path=${request#* } extra=()
        if [[ $path == /v/* ]]; then # its key is the path: without or with a wrong one, another path
            case $way in
            none | query | cookie) path=/v/00000000000000000000000000000000/html ;;
            wrong) path=/v/${view:3:30}00/html ;;
            revoked) path=${old_view}html ;;
            esac
        fi
        [ "$method" = GET ] || extra=(-H "Content-Type: ${body_type:-application/json}" -H "Idempotency-Key: forged$forged" -d '{"filter":{},"expect":0}')
        [[ $path != */halt ]] || extra[-1]='{}'
        [[ $way != form || $method != GET ]] || { method=OPTIONS; extra=(-H 'Access-Control-Request-Method: GET' -H 'Origin: http://evil.example'); }
        key=()
        [ -z "${bearer-$work}" ] || key=(-H "Authorization: Bearer ${bearer-$work}")
        [ -z "${query-}" ] || path=$path$([[ $path == *\?* ]] && echo \& || echo \?)$query
        code=$(ask_page --max-time 20 -o "$dir/body" -D "$dir/head" -X "$method" "${key[@]}" "${extra[@]}" "$@" "$page$path")
        [[ $code =~ ^(400|401|403|405|415|421)$ ]] || fail "$way, $request: $code $(head -c 200 "$dir/body")"
        ! grep -qi 'access-control' "$dir/head" || fail "$way, $request: $(cat "$dir/head")"
        forged=$((forged + 1))
    done
}
# The path of a message that a revoked key asked for.
ends 0 token add late --scope work
late=$(cat "$dir/out")
as=$late get "/api/v1/mail/$user/messages/$id" 200
old_view=$(jq -r .view.path "$dir/body")
frame html 200 "$old_view"
ends 0 token list --json
ends 0 token revoke "$(jq '.tokens[] | select(.name == "late") | .id' "$dir/out")"
port=${page##*:}
bearer='' forge none
bearer=${work:0:40}AAA forge wrong
bearer=$gone forge revoked
bearer='' query="key=$work" forge query
bearer='' forge cookie -H "Cookie: key=$work; Authorization=Bearer $work"
forge host -H "Host: evil.example:$port"
raw() { printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nHost: evil.example\r\nAuthorization: Bearer %s\r\nConnection: close\r\n%s\r\n%s' "$1" "$2" "$port" "$work" "$3" "$4" >&5; }
for request in "${requests[@]}"; do # curl sends one Host
    exec 5<>"/dev/tcp/127.0.0.1/$port"
    if [[ $request == POST* ]]; then
        raw POST "${request#* }" $'Content-Type: application/json\r\nIdempotency-Key: two\r\nContent-Length: 2\r\n' '{}'
    else
        raw GET "${request#* }" '' ''
    fi
    read -r -t 20 _ code _ <&5
    exec 5>&-
    [[ $code =~ ^(400|421)$ ]] || fail "two Hosts, $request: $code"
    forged=$((forged + 1))
done
forge origin -H 'Origin: http://evil.example'
forge null -H 'Origin: null'
forge cross -H 'Sec-Fetch-Site: cross-site'
forge same -H 'Sec-Fetch-Site: same-site'
body_type=application/x-www-form-urlencoded forge form
[ "$forged" -eq 60 ] || fail "$forged forged requests"
after=$(state "SELECT group_concat(id || state) FROM job; SELECT group_concat(name || halted) FROM account; SELECT count(*) FROM serve_once")
[ "$before" = "$after" ] || fail "a forged request had an effect: $before, then $after"
# And the same requests with the key of their owner are answered.
get /api/v1/state 200
frame html 200
stop_serve 0

exit "$((failed > 0))"
