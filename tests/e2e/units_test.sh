#!/usr/bin/env bash
# The units for systemd are accepted by systemd itself, and say what docs/fleet.md promises
# of them.
set -uo pipefail
tidemark=$(realpath "$1") system=$2 user=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
fail() {
    echo "FAILED: line ${BASH_LINENO[0]}: $1" >&2
    failed=1
}

# What a sandbox without these would not be.
for line in Type=notify ProtectSystem=strict NoNewPrivileges=yes PrivateTmp=yes \
    CapabilityBoundingSet= MemoryDenyWriteExecute=yes SystemCallFilter=@system-service \
    'RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6' StateDirectory=tidemark \
    Environment=PGPASSFILE=/etc/tidemark/pgpass User=tidemark Restart=on-failure SuccessExitStatus=5; do
    grep -qxF -- "$line" "$system" || fail "the system's unit lacks $line"
done
for line in Type=notify NoNewPrivileges=yes MemoryDenyWriteExecute=yes \
    SystemCallFilter=@system-service Restart=on-failure SuccessExitStatus=5; do
    grep -qxF -- "$line" "$user" || fail "the user's unit lacks $line"
done
# Passwords never in argv: neither unit names a URL there.
grep -hE '^ExecStart=.*(://|--ledger)' "$system" "$user" && fail "a ledger in ExecStart"

if ! command -v systemd-analyze >/dev/null; then
    [ "$failed" = 0 ] && echo "skipped: systemd-analyze is not installed; the rest is good"
    exit $failed
fi
# Verified with the program that was built: the installed one may not be there.
for unit in "$system" "$user"; do
    name=$dir/$(basename "$unit" | sed 's/\.user\././')
    sed -E "s|^ExecStart=[^ ]*/tidemark |ExecStart=$tidemark |" "$unit" >"$name"
    scope=()
    [ "$unit" = "$user" ] && scope=(--user)
    said=$(XDG_RUNTIME_DIR=$dir systemd-analyze verify --man=no ${scope[@]+"${scope[@]}"} "$name" 2>&1)
    status=$?
    # Complaints about other units of this machine are not ours.
    ours=$(grep -F tidemark-worker <<<"$said")
    { [ "$status" = 0 ] && [ -z "$ours" ]; } || fail "systemd-analyze verify $unit: $said"
    rm "$name"
done
exit $failed
