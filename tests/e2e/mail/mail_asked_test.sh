#!/usr/bin/env bash
# mail_asked_test.sh TIDEMARK CLOUD: a removal whose answer was lost is found and written down
# as one, also when the message was changed since; so `mail restore` undoes it (M14, M15).
. "$(dirname "$0")/../stage.sh"

serve --seed 7 --quota off --mailbox "$user=40" --token tok="$user"
post() { curl -sSf -X POST -d "$2" "$origin/_cloud/$1" >/dev/null || fail "$1 $2"; }
label() { post mail/label "{\"user\":\"$user\",\"ids\":[\"$1\"],\"add\":[\"$2\"]}"; }
t() { timeout 150 "$tidemark" --home "$dir/home" --set governor.gmail.window_units=0 "$@"; }
in_inbox() {
    curl -sSf -H 'Authorization: Bearer tok' "$origin/gmail/v1/users/me/messages/$1?format=minimal" |
        jq -e '.labelIds // [] | index("INBOX")' >/dev/null
}
ids() { t mail manifest 1 --state "$1" --json | jq -r '.messages[].id'; } # in the order of the run

sign_in
t mail sync --quiet >/dev/null || fail "sync"

# Killed when Gmail has done it and has not answered.
post faults '{"method":"gmail.users.messages.batchModify","count":1,"fault":"stall-start","ms":20000}'
"$tidemark" --home "$dir/home" --set governor.gmail.window_units=0 \
    mail archive older_than:1d --limit 4 --yes --no-sync --quiet >"$dir/out" 2>&1 &
run=$!
for _ in $(seq 400); do
    [ "$(curl -sS "$origin/_cloud/faults" | jq '.faults[0].struck')" -ge 1 ] && break
    kill -0 "$run" 2>/dev/null || break
    read -rt 0.05 <> <(:) || true
done
strike "$run" || fail "it ended before the kill: $(cat "$dir/out")"
curl -sS -X DELETE "$origin/_cloud/faults" >/dev/null
mapfile -t asked < <(ids asked)
[ ${#asked[@]} -eq 4 ] || fail "asked: ${asked[*]}"
for id in "${asked[@]}"; do
    in_inbox "$id" && fail "$id was not removed by the call"
done

# It is not known yet whether they were removed: a restore names them, says what to do and fails.
for more in --dry-run --yes; do
    t mail restore --manifest 1 $more --json >"$dir/out" 2>"$dir/err"
    [ $? -eq 3 ] || fail "restore $more of what was asked for did not end with 3: $(cat "$dir/out" "$dir/err")"
    [ "$(jq -r '.refused[].id' "$dir/out")" = "$(printf '%s\n' "${asked[@]}")" ] || fail "$more names $(cat "$dir/out")"
    jq -e '.refused | all(.reason | contains("tidemark mail archive --resume 1"))' "$dir/out" >/dev/null ||
        fail "$more does not say what to do: $(cat "$dir/out")"
done
[ "$(ids asked | wc -l)" -eq 4 ] || fail "the restore changed the manifest: $(ids asked)"

# A sync adopts the removal; after it another client stars two, and puts a third one back.
t mail sync --quiet >/dev/null || fail "sync after the kill"
label "${asked[0]}" STARRED
label "${asked[1]}" STARRED
label "${asked[2]}" INBOX
# Gmail denies the first one once, though nothing tells of a deletion: that proves nothing.
post faults '{"method":"gmail.users.messages.get","count":1,"fault":"404"}'
t mail archive --resume 1 --no-sync --yes --json >"$dir/out" 2>"$dir/err"
[ $? -eq 3 ] || fail "one is refused, so it ends with 3: $(cat "$dir/out" "$dir/err")"
[ "$(curl -sS "$origin/_cloud/faults" | jq '.faults[0].struck')" -eq 1 ] || fail "nothing was denied"
[ "$(ids removed)" = "$(printf '%s\n' "${asked[0]}" "${asked[1]}" "${asked[3]}")" ] || fail "removed: $(cat "$dir/out")"
[ "$(ids refused)" = "${asked[2]}" ] || fail "refused: $(cat "$dir/out")"

t mail restore --manifest 1 --yes >"$dir/out" 2>&1 || fail "restore: $(cat "$dir/out")"
for id in "${asked[@]}"; do
    in_inbox "$id" || fail "$id was not put back"
done
echo "$failed failed"
[ "$failed" -eq 0 ]
