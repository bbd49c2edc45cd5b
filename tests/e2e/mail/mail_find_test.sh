#!/usr/bin/env bash
# mail_find_test.sh TIDEMARK CLOUD: finding mail as a person does (M20): forms of words, exact words,
# prefixes, negations, all accounts, short ids, several ids, conversations, widths, local time, pages,
# pager, labels, statistics and saved searches; and that what removes mail takes words as they are.
. "$(dirname "$0")/../stage.sh"
other=bob@example.com
start_cloud --seed 21 --mailbox "$user=0" --mailbox "$other=0" --token tok="$user" --token tok-bob="$other"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
sign_in
sign_in "$other" tok-bob
# deliver USER DATE_MS SUBJECT TEXT [HEADER]...: prints the id.
deliver() {
    local to=$1 date=$2 subject=$3 text=$4
    shift 4
    { printf 'From: =?utf-8?B?%s?= <%s>\r\nTo: %s\r\nSubject: =?utf-8?B?%s?=\r\n' \
        "$(printf '%s' "${from_name:-Ann Lee}" | base64 -w0)" "${from:-ann@harbour.example}" "$to" "$(printf '%s' "$subject" | base64 -w0)"
    printf '%s\r\n' 'Content-Type: text/plain; charset=utf-8' "$@" '' "$text"; } |
        curl -sSf -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$to&date=$date" | jq -r .id
}
day=86400000
base=1704067200000 # 2024-01-01T00:00:00Z
invoice=$(deliver "$user" $((base + day)) 'Your invoice' 'one invoice for the harbour')
invoices=$(deliver "$user" $((base + 2 * day)) 'All of them' 'two invoices, draft')
voice=$(deliver "$user" $((base + 3 * day)) 'A voice' 'nothing else')
wide=$(from_name=中村太郎 deliver "$user" $((base + 4 * day)) '旅行の写真をお送りしますのでご確認くださいませ、よろしくお願いいたします' \
    '先日はありがとうございました。写真をお送りします。東京より、写真の件でご連絡いたしました。よろしくお願いいたします。')
bobs=$(deliver "$other" $((base + 5 * day)) 'Invoicing for Bob' 'the harbour wants invoicing')
# From right to left, with marks that turn the direction and never end, and a control character of the second set.
hebrew=$(from_name=$'\u202eדוד' deliver "$user" $((base + 6 * day)) $'שלום עולם \u2067\u202ecba\u0085 \u001b[31m' $'שלום לכולם \u202eכאן')
evening=$(deliver "$user" $((base + 14 * day + 15 * 3600000 + 1800000)) 'Late' 'an evening in London, a day later in Tokyo')
first=$(from=news@letters.example deliver "$user" $((base + 20 * day)) 'Thread' 'weather and wind' 'Message-ID: <t1@x>' 'List-Id: <all.letters.example>')
second=$(from=news@letters.example deliver "$user" $((base + 21 * day)) 'Re: Thread' 'more weather' 'Message-ID: <t2@x>' 'In-Reply-To: <t1@x>' 'References: <t1@x>' \
    'List-Id: <all.letters.example>' 'Delivered-To: ada+news@example.com')
ends 0 mail sync --quiet
# found QUERY...: the ids, newest first.
found() { t mail search --json "$@" | jq -r '[.messages[].id] | join(" ")'; }
finds() {
    local want=$1 got
    shift
    got=$(found "$@")
    [ "$got" = "$want" ] || fail "$*: \"$got\", not \"$want\""
}

# ---- words, over all accounts
finds "$bobs $invoices $invoice" invoice
finds "$bobs $invoices $invoice" Invoices
finds "$invoice" +invoice
finds "$invoices" '"two invoices"'
finds "$bobs $invoices $invoice" 'invoic*'
finds "$bobs $invoice" invoice -draft
finds "$bobs $invoices $invoice" harbour invoices # the sender's domain is a word, too
finds "$invoice" one invoice for the harbour -draft -voice -subject:bob -tokyo in:inbox
finds "$bobs" invoice --account "$other"
finds "$bobs" harbour AROUND 1 invoicing
finds "$bobs" harbour AROUND 1 invoicing has:nouserlabels -has:drive
finds "$second $first" list:letters -invoice
finds "$second" list:letters deliveredto:ada+news
ends 2 mail search 'i*' --bogus
ends 1 mail search 'i*'
grep -q 'two letters' "$dir/err" || fail "a short prefix: $(cat "$dir/err")"

# ---- what removes mail takes a plain word as it is written: a schedule must not take more than it did
# removes IDS QUERY...: what a real run takes out of the inbox; it is put back.
removes() {
    local want=$1 got
    shift
    ends 0 mail archive --account "$user" --no-sync --yes --json "$@"
    got=$(t mail manifest "$(jq .manifest "$dir/out")" --state removed --json | jq -r '[.messages[].id] | join(" ")')
    [ "$got" = "$want" ] || fail "archive $*: \"$got\", not \"$want\""
    ends 0 mail restore --manifest "$(jq .manifest "$dir/out")" --yes
    ends 0 mail sync --quiet
}
finds "$invoices $invoice" invoice --account "$user"
removes "$invoice" invoice
removes "$invoices" Invoices
removes "$invoice" subject:invoice
removes "$invoices $invoice" 'invoic*'
ends 0 mail archive --help
grep -q 'word is exact' "$dir/out" || fail "archive --help does not say that words are exact"

# ---- ids: beginnings, several, all accounts
ends 0 mail show "${bobs:0:14}" --json
[ "$(jq -r .id "$dir/out")" = "$bobs" ] || fail "a short id: $(cat "$dir/out")"
[ "$(jq -r .account "$dir/out")" = "$other" ] || fail "its account: $(cat "$dir/out")"
ends 1 mail show "${bobs:0:4}"
grep -q 'more than one' "$dir/err" || fail "ambiguous: $(cat "$dir/err")"
ends 1 mail show "${bobs:0:3}"
ends 1 mail show 'zzzz%_'
ends 0 mail show "$invoice" "$bobs" --json
[ "$(jq -r '[.messages[].id] | join(" ")' "$dir/out")" = "$invoice $bobs" ] || fail "two: $(cat "$dir/out")"
ends 0 mail show "$invoice" "$bobs"
grep -q 'one invoice' "$dir/out" && grep -q 'wants invoicing' "$dir/out" || fail "two as text: $(cat "$dir/out")"

# ---- one shape: every field of a match is a field of the message, with the same value
ends 0 mail search +invoice --json
jq -S '.messages[0] | del(.snippet)' "$dir/out" >"$dir/found"
ends 0 mail show "$invoice" --json
jq -S --slurpfile found "$dir/found" '. as $all | $found[0] | with_entries(.value = $all[.key])' "$dir/out" >"$dir/shown"
cmp -s "$dir/found" "$dir/shown" || fail "two shapes: $(diff "$dir/found" "$dir/shown")"

# ---- the list: marks, accounts, width, snippets
ends 0 mail search in:anywhere
grep -q "^$bobs  2024-01-06 00:00  $other  u " "$dir/out" || fail "the list: $(cat "$dir/out")"
# fitted COLUMNS: no line of $dir/out takes more columns.
fitted() {
    command -v python3 >/dev/null || return 0
    python3 - "$1" "$dir/out" <<'P'
import sys, unicodedata
def width(c):
    if unicodedata.category(c) in ('Mn', 'Me', 'Cf'):
        return 0
    return 2 if unicodedata.east_asian_width(c) in 'WF' else 1
for line in open(sys.argv[2], encoding='utf-8'):
    if sum(map(width, line.rstrip('\n'))) > int(sys.argv[1]) and not line.startswith('more: '):
        sys.exit(1)
P
}
for columns in 40 60 80 132; do
    COLUMNS=$columns t mail search --account "$user" in:anywhere --snippets always --limit 100 >"$dir/out" || fail "width $columns"
    grep -q '旅行' "$dir/out" || fail "nothing of a wide subject at $columns: $(cat "$dir/out")"
    grep -q 'שלום' "$dir/out" || fail "nothing of a subject from right to left at $columns: $(cat "$dir/out")"
    fitted "$columns" || fail "wider than $columns: $(cat "$dir/out")"
    COLUMNS=$columns t mail search in:anywhere --snippets always --limit 100 >"$dir/out" || fail "all accounts, width $columns"
    fitted "$columns" || fail "all accounts, wider than $columns: $(cat "$dir/out")"
done
COLUMNS=80 t mail search in:anywhere --limit 100 >"$dir/out"
grep -q '^    A voice$' "$dir/out" || fail "no room for subjects beside two accounts: $(cat "$dir/out")"
# Marks that turn the direction, of both kinds, and control characters of both sets stay out of lists.
grep -q 'שלום עולם.*cba' "$dir/out" || fail "a line from right to left: $(cat "$dir/out")"
LC_ALL=C.UTF-8 grep -qP '[\x{202a}-\x{202e}\x{2066}-\x{2069}\x{80}-\x{9f}\x{00}-\x{08}\x{0e}-\x{1f}]' "$dir/out" && fail "marks in the list: $(cat -v "$dir/out")"
grep -q '\\x' "$dir/out" && fail "a control character takes four columns: $(cat "$dir/out")"
# Without a locale the bytes are the same.
COLUMNS=80 LANG=C LC_ALL=C t mail search in:anywhere --limit 100 >"$dir/plain" || fail "LANG=C"
cmp -s "$dir/plain" "$dir/out" || fail "LANG=C: $(diff "$dir/plain" "$dir/out")"
[ "$(LC_ALL=C found 写真)" = "$wide" ] || fail "a query with LC_ALL=C"
COLUMNS=0 t mail search in:anywhere --limit 1 >/dev/null || fail "COLUMNS=0"
COLUMNS=x t mail search in:anywhere --limit 1 >/dev/null || fail "COLUMNS=x"
ends 0 mail search nothinghasthis
[ "$(cat "$dir/out")" = 'no messages match' ] || fail "none: $(cat "$dir/out")"
ends 0 mail search harbor
grep -q 'did you mean "harbour"' "$dir/out" || fail "a suggestion: $(cat "$dir/out")"
t mail search harbor --json | jq -e '.spelling == [{"word": "harbor", "better": "harbour"}]' >/dev/null || fail "a suggestion as JSON"

# ---- pages: the printed command gives the next one
pages=
command_line="tidemark --home $dir/home mail search in:anywhere --limit 3 --snippets never"
for _ in 1 2 3 4; do
    [ -n "$command_line" ] || break
    bash -c "tidemark() { '$tidemark' \"\$@\"; }; $command_line" >"$dir/out" 2>"$dir/err" || fail "pasted: $command_line: $(cat "$dir/err")"
    pages+=$(awk '/^[0-9a-f]+ / { printf "%s ", $1 }' "$dir/out")
    command_line=$(sed -n 's/^more: //p' "$dir/out")
done
[ "${pages% }" = "$(found in:anywhere)" ] || fail "pages: $pages"
t mail search 'subject:"a voice"' --limit 1 >"$dir/out" || fail quoted
# A reader that has seen enough, at once or before the first byte; a full disk is told.
for command in 'search in:anywhere --limit 100' 'search in:anywhere --json' labels stats "show $invoice" saved; do
    (t mail $command 2>"$dir/err"; echo $? >"$dir/code") | head -n 1 >/dev/null
    [ -s "$dir/err" ] && fail "a closed pipe, $command: $(cat "$dir/err")"
    (t mail $command 2>"$dir/err"; echo $? >"$dir/code") | true
    [ -s "$dir/err" ] && fail "a pipe that nobody reads, $command: $(cat "$dir/err")"
    [ "$(cat "$dir/code")" -eq 0 ] || fail "a closed pipe, $command: exit code $(cat "$dir/code")"
done
if [ -w /dev/full ]; then
    t mail search in:anywhere >/dev/full 2>"$dir/err" && fail "a full disk was not told"
fi
# A word with control characters is written as a shell takes it.
ends 0 mail search $'in:anywhere \x01\x1b' --limit 1
grep -qF "mail search \$'in:anywhere \\001\\033' --limit 1" "$dir/out" || fail "control characters in the command: $(cat -v "$dir/out")"

# ---- conversations
finds "$second $first" weather
finds "$second" weather --threads
finds "$first" weather --threads --oldest-first
t mail search weather --threads --json | jq -e '.messages[0].thread_messages == 2' >/dev/null || fail "its length"
ends 0 mail search in:anywhere --account "$user" --threads --limit 1 --json
after=$(jq -r .next "$dir/out")
[ "$(found in:anywhere --account "$user" --threads --after "$after")" = "$evening $hebrew $wide $voice $invoices $invoice" ] ||
    fail "the next page has it again: $(found in:anywhere --account "$user" --threads --after "$after")"
ends 2 mail search weather --threads --rank --account "$user"

# ---- local time, in lists and in queries
finds "$evening" subject:late after:2024/01/15 before:2024/01/16
TZ=Asia/Tokyo finds '' subject:late after:2024/01/15 before:2024/01/16
TZ=Asia/Tokyo finds "$evening" subject:late after:2024/01/16
TZ=Asia/Tokyo t mail search subject:late | grep -q '2024-01-16 00:30' || fail "a list in local time"

# ---- labels and statistics
ends 0 mail labels --json
jq -e '.labels[] | select(.name == "INBOX") | .messages == 9 and .unread == 9 and .type == "system"' "$dir/out" >/dev/null || fail "labels: $(cat "$dir/out")"
ends 0 mail stats --json
jq -e '.by == "sender" and .all.messages == 9 and .all.in_gmail == 9
    and (.groups[] | select(.name == "news@letters.example") | .messages == 2 and .query == "from:news@letters.example")' \
    "$dir/out" >/dev/null || fail "stats: $(cat "$dir/out")"
for by in sender domain year label size; do
    ends 0 mail stats --by "$by" --json
    # Every row's query finds as many as the row says.
    jq -r '.groups[] | "\(.messages) \(.query)"' "$dir/out" >"$dir/groups"
    [ -s "$dir/groups" ] || fail "no groups by $by"
    while read -r count query; do
        [ "$(t mail search --json --limit 100 "$query" in:anywhere | jq '.messages | length')" -eq "$count" ] || fail "$query: not $count"
    done <"$dir/groups"
done
ends 0 mail stats weather --by domain
grep -q 'letters.example' "$dir/out" && ! grep -q 'harbour.example' "$dir/out" || fail "stats of a query: $(cat "$dir/out")"
ends 2 mail stats --by colour

# ---- saved searches: in every command with a query, and in a backup
ends 0 mail saved
grep -q 'no saved searches' "$dir/out" || fail "none: $(cat "$dir/out")"
ends 0 mail saved add bills invoice -draft
ends 0 mail saved add old.news 'from:news@letters.example OR subject:late'
finds "$bobs $invoice" saved:bills
finds "$bobs" saved:bills subject:bob
finds "$hebrew $wide $voice $invoices" -saved:bills -saved:old.news
finds '' '"saved:bills"'
[ "$(t mail stats saved:bills --json | jq .all.messages)" -eq 2 ] || fail "stats of a saved search"
t mail archive --account "$user" saved:old.news --dry-run --quick --no-sync --json >"$dir/out" 2>"$dir/err" || fail "archive: $(cat "$dir/err")"
jq -e '[.. | .messages? | numbers] | index(3) != null' "$dir/out" >/dev/null || fail "archive of a saved search: $(cat "$dir/out")"
ends 0 mail saved add bills +invoice
[ "$(t mail saved --json | jq -c '[.searches[].name]')" = '["old.news","bills"]' ] || fail "saved: $(t mail saved --json)"
finds "$invoice" saved:bills
ends 1 mail search saved:nothing
grep -q 'no saved search "nothing"' "$dir/err" || fail "unknown: $(cat "$dir/err")"
ends 1 mail saved add wrong frmo:x
ends 2 mail saved add 'a b' x
ends 2 mail saved add again saved:bills
ends 2 mail saved add bills
ends 1 mail saved remove nothing
for name in '' 'a:b' '../x' $'a\nb' $'a\x1b[31mb' 'größe' "$(printf 'x%.0s' {1..65})"; do
    ends 2 mail saved add "$name" invoice
    grep -q 'cannot be the name' "$dir/err" || fail "the name $name: $(cat -v "$dir/err")"
    grep -q $'\x1b' "$dir/err" && fail "a name controls the terminal"
done
ends 2 mail saved add self saved:self
ends 2 mail saved add lines $'one\ntwo'
ends 2 mail saved add nothing ' '
ends 0 mail saved add -- -dash invoice # an option to no one
finds "$bobs $invoices $invoice" saved:-dash
ends 0 mail saved remove -dash
# The file is the user's: what is in it by hand is checked when it is used, and other lines stay.
file=$dir/home/mail-searches.txt
cp "$file" "$dir/kept"
printf '# mine\nloop: saved:loop\nopen: a) OR (in:anywhere\nempty:\nred: \033[31m invoice\nno name at all\nbytes: \377\n' >>"$file"
for name in loop open empty bytes; do
    ends 1 mail search "saved:$name"
    grep -q "saved search \"$name\" cannot be used" "$dir/err" || fail "saved:$name: $(cat -v "$dir/err")"
    ends 1 mail archive --account "$user" --dry-run --quick --no-sync "-saved:$name"
done
ends 0 mail saved
grep -q $'\x1b' "$dir/out" && fail "a saved search controls the terminal"
grep -q 'at all' "$dir/out" && fail "a line without a name is listed: $(cat "$dir/out")"
ends 0 mail saved --json
jq -e '[.searches[].name] | index("red") != null' "$dir/out" >/dev/null || fail "not listed: $(cat "$dir/out")"
ends 0 mail saved remove loop
grep -q '^# mine$' "$file" && grep -q '^no name at all$' "$file" || fail "other lines were changed: $(cat "$file")"
cp "$dir/kept" "$file"
# Many processes at once: no change is lost.
for i in 1 2 3 4 5 6 7 8; do t mail saved add "many$i" "word$i" >/dev/null & many[i]=$!; done
for i in 1 2 3 4 5 6 7 8; do wait "${many[i]}" || fail "saved add, beside others"; done
[ "$(t mail saved --json | jq '[.searches[].name | select(startswith("many"))] | length')" -eq 8 ] || fail "changes were lost: $(cat "$file")"
for i in 1 2 3 4 5 6 7 8; do t mail saved remove "many$i" >/dev/null & many[i]=$!; done
for i in 1 2 3 4 5 6 7 8; do wait "${many[i]}" || fail "saved remove, beside others"; done
cmp -s "$dir/kept" "$file" || fail "not as before: $(diff "$dir/kept" "$file")"
# A schedule that removes mail has the query itself.
ends 2 schedule add --at 'weekly sun 04:00' -- mail archive saved:old.news --yes
grep -q 'cannot name a saved search' "$dir/err" || fail "scheduled: $(cat "$dir/err")"
ends 2 schedule add --at 'weekly sun 04:00' -- mail archive '"b' 'a" saved:old.news' --yes
grep -q 'cannot name a saved search' "$dir/err" || fail "scheduled behind a quotation mark: $(cat "$dir/err")"
ends 0 schedule add --name quoted --at 'weekly sun 04:00' -- mail archive --account "$user" '"b' 'saved:old.news"' --yes
ends 0 schedule remove quoted
ends 0 backup "$dir/copy"
grep -q 'with 9 messages' "$dir/out" || fail "the copy counts: $(cat "$dir/out")"
ends 0 mail saved remove bills
t mail saved | grep -q bills && fail "it is still there"
"$tidemark" --home "$dir/again" restore "$dir/copy" >"$dir/out" 2>"$dir/err" || fail "restore: $(cat "$dir/err")"
"$tidemark" --home "$dir/again" mail saved | grep -q bills || fail "not in the backup"

# ---- a terminal: bold matches, a pager for what is longer than the screen
if script -qec true /dev/null >/dev/null 2>&1; then
    on_terminal() { TERM=xterm script -qec "stty cols 80 rows $1; '$tidemark' --home '$dir/home' mail search $2" /dev/null >"$dir/tty" </dev/null; }
    on_terminal 50 invoice || fail "a search on a terminal: $(cat "$dir/tty")"
    grep -qF $'\033[1minvoices\033[0m' "$dir/tty" || fail "no bold match: $(cat -v "$dir/tty")"
    NO_COLOR=1 on_terminal 50 invoice
    grep -qF $'\033[1m' "$dir/tty" && fail "NO_COLOR: $(cat -v "$dir/tty")"
    PAGER="sed s/^/paged:/" on_terminal 50 in:anywhere
    grep -q '^paged:' "$dir/tty" && fail "a pager for what fits: $(cat "$dir/tty")"
    PAGER="sed s/^/paged:/" on_terminal 8 in:anywhere
    grep -q '^paged:ID' "$dir/tty" || fail "no pager: $(cat "$dir/tty")"
    PAGER="true" on_terminal 8 in:anywhere || fail "a pager that is left at once: $(cat "$dir/tty")"
else
    echo "script(1) cannot make a terminal here: bold text and pager are not tried"
fi

# ---- help
ends 0 mail search --help
for word in from: subject: after: newer_than: larger: label: has:attachment has:userlabels list: AROUND rfc822msgid: in:anywhere OR 'invoic\*' +invoice; do
    grep -q -- "$word" "$dir/out" || fail "--help lacks $word"
done

echo "$failed failed"
[ "$failed" -eq 0 ]
