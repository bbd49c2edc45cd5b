#!/usr/bin/env bash
# units_test.sh TIDEMARK SERVE WORKER USER_SERVE USER_WORKER SYNC TIMER: the units for systemd are accepted by systemd
# itself, and say what docs/serve.md and docs/fleet.md promise of them.
set -uo pipefail
tidemark=$(realpath "$1") systems=("$2" "$3") users=("$4" "$5") sync=$6 timer=$7
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
    User=tidemark Restart=on-failure SuccessExitStatus=5 WatchdogSec=60s; do
    for unit in "${systems[@]}"; do
        grep -qxF -- "$line" "$unit" || fail "$unit lacks $line"
    done
done
grep -qxF Environment=PGPASSFILE=/etc/tidemark/pgpass "${systems[1]}" || fail "no password file"
for line in Type=notify NoNewPrivileges=yes MemoryDenyWriteExecute=yes \
    SystemCallFilter=@system-service Restart=on-failure SuccessExitStatus=5 WatchdogSec=60s; do
    for unit in "${users[@]}"; do
        grep -qxF -- "$line" "$unit" || fail "$unit lacks $line"
    done
done
for unit in "${systems[0]}" "${users[0]}"; do
    grep -qE '^ExecStart=.*/tidemark .*serve$' "$unit" && grep -qxF 'ExecReload=/bin/kill -HUP $MAINPID' "$unit" ||
        fail "$unit does not start or reload serve"
done
# One sync now and then: a system each, by a timer that waits for the end of the last one.
for line in Type=oneshot NoNewPrivileges=yes MemoryDenyWriteExecute=yes SystemCallFilter=@system-service \
    'SuccessExitStatus=3 5' TimeoutStartSec=infinity; do
    grep -qxF -- "$line" "$sync" || fail "$sync lacks $line"
done
for line in OnUnitInactiveSec=15min WantedBy=timers.target; do
    grep -qxF -- "$line" "$timer" || fail "$timer lacks $line"
done
command=$(sed -n 's/^ExecStart=[^ ]* //p' "$sync")
for system in mail console drive; do
    "$tidemark" --home "$dir/home" ${command//%i/$system} >"$dir/out" 2>&1
    [ $? != 2 ] || fail "a wrong command line: $command: $(cat "$dir/out")"
done
# Passwords never in argv: no unit names a URL there.
grep -hE '^ExecStart=.*(://|--ledger)' "${systems[@]}" "${users[@]}" && fail "a ledger in ExecStart"

if ! command -v systemd-analyze >/dev/null; then
    [ "$failed" = 0 ] && echo "skipped: systemd-analyze is not installed; the rest is good"
    exit $failed
fi
# Verified with the program that was built: the installed one may not be there.
for unit in "${systems[@]}" "${users[@]}" "$sync"; do
    name=$dir/$(basename "$unit" | sed 's/\.user\././')
    sed -E "s|^ExecStart=[^ ]*/tidemark |ExecStart=$tidemark |" "$unit" >"$name"
    scope=()
    [[ $unit == *.user.service ]] && scope=(--user)
    said=$(XDG_RUNTIME_DIR=$dir systemd-analyze verify --man=no ${scope[@]+"${scope[@]}"} "$name" 2>&1)
    status=$?
    # Complaints about other units of this machine are not ours.
    ours=$(grep -E 'tidemark(-worker|-sync@.*)?\.(service|timer)' <<<"$said")
    { [ "$status" = 0 ] && [ -z "$ours" ]; } || fail "systemd-analyze verify $unit: $said"
    [ "$unit" = "$sync" ] || rm "$name"
done
cp "$timer" "$dir"
said=$(XDG_RUNTIME_DIR=$dir systemd-analyze verify --man=no --user "$dir/$(basename "$timer")" 2>&1) &&
    ! grep -q 'tidemark-sync@' <<<"$said" || fail "systemd-analyze verify $timer: $said"
exit $failed
