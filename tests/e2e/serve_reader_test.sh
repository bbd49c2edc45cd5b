#!/usr/bin/env bash
# serve_reader_test.sh TIDEMARK CLOUD: the mail reader over the API of `tidemark serve`: a page that is open makes it list the
# mailbox, lists and pages, a body that is fetched, actions with undo, offline, after kill -9, refused (K5 to K12); drafts with
# attachments, sent once, undone in time, after kill -9 (K11, K14).
. "$(dirname "$0")/stage.sh"
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
export TIDEMARK_READER_HOLD=4s                    # of what is sent
now=$(date +%s%3N)
serve --quota off --seed 5 --clock "$now" --mailbox "$user=0" --token tok="$user"
deliver() { # SUBJECT
    printf 'From: Ben <ben@example.org>\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%s@example.org>\r\n\r\nText of %s\r\n' "$user" "$1" "$1" "$1" |
        curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=$user" || fail deliver
}
for subject in one two three four five; do deliver "$subject"; done
start_serve
sign_in
ends 0 token add work --scope work
work=$(cat "$dir/out")
curl -sSf -o "$dir/openapi.json" "$page/api/v1/openapi.json" || fail openapi
mail=mail/$user
get() { # PATH CODE
    local code
    code=$(ask_page -o "$dir/body" -H "Authorization: Bearer $work" "$page/api/v1/$1")
    [ "$code" = "$2" ] || fail "line ${BASH_LINENO[0]}: $1 answered $code, not $2: $(head -c 400 "$dir/body")"
    [ "$code" != 200 ] || "$(dirname "$0")/openapi_check.py" "$dir/openapi.json" get "/api/v1/$1" 200 "$dir/body" || fail "line ${BASH_LINENO[0]}"
}
keys=0
send() { # METHOD PATH CODE BODY
    local code
    keys=$((keys + 1))
    code=$(ask_page -X "$1" -o "$dir/body" -H "Authorization: Bearer $work" -H 'Content-Type: application/json' -H "Idempotency-Key: k$keys" \
        ${4:+-d "$4"} "$page/api/v1/$2")
    [ "$code" = "$3" ] || fail "line ${BASH_LINENO[0]}: $2 answered $code, not $3: $(head -c 400 "$dir/body")"
}
holds() { jq -e "$1" "$dir/body" >/dev/null || fail "line ${BASH_LINENO[0]}: not $1: $(head -c 1500 "$dir/body")"; }
subjects() { # LABEL: of its list, newest first
    get "$mail/lists/$1" 200
    jq -r '[.items[].subject] | join(" ")' "$dir/body"
}
shows() { [ "$(subjects "$1")" = "$2" ]; }
id_of() { # SUBJECT
    get "$mail/lists/ALL" 200
    jq -r --arg s "$1" '.items[] | select(.subject == $s) | .id' "$dir/body"
}
labels_at_server() { ask "$api/messages/$1?format=minimal" | jq -r '.labelIds | sort | join(" ")'; }

# ---- nobody looked: nothing is fetched.  A page that is open makes it so.
get reader/status 200
holds '.accounts == []'
curl -sSN --max-time 200 -H "Authorization: Bearer $work" "$page/api/v1/stream?topics=reader" >"$dir/stream" 2>/dev/null &
stream=$!
stage_pids+=("$stream")
until_true 30 shows INBOX "five four three two one" || fail "the inbox: $(subjects INBOX)"
active() { sed -n 's/^data: //p' "$dir/stream" | tail -n 1 | jq -e '.accounts[0].state == "active"'; }
until_true 30 active || fail "not active: $(tail -n 3 "$dir/stream" | head -c 600)"
deliver six
until_true 30 shows INBOX "six five four three two one" || fail "new mail: $(subjects INBOX)"
get "$mail/lists" 200
holds '[.lists[] | select(.id == "INBOX")][0] | .unread == 6 and .total == 6 and .type == "system"'
get "$mail/lists/INBOX/days" 200
holds '.total == 6 and ([.days[].count] | add) == 6 and (.days[0].day | test("^20[0-9][0-9]-[01][0-9]-[0-3][0-9]$"))'

# ---- pages of a list, and what changed since
get "$mail/lists/INBOX?limit=4" 200
holds '(.items | length) == 4 and .next != null'
next=$(jq -r '.next | @uri' "$dir/body")
get "$mail/lists/INBOX?limit=4&after=$next" 200
holds '[.items[].subject] == ["two", "one"] and .next == null'
get "$mail/lists/INBOX?after=nonsense" 400
get "$mail/changes" 200
holds '.reset'
version=$(jq -r .version "$dir/body")

# ---- a message: its headers are here, its body is fetched when a person opens it
three=$(id_of three)
get "$mail/messages/$three" 200
holds '.subject == "three" and .body == "none" and .text == ""'
send POST "$mail/refresh" 202 "{\"message\":\"$three\"}"
has_body() { get "$mail/messages/$three" 200 && jq -e '.body == "cache" and (.text | contains("Text of three"))' "$dir/body"; }
until_true 30 has_body || fail "no body: $(head -c 600 "$dir/body")"
frame=$(jq -r .view.path "$dir/body")
[ "$(ask_page -o "$dir/frame" "$page${frame}html")" = 200 ] || fail "no frame"
grep -q 'Text of three' "$dir/frame" || fail "the frame: $(cat "$dir/frame")"
send POST "$mail/refresh" 202 "{\"message\":\"$three\"}"
holds '.job == 0' # it is here
code=$(ask_page -o "$dir/body" -H "Authorization: Bearer $work" -H 'Content-Type: application/json' -d "{\"message\":\"$three\"}" "$page/api/v1/$mail/refresh")
[ "$code" = 202 ] || fail "a refresh without an Idempotency-Key: $code $(cat "$dir/body")"
get "$mail/threads/$(t reader list "$user" INBOX --json | jq -r '.items[] | select(.subject == "three") | .thread')" 200
holds '[.messages[].subject] == ["three"]'
get "$mail/messages/none" 404
send POST "$mail/refresh" 400 '{}'

# ---- what runs now and for what; then nothing does
fault '{"method":"gmail.users.messages.get","fault":"stall-body","ms":3000}'
one=$(id_of one)
send POST "$mail/refresh" 202 "{\"message\":\"$one\"}"
fetches_it() { get reader/status 200 && jq -e --arg id "$one" '.accounts[0].doing | .kind == "reader.body" and .what == $id and .job > 0' "$dir/body"; }
until_true 30 fetches_it || fail "what runs: $(cat "$dir/body")"
ends 0 reader status
grep -q "reader.body $one" "$dir/out" || fail "what runs: $(cat "$dir/out")"
no_faults
rests() { get reader/status 200 && jq -e '.accounts[0] | .doing == null and ([.waiting[]] | add) == 0 and .offline_since == null and .initial == null' "$dir/body"; }
until_true 60 rests || fail "it does not rest: $(cat "$dir/body")"

# ---- the reader has a row of its own where all accounts are shown
row_is() { get state 200 && jq -e --arg w "$1" '[.accounts[] | select(.system == "reader")] | length == 1 and .[0].account == "ada@example.com" and .[0].words == $w' "$dir/body"; }
until_true 60 row_is "Active, nothing waits" || fail "its row: $(cat "$dir/body")"
line_is() { t status | grep -q 'ada@example.com *reader *-.*Active, nothing waits'; }
until_true 60 line_is || fail "its line: $(t status)"
bare_is() { t | grep -q 'reader .*Active, nothing waits'; }
until_true 60 bare_is || fail "its line: $(t)"

# ---- actions: shown at once, uploaded, undone
two=$(id_of two)
send POST "$mail/actions" 200 "{\"do\":\"archive\",\"messages\":[\"$three\",\"$two\"]}"
holds '.changed == 2'
action=$(jq .id "$dir/body")
shows INBOX "six five four one" || fail "after an action: $(subjects INBOX)"
get "$mail/changes?since=$version" 200
holds '(.reset | not) and ([.items[].subject] | index("three") != null)'
uploaded() { [[ $(labels_at_server "$three") != *INBOX* && $(labels_at_server "$two") != *INBOX* ]]; }
until_true 30 uploaded || fail "not uploaded: $(labels_at_server "$three")"
done_is() { get "$mail/actions" 200 && jq -e --argjson id "$1" ".items[] | select(.id == \$id) | .state == \"$2\"" "$dir/body"; }
until_true 30 done_is "$action" "done" || fail "the action: $(cat "$dir/body")"
send DELETE "$mail/actions/$action" 200
shows INBOX "six five four three two one" || fail "after undo: $(subjects INBOX)"
put_back() { [[ $(labels_at_server "$three") == *INBOX* ]]; }
until_true 30 put_back || fail "the server after undo: $(labels_at_server "$three")"
send DELETE "$mail/actions/99999" 404
send POST "$mail/actions" 400 "{\"do\":\"fold\",\"messages\":[\"$three\"]}"
send POST "$mail/actions" 400 "{\"do\":\"archive\"}"
send POST "$mail/actions" 400 "{\"do\":\"archive\",\"messages\":[\"$three\"],\"home\":\"/\"}"

# ---- refused: put back, and said
fault '{"method":"gmail.users.messages.modify","fault":"403"}'
send POST "$mail/actions" 200 "{\"do\":\"trash\",\"messages\":[\"$two\"]}"
action=$(jq .id "$dir/body")
until_true 30 done_is "$action" refused || fail "not refused: $(cat "$dir/body")"
shows INBOX "six five four three two one" || fail "not put back: $(subjects INBOX)"
get "$mail/actions?state=refused" 200
holds "[.items[] | [.id, .state, (.error | length > 0)]] == [[$action, \"refused\", true]]"
get "$mail/actions?state=odd" 400
no_faults

# ---- a message that is written: kept here, with a file; sent after its hold, unless that is undone
put() { # PATH CODE TYPE FILE
    local code
    code=$(ask_page -X PUT -o "$dir/body" -H "Authorization: Bearer $work" -H "Content-Type: $3" --data-binary "@$4" "$page/api/v1/$1")
    [ "$code" = "$2" ] || fail "line ${BASH_LINENO[0]}: $1 answered $code, not $2: $(head -c 400 "$dir/body")"
}
sent() { ask "$api/messages?q=in:sent" | jq '.messages | length'; }
echo '{"to":"Bob <bob@example.org>","subject":"Plan","text":"Here it is."}' >"$dir/letter.json"
head -c 3000000 /dev/urandom >"$dir/plan.bin"
put "$mail/drafts/d1" 200 application/json "$dir/letter.json"
holds '.id == "d1" and .saved_unix_ms > 0 and .created'
put "$mail/drafts/d1/attachments/a%20plan.bin" 200 application/octet-stream "$dir/plan.bin"
holds '.name == "a plan.bin" and .bytes == 3000000'
put "$mail/drafts/d1/attachments/b" 200 application/octet-stream "$dir/letter.json"
send DELETE "$mail/drafts/d1/attachments/b" 200
holds '.removed'
put "$mail/drafts/none/attachments/b" 404 application/octet-stream "$dir/letter.json"
put "$mail/drafts/d1" 400 application/json /dev/null
put "$mail/drafts/d1" 415 text/plain "$dir/letter.json"
put "mail/none@example.org/drafts/d1" 404 application/json "$dir/letter.json"
get "$mail/drafts/d1" 200
holds '.subject == "Plan" and .attachments == [{"name":"a plan.bin","bytes":3000000}] and .sending == 0'
get "$mail/drafts" 200
holds '[.items[].id] == ["d1"]'
get "$mail/drafts/none" 404
[ "$(find "$dir/home/archive/reader/$user" -type f | wc -l)" = 1 ] || fail "files: $(find "$dir/home/archive/reader")"
send POST "$mail/actions" 404 '{"do":"send","messages":[],"draft":"none"}'
send POST "$mail/actions" 400 '{"do":"send","messages":[]}'
send POST "$mail/actions" 200 '{"do":"send","messages":[],"draft":"d1"}'
action=$(jq .id "$dir/body")
put "$mail/drafts/d1" 409 application/json "$dir/letter.json" # it is being sent
send DELETE "$mail/actions/$action" 200
done_is "$action" undone || fail "not undone: $(cat "$dir/body")"
[ "$(sent)" = 0 ] || fail "sent although it was undone"
put "$mail/drafts/d1" 200 application/json "$dir/letter.json"
send POST "$mail/actions" 200 '{"do":"send","messages":[],"draft":"d1"}'
action=$(jq .id "$dir/body")
until_true 60 done_is "$action" "done" || fail "not sent: $(cat "$dir/body")"
[ "$(sent)" = 1 ] || fail "sent $(sent) times"
until_true 30 shows SENT Plan || fail "the sent mail: $(subjects SENT)"
get "$mail/drafts" 200
holds '.items == []'
[ "$(find "$dir/home/archive/reader/$user" -type f | wc -l)" = 0 ] || fail "files are left: $(find "$dir/home/archive/reader")"
echo '{"to":"bob@example.org","subject":"Second"}' >"$dir/letter.json"
put "$mail/drafts/d2" 200 application/json "$dir/letter.json"
send DELETE "$mail/drafts/d2" 200
holds '.removed'
put "$mail/drafts/d3" 200 application/json "$dir/letter.json"

# ---- a draft that was begun in Gmail is continued, the same one however often it is asked for
raw=$(printf 'To: bob@example.org\r\nSubject: Begun\r\n\r\nBegun on a phone.\r\n' | base64 -w 0 | tr '+/' '-_')
curl -sSf -o /dev/null -H 'Authorization: Bearer tok' -H 'Content-Type: application/json' -d "{\"message\":{\"raw\":\"$raw\"}}" \
    "$origin/gmail/v1/users/me/drafts" || fail "no draft was made"
begun() { id_of Begun | grep .; }
until_true 30 begun || fail "the draft is not shown: $(subjects ALL)"
begun=$(id_of Begun)
continued() { send POST "$mail/drafts" 200 "{\"message\":\"$begun\"}" && jq -e '.id != ""' "$dir/body"; }
until_true 30 continued || fail "not continued: $(cat "$dir/body")"
draft=$(jq -r .id "$dir/body")
get "$mail/drafts/$draft" 200
holds '.to == "bob@example.org" and (.text | startswith("Begun on a phone.")) and .formatted == false and .removed == false'
ends 0 reader continue "$user" --message "$begun"
grep -qx "draft $draft" "$dir/out" || fail "another one: $(cat "$dir/out")"
ends 0 reader draft "$draft" --account "$user"
[ -z "$(id_of Begun)" ] || fail "it is shown twice"
send POST "$mail/drafts" 404 '{"message":"none"}'
send DELETE "$mail/drafts/$draft" 200

# ---- a search of what is here: headers, and the words of bodies that were fetched; no call, and what a person did is shown
searched() { # QUERY [ACCOUNT]
    get "mail/${2:-$user}/search?$(jq -rn --arg q "$1" '"q=" + ($q | @uri)')" 200
    jq -r '[.items[].subject] | join(" ")' "$dir/body"
}
finds() { [ "$(searched "$1")" = "$2" ] || fail "line ${BASH_LINENO[0]}: $1 finds $(searched "$1"), not $2"; }
fault '{"method":"*","fault":"503"}'
finds 'subject:four' four
finds 'from:ben in:inbox' "six five four three two one"
finds '"text of three"' three
finds 'one OR six' "six one"
finds 'from:ben -four -two' "six five three one"
finds 'label:inbox is:starred' ""
finds nothing_like_this ""
four=$(id_of four)
send POST "$mail/actions" 200 "{\"do\":\"star\",\"messages\":[\"$four\"]}"
finds 'is:starred' four
finds '-is:starred from:ben' "six five three two one"
holds '[.items[] | select(.labels | index("STARRED"))] == []'
finds four four
holds '.items[0].starred and .items[0].pending and .items[0].body == "none" and .next == null'
get "$mail/search?q=from%3Aben&limit=4" 200
holds '(.items | length) == 4 and .next != null'
get "$mail/search?q=from%3Aben&limit=4&after=$(jq -r '.next | @uri' "$dir/body")" 200
holds '[.items[].subject] == ["two", "one"] and .next == null'
get "$mail/search?q=from%3Aben&after=nonsense" 400
get "$mail/search?q=label%3Anone_of_this_name" 400
get "$mail/search?q=from%3A" 400
ends 0 reader search "$user" subject:four
grep -q four "$dir/out" || fail "search: $(cat "$dir/out")"
no_faults
starred_four() { [[ $(labels_at_server "$four") == *STARRED* ]]; }
until_true 60 starred_four || fail "four is not starred: $(labels_at_server "$four")"
send POST "$mail/actions" 200 "{\"do\":\"unstar\",\"messages\":[\"$four\"]}"
# ---- recipients: of the cache; then of the archive as well
knows() { get "$mail/people?q=$1&limit=5" 200 && jq -e --arg a "$2" '.items | length == 1 and .[0].address == $a' "$dir/body"; }
until_true 60 knows BE ben@example.org || fail "people: $(cat "$dir/body")"
holds '.items == [{"name":"Ben","address":"ben@example.org"}]'
until_true 60 knows bo bob@example.org || fail "people: $(cat "$dir/body")"
get "$mail/people?q=ada" 200
holds '.items == []' # the user
get "$mail/people?q=example" 200
holds '[.items[].address] == ["bob@example.org", "ben@example.org"]' # first whom the user wrote to
get "$mail/people?q=b&limit=0" 400
get "mail/none@example.org/people?q=b" 404
ends 0 reader people "$user" be
grep -q 'Ben *ben@example.org' "$dir/out" || fail "people: $(cat "$dir/out")"
people_file=$dir/home/cache/reader/$user.people
get "$mail/lists" 200
version=$(jq -r .version "$dir/body")
get "$mail/changes?since=$version" 200
holds '.archive | not'
ends 0 mail sync "$user"
# What only the mirror stored is told, too: lists and counts may have more.
get "$mail/changes?since=$version" 200
holds '.archive and (.reset | not)'
get reader/status 200
holds ".accounts[0].version != \"$version\""
archived() { get "$mail/people?q=be" 200 && [ "$(sqlite3 "$people_file" 'SELECT sum(ready) > 5 FROM seen WHERE shard < 4294967295')" = 1 ]; }
until_true 60 archived || fail "of the archive: $(sqlite3 "$people_file" 'SELECT * FROM seen')"
knows BE ben@example.org || fail "people: $(cat "$dir/body")"

# ---- the network is gone: since when is the beginning, however often it is tried again
fault '{"method":"*","fault":"reset-before"}'
offline() { send POST "$mail/refresh" 202 '{"folder":"INBOX"}' && get reader/status 200 && jq -e '.accounts[0].offline_since != null' "$dir/body"; }
until_true 60 offline || fail "not offline: $(cat "$dir/body")"
since=$(jq '.accounts[0].offline_since' "$dir/body")
tried=$(t status --json | jq '.accounts[0].last_failed_unix_ms')
again() { send POST "$mail/refresh" 202 '{"folder":"INBOX"}' && t status --json | jq -e --argjson f "$tried" '.accounts[0].last_failed_unix_ms > $f'; }
until_true 60 again || fail "it is not tried again"
get reader/status 200
holds ".accounts[0].offline_since == $since"
line_is_offline() { t status | grep -q 'reader .*Offline since .* wait'; }
until_true 60 line_is_offline || fail "its line: $(t status)"
no_faults
online() { send POST "$mail/refresh" 202 '{"folder":"INBOX"}' && get reader/status 200 && jq -e '.accounts[0].offline_since == null' "$dir/body"; }
until_true 60 online || fail "still offline: $(cat "$dir/body")"

# ---- kill -9 while the server cannot be reached: the action is shown after the restart, and uploaded
fault '{"method":"*","fault":"503"}'
send POST "$mail/actions" 200 "{\"do\":\"star\",\"messages\":[\"$two\"]}"
shows STARRED two || fail "starred: $(subjects STARRED)"
send POST "$mail/actions" 200 '{"do":"send","messages":[],"draft":"d3"}'
kill "$stream"
strike "$server" || fail "it had ended"
start_serve
shows STARRED two || fail "starred after kill -9: $(subjects STARRED)"
no_faults
starred() { [[ $(labels_at_server "$two") == *STARRED* ]]; }
until_true 60 starred || fail "not uploaded after kill -9: $(labels_at_server "$two")"
sent_both() { [ "$(sent)" = 2 ]; }
until_true 60 sent_both || fail "after kill -9 $(sent) are sent"

# ---- the commands show the same; the cache is marked as one
ends 0 reader status --json
jq -e '.accounts[0].account == "ada@example.com"' "$dir/out" >/dev/null || fail "status: $(cat "$dir/out")"
ends 0 reader list "$user" INBOX
grep -q 'six' "$dir/out" || fail "list: $(cat "$dir/out")"
ends 0 reader drafts "$user"
ends 0 reader save d4 --account "$user" <"$dir/letter.json"
ends 0 reader draft d4 --account "$user"
grep -q 'Subject: Second' "$dir/out" || fail "draft: $(cat "$dir/out")"
ends 0 reader attach d4 letter.json --account "$user" <"$dir/letter.json"
ends 0 reader detach d4 letter.json --account "$user"
ends 0 reader discard d4 --account "$user"
ends 1 reader draft d4 --account "$user"
grep -q '^Signature: 8a477f597d28d172789f06886806bc55' "$dir/home/cache/reader/CACHEDIR.TAG" || fail "no CACHEDIR.TAG"
stop_serve 0
ends 0 reader list "$user" INBOX # without a process that stays
ends 0 status
grep -q 'reader .*Not running' "$dir/out" || fail "its line: $(cat "$dir/out")"

# ---- every unread message counts
ends 0 reader folders "$user" --json
before=$(jq '[.lists[] | select(.id == "INBOX")][0] | .unread' "$dir/out")
sqlite3 "$dir/home/cache/reader/$user.db" "
    INSERT INTO message SELECT 100000 + value, 'many' || value, 't' || value, '1', $now, 100, 1, '', '', '', '', '', '', 0, 0, 0, 0, 0
        FROM generate_series(1, 30000);
    INSERT INTO message_label SELECT l.id, m.internal_ms, m.id FROM message m, label l WHERE m.id > 100000 AND l.label IN ('INBOX', 'UNREAD', 'ALL');"
ends 0 reader folders "$user" --json
jq -e --argjson b "$before" '[.lists[] | select(.id == "INBOX")][0].unread == $b + 30000' "$dir/out" >/dev/null || fail "of 30000 unread, and $before: $(cat "$dir/out")"
ends 1 reader act --account "$user" --do archive "$two"
grep -q 'tidemark serve' "$dir/err" || fail "what to do: $(cat "$dir/err")"
exit "$((failed > 0))"
