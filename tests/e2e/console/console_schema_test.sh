#!/usr/bin/env bash
# console_schema_test.sh TIDEMARK CLOUD: every query that a backfill sends is held against
# Google's own discovery document, where a copy is at hand (../shared/api/discovery).
here=$(realpath "$(dirname "$0")")
schema=$here/../../../../shared/api/discovery/searchconsole.v1.json
[ -f "$schema" ] || { echo "skipped: no copy of Google's discovery document"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
. "$here/../stage.sh"
user=ada@example.com
site=https://www.example.com/blog/
serve --quota off --mailbox "$user=1" --token tok="$user" --site "$site=$user,rows=120"
mkfifo "$dir/stop"
python3 "$here/console_schema.py" "$origin" "$schema" <"$dir/stop" >"$dir/parts" 2>"$dir/proxy.err" &
proxy=$!
exec 4>"$dir/stop"
until [ -s "$dir/parts" ]; do kill -0 "$proxy" 2>/dev/null || { cat "$dir/proxy.err"; exit 1; }; done
t() { "$tidemark" --home "$dir/home" --set governor.console.site_units=0 "$@"; }
t account add console "$site" --endpoint "$(head -n 1 "$dir/parts")" --bearer tok >/dev/null || exit 1
t console backfill "$site" --from "$(date -u -d '-45 days' +%F)" --to "$(date -u -d '-41 days' +%F)" --rows 48 --type web,image,discover,googleNews --quiet >"$dir/out" 2>&1 ||
    { cat "$dir/out"; exit 1; }
exec 4>&-
wait "$proxy"
good=$(grep -c '^part good$' "$dir/parts")
bad=$(grep '^part ' "$dir/parts" | grep -v '^part good$')
echo "$good queries are as the discovery document has them"
[ -z "$bad" ] || { echo "$bad" | head; exit 1; }
[ "$good" -ge 40 ]
