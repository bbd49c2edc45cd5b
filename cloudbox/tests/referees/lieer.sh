#!/usr/bin/env bash
# lieer.sh CLOUD [MESSAGES]: Debian's lieer, a sync program we did not write,
# signs in at the cloud and pulls a whole mailbox, then the changes since.  It
# knows only Google's host names and https, so it runs in a network namespace of
# its own, with a hosts file and a certificate authority made for the occasion.
#
# Ends with status 77 (skipped) and a line where the machine cannot do that.
set -euo pipefail
cloud=$(realpath "$1")
messages=${2:-2000}
here=$(realpath "$0")

skip() {
    echo "skipped: $1"
    exit 77
}

if [ -z "${LIEER_INSIDE:-}" ]; then
    for tool in gmi notmuch openssl unshare ip curl jq; do
        command -v "$tool" >/dev/null || skip "$tool is not installed"
    done
    if [ "$(id -u)" -eq 0 ]; then
        apart=(unshare --mount --net --pid --fork --kill-child)
    else
        apart=(unshare --user --map-root-user --mount --net --pid --fork --kill-child)
    fi
    "${apart[@]}" true 2>/dev/null || skip "this machine allows no namespaces"
    LIEER_INSIDE=1 exec "${apart[@]}" "$here" "$cloud" "$messages"
fi

# ---- inside: nothing but loopback, and Google's names point to it ----
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ip link set lo up
names=(accounts.google.com oauth2.googleapis.com www.googleapis.com gmail.googleapis.com)
{
    echo "127.0.0.1 localhost"
    printf '127.0.0.1 %s\n' "${names[@]}"
} >"$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts

cd "$dir"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=A test authority' \
    -keyout ca.key -out ca.pem 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj '/CN=localhost' -keyout key.pem -out req.pem 2>/dev/null
printf 'subjectAltName=%s' "$(printf ',DNS:%s' "${names[@]}" | cut -c 2-)" >ext
openssl x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext \
    -out cert.pem 2>/dev/null
export HTTPLIB2_CA_CERTS=$dir/ca.pem SSL_CERT_FILE=$dir/ca.pem CURL_CA_BUNDLE=$dir/ca.pem

user=reader@example.com
exec 3< <(exec "$cloud" --listen 127.0.0.1:443 --tls cert.pem,key.pem --auto-consent --quota off \
    --seed 7 --token referee="$user" --mailbox "$user=$messages" 2>cloud.log)
read -r _ <&3 || { cat cloud.log; exit 1; }

# ---- sign in through the page, as a person would; the browser is curl ----
export HOME=$dir NOTMUCH_CONFIG=$dir/notmuch-config BROWSER="curl -sSL -o /dev/null %s &"
mkdir mail
cat >"$NOTMUCH_CONFIG" <<CONFIG
[database]
path=$dir/mail
[user]
name=Reader
primary_email=$user
[new]
tags=new
ignore=/.*[.](json|lock|bak)$/
CONFIG
notmuch new >/dev/null 2>&1
mkdir mail/gmail
cd mail/gmail
gmi init "$user" >"$dir/init.log" 2>&1 || { cat "$dir/init.log"; exit 1; }

# ---- the whole mailbox, byte for byte but for the line ends, which it turns ----
gmi pull >"$dir/pull.log" 2>&1 || { tail -n 40 "$dir/pull.log"; exit 1; }
api=https://gmail.googleapis.com/gmail/v1/users/me
ask() { curl -sSf -H 'Authorization: Bearer referee' "$@"; }
total=$(ask "$api/profile" | jq .messagesTotal)
files=$(find mail -type f | wc -l)
echo "pulled $files of $total messages"
[ "$files" -eq "$total" ]

wrong=0
while read -r file; do
    id=$(basename "$file" | sed 's/[:.].*//')
    ask "$api/messages/$id?format=raw&fields=raw" | jq -r .raw | tr -- '-_' '+/' |
        base64 -d | sed 's/\r$//' >"$dir/raw"
    cmp -s "$dir/raw" "$file" || wrong=$((wrong + 1))
done < <(find mail -type f | sort | awk 'NR % 20 == 1')
echo "compared every twentieth: $wrong differ"
[ "$wrong" -eq 0 ]

# ---- and what changes afterwards ----
first=$(ask "$api/messages?maxResults=1" | jq -r '.messages[0].id')
ask -X POST -H 'Content-Type: application/json' -d '{"addLabelIds":["STARRED"]}' \
    "$api/messages/$first/modify" >/dev/null
printf 'From: a@example.org\r\nTo: %s\r\nSubject: later\r\nMessage-ID: <later@example.org>\r\n\r\nlater\r\n' \
    "$user" | base64 -w 0 | jq -R '{raw: .}' | ask -X POST -H 'Content-Type: application/json' \
    -d @- "$api/messages" >/dev/null
gmi pull >"$dir/pull.log" 2>&1 || { tail -n 40 "$dir/pull.log"; exit 1; }
[ "$(notmuch count id:later@example.org)" -eq 1 ]
[ "$(notmuch search --output=files tag:flagged | grep -c "$first")" -eq 1 ]
echo "pulled one new message and one changed label"
