#!/usr/bin/env bash
# mail_import_test.sh TIDEMARK CLOUD: mail goes out as eml, Maildir and mbox and comes back
# byte for byte; Takeout, hostile mail, attachments, conversations; a backup that is made
# while a sync runs is restored and continues; a disk without room is left alone (M17).
. "$(dirname "$0")/../stage.sh"
corpus=${TIDE_CORPUS:-$(dirname "$0")/../../../../shared/corpus/mail}
t() { local home=$1; shift; "$tidemark" --home "$dir/$home" "$@"; }
hashes() { find "$1" -type f -exec sha256sum {} + | cut -d ' ' -f 1 | sort -u; }
count() { jq "$1" "$dir/out"; }

# ---- everything there is, out and in again
mkdir "$dir/in"
n=0
if [ -d "$corpus" ]; then
    while read -r file; do
        n=$((n + 1))
        cp "$file" "$dir/in/c$n.eml"
    done < <(find "$corpus" -type f -size +0 ! -name 'README*' ! -name '.*')
else
    echo "no corpus of mail: set TIDE_CORPUS to test with one"
fi
printf 'no header at all, \001 and \000 and \377\r\n' >"$dir/in/1.eml"
printf 'Subject: bare\rcarriage\r\n\r\nbody without an end' >"$dir/in/2.eml"
printf 'Subject: quoting\n\nFrom the start\n>From a\n>>From b\n\nFrom c@d Mon Jan  5 10:00:00 2026\nx: y\n\nz' >"$dir/in/3.eml"
printf 'From x@y Mon Jan  5 10:00:00 2026\nSubject: begins like a mailbox\n\n\n\n' >"$dir/in/4.eml"
printf '\n' >"$dir/in/5.eml"
printf '\r' >"$dir/in/6.eml"
printf 'Content-Length: 3\nSubject: lies\n\nabcdef\n\nFrom ' >"$dir/in/7.eml"
head -c 300000 /dev/urandom >"$dir/in/8.eml"
printf 'not mail\n' >"$dir/in/notes.txt"
t one mail import "$dir/in" --account ada@example.com --dry-run --json >"$dir/out" || fail "dry run"
would=$(count .stored)
[ ! -e "$dir/one/archive" ] || fail "a dry run stored something"
t one mail import "$dir/in" --account ada@example.com --json >"$dir/out" || fail "import"
[ "$(count .stored)" -eq "$would" ] || fail "stored $(count .stored), the dry run said $would"
[ "$(count .files_skipped)" -eq 1 ] || fail "skipped $(count .files_skipped) files"
rm "$dir/in/notes.txt"
t one mail import "$dir/in" --json >"$dir/out" || fail "import again"
[ "$(count .stored)" -eq 0 ] || fail "the same bytes are stored twice"
hashes "$dir/in" >"$dir/wanted"
for format in eml maildir mbox; do
    out=$dir/out-$format
    t one mail export "$out" --format "$format" --json >"$dir/out" || fail "export $format"
    [ "$(count .written)" -eq "$would" ] || fail "$format: $(cat "$dir/out")"
    t one mail export "$out" --format "$format" --json >"$dir/out" || fail "export $format again"
    [ "$(count .files)" -eq 0 ] || fail "$format: a second export writes again"
    [ -z "$(find "$out" -name '*.new')" ] || fail "$format leaves a part behind"
    t "$format" mail import "$out" --account ada@example.com --json >"$dir/out" || fail "import $format"
    [ "$(count .stored)" -eq "$would" ] || fail "import $format: $(cat "$dir/out")"
    t "$format" mail verify >"$dir/out" || fail "verify $format: $(cat "$dir/out")"
    t "$format" mail export "$dir/again-$format" >"$dir/out" || fail "export after import of $format"
    hashes "$dir/again-$format" | cmp -s - "$dir/wanted" || fail "$format does not come back byte for byte"
done
t mbox mail export "$dir/second" --format mbox >/dev/null || fail "mbox again"
diff -r "$dir/out-mbox" "$dir/second" >/dev/null || fail "a mailbox of a mailbox is another one"
t one mail export "$dir/all.mbox" >/dev/null || fail "one file"
[ "$(grep -ac '^X-Tidemark: 1; bytes=' "$dir/all.mbox")" -eq "$would" ] || fail "not all are in one file"
if command -v python3 >/dev/null; then
    seen=$(python3 -c 'import mailbox, sys; print(len(mailbox.mbox(sys.argv[1], create=False)))' "$dir/all.mbox")
    [ "$seen" -eq "$would" ] || fail "Python sees $seen of $would messages"
fi
# What was changed in between is not known, only that it was.
sed 's/quoting/quotation/' "$dir/all.mbox" >"$dir/changed.mbox"
t changed mail import "$dir/changed.mbox" --account ada@example.com --json >"$dir/out" || fail "changed mailbox"
[ "$(count .changed)" -eq 1 ] || fail "a change is not noticed: $(cat "$dir/out")"

# ---- Maildir flags are labels
mkdir -p "$dir/box/cur" "$dir/box/new" "$dir/box/tmp"
printf 'Subject: seen\n\nx\n' >"$dir/box/cur/1:2,FS"
printf 'Subject: fresh\n\nx\n' >"$dir/box/new/2"
printf 'Subject: half' >"$dir/box/tmp/3"
t box mail import "$dir/box" --account box@example.com --label Shelf --json >"$dir/out" || fail "Maildir"
[ "$(count .stored)" -eq 2 ] || fail "Maildir: $(cat "$dir/out")"
[ "$(t box mail search 'is:starred -is:unread label:shelf' --json | jq -r '.messages[].subject')" = seen ] || fail "flags F and S"
[ "$(t box mail search is:unread --json | jq -r '.messages[].subject')" = fresh ] || fail "no S is unread"
t box mail export "$dir/box2" --format maildir >/dev/null || fail "Maildir out"
[ "$(find "$dir/box2/cur" -name '*:2,FS' | wc -l)" -eq 1 ] || fail "flags are lost: $(ls "$dir/box2/cur")"

# ---- Takeout: its headers go, its labels stay
{
    printf 'From 1583290388308606088@xxx Mon Nov 06 04:42:58 +0000 2017\r\nX-GM-THRID: 1583290388308606088\r\n'
    printf 'X-Gmail-Labels: =?UTF-8?Q?Bo=C3=AEte_de_r=C3=A9ception=2CNon_lus=2CRe=C3=A7us?=\r\n'
    printf 'Subject: one\r\nMessage-ID: <1@t>\r\n\r\n>From me\r\n\r\n'
    printf 'From 1583290388308606099@xxx Mon Nov 06 04:43:58 +0000 2017\r\nX-GM-THRID: 1583290388308606088\r\n'
    printf 'X-Gmail-Labels: Sent,Opened,"a, b"\r\nSubject: two\r\n\r\nlast'
} >"$dir/takeout.mbox"
t google mail import "$dir/takeout.mbox" --account g@gmail.com --json >"$dir/out" || fail "Takeout"
[ "$(count .takeout)" -eq 2 ] || fail "Takeout: $(cat "$dir/out")"
first=$(t google mail search in:inbox is:unread label:Reçus --json | jq -r '.messages[0].id')
[ "$first" = 15f8fa38336cbc88 ] || fail "labels of Takeout, or not its Gmail id: $first"
t google mail show "$first" --raw | cmp -s - <(printf 'Subject: one\r\nMessage-ID: <1@t>\r\n\r\nFrom me\r\n') || fail "Google's headers stay"
[ "$(t google mail search in:sent label:a,-b --json | jq '.messages | length')" -eq 1 ] || fail "a label with a comma"
[ "$(t google mail show "$first" --json | jq .internal_unix_ms)" -eq 1509943378000 ] || fail "date of the From_ line"
[ "$(t google mail show "$first" --thread --json | jq -c '[.messages[].subject]')" = '["one","two"]' ] || fail "conversation"
t google mail show "$first" --thread >"$dir/out" || fail "conversation as text"
grep -q 'Subject: two' "$dir/out" || fail "the second message is not shown"
gzip -k "$dir/takeout.mbox"
t google mail import "$dir/takeout.mbox.gz" --json >"$dir/out" || fail "packed"
[ "$(count .there)" -eq 2 ] || fail "packed: $(cat "$dir/out")"
t google mail import "$dir/nowhere" 2>/dev/null && fail "a path that is not there"
t nobody mail import "$dir/takeout.mbox" 2>"$dir/err" && fail "no account is named"
t nobody mail import "$dir/takeout.mbox" --account ../a@b 2>/dev/null && fail "an account that leads away"

# ---- hostile mail writes no control characters to a terminal and no file elsewhere
esc=$'\033'
{
    printf 'From: =?utf-8?Q?=1B[31mred=C2=9B31m?= <a@b>\r\nSubject: x%s[2Jy\r\nDate: Mon, 5 Jan 2026 10:00:00 +0000\r\n' "$esc"
    printf 'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nbody %s]0;title\007 end %s\r\n' "$esc" "$(seq -s ' ' 2000)"
    for name in '../../evil.txt' '.bashrc' 'same.txt' 'same.txt' "e${esc}[1m.txt" '/etc/passwd' ''; do
        printf -- '--b\r\nContent-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\n'
        printf 'Content-Disposition: attachment; filename="%s"\r\n\r\naGVsbG8=\r\n' "$name"
    done
    printf -- '--b--\r\n'
} >"$dir/hostile.eml"
t evil mail import "$dir/hostile.eml" --account e@example.com >/dev/null || fail "hostile mail"
id=$(t evil mail search in:anywhere --json | jq -r '.messages[0].id')
for how in "search in:anywhere" "show $id" "show $id --thread" "show $id --json"; do
    # shellcheck disable=SC2086
    t evil mail $how >"$dir/out" 2>&1 || fail "$how"
    LC_ALL=C grep -qP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]' "$dir/out" && fail "control characters in: mail $how"
done
t evil mail show "$id" | grep -q ' 2000' || fail "a long text is cut off"
mkdir -p "$dir/deep/er/save"
printf 'mine' >"$dir/deep/er/save/same.txt"
t evil mail show "$id" --save-attachments "$dir/deep/er/save" >"$dir/out" || fail "save: $(cat "$dir/out")"
[ "$(find "$dir/deep/er/save" -type f | wc -l)" -eq 8 ] || fail "saved: $(ls -a "$dir/deep/er/save")"
[ "$(find "$dir/deep" -type f | wc -l)" -eq 8 ] || fail "a file outside: $(find "$dir/deep")"
[ "$(cat "$dir/deep/er/save/same.txt")" = mine ] || fail "something was overwritten"
[ "$(cat "$dir/deep/er/save/same (3).txt")" = hello ] || fail "not decoded, or not numbered"
[ -z "$(find "$dir/deep/er/save" -name '.*' -type f)" ] || fail "a hidden file"
LC_ALL=C find "$dir/deep/er/save" | grep -qP '[\x00-\x09\x0b-\x1f]' && fail "control characters in a name"

# ---- no room: refused before anything is written, with a way out
for what in "mail import $dir/takeout.mbox" "mail export $dir/roomless" "backup $dir/roomless"; do
    # shellcheck disable=SC2086
    t google --set disk.free_min=1000TiB $what >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] || fail "no room for $what: $(cat "$dir/out")"
    grep -q 'disk.free_min' "$dir/err" || fail "$what: $(cat "$dir/err")"
done
[ -z "$(find "$dir/roomless" -type f 2>/dev/null)" ] || fail "written without room"

# ---- a backup while a sync runs; restored, it continues
user=live@example.com
serve --seed 7 --quota off --latency 100 --mailbox "$user=60" --token tok-1="$user"
t live account add gmail "$user" --endpoint "$origin" --bearer tok-1 >/dev/null || fail "account add"
t live --set disk.free_min=1000TiB mail sync --quiet >/dev/null 2>"$dir/err" && fail "a sync without room"
grep -q 'disk.free_min' "$dir/err" || fail "sync: $(cat "$dir/err")"
"$tidemark" --home "$dir/live" mail sync --quiet >/dev/null 2>&1 &
sync=$!
for _ in $(seq 300); do
    stored=$(curl -sS "$origin/_cloud/stats" | jq ".users.\"$user\".fetched.messages // 0")
    [ "${stored:-0}" -ge 12 ] && break
    kill -0 "$sync" 2>/dev/null || break
    read -rt 0.05 <> <(:) || true
done
t live backup "$dir/copy" --json >"$dir/out" || fail "backup: $(cat "$dir/out")"
kill -0 "$sync" 2>/dev/null || echo "(the sync ended before the backup)"
wait "$sync" || fail "the sync beside a backup"
[ "$(find "$dir/copy" -name 'state.db' | wc -l)" -eq 1 ] || fail "no ledger in the copy"
grep -rq tok-1 "$dir/copy" && fail "a sign-in is in the copy"
cp -r "$dir/copy" "$dir/restored"
t restored ledger check >"$dir/out" || fail "the copied ledger: $(cat "$dir/out")"
t restored mail verify >"$dir/out" || fail "the copied archive: $(cat "$dir/out")"
t restored account add gmail "$user" --endpoint "$origin" --bearer tok-1 >/dev/null || fail "sign in again"
t restored mail sync --quiet --json >"$dir/out" || fail "the sync after a restore: $(cat "$dir/out")"
[ "$(count '.accounts[0].stored')" -eq 60 ] || fail "not all are there after a restore: $(cat "$dir/out")"
t live mail export "$dir/e1" >/dev/null || fail "export of the first"
t restored mail export "$dir/e2" >/dev/null || fail "export of the second"
diff -r "$dir/e1" "$dir/e2" >/dev/null || fail "the restored archive differs"

# ---- the next backup copies what changed; a home is no place for one
t live backup "$dir/copy" >/dev/null || fail "a second backup"
t live backup "$dir/copy" --json >"$dir/out" || fail "a third backup"
[ "$(count .shards_copied)" -eq 0 ] && [ "$(count .shards_same)" -gt 0 ] || fail "nothing changed: $(cat "$dir/out")"
[ "$(count .messages)" -eq 60 ] || fail "backup: $(cat "$dir/out")"
cp -r "$dir/copy" "$dir/third"
t third mail verify | grep -q '60 messages read back, 0 damaged' || fail "the copy of the whole"
t live backup "$dir/live" 2>/dev/null && fail "a backup over itself"
t live backup "$dir/restored" 2>/dev/null && fail "a backup over another home"

# ---- a sync that comes after Takeout fetches the server's own bytes; before it, nothing twice
raw=$(t live mail search in:anywhere --limit 1 --json | jq -r '.messages[0].id')
{
    printf 'From %d@xxx Mon Nov 06 04:42:58 +0000 2017\n' "0x$raw"
    printf 'Subject: not what the server has\n\nx\n'
} >"$dir/known.mbox"
t live mail import "$dir/known.mbox" --json >"$dir/out" || fail "Takeout of what is there"
[ "$(count .there)" -eq 1 ] || fail "stored beside the server's copy: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
