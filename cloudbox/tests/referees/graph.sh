#!/usr/bin/env bash
# graph.sh CLOUD WORK: Microsoft's Graph client for JavaScript, under Microsoft's host names.  WORK is
# kept between runs, for npm.
set -euo pipefail
cloud=$(realpath "$1")
work=$2
here=$(realpath "$0")
# shellcheck source=cloudbox/tests/referees/microsoft.sh
. "$(dirname "$here")/microsoft.sh"

if [ -z "${PRIVATE_NAMES:-}" ]; then
    command -v npm >/dev/null || skip "npm is not installed"
    mkdir -p "$work"
    work=$(realpath "$work")
    cp "$(dirname "$here")"/package*.json "$(dirname "$here")"/*.mjs "$work"
    if ! cmp -s "$work/package-lock.json" "$work/node_modules/.installed"; then
        (cd "$work" && npm ci --no-audit --no-fund --loglevel=error) ||
            skip "the npm registry does not answer"
        cp "$work/package-lock.json" "$work/node_modules/.installed"
    fi
fi
enter_namespace "node jq" "$here" "$cloud" "$work"
make_names "${microsoft_names[@]}"
start_cloud "$cloud" 450
cd "$work"
NODE_EXTRA_CA_CERTS=$dir/ca.pem node graph.mjs referee 450
