#!/usr/bin/env bash
# mail_browse_test.sh TIDEMARK CLOUD: `tidemark mail browse` on a real terminal (tmux): list, message,
# conversation, search as you type, selected messages, attachments, the web browser, odd terminals.
. "$(dirname "$0")/../stage.sh"
if ! command -v tmux >/dev/null; then
    echo "skipped: tmux is not here"
    exit 77
fi
start_cloud --seed 21 --mailbox "$user=450" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
sign_in
# deliver DATE_MS SUBJECT: a message from standard input's headers and text; prints its id.
deliver() {
    { printf 'From: Ann Lee <ann@harbour.example>\r\nTo: %s\r\nSubject: %s\r\n' "$user" "$2"; sed 's/$/\r/'; } |
        curl -sSf -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$user&date=$1" | jq -r .id
}
base=1794800000000 # newer than what the cloud generates
hostile=$(printf '%s\n' 'Content-Type: text/plain; charset=utf-8' '' $'red \e[31m text \xe2\x80\xae turned' |
    deliver $base $'=?utf-8?Q?evil=1b[2J=E2=80=AEgpj.exe?=')
html=$(printf '%s\n' 'Message-ID: <h1@x>' 'Content-Type: text/html; charset=utf-8' '' \
    '<p>Greetings from <b>Lisbon</b> <img src="http://192.0.2.1/x.png"></p>' | deliver $((base + 1000)) 'A letter in HTML')
answer=$(printf '%s\n' 'In-Reply-To: <h1@x>' 'References: <h1@x>' 'Content-Type: text/plain' '' 'Thank you' '> Greetings' |
    deliver $((base + 2000)) 'Re: A letter in HTML')
file=$(printf '%s\n' 'MIME-Version: 1.0' 'Content-Type: multipart/mixed; boundary=b' '' --b 'Content-Type: text/plain' '' \
    'the zanzibar report' --b 'Content-Type: text/plain; name="../report.txt"' 'Content-Disposition: attachment; filename="../report.txt"' '' 'numbers' --b-- |
    deliver $((base + 3000)) 'The zanzibar report')
ends 0 mail sync --quiet

# ---- a terminal
screens=0
terminal=(tmux -S "$dir/tmux-$screens" -f /dev/null)
trap '"${terminal[@]}" kill-server 2>/dev/null; leave' EXIT
shown() { "${terminal[@]}" capture-pane -p; }
shows() { shown | grep -qF -- "$1"; }
# wants TEXT: it appears on the screen.
wants() { until_true 60 shows "$1" || fail "\"$1\" is not on the screen: $(shown)"; }
wants_not() { ! shows "$1" || fail "\"$1\" is on the screen: $(shown)"; }
keys() { "${terminal[@]}" send-keys "$@"; }
typed() { "${terminal[@]}" send-keys -l -- "$1"; }
# screen COLUMNS LINES ENVIRONMENT ARGUMENT...: begins it on a new terminal, of a server of its own: the one before may
# still be ending.
screen() {
    local columns=$1 lines=$2 environment=$3
    shift 3
    "${terminal[@]}" kill-server 2>/dev/null
    screens=$((screens + 1))
    terminal=(tmux -S "$dir/tmux-$screens" -f /dev/null)
    rm -f "$dir/code" "$dir/after"
    "${terminal[@]}" new-session -d -x "$columns" -y "$lines" \
        "stty -g >'$dir/before'; env $environment '$tidemark' --home '$dir/home' mail browse $*; echo \$? >'$dir/code'; stty -g >'$dir/after'; sleep 1000"
}
# over CODE: it ended so, and left the terminal as it was.
over() {
    until_true 60 test -s "$dir/code" || fail "it does not end: $(shown)"
    [ "$(cat "$dir/code")" = "$1" ] || fail "it ended with $(cat "$dir/code"), not $1: $(shown)"
    until_true 20 test -s "$dir/after"
    cmp -s "$dir/before" "$dir/after" || fail "the terminal is not as it was: $(diff "$dir/before" "$dir/after")"
}

# ---- the list, a message, its conversation
screen 90 20 LANG=C.UTF-8
wants 'The zanzibar report'
wants 'all mail'
shown | head -1 | grep -q ' a ' || fail "no mark of an attachment: $(shown | head -1)"
keys Down Enter
wants 'Thank you'
wants 'From: Ann Lee <ann@harbour.example>'
wants 'message  lines 1'
keys t
wants 'Greetings from Lisbon'
wants 'conversation'
keys q
wants 'The zanzibar report'
# Characters of a message control nothing.
shown | grep -qF 'evil [2Jgpj.exe' || fail "the hostile subject: $(shown)"
keys j j Enter
wants 'red  [31m text  turned'
keys n # the next message, while one is open
gone() { ! shows 'red  [31m'; }
until_true 60 gone || fail "it is still shown: $(shown)"
wants 'message  lines 1'
keys q
# Both ends, without the rows in between.
keys G
wants 'from the oldest'
oldest=$(t mail search --json --oldest-first --limit 1 in:anywhere | jq -r '.messages[0].internal_unix_ms / 1000 | strftime("%Y-%m-%d")')
shown | sed -n 19p | grep -qF "$oldest" || fail "not $oldest: $(shown | sed -n 19p)"
keys k k
wants 'message 3 from the oldest'
keys g
wants 'The zanzibar report'
# Resizing wraps and fits anew.
"${terminal[@]}" resize-window -x 40 -y 10
until_true 20 eval '[ "$(shown | wc -l)" -le 10 ]' || fail "the screen stays as large"
wants '1 of'
"${terminal[@]}" resize-window -x 120 -y 20
keys '?'
wants 'search as you type'
keys q

# ---- search as you type
keys /
typed zanz
wants '/zanz'
until_true 60 eval '! shows "A letter"' || fail "the search does not narrow: $(shown)"
wants 'The zanzibar report'
keys Enter
wants '1 of 1  search: zanz*'
keys / C-u
typed 'from:'
wants 'from:'
keys Escape
wants 'search: zanz*'
keys / C-u Enter
wants 'A letter in HTML'
keys / C-u
typed 'nosuchword'
wants 'no messages match'
keys Escape
wants 'A letter in HTML'

# ---- attachments: selected messages, a name that leads out, a directory that cannot be
keys s C-u
typed "$dir/saved"
keys Enter
wants 'Saved 1 attachment'
[ "$(cat "$dir"/saved/*report.txt)" = numbers ] || fail "the attachment is not saved: $(ls "$dir/saved")"
[ ! -e "$dir/report.txt" ] || fail "an attachment left its directory"
keys s C-u
typed "/proc/nowhere"
keys Enter
until_true 60 eval '! shows "Saved 1"' || fail "the note stays"
wants '/proc/nowhere'

# ---- the web browser
# A cold browser: it reads the file when the reader has long ended.
cat >"$dir/browser" <<'END'
#!/bin/sh
until [ -e "$0.go" ]; do sleep 0.05; done
printf '%s\n' "$@" >"$0.words"
for file; do :; done
cp "$file" "$0.page"
END
chmod +x "$dir/browser"
keys ' ' j
wants '1 selected'
keys q
over 0
shows "$file" || fail "the selected id is not printed: $(shown)"
screen 90 20 "LANG=C.UTF-8 BROWSER='nosuch:$dir/browser --new-window' TMPDIR=$dir" subject:letter
wants 'A letter in HTML'
keys j o
wants 'Opened in the web browser'
keys q
over 0
touch "$dir/browser.go"
until_true 60 test -s "$dir/browser.page" || fail "the browser did not start"
[ "$(head -1 "$dir/browser.words")" = --new-window ] || fail "the arguments of BROWSER: $(cat "$dir/browser.words")"
grep -q 'Lisbon' "$dir/browser.page" || fail "not the message: $(cat "$dir/browser.page")"
! grep -q '192.0.2.1/x.png"' "$dir/browser.page" || fail "a remote image would be loaded"
# Its file is for this user alone; a start an hour later removes it, and nothing else.
pages=$(ls -d "$dir"/tidemark-pages-*)
[ "$(stat -c %a "$pages")" = 700 ] || fail "others can read the page: $(stat -c %a "$pages")"
mkdir -m 700 "$dir/mine" && touch "$dir/mine/1.html" && ln -s "$dir/mine" "$dir/tidemark-pages-link"
touch -d '2 hours ago' "$pages" "$dir/mine"
# A browser for terminals gets this one until the user quits it; its file goes with it.
cat >"$dir/w3m" <<'END'
#!/bin/sh
clear
printf '%s\n' "$@" >"$0.words"
echo "as text: $(grep -c Lisbon "$1")"
read -r line
END
chmod +x "$dir/w3m"
screen 90 20 "LANG=C.UTF-8 BROWSER=$dir/w3m TMPDIR=$dir" subject:letter
wants 'A letter in HTML'
[ ! -e "$pages" ] || fail "an old page is left: $(ls "$pages")"
[ -e "$dir/mine/1.html" ] || fail "a link led the sweep elsewhere"
rm "$dir/tidemark-pages-link"
keys j o
wants 'as text: 1'
keys Enter
wants 'A letter in HTML'
keys q
over 0
[ ! -e "$(cat "$dir/w3m.words")" ] && [ -z "$(ls -d "$dir"/tidemark-pages-* 2>/dev/null)" ] || fail "a page of a text browser is left: $(ls -d "$dir"/tidemark-*)"
screen 90 20 "LANG=C.UTF-8 BROWSER=$dir/nosuch"
wants 'The zanzibar report'
keys o
wants 'No web browser was found'
# A signal ends it as q does.
kill -TERM "$(pgrep -P "$("${terminal[@]}" list-panes -F '#{pane_pid}')")" || fail "no process"
over 0

# ---- odd terminals
screen 90 20 "LC_ALL=C" wide OR in:anywhere
wants 'search: wide OR in:anywhere'
keys q
over 0
screen 20 3 LANG=C.UTF-8
wants '1 of'
keys Down Enter
wants 'message'
keys q q
over 0
screen 90 20 "TERM=nosuch"
over 2
screen 90 20 "TERM=dumb LANG=C.UTF-8"
over 2
ends 2 mail browse </dev/null
grep -q 'needs a terminal' "$dir/err" || fail "no word of the terminal: $(cat "$dir/err")"
# An archive that is not there.
screen 90 20 LANG=C.UTF-8 --account nobody@example.com
over 1
wants 'there is no archive of nobody@example.com'
exit $((failed > 0))
