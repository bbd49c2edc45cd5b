#!/usr/bin/env bash
# assistant_backup_test.sh TIDEMARK CLOUD: a copy of a home has assistant.yaml and the files of prompts that it names;
# the home that is made of it has an assistant that works by them, whatever kills the restore (M17, J20).
. "$(dirname "$0")/../stage.sh"
. "$(dirname "$0")/assistant_stage.sh"
serve --quota off --mailbox "$user=0" --token "tok=$user"
yaml=$dir/home/assistant.yaml
category 'meet on Friday' needs_response
t account add gmail "$user" --endpoint "$origin" --bearer tok >"$dir/out" 2>&1 || fail "account add: $(cat "$dir/out")"
add_chat
ends 0 assistant onboard "$user"
mkdir -p "$dir/home/prompts/deep"
echo 'Write as the harbour master writes.' >"$dir/home/prompts/deep/draft.md"
echo 'Brief as a telegram.' >"$dir/home/brief.md"
echo 'Nobody names this file.' >"$dir/home/prompts/other.md"
cat >"$yaml" <<YAML
models: {fast: tide-fast, better: tide-good}
prompts: {draft: {file: prompts/deep/draft.md}}
styles: {business: {file: brief.md}}
YAML
printf 'retry:\n  attempts_max: 7\n' >"$dir/home/config.yaml"
arrive 'Lunch' 'Shall we meet on Friday? I would like to know.'
ends 0 assistant sync
[ "$(drafts)" = 1 ] || fail "$(drafts) drafts"

# ---- the copy
ends 0 backup "$dir/copy"
grep -q '3 files of the assistant' "$dir/out" || fail "backup: $(cat "$dir/out")"
for file in assistant.yaml prompts/deep/draft.md brief.md; do
    cmp -s "$dir/home/$file" "$dir/copy/config/$file" || fail "not in the copy: $file"
done
[ ! -e "$dir/copy/config/prompts/other.md" ] || fail "a file that is not named is copied"

# ---- the disk is lost; the assistant goes on by the same prompts, and does nothing twice
mv "$dir/home" "$dir/lost"
ends 0 restore "$dir/copy"
[ "$(cat "$dir/home/prompts/deep/draft.md")" = 'Write as the harbour master writes.' ] || fail "no prompt: $(find "$dir/home")"
[ -z "$(find "$dir/home" -name '*.restoring*' -o -name 'restore.pending')" ] || fail "remains: $(find "$dir/home")"
t account add gmail "$user" --endpoint "$origin" --bearer tok >"$dir/out" 2>&1 || fail "sign in again: $(cat "$dir/out")"
add_chat
arrive 'Dinner' 'Or shall we meet on Friday evening?'
ends 0 assistant sync
[ "$(drafts)" = 2 ] || fail "after the restore: $(drafts) drafts"
call=$(state "SELECT max(id) FROM assistant_call WHERE kind = 'draft'")
ends 0 assistant calls "$call"
grep -q 'harbour master' "$dir/out" && grep -q telegram "$dir/out" || fail "other prompts: $(cat "$dir/out")"

# ---- what is there stays, and is named; with --replace it is kept beside
mkdir -p "$dir/second"
echo 'models: {fast: a, better: b}' >"$dir/second/assistant.yaml"
timeout 150 "$tidemark" --home "$dir/second" restore "$dir/copy" >"$dir/out" 2>&1 || fail "second: $(cat "$dir/out")"
grep -q 'second/assistant.yaml is kept' "$dir/out" && grep -q 'fast: a' "$dir/second/assistant.yaml" || fail "not kept: $(cat "$dir/out")"
[ -e "$dir/second/brief.md" ] || fail "second: $(find "$dir/second")"
timeout 150 "$tidemark" --home "$dir/second" restore "$dir/copy" --replace >"$dir/out" 2>&1 || fail "replace: $(cat "$dir/out")"
cmp -s "$yaml" "$dir/second/assistant.yaml" && grep -q 'fast: a' "$dir/second"/assistant.yaml.before-* || fail "replace: $(find "$dir/second")"

# ---- every state that a crash between two renames can leave
for state in 0 1 2; do
    home=$dir/state$state
    cp -r "$dir/lost" "$home"
    echo 'the former one' >"$home/prompts/deep/draft.md"
    mkdir "$home/config.restoring"
    cp "$dir/copy/config/prompts/deep/draft.md" "$home/config.restoring/"$'prompts\x1fdeep\x1fdraft.md'
    cp "$dir/copy/config/assistant.yaml" "$home/config.restoring/"
    echo 'move 77' >"$home/restore.pending"
    [ "$state" -lt 1 ] || mv "$home/prompts/deep/draft.md" "$home/prompts/deep/draft.md.before-77"
    [ "$state" -lt 2 ] || mv "$home/config.restoring/"$'prompts\x1fdeep\x1fdraft.md' "$home/prompts/deep/draft.md"
    timeout 150 "$tidemark" --home "$home" restore "$dir/copy" >"$dir/out" 2>&1 || fail "state $state: $(cat "$dir/out")"
    cmp -s "$dir/copy/config/prompts/deep/draft.md" "$home/prompts/deep/draft.md" || fail "state $state: the prompt"
    grep -q former "$home/prompts/deep/draft.md.before-77" || fail "state $state: the former prompt: $(find "$home")"
    [ ! -e "$home/config.restoring" ] || fail "state $state: remains: $(find "$home")"
done

# ---- a configuration that is wrong is copied as it is, and the rest with it
echo 'rules: 5' >>"$yaml"
ends 0 backup "$dir/wrong"
grep -q 'assistant.yaml:4:' "$dir/err" || fail "no warning: $(cat "$dir/err")"
cmp -s "$yaml" "$dir/wrong/config/assistant.yaml" && [ -e "$dir/wrong/config/brief.md" ] || fail "wrong: $(find "$dir/wrong")"

[ $failed -eq 0 ] || exit 1
echo "backup of the assistant: fine"
