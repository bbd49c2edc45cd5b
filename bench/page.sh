#!/usr/bin/env bash
# bench/page.sh BUILD [SCRIPT [PART...]]: the budgets of the page in Debian's Chromium, or what another script
# of this directory measures there; without the browser a line that says so.
set -euo pipefail
cd "$(dirname "$0")/.."
python=tests/browser/python.sh
build=$1
script=${2:-page_bench.py}
if ! missing=$("$python" -c ''); then
    jq -nc --arg why "${missing#skipped: }" --arg name "${script%_bench.py}" '{name: $name, skipped: $why}'
    exit 0
fi
exec "$python" "bench/$script" "$build/src/cli/tidemark" "$build/cloudbox/serve/tidemark-cloud" "${@:3}"
