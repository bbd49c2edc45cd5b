#!/usr/bin/env bash
# assistant_test.sh TIDEMARK CLOUD: the mail assistant from its first command on: what keeps it from beginning is
# said; onboarding makes labels and a configuration; a mail is classified and answered with a draft; doing it
# all again changes nothing; a process that serves does the same (J1, J6, J7, J9, J10, J11, J17).
. "$(dirname "$0")/../stage.sh"
. "$(dirname "$0")/assistant_stage.sh"
serve --quota off --auto-consent --mailbox "$user=0" --token "tok=$user"
yaml=$dir/home/assistant.yaml
category 'meet on Friday' needs_response
category 'tower is closed' fyi
printf '#!/bin/sh\nexec curl -sS -L --max-time 20 -o /dev/null "$1"\n' >"$dir/browser"
chmod +x "$dir/browser"
export BROWSER=$dir/browser
sign_in_for() {
    t account add gmail "$user" --endpoint "$origin" --for "$1" >"$dir/out" 2>&1 || fail "signing in: $(cat "$dir/out")"
}

# ---- before it can begin
sign_in_for sync
ends 0 assistant status
ends 1 assistant onboard eve@example.com
grep -q "account add gmail eve@example.com --for assistant" "$dir/err" || fail "no account: $(cat "$dir/err")"
ends 4 assistant onboard "$user"
grep -q "account add gmail $user --for assistant" "$dir/err" || fail "a sign-in that may only read: $(cat "$dir/err")"
sign_in_for assistant
ends 1 assistant onboard "$user"
grep -q 'account add chat' "$dir/err" || fail "no chat account: $(cat "$dir/err")"
[ ! -e "$yaml" ] || fail "a configuration was written for nothing"
add_chat
ends 1 assistant sync
grep -q 'assistant onboard' "$dir/err" || fail "sync before onboarding: $(cat "$dir/err")"

# ---- a configuration that is wrong is refused with its line, here; mail is synced all the same
printf 'models:\n  fast: a\n  bettr: b\n' >"$yaml"
ends 1 assistant onboard "$user"
grep -q 'assistant.yaml:3:' "$dir/err" || fail "a wrong line: $(cat "$dir/err")"
ends 0 mail sync
grep -q 'assistant.yaml:3:' <(t alerts) || fail "no alert: $(t alerts)"
rm "$yaml"

# ---- onboarding; again: the same
ends 0 assistant onboard "$user"
[ -s "$yaml" ] && grep -q 'fast: "tide-fast"' "$yaml" || fail "no configuration: $(cat "$dir/out")"
grep -qF "$yaml" "$dir/out" || fail "it is not said: $(cat "$dir/out")"
[ "$(ask "$api/labels" | jq '[.labels[] | select(.name | startswith("🤖 AI"))] | length')" = 9 ] || fail "labels"
t alerts | grep -q assistant && fail "the alert stays: $(t alerts)"
ends 0 assistant onboard "$user" --json
jq -e '.before and (.configuration_written | not) and (.labels | length) == 9' "$dir/out" >/dev/null || fail "again: $(cat "$dir/out")"
[ "$(ask "$api/labels" | jq '[.labels[] | select(.name | startswith("🤖 AI"))] | length')" = 9 ] || fail "labels twice"
[ "$(state 'SELECT count(*) FROM assistant_user WHERE onboarded_ms > 0')" = 1 ] || fail "no user"
[ $failed -eq 0 ] || exit 1

# ---- a mail that needs a response, and one that does not
arrive 'Lunch' 'Shall we meet on Friday? I would like to know.'
arrive 'Notice' 'The tower is closed today.'
ends 0 assistant sync
t assistant show --json >"$dir/shown"
jq -e '[.emails[] | .subject + " " + .category + " " + .status] | sort == ["Lunch needs_response drafted", "Notice fyi skipped"]' \
    "$dir/shown" >/dev/null || fail "show: $(cat "$dir/shown")"
[ "$(drafts)" = 1 ] || fail "$(drafts) drafts"
[ "$(labels_of 'subject:Lunch -in:draft')" = '🤖 AI/Outbox' ] || fail "labels of the first: $(labels_of 'subject:Lunch')"
[ "$(labels_of 'subject:Notice')" = '🤖 AI/FYI' ] || fail "labels of the second: $(labels_of 'subject:Notice')"
t assistant status --json >"$dir/out"
jq -e '.accounts[0] | .records == 2 and .by_status.drafted == 1 and .onboarded and .model_calls_today >= 3' "$dir/out" >/dev/null ||
    fail "status: $(cat "$dir/out")"
t status >"$dir/out"
grep -q 'model .*0 need a reply, 1 drafted, 0 failed' "$dir/out" || fail "status of all: $(cat "$dir/out")"
thread=$(jq -r '.emails[] | select(.subject == "Lunch").thread' "$dir/shown")
ends 0 assistant explain "$thread"
grep -q draft_created "$dir/out" || fail "explain: $(cat "$dir/out")"

for kind in classify context draft rework agent; do ends 0 assistant calls --kind "$kind"; done

# ---- again, also the inbox itself: nothing changes, and no model is asked
calls=$(state 'SELECT count(*) FROM assistant_call')
ends 0 assistant sync "$user"
ends 0 assistant sync --full
[ "$(drafts) $(state 'SELECT count(*) FROM assistant_call')" = "1 $calls" ] || fail "again: $(drafts) drafts"

# ---- a person has a thread classified again: the model is asked once more, and the draft that is there stays
ends 1 assistant classify ffff
grep -q "knows no thread ffff" "$dir/err" || fail "an unknown thread: $(cat "$dir/err")"
ends 0 assistant classify "$thread"
[ "$(drafts) $(state 'SELECT count(*) FROM assistant_call')" = "1 $((calls + 1))" ] || fail "classified again: $(drafts) drafts"
[ "$(labels_of 'subject:Lunch -in:draft')" = '🤖 AI/Outbox' ] || fail "labels after it: $(labels_of 'subject:Lunch')"

# ---- a user whose directories are the usual ones and none of them exists: onboarding makes that of the configuration
newcomer() { env -u XDG_CONFIG_HOME -u XDG_STATE_HOME -u XDG_DATA_HOME HOME="$dir/new" "$tidemark" "$@" >"$dir/out" 2>&1; }
mkdir "$dir/new"
newcomer account add gmail "$user" --endpoint "$origin" --bearer tok || fail "a newcomer: $(cat "$dir/out")"
newcomer account add chat model --key-file "$dir/key" --model tide-good --endpoint "$origin" || fail "a newcomer: $(cat "$dir/out")"
grep -q 'assistant onboard' "$dir/out" || fail "what is next: $(cat "$dir/out")"
newcomer assistant onboard "$user" || fail "a newcomer: $(cat "$dir/out")"
[ -s "$dir/new/.config/tidemark/assistant.yaml" ] || fail "no configuration: $(cat "$dir/out")"

# ---- who is not known is not synced
ends 1 assistant sync eve@example.com
grep -q 'does not work for eve' "$dir/err" || fail "unknown: $(cat "$dir/err")"

# ---- a process that serves does it: asked, or waited for
start_serve
arrive 'Dinner' 'Or shall we meet on Friday evening?'
ends 0 assistant sync
grep -q "asked process $server" "$dir/out" || fail "not asked: $(cat "$dir/out")"
until_true 60 eval '[ "$(drafts)" = 2 ]' || fail "serve makes no draft: $(t jobs list)"
arrive 'Supper' 'We could meet on Friday night.'
ends 0 assistant sync --wait
[ "$(drafts)" = 3 ] || fail "with --wait: $(drafts) drafts, $(cat "$dir/out")"
ends 0 assistant onboard "$user"

# ---- the assistant ends for an account, in that process: records, labels and drafts stay, mail is left alone; again: the same
ends 1 assistant offboard eve@example.com
ends 0 assistant offboard "$user"
grep -q 'Labels and drafts in Gmail stay' "$dir/out" || fail "offboard: $(cat "$dir/out")"
ends 0 assistant offboard "$user" --json
jq -e --arg user "$user" '.before and .account == $user' "$dir/out" >/dev/null || fail "offboard again: $(cat "$dir/out")"
ends 0 assistant status --json
jq -e '.accounts[0] | .state == "ended" and .records == 4 and (.onboarded | not)' "$dir/out" >/dev/null || fail "ended: $(cat "$dir/out")"
calls=$(state 'SELECT count(*) FROM assistant_call')
arrive 'Breakfast' 'We could meet on Friday morning.'
ends 1 assistant sync "$user"
grep -q 'was ended for' "$dir/err" || fail "sync of one that ended: $(cat "$dir/err")"
ends 1 assistant sync
[ "$(drafts) $(state 'SELECT count(*) FROM assistant_call')" = "3 $calls" ] || fail "after the end: $(drafts) drafts"
[ "$(state "SELECT count(*) FROM job JOIN kind ON kind.id = job.kind WHERE kind.name LIKE 'assistant.%' AND kind.name <> 'assistant.tick' AND job.state < 2")" = 0 ] ||
    fail "jobs of one that ended: $(t jobs list)"
stop_serve 0

# ---- onboarding begins again with what comes then; without a process that serves it ends, too
ends 0 assistant onboard "$user"
arrive 'Brunch' 'We could meet on Friday at noon.'
ends 0 assistant sync
[ "$(drafts)" = 4 ] || fail "onboarded again: $(drafts) drafts"
ends 0 assistant offboard "$user"
[ "$(state "SELECT count(*) FROM assistant_user WHERE onboarded_ms > 0")" = 0 ] || fail "it did not end"
ends 0 assistant show
grep -q Brunch "$dir/out" || fail "records are gone: $(cat "$dir/out")"
ends 0 account remove model # nobody needs it

[ $failed -eq 0 ] || exit 1
echo "assistant: fine"
