#!/usr/bin/env bash
# bench/page.sh BUILD: the budgets of the page in Debian's Chromium; without it a line that says so.
set -euo pipefail
cd "$(dirname "$0")/.."
python=tests/browser/python.sh
if ! missing=$("$python" -c ''); then
    jq -nc --arg why "${missing#skipped: }" '{name: "serve_page", skipped: $why}'
    exit 0
fi
exec "$python" bench/page_bench.py "$1/src/cli/tidemark" "$1/cloudbox/serve/tidemark-cloud"
