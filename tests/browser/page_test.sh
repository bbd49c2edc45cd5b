#!/usr/bin/env bash
# page_test.sh TIDEMARK CLOUD WORK [STORIES.py [ARGUMENT...]]: runs page_test.py, or other stories, with Debian's Chromium.  WORK is kept between runs, for npm:
# axe-core judges accessibility; without it the stories run and say so.
# Status 77 and a line: skipped, because a program is missing.
set -euo pipefail
tidemark=$(realpath "$1")
cloud=$(realpath "$2")
work=$3
here=$(cd "$(dirname "$0")" && pwd)
axe=4.10.3
"$here/python.sh" -c '' || exit
mkdir -p "$work"
script=$work/node_modules/axe-core/axe.min.js
if ! grep -q "\"version\": \"$axe\"" "$work/node_modules/axe-core/package.json" 2>/dev/null; then
    script=
    if command -v npm >/dev/null && timeout 60 npm install --prefix "$work" --no-audit --no-fund --ignore-scripts --loglevel=error \
        "axe-core@$axe" >/dev/null 2>&1; then
        script=$work/node_modules/axe-core/axe.min.js
    fi
fi
exec "$here/python.sh" "$here/${4:-page_test.py}" "$tidemark" "$cloud" "$script" "${@:5}"
