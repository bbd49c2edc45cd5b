#!/usr/bin/env bash
# Copies a ledger with every kind of row from SQLite to PostgreSQL and back, with the program
# itself, kills it with SIGKILL at random moments, and compares.
#
# ledger_copy_test.sh TIDEMARK FULL_LEDGER [JOBS [KILLS]]
# TIDE_TEST_POSTGRES is set by pg_cluster.sh; without it SQLite is copied to SQLite.
set -uo pipefail
# A file system of its own, to be filled up, goes with the process that mounted it.
if [ -z "${TIDE_TEST_MOUNTS:-}" ] && [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
    TIDE_TEST_MOUNTS=own exec unshare -m --propagation private "$0" "$@"
fi
tidemark=$(realpath "$1")
full=$(realpath "$2")
jobs=${3:-100000}
kills=${4:-10} # on either way
seed=${TIDE_TEST_SEED:-$$}
RANDOM=$seed
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1 (seed $seed)" >&2
    failed=$((failed + 1))
}
now_ms() { date +%s%3N; }
# strike PID: kills a child with SIGKILL and waits for it; its exit status is in $ended.  False if it
# had ended before: `kill` cannot tell, since it succeeds on a child that was not waited for.
strike() {
    kill -9 "$1" 2>/dev/null
    wait "$1" 2>/dev/null
    ended=$?
    [ "$ended" -eq 137 ]
}
export TIDEMARK_HOME="$dir/nowhere"

base=${TIDE_TEST_POSTGRES:-}
# A target that is not there yet, into $target: a database or a file.
database() {
    if [ -z "$base" ]; then
        target="$dir/$1/state.db"
        rm -rf "${dir:?}/$1" && mkdir -p "$dir/$1"
        return
    fi
    psql -q -X "$base" -c "DROP DATABASE IF EXISTS $1" -c "CREATE DATABASE $1" 2>/dev/null ||
        fail "no database $1"
    target="postgres:///$1?${base#*\?}"
}
# Runs a command that must end with this code; its output is in $out and $err.
run() {
    local want=$1
    shift
    out=$("$tidemark" "$@" 2>"$dir/err")
    local code=$?
    err=$(cat "$dir/err")
    [ "$code" = "$want" ] || fail "tidemark $* ended with $code, not $want: $out $err"
}
says() { grep -qF -- "$1" <<<"$out" || fail "it does not say '$1': $out"; }
complains() { grep -qF -- "$1" <<<"$err" || fail "it does not complain '$1': $err"; }
holds() { jq -e "$1" <<<"$out" >/dev/null || fail "not so: $1: $out"; }
equal() {
    run 0 ledger copy --verify --json "$1" "$2"
    holds '.equal and ([.tables[] | select(.equal | not)] == [])'
}
# Commands on a target that is not whole yet are refused, with advice.
closed() {
    local words
    for words in "jobs stats" "alerts" "ledger check" "jobs retry --all"; do
        case $1 in
        postgres*) run 1 --ledger "$1" $words ;;
        *) run 1 --home "$(dirname "$1")" $words ;;
        esac
        complains "a copy into it has not ended"
        complains "ledger copy"
    done
}

mkdir -p "$dir/from"
source="$dir/from/state.db"
"$full" "$source" "$jobs" || fail "the ledger could not be made"
sum=$(sha256sum <"$source")

# Counting touches nothing.
database copy_straight
straight=$target
run 0 ledger copy --dry-run --json "$source" "$straight"
holds ".rows > $jobs"
rows=$(jq .rows <<<"$out")

# In one go, and how fast.
began=$(now_ms)
run 0 ledger copy --json "$source" "$straight"
took=$(($(now_ms) - began))
holds ".equal and .rows_copied == $rows and .rows_resumed == 0"
jq -r --arg took "$took" '"\(.rows_copied) rows: copied in \(.copy_ms) ms (\(.rows_copied * 1000 / .copy_ms | floor) rows/s), compared in \(.compare_ms) ms, all in \($took) ms"' <<<"$out"
[ "$(sha256sum <"$source")" = "$sum" ] || fail "the source was changed"
equal "$source" "$straight"

# What has rows is refused.
run 1 ledger copy "$source" "$straight"
complains "rows of its own"
run 1 ledger copy --restart "$source" "$straight"
complains "rows of its own"

# Killed again and again, then let through.  FROM TO, and what makes TO new.
killed_copy() {
    local from=$1 to=$2 renew=$3 left=$kills pid again tries=$((kills * 5))
    while [ "$left" -gt 0 ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || { fail "$left of $kills kills did not strike"; return; }
        # Now and then from the beginning, so that kills do not gather at the end.
        again=
        [ $((left % 4)) != 0 ] || again=--restart
        "$tidemark" ledger copy --quiet $again "$from" "$to" >"$dir/kill.out" 2>&1 &
        pid=$!
        sleep "$(awk -v r=$RANDOM -v ms="$took" 'BEGIN { printf "%.3f", r / 32768 * ms / 1000 * 0.8 }')"
        if strike "$pid"; then
            killed=$((killed + 1)) left=$((left - 1))
        elif [ "$ended" -eq 0 ]; then # it was quicker
            equal "$from" "$to"
            $renew
        elif ! grep -q "rows of its own" "$dir/kill.out"; then
            fail "a copy failed: $(cat "$dir/kill.out")"
            return
        else # the last kill came after the mark was gone
            equal "$from" "$to"
            $renew
        fi
    done
    "$tidemark" ledger copy --json "$from" "$to" >"$dir/last.json" 2>"$dir/err" ||
        grep -q "rows of its own" "$dir/last.json" || fail "it did not continue: $(cat "$dir/err" "$dir/last.json")"
    jq -r '"resumed with \(.rows_resumed) of \(.rows) rows there"' "$dir/last.json" 2>/dev/null
    equal "$from" "$to"
}
killed=0
database copy_killed
there=$target
# Once at a moment that is surely in the middle: the target stays closed.
"$tidemark" ledger copy --quiet "$source" "$there" >/dev/null 2>&1 &
pid=$!
for _ in $(seq 600); do
    case $there in
    postgres*) psql -X -At "$there" -c "SELECT value FROM tidemark.meta WHERE key = 'copying.place'" ;;
    *) sqlite3 "$there" "SELECT value FROM copying WHERE key = 'copying.place'" ;;
    esac >"$dir/place" 2>/dev/null
    grep -q 'job' "$dir/place" && break
    sleep 0.02
done
strike "$pid" || fail "the copy ended too early"
closed "$there"
run 1 ledger copy --verify "$source" "$there"
complains "a copy into it has not ended"
renew_there() { database copy_killed; }
killed_copy "$source" "$there" renew_there
mkdir -p "$dir/back"
back="$dir/back/state.db"
renew_back() { rm -f "$back" "$back-wal" "$back-shm"; }
killed_copy "$there" "$back" renew_back
echo "$killed kills on two ways"
equal "$source" "$back"
run 0 --home "$dir/back" ledger check
says "good"
[ "$(sha256sum <"$source")" = "$sum" ] || fail "the source was changed"

# A full disk: it says so, and continues when there is room.
mkdir "$dir/small"
if [ -n "${TIDE_TEST_MOUNTS:-}" ] && mount -t tmpfs -o size=3m none "$dir/small" 2>/dev/null; then
    run 1 ledger copy "$source" "$dir/small/state.db"
    complains "full"
    mount -o remount,size=1g "$dir/small"
    run 0 ledger copy --json "$source" "$dir/small/state.db"
    holds '.equal and .rows_resumed > 0'
    umount "$dir/small"
else
    echo "skipped: a full disk needs a file system of its own"
fi

# An engine in the directory, and a zero byte.
exec 9>>"$dir/from/engine.lock"
flock 9
run 1 ledger copy "$source" "$dir/other.db"
complains "stop that first"
exec 9>&-
[ ! -e "$dir/other.db" ] || fail "something was written"
if [ -n "$base" ]; then
    database copy_zero
    sqlite3 "$source" "UPDATE job SET payload = '{' || char(0) || '}' WHERE id = 6"
    run 1 ledger copy "$source" "$target"
    complains "job 6: its payload has a zero byte"
    run 1 --ledger "$target" jobs stats
    complains "there is no ledger"
fi

# Two ledgers that differ.
sqlite3 "$dir/back/state.db" "UPDATE note SET value = 'other' WHERE key = 'note 3'"
run 1 ledger copy --verify --json "$there" "$back"
holds '.equal == false and ([.tables[] | select(.equal | not) | .table] == ["note"])'
holds '[.tables[].difference // empty] == ["note \"note 3\": value differs"]'

[ "$failed" = 0 ] && echo "all good"
exit $((failed > 0))
