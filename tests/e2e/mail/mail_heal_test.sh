#!/usr/bin/env bash
# mail_heal_test.sh TIDEMARK CLOUD: what happens to an archive behind the program's
# back is noticed, told and healed (M4); an expired history id finds what was deleted
# (M5); a part of a mailbox, and a run with a limit, stay honest (E5.7).
. "$(dirname "$0")/../stage.sh"
messages=90

# The clock is set: the test names years of generated mail.
serve --seed 8 --quota off --clock 2026-11-16 \
    --mailbox "$user=$messages,size=3000" --mailbox "bob@example.com=20,size=3000" \
    --token tok="$user" --token bob=bob@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=1000000
reset() { curl -sSf -X POST "$origin/_cloud/stats/reset" >/dev/null; }
fetched() { curl -sSf "$origin/_cloud/stats" | jq ".users.\"$user\".fetched.${1:-total} // 0"; }
copy() { cp "$archive/$1.db" "$2"; } # without its log, which is empty while no process has it open
count() { sqlite3 "$archive/$1.db" 'SELECT count(*) FROM message'; }
year_ms() { echo $(($(date -u -d "$1-01-01" +%s) * 1000)); }
sync() { t mail sync --quiet --json "$@" >"$dir/out" 2>"$dir/err" || fail "sync $*: $? $(cat "$dir/out" "$dir/err")"; }
status() { # what it ends with
    t mail status --json >"$dir/out"
    [ $? -eq "${1:-0}" ] || fail "status did not end with ${1:-0}"
}
# All messages of the mailbox are here, byte for byte, and nothing else.
same() {
    rm -rf "$dir/eml"
    t mail export "$dir/eml" >/dev/null || fail "export"
    for file in "$dir"/eml/*.eml; do
        cmp -s "$file" "$dir/want/$(basename "$file")" || fail "$1: $(basename "$file") differs"
    done
    [ "$(find "$dir/eml" -name '*.eml' | wc -l)" -eq "$(find "$dir/want" -name '*.eml' | wc -l)" ] ||
        fail "$1: $(find "$dir/eml" -name '*.eml' | wc -l) messages"
}

sign_in

# ---- a part of the mailbox, with a limit, then the rest
reset
sync --since 2019-06-30 --max 7
[ "$(fetched)" -eq 7 ] || fail "--max 7 fetched $(fetched)"
[ "$(field stored)" -eq 7 ] || fail "--max 7 stored $(field stored)"
[ "$(field cycles_open)" -gt 0 ] || fail "nothing is left after --max"
[ "$(field since_unix_ms)" -eq $(($(date -u -d 2019-06-30 +%s) * 1000)) ] || fail "since is $(field since_unix_ms)"
sync --since 2019-06-30
part=$(field stored)
[ "$part" -gt 7 ] && [ "$part" -lt "$messages" ] || fail "$part messages since 2019"
[ "$(fetched)" -eq "$part" ] && [ "$(fetched messages)" -eq "$part" ] || fail "fetched $(fetched) for $part"
[ "$(field cycles_open)" -eq 0 ] || fail "work is left"
first=$(ls "$archive" | grep -m1 db$)
[ "$first" = 2019.db ] || fail "the first shard is $first"
t mail status >"$dir/out"
grep -q 'since *2019-06-30' "$dir/out" || fail "status does not say from when: $(cat "$dir/out")"
sync --since 2022 # less than before changes nothing
[ "$(fetched)" -eq "$part" ] || fail "less fetched more"
status
mark=$(field watermark_unix_ms)
sync # everything
[ "$(field stored)" -eq "$messages" ] || fail "$(field stored) of $messages"
[ "$(fetched)" -eq "$messages" ] || fail "the rest cost $(fetched) fetches"
[ "$(field since_unix_ms)" -eq 0 ] && [ "$(field cycles_open)" -eq 0 ] || fail "$(cat "$dir/out")"
[ "$(field watermark_unix_ms)" -gt "$mark" ] || fail "the tidemark did not move"
for since in 2099 yesterday 0d; do
    t mail sync --since $since >/dev/null 2>&1 && fail "--since $since was taken"
done
t mail sync --max 0 >/dev/null 2>&1 && fail "--max 0 was taken"

mkdir "$dir/want"
t mail export "$dir/want" >/dev/null || fail "export"
for file in "$dir"/want/*.eml; do
    ask "$api/messages/$(basename "$file" .eml)?format=raw" | jq -r .raw | tr -- '-_' '+/' | base64 -d |
        cmp -s - "$file" || fail "$(basename "$file") differs"
done
sync # notes what is proven
[ -z "$(find "$archive" -name '*-wal' -size +0)" ] || fail "a log is left behind"
before=$(field watermark_unix_ms)

# Loses nothing, falls back to YEAR, fetches exactly N again.
heals() { # what year missing words
    status 3
    grep -q "$4" "$dir/out" || fail "$1: status does not say \"$4\": $(field notice)"
    [ "$(field watermark_unix_ms)" -eq "$(year_ms "$2")" ] || fail "$1: the mark is $(field watermark_unix_ms)"
    reset
    sync
    grep -q "$4" "$dir/out" || fail "$1: sync does not say \"$4\": $(field notice)"
    [ "$(fetched)" -eq "$3" ] || fail "$1: $(fetched) were fetched, $3 were missing"
    [ "$(field stored)" -eq "$messages" ] || fail "$1: $(field stored) stored"
    [ "$(field cycles_open)" -eq 0 ] || fail "$1: work is left"
    [ "$(field watermark_unix_ms)" -ge "$before" ] || fail "$1: the tidemark stayed behind"
    floor=$(state 'SELECT floor_ms FROM mail_account')
    [ "$floor" -eq "$(year_ms "$2")" ] || fail "$1: fell back to $floor, not to $2"
    lists=$(state "SELECT min(start + 0) FROM cycle JOIN stream ON stream.id = cycle.stream
        WHERE stream.name = 'mail.' || (SELECT epoch FROM mail_account)")
    [ "$lists" -eq "$floor" ] || fail "$1: listed from $lists"
    same "$1"
    sync
    [ -z "$(field notice)" ] || fail "$1: the notice stays: $(field notice)"
    [ "$(fetched)" -eq "$3" ] || fail "$1: the next run fetched too"
}

# ---- a shard is deleted
missing=$(count 2020)
[ "$missing" -gt 0 ] || fail "no mail of 2020"
copy 2020 "$dir/2020.whole"
rm "$archive"/2020.db*
heals "a deleted shard" 2020 "$missing" '2020.db is missing'

# ---- the old file comes back, next to what was fetched since
rm "$archive"/2020.db*
cp "$dir/2020.whole" "$archive/2020.db"
heals "another file of the same name" 2020 0 '2020.db was replaced by another file'

# ---- an older copy of a shard, whose labels are older too
printf 'From: b@example.org\r\nSubject: old date\r\n\r\nnew\r\n' >"$dir/new.eml"
late() { curl -sSf -X POST -H 'Content-Type: message/rfc822' --data-binary @"$dir/new.eml" \
    "$origin/_cloud/mail?user=$user&date=$(($(year_ms 2021) + 5000))" | jq -r .id; }
t mail verify >/dev/null || fail "verify"
copy 2021 "$dir/2021.old"
starred=$(sqlite3 "$dir/2021.old" 'SELECT gmail_id FROM message ORDER BY id LIMIT 1')
for _ in 1 2 3; do
    id=$(late)
    cp "$dir/new.eml" "$dir/want/$id.eml"
    messages=$((messages + 1))
done
curl -sSf "$origin/_cloud/mail/label" -d "{\"user\":\"$user\",\"ids\":[\"$starred\"],\"add\":[\"STARRED\"]}" >/dev/null
sync
[ "$(field stored)" -eq "$messages" ] || fail "the late ones are not stored"
t mail search is:starred in:anywhere --json | grep -q "$starred" || fail "the star is not recorded"
sync # adopted, and noted as proven
rm "$archive"/2021.db*
cp "$dir/2021.old" "$archive/2021.db"
heals "an older copy" 2021 3 '2021.db is an older copy'
t mail search is:starred in:anywhere --json | grep -q "$starred" || fail "the star of the older copy is lost"

# ---- two at once: the earlier year counts
missing=$(($(count 2018) + $(count 2022)))
rm "$archive"/2018.db* "$archive"/2022.db*
heals "two deleted shards" 2018 "$missing" 'and 1 more'

# ---- a newer generation, and a ledger that is older than the archive, are harmless
cp "$dir/home/state.db" "$dir/state.old"
late >/dev/null
id=$(late)
cp "$dir/new.eml" "$dir/want/$id.eml"
id=$(ask "$api/messages?maxResults=500&includeSpamTrash=true&q=subject:old+date" | jq -r '.messages[].id' |
    while read -r one; do [ -e "$dir/want/$one.eml" ] || echo "$one"; done)
cp "$dir/new.eml" "$dir/want/$id.eml"
messages=$((messages + 2))
sync
reset
rm -f "$dir"/home/state.db*
cp "$dir/state.old" "$dir/home/state.db"
sync
[ "$(fetched)" -eq 0 ] || fail "an older ledger fetched $(fetched) again"
[ "$(field stored)" -eq "$messages" ] && [ -z "$(field notice)" ] || fail "an older ledger: $(cat "$dir/out")"
sqlite3 "$archive/2019.db" 'UPDATE shard SET generation = generation + 1000'
sync
[ "$(fetched)" -eq 0 ] && [ -z "$(field notice)" ] || fail "a newer generation: $(cat "$dir/out")"
same "an older ledger"

# ---- a shard of another account is refused by name, and left alone
t account add gmail bob@example.com --endpoint "$origin" --bearer bob >/dev/null || fail "account add"
sync bob@example.com
alien=$(ls "$dir/home/archive/bob@example.com" | grep -m1 db$)
missing=$(count "${alien%.db}")
rm "$archive/$alien"*
cp "$dir/home/archive/bob@example.com/$alien" "$archive/$alien"
sum=$(sha256sum <"$archive/$alien")
t mail sync "$user" --quiet >"$dir/out" 2>"$dir/err" && fail "bob's mail was taken for ada's"
grep -q "$alien: contains the mail of bob@example.com" "$dir/out" "$dir/err" || fail "no clear word: $(cat "$dir/out" "$dir/err")"
[ "$(sha256sum <"$archive/$alien")" = "$sum" ] || fail "bob's shard was written to"
rm "$archive/$alien"*
t account remove bob@example.com >/dev/null 2>&1 || fail "account remove"
rm -rf "$dir/home/archive/bob@example.com"
heals "a shard of another account" "${alien%.db}" "$missing" "$alien is missing"

# ---- an expired history id: what was deleted meanwhile is found, the copies stay
victims=$(sqlite3 "$archive/2019.db" 'SELECT gmail_id FROM message ORDER BY id LIMIT 2')
trashed=$(sqlite3 "$archive/2019.db" 'SELECT gmail_id FROM message ORDER BY id LIMIT 1 OFFSET 3')
ids=$(jq -nc '$ARGS.positional' --args $victims)
ask -X POST "$api/messages/$trashed/trash" >/dev/null
curl -sSf "$origin/_cloud/mail/delete" -d "{\"user\":\"$user\",\"ids\":$ids}" >/dev/null
id=$(late)
cp "$dir/new.eml" "$dir/want/$id.eml"
curl -sSf "$origin/_cloud/history/expire" -d "{\"user\":\"$user\"}" >/dev/null
reset
sync
[ "$(fetched)" -eq 1 ] || fail "an expired id fetched $(fetched) messages"
gone=$(sqlite3 "$archive/2019.db" 'SELECT gmail_id FROM message WHERE gone_ms IS NOT NULL ORDER BY id')
[ "$gone" = "$victims" ] || fail "gone are $gone, not $victims"
[ "$(for db in "$archive"/*.db; do sqlite3 "$db" 'SELECT count(*) FROM message WHERE gone_ms IS NOT NULL'; done |
    paste -sd+ | bc)" -eq 2 ] || fail "others are called gone"
same "an expired id"
[ "$(state 'SELECT (SELECT count(*) FROM mail_seen) + (SELECT count(*) FROM mail_listing)')" -eq 0 ] ||
    fail "a finished listing left rows"
[ "$(state 'SELECT max(n) FROM (SELECT count(*) AS n FROM mail_mark GROUP BY stream)')" -le 2 ] ||
    fail "old marks are kept"
reset
sync
[ "$(curl -sSf "$origin/_cloud/stats" | jq ".users.\"$user\".calls")" -le 3 ] || fail "nothing new cost more than 3 calls"

# ---- an account that is removed, its archive too, and added again starts from the beginning
t account remove "$user" >/dev/null 2>&1 || fail "account remove"
rm -rf "$archive"
sign_in
sync
[ "$(field stored)" -eq "$((messages - 1))" ] || fail "added again: $(field stored) of $((messages - 1))"

echo "$failed failed"
[ "$failed" -eq 0 ]
