#!/usr/bin/env bash
# backup_test.sh TIDEMARK CLOUD [KILLS]: a copy of a home holds what every system keeps, and comes back after the
# disk is lost, whatever kills the restore (M17).
. "$(dirname "$0")/stage.sh"
kills_wanted=${3:-25}
mail=old@example.com
site=sc-domain:example.com
token=tok-3c9a77d1

serve --seed 7 --quota off --mailbox "$user=1" --token "$token=$user" --site "$site=$user,rows=40"
t() {
    local home=$1
    shift
    timeout 150 "$tidemark" --home "$dir/$home" "$@"
}
for i in $(seq 30); do
    printf 'From a@b Thu Jan  1 00:00:00 2015\nFrom: a@b\nTo: %s\nSubject: number %d\nMessage-ID: <%d@b>\nDate: Thu, 1 Jan 2015 00:00:%02d +0000\n\nbody %d\n\n' \
        "$mail" "$i" "$i" "$i" "$i"
done >"$dir/mail.mbox"
rows() { sqlite3 "$1/console/sc-domain%3Aexample.com.db" "SELECT * FROM analytics ORDER BY 1, 2, 3, 4, 5, 6" | sha256sum; }
messages() { t "$1" mail search in:anywhere --limit 100 --json | jq '.messages | length'; }

t home mail import "$dir/mail.mbox" --account "$mail" >/dev/null || fail "import"
t home account add console "$site" --endpoint "$origin" --bearer "$token" >/dev/null || fail "account add"
t home console backfill "$site" --days 5 --quiet >/dev/null || fail "backfill"
printf 'retry:\n  attempts_max: 7\n' >"$dir/home/config.yaml"
stored=$(rows "$dir/home/archive")

# ---- everything is in the copy, and what is not is named
echo notes >"$dir/home/archive/notes.txt"
t home backup "$dir/copy" >"$dir/out" 2>"$dir/err" || fail "backup: $(cat "$dir/err")"
grep -q notes.txt "$dir/out" "$dir/err" || fail "an unknown file is left out silently"
rm "$dir/home/archive/notes.txt"
[ "$(rows "$dir/copy/archive")" = "$stored" ] || fail "the search analytics are not in the copy"
t home backup "$dir/copy" --json >"$dir/out" || fail "a second backup"
[ "$(jq '.console_rows' "$dir/out")" -ge 200 ] && [ "$(jq '.messages' "$dir/out")" -eq 30 ] || fail "counts: $(cat "$dir/out")"
[ "$(jq -c '.not_copied' "$dir/out")" = '[]' ] || fail "not copied: $(cat "$dir/out")"
[ -z "$(find "$dir/copy" -name '*.partial' -o -name '*.new')" ] || fail "remains: $(find "$dir/copy" -type f)"
grep -rq "$token" "$dir/copy" && fail "a sign-in is in the copy"

# ---- a log that somebody's sqlite3 left next to the copy goes before the new copy is there: it would be applied to
# that.  Here the new copy cannot get its name.
cp -r "$dir/copy" "$dir/used"
file=$dir/used/archive/console/sc-domain%3Aexample.com.db
rm "$file"
mkdir -p "$file/in the way"
touch "$file-wal" "$file-shm"
t home backup "$dir/used" >"$dir/out" 2>&1 && fail "a copy over a directory"
[ ! -e "$file-wal" ] && [ ! -e "$file-shm" ] || fail "the log is left: $(cat "$dir/out")"

# ---- the disk is lost
mv "$dir/home" "$dir/lost"
t home restore "$dir/copy" >"$dir/out" 2>&1 || fail "restore: $(cat "$dir/out")"
grep -q 'account add' "$dir/out" || fail "no word about sign-ins: $(cat "$dir/out")"
[ "$(rows "$dir/home/archive")" = "$stored" ] || fail "search analytics after the restore"
[ "$(messages home)" -eq 30 ] || fail "messages after the restore"
t home ledger check >/dev/null || fail "the ledger after the restore"
t home mail verify >"$dir/out" || fail "mail verify: $(cat "$dir/out")"
[ "$(t home config get retry.attempts_max 2>/dev/null | grep -c 7)" -eq 1 ] || grep -q 'attempts_max: 7' "$dir/home/config.yaml" || fail "settings"
t home account add console "$site" --endpoint "$origin" --bearer "$token" >/dev/null || fail "sign in again"
t home console sync --quiet --json >"$dir/out" || fail "sync after the restore: $(cat "$dir/out")"
[ "$(jq .days "$dir/out")" -le 3 ] || fail "final days are fetched again: $(cat "$dir/out")"

# ---- a home that is in use is not overwritten unless that is asked for, and nothing of it is lost
before=$(rows "$dir/home/archive")
t home restore "$dir/copy" >"$dir/out" 2>&1 && fail "restored over a home"
grep -q -- '--replace' "$dir/out" || fail "no way to replace: $(cat "$dir/out")"
[ "$(rows "$dir/home/archive")" = "$before" ] || fail "a refused restore changed something"
t home restore "$dir/copy" --replace >"$dir/out" 2>&1 || fail "restore --replace: $(cat "$dir/out")"
[ "$(rows "$dir/home/archive")" = "$stored" ] || fail "not what the copy has"
aside=$(find "$dir/home" -maxdepth 1 -name 'archive.before-*')
[ -n "$aside" ] && [ "$(rows "$aside")" = "$before" ] || fail "the former archive is not kept"
grep -qF "$aside" "$dir/out" || fail "it is not said where it is: $(cat "$dir/out")"
[ "$(find "$dir/home" -maxdepth 1 -name 'state.db.before-*' | wc -l)" -eq 1 ] || fail "the former ledger is not kept"
for _ in 1 2 3; do # at once, and each home is set aside under a name of its own
    t home restore "$dir/copy" --replace >"$dir/out" 2>&1 || fail "restore --replace again: $(cat "$dir/out")"
done
[ "$(find "$dir/home" -maxdepth 1 -name 'archive.before-*' | wc -l)" -eq 4 ] || fail "former archives: $(find "$dir/home" -maxdepth 1)"
t home restore "$dir/home" >"$dir/out" 2>&1 && fail "a home restored from itself"
t home restore "$dir/nowhere" >"$dir/out" 2>&1 && fail "restored from nowhere"
mkdir "$dir/empty"
t other restore "$dir/empty" >"$dir/out" 2>&1 && fail "restored from an empty directory"
[ -e "$dir/other/state.db" ] && fail "something was made of nothing"

# ---- XDG homes
xdg() { env -u TIDEMARK_HOME HOME="$dir/xdg" XDG_STATE_HOME="$dir/xdg/s" XDG_DATA_HOME="$dir/xdg/d" XDG_CONFIG_HOME="$dir/xdg/c" timeout 150 "$tidemark" "$@"; }
mkdir "$dir/xdg"
xdg restore "$dir/copy" >"$dir/out" 2>&1 || fail "restore into XDG directories: $(cat "$dir/out")"
[ -f "$dir/xdg/s/tidemark/state.db" ] && [ -f "$dir/xdg/c/tidemark/config.yaml" ] || fail "XDG places: $(find "$dir/xdg" -type f)"
[ "$(rows "$dir/xdg/d/tidemark/archive")" = "$stored" ] || fail "XDG: search analytics"
xdg mail verify >"$dir/out" || fail "XDG: $(cat "$dir/out")"

# ---- a damaged copy does not become a home
cp -r "$dir/copy" "$dir/damaged"
file=$dir/damaged/archive/console/sc-domain%3Aexample.com.db
truncate -s $(($(stat -c %s "$file") / 2)) "$file"
t fresh restore "$dir/damaged" >"$dir/out" 2>&1 && fail "a damaged copy is restored"
grep -q 'sc-domain' "$dir/out" || fail "the damaged file is not named: $(cat "$dir/out")"
[ -e "$dir/fresh/state.db" ] && fail "a home was made of a damaged copy"
t fresh restore "$dir/copy" >"$dir/out" 2>&1 || fail "a good copy after a damaged one: $(cat "$dir/out")"
[ "$(rows "$dir/fresh/archive")" = "$stored" ] || fail "a good copy after a damaged one"

# ---- every state that a crash between two renames can leave is finished by the same command
for state in 0 1 2 3 4; do
    home=$dir/state$state
    cp -r "$dir/lost" "$home"
    printf 'x\n' >"$home/archive/mark-of-the-former-one"
    cp -r "$dir/copy/archive" "$home/archive.restoring"
    cp "$dir/copy/state.db" "$home/state.db.restoring"
    echo 'move 77' >"$home/restore.pending"
    [ "$state" -lt 1 ] || mv "$home/archive" "$home/archive.before-77"
    [ "$state" -lt 2 ] || mv "$home/archive.restoring" "$home/archive"
    [ "$state" -lt 3 ] || mv "$home/state.db" "$home/state.db.before-77"
    [ "$state" -lt 4 ] || mv "$home/state.db.restoring" "$home/state.db"
    t "state$state" mail sync --quiet >"$dir/out" 2>&1 && fail "state $state: half a home is used"
    t "state$state" restore "$dir/copy" >"$dir/out" 2>&1 || fail "state $state: $(cat "$dir/out")"
    [ "$(rows "$home/archive")" = "$stored" ] || fail "state $state: search analytics"
    [ -e "$home/archive.before-77/mark-of-the-former-one" ] && [ -e "$home/state.db.before-77" ] || fail "state $state: the former home: $(find "$home")"
    t "state$state" ledger check >/dev/null || fail "state $state: the ledger"
    [ -z "$(find "$home" -name '*.restoring' -o -name 'restore.pending')" ] || fail "state $state: remains: $(find "$home")"
done

# ---- kill -9: the former home is there whole, or set aside whole, and the same command finishes
begun=$(date +%s%N)
t timed restore "$dir/copy" >/dev/null 2>&1 || fail "restore"
took=$((($(date +%s%N) - begun) / 1000000))
home=$dir/killed
cp -r "$dir/lost" "$home"
printf 'x\n' >"$home/archive/mark-of-the-former-one"
kills=0
for attempt in $(seq "$kills_wanted"); do
    "$tidemark" --home "$home" restore "$dir/copy" --replace >"$dir/out" 2>&1 &
    run=$!
    wait_ms=$((attempt * took / kills_wanted + 1)) # over the whole of it; nothing depends on where it strikes
    read -rt "$((wait_ms / 1000)).$(printf %03d $((wait_ms % 1000)))" <> <(:) || true
    kill -9 "$run" 2>/dev/null && kills=$((kills + 1))
    wait "$run" 2>/dev/null
    [ "$(find "$home" -maxdepth 2 -name mark-of-the-former-one | wc -l)" -eq 1 ] || fail "the former archive is gone: $(find "$home")"
    if [ ! -e "$home/restore.pending" ]; then
        [ "$(rows "$home/archive")" = "$stored" ] || fail "neither the old home nor the new one: $(find "$home")"
    else
        t killed console status >"$dir/err" 2>&1 && fail "a half restored home is used"
        grep -q 'tidemark restore' "$dir/err" || fail "no way out of half a restore: $(cat "$dir/err")"
    fi
    find "$home" -maxdepth 1 -name 'archive.before-*' | grep -q . && break
done
t killed restore "$dir/copy" --replace >"$dir/out" 2>&1 || fail "after $kills kills: $(cat "$dir/out")"
[ "$(rows "$home/archive")" = "$stored" ] || fail "after $kills kills: other rows"
[ "$(messages killed)" -eq 30 ] || fail "after $kills kills: other messages"
t killed ledger check >/dev/null || fail "after $kills kills: the ledger"
[ "$(find "$home" -maxdepth 2 -name mark-of-the-former-one | wc -l)" -eq 1 ] || fail "the former archive is gone"
[ -z "$(find "$home" -name '*.restoring' -o -name 'restore.pending')" ] || fail "remains: $(find "$home")"
echo "killed $kills times"

echo "$failed failed"
[ "$failed" -eq 0 ]
