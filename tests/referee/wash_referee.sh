#!/usr/bin/env bash
# wash_referee.sh WASH_PRINT FIXTURES CORPUS WORK: npm's dompurify, on jsdom, removes nothing from
# washed mail.  WORK is kept between runs, for npm.
# Status 77 and a line: skipped, because they are missing.
set -euo pipefail
wash_print=$(realpath "$1")
fixtures=$(realpath "$2")
corpus=$(realpath "$3")
work=$4
here=$(cd "$(dirname "$0")" && pwd)
dompurify=3.4.17
jsdom=29.1.1
skip() {
    echo "skipped: $1"
    exit 77
}
command -v node >/dev/null || skip "node is not installed"
command -v npm >/dev/null || skip "npm is not installed"
mkdir -p "$work"
has() { [ "$(node -p "require('$(realpath "$work")/node_modules/$1/package.json').version" 2>/dev/null)" = "$2" ]; }
if ! has dompurify $dompurify || ! has jsdom $jsdom; then
    timeout 120 npm install --prefix "$work" --no-audit --no-fund --ignore-scripts --loglevel=error \
        dompurify@$dompurify jsdom@$jsdom >/dev/null 2>&1 || skip "the npm registry does not answer"
fi
exec node "$here/wash_referee.mjs" "$work" "$wash_print" "$fixtures" "$corpus"
