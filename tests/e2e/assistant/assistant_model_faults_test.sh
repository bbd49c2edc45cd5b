#!/usr/bin/env bash
# assistant_model_faults_test.sh TIDEMARK CLOUD: a model that fails in every way it can.  A mail that goes the usual way
# is then classified as needs_response with low confidence, and gets a draft that says what is wrong; a mail for an
# agent ends with the status of its run, for a person to look at (J10, J11, J15, J19).
. "$(dirname "$0")/../stage.sh"
. "$(dirname "$0")/assistant_stage.sh"
serve --quota off --mailbox "$user=0" --token "tok=$user"
# Pauses and paces are not what is tried here.
export TIDEMARK_RETRY_BACKOFF_START=20ms TIDEMARK_CHAT_SILENCE=1s
export TIDEMARK_GOVERNOR_DEFAULT_RATE_START=1000 TIDEMARK_GOVERNOR_DEFAULT_RATE_MIN=1000 TIDEMARK_GOVERNOR_DEFAULT_RATE_MAX=1000
export TIDEMARK_BREAKER_PAUSE_FIRST=20ms TIDEMARK_BREAKER_PAUSE_MAX=100ms
t() { timeout 200 "$tidemark" --home "$dir/home" "$@"; }
sign_in
add_chat
cat >"$dir/home/assistant.yaml" <<'END'
models: {fast: tide-fast, better: tide-good}
rules:
  - {name: cases, when: {subject_contains: case}, route: agent, profile: support}
profiles:
  support: {system_prompt: You help., tools: [read_thread, create_draft, escalate], max_iterations: 4}
END
ends 0 assistant onboard "$user"

record() { # SUBJECT: its record
    state "SELECT category || ' ' || confidence || ' ' || status FROM assistant_email WHERE subject = '$1'"
}
run_of() { # SUBJECT: the status of its run, and how many answers there were
    state "SELECT r.status || ' ' || r.iterations FROM assistant_run r JOIN assistant_email e ON e.thread_id = r.thread_id WHERE e.subject = '$1'"
}
draft_of() { # SUBJECT: the text of its only draft
    local thread id
    thread=$(state "SELECT thread_id FROM assistant_email WHERE subject = '$1'")
    id=$(ask "$api/drafts?maxResults=500" | jq -r --arg thread "$thread" '[.drafts[]? | select(.message.threadId == $thread).id] | if length == 1 then .[0] else "none" end')
    ask "$api/drafts/$id?format=full" 2>/dev/null | jq -r '[.. | .body? | .data? // empty] | join("")' | tr '_-' '/+' | base64 -di 2>/dev/null
}
# with NAME RULE...: a mail of each way, called NAME, while these faults are there.
with() {
    local name=$1 rule
    shift
    for rule in "$@"; do fault "$rule"; done
    arrive "Question $name" "Could you tell me about $name?"
    arrive "A case of $name" "Could you look into $name?"
    ends 0 assistant sync
    no_faults
}
# bad NAME: the usual way with a model that never answered.
bad() {
    [ "$(record "Question $1")" = 'needs_response low drafted' ] || fail "$1: the record is $(record "Question $1")"
    draft_of "Question $1" >"$dir/draft"
    grep -q '✂' "$dir/draft" && grep -q 'No reply was written: .' "$dir/draft" || fail "$1: the draft is $(head -c 300 "$dir/draft")"
    [ "$(labels_of "subject:\"Question $1\" -in:draft")" = '🤖 AI/Outbox' ] || fail "$1: labels $(labels_of "subject:\"Question $1\" -in:draft")"
}
# failed_run NAME STATUS: the agent's mail is a person's to look at.
failed_run() {
    [ "$(run_of "A case of $1")" = "$2" ] || fail "$1: the run is $(run_of "A case of $1"), not $2"
    [ "$(record "A case of $1")" = 'action_required high skipped' ] || fail "$1: the agent's record is $(record "A case of $1")"
    [ "$(labels_of "subject:\"A case of $1\"")" = '🤖 AI/Action Required' ] || fail "$1: the agent's labels"
}
# good NAME: as if nothing had been.
good() {
    local text
    text=$(record "Question $1")
    [ "$text" = 'needs_response high drafted' ] || fail "$1: the record is $text"
    draft_of "Question $1" >"$dir/draft"
    grep -q '✂' "$dir/draft" && ! grep -q 'No reply was written' "$dir/draft" || fail "$1: the draft is $(head -c 300 "$dir/draft")"
}

# ---- nothing wrong: the measure
with nothing
good nothing
[[ $(run_of 'A case of nothing') == done* ]] || fail "the measure: $(run_of 'A case of nothing')"

# ---- an answer that never comes whole, from the first try to the last
for name in bad-json garbage huge 500 truncate stream-error; do
    with "$name" "{\"method\":\"chat.completions.create\",\"rate\":1,\"fault\":\"$name\"}"
    bad "$name"
    failed_run "$name" 'failed 0'
done
# ---- silence
with silence '{"method":"chat.completions.create","rate":1,"fault":"stall-body","ms":20000}'
bad silence
failed_run silence 'failed 0'
# ---- a model that declines
with refusal '{"method":"chat.completions.create","rate":1,"fault":"refusal"}'
bad refusal
failed_run refusal 'failed 1'

# ---- tools
with endless '{"method":"chat.completions.create","rate":1,"fault":"endless-tools"}'
good endless
[[ $(run_of 'A case of endless') =~ ^(limit|escalated) ]] || fail "endless: $(run_of 'A case of endless')"
with wrong '{"method":"chat.completions.create","rate":1,"fault":"wrong-tool"}'
good wrong
failed_run wrong 'limit 4'
state "SELECT tools FROM assistant_run WHERE status = 'limit'" | grep -q delete_everything || fail "the wrong tool is not in the log"
with arguments '{"method":"chat.completions.create","rate":1,"fault":"invalid-arguments"}'
good arguments
[[ $(run_of 'A case of arguments') =~ ^(done|escalated|limit) ]] || fail "arguments: $(run_of 'A case of arguments')"

# ---- what passes: tried again, and no attempt is lost to a server that says when
for rule in '"429","retry_after":1' '"500"' '"overloaded"' '"stall-start","ms":20000'; do
    name=once-$(tr -dc 'a-z0-9' <<<"${rule%%,*}")
    with "$name" "{\"method\":\"chat.completions.create\",\"count\":1,\"fault\":$rule}"
    good "$name"
    [[ $(run_of "A case of $name") == done* ]] || fail "$name: $(run_of "A case of $name")"
done

# ---- words instead of JSON, and a category that does not exist
says 'about words' 'I think that this is fine.'
with words
[ "$(record 'Question words')" = 'needs_response low drafted' ] || fail "words: $(record 'Question words')"
category 'about unknown' approve_everything
with unknown
[ "$(record 'Question unknown')" = 'needs_response low drafted' ] || fail "unknown: $(record 'Question unknown')"

# ---- all of it is known by its error, and no job is left or failed
[ "$(state 'SELECT count(*) FROM job WHERE state IN (0, 1, 3)')" = 0 ] || fail "jobs: $(t jobs list)"
[ "$(state "SELECT count(*) FROM assistant_call WHERE ended_ms = 0")" = 0 ] || fail "calls without an end"
[ "$(state "SELECT count(*) FROM assistant_call WHERE error <> ''")" -ge 20 ] || fail "errors of calls"
[ "$(state "SELECT count(*) FROM assistant_call WHERE error LIKE '%$(cat "$dir/key")%'")" = 0 ] || fail "the key is in an error"

[ $failed -eq 0 ] || exit 1
echo "assistant_model_faults: fine"
