#!/usr/bin/env bash
# mail_lieer.sh BUILD MESSAGES SIZE (0: a spread): Debian's lieer and our mirror pull the same
# mailbox from the same server, one after the other.  Prints one line:
#   MESSAGES LIEER_WALL_S LIEER_CPU_S OUR_WALL_S OUR_CPU_S
# Both use https to Google's own host names, in a network namespace with a hosts file
# and a temporary certificate authority; both store and index.
# Exits with 77 and a line where the machine cannot do that.
set -euo pipefail
build=$(realpath "$1")
messages=$2
size=$3
here=$(realpath "$0")

# shellcheck source=tests/support/private_names.sh
. "$(dirname "$here")/../tests/support/private_names.sh"
enter_namespace "gmi notmuch" "$here" "$build" "$messages" "$size"
make_names "${google_names[@]}"
mount --bind ca.pem /etc/ssl/certs/ca-certificates.crt

user=reader@example.com
mailbox=$user=$messages
[ "$size" -eq 0 ] || mailbox+=,size=$size
exec 3< <(exec "$build/cloudbox/serve/tidemark-cloud" --listen 127.0.0.1:443 --tls cert.pem,key.pem --quiet \
    --auto-consent --quota off --seed 7 --token bench="$user" \
    --mailbox "$mailbox" 2>cloud.log)
read -r _ <&3 || { cat cloud.log >&2; exit 1; }

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

# Runs a command and leaves its wall clock and CPU seconds in $took.
TIMEFORMAT='%R %U %S'
timed() {
    local log=$1
    shift
    { time "$@" >"$log" 2>&1; } 2>"$dir/time" || { tail -n 20 "$log" >&2; exit 1; }
    took=$(awk '{print $1, $2 + $3}' "$dir/time")
}

cd mail/gmail
gmi init "$user" >"$dir/init.log" 2>&1 || { cat "$dir/init.log" >&2; exit 1; }
timed "$dir/pull.log" gmi pull
lieer=$took
[ "$(find mail -type f | wc -l)" -eq "$messages" ] || { echo "lieer left something out" >&2; exit 1; }

ours=("$build/src/cli/tidemark" --home "$dir/home")
"${ours[@]}" account add gmail "$user" --bearer bench \
    --endpoint https://gmail.googleapis.com >/dev/null
timed "$dir/sync.log" "${ours[@]}" mail sync --set governor.gmail.window_units=0
grep -q " $messages stored," "$dir/sync.log" ||
    { cat "$dir/sync.log" >&2; exit 1; }
echo "$messages $lieer $took"
