#!/usr/bin/env bash
# lieer.sh CLOUD [MESSAGES]: Debian's lieer, a sync program we did not write,
# signs in at the cloud and pulls a whole mailbox, then the changes since.  It
# knows only Google's host names and https, so it runs in a network namespace of
# its own, with a hosts file and a certificate authority made for the occasion.
set -euo pipefail
cloud=$(realpath "$1")
messages=${2:-2000}
here=$(realpath "$0")

# shellcheck source=tests/support/private_names.sh
. "$(dirname "$here")/../../../tests/support/private_names.sh"
enter_namespace "gmi notmuch jq" "$here" "$cloud" "$messages"
make_names "${google_names[@]}"

user=reader@example.com
exec 3< <(exec "$cloud" --listen 127.0.0.1:443 --tls cert.pem,key.pem --auto-consent --quota off \
    --seed 7 --token referee="$user" --mailbox "$user=$messages" 2>cloud.log)
read -r _ <&3 || { cat cloud.log; exit 1; }

# ---- sign in through the page, as a person would; the browser is curl ----
export NOTMUCH_CONFIG=$dir/notmuch-config BROWSER="curl -sSL -o /dev/null %s &"
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
