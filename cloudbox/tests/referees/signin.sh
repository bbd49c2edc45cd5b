#!/usr/bin/env bash
# signin.sh CLOUD: Google's own libraries sign in, the cloud is started anew with
# its state, and they sign in again with what they have.
# Status 77 and a line: skipped, for want of the libraries.
set -euo pipefail
cloud=$1
here=$(cd "$(dirname "$0")" && pwd)
/usr/bin/python3 -c 'import google.oauth2.service_account, oauth2client.client' 2>/dev/null || {
    echo "skipped: python3-google-auth and python3-oauth2client are not both installed"
    exit 77
}

dir=$(mktemp -d)
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
for _ in first second; do
    # The cloud lives as long as its standard output is read and is ended by its id.
    exec 3< <(exec "$cloud" --listen 127.0.0.1:0 --auto-consent --quiet --seed 12 \
        --mailbox ada@example.com=5 --mailbox bob@example.com=0 --state "$dir/state" \
        --service-account robot@p.iam.gserviceaccount.com="$dir/key.json")
    pid=$!
    read -r _ origin <&3
    # The file names the address of the cloud that made it; the port is a new one.
    sed -i "s#http://127.0.0.1:[0-9]*/token#$origin/token#" "$dir/key.json"
    /usr/bin/python3 "$here/signin.py" "$origin" "$dir/key.json" "$dir/memory"
    kill "$pid"
    while kill -0 "$pid" 2>/dev/null; do sleep 0.05; done # its state file has a lock
    exec 3<&-
done
