#!/usr/bin/env bash
# mail_kill_test.sh TIDEMARK CLOUD [KILLS [SEED]]: the real program mirrors a mailbox of
# the real local cloud and is killed with SIGKILL at random moments; mail arrives and
# goes meanwhile (M6b, M15).  After each kill, from the files alone:
#   - every message older than the tidemark is in the archive, recorded as bad, or gone
#     from the server;
#   - every message of a fetch that is done is in the archive.
# In the end the archive is the mailbox byte for byte, and the messages that were
# fetched twice are at most, per kill, the calls in flight and one commit of the archive.
# Each life is held up by the cloud after some messages, so that the kill finds it at work
# on a machine of any speed; too few kills that struck are a failure.
. "$(dirname "$0")/../stage.sh"
kills=${3:-15}
seed=${4:-$$}
RANDOM=$seed
echo "seed $seed"
per_kill=110 # 10 calls in flight, 100 messages of one commit; on average, see below
# The quota is not what is tried here (bench/mail_quota.sh): as fast as it goes.
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=100000000
mkfifo "$dir/ready" "$dir/silence"
exec 4<>"$dir/silence" # never written to
"$cloud" --listen 127.0.0.1:0 --quiet --seed 7 --quota off --concurrency 100000 --latency 8 \
    --mailbox "$user=$((kills * 45 + 60))" --token tok="$user" >"$dir/ready" &
cloud_pid=$!
sync_pid=
finish() {
    [ -n "$sync_pid" ] && kill -9 "$sync_pid" 2>/dev/null
    kill "$cloud_pid" 2>/dev/null
    rm -rf "$dir"
}
trap finish EXIT
read -r _ origin <"$dir/ready" || exit 1
api=$origin/gmail/v1/users/me
t() { "$tidemark" --home "$dir/home" "$@"; }
state() { sqlite3 -cmd '.timeout 5000' "$dir/home/state.db" "$1"; }
figure() { curl -sS "$origin/_cloud/stats" | jq ".users.\"$user\" | $1 // 0"; }
# Fetches so far, also of the same message again, without starting more than one program.
fetched() {
    local text
    text=$(curl -sS "$origin/_cloud/stats?user=$user")
    [[ $text =~ \"fetched\":[^}]*\"total\":\ *([0-9]+) ]] && count=${BASH_REMATCH[1]} || count=0
}
rest() { read -rt "$1" -u 4 || true; } # a pause, not a synchronisation
now_ms() { date +%s%3N; }

# ---- the truth: id, internal date, when it arrived (0: before we began)
each_id() { # format, into files in $1/
    local token='' page
    while :; do
        page=$(ask "$api/messages?maxResults=500&includeSpamTrash=true&pageToken=$token") || return 1
        jq -r '.messages[]?.id' <<<"$page"
        token=$(jq -r '.nextPageToken // empty' <<<"$page")
        [ -n "$token" ] || return 0
    done
}
each_id >"$dir/ids" || fail "list"
sed "s|.*|url = \"$api/messages/&?format=minimal\&fields=id,internalDate\"|" "$dir/ids" >"$dir/urls"
ask -K "$dir/urls" | jq -r '[.id, .internalDate, 0] | @tsv' >"$dir/truth" || fail "dates"
[ "$(wc -l <"$dir/truth")" -eq "$(wc -l <"$dir/ids")" ] || fail "the truth is not whole"

arrive() { # a message, one in three with an old date
    local date id at
    at=$(now_ms)
    date=$at
    [ $((RANDOM % 3)) -ne 0 ] || date=$((at - RANDOM * 5000000))
    id=$(printf 'From: x@example.org\r\nSubject: late %s\r\n\r\nnew\r\n' "$at" |
        curl -sSf --data-binary @- "$origin/_cloud/mail?user=$user&date=$date" | jq -r .id) || fail "deliver"
    printf '%s\t%s\t%s\n' "$id" "$date" "$at" >>"$dir/truth"
}
delete_one() {
    local id
    id=$(sed -n "$((RANDOM * 7 % $(wc -l <"$dir/truth") + 1))p" "$dir/truth" | cut -f 1)
    curl -sSf -d "{\"user\":\"$user\",\"ids\":[\"$id\"]}" "$origin/_cloud/mail/delete" >/dev/null || fail "delete"
    sed -i "/^$id/d" "$dir/truth"
}

# ---- what a kill left
stored_ids() {
    local shard
    for shard in "$dir/home/archive/$user"/*.db; do
        [ -e "$shard" ] && printf '.open %s\nSELECT gmail_id FROM message;\n' "$shard"
    done | sqlite3 2>/dev/null | sort -u # a shard without its table has no message
}
check() {
    local mark
    [ -e "$dir/home/state.db" ] || return 0
    stored_ids >"$dir/stored"
    state "SELECT item FROM bad" | sort -u >"$dir/bad"
    sort -u "$dir/stored" "$dir/bad" >"$dir/known"
    mark=$(state "SELECT cursor FROM stream s JOIN mail_account m ON m.account = s.account AND s.name = 'mail.' || m.epoch")
    mark=${mark:-0}
    [ "$mark" -ge "$mark_seen" ] || fail "kill $1: the tidemark went back from $mark_seen to $mark"
    mark_seen=$mark
    awk -F '\t' -v mark="$mark" '$2 + 0 < mark + 0 && $3 + 0 < mark + 0 { print $1 }' "$dir/truth" | sort >"$dir/behind"
    comm -23 "$dir/behind" "$dir/known" >"$dir/lost"
    [ ! -s "$dir/lost" ] || fail "kill $1: the tidemark $mark passed $(wc -l <"$dir/lost") messages: $(head -n 3 "$dir/lost" | xargs)"
    state "SELECT DISTINCT e.value FROM job j JOIN kind k ON k.id = j.kind, json_each(j.payload, '\$.items') e
           WHERE k.name = 'mail.fetch' AND j.state = 2" | sort >"$dir/done"
    state "SELECT DISTINCT e.value FROM job j JOIN kind k ON k.id = j.kind, json_each(j.payload, '\$.items') e
           WHERE k.name = 'mail.fetch' AND j.state <> 2" | sort -u - "$dir/known" >"$dir/known_or_open"
    cut -f 1 "$dir/truth" | sort >"$dir/there"
    comm -23 "$dir/done" "$dir/known_or_open" | comm -12 - "$dir/there" >"$dir/lost"
    [ ! -s "$dir/lost" ] || fail "kill $1: $(wc -l <"$dir/lost") messages of done jobs are not stored"
    behind=$(wc -l <"$dir/behind")
}

# ---- lives
t account add gmail "$user" --endpoint "$origin" --bearer tok >"$dir/out" || fail "account add"
mark_seen=0
behind=0
again_seen=0
again_most=0
done_kills=0
midway=0 # of them in the middle of fetching
ended_before=0
for ((i = 1; done_kills < kills && i <= kills * 2; i++)); do
    arrive
    [ $((i % 4)) -ne 0 ] || delete_one
    fetched
    before=$count
    wanted=$((1 + RANDOM % 30))
    curl -sSf -o /dev/null "$origin/_cloud/faults" \
        -d "{\"method\":\"gmail.users.messages.get\",\"after\":$((wanted + 5)),\"fault\":\"stall-start\",\"ms\":600000}" || fail "hold it up"
    "$tidemark" --home "$dir/home" mail sync --quiet >"$dir/out" 2>&1 &
    sync_pid=$!
    if [ $((i % 4)) -eq 0 ]; then
        rest "0.$(printf '%03d' $((RANDOM % 200)))" # early: in the opening, the plan, the listing
    else
        while fetched && [ "$count" -lt $((before + wanted)) ] && kill -0 "$sync_pid" 2>/dev/null; do
            rest 0.02
        done
        rest "0.0$(printf '%02d' $((RANDOM % 50)))"
    fi
    if strike "$sync_pid"; then
        done_kills=$((done_kills + 1))
        fetched
        [ "$count" -eq "$before" ] || midway=$((midway + 1))
    else
        ended_before=$((ended_before + 1))
    fi
    sync_pid=
    curl -sSf -X DELETE "$origin/_cloud/faults" >/dev/null || fail "let it go"
    again=$(figure '.fetched | .total - .messages')
    [ $((again - again_seen)) -le "$again_most" ] || again_most=$((again - again_seen))
    again_seen=$again
    check "$i"
    [ "$failed" -eq 0 ] || break
done

[ "$done_kills" -eq "$kills" ] || fail "only $done_kills of $kills kills struck"
[ $((midway * 2)) -ge "$kills" ] || fail "only $midway of $kills kills struck in the middle of fetching"

# ---- the end
timeout 300 "$tidemark" --home "$dir/home" mail sync --quiet --json >"$dir/out" || fail "the last sync: $(tail -n 3 "$dir/out")"
check end
again=$(figure '.fetched | .total - .messages')
# Of the sum: what a kill took may be fetched again several lives later.
[ "$again" -le $((done_kills * per_kill)) ] || fail "$again messages were fetched again after $done_kills kills"
[ "$(state "SELECT count(*) FROM bad WHERE state <> 1")" -eq 0 ] || fail "bad: $(state 'SELECT item, reason FROM bad LIMIT 3')"
t mail sync --quiet >"$dir/out" || fail "one more sync"
before=$(figure .calls)
t mail sync --quiet >"$dir/out" || fail "a sync without news"
[ $(($(figure .calls) - before)) -le 3 ] || fail "$(($(figure .calls) - before)) calls for nothing new"
t mail export "$dir/eml" >"$dir/out" || fail "export"
mkdir "$dir/raw"
cut -f 1 "$dir/truth" | sed "s|.*|url = \"$api/messages/&?format=raw\&fields=id,raw\"|" >"$dir/urls"
ask -K "$dir/urls" | jq -r '[.id, .raw] | @tsv' >"$dir/raws" # a file: from a pipe bash reads byte by byte
while IFS=$'\t' read -r id raw; do
    basenc --base64url -d <<<"$raw" >"$dir/raw/$id.eml" || fail "$id cannot be decoded"
done <"$dir/raws"
cut -f 1 "$dir/truth" | while read -r id; do
    cmp -s "$dir/raw/$id.eml" "$dir/eml/$id.eml" || echo "$id"
done >"$dir/differ"
[ ! -s "$dir/differ" ] || fail "$(wc -l <"$dir/differ") messages differ: $(head -n 3 "$dir/differ" | xargs)"
t mail verify >"$dir/out" || fail "verify: $(tail -n 2 "$dir/out")"
echo "mail kills $done_kills ($midway while fetching, ended before $ended_before), messages $(wc -l <"$dir/truth"), behind the tidemark at the last check $behind," \
    "fetched again $again (at most $again_most after one kill), failed $failed"
[ "$failed" -eq 0 ]
