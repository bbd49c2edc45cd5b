#!/usr/bin/env bash
# mail_emulate_test.sh TIDEMARK WORK: the mirror against a Gmail that another project
# wrote, npm's emulate 0.11.2: no getProfile, no batches, history ids beyond 64 bits,
# pages by offset.  WORK is kept between runs, for npm.
# Status 77 and a line: skipped, for want of it.
set -uo pipefail
unset DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR # files, not a person's keyring
tidemark=$(realpath "$1")
work=$2
here=$(cd "$(dirname "$0")" && pwd)
version=0.11.2
count=3000
skip() {
    echo "skipped: $1"
    exit 77
}
command -v npm >/dev/null || skip "npm is not installed"
mkdir -p "$work"
if [ "$(jq -r .version "$work/node_modules/emulate/package.json" 2>/dev/null)" != $version ]; then
    timeout 120 npm install --prefix "$work" --no-audit --no-fund --ignore-scripts --loglevel=error \
        emulate@$version >/dev/null || skip "the npm registry does not answer"
fi
dir=$(mktemp -d)
failed=0
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1" >&2
    failed=$((failed + 1))
}
exec 3< <(exec node "$here/mail_emulate.mjs" serve "$work" $count)
pid=$!
trap 'kill "$pid" 2>/dev/null; rm -rf "$dir"' EXIT
read -r _ origin <&3 || skip "emulate does not start"
user=ada@example.com
api=$origin/gmail/v1/users/me
ask() { curl -sSf -H 'Authorization: Bearer tok' -H 'Content-Type: application/json' "$@"; }
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=100000000
t() { timeout 240 "$tidemark" --home "$dir/home" "$@"; }
field() { jq -r ".accounts[0].$1" "$dir/out"; }
sync() { t mail sync --quiet --json "$@" >"$dir/out" 2>"$dir/err" || fail "sync $*: $? $(cat "$dir/out" "$dir/err")"; }
same() {
    rm -rf "$dir/eml"
    t mail export "$dir/eml" >/dev/null || fail "export"
    node "$here/mail_emulate.mjs" compare "$origin" "$1" "$dir/eml" "${@:2}" >"$dir/differs" ||
        fail "$(wc -l <"$dir/differs") differ: $(head -n 3 "$dir/differs")"
}

t account add gmail "$user" --endpoint "$origin" --bearer tok >/dev/null || fail "account add"
sync
[ "$(field stored)" -eq $count ] || fail "stored $(field stored) of $count"
[ "$(field cycles_open)" -eq 0 ] || fail "work is left"
[ "$(field history_id | tr -d '\n' | wc -c)" -gt 19 ] || fail "history id $(field history_id)"
[ "$(t mail search in:spam --limit 1000 --json | jq '.messages | length')" -eq $((count / 50)) ] || fail "spam"
same one

# ---- labels, one deleted, new ones, one of them behind the mark
ask -d '{"addLabelIds":["STARRED"],"removeLabelIds":["UNREAD"]}' "$api/messages/msg00100/modify" >/dev/null
ask -X POST "$api/messages/msg00101/trash" >/dev/null
ask -X DELETE "$api/messages/msg00102" >/dev/null
for date in '' '"internalDate":"1577836800000",'; do
    ask -d "{$date\"raw\":\"$(printf 'From: c@example.org\r\nTo: %s\r\nSubject: late\r\n\r\nnew\r\n' $user | base64 -w0 | tr '+/' '-_')\",\"labelIds\":[\"INBOX\"]}" \
        "$api/messages" >/dev/null || fail "insert"
done
sync
[ "$(field stored)" -eq $((count + 2)) ] || fail "stored $(field stored)"
[ "$(field fetched)" -eq 2 ] || fail "fetched $(field fetched)"
t mail search is:starred --json | grep -q msg00100 || fail "the star"
t mail search in:trash --limit 1000 --json | grep -q msg00101 || fail "the trash"
gone=$(for db in "$dir/home/archive/$user"/*.db; do sqlite3 "$db" 'SELECT gmail_id FROM message WHERE gone_ms IS NOT NULL'; done)
[ "$gone" = msg00102 ] || fail "gone are: $gone"
same two msg00102

# ---- nothing new, and everything again
sync
[ "$(field fetched)" -eq 0 ] || fail "fetched $(field fetched) of nothing"
sync --force
[ "$(field fetched)" -eq 0 ] || fail "--force fetched $(field fetched)"
[ "$(field cycles_open)" -eq 0 ] || fail "work is left after --force"

echo "$failed failed"
[ "$failed" -eq 0 ]
