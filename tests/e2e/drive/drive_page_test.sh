#!/usr/bin/env bash
# drive_page_test.sh TIDEMARK CLOUD: the routes of drives in the API of `tidemark serve`: described, once per Idempotency-Key,
# for keys of the right scope only, and deciding exactly what was listed (D9, D21, S16).
source "$(dirname "$0")/../stage.sh" "$1" "$2"
export XDG_DATA_HOME=$dir/data # its trash
serve --quota off --drive ada@example.com=12,size=500 --token tok=ada@example.com
graph() { curl -sSf -H 'Authorization: Bearer tok' "$@"; }
put() { graph -o /dev/null -X PUT "$origin/v1.0/me/drive/root:/$1:/content" --data-binary "$2" || fail "put $1"; }
online() { [ "$(graph -L "$origin/v1.0/me/drive/root:/$1:/content" 2>/dev/null)" = "$2" ]; }
one=$dir/One
start_serve --set drive.watch=false
ends 0 token add worker --scope work
work=$(cat "$dir/out")
ends 0 token add viewer --scope look
look=$(cat "$dir/out")
curl -sSf -o "$dir/openapi.json" "$page/api/v1/openapi.json" || fail openapi
check() { "$(dirname "$0")/../openapi_check.py" "$dir/openapi.json" "$1" "/api/v1/drive/$2" "$3" "$dir/body" || fail "line ${BASH_LINENO[1]}"; }
get() { # PATH CODE
    local code
    code=$(ask_page -o "$dir/body" -H "Authorization: Bearer $look" "$page/api/v1/drive/$1")
    [ "$code" = "$2" ] || fail "line ${BASH_LINENO[0]}: $1 answered $code, not $2: $(head -c 500 "$dir/body")"
    [[ $code != 2* ]] || check get "$1" "$code"
}
keys=0
post() { # PATH CODE BODY [CURL-ARGUMENT...]
    local path=$1 want=$2 body=$3 code
    shift 3
    keys=$((keys + 1))
    code=$(ask_page -o "$dir/body" -H "Authorization: Bearer ${as:-$work}" -H 'Content-Type: application/json' -H "Idempotency-Key: ${key:-k$keys}" -d "$body" "$@" "$page/api/v1/drive/$path")
    [ "$code" = "$want" ] || fail "line ${BASH_LINENO[0]}: $path answered $code, not $want: $(head -c 500 "$dir/body")"
    [[ $code != 2* ]] || check post "$path" "$code"
}
holds() { jq -e "$1" "$dir/body" >/dev/null || fail "line ${BASH_LINENO[0]}: not $1: $(cat "$dir/body")"; }

# ---- no account, no drive
get status 200; holds '.drives == []'
get One/status 404
ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok
get status 200; holds '.drives == []'
ends 0 drive add "$one"
get One/status 200; holds '.drives[0] | .drive == "One" and .tidemark_unix_ms == null and .files == 0 and .mounted and .trouble == null'

# ---- a sync
post One/sync 202 '{}'
settled() { get One/status 200; jq -e '.drives[0] | .files == '"$1"' and .waiting == 0 and (.looking | not)' "$dir/body"; }
until_true 60 settled 12 || fail "not synced: $(cat "$dir/body")"
get status 200; holds '[.drives[0].last_changes[] | select(.action == "download" and .bytes > 0)] | length == 12'
post Two/sync 404 '{}'

# ---- conflicts: keep theirs, mine, both
for name in a b c; do echo old >"$one/$name.txt"; done
ends 0 drive sync --quiet
for name in a b c; do
    echo "mine $name" >"$one/$name.txt"
    put "$name.txt" "theirs $name"
done
ends 3 drive sync --quiet
get One/conflicts 200; holds '.conflicts | length == 3 and all(.kind == "edit_edit" and (.copy | length > 0))'
id() { get One/conflicts 200; jq ".conflicts[] | select(.path == \"$1.txt\") | .id" "$dir/body"; }
a=$(id a) b=$(id b) c=$(id c)
as=$look post "One/conflicts/$a" 403 '{"keep":"remote"}'
post "One/conflicts/$a" 400 '{"keep":"all"}'
post "One/conflicts/$a" 400 '{"keep":"remote","home":"/"}'
post One/conflicts/9999 404 '{"keep":"remote"}'
post One/conflicts/--json 400 '{}'
key=once post "One/conflicts/$a" 200 '{"keep":"remote"}'; holds '.drive == "One" and .kept == "remote"'
key=once post "One/conflicts/$a" 200 '{"keep":"remote"}' # its answer again
key=once post "One/conflicts/$a" 422 '{"keep":"local"}'
post "One/conflicts/$b" 200 '{"keep":"local"}'
post "One/conflicts/$c" 200 '{}'; holds '.kept == "both"'
get One/conflicts 200; holds '.conflicts == []'
ends 0 drive sync --quiet
[ "$(cat "$one/a.txt")" = 'theirs a' ] || fail "a: $(cat "$one/a.txt")"
online b.txt 'mine b' || fail "b is not mine online"
[ "$(find "$one" -name '*.conflict-*' ! -path '*/.tidemark-trash/*' | wc -l)" = 1 ] || fail "copies: $(find "$one")"

# ---- what is owed is named, and is no longer owed when it is gone
curl -sSf -o /dev/null "$origin/_cloud/drive" -d '{"user":"ada@example.com","total":10}'
echo x >"$one/refused.txt"
ends 3 drive sync --quiet
get One/status 200; holds '.drives[0] | .owed_count == 1 and .owed[0].path == "refused.txt" and (.owed[0].error | length > 0) and
    ([.last_changes[] | select(.name == "refused.txt")] == [])'
curl -sSf -o /dev/null "$origin/_cloud/drive" -d '{"user":"ada@example.com","total":1000000000}'
rm "$one/refused.txt"
paid() { t drive sync --quiet >/dev/null; get One/status 200; jq -e '.drives[0].owed == []' "$dir/body"; }
until_true 30 paid || fail "still owed: $(cat "$dir/body")"

# ---- the mode
post One/mode 400 '{}'
post One/mode 400 '{"mode":"sideways"}'
post One/mode 200 '{"mode":"upload-only"}'; holds '.mode == "upload-only"'
get One/status 200; holds '.drives[0].mode == "upload-only"'
post One/mode 200 '{"mode":"two-way"}'

# ---- many deletions wait; only the set that was listed is decided
find "$one" -name '*' -type f ! -name '.tidemark-*' ! -name '?.txt' ! -name '*.conflict-*' -delete
t drive sync --quiet >/dev/null
waits() { t drive sync --quiet >/dev/null; get One/deletions 200; jq -e '.drives[0].deletions | length >= '"$1" "$dir/body"; }
until_true 60 waits 12 || fail "they do not wait: $(cat "$dir/body")"
listed=$(jq -r '.drives[0].listed' "$dir/body")
rm "$one/a.txt"
until_true 60 waits 13 || fail "not one more: $(cat "$dir/body")"
post One/deletions/accept 409 "{\"listed\":\"$listed\"}"; holds '.code == "changed"'
post One/deletions/accept 400 '{}'
files() { curl -sSf "$origin/_cloud/drive?user=ada@example.com" | grep -c '^file'; }
[ "$(files)" = 16 ] || fail "something was deleted: $(files)"
get One/deletions 200
listed=$(jq -r '.drives[0].listed' "$dir/body")
as=$look post One/deletions/restore 403 "{\"listed\":\"$listed\"}"
post One/deletions/restore 200 "{\"listed\":\"$listed\"}"; holds '.decided == "restore"'
back() { ends 0 drive sync --quiet; [ -e "$one/a.txt" ]; }
until_true 60 back || fail "not brought back: $(ls "$one")"
find "$one" -name '*' -type f ! -name '.tidemark-*' ! -name '?.txt' ! -name '*.conflict-*' -delete
until_true 60 waits 12 || fail "they do not wait again: $(cat "$dir/body")"
post One/deletions/accept 200 "{\"listed\":\"$(jq -r '.drives[0].listed' "$dir/body")\"}"; holds '.decided == "accept"'
gone() { [ "$(files)" = 4 ]; }
until_true 60 gone || fail "not deleted: $(files)"
online b.txt 'mine b' || fail "more was deleted"

# ---- a folder that is not there, and metrics
mv "$one" "$dir/away"
get One/status 200; holds '.drives[0] | (.mounted | not) and (.trouble | length > 0)'
mv "$dir/away" "$one"
t metrics >"$dir/metrics"
grep -q '^tidemark_drive_transferred_total{direction="down"} [1-9]' "$dir/metrics" || fail "metrics: $(grep drive "$dir/metrics")"
grep -q '^tidemark_drive_actions_waiting 0$' "$dir/metrics" || fail "metrics: $(grep drive "$dir/metrics")"
stop_serve 0
exit $((failed > 0))
