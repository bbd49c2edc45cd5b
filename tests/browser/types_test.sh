#!/usr/bin/env bash
# types_test.sh WEB: the types in the comments of the page's scripts are right, as TypeScript's compiler judges; and it
# judges: a script with a wrong type fails.
# Status 77 and a line: skipped, because it is missing.
set -euo pipefail
web=$(realpath "$1")
command -v tsc >/dev/null || { echo "skipped: tsc is not installed (node-typescript)"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
check() { tsc --noEmit --allowJs --checkJs --strict --noUnusedLocals --target es2022 --module es2022 --lib es2022,dom,dom.iterable "$@"; }
check "$web"/*.js
# What no browser would start, the compiler lets pass in scripts: two functions of one name.
for script in "$web"/*.js; do node --input-type=module --check <"$script" || exit 1; done
printf '/** @param {number} value */\nexport const twice = (value) => 2 * value\ntwice("x")\n' >"$work/wrong.js"
if check "$work/wrong.js" >"$work/out"; then
    echo "a wrong type passes" >&2
    exit 1
fi
grep -q TS2345 "$work/out" || { cat "$work/out" >&2; exit 1; }
# Markup is never made from text, and nothing is written into the document.
if grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|srcdoc|eval\(|new Function' "$web"/*.js; then
    echo "markup from text" >&2
    exit 1
fi
