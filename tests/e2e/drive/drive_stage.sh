# shellcheck shell=bash
# drive_stage.sh: what scripts about drives begin with, after the two programs as $1 and $2: stage.sh, and what is said
# to the cloud's side of a drive.  The user is $user with the token $token; the folder is $one.
source "$(dirname "${BASH_SOURCE[0]}")/../stage.sh" "$1" "$2"
one=$dir/One
token=tok
graph() { curl -sSf -H "Authorization: Bearer $token" "$@"; }
online() { graph -L "$origin/v1.0/me/drive/root:/$1:/content"; }
gone_online() { [ "$(curl -sS -o /dev/null -w '%{http_code}' -H "Authorization: Bearer $token" "$origin/v1.0/me/drive/root:/$1")" = 404 ]; }
# other WHAT FIELDS: another device, or the provider, does something: put, folder, move, delete, touch, mark.
other() { curl -sSf -o "$dir/other" "$origin/_cloud/drive/$1" -d "{\"user\":\"$user\",$2}" || fail "other $1 $2"; }
put() { other put "\"path\":\"$1\",\"content\":\"$2\""; }
put_made() { other put "\"path\":\"$1\",\"size\":$2,\"seed\":${3:-7}"; }
id_of() { graph "$origin/v1.0/me/drive/root:/$1" | jq -r .id; }
tree() { curl -sSf "$origin/_cloud/drive?user=$user"; }
bin() { curl -sSf "$origin/_cloud/drive/bin?user=$user"; }
stats() { curl -sSf "$origin/_cloud/stats"; }
drive_stat() { stats | jq ".users.\"$user\".drive.$1"; }
# calls METHOD: how many of them the cloud has got, whatever it answered.
calls() { stats | jq "[.. | objects | .methods? // empty | .\"$1\".calls // 0] | add // 0"; }
violations() { stats | jq -c '[.violations[]? | {(.kind): .count}] | add // {}'; }
says() { grep -qF -- "$1" "$dir/out" || fail "no \"$1\" in: $(cat -v "$dir/out" "$dir/err")"; }
complains() { grep -qF -- "$1" "$dir/err" || fail "no \"$1\" in: $(cat -v "$dir/out" "$dir/err")"; }
holds() { jq -e "$1" "$dir/out" >/dev/null || fail "not $1: $(cat -v "$dir/out" "$dir/err")"; }
here() { [ "$(cat "$one/$1" 2>/dev/null)" = "$2" ]; }
# Files of the folder with their sizes, without ours; and those of the drive.
files_here() { (cd "${1:-$one}" && find . -type f ! -name '.tidemark-*' ! -path './.tidemark-*' -printf '%s %P\n' | LC_ALL=C sort); }
files_online() { tree | sed -n 's/^file \([0-9]*\) [^ ]* /\1 /p' | LC_ALL=C sort; }
alike() { diff <(files_here) <(files_online) >"$dir/diff"; }
same_trees() {
    alike || fail "$1: the two sides differ: $(head -c 2000 "$dir/diff")"
}
# join OPTION...: an account and the drive One at $one.
join() {
    ends 0 account add onedrive "$user" --endpoint "$origin" --bearer "$token"
    ends 0 drive add "$one" "$@"
}
# begin ARGUMENT...: tidemark in the background; its process is $running, what it says is in $dir/run.*.
begin() {
    "$tidemark" --home "$dir/home" "$@" >"$dir/run.out" 2>"$dir/run.err" &
    running=$!
    stage_pids+=("$running")
}
# finish CODE: waits for it.
finish() {
    local code
    wait "$running"
    code=$?
    [ "$code" -eq "$1" ] || fail "it ended with $code, not $1: $(cat "$dir/run.out" "$dir/run.err")"
}
