#!/usr/bin/env bash
# mail_import_beside_test.sh TIDEMARK CLOUD: `mail import` beside a process that has the home hands its
# work over (E12.2, M17, M18): idle, beside syncs of the same account and of another one, for an account
# that comes later, with files that cannot be read; stopped and killed in the middle, nothing is lost or
# stored twice, and syncs count right afterwards.
. "$(dirname "$0")/../stage.sh"
many=${TIDE_IMPORT_MANY:-$((${TIDE_TEST_SCALE:-100} < 40 ? 6000 : 30000))} # long enough to be interrupted; sanitizers are slow
messages=40
start_cloud --seed 18 --mailbox "$user=$messages,size=2000" --mailbox "bob@example.com=$messages,size=2000" \
    --mailbox "cara@example.com=5" --token tok="$user" --token tok-b=bob@example.com --token tok-c=cara@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=0 # no pacing: the cloud has no quota here
value() { jq -r ".$1" "$dir/out"; }
status_of() { t mail status "$1" --json | jq -r ".accounts[0].$2"; }
rows() { # EMAIL: what its archive has
    local db all=0
    for db in "$dir/home/archive/$1"/*.db; do
        all=$((all + $(sqlite3 "$db" 'SELECT count(*) FROM message')))
    done
    echo $all
}
twice() { # EMAIL: ids and bytes that it has more than once
    local db
    for db in "$dir/home/archive/$1"/*.db; do sqlite3 "$db" 'SELECT gmail_id FROM message'; done | sort | uniq -d
}
whole() { # all archives
    local email
    for email in "$dir/home/archive"/*@*; do
        t mail verify --account "${email##*/}" >"$dir/out" || return 1
    done
}
last_result() { state 'SELECT max(job) FROM mail_result'; }
begun() { # JOB: an import after that one has stored something
    [ "$(state "SELECT count(*) FROM mail_result WHERE job > $1 AND json_extract(result, '\$.stored') > 0")" -gt 0 ]
}

# ---- what is imported: other mail, much other mail, and a Takeout of the mailbox
python3 - "$dir" "$many" <<'P' || fail "making mailboxes"
import sys
dir, many = sys.argv[1], int(sys.argv[2])
def mailbox(name, count, who):
    with open(f'{dir}/{name}', 'w') as out:
        for i in range(count):
            out.write(f'From {who}@example.org Mon Nov 06 {i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02} 2017\n'
                      f'From: {who}@example.org\nSubject: {who} {i}\nMessage-ID: <{who}.{i}@example.org>\n\n{who} wrote {i}\n\n')
mailbox('other.mbox', 30, 'olga')
mailbox('second.mbox', 20, 'pete')
mailbox('many.mbox', many, 'quinn')
mailbox('third.mbox', many, 'rosa')
P
ask "$api/messages?includeSpamTrash=true&maxResults=500" | jq -r '.messages[].id' >"$dir/ids"
while read -r id; do
    ask "$api/messages/$id?format=raw" >"$dir/one.json" </dev/null
    printf 'From %d@xxx %s\n' "0x$id" \
        "$(LC_ALL=C date -u -d "@$(($(jq -r .internalDate "$dir/one.json") / 1000))" '+%a %b %d %H:%M:%S +0000 %Y')"
    printf 'X-GM-THRID: %d\nX-Gmail-Labels: Posteingang,Old name\n' "0x$(jq -r .threadId "$dir/one.json")"
    jq -r .raw "$dir/one.json" | tr -- '-_' '+/' | base64 -d | tr -d '\r' | sed 's/^\(>*From \)/>\1/'
    printf '\n'
done <"$dir/ids" >"$dir/takeout.mbox"

sign_in
sign_in bob@example.com tok-b
start_serve

# ---- beside an idle process: a new account, a path from here, and the same again
cd "$dir" || exit 1
ends 0 mail import other.mbox --account new@example.com
grep -q "Process $server works in this directory and does this" "$dir/err" || fail "it does not say who does it: $(cat "$dir/err")"
grep -q 'new@example.com: 30 messages stored' "$dir/out" || fail "$(cat "$dir/out")"
[ "$(t mail search from:olga in:anywhere --account new@example.com --limit 100 --json | jq '.messages | length')" -eq 30 ] || fail "not all are found"
ends 0 mail import ./other.mbox second.mbox --account new@example.com --label Shelf --json
[ "$(value stored)" -eq 20 ] && [ "$(value there)" -eq 30 ] && [ "$(value messages)" -eq 50 ] && [ "$(value handed_over)" = true ] ||
    fail "import again: $(cat "$dir/out")"
[ "$(t mail search label:shelf --account new@example.com --limit 100 --json | jq '.messages | length')" -eq 50 ] || fail "--label"
# Many results of later jobs: the report of a long import is kept all the same.
younger() { sqlite3 -cmd '.timeout 20000' "$dir/home/state.db" "$1" || fail "$1"; }
younger "INSERT INTO mail_result SELECT 1000000 + value, '{}' FROM generate_series(1, 60)"
ends 0 mail import other.mbox --account new@example.com --json
[ "$(value there)" -eq 30 ] || fail "no report beside younger results: $(cat "$dir/out")"
younger 'DELETE FROM mail_result WHERE job > 1000000'
ends 0 mail import other.mbox --account new@example.com --dry-run --json
[ "$(value there)" -eq 30 ] && [ "$(value handed_over)" = false ] || fail "dry run: $(cat "$dir/out")"
[ "$(rows new@example.com)" -eq 50 ] || fail "$(rows new@example.com) rows"

# ---- what cannot be imported: as without that process, with 1, and what came before it is stored
printf '%%PDF-1.4\n' >"$dir/bill.pdf"
ends 1 mail import "$dir/nowhere.mbox" --account new@example.com
grep -q 'nowhere.mbox does not exist' "$dir/err" || fail "a path that is not there: $(cat "$dir/err")"
ends 1 mail import bill.pdf --account new@example.com
grep -q 'neither a message nor a mailbox' "$dir/err" || fail "no mail: $(cat "$dir/err")"
ends 2 mail import other.mbox --account ../a@b
if [ "$(id -u)" -ne 0 ]; then
    cp other.mbox closed.mbox && chmod 0 closed.mbox
    ends 1 mail import closed.mbox --account new@example.com
fi
ends 1 mail import "$(seq -s / 1 1000)" --account new@example.com
t jobs list --json | jq -e '[.jobs[]? | select(.kind == "mail.import" and .state != "done")] == []' >/dev/null ||
    fail "a job of an import is left: $(t jobs list)"
latin=$'Entw\xfcrfe.mbox' # it could not be told by its bytes
cp other.mbox "$latin"
ends 1 mail import "$latin" --account new@example.com
grep -q 'is not UTF-8' "$dir/err" && grep -q 'Name the directory' "$dir/err" || fail "no UTF-8: $(cat "$dir/err")"
mkdir latin && mv "$latin" latin/
ends 0 mail import latin --account new@example.com --json
[ "$(value there)" -eq 30 ] || fail "a directory of other names: $(cat "$dir/out")"
rm -r latin
# Nothing else may have it read files.
ends 2 schedule add --at 'daily 06:00' -- mail import "$dir/other.mbox"

# ---- an account that comes later gets the archive that is open
ends 0 mail import second.mbox --account cara@example.com
sign_in cara@example.com tok-c
ends 0 mail sync cara@example.com --quiet --json
[ "$(rows cara@example.com)" -eq 25 ] || fail "cara: $(rows cara@example.com) rows"
ends 0 mail import second.mbox other.mbox --account cara@example.com --json
[ "$(value stored)" -eq 30 ] && [ "$(value there)" -eq 20 ] || fail "cara again: $(cat "$dir/out")"

# ---- beside a sync of the same account, whose first fetches hang meanwhile
curl -sSf -o /dev/null -X POST "$origin/_cloud/stats/reset"
fault '{"method":"gmail.users.messages.get","count":3,"fault":"stall-start","ms":4000}'
"$tidemark" --home "$dir/home" mail sync "$user" --quiet --json >"$dir/sync.out" 2>"$dir/sync.err" &
sync=$!
until_true 60 sh -c "curl -sS '$origin/_cloud/faults' | jq -e '.faults[0].struck > 0'" || fail "the sync fetches nothing"
ends 0 mail import takeout.mbox --account "$user" --json
[ $(($(value stored) + $(value there))) -eq $messages ] && [ "$(value messages)" -eq $messages ] || fail "Takeout: $(cat "$dir/out")"
wait "$sync" || fail "the sync beside an import: $(cat "$dir/sync.out" "$dir/sync.err")"
no_faults
ends 0 mail sync "$user" --quiet --json
[ "$(field stored)" -eq $messages ] || fail "the sync afterwards: $(cat "$dir/out")"
[ "$(status_of "$user" copies.exact)" -eq $messages ] && [ "$(status_of "$user" copies.held)" -eq 0 ] || fail "copies: $(t mail status "$user" --json)"
[ "$(status_of "$user" cycles_open)" -eq 0 ] || fail "status: $(t mail status "$user" --json)"
[ "$(rows "$user")" -eq $messages ] || fail "$(rows "$user") rows"
while read -r id; do # the server's labels, not those of the file
    t mail show "$id" --json >"$dir/out"
    grep -q 'Old name' "$dir/out" && fail "$id has a label of the file: $(jq -c .labels "$dir/out")"
done < <(head -n 5 "$dir/ids")
server_has=$(ask "$api/messages/$(head -n 1 "$dir/ids")?format=minimal" | jq -c '.labelIds // [] | sort')
t mail show "$(head -n 1 "$dir/ids")" --json >"$dir/out"
[ "$(jq -c '[.labels[] | .id? // .] | sort' "$dir/out")" = "$server_has" ] || echo "(labels: $(jq -c .labels "$dir/out"), Gmail: $server_has)"

# ---- an account whose sign-in is gone: its archive needs none
stop_serve 0 5
mv "$dir/home/secrets" "$dir/secrets" && mkdir -m 700 "$dir/home/secrets"
start_serve
ends 0 mail import second.mbox --account bob@example.com --json
[ "$(value stored)" -eq 20 ] && [ "$(value handed_over)" = true ] || fail "without a sign-in: $(cat "$dir/out" "$dir/err")"
stop_serve 0 5
rm -r "$dir/home/secrets" && mv "$dir/secrets" "$dir/home/secrets"
start_serve

# ---- two imports at once, of the same file
"$tidemark" --home "$dir/home" mail import third.mbox --account twins@example.com --json >"$dir/first.out" 2>"$dir/first.err" &
first=$!
"$tidemark" --home "$dir/home" mail import third.mbox --account twins@example.com --json >"$dir/second.out" 2>"$dir/second.err" &
second=$!
wait "$first" || fail "the first of two: $(cat "$dir/first.err")"
wait "$second" || fail "the second of two: $(cat "$dir/second.err")"
[ $(($(jq .stored "$dir/first.out") + $(jq .stored "$dir/second.out"))) -eq "$many" ] || fail "two at once: $(cat "$dir/first.out" "$dir/second.out")"
[ "$(rows twins@example.com)" -eq "$many" ] && [ -z "$(twice twins@example.com)" ] || fail "two at once: $(rows twins@example.com) rows"

# ---- stopped by the user: the import stops, the process stays
import_many() { # EMAIL: in the background; its process is $import
    local before
    before=$(last_result)
    "$tidemark" --home "$dir/home" mail import "$dir/many.mbox" --account "$1" >"$dir/many.out" 2>"$dir/many.err" &
    import=$!
    until_true 60 begun "$before" || fail "it does not begin: $(cat "$dir/many.err")"
}
import_many many@example.com
kill -TERM "$import"
wait "$import"
code=$?
[ $code -eq 5 ] || fail "a stopped import ended with $code: $(cat "$dir/many.out" "$dir/many.err")"
grep -q 'run the command again to resume' "$dir/many.err" || fail "stopped: $(cat "$dir/many.err")"
# By its state: it may have stored all, and not have indexed them.
[ "$(state "SELECT state FROM job WHERE kind = (SELECT id FROM kind WHERE name = 'mail.import') ORDER BY id DESC LIMIT 1")" = 4 ] || fail "it went on"
kill -0 "$server" || fail "the process ended with the import"

# ---- the process is killed in the middle: the import says so, and can be repeated
import_many killed@example.com
strike "$server" || fail "serve ended before the kill"
wait "$import"
code=$?
[ $code -eq 5 ] || fail "the import beside a killed process ended with $code: $(cat "$dir/many.out" "$dir/many.err")"
grep -q "process $server, which did the import, ended" "$dir/many.err" && grep -q 'nothing is stored twice' "$dir/many.err" ||
    fail "killed: $(cat "$dir/many.err")"
start_serve
ends 0 mail import many.mbox --account killed@example.com --json
[ $(($(value stored) + $(value there))) -eq "$many" ] || fail "after the kill: $(cat "$dir/out")"
[ "$(rows killed@example.com)" -eq "$many" ] && [ -z "$(twice killed@example.com)" ] || fail "after the kill: $(rows killed@example.com) rows"
[ "$(state "SELECT count(*) FROM job WHERE state IN (0, 1) AND kind = (SELECT id FROM kind WHERE name = 'mail.import')" 2>/dev/null || echo 0)" -eq 0 ] ||
    fail "a job of an import is left"
whole || fail "verify: $(cat "$dir/out")"
stop_serve 0 5

# ---- beside a sync of another account, which waits for the import
fault '{"method":"gmail.users.messages.get","count":3,"fault":"stall-start","ms":3000}'
"$tidemark" --home "$dir/home" mail sync bob@example.com --quiet --json >"$dir/sync.out" 2>"$dir/sync.err" &
sync=$!
until_true 60 sh -c "curl -sS '$origin/_cloud/faults' | jq -e '.faults[0].struck > 0'" || fail "bob's sync fetches nothing"
ends 0 mail import many.mbox third.mbox --account "late@example.com" --json
[ "$(value stored)" -eq $((2 * many)) ] || fail "beside a sync of another account: $(cat "$dir/out")"
wait "$sync" || fail "bob's sync: $(cat "$dir/sync.out" "$dir/sync.err")"
[ "$(rows bob@example.com)" -eq $((messages + 20)) ] && [ "$(rows late@example.com)" -eq $((2 * many)) ] || fail "bob: $(rows bob@example.com), late: $(rows late@example.com)"
no_faults
ends 0 mail sync --quiet
whole || fail "verify at the end: $(cat "$dir/out")"

echo "$failed failed"
[ "$failed" -eq 0 ]
