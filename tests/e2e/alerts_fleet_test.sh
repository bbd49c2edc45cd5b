#!/usr/bin/env bash
# alerts_fleet_test.sh TIDEMARK CLOUD: several processes on one PostgreSQL ledger send each mail about
# an alert once, and another one takes over from a process that died while it sent (E6.4, E1.9).
. "$(dirname "$0")/stage.sh"
. "$(dirname "$0")/smtp_stage.sh"
start_postgres
start_cloud --seed 3 --mailbox "$user=10" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 TIDEMARK_LEDGER_URL=$url
post_office box
rows() { psql -qAtX "$url" -c "$1"; }
at() { timeout 150 "$tidemark" --home "$dir/$1" "${@:2}"; }
for name in home two three; do
    at "$name" alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port" >/dev/null || fail "setup $name"
done
at home ledger migrate >/dev/null || fail migrate
sign_in
start() { # NAME: a worker of that home
    "$tidemark" --home "$dir/$1" --json worker >"$dir/$1.out" 2>"$dir/$1.events" &
    pid[$1]=$!
}
alive() { [ "$(rows "SELECT count(*) FROM tidemark.member WHERE NOT dead AND until > extract(epoch FROM now()) * 1000")" -ge "$1" ]; }
recorded() { [ "$(rows "SELECT count(*) FROM tidemark.notice_state WHERE tag = '' AND sent > 0 AND told = $1")" -eq 1 ]; }
for name in home two three; do start "$name"; done
until_true 30 alive 3 || fail "three workers: $(rows 'SELECT * FROM tidemark.member')"
only box 0

# ---- an alert that each of them sees: one mail
rows "INSERT INTO tidemark.alert (condition, account, level, since, text) VALUES ('odd', 0, 1, 1794700000000, 'three see it')" || fail insert
for name in home two three; do # a changed setting makes them look at once
    at "$name" config set alerts.mail.still 2d --quiet || fail "config $name"
done
until_true 90 recorded 1 || fail "not recorded: $(rows 'SELECT * FROM tidemark.notice_state')"
only box 1
mail_has box 0 'three see it'

# ---- one of them is killed while it sends the next: another sends the same mail after its lease
mode box hold
rows "UPDATE tidemark.notice_state SET sent = sent - 3600000, version = version + 1; DELETE FROM tidemark.alert WHERE condition = 'odd'" || fail clear
for name in home two three; do at "$name" config set alerts.mail.still 3d --quiet; done
until_true 90 has_mails box 2 || fail "no all-clear: $(rows 'SELECT * FROM tidemark.notice_state')"
for name in home two three; do strike "${pid[$name]}"; done # whichever sends it, and the others
mode box ok
[ "$(rows "SELECT count(*) FROM tidemark.notice_state WHERE tag <> ''")" -eq 1 ] || fail "no intent: $(rows 'SELECT * FROM tidemark.notice_state')"
rows "UPDATE tidemark.notice_state SET until = 0, version = version + 1" # its lease, without waiting for it
start two
start three
until_true 90 recorded 0 || fail "not taken over: $(rows 'SELECT * FROM tidemark.notice_state')"
only box 3
[ "$(header box 1 Message-ID)" = "$(header box 2 Message-ID)" ] || fail "not the same mail: $(head -n 20 "$dir"/box/mail.[12])"
for name in two three; do
    kill -TERM "${pid[$name]}"
    wait "${pid[$name]}"; code=$?
    [ "$code" -eq 0 ] || fail "worker $name ended with $code: $(cat "$dir/$name.out")"
done
only box 3
[ "$failed" -eq 0 ]
