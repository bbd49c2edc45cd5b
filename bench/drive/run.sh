#!/usr/bin/env bash
# run.sh BUILD [--small] [--hours] [--files N] [--clients "rclone onedrive tidemark"] [PART...]: a drive's sync beside rclone and
# Debian's onedrive, in one run on the same server.  One JSON object a line; script/bench drive makes a table of them.
#
# Parts: small converged million large watch overlap (all of them unless named).  All programs use https and Microsoft's
# own host names, in a network namespace with a hosts file and a temporary certificate authority (tests/support/private_names.sh).
# The other programs are run where ours is compared with them, and no longer than it takes to know that one is the slower of the
# two; with --hours in all of "small" and "converged", to their end.
# --small: a tenth of the files and bytes or less.  State goes to $TMPDIR (default /tmp), which must be on the disk whose syncs
# are to be measured.  What cannot run gets a row that says why.
set -euo pipefail
here=$(realpath "$0")
build=$(realpath "$1")
all_arguments=("$@")
shift

files=10000 converged=100000 million=1000000 large=10000000000 changes=100 overlap=1000000000 overlap_rate=32MiB
clients="rclone onedrive tidemark" hours=
parts=()
while [ $# -gt 0 ]; do
    case $1 in
    --small) files=1000 converged=5000 million=50000 large=500000000 changes=30 overlap=128000000 overlap_rate=16MiB ;;
    --files) files=$2 && shift ;;
    --hours) hours=1 ;;
    --clients) clients=$2 && shift ;;
    small | converged | million | large | watch | overlap) parts+=("$1") ;;
    *) echo "run.sh: unknown part or option $1" >&2 && exit 2 ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(small converged million large watch overlap)

say() { # NAME VALUE UNIT [BASE TO]
    jq -nc --arg name "$1" --argjson value "$2" --arg unit "$3" --arg base "${4:-}" --arg to "${5:-}" \
        '{name: $name, value: $value, unit: $unit}
         + if $base == "" then {} else {ratio: ($value / ($base | tonumber)), to: $to} end'
}
say_skipped() { jq -nc --arg name "$1" --arg why "$2" '{name: $name, skipped: $why}'; }
# shellcheck source=tests/support/private_names.sh
. "$(dirname "$here")/../../tests/support/private_names.sh"
skip() { # instead of the one of private_names.sh: a row, not a line
    say_skipped drive "$1"
    exit 0
}
enter_namespace "jq python3" "$here" "${all_arguments[@]}"
make_names "${microsoft_names[@]}"
mount --bind "$dir/ca.pem" /etc/ssl/certs/ca-certificates.crt # libcurl's own default
mount -t proc proc /proc # of this namespace, to see how much memory a program has
unset DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR                 # files, not the user's keyring
api=https://graph.microsoft.com
# shellcheck source=bench/drive/clients.sh
. "$(dirname "$here")/clients.sh"
# shellcheck source=bench/drive/parts.sh
. "$(dirname "$here")/parts.sh"

# start_cloud --latency MS --drives N[,size=BYTES]: a new cloud, with a user for each program.
start_cloud() {
    local client options=()
    for client in onedrive rclone tidemark; do # auto-consent signs in the first
        options+=(--mailbox "$(user_of "$client")=0" --token "$client=$(user_of "$client")"
            --drive "$(user_of "$client")=$4")
    done
    rm -rf rclone onedrive tidemark home conf bisync
    mkfifo ready
    "$build/cloudbox/serve/tidemark-cloud" --listen 127.0.0.1:443 --tls cert.pem,key.pem --auto-consent --quota off --quiet \
        --seed 7 --latency "$2" "${options[@]}" >ready 2>cloud.log &
    cloud=$!
    read -r _ <ready || { cat cloud.log >&2; exit 1; }
    rm ready
}
stop_cloud() {
    kill "$cloud"
    wait "$cloud" || true
}
# What is in a program's drive: "file SIZE HASH PATH", "folder 0 - PATH".
tree() { curl -sSf "$api/_cloud/drive?user=$(user_of "$1")"; }

wanted=$clients clients=
for client in $wanted; do
    case $client in
    tidemark) "$build/src/cli/tidemark" drive --help >/dev/null 2>&1 ||
        { say_skipped "drive_$client" "this program has no drives yet" && continue; } ;;
    *) command -v "$client" >/dev/null || { say_skipped "drive_$client" "$client is not installed" && continue; } ;;
    esac
    clients+=" $client"
done
for part in "${parts[@]}"; do
    case $part in
    small | converged) ;;
    *) [[ "$clients" == *tidemark* ]] || { say_skipped "drive_$part" "this program has no drives yet" && continue; } ;;
    esac
    "part_$part"
done
