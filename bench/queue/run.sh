#!/usr/bin/env bash
# run.sh BUILD [SECTION...]: compares the engine as a queue with its peers, in one run on
# one private PostgreSQL (fsync and synchronous_commit on) and on SQLite.  One JSON object
# a line; script/bench queue makes a table of them.
#
# Sections: drain enqueue latency held idle sqlite.  QUEUE_JOBS: jobs of a drain (100000).
# QUEUE_ROUNDS: rounds of each contestant, in turn (2, and one more of a drain); the best
# counts, because a disturbance only ever makes a round slower.
#
# Peers come from npm in the versions of package.json, into a cache outside the repository
# (XDG_CACHE_HOME, else ~/.cache); state goes to $TMPDIR (default /tmp), which must be on
# the disk whose syncs are to be measured.  A peer that cannot run gets a row that says why.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
build=$(realpath "$1")
shift
sections=${*:-drain enqueue latency held idle sqlite}
jobs=${QUEUE_JOBS:-100000}
rounds=${QUEUE_ROUNDS:-2}
cluster=$here/../../tests/support/pg_cluster.sh
export NO_LOG_SUCCESS=1 NODE_ENV=production LC_ALL=C.UTF-8

home=$(mktemp -d "${TMPDIR:-/tmp}/queue.XXXXXX")
clusters=()
clean_up() {
    local dir
    for dir in ${clusters[@]+"${clusters[@]}"}; do
        "$cluster" stop "$dir" || true
    done
    rm -rf "$home"
}
trap clean_up EXIT
trap 'exit 143' INT TERM HUP

# ---- lines ---------------------------------------------------------------------------

declare -A figure # by name; empty: there is none
say() { # NAME VALUE UNIT [RATIO_TO]
    figure[$1]=$2
    local to=${4:-}
    if [ -n "$to" ] && [ -n "${figure[$to]:-}" ]; then
        jq -nc --arg n "$1" --argjson v "$2" --arg u "$3" --arg to "$to" \
            --argjson base "${figure[$to]}" \
            '{name: $n, value: $v, unit: $u, ratio: ($v / $base), to: $to}'
    else
        jq -nc --arg n "$1" --argjson v "$2" --arg u "$3" '{name: $n, value: $v, unit: $u}'
    fi
}
skip() { # NAME WHY
    jq -nc --arg n "$1" --arg w "$2" '{name: $n, skipped: $w}'
}

best=
keep_best() { # VALUE: the larger of it and $best
    [ -n "$1" ] || { echo "run.sh: a contestant failed" >&2; exit 1; }
    best=$(awk -v a="${best:-0}" -v b="$1" 'BEGIN { print (a > b ? a : b) }')
}

# ---- peers ----------------------------------------------------------------------------

no_peers=
node=
install_peers() {
    if ! command -v npm >/dev/null; then
        no_peers="npm is not installed"
        return
    fi
    local cache
    cache=${XDG_CACHE_HOME:-${HOME:-/nowhere}/.cache}
    mkdir -p "$cache" 2>/dev/null && [ -w "$cache" ] || cache=${TMPDIR:-/tmp}
    cache=$cache/tidemark-bench/queue-$(sha256sum <"$here/package.json" | cut -c 1-12)
    mkdir -p "$cache"
    if [ ! -e "$cache/complete" ]; then
        cp "$here/package.json" "$cache/"
        # Package scripts are not run: the needed files come prebuilt.
        if ! (cd "$cache" && npm install --ignore-scripts --no-audit --no-fund --no-package-lock) \
            >"$cache/install.log" 2>&1; then
            no_peers="npm install failed, see $cache/install.log"
            return
        fi
        touch "$cache/complete"
    fi
    export QUEUE_PEERS=$cache
    # graphile-worker asks for a newer Node.js than many systems have; npm has that too.
    node=$(find "$cache"/node_modules/node-linux-*/bin -name node 2>/dev/null | head -n 1)
    node=${node:-$(command -v node || true)}
    if ! "$node" -e 'process.exit(process.versions.node.split(".")[0] >= 22 ? 0 : 1)'; then
        no_peers="Node.js 22 or newer is not installed"
    fi
}
graphile() { "$node" "$here/graphile.mjs" "$@"; }
plainjob() { "$node" "$here/plainjob.mjs" "$@"; }
engine() { TMPDIR=$home "$build/bench/queue_bench" "$@"; }
raw() { "$build/bench/queue_raw" "$@"; }

# ---- PostgreSQL -----------------------------------------------------------------------

no_pg=
pg_dir=
start_pg() { # [--set NAME=VALUE]...; sets pg_dir or no_pg
    pg_dir=$home/pg${#clusters[@]}
    # The path of a socket has at most 107 bytes.
    [ ${#pg_dir} -lt 80 ] || pg_dir=$(mktemp -d /tmp/queue-pg.XXXXXX)
    chmod 711 "$home"
    clusters+=("$pg_dir")
    # The server's own defaults, not the settings of the tests.
    "$cluster" start --dir "$pg_dir" --set shared_buffers=128MB --set max_connections=100 "$@" \
        >"$home/start" 2>&1 || {
        no_pg=$(tail -n 1 "$home/start")
        no_pg=${no_pg#skipped: }
    }
}
url() { echo "postgres:///$1?host=$pg_dir&user=postgres"; }
sql() { psql -qAtX -d "$(url "$1")" -c "$2"; }

# A copy of a filled database, with nothing left to be written.
fresh() { # NAME TEMPLATE
    sql postgres "DROP DATABASE IF EXISTS $1" 2>/dev/null
    sql postgres "CREATE DATABASE $1 TEMPLATE $2 STRATEGY file_copy"
    sql postgres "CHECKPOINT"
}

# Databases to copy: empty ones, and full ones with `jobs` in them.
filled_tide=
make_tide() {
    [ -z "$filled_tide" ] || return 0
    sql postgres "CREATE DATABASE tide_empty"
    engine enqueue "$(url tide_empty)" 1 0 >/dev/null
    sql tide_empty "TRUNCATE tidemark.job"
    sql postgres "CREATE DATABASE tide_full TEMPLATE tide_empty"
    engine enqueue "$(url tide_full)" "$jobs" 1 >/dev/null
    sql tide_full "ANALYZE"
    filled_tide=1
}
filled_graphile=
make_graphile() {
    [ -z "$filled_graphile" ] && [ -z "$no_peers" ] || return 0
    sql postgres "CREATE DATABASE graphile_empty"
    graphile migrate "$(url graphile_empty)"
    sql postgres "CREATE DATABASE graphile_full TEMPLATE graphile_empty"
    graphile enqueue "$(url graphile_full)" "$jobs" 5000 0 >/dev/null
    sql graphile_full "ANALYZE"
    filled_graphile=1
}

# ---- drain ------------------------------------------------------------------------------

workers=16
graphile_best=(24 1000 0) # concurrentJobs, localQueue.size, completeJobBatchDelay

engine_drain() { # PROCESSES
    fresh bench tide_full
    engine drain "$(url bench)" "$jobs" "$workers" "$1"
}
raw_drain() { # CONNECTIONS BATCH
    fresh bench tide_full
    raw drain "$(url bench)" "$jobs" "$1" "$2"
}
graphile_drain() { # CONCURRENT LOCAL DELAY PROCESSES
    fresh bench graphile_full
    graphile drain "$(url bench)" "$jobs" "$@"
}

# Tries its documented settings: the best one depends on the machine.
tune_graphile() {
    local line settings rate most=0
    for line in "10 500 0" "24 1000 0" "24 2000 0" "24 5000 0" "24 2000 10"; do
        read -r -a settings <<<"$line"
        rate=$(graphile_drain "${settings[@]}" 1)
        if awk -v a="$rate" -v b="$most" 'BEGIN { exit !(a > b) }'; then
            most=$rate
            graphile_best=("${settings[@]}")
        fi
    done
}

drain() {
    declare -A rate=()
    local round key
    make_tide
    make_graphile
    [ -n "$no_peers" ] || tune_graphile
    for ((round = 0; round <= rounds; round++)); do
        for key in raw_1 one graphile_1 raw_2 two graphile_2; do
            best=${rate[$key]:-}
            case $key in
            raw_1) keep_best "$(raw_drain 1 500)" ;;
            raw_2) keep_best "$(raw_drain 2 500)" ;;
            one) keep_best "$(engine_drain 1)" ;;
            two) keep_best "$(engine_drain 2)" ;;
            graphile_*)
                [ -n "$no_peers" ] ||
                    keep_best "$(graphile_drain "${graphile_best[@]}" "${key#*_}")"
                ;;
            esac
            rate[$key]=$best
        done
    done
    say queue_raw_drain_1 "${rate[raw_1]}" jobs/s
    say queue_raw_drain_2 "${rate[raw_2]}" jobs/s queue_raw_drain_1
    if [ -n "$no_peers" ]; then
        skip queue_graphile_drain_1 "$no_peers"
        skip queue_graphile_drain_2 "$no_peers"
    else
        say queue_graphile_drain_1 "${rate[graphile_1]}" jobs/s queue_raw_drain_1
        say queue_graphile_drain_2 "${rate[graphile_2]}" jobs/s queue_raw_drain_2
        best=${rate[graphile_1]}
        keep_best "${rate[graphile_2]}"
        say queue_graphile_drain_best "$best" jobs/s queue_raw_drain_2
    fi
    say queue_drain_1 "${rate[one]}" jobs/s queue_graphile_drain_best
    say queue_drain_1_to_raw "${rate[one]}" jobs/s queue_raw_drain_1
    say queue_drain_2 "${rate[two]}" jobs/s queue_graphile_drain_best
    say queue_drain_2_to_raw "${rate[two]}" jobs/s queue_raw_drain_2
}

# ---- enqueue ------------------------------------------------------------------------------

enqueue_one_way() { # NAME DEDUPE
    local round copy='' unnest='' ours='' theirs=''
    for ((round = 0; round < rounds; round++)); do
        fresh bench tide_empty
        best=$copy
        keep_best "$(raw enqueue "$(url bench)" "$jobs" 5000 copy "$2")"
        copy=$best
        fresh bench tide_empty
        best=$unnest
        keep_best "$(raw enqueue "$(url bench)" "$jobs" 5000 unnest "$2")"
        unnest=$best
        fresh bench tide_empty
        best=$ours
        keep_best "$(engine enqueue "$(url bench)" "$jobs" "$2")"
        ours=$best
        [ -z "$no_peers" ] || continue
        fresh bench graphile_empty
        best=$theirs
        keep_best "$(graphile enqueue "$(url bench)" "$jobs" 5000 "$2")"
        theirs=$best
    done
    say "queue_raw_$1_copy" "$copy" jobs/s
    say "queue_raw_$1_unnest" "$unnest" jobs/s "queue_raw_$1_copy"
    if [ -n "$no_peers" ]; then
        skip "queue_graphile_$1" "$no_peers"
    else
        say "queue_graphile_$1" "$theirs" jobs/s "queue_raw_$1_unnest"
    fi
    say "queue_$1" "$ours" jobs/s "queue_graphile_$1"
    say "queue_$1_to_raw" "$ours" jobs/s "queue_raw_$1_unnest"
}

enqueue() {
    make_tide
    make_graphile
    enqueue_one_way enqueue_plain 0
    enqueue_one_way enqueue_dedupe 1
}

# ---- latency ---------------------------------------------------------------------------------

latency() {
    local from figures
    make_tide
    make_graphile
    for from in same other; do
        if [ -n "$no_peers" ]; then
            skip "queue_graphile_latency_$from" "$no_peers"
        else
            fresh bench graphile_empty
            figures=$(graphile latency "$(url bench)" 400 $from)
            say "queue_graphile_latency_${from}_p50" "${figures% *}" ms
            say "queue_graphile_latency_${from}_p99" "${figures#* }" ms
        fi
        fresh bench tide_empty
        figures=$(engine latency "$(url bench)" 400 $from)
        say "queue_latency_${from}_p50" "${figures% *}" ms "queue_graphile_latency_${from}_p50"
        say "queue_latency_${from}_p99" "${figures#* }" ms "queue_graphile_latency_${from}_p99"
    done
}

# ---- while another transaction stays open ------------------------------------------------------

# Runs a drain with and without one, alternately.
held_drain() { # NAME TEMPLATE COMMAND...
    local name=$1 template=$2 round free='' held=''
    shift 2
    for ((round = 0; round < rounds; round++)); do
        fresh bench "$template"
        best=$free
        keep_best "$("$@")"
        free=$best
        fresh bench "$template"
        exec {hold}> >(raw hold "$(url bench)" >"$home/held")
        local holder=$!
        until [ -s "$home/held" ]; do sleep 0.01; done
        best=$held
        keep_best "$("$@")"
        held=$best
        exec {hold}>&-
        wait "$holder" || true
        : >"$home/held"
    done
    say "${name}_free" "$free" jobs/s
    say "${name}_held" "$held" jobs/s "${name}_free"
}

held() {
    make_tide
    make_graphile
    held_drain queue_raw_drain tide_full raw drain "$(url bench)" "$jobs" 1 500
    if [ -n "$no_peers" ]; then
        skip queue_graphile_drain_held "$no_peers"
    else
        held_drain queue_graphile_drain graphile_full \
            graphile drain "$(url bench)" "$jobs" "${graphile_best[@]}" 1
    fi
    held_drain queue_drain tide_full engine drain "$(url bench)" "$jobs" "$workers" 1
}

# ---- idle ----------------------------------------------------------------------------------------

# Statements of other sessions, from pg_stat_statements of a separate cluster.
statements() {
    sql postgres "SELECT coalesce(sum(calls), 0) FROM pg_stat_statements s
        JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = 'bench'"
}
idle_one() { # NAME BESIDE COMMAND...
    local name=$1 beside=$2 seconds=10 before after share
    shift 2
    coproc idler { "$@" "$(url bench)" "$seconds"; }
    local from=${idler[0]} pid=$!
    read -r _ <&"$from"
    before=$(statements)
    read -r share <&"$from"
    after=$(statements)
    wait "$pid"
    say "${name}_cpu" "$share" % "${beside}_cpu"
    say "${name}_statements" "$(((after - before) * 60 / seconds))" per_min "${beside}_statements"
}
idle() {
    local pg_dir
    start_pg --set shared_preload_libraries=pg_stat_statements
    if [ -n "$no_pg" ]; then
        skip queue_idle "$no_pg"
        no_pg=
        return
    fi
    sql postgres "CREATE EXTENSION pg_stat_statements"
    if [ -n "$no_peers" ]; then
        skip queue_graphile_idle "$no_peers"
    else
        sql postgres "CREATE DATABASE bench"
        graphile migrate "$(url bench)"
        idle_one queue_graphile_idle '' graphile idle
        sql postgres "DROP DATABASE bench"
    fi
    sql postgres "CREATE DATABASE bench"
    idle_one queue_idle queue_graphile_idle engine idle
}

# ---- SQLite ----------------------------------------------------------------------------------------

sqlite() {
    local round few ours='' ours_in='' own='' full='' own_2='' own_in=''
    few=$((jobs / 5)) # it is slower by as much
    for ((round = 0; round < rounds; round++)); do
        rm -rf "$home/sqlite"
        best=$ours_in
        keep_best "$(engine enqueue "$home/sqlite" "$jobs" 0)"
        ours_in=$best
        best=$ours
        keep_best "$(engine drain "$home/sqlite" "$jobs" "$workers" 1)"
        ours=$best
        [ -z "$no_peers" ] || continue
        best=$own_in
        rm -f "$home"/plain*
        keep_best "$(plainjob enqueue "$home/plain.db" "$few" 1000 own)"
        own_in=$best
        cp "$home/plain.db" "$home/plain2.db"
        cp "$home/plain.db" "$home/plain3.db"
        sync -f "$home"
        best=$own
        keep_best "$(plainjob drain "$home/plain.db" "$few" 1 own)"
        own=$best
        best=$own_2
        keep_best "$(plainjob drain "$home/plain2.db" "$few" 2 own)"
        own_2=$best
        best=$full
        keep_best "$(plainjob drain "$home/plain3.db" "$few" 1 full)"
        full=$best
    done
    if [ -n "$no_peers" ]; then
        skip queue_plainjob_drain "$no_peers"
    else
        say queue_plainjob_enqueue "$own_in" jobs/s
        say queue_plainjob_drain_full "$full" jobs/s
        say queue_plainjob_drain_1 "$own" jobs/s
        say queue_plainjob_drain_2 "$own_2" jobs/s
        best=$own
        keep_best "$own_2"
        say queue_plainjob_drain_best "$best" jobs/s
    fi
    say queue_sqlite_enqueue "$ours_in" jobs/s queue_plainjob_enqueue
    say queue_sqlite_drain "$ours" jobs/s queue_plainjob_drain_best
    say queue_sqlite_drain_to_full "$ours" jobs/s queue_plainjob_drain_full
}

# ---- main ------------------------------------------------------------------------------------------

install_peers
for section in $sections; do
    case $section in
    sqlite) sqlite ;;
    drain | enqueue | latency | held | idle)
        if [ -z "$no_pg$pg_dir" ] && [ "$section" != idle ]; then
            start_pg
        fi
        if [ -n "$no_pg" ]; then
            skip "queue_$section" "$no_pg"
        else
            "$section"
        fi
        ;;
    *)
        echo "run.sh: no section $section" >&2
        exit 2
        ;;
    esac
done
