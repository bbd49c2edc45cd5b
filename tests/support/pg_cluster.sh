#!/usr/bin/env bash
# A private PostgreSQL for tests: a cluster of its own in a temporary directory, reached
# by a unix socket in that directory and by nothing else.
#
#   pg_cluster.sh start [--fast] [--dir DIR] [--set NAME=VALUE]...
#       prints the URL of a fresh database.  DIR is made when it is not there.
#   pg_cluster.sh stop URL|DIR
#       stops it, as a test may: at once.  A directory that `start` made goes with it.
#   pg_cluster.sh run [--fast] [--or-without] COMMAND...
#       runs COMMAND with TIDE_TEST_POSTGRES=URL and stops the cluster, whatever happened.
#       Exit status: the command's.
#   pg_cluster.sh template
#       makes a cluster that is never started and prints its directory; `stop` removes it.
#       With TIDE_TEST_PG_TEMPLATE set to it, `start` and `run` copy it, which is faster than
#       making one each time.
#
# --fast: nothing is synced; for tests that do not pull plugs.
# Without PostgreSQL it prints `skipped: PostgreSQL is not installed` and exits with 77,
# or with --or-without runs the command all the same, without the variable.
#
# PostgreSQL refuses to run as root: then everything of it is done as `postgres`.
set -euo pipefail

me=$(basename "$0")
say() { echo "$me: $*" >&2; }
die() { say "$@"; exit 1; }

# The directory of its programs: the newest that has them all.
find_programs() {
    local dir
    for dir in "$(pg_config --bindir 2>/dev/null || true)" \
        $(printf '%s\n' /usr/lib/postgresql/*/bin /usr/local/pgsql/bin | sort -Vr); do
        if [ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ] && [ -x "$dir/postgres" ]; then
            echo "$dir"
            return 0
        fi
    done
    return 1
}

# As whoever may run a server.  It is started where that one may be.
as_server() {
    if [ "$(id -u)" = 0 ]; then
        (cd / && exec runuser -u postgres -- "$@")
    else
        "$@"
    fi
}

can_run() {
    programs=$(find_programs) || return 1
    [ "$(id -u)" != 0 ] || { id postgres && command -v runuser; } >/dev/null 2>&1
}

# make_data LOG: $dir/data, a copy of the template where there is one.
make_data() {
    local template=${TIDE_TEST_PG_TEMPLATE:-}
    if [ -n "$template" ]; then
        as_server cp -a --reflink=auto "$template/data" "$dir/data"
        return
    fi
    as_server "$programs/initdb" -D "$dir/data" -U postgres -A trust -E UTF8 --locale=C \
        --no-sync --no-instructions >"$1" 2>&1 ||
        { cat "$1" >&2; die "initdb failed"; }
}

# make_dir: a directory of its own in $dir, which `stop` removes.  Not below a long TMPDIR:
# the path of a socket has at most 107 bytes.
make_dir() {
    dir=$(mktemp -d /tmp/tide-pg.XXXXXX)
    [ "$(id -u)" != 0 ] || chown postgres "$dir"
    as_server touch "$dir/made"
}

start() { # prints nothing; sets url and dir
    local fast=0 settings=()
    dir=
    while [ $# -gt 0 ]; do
        case $1 in
        --fast) fast=1 ;;
        --dir) dir=$2 && shift ;;
        --set) settings+=("$2") && shift ;;
        *) die "$1: unknown" ;;
        esac
        shift
    done
    if [ -z "$dir" ]; then
        make_dir
    else
        mkdir -p "$dir"
        [ "$(id -u)" != 0 ] || chown postgres "$dir"
    fi
    local log="$dir/log"
    if [ ! -f "$dir/data/PG_VERSION" ]; then
        make_data "$dir/initdb.log"
        {
            echo "listen_addresses = ''"
            echo "unix_socket_directories = '$dir'"
            echo "max_connections = 60"
            echo "shared_buffers = 64MB"
            echo "log_min_messages = warning"
            echo "log_line_prefix = '%m %p %q%a '"
            if [ "$fast" = 1 ]; then
                echo "fsync = off"
                echo "synchronous_commit = off"
                echo "full_page_writes = off"
                echo "autovacuum_naptime = 1h"
            fi
            for setting in ${settings[@]+"${settings[@]}"}; do
                echo "${setting%%=*} = '${setting#*=}'"
            done
        } | as_server tee -a "$dir/data/postgresql.conf" >/dev/null
    fi
    as_server "$programs/pg_ctl" -D "$dir/data" -l "$log" -w -t 60 start >"$dir/start.log" 2>&1 ||
        { cat "$dir/start.log" "$log" >&2; die "the server did not start"; }
    local name="tide_$$_$(date +%N)"
    as_server "$programs/psql" -q -X -h "$dir" -U postgres -d postgres \
        -c "CREATE DATABASE $name" >&2
    url="postgres:///$name?host=$dir&user=postgres"
}

# By its id, which stands in its directory: pg_ctl ends no other.
stop() {
    local at=$1
    case $at in
    postgres*://*) at=${at#*host=} && at=${at%%&*} ;;
    esac
    if [ -f "$at/data/postmaster.pid" ]; then
        as_server "$programs/pg_ctl" -D "$at/data" -m immediate -w stop >/dev/null ||
            say "$at: could not be stopped"
    fi
    if [ -f "$at/made" ]; then
        rm -rf "$at"
    fi
}

run() {
    local options=() or_without=0
    while [ $# -gt 0 ]; do
        case $1 in
        --fast) options+=("$1") ;;
        --or-without) or_without=1 ;;
        --set) options+=("$1" "$2") && shift ;;
        *) break ;;
        esac
        shift
    done
    [ $# -gt 0 ] || die "run: which command?"
    if ! can_run; then
        echo "skipped: PostgreSQL is not installed"
        [ "$or_without" = 1 ] || exit 77
        unset TIDE_TEST_POSTGRES
        exec "$@"
    fi
    dir=
    child=
    # The command runs beside us, so that a signal does not wait for it.
    trap '[ -z "$child" ] || kill -TERM "$child" 2>/dev/null || true; exit 143' INT TERM HUP
    trap '[ -z "$dir" ] || stop "$dir"' EXIT
    start ${options[@]+"${options[@]}"}
    TIDE_TEST_POSTGRES=$url "$@" <&0 &
    child=$!
    local status=0
    wait "$child" || status=$?
    child=
    if [ "$status" != 0 ] && [ -s "$dir/log" ]; then
        say "the end of the server's log:"
        tail -n 20 "$dir/log" >&2
    fi
    exit "$status"
}

[ $# -gt 0 ] || die "start, stop, run or template"
verb=$1
shift
case $verb in
start)
    can_run || { echo "skipped: PostgreSQL is not installed" >&2; exit 77; }
    start "$@"
    echo "$url"
    ;;
stop)
    can_run || exit 0
    stop "$1"
    ;;
run) run "$@" ;;
template)
    can_run || { echo "skipped: PostgreSQL is not installed" >&2; exit 77; }
    make_dir
    unset TIDE_TEST_PG_TEMPLATE
    make_data "$dir/initdb.log"
    echo "$dir"
    ;;
*) die "$verb: start, stop, run or template" ;;
esac
