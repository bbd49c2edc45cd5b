#!/usr/bin/env bash
# chat_account_test.sh TIDEMARK CLOUD: a chat model as an account: its key is tried, stored as a secret
# and shown nowhere; what is not said again stays; wrong words change nothing (J19).
. "$(dirname "$0")/stage.sh"
unset "${!TIDEMARK_@}"
serve --quota off
key=key-0a1B2c3D4e5F6a7B8c9D
(umask 077 && echo "$key" >"$dir/key")
add() { t account add chat model "$@" >"$dir/out" 2>"$dir/err"; }
options() { state "SELECT options FROM assistant_account WHERE name = 'model'"; }
secret() { cat "$dir"/home/secrets/*; }

# ---- what is wrong is said, and nothing is added
add --key-file "$dir/key" && fail "without a model"
grep -q 'no model is named' "$dir/err" || fail "no model: $(cat "$dir/err")"
add --key-file "$dir/key" --model tide-fast --endpoint "http://api.example.com/v1" && fail "http elsewhere"
grep -q 'unencrypted' "$dir/err" || fail "http: $(cat "$dir/err")"
add --key-file "$dir/key" --model tide-fast --endpoint "$origin" --dialect french && fail "a dialect"
grep -q 'openai, anthropic' "$dir/err" || fail "dialect: $(cat "$dir/err")"
add --key-file "$dir/key" --model tide-fast --endpoint "$origin" --with stream=maybe && fail "an option"
add --key-file "$dir/key" --model tide-fast --endpoint "$origin" --with auth=x-api-key && fail "another dialect's"
add --key-file "$dir/key" --no-key --model tide-fast --endpoint "$origin" && fail "two keys"
chmod 644 "$dir/key"
add --key-file "$dir/key" --model tide-fast --endpoint "$origin" && fail "a key that others can read"
chmod 600 "$dir/key"
add --no-key --model tide-fast --endpoint "$origin" && fail "a server that wants a key"
grep -q '401' "$dir/err" || fail "no key: $(cat "$dir/err")"
t account add gmail a@example.com --key-file "$dir/key" >/dev/null 2>"$dir/err" && fail "a key for Gmail"
t account list --json | jq -e '.accounts == []' >/dev/null || fail "something was added: $(t account list)"
[ ! -e "$dir/home/secrets" ] || [ -z "$(find "$dir/home/secrets" -type f)" ] || fail "a key was kept"

# ---- a key from a file; the model is one that the server lists
add --key-file "$dir/key" --model tide-fast --endpoint "$origin" || fail "adding: $(cat "$dir/err")"
[ ! -s "$dir/err" ] || fail "a warning: $(cat "$dir/err")"
secret | grep -qF "$key" || fail "the key is not stored"
[ "$(stat -c %a "$dir"/home/secrets/*)" = 600 ] || fail "its mode"
options | jq -e '.model == "tide-fast" and .dialect == "openai" and .endpoint != null' >/dev/null || fail "options: $(options)"
t account list >"$dir/out" 2>&1 || fail "account list: $(cat "$dir/out")"
grep -q 'model' "$dir/out" || fail "it is not listed: $(cat "$dir/out")"
t status >"$dir/out" 2>&1 || fail "status: $(cat "$dir/out")"
first=$(secret | sha256sum)

# ---- a key from a terminal, for a known account: everything else stays, also the endpoint
t account add chat model <<<"$key" >"$dir/out" 2>"$dir/err" || fail "a key by hand: $(cat "$dir/err")"
options | jq -e --arg at "$origin" '.model == "tide-fast" and .endpoint == $at' >/dev/null || fail "what stays: $(options)"
[ "$(secret | sha256sum)" != "$first" ] || fail "the same key, entered again, is not told apart"

# ---- another dialect, another model, and one that the server does not list
add --key-file "$dir/key" --model tide-good --fast-model tide-fast --dialect anthropic \
    --with version=2026-10-21,auth=x-api-key,stream=no || fail "anthropic: $(cat "$dir/err")"
options | jq -e '.dialect == "anthropic" and .auth == "x-api-key" and .stream == "no" and .fast_model == "tide-fast"' \
    >/dev/null || fail "anthropic: $(options)"
add --key-file "$dir/key" --model unheard-of --with auth=bearer || fail "an unlisted model: $(cat "$dir/err")"
grep -q 'does not list the model unheard-of' "$dir/err" || fail "no warning: $(cat "$dir/err")"
add --key-file "$dir/key" --endpoint "$origin/elsewhere/v1" && fail "a path that is not there"
fault '{"method":"chat.models.list","fault":"404"}' # compatible servers need not have a list
add --key-file "$dir/key" --model tide-good || fail "without a list of models: $(cat "$dir/err")"
no_faults

# ---- a key that the server refuses is not stored
before=$(secret | sha256sum)
fault '{"method":"chat.*","fault":"401"}'
add --key-file "$dir/key" && fail "a refused key"
grep -q 'does not accept' "$dir/err" || fail "refused: $(cat "$dir/err")"
no_faults
[ "$(secret | sha256sum)" = "$before" ] || fail "a refused key was stored"

# ---- the key is in its file and nowhere else
t log >"$dir/log" 2>&1
while read -r file; do
    case $file in "$dir/key" | "$dir"/home/secrets/*) ;; *) fail "the key is in $file" ;; esac
done < <(grep -rlF -- "$key" "$dir" 2>/dev/null)

# ---- costs, and the end
t assistant costs >"$dir/out" 2>&1 || fail "costs: $(cat "$dir/out")"
t assistant costs --json | jq -e '.costs == []' >/dev/null || fail "costs"
state "INSERT INTO assistant_budget_cost SELECT account, 20000, 'tide-good', 2, 30, 4, 0, 0 FROM assistant_account"
t assistant costs --days 99999 --json | jq -e '.costs[0] | .day == "2024-10-04" and .account == "model" and .in_tokens == 30' \
    >/dev/null || fail "costs: $(t assistant costs --days 99999)"
# A row of its account that is missing hides no cost.
state "INSERT INTO assistant_budget_cost VALUES(999, 20000, 'tide-gone', 1, 5, 6, 0, 0)"
t assistant costs --days 99999 --json | jq -e '[.costs[] | {account, in_tokens}] == [{account: "model", in_tokens: 30}, {account: "(removed, 999)", in_tokens: 5}]' \
    >/dev/null || fail "costs without an account: $(t assistant costs --days 99999 2>&1)"
state "DELETE FROM assistant_budget_cost WHERE account = 999"
t account remove model >"$dir/out" 2>"$dir/err" || fail "removing: $(cat "$dir/err")"
[ -z "$(find "$dir/home/secrets" -type f)" ] || fail "its key stays"
[ "$(state 'SELECT count(*) FROM assistant_account')$(state 'SELECT count(*) FROM assistant_budget_cost')" = 00 ] || fail "rows stay"

[ $failed -eq 0 ] || exit 1
echo "chat_account: fine"
