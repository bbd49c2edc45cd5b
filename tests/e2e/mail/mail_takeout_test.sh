#!/usr/bin/env bash
# mail_takeout_test.sh TIDEMARK CLOUD: a Takeout seeds an archive (M18).  Its mail is found at once under
# Gmail's ids, is held until Gmail's own bytes arrive behind everything else, and is proof of nothing
# until then; kills between any two steps change nothing; packed parts are read as they are, hostile
# ones with a clear error.
. "$(dirname "$0")/../stage.sh"
messages=40
late=3 # arrived after the Takeout

start_cloud --seed 18 --mailbox "$user=$messages,size=2000" --token tok="$user"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 # no pacing: the cloud has no quota here
copies() { t mail status --json | jq -r ".accounts[0].copies.$1"; }
fetched() { curl -sS "$origin/_cloud/stats" | jq ".users.\"$user\".fetched.messages // 0"; }
post() { curl -sSf -X POST -H 'Content-Type: application/json' -d "$2" "$origin/_cloud/$1" >/dev/null || fail "$1 $2"; }
server_raw() { ask "$api/messages/$1?format=raw" | jq -r .raw | tr -- '-_' '+/' | base64 -d; }
total() { t mail search in:anywhere --limit 1000 --json | jq '.messages | length'; }

# ---- what Google would write: lines quoted, ids in decimal, line ends of Unix, labels by name
ask "$api/messages?includeSpamTrash=true&maxResults=500" | jq -r '.messages[].id' >"$dir/ids"
[ "$(wc -l <"$dir/ids")" -eq "$messages" ] || fail "the mailbox has $(wc -l <"$dir/ids") messages"
ask "$api/labels" | jq -r '.labels[] | "\(.id)\t\(.name)"' >"$dir/labels"
label_names() { # ID...
    local id name all=
    for id in "$@"; do
        case $id in
        INBOX) name=Posteingang ;;
        UNREAD) name=Ungelesen ;;
        SENT) name=Gesendet ;;
        TRASH) name=Papierkorb ;;
        *) name=$(awk -F'\t' -v id="$id" '$1 == id { print $2 }' "$dir/labels") ;;
        esac
        all=$all${all:+,}$name
    done
    printf '%s' "${all:-Archiviert}"
}
takeout() { # from the ids in standard input
    local id
    while read -r id; do
        ask "$api/messages/$id?format=raw" >"$dir/one.json" </dev/null
        printf 'From %d@xxx %s\n' "0x$id" \
            "$(LC_ALL=C date -u -d "@$(($(jq -r .internalDate "$dir/one.json") / 1000))" '+%a %b %d %H:%M:%S +0000 %Y')"
        printf 'X-GM-THRID: %d\n' "0x$(jq -r .threadId "$dir/one.json")"
        # shellcheck disable=SC2046
        printf 'X-Gmail-Labels: %s\n' "$(label_names $(jq -r '.labelIds[]?' "$dir/one.json"))"
        jq -r .raw "$dir/one.json" | tr -- '-_' '+/' | base64 -d | tr -d '\r' | sed 's/^\(>*From \)/>\1/'
        printf '\n'
    done
}
mkdir -p "$dir/made/Takeout/E-Mail" "$dir/made/Takeout/Groups/chess@googlegroups.com"
tail -n +$((late + 1)) "$dir/ids" | takeout >"$dir/made/Takeout/E-Mail/Alle E-Mails, einschließlich Spam.mbox"
printf 'From 7@xxx Mon Nov 06 04:42:58 +0000 2017\nSubject: a move\nFrom: c@example.org\n\nknight to f3\n' \
    >"$dir/made/Takeout/Groups/chess@googlegroups.com/topics.mbox"
printf '<html>all that you asked for</html>' >"$dir/made/Takeout/archive_browser.html"
(cd "$dir/made" && tar czf ../takeout-20261117T120000Z-001.tgz Takeout &&
    python3 -m zipfile -c ../takeout-20261117T120000Z-001.zip Takeout) || fail "packing"
held=$((messages - late))

# ---- hostile and broken parts: a clear error, and nothing outside of the archive
small=$dir/made/Takeout/Groups/chess@googlegroups.com/topics.mbox
refuses() { # WHAT TEXT FILE
    timeout 150 "$tidemark" --home "$dir/bad" mail import "$3" --account b@example.com >"$dir/out" 2>"$dir/err"
    [ $? -eq 1 ] || fail "$1 does not end with 1: $(cat "$dir/out" "$dir/err")"
    grep -q "$2" "$dir/err" || fail "$1: $(cat -v "$dir/err")"
}
for part in "$dir"/takeout-*-001.*; do
    for cut in 40 50 95; do
        head -c $(($(stat -c %s "$part") * cut / 100)) "$part" >"$dir/cut.${part##*.}"
        refuses "$cut % of a ${part##*.}" 'damaged or not complete.*download it again' "$dir/cut.${part##*.}"
    done
done
printf 'PK\003\004 and nothing that a zip file has' >"$dir/none.zip"
refuses "no zip" 'damaged or not complete' "$dir/none.zip"
seq 1000 | gzip >"$dir/numbers.gz"
refuses "no mail" 'neither a message nor a mailbox' "$dir/numbers.gz"
mkdir -p "$dir/pack" && printf 'nothing' >"$dir/pack/a.txt"
(cd "$dir/pack" && tar czf ../text.tgz a.txt)
refuses "no mail in a tar" 'has no mail in it' "$dir/text.tgz"
python3 - "$dir" "$small" <<'P' || fail "making hostile parts"
import io, sys, tarfile, zipfile
dir, small = sys.argv[1], open(sys.argv[2], 'rb').read()
with tarfile.open(dir + '/paths.tgz', 'w:gz') as tar:
    for name in ('../../../escape.mbox', '/tmp/../escape/a.mbox', 'a\033[2J.mbox'):
        info = tarfile.TarInfo(name)
        body = small.replace(b'a move', b'a move in ' + name.encode())
        info.size = len(body)
        tar.addfile(info, io.BytesIO(body))
    for kind, name in ((tarfile.SYMTYPE, 'link.mbox'), (tarfile.LNKTYPE, 'hard.mbox'), (tarfile.CHRTYPE, 'dev.mbox'), (tarfile.FIFOTYPE, 'pipe.mbox')):
        info = tarfile.TarInfo(name)
        info.type, info.linkname = kind, '/etc/passwd'
        tar.addfile(info)
with zipfile.ZipFile(dir + '/nested.zip', 'w', zipfile.ZIP_DEFLATED) as zip:
    zip.writestr('takeout-1.zip', open(dir + '/takeout-20261117T120000Z-001.zip', 'rb').read())
# A mailbox that is a thousand times as large as its file.
with zipfile.ZipFile(dir + '/bomb.zip', 'w', zipfile.ZIP_DEFLATED) as zip:
    with zip.open('Takeout/Mail/all.mbox', 'w', force_zip64=True) as out:
        out.write(small)
        for _ in range(130):
            out.write(b'a' * (1 << 20))
P
refuses "packed twice" 'has no mail in it' "$dir/nested.zip"
refuses "a bomb" 'unpacks to more than' "$dir/bomb.zip"
timeout 150 "$tidemark" --home "$dir/bad" mail import "$dir/paths.tgz" --account b@example.com --json >"$dir/out" || fail "odd paths: $(cat "$dir/out")"
[ "$(jq .stored "$dir/out")" -eq 3 ] || fail "odd paths: $(cat "$dir/out")"
[ -z "$(find "$dir" -name '*escape*')" ] && [ ! -e /tmp/escape ] && [ ! -e /escape.mbox ] || fail "a path led outside"
gzip -c "$small" >"$dir/topics.mbox.gz"
timeout 150 "$tidemark" --home "$dir/gz" mail import "$dir/topics.mbox.gz" --account b@example.com --json >"$dir/out" || fail "a single .gz"
[ "$(jq .stored "$dir/out")" -eq 1 ] || fail "a single .gz: $(cat "$dir/out")"

# ---- import, killed at any moment and begun again
for part in "$dir"/takeout-*-001.*; do
    for home in plain killed; do
        if [ $home = killed ]; then
            for wait in 0.02 0.05 0.1 0.2 0.4; do
                "$tidemark" --home "$dir/$home-${part##*.}" mail import "$part" --account "$user" >/dev/null 2>&1 &
                import=$!
                read -rt $wait <> <(:) || true
                strike $import || true
            done
        fi
        timeout 150 "$tidemark" --home "$dir/$home-${part##*.}" mail import "$part" --account "$user" --json >"$dir/out" 2>"$dir/err" ||
            fail "import of $part: $(cat "$dir/err")"
        [ $home = killed ] || { [ "$(jq .held "$dir/out")" -eq $held ] && [ "$(jq .stored "$dir/out")" -eq $((held + 1)) ]; } ||
            fail "import of $part: $(cat "$dir/out")"
        timeout 150 "$tidemark" --home "$dir/$home-${part##*.}" mail search in:anywhere --limit 1000 --json |
            jq -r '.messages[].id' | sort >"$dir/$home-${part##*.}.ids"
    done
    cmp "$dir/plain-${part##*.}.ids" "$dir/killed-${part##*.}.ids" || fail "a killed import of $part is another one"
done
cmp "$dir/plain-zip.ids" "$dir/plain-tgz.ids" || fail "zip and tgz are not the same"
mv "$dir/killed-tgz" "$dir/home"
t mail import "$dir/takeout-20261117T120000Z-001.tgz" --json >"$dir/out" || fail "import again"
[ "$(jq .stored "$dir/out")" -eq 0 ] || fail "the same Takeout is stored twice: $(cat "$dir/out")"

# ---- found at once, under Gmail's ids, with labels and conversation
tail -n +$((late + 1)) "$dir/ids" | sort >"$dir/wanted"
grep -v '^import-' "$dir/plain-tgz.ids" | cmp -s - "$dir/wanted" || fail "not found under Gmail's ids"
[ "$(t mail search label:chess@googlegroups.com --json | jq -r '.messages[0].id' | cut -c 1-7)" = import- ] ||
    fail "mail of a group has an id of this mailbox"
id=$(tail -1 "$dir/ids")
[ "$(t mail show "$id" --json | jq -r .thread)" = "$(ask "$api/messages/$id?format=minimal" | jq -r .threadId)" ] || fail "conversation"
t mail show "$id" --raw | cmp -s - <(server_raw "$id" | tr -d '\r') || fail "what Takeout had is not shown"

# ---- a sync fetches what is new, lists the rest, and leaves it as it is
sign_in
curl -sSf -o /dev/null -X POST "$origin/_cloud/stats/reset"
ends 2 mail sync --exact=maybe
ends 0 mail sync --quiet --exact=off
[ "$(fetched)" -eq $late ] || fail "$(fetched) messages were fetched"
[ "$(copies held)" -eq $held ] && [ "$(copies exact)" -eq $((late + 1)) ] || fail "copies: $(t mail status)"
t mail status >"$dir/out"
grep -q "$held held" "$dir/out" && grep -q '^  exact ' "$dir/out" || fail "status has no two marks: $(cat "$dir/out")"
t mail status --json | jq -e '.accounts[0] | .exact_since_unix_ms > .held_oldest_unix_ms and .cycles_open == 0' >/dev/null || fail "marks: $(t mail status --json)"
t mail verify >"$dir/out" || fail "verify: $(cat "$dir/out")"
grep -q "$held held" "$dir/out" || fail "verify does not count what is held: $(cat "$dir/out")"
[ "$(total)" -eq $((messages + 1)) ] || fail "$(total) messages are found"

# ---- labels are the server's, whatever Takeout called them
same_labels() { # WHAT, of the ids in standard input
    local db
    for db in "$archive"/*.db; do
        sqlite3 "$db" "SELECT json_array(m.gmail_id, json((SELECT json_group_array(label) FROM (SELECT l.label FROM
            message_label n JOIN label l ON l.id = n.label WHERE n.message = m.id ORDER BY l.label)))) FROM message m
            WHERE gmail_id NOT LIKE 'import-%'"
    done | sort >"$dir/stored"
    sed "s#.*#url = \"$api/messages/&?format=minimal\"#" |
        curl -sSf -H 'Authorization: Bearer tok' -K - | jq -c '[.id, ([.labelIds[]?] | sort)]' | sort >"$dir/server"
    cmp -s "$dir/server" "$dir/stored" || fail "$1: $(diff "$dir/server" "$dir/stored" | head -5)"
}
same_labels "after the first sync" <"$dir/ids"

# ---- a held copy is no proof
for mode in inbox trash delete; do
    t mail archive in:anywhere --mode $mode --limit 1000 --dry-run --json >"$dir/out" 2>"$dir/err"
    grep -q 'did not come from Gmail' "$dir/out" || fail "$mode trusts a held copy: $(cat "$dir/out")"
done
t mail archive "rfc822msgid:$(t mail show "$id" --json | jq -r .message_id)" --mode delete --yes --json >"$dir/out" 2>"$dir/err"
ask "$api/messages/$id?format=minimal" >/dev/null || fail "removed on the strength of a Takeout"

# ---- labels and deletions of held copies are tracked
gone=$(tail -2 "$dir/ids" | head -1)
post mail/label "{\"user\":\"$user\",\"ids\":[\"$id\"],\"add\":[\"STARRED\"]}"
post mail/delete "{\"user\":\"$user\",\"ids\":[\"$gone\"]}"
ends 0 mail sync --quiet --exact=off
t mail show "$id" --json | jq -e '[.labels[] | .id? // .] | index("STARRED")' >/dev/null || fail "a label of a held copy: $(t mail show "$id" --json | jq -c .labels)"
t mail status --json | jq -e '.accounts[0].gone == 1' >/dev/null || fail "a deleted held copy is not gone"

# ---- that held copies are replaced is named, with how many and how long: it may take days
fault '{"method":"gmail.users.messages.get","rate":1,"fault":"latency","ms":2000}'
TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=600 "$tidemark" --home "$dir/home" mail sync --json >"$dir/out" 2>"$dir/events" &
sync=$!
exact_events() { jq -e 'select(.phase == "exact bytes" and .total >= '$held' and .stored < .total and .left_ms > 0)' "$dir/events"; }
until_true 60 exact_events || fail "no phase of exact bytes: $(cat "$dir/events")"
until_true 20 eval "t status --json | jq -e '.accounts[0] | .left > 0'" || fail "nothing is left in status: $(t status --json)"
strike $sync || fail "the sync ended before"
no_faults

# ---- exact bytes follow, newest first, through kills
fault '{"method":"gmail.users.messages.get","count":10,"fault":"503"}'
for wait in 0.2 0.3 0.5 0.8; do
    "$tidemark" --home "$dir/home" mail sync --quiet >/dev/null 2>&1 &
    sync=$!
    read -rt $wait <> <(:) || true
    strike $sync || true
done
no_faults
ends 0 mail sync --quiet
[ "$(copies held)" -eq 1 ] || fail "still held: $(t mail status)" # the one that Gmail no longer has
while read -r one; do
    [ "$one" = "$gone" ] || t mail show "$one" --raw | cmp -s - <(server_raw "$one") || fail "$one is not exact"
done <"$dir/ids"
t mail show "$gone" --raw | grep -q . || fail "what only Takeout had is lost"
[ "$(total)" -eq $((messages + 1)) ] || fail "$(total) messages are found after all"
t mail verify >"$dir/out" || fail "verify: $(cat "$dir/out")"
for db in "$archive"/*.db; do
    [ "$(sqlite3 "$db" 'SELECT count(*) FROM content WHERE id NOT IN (SELECT content FROM message UNION SELECT content FROM earlier)')" -eq 0 ] ||
        fail "$db keeps bytes that no message has"
done
before=$(fetched)
ends 0 mail sync --quiet
[ "$(fetched)" -eq "$before" ] || fail "exact copies are fetched again"

# ---- a Takeout of mail that Gmail had lost before: found here, known as gone, nothing is bad
printf 'From 1234567890123456789@xxx Mon Nov 06 04:42:58 +0000 2017\nX-GM-THRID: 1234567890123456789\nX-Gmail-Labels: Inbox\nSubject: long lost\n\nx\n' >"$dir/lost.mbox"
ends 0 mail import "$dir/lost.mbox" --json
[ "$(jq .held "$dir/out")" -eq 1 ] || fail "what Gmail lost is not held: $(cat "$dir/out")"
ends 0 mail sync --quiet
t mail status --json | jq -e '.accounts[0] | .gone == 2 and .bad == 0 and .owed == 0' >/dev/null || fail "what Gmail lost: $(t mail status)"
t mail search 'long lost' in:anywhere --json | jq -e '.messages[0].id == "112210f47de98115"' >/dev/null || fail "what Gmail lost is not found"

echo "$failed failed"
[ "$failed" -eq 0 ]
