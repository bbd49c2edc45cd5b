#!/usr/bin/env bash
# first_steps_test.sh TIDEMARK CLOUD: from an empty home to the first hit, by what the program itself says is next
# (E9.3); then what `tidemark` says of accounts that cannot work, and the names that completion offers of a home.
. "$(dirname "$0")/stage.sh"
unset "${!TIDEMARK_@}"
start_cloud --seed 7 --mailbox "$user=40" --token "tok=$user" --mailbox bob@example.com=3 --token tob=bob@example.com \
    --mailbox eve@example.com=5 --token tev=eve@example.com --mailbox gil@example.com=60 --token til=gil@example.com
# next COMMAND: what `tidemark` names as the next step, for people and for programs.
next() {
    ends 0
    grep -qxF "  tidemark $1" "$dir/out" || fail "next is not \"$1\": $(cat "$dir/out")"
    ends 0 --json
    [ "$(jq -r .next.command "$dir/out")" = "$1" ] || fail "next is not \"$1\": $(cat "$dir/out")"
}
offers() { # what completion offers for the last word
    t completion --line -- --home "$dir/home" "$@" | cut -f 1 | sort -u | paste -sd ' '
}

# ---- an empty home: all that can be added; nothing is made by looking
ends 0
for provider in 'gmail EMAIL' 'console SITE...' 'onedrive '; do
    grep -qF "  tidemark account add $provider" "$dir/out" || fail "no $provider: $(cat "$dir/out")"
done
[ ! -e "$dir/home" ] || fail "looking made a directory"
ends 0 --json
[ "$(jq -r .next.command "$dir/out")" = 'account add gmail EMAIL' ] || fail "$(cat "$dir/out")"

# ---- mail that was imported before any sign-in, as from Takeout: what is there, and the sign-in as the next step
imported() { timeout 150 "$tidemark" --home "$dir/imported" "$@" >"$dir/out" 2>"$dir/err" || fail "tidemark $* ended with $?: $(cat "$dir/out" "$dir/err")"; }
printf 'From: b@example.org\r\nSubject: one\r\n\r\nharbour\r\n' >"$dir/one.eml"
printf 'From: b@example.org\r\nSubject: two\r\n\r\nharbour\r\n' >"$dir/two.eml"
imported mail import "$dir/one.eml" "$dir/two.eml" --account bob@example.com
imported
grep -qF '  bob@example.com  2 messages' "$dir/out" && grep -qxF '  tidemark account add gmail bob@example.com' "$dir/out" && ! grep -q 'Nothing is set up' "$dir/out" ||
    fail "after an import: $(cat "$dir/out")"
imported --json
jq -e '.next.command == "account add gmail bob@example.com" and .archives[0].stored == 2 and .accounts == []' "$dir/out" >/dev/null || fail "$(cat "$dir/out")"
imported status
grep -qF 'bob@example.com: 2 messages stored here; it is not signed in' "$dir/out" || fail "status after an import: $(cat "$dir/out")"
for names in '' bob@example.com; do
    # shellcheck disable=SC2086
    imported mail status $names
    grep -qx 'bob@example.com' "$dir/out" && grep -qF '  stored     2 messages' "$dir/out" && grep -qF 'account add gmail bob@example.com' "$dir/out" ||
        fail "mail status $names after an import: $(cat "$dir/out")"
done
timeout 150 "$tidemark" --home "$dir/imported" mail status eve@example.com >"$dir/out" 2>&1 && fail "an account that is nowhere: $(cat "$dir/out")"
imported account add gmail bob@example.com --endpoint "$origin" --bearer tob
imported
grep -qxF '  tidemark mail sync' "$dir/out" && grep -q 'was not synced yet' "$dir/out" || fail "after the sign-in: $(cat "$dir/out")"
imported mail sync --quiet
imported
grep -qxF '  tidemark serve' "$dir/out" || fail "after the sync: $(cat "$dir/out")"
imported mail import "$dir/one.eml" --account eve@example.com
imported mail status --json
jq -e '[.accounts[].account] == ["bob@example.com"] and [.archives[].account] == ["eve@example.com"]' "$dir/out" >/dev/null || fail "two archives, one account: $(cat "$dir/out")"

# ---- each step is the one it names
sign_in
next 'mail sync'
grep -q 'nothing is stored yet' "$dir/out" || fail "$(cat "$dir/out")"
ends 0 mail sync --quiet
ends 0
grep -q "^$user *mail .* 40 messages" "$dir/out" || fail "where things stand: $(cat "$dir/out")"
next serve
ends 0 mail search the --quiet

# ---- a second account that was never synced comes before "all is well"; one that is halted before that
sign_in bob@example.com tob
next 'mail sync'
ends 0 account halt "$user" --reason "on holiday"
next "account resume $user"
ends 0 account resume "$user"
curl -sSf -o /dev/null -X POST "$origin/_cloud/token/revoke" -d '{"user":"bob@example.com"}' || fail revoke
t mail sync bob@example.com --quiet >"$dir/out" 2>&1
next 'account add gmail bob@example.com'

# ---- with a process that serves
ends 0 account remove bob@example.com
start_serve
next open
stop_serve 0

# ---- completion: names of this home
[ "$(offers account halt '')" = "$user" ] || fail "accounts: $(offers account halt '')"
sqlite3 "$dir/home/state.db" "INSERT INTO account(name, provider, archive) VALUES ('adele@example.com', 'onedrive', 'a')" 2>"$dir/err" || fail "$(cat "$dir/err")"
[ "$(offers account halt ade)" = adele@example.com ] || fail "accounts: $(offers account halt ade)"
[ "$(offers mail sync ad)" = "$user" ] || fail "accounts of mail: $(offers mail sync ad)"
[ "$(offers config set governor.share --account ada@)" = "$user" ] || fail "accounts of a flag: $(offers config set governor.share --account a)"
sqlite3 "$dir/home/state.db" "DELETE FROM account WHERE name = 'adele@example.com'"
[[ " $(offers mail archive --label '') " = *' INBOX '* ]] || fail "labels: $(offers mail archive --label '')"
[ "$(offers mail search label:INB)" = label:INBOX ] || fail "labels in a query: $(offers mail search label:INB)"

t mail saved add invoices subject:invoice >/dev/null || fail "mail saved add"
[ "$(offers mail search saved:inv)" = saved:invoices ] || fail "saved searches in a query: $(offers mail search saved:inv)"
[ "$(offers mail search subj)" = subject: ] || fail "operators in a query: $(offers mail search subj)"

# Bash replaces only what is behind the last of its word breaks.
mkdir "$dir/bin"
ln -s "$tidemark" "$dir/bin/tidemark"
in_bash() { # LINE: what bash would offer at its end
    PATH=$dir/bin:$PATH bash -c 'eval "$(tidemark completion bash)"; COMP_LINE=$1 COMP_POINT=${#1}; _tidemark; echo "${COMPREPLY[*]}"' - "$1" 2>&1
}
[ "$(in_bash "tidemark --home $dir/home account halt ad")" = "$user" ] || fail "in bash: $(in_bash "tidemark --home $dir/home account halt ad")"
[ "$(in_bash "tidemark --home $dir/home account halt ada@")" = example.com ] || fail "behind the @: $(in_bash "tidemark --home $dir/home account halt ada@")"
[ "$(in_bash "tidemark --home $dir/home mail search label:INB")" = INBOX ] || fail "behind the colon: $(in_bash "tidemark --home $dir/home mail search label:INB")"

# ---- what a sync does is named: first it lists, then it fetches; nothing is left of it at the end
sign_in eve@example.com tev
fault '{"method":"gmail.users.messages.list","rate":1,"fault":"latency","ms":1500}'
fault '{"method":"gmail.users.messages.get","rate":1,"fault":"latency","ms":8000}'
t mail sync eve@example.com --json >"$dir/out" 2>"$dir/events" || fail "sync: $(cat "$dir/out" "$dir/events")"
no_faults
phases=$(jq -r '.phase' "$dir/events" | uniq | paste -sd ' ')
[[ $phases = listing*fetching*indexing,*left*null ]] || fail "phases: $phases"
# A total that is known stays.
jq -se '[.[].total | select(. != null)] | unique | length == 1' "$dir/events" >/dev/null || fail "totals: $(jq -c .total "$dir/events" | paste -sd ' ')"

# ---- the facts of a status come before its gaps, of which there are at most five
ends 0 mail status eve@example.com
awk '/^  stored/ { stored = NR } /^  server/ { server = NR } /^  gaps/ { gaps = NR } END { exit !(stored && server && stored < gaps && server < gaps) }' "$dir/out" ||
    fail "facts first: $(cat "$dir/out")"
sign_in gil@example.com til
t mail sync gil@example.com --max 1 --quiet >"$dir/out" 2>&1
ends 0 mail status gil@example.com
sed -n '/^  gaps/,/^  beyond/p' "$dir/out" | grep -v '^  beyond' >"$dir/gaps"
[ "$(grep -c ' \.\.\. ' "$dir/gaps")" -eq 5 ] && grep -qE '^ +and [0-9]+ more, [0-9]+ in all' "$dir/gaps" || fail "five gaps and a count: $(cat "$dir/out")"
# Adjacent slices that wait for the same are one gap.
count=$(sed -n 's/.* more, \([0-9]*\) in all.*/\1/p' "$dir/gaps")
ends 0 mail status gil@example.com --json
apart=$(jq '.accounts[0].gaps as $g | [range($g | length) | select(. == 0 or $g[.].from_unix_ms != $g[. - 1].to_unix_ms or $g[.].state != $g[. - 1].state)] | length' "$dir/out")
[ "${count:-0}" -eq "$apart" ] || fail "gaps: $count are counted, $apart are apart: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
