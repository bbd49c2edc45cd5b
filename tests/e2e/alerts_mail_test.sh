#!/usr/bin/env bash
# alerts_mail_test.sh TIDEMARK CLOUD: mail about alerts through a mail server (E6.4): setting it up,
# what is never sent or shown, one mail for an alert and one for its end, servers that refuse, and
# a kill -9 between sending and storing that it was sent (E1.9).
. "$(dirname "$0")/stage.sh"
. "$(dirname "$0")/smtp_stage.sh"
start_cloud --seed 3 --mailbox "$user=10" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
password='pa ss/w0rd"x'
unsent() { # NAME: a client spoke, and neither signed in nor wrote
    grep -Eq 'AUTH|MAIL|RCPT|DATA' "$dir/$1/log" && fail "something was sent to $1: $(cat "$dir/$1/log")"
}

# ---- what is wrong is refused before anything is written
ends 1 alerts test; grep -q 'alerts setup' "$dir/err" || fail "no command: $(cat "$dir/err")"
for words in "--to nobody --server smtp://127.0.0.1" "--to a@b --server http://127.0.0.1" \
    "--to a@b --server smtp://u:$user@127.0.0.1" "--to a@b" "--server smtp://127.0.0.1" "" "--account x --to a@b" \
    "--off --to a@b" "--to a@b,c@d --server smtp://127.0.0.1" "--to a@b --server smtp://127.0.0.1 --password-file -"; do
    # shellcheck disable=SC2086 # words
    ends 2 alerts setup $words
done
[ ! -e "$dir/home/config.yaml" ] || fail "a refused setup wrote $(cat "$dir/home/config.yaml")"

# ---- a server on this machine, without sign-in
post_office plain
ends 0 alerts setup --to ops@example.com --from tidemark@example.org --server "smtp://127.0.0.1:$port"
ends 0 alerts test --json
jq -e '.answer == "250 2.0.0 queued as 1" and .to == "ops@example.com"' "$dir/out" >/dev/null || fail "test: $(cat "$dir/out")"
only plain 1
mail_has plain 0 '^<tidemark@example.org> -> <ops@example.com>'
mail_has plain 0 '^From: Tidemark <tidemark@example.org>'
mail_has plain 0 '^Subject: Tidemark: test: test'
mail_has plain 0 '^Message-ID: <[0-9a-f]{32}\.tidemark@example\.org>'
mail_has plain 0 '^Auto-Submitted: auto-generated'
grep -c $'[^\r]$' "$dir/plain/mail.0" | grep -qx 1 || fail "lines without CR" # the envelope's own

# ---- a server that refuses now, or for good, or does not answer
mode plain 'rcpt 450 4.2.0 greylisted'
ends 1 alerts test; grep -q '450 4.2.0 greylisted' "$dir/err" || fail "answer: $(cat "$dir/err")"
grep -qi 'later' "$dir/err" || fail "no advice: $(cat "$dir/err")"
mode plain 'data 554 5.7.1 spam'
ends 1 alerts test; grep -q '554 5.7.1 spam' "$dir/err" || fail "answer: $(cat "$dir/err")"
mode plain cut
ends 1 alerts test
mode plain drop
ends 1 alerts test; grep -q 'did not say whether' "$dir/err" || fail "unknown: $(cat "$dir/err")"
# One that says nothing, and one that does not say whether it has the message: a stop waits for neither.
interrupted() { # COMMAND...: true once the client waits
    "$tidemark" --home "$dir/home" alerts test >"$dir/out" 2>"$dir/err" &
    local code hanging=$! since
    until_true 20 "$@" || fail "it did not come so far: $(cat "$dir/err")"
    since=$SECONDS
    kill -TERM "$hanging"
    wait "$hanging"; code=$?
    [ "$code" -eq 5 ] || fail "an interrupted test ended with $code: $(cat "$dir/err")"
    [ $((SECONDS - since)) -le 20 ] || fail "it took $((SECONDS - since)) s to end"
}
mode plain hang
interrupted grep -q '^plain hang' "$dir/plain/log"
mode plain hold
interrupted has_mails plain 3
mode plain ok
ends 1 alerts test --set alerts.mail.server=smtp://127.0.0.1:1; grep -q 'smtp://127.0.0.1:1' "$dir/err" || fail "dead: $(cat "$dir/err")"

# ---- user and password: asked for in the terminal without echo, from a file, from standard input
post_office login --login "ada:$password"
python3 - "$tidemark" "$dir" "$port" "$password" <<'PY' || fail "the terminal: $(cat "$dir/tty")"
import os, pty, sys
tidemark, home, port, password = sys.argv[1:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(tidemark, [tidemark, "--home", home + "/home", "alerts", "setup", "--to", "ops@example.com",
                        "--server", "smtp://127.0.0.1:" + port, "--user", "ada"])
seen = b""
while not seen.endswith(b": "):
    seen += os.read(fd, 1024)
os.write(fd, password.encode() + b"\n")
try:
    while True:
        part = os.read(fd, 1024)
        if not part:
            break
        seen += part
except OSError:
    pass
open(home + "/tty", "wb").write(seen)
status = os.waitpid(pid, 0)[1]
sys.exit(0 if status == 0 and b"Password of ada" in seen and password.encode() not in seen else 1)
PY
ends 0 alerts test
only login 1
ends 2 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port" --user ada </dev/null
grep -q -- --password-file "$dir/err" || fail "no advice: $(cat "$dir/err")"
printf '%s\n' "$password" >"$dir/password"
chmod 644 "$dir/password"
ends 1 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port" --user ada --password-file "$dir/password"
chmod 600 "$dir/password"
ends 0 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port" --user ada --password-file "$dir/password"
ends 0 alerts test
ends 0 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port" --user ada --password-file - <<<wrong
ends 4 alerts test; grep -q '535 5.7.8' "$dir/err" || fail "answer: $(cat "$dir/err")"
ends 0 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port" --user ada --password-file - <<<"$password"
ends 0 alerts test
only login 3
# Another server does not get them.
login_port=$port
post_office stranger --login "ada:$password"
ends 4 alerts test --set "alerts.mail.server=smtp://127.0.0.1:$port"
grep -q 'were stored for' "$dir/err" || fail "why: $(cat "$dir/err")"
[ ! -e "$dir/stranger/log" ] || fail "the stranger got $(cat "$dir/stranger/log")"

# ---- TLS: required where certificates are named, or the server is not on this machine
certificates
ends 0 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$login_port" --ca-file "$dir/ca.pem"
: >"$dir/login/log"
ends 1 alerts test; grep -q 'STARTTLS' "$dir/err" || fail "why: $(cat "$dir/err")"
unsent login
post_office secure --cert "$dir/server.pem" --key "$dir/server.key" --login "ada:$password"
ends 0 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port" --ca-file "$dir/ca.pem" --user ada --password-file "$dir/password"
ends 0 alerts test
only secure 1
grep -q '^tls AUTH right' "$dir/secure/log" || fail "sign-in: $(cat "$dir/secure/log")"
grep -q '^plain \(AUTH\|MAIL\)' "$dir/secure/log" && fail "in clear: $(cat "$dir/secure/log")"
# A certificate that its CA did not sign.
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$dir/other.key" -out "$dir/other.pem" -days 2 -subj /CN=other >/dev/null 2>&1
: >"$dir/secure/log"
ends 1 alerts test --set "alerts.mail.ca_file=$dir/other.pem"; grep -q 'cannot be trusted' "$dir/err" || fail "why: $(cat "$dir/err")"
unsent secure
post_office tls --cert "$dir/server.pem" --key "$dir/server.key" --smtps
ends 0 alerts setup --to ops@example.com --server "smtps://localhost:$port" --ca-file "$dir/ca.pem"
ends 0 alerts test
only tls 1
address=$(hostname -I 2>/dev/null | tr ' ' '\n' | grep -E '^[0-9.]+$' | grep -v '^127\.' | head -n 1)
if [ -n "$address" ]; then
    post_office remote --host "$address"
    ends 0 alerts setup --to ops@example.com --server "smtp://$address:$port"
    ends 1 alerts test; grep -q 'STARTTLS' "$dir/err" || fail "why: $(cat "$dir/err")"
    unsent remote
fi

# ---- an alert: one mail, however often the command runs
post_office box --login "ada:$password"
ends 0 alerts setup --to ops@example.com --server "smtp://127.0.0.1:$port" --user ada --password-file "$dir/password"
sign_in
ends 0 mail sync --quiet
only box 0
ends 0 config set alerts.metadata_budget 1KiB --quiet
ends 0 mail sync --quiet
only box 1
mail_has box 0 "^Subject: Tidemark: critical: metadata, $user"
for line in '^What: +metadata uses [0-9]+ of 1024 bytes' "^Account: +$user" '^Since: +20[0-9-]+ [0-9:]+ UTC' '^Means: ' '^To do: ' \
    "^Command: +tidemark bad list --account $user"; do mail_has box 0 "$line"; done
ends 0 alerts --json
jq -e '.alerts | length == 1 and .[0].notified_unix_ms > 0' "$dir/out" >/dev/null || fail "alerts: $(cat "$dir/out")"
ends 0 mail sync --quiet
ends 0 mail sync --quiet
only box 1
# The rest of the hour, without waiting for it.
hour_later() { state "UPDATE notice_state SET sent = sent - 3600000, retry = 0" || fail "hour"; }
hour_later
ends 0 mail sync --quiet
only box 1 # it lasts: that is no news
ends 0 config set alerts.metadata_budget 64MiB --quiet
ends 0 mail sync --quiet
only box 2
mail_has box 1 "^Subject: Tidemark: all clear: metadata, $user"
mail_has box 1 '^Ended: +20[0-9-]+'
ends 0 mail sync --quiet
only box 2

# ---- kill -9 between sending and storing it: the same mail once more
hour_later
ends 0 config set alerts.metadata_budget 1KiB --quiet
mode box hold
"$tidemark" --home "$dir/home" mail sync --quiet >"$dir/out" 2>"$dir/err" &
sync=$!
until_true 30 has_mails box 3 || fail "no third mail: $(cat "$dir/err")"
strike "$sync" || fail "it had ended: $(cat "$dir/err")"
mode box ok
ends 0 mail sync --quiet
only box 4
[ "$(header box 2 Message-ID)" = "$(header box 3 Message-ID)" ] || fail "not the same mail: $(head -n 20 "$dir"/box/mail.[23])"
diff "$dir/box/mail.2" "$dir/box/mail.3" >/dev/null || fail "it changed: $(diff "$dir/box/mail.2" "$dir/box/mail.3")"
[ "$(header box 1 Message-ID)" != "$(header box 2 Message-ID)" ] || fail "two mails have one Message-ID"
ends 0 mail sync --quiet
only box 4

# ---- a server that refuses for good: the user is told, until it takes one
hour_later
mode box 'rcpt 550 5.1.1 no such user'
ends 0 config set alerts.metadata_budget 64MiB --quiet
ends 0 mail sync --quiet
ends 0 status
head -n 1 "$dir/out" | grep -q '550 5.1.1 no such user' || fail "first line: $(head -n 1 "$dir/out")"
ends 0 alerts; grep -q '^warning *notices' "$dir/out" || fail "alerts: $(cat "$dir/out")"
mode box ok
state "UPDATE notice_state SET retry = 0"
ends 0 mail sync --quiet
only box 5
mail_has box 4 '^Subject: Tidemark: all clear'
ends 0 alerts; grep -q 'no alerts' "$dir/out" || fail "alerts: $(cat "$dir/out")"

# ---- user and password are in their secret, and nowhere else
found=$(grep -rlF "$password" "$dir/home" | grep -v "^$dir/home/secrets/")
[ -z "$found" ] || fail "the password is in $found"
found=$(grep -rlF "$(printf '\0ada\0%s' "$password" | base64)" "$dir/home")
[ -z "$found" ] || fail "the sign-in is in $found"
[ "$(find "$dir/home/secrets" -type f -perm /077 | wc -l)" -eq 0 ] || fail "a secret that others can read"

# ---- off: the secret is gone
ends 0 alerts setup --off
grep -rlF w0rd "$dir/home/secrets" && fail "the password is still there"
ends 1 alerts test
ends 0 config set alerts.metadata_budget 1KiB --quiet
hour_later
ends 0 mail sync --quiet
only box 5

# ---- from the account to itself, through Gmail; the cloud in a box delivers it
ends 0 alerts setup --account "$user"
ends 0 alerts test; grep -q 'sent as message' "$dir/out" || fail "answer: $(cat "$dir/out")"
ends 0 mail sync --quiet
ask "$api/messages?q=subject:metadata" >"$dir/found"
jq -e '.messages | length == 1' "$dir/found" >/dev/null || fail "the mailbox has $(cat "$dir/found")"
ends 0 alerts setup --account nobody@example.com
ends 1 alerts test; grep -q 'nobody@example.com' "$dir/err" || fail "why: $(cat "$dir/err")"
[ "$failed" -eq 0 ]
