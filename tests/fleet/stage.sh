# stage.sh: what the scripts of the fleet begin with.  Sourced; leaves a temporary directory in
# $dir, the way to clusters in $cluster, and a count of failures.  Processes belong into pid[],
# clusters (URLs or directories) into clusters[]: both end with the script.
set -uo pipefail
here=$(dirname "$(realpath "$0")")
cluster=$here/../support/pg_cluster.sh
dir=$(mktemp -d)
declare -A pid
clusters=()
failed=0
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1" >&2
    failed=$((failed + 1))
}
end() {
    local one
    for one in "${pid[@]}"; do kill -KILL "$one" 2>/dev/null; done
    wait 2>/dev/null
    for one in "${clusters[@]}"; do "$cluster" stop "$one"; done
    rm -rf "$dir"
}
trap end EXIT
# cluster_start ARGUMENTS...: its URL in $url; skips the test where there is no PostgreSQL.
cluster_start() {
    url=$("$cluster" start "$@") || exit
    clusters+=("$url")
}
query() { psql -X -q -t -A -v ON_ERROR_STOP=1 -d "$url" -c "$1"; }
until_true() { # SECONDS COMMAND...
    local left=$(($1 * 10))
    shift
    until "$@" >/dev/null 2>&1; do
        left=$((left - 1))
        [ "$left" -gt 0 ] || return 1
        sleep 0.1 # until it has come, not for it to come
    done
}
