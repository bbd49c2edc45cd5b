#!/usr/bin/env bash
# search_notmuch.sh BUILD [MESSAGES]: the same mail indexed and searched by Debian's notmuch and by
# tidemark, one after the other (200,000 messages; TIDE_BENCH_BESIDE sets another number).
#
# The messages are files: notmuch indexes them where they are, and tidemark imports them, so that its
# time includes storing the mail itself.  Then each of fifteen kinds of queries is one command that
# prints a page of twenty, warm (the files are in the page cache) and cold (they are dropped from it
# before every command; the programs are not).  Each time has the start of a program in it, which is
# measured alone, too; CPU time says more on a busy machine.  Prints one JSON object a line: our figure,
# and theirs divided by ours.  Exits with 0 and a skipped line where notmuch is not installed.
set -euo pipefail
build=$(realpath "$1")
messages=${2:-${TIDE_BENCH_BESIDE:-200000}}
warm_rounds=15
cold_rounds=7
if ! command -v notmuch >/dev/null; then
    echo '{"name":"search_beside_notmuch","skipped":"notmuch is not installed"}'
    exit 0
fi
dir=$(mktemp -d)
cloud_pid=
leave() {
    [ -z "$cloud_pid" ] || kill "$cloud_pid" 2>/dev/null || true
    rm -rf "$dir"
}
trap leave EXIT
export LC_ALL=C.UTF-8 TZ=UTC NOTMUCH_CONFIG=$dir/notmuch-config PAGER=
user=reader@example.com
tidemark=$build/src/cli/tidemark

figure() { # NAME OURS UNIT THEIRS TEXT
    jq -nc --arg name "$1" --argjson value "$2" --arg unit "$3" --argjson theirs "$4" --arg to "$5" \
        '{$name, $value, $unit, ratio: (if $value > 0 then $theirs / $value else null end), $to}'
}

# ---- the messages, as files
mkdir "$dir/mail"
exec 3< <(exec "$build/cloudbox/serve/tidemark-cloud" --listen 127.0.0.1:0 --quiet --quota off --seed 7 \
    --clock 1794700000000 --token bench="$user" --mailbox "$user=$messages")
cloud_pid=$!
read -r _ origin <&3
source=("$tidemark" --home "$dir/source" --set governor.gmail.window_units=0)
"${source[@]}" account add gmail "$user" --endpoint "$origin" --bearer bench >/dev/null
"${source[@]}" mail sync --quiet >/dev/null
"${source[@]}" mail export "$dir/mail" in:anywhere >/dev/null
kill "$cloud_pid"
cloud_pid=
rm -rf "$dir/source"

# ---- indexing
cat >"$NOTMUCH_CONFIG" <<CONFIG
[database]
path=$dir/mail
[user]
name=Reader
primary_email=$user
[new]
tags=new
[search]
exclude_tags=
CONFIG
ours=("$tidemark" --home "$dir/home")
TIMEFORMAT='%R %U %S'
timed() { # LOG COMMAND...: seconds, and seconds of CPU, in $took
    local log=$1
    shift
    { time "$@" >"$log" 2>&1; } 2>"$dir/time" || { tail -n 20 "$log" >&2; exit 1; }
    read -r -a took < <(awk '{print $1, $2 + $3}' "$dir/time")
}
bytes_in() { du -sb "$@" | awk '{sum += $1} END {printf "%.0f", sum}'; }
raw=$(bytes_in "$dir/mail")
timed "$dir/notmuch.log" notmuch new
theirs=("${took[@]}")
timed "$dir/import.log" "${ours[@]}" mail import "$dir/mail" --account "$user"
figure search_beside_index_time "${took[0]}" s "${theirs[0]}" "notmuch's time by ours, which stores the mail too"
figure search_beside_index_cpu "${took[1]}" s "${theirs[1]}" "notmuch's CPU by ours"
archive=$(bytes_in "$dir/home/archive")
index=$(bytes_in "$dir/mail/.notmuch")
# The rows of FTS5 and the parsed headers, in whole pages, without the messages.
ours_index=0
for shard in $(find "$dir/home/archive" -name '*.db'); do
    ours_index=$((ours_index + $(sqlite3 -readonly "$shard" \
        "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'words%' OR name LIKE 'head%'")))
done
figure search_beside_index_size "$((ours_index / 1024))" KiB "$((index / 1024))" "notmuch's index by ours alone"
figure search_beside_size "$((archive / 1024))" KiB "$((index / 1024))" "notmuch's index by our archive, mail included"
figure search_beside_size_raw "$((raw / 1024))" KiB "$((raw / 1024))" "the mail itself"

# ---- queries: kind, ours, notmuch's
queries=(
    'all|in:anywhere|*'
    'rare|kingfisher|kingfisher'
    'word|harbour|harbour'
    'frequent|the|the'
    'two_words|harbour invoice|harbour invoice'
    'forms|invoices|invoices'
    'exact|+invoices|"invoices"'
    'prefix|invoic*|invoic*'
    'phrase|"draft of the report"|"draft of the report"'
    'negation|invoice -harbour|invoice and not harbour'
    'either|kingfisher OR harbour|kingfisher or harbour'
    'from|from:calloway|from:calloway'
    'subject|subject:invoice|subject:invoice'
    'dates|invoice after:2020/01/01 before:2021/01/01|invoice date:2020..2020'
    'attachment|has:attachment invoice|tag:attachment invoice'
)
files=()
while read -r file; do files+=("$file"); done < <(find "$dir/home" "$dir/mail/.notmuch" -type f)
drop() {
    local file
    for file in "${files[@]}"; do
        [ ! -e "$file" ] || dd if="$file" iflag=nocache count=0 status=none
    done
}
# times HOW ROUNDS COMMAND...: $p50 and $p95 of milliseconds, $cpu the p50 of those of CPU.
times() {
    local how=$1 rounds=$2 i
    shift 2
    [ "$how" = cold ] || "$@" >/dev/null
    : >"$dir/times"
    for ((i = 0; i < rounds; i++)); do
        [ "$how" = warm ] || drop
        { time "$@" >/dev/null 2>"$dir/errors"; } 2>>"$dir/times" || { cat "$dir/errors" >&2; exit 1; }
    done
    p50=$(at 50 '$1') p95=$(at 95 '$1') cpu=$(at 50 '$2 + $3')
}
at() { # PERCENT OF WHICH
    awk "{print 1000 * ($2)}" "$dir/times" | sort -n | awk -v percent="$1" '{line[NR - 1] = $1}
        END {print line[int(percent * (NR - 1) / 100)]}'
}
compare() { # NAME HOW ROUNDS: ${their_command[@]} and ${our_command[@]}
    times "$2" "$3" "${their_command[@]}"
    local theirs=("$p50" "$p95" "$cpu")
    times "$2" "$3" "${our_command[@]}"
    figure "search_beside_${1}_p50" "$p50" ms "${theirs[0]}" "notmuch's time by ours"
    figure "search_beside_${1}_p95" "$p95" ms "${theirs[1]}" "notmuch's time by ours"
    figure "search_beside_${1}_cpu" "$cpu" ms "${theirs[2]}" "notmuch's CPU by ours"
}
sync
their_command=(notmuch --version)
our_command=("$tidemark" --version)
compare start warm "$warm_rounds"
for query in "${queries[@]}"; do
    IFS='|' read -r kind mine their <<<"$query"
    mine_found=$("${ours[@]}" mail stats "$mine" in:anywhere --json | jq .all.messages)
    their_found=$(notmuch count "$their")
    figure "search_beside_${kind}_found" "$mine_found" messages "$their_found" "what notmuch finds by what we find"
    their_command=(notmuch search --limit=20 "$their")
    our_command=("${ours[@]}" mail search "$mine" in:anywhere --limit 20)
    compare "${kind}_warm" warm "$warm_rounds"
    compare "${kind}_cold" cold "$cold_rounds"
done
