#!/usr/bin/env bash
# run.sh CLOUD WORK REFEREE: starts the cloud on a free port and lets one referee
# loose on it: node, python or schema.  WORK is kept between runs, for npm.
# Status 77 and a line: skipped, for want of the referee.
set -euo pipefail
cloud=$1 work=$2 referee=$3
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../../.." && pwd)

skip() {
    echo "skipped: $1"
    exit 77
}

case $referee in
node)
    command -v npm >/dev/null || skip "npm is not installed"
    mkdir -p "$work"
    cp "$here"/package*.json "$here"/*.mjs "$work"
    if ! cmp -s "$here/package-lock.json" "$work/node_modules/.installed"; then
        (cd "$work" && npm ci --no-audit --no-fund --loglevel=error) ||
            skip "the npm registry does not answer"
        cp "$here/package-lock.json" "$work/node_modules/.installed"
    fi
    ;;
python)
    /usr/bin/python3 -c 'import googleapiclient' 2>/dev/null ||
        skip "python3-googleapi is not installed"
    ;;
schema) ;;
*)
    echo "run.sh: no referee $referee" >&2
    exit 2
    ;;
esac

# The cloud lives as long as its standard output is read and is ended by its id.
exec 3< <(exec "$cloud" --listen 127.0.0.1:0 --auto-consent --seed 11 --quota off \
    --mailbox ada@example.com=1200 --mailbox bob@example.com=0 --token ada=ada@example.com \
    --site sc-domain:example.com=ada@example.com,rows=1000 \
    --site https://www.example.com/=ada@example.com,rows=50 \
    --topic projects/p/topics/t=http://127.0.0.1:9/push)
pid=$!
trap 'kill "$pid" 2>/dev/null || true' EXIT
read -r _ origin <&3

case $referee in
node)
    cd "$work"
    node gmail.mjs "$origin"
    node searchconsole.mjs "$origin" ada sc-domain:example.com
    ;;
python) /usr/bin/python3 "$here/client.py" "$origin" ada ;;
schema) /usr/bin/python3 "$here/schema.py" "$origin" ada "$root/../shared/api/discovery" ;;
esac
