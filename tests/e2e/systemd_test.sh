#!/usr/bin/env bash
# systemd_test.sh TIDEMARK CLOUD SYSUSERS SERVE WORKER USER_SERVE USER_WORKER: the units under a systemd of its own.
# It is process 1 of private namespaces, on a copy of this machine's files that nobody else
# sees (an overlay in memory), with a network of its own; whatever happens in there ends with
# it.  Shown: it waits for its server, is ready when it says so, works inside its sandbox with a
# password and a role of few rights, is restarted when it dies and when it hangs, and both ways
# to end (0 and 5) are good ones; and the other unit, under the service manager of a person.
# Skips itself where that cannot be had.
skip() {
    echo "skipped: $1"
    exit 77
}
if [ "${1:-}" = inside ]; then
    # Process 1 of the namespaces: makes the files, and becomes systemd.
    set -eu
    place=$2 pg=$3
    cd "$place/root"
    mkdir -p proc sys dev run tmp srv/pg old etc/tidemark
    mount -t proc proc proc
    mount --bind proc/sys proc/sys
    mount -o remount,bind,ro proc/sys
    mount -t sysfs -o ro sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs tmpfs run
    mount -t tmpfs tmpfs tmp
    mount -t tmpfs -o mode=755 tmpfs dev
    mknod dev/null c 1 3
    mknod dev/zero c 1 5
    mknod dev/full c 1 7
    mknod dev/random c 1 8
    mknod dev/urandom c 1 9
    mknod dev/tty c 5 0
    chmod 666 dev/*
    mkdir dev/shm dev/pts
    mount -t tmpfs tmpfs dev/shm
    mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    mount --bind "$pg" srv/pg
    pivot_root . old
    umount -l /old
    mount --make-rshared / # as systemd wants it: credentials and sandboxes are mounts
    exec env -i container=tide PATH=/usr/sbin:/usr/bin:/sbin:/bin "$4" --system --unit=tide.target \
        --show-status=0 --log-target=journal </dev/null
fi

. "$(dirname "$0")/stage.sh"
sysusers=$3 unit_serve=$4 unit=$5 unit_serve_user=$6 unit_user=$7
rm -rf "$dir"
[ "$(id -u)" = 0 ] || skip "only root can make such a place"
systemd=$(ls /usr/lib/systemd/systemd /lib/systemd/systemd 2>/dev/null | head -n 1)
[ -n "$systemd" ] && command -v systemctl systemd-sysusers journalctl unshare nsenter pivot_root >/dev/null ||
    skip "systemd is not installed"
cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$cgroups" ] && [ -w "$cgroups" ] || skip "no groups of processes (cgroup2) can be made here"
support=$(dirname "$(realpath "$0")")/../support
dir=$(mktemp -d /tmp/tide-systemd.XXXXXX)
url=
group=$cgroups/tide-test-$$
init=
end() {
    [ -z "$init" ] || kill -KILL "$init" 2>/dev/null # with it all that runs in there
    wait 2>/dev/null
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null
    [ -z "$url" ] || "$support/pg_cluster.sh" stop "$url"
    ! mountpoint -q "$dir/root" || umount -l "$dir/root"
    ! mountpoint -q "$dir/files" || umount -l "$dir/files"
    rm -rf "$dir"
}
trap end EXIT
mkdir "$dir/root" "$dir/files"
mount -t tmpfs -o mode=755 tmpfs "$dir/files" 2>/dev/null && mkdir "$dir/files/upper" "$dir/files/work" &&
    mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/files/upper,workdir=$dir/files/work" "$dir/root" 2>/dev/null ||
    skip "no copy of the files can be had (overlay)"
mkdir "$group" 2>/dev/null || skip "no group of processes can be made here"
url=$("$support/pg_cluster.sh" start --fast 2>"$dir/pg.err") || skip "$(cat "$dir/pg.err")"
pg=${url#*host=} && pg=${pg%%&*}
chmod 755 "$pg"
database=${url#postgres:///} && database=${database%%\?*}

# ---- docs/fleet.md, step by step: roles, tables, password
psql -qX "$url" -c "CREATE ROLE tidemark LOGIN PASSWORD 'dr1ftwood'" || fail "CREATE ROLE"
"$tidemark" --home "$dir/owner" --ledger "$url" ledger migrate --role tidemark >"$dir/out" 2>&1 || fail "migrate: $(cat "$dir/out")"
{ echo "local all tidemark scram-sha-256"; cat "$pg/data/pg_hba.conf"; } >"$dir/hba"
cat "$dir/hba" >"$pg/data/pg_hba.conf"
psql -qXAt "$url" -c "SELECT pg_reload_conf()" >/dev/null

# ---- the place, and a systemd that starts nothing by itself
root=$dir/root
rm -rf "$root/etc/systemd/system" "$root"/usr/lib/systemd/system-generators "$root"/usr/lib/systemd/system/*.wants \
    "$root"/usr/lib/systemd/system/*.requires "$root/etc/systemd/user" "$root"/usr/lib/systemd/user/*.wants "$root"/usr/lib/sysusers.d "$root"/etc/sysusers.d "$root/etc/tidemark" \
    "$root/var/lib/tidemark"
mkdir -p "$root/etc/systemd/system/tidemark-worker.service.d" "$root/usr/lib/sysusers.d" "$root/etc/tidemark"
cp "$unit" "$root/etc/systemd/system/tidemark-worker.service"
cp "$unit_serve" "$root/etc/systemd/system/tidemark.service"
mkdir -p "$root/etc/systemd/user"
cp "$unit_user" "$root/etc/systemd/user/tidemark-worker.service"
cp "$unit_serve_user" "$root/etc/systemd/user/tidemark.service"
program=$(sed -n 's/^ExecStart=\([^ ]*\) .*/\1/p' "$unit")
mkdir -p "$root$(dirname "$program")"
cp "$tidemark" "$root$program"
chmod 755 "$root$program"
cp "$sysusers" "$root/usr/lib/sysusers.d/tidemark.conf"
sed -i '/^tidemark:/d' "$root/etc/passwd" "$root/etc/group" "$root/etc/shadow" "$root/etc/gshadow" 2>/dev/null
systemd-sysusers --root="$root" 2>"$dir/out" || fail "systemd-sysusers: $(cat "$dir/out")"
printf '[Unit]\nDescription=Nothing but what is asked for\nDefaultDependencies=no\nWants=systemd-journald.service\n' \
    >"$root/etc/systemd/system/tide.target"
# Quicker than in life, and systemd's own words about each end: what is shown stays the same.
cat >"$root/etc/systemd/system/tidemark-worker.service.d/quick.conf" <<'CONF'
[Service]
RestartSec=200ms
WatchdogSec=4s
ExecStopPost=+/bin/sh -c 'echo "$SERVICE_RESULT $EXIT_CODE $EXIT_STATUS" >/run/ended'
CONF
mkdir -p "$root/etc/systemd/system/tidemark.service.d"
cp "$root/etc/systemd/system/tidemark-worker.service.d/quick.conf" "$root/etc/systemd/system/tidemark.service.d/"
echo "*:*:*:tidemark:dr1ftwood" >"$root/etc/tidemark/pgpass"
chmod 600 "$root/etc/tidemark/pgpass"
chown "$(awk -F: '$1 == "tidemark" { print $3 }' "$root/etc/passwd")" "$root/etc/tidemark/pgpass"
far="postgres://tidemark@/$database?host=/srv/pg"
printf '%s\n' "TIDEMARK_LEDGER_URL=$far" TIDEMARK_WORKERS_STOP_GRACE=100ms TIDEMARK_FLEET_LEASE=3s TIDEMARK_FLEET_LOOK=1s \
    TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 >"$root/etc/tidemark/worker.env"
echo 00000000000000000000000000007137 >"$root/etc/machine-id"

(
    echo "$BASHPID" >"$group/cgroup.procs" || exit 1
    exec unshare --mount --propagation private --uts --ipc --net --cgroup --pid --fork --kill-child \
        "$(realpath "$0")" inside "$dir" "$pg" "$systemd"
) >"$dir/log" 2>&1 &
outer=$!
in_there() { nsenter -a -t "$init" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
booted() {
    init=$(pgrep -P "$outer") && [ "$(cat "/proc/$init/comm")" = systemd ] && in_there systemctl is-system-running | grep -qx running
}
until_true 20 booted || skip "systemd does not come up in a place like this: $(cat "$dir/log")"

name=tidemark-worker # of the unit that is tried
show() { in_there systemctl show -P "$1" "$name"; }
is() { [ "$(show "$1")" = "$2" ]; }
journal() { in_there journalctl --no-pager -o cat -u "$name" | tail -n "${1:-8}"; }
server_do() {
    local ctl
    ctl=$(ls /usr/lib/postgresql/*/bin/pg_ctl "$(pg_config --bindir 2>/dev/null)/pg_ctl" 2>/dev/null | sort -V | tail -1)
    (cd / && runuser -u postgres -- "$ctl" -D "$pg/data" -l "$pg/log" -w -t 60 "$@") >/dev/null || fail "pg_ctl $*"
}
by_hand() { # as docs/fleet.md says it
    in_there runuser -u tidemark -- env "TIDEMARK_LEDGER_URL=$far" PGPASSFILE=/etc/tidemark/pgpass \
        "$program" --home /var/lib/tidemark "$@"
}

# ---- its server is not there yet: it waits, and says so, until it is
server_do stop -m fast
in_there systemctl start tidemark-worker 2>/dev/null || fail "it does not wait for its server: $(journal)"
status() { show StatusText | grep -q "$1"; }
until_true 20 status "waiting for postgres://tidemark@" || fail "its status without a server: $(show StatusText)"
server_do start
until_true 30 status "working on postgres://tidemark@" || fail "its status: $(show StatusText): $(journal)"
is ActiveState active || fail "it is $(show ActiveState)"
[ "$(show NRestarts)" = 0 ] || fail "it did not wait, it was started again"
in_there systemctl stop tidemark-worker || fail "stop"

# ---- started by hand: ready when that returns, and locked up
in_there systemctl start tidemark-worker || fail "it does not start: $(journal)"
is ActiveState active || fail "started and not active: $(show ActiveState)"
[ "$(by_hand ledger members --json | jq '[.members[] | select(.dead | not)] | length')" = 1 ] || fail "ready and not a member"
# Never 0: a signal to that would be for all of us.
main() {
    local pid
    pid=$(show MainPID)
    [ "$pid" -gt 0 ] && echo "$pid" || echo 999999999
}
status_of() { in_there sed -n "s/^$1:[[:space:]]*//p" "/proc/$(main)/status"; }
[ "$(status_of CapEff)" = 0000000000000000 ] || fail "it has capabilities: $(status_of CapEff)"
[ "$(status_of CapBnd)" = 0000000000000000 ] || fail "it could have capabilities: $(status_of CapBnd)"
[ "$(status_of NoNewPrivs)" = 1 ] || fail "it could get new privileges"
[ "$(status_of Seccomp)" = 2 ] || fail "it has no filter of system calls"
[ "$(status_of Uid | cut -f 1)" = "$(in_there id -u tidemark)" ] || fail "it is not the user tidemark"
in_there nsenter -t "$(main)" -m touch /etc/x /usr/x /var/lib/x 2>/dev/null && fail "it can write outside of its directory"

# ---- real work in there
mkfifo "$dir/ready"
cp "$cloud" "$root/usr/bin/tidemark-cloud"
in_there tidemark-cloud --listen 127.0.0.1:0 --quiet --seed 5 --quota off --mailbox "$user=60" --token ta="$user" >"$dir/ready" &
disown
read -r _ origin <"$dir/ready"
by_hand account add gmail "$user" --endpoint "$origin" --bearer ta >"$dir/out" 2>&1 || fail "account add: $(cat "$dir/out")"
by_hand mail sync --quiet --json >"$dir/out" 2>&1 || fail "mail sync: $(cat "$dir/out") $(journal)"
[ "$(jq '.accounts[0].stored' "$dir/out")" = 60 ] || fail "stored: $(cat "$dir/out")"
[ "$(jq .handed_over "$dir/out")" = true ] || fail "it was not the unit that did it: $(cat "$dir/out")"
by_hand mail verify >"$dir/out" 2>&1 || fail "mail verify: $(cat "$dir/out")"

# ---- it dies, and it hangs: it is started again
restarts=$(show NRestarts)
more_restarts() { [ "$(show NRestarts)" -gt "$restarts" ]; }
ended() { [ "$(in_there cat /run/ended)" = "$1" ]; }
again() { more_restarts && is ActiveState active; }
in_there kill -KILL "$(main)"
until_true 20 again || fail "not restarted after kill -9: $(journal)"
ended "signal killed KILL" || fail "that was not the kill: $(in_there cat /run/ended)"
restarts=$(show NRestarts)
in_there kill -STOP "$(main)"
until_true 30 again || fail "not restarted by the watchdog: $(journal)"
[[ "$(in_there cat /run/ended)" == watchdog* ]] || fail "that was not the watchdog: $(in_there cat /run/ended)"

# ---- the resident process: no server at all, and the same sandbox; its start stops the worker of that home
name=tidemark
in_there mv /var/lib/tidemark/archive /var/lib/tidemark/archive.worker # belongs to the ledger of the other one
alone() { in_there runuser -u tidemark -- "$program" --home /var/lib/tidemark "$@"; }
in_there systemctl start tidemark || fail "serve does not start: $(journal)"
is ActiveState active || fail "serve is $(show ActiveState)"
worker_ended() { [ "$(in_there systemctl show -P ActiveState tidemark-worker)" = inactive ]; }
until_true 20 worker_ended || fail "a worker beside serve"
health() { in_there curl -sSf http://127.0.0.1:7433/healthz | grep -qF '{"ok":true}'; }
health || fail "ready, and the page does not answer: $(journal)"
[ "$(status_of CapBnd)" = 0000000000000000 ] || fail "serve could have capabilities: $(status_of CapBnd)"
[ "$(status_of Seccomp)" = 2 ] || fail "serve has no filter of system calls"
alone account add gmail "$user" --endpoint "$origin" --bearer ta >"$dir/out" 2>&1 || fail "account add: $(cat "$dir/out")"
alone schedule add --at 'every 1s' mail sync >"$dir/out" 2>&1 || fail "schedule add: $(cat "$dir/out")"
scheduled() { alone mail status --json | jq -e '.accounts[0].stored == 60'; }
until_true 60 scheduled || fail "the schedule did not fetch: $(alone schedule list --json) $(journal)"
in_there systemctl reload tidemark || fail "reload: $(journal)"
reloaded() { journal 50 | grep -q 'settings reloaded'; }
until_true 20 reloaded || fail "not reloaded: $(journal)"
restarts=$(show NRestarts)
in_there kill -KILL "$(main)"
until_true 20 again || fail "serve is not restarted after kill -9: $(journal)"
restarts=$(show NRestarts)
in_there kill -STOP "$(main)"
until_true 30 again || fail "serve is not restarted by the watchdog: $(journal)"
[[ "$(in_there cat /run/ended)" == watchdog* ]] || fail "that was not the watchdog: $(in_there cat /run/ended)"
# Stopped in the middle of a scheduled run, it ends within 6 s (and systemd's own moment), with its job put back.
in_there curl -sSf -o /dev/null "$origin/_cloud/faults" -d '{"method":"gmail.*","fault":"latency","ms":600000}' || fail "a slow cloud"
struck() { in_there curl -sS "$origin/_cloud/faults" | jq -e '[.. | .struck? // 0] | add > 0'; }
until_true 60 struck || fail "no job waits for the cloud: $(journal)"
before=$(date +%s%N)
in_there systemctl stop tidemark || fail "stop with a job: $(journal)"
took_ms=$((($(date +%s%N) - before) / 1000000))
[ "$took_ms" -lt 7000 ] || fail "the stop took $took_ms ms"
ended "success exited 5" || fail "with a job serve ended: $(in_there cat /run/ended): $(journal)"
in_there curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail "a quick cloud"
in_there systemctl start tidemark || fail "serve does not start again: $(journal)"
alone schedule remove mail-sync >"$dir/out" 2>&1 || fail "schedule remove: $(cat "$dir/out")"
resting() { alone status --json | jq -e '.accounts[0] | .jobs_running + .jobs_waiting == 0'; }
until_true 30 resting || fail "it does not rest: $(alone status --json)"
in_there systemctl stop tidemark || fail "stop: $(journal)"
ended "success exited 0" || fail "an idle serve ended: $(in_there cat /run/ended): $(journal)"
in_there rm -rf /var/lib/tidemark/archive /var/lib/tidemark/state.db
in_there mv /var/lib/tidemark/archive.worker /var/lib/tidemark/archive
name=tidemark-worker
in_there systemctl start tidemark-worker || fail "the worker does not start again: $(journal)"

# ---- both ends are good ones: nothing ran, or something was put back
# It leaves at once; those that were killed above may count until their leases end.
newest=$(by_hand ledger members --json | jq -r '.members | max_by(.joined_unix_ms) | .owner')
in_there systemctl stop tidemark-worker || fail "stop: $(journal)"
ended "success exited 0" || fail "an idle one ended: $(in_there cat /run/ended): $(journal)"
[ "$(by_hand ledger members --json | jq "[.members[] | select(.owner == \"$newest\" and (.dead | not))] | length")" = 0 ] || fail "it did not leave"
in_there systemctl start tidemark-worker || fail "it does not start again: $(journal)"
in_there curl -sSf "$origin/_cloud/faults" -d '{"method":"gmail.*","fault":"latency","ms":600000}' \
    >/dev/null || fail "a slow cloud"
timeout 60 nsenter -a -t "$init" runuser -u tidemark -- env "TIDEMARK_LEDGER_URL=$far" PGPASSFILE=/etc/tidemark/pgpass \
    "$program" --home /var/lib/tidemark mail sync --quiet >/dev/null 2>&1 &
watcher=$!
struck() { in_there curl -sS "$origin/_cloud/faults" | jq -e '[.. | .struck? // 0] | add > 0'; }
until_true 30 struck || fail "no job waits for the cloud: $(journal)"
# Now no process waits for it or does it instead.  Its parents are not enough: it would outlive them.
in_there pkill -KILL -u tidemark -f 'mail sync --quiet' || fail "the command ended"
wait "$watcher" 2>/dev/null
in_there systemctl stop tidemark-worker || fail "stop with a job: $(journal)"
ended "success exited 5" || fail "with a job it ended: $(in_there cat /run/ended): $(journal)"
[ "$(psql -qXAt "$url" -c "SELECT count(*) FROM tidemark.job WHERE state = 1")" = 0 ] || fail "a job is running without an owner"

# ---- the other unit, under the service manager of a person: settings and password of their own
in_there curl -sSf -o /dev/null -X DELETE "$origin/_cloud/faults" || fail "a quick cloud"
number=$(in_there id -u tidemark)
person() { in_there runuser -u tidemark -- env HOME=/var/lib/tidemark XDG_RUNTIME_DIR="/run/user/$number" "$@"; }
in_there install -d -m 700 -o tidemark "/run/user/$number"
in_there install -m 600 -o tidemark /etc/tidemark/pgpass /var/lib/tidemark/.pgpass
in_there systemd-run -q --unit=person --uid=tidemark -p Type=notify -p Delegate=yes -E HOME=/var/lib/tidemark \
    -E XDG_RUNTIME_DIR="/run/user/$number" "$systemd" --user || fail "no service manager of a person"
person "$program" config set ledger.url "$far" >"$dir/out" 2>&1 || fail "config set: $(cat "$dir/out")"
person systemctl --user start tidemark-worker 2>"$dir/out" || fail "the user's unit does not start: $(cat "$dir/out") $(in_there journalctl --no-pager -o cat | tail -n 8)"
[ "$(person systemctl --user show -P ActiveState tidemark-worker)" = active ] || fail "the user's unit is not active"
person systemctl --user show -P StatusText tidemark-worker | grep -q "working on" || fail "the user's unit says nothing"
at=$(person systemctl --user show -P MainPID tidemark-worker)
[ "$(in_there sed -n 's/^Seccomp:[[:space:]]*//p' "/proc/$at/status")" = 2 ] || fail "the user's unit has no filter of system calls"
person systemctl --user stop tidemark-worker || fail "the user's unit does not stop"
in_there rm -f /var/lib/tidemark/.config/tidemark/config.yaml # without the ledger that is shared
person systemctl --user start tidemark 2>"$dir/out" || fail "the user's serve does not start: $(cat "$dir/out") $(in_there journalctl --no-pager -o cat | tail -n 8)"
health || fail "the user's serve does not answer"
person systemctl --user show -P StatusText tidemark | grep -q "working on" || fail "the user's serve says nothing"
at=$(person systemctl --user show -P MainPID tidemark)
[ "$(in_there sed -n 's/^Seccomp:[[:space:]]*//p' "/proc/$at/status")" = 2 ] || fail "the user's serve has no filter of system calls"
reloads() { in_there journalctl --no-pager -o cat | grep -c 'settings reloaded'; }
reloads_before=$(reloads)
person systemctl --user reload tidemark || fail "the user's serve does not reload"
reloaded() { [ "$(reloads)" -gt "$reloads_before" ]; }
until_true 20 reloaded || fail "the user's serve did not reload: $(in_there journalctl --no-pager -o cat | tail -n 8)"
in_there kill -KILL "$at"
restarted() { [ "$(person systemctl --user show -P NRestarts tidemark)" -ge 1 ] && health; }
until_true 30 restarted || fail "the user's serve is not restarted after kill -9"
person systemctl --user stop tidemark || fail "the user's serve does not stop"

echo "under systemd $(systemctl --version | awk 'NR == 1 { print $2 }'): failed $failed"
[ "$failed" -eq 0 ]
