#!/usr/bin/env bash
# schedule_test.sh MEMBER: a schedule that five processes bring fires once per tick, whoever
# is killed meanwhile (E8.1).  Triggers of the test's own write down each firing, and whether there is
# a job for it when it commits (its own, or that of the one before, still open), and each job that
# is new; a job writes one row.
. "$(dirname "$0")/stage.sh"
member=$(realpath "$1")
period_ms=150
cluster_start --fast
query "CREATE TABLE effect (job bigint NOT NULL, value bigint NOT NULL)" || exit 1
export TIDEMARK_FLEET_LEASE=2s TIDEMARK_FLEET_LOOK=500ms
"$member" fill "$url" "$dir/fill" 0 || exit 1 # makes the tables
query "CREATE TABLE firing (slot bigint NOT NULL, served boolean NOT NULL);
    CREATE TABLE new_job (job bigint NOT NULL);
    CREATE FUNCTION note_firing() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
        INSERT INTO firing SELECT NEW.slot_last, EXISTS (SELECT 1 FROM tidemark.job
            WHERE dedupe = 'schedule:tick' AND state <= 1);
        RETURN NULL;
    END \$\$;
    CREATE FUNCTION note_new_job() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
        INSERT INTO new_job VALUES (NEW.id);
        RETURN NULL;
    END \$\$;
    CREATE CONSTRAINT TRIGGER note_firing AFTER UPDATE OF slot_last ON tidemark.schedule
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
        WHEN (NEW.name = 'tick') EXECUTE FUNCTION note_firing();
    CREATE TRIGGER note_new_job AFTER INSERT ON tidemark.job FOR EACH ROW
        WHEN (NEW.dedupe = 'schedule:tick') EXECUTE FUNCTION note_new_job()" || exit 1
start() {
    "$member" tick "$url" "$dir/$1" "$period_ms" >>"$dir/log.$1" 2>&1 &
    pid[$1]=$!
}
fired() { [ "$(query "SELECT count(*) FROM firing")" -ge "$1" ]; }
ended() { until_true 60 fired "$1"; } # until that many ticks have fired
for i in 1 2 3 4 5; do start "$i"; done
ended 10 || fail "no ticks: $(tail -n 2 "$dir"/log.*)"
for i in 1 2 3; do
    kill -KILL "${pid[$i]}"
    wait "${pid[$i]}" 2>/dev/null
    [ $? -eq 137 ] || fail "process $i had ended before its kill: $(tail -n 2 "$dir/log.$i")"
    ended $((10 + i * 10)) || fail "no ticks after $i kills: $(tail -n 2 "$dir"/log.*)"
    start "$i"
done
kill -STOP "${pid[4]}" # one that sleeps for longer than its lease, and wakes up late
ended 60 || fail "no ticks while one sleeps"
kill -CONT "${pid[4]}"
ended 75 || fail "no ticks after one woke up"
for one in "${pid[@]}"; do kill -TERM "$one"; done
for i in "${!pid[@]}"; do wait "${pid[$i]}" || fail "process $i did not end well: $(tail -n 2 "$dir/log.$i")"; done
pid=()
# What was put back at the end is done by a process without schedules.
"$member" work "$url" "$dir/last" 0 >"$dir/log.last" 2>&1 &
pid[last]=$!
nothing_left() { [ "$(query "SELECT count(*) FROM tidemark.job")" -eq 0 ]; }
until_true 30 nothing_left || fail "jobs are left"
is() { # what, question, answer
    local answer
    answer=$(query "$2")
    [ "$answer" = "$3" ] || fail "$1: $answer, not $3"
}
is "ticks that fired twice" "SELECT count(*) - count(DISTINCT slot) FROM firing" 0
is "ticks off the period" "SELECT count(*) FROM firing, tidemark.schedule WHERE name = 'tick' AND (slot - anchor) % period <> 0" 0
is "ticks without a job" "SELECT count(*) FROM firing WHERE NOT served" 0
is "jobs without effect" "SELECT count(*) FROM new_job WHERE job NOT IN (SELECT job FROM effect)" 0
is "effects of nobody" "SELECT count(*) FROM effect WHERE job NOT IN (SELECT job FROM new_job)" 0
is "more jobs than ticks" "SELECT (SELECT count(*) FROM new_job) > count(*) FROM firing" f
is "jobs that took effect twice" "SELECT count(*) - count(DISTINCT job) FROM effect" 0
ticks=$(query "SELECT (max(slot) - min(slot)) / $period_ms + 1 FROM firing")
echo "$(query "SELECT count(*) FROM firing") of $ticks ticks fired, $(query "SELECT count(*) - (SELECT count(*) FROM new_job) FROM firing") while the job before was open; failed $failed"
[ "$failed" -eq 0 ]
