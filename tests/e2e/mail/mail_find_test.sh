#!/usr/bin/env bash
# mail_find_test.sh TIDEMARK CLOUD: finding mail as a person does (M20): forms of words, exact words,
# prefixes, negations, all accounts, short ids, several ids, conversations, widths, local time, pages,
# pager, labels and statistics.
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
for columns in 40 60 80 132; do
    COLUMNS=$columns t mail search --account "$user" in:anywhere --snippets always --limit 100 >"$dir/out" || fail "width $columns"
    grep -q '旅行' "$dir/out" || fail "nothing of a wide subject at $columns: $(cat "$dir/out")"
    if command -v python3 >/dev/null; then
        python3 - "$columns" "$dir/out" <<'P' || fail "wider than $columns: $(cat "$dir/out")"
import sys, unicodedata
wide = lambda s: sum(2 if unicodedata.east_asian_width(c) in 'WF' else 1 for c in s)
sys.exit(any(wide(l.rstrip('\n')) > int(sys.argv[1]) for l in open(sys.argv[2])))
P
    fi
done
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
t mail search in:anywhere --limit 100 2>"$dir/err" | head -n 1 >/dev/null
[ -s "$dir/err" ] && fail "a closed pipe: $(cat "$dir/err")"

# ---- conversations
finds "$second $first" weather
finds "$second" weather --threads
finds "$first" weather --threads --oldest-first
t mail search weather --threads --json | jq -e '.messages[0].thread_messages == 2' >/dev/null || fail "its length"
ends 0 mail search in:anywhere --account "$user" --threads --limit 1 --json
after=$(jq -r .next "$dir/out")
[ "$(found in:anywhere --account "$user" --threads --after "$after")" = "$evening $wide $voice $invoices $invoice" ] ||
    fail "the next page has it again: $(found in:anywhere --account "$user" --threads --after "$after")"
ends 2 mail search weather --threads --rank --account "$user"

# ---- local time, in lists and in queries
finds "$evening" subject:late after:2024/01/15 before:2024/01/16
TZ=Asia/Tokyo finds '' subject:late after:2024/01/15 before:2024/01/16
TZ=Asia/Tokyo finds "$evening" subject:late after:2024/01/16
TZ=Asia/Tokyo t mail search subject:late | grep -q '2024-01-16 00:30' || fail "a list in local time"

# ---- labels and statistics
ends 0 mail labels --json
jq -e '.labels[] | select(.name == "INBOX") | .messages == 8 and .unread == 8 and .type == "system"' "$dir/out" >/dev/null || fail "labels: $(cat "$dir/out")"
ends 0 mail stats --json
jq -e '.by == "sender" and .all.messages == 8 and .all.in_gmail == 8
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
finds "$wide $voice $invoices" -saved:bills -saved:old.news
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
ends 0 backup "$dir/copy"
grep -q 'with 8 messages' "$dir/out" || fail "the copy counts: $(cat "$dir/out")"
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
