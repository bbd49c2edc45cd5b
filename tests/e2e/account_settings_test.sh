#!/usr/bin/env bash
# account_settings_test.sh TIDEMARK CLOUD: what is set for one account alone (E11.2, B12).  Two accounts of one
# home, of two projects whose quotas differ: by the count of each cloud neither is crossed, the larger one is
# used, and a change reaches a running process.  The minute of both clouds takes six seconds, and so does ours.
. "$(dirname "$0")/stage.sh"
messages=100 # 20 units each
config=$dir/home/config.yaml
declare -A at
cloud_of() { # user, its units a minute
    serve --seed 7 --latency 5 --mailbox "$1=$messages" --token "tok=$1"
    curl -sSf -o /dev/null "$origin/_cloud/quota" -d "{\"user_units_per_minute\":$2}" || fail "quota"
    curl -sSf -o /dev/null "$origin/_cloud/clock" -d '{"speed":10}' || fail "clock"
    at[$1]=$origin
    sign_in "$1"
}
bob=bob@example.com
own=accounts.$bob.governor
cloud_of "$user" 1000
cloud_of "$bob" 3000
of() { curl -sS "${at[$1]}/_cloud/stats" | jq -e ".users[\"$1\"] | $2" >/dev/null; } # user, condition
limits() { # of ada, of bob
    t status --json >"$dir/limits" &&
        jq -e "[.accounts[] | {(.account): .quota_max_units}] | add | .[\"$user\"] == $1 and .[\"$bob\"] == $2" "$dir/limits" >/dev/null
}

# ---- names, values, origins ----
ends 0 config set governor.gmail.window 6s
ends 0 config set governor.stray 1ms
ends 0 config set governor.gmail.window_units 1000
ends 0 config set "$own.project" older
ends 0 config set "$own.gmail.window_units" 500
ends 0 config set "$own.gmail.project_units" 500000
ends 0 config get "$own.gmail.window_units" --json
[ "$(jq -r '.setting | .name, .value, .origin' "$dir/out" | paste -sd ' ')" = "$own.gmail.window_units 500 $config:5" ] || fail "$(cat "$dir/out")"
ends 0 config get "accounts.$user.governor.gmail.window_units" --quiet
[ "$(cat "$dir/out")" = 1000 ] || fail "what all have: $(cat "$dir/out")"
ends 0 config list --changed --json
[ "$(jq '[.settings[] | select(.name | startswith("accounts.")) | .value] == ["older", "500", "500000"]' "$dir/out")" = true ] || fail "$(cat "$dir/out")"
ends 0 --set "$own.gmail.window_units=700" config get "$own.gmail.window_units"
grep -q '= 700 units (flag)' "$dir/out" || fail "$(cat "$dir/out")"
ends 0 --set accounts.eve@example.com.governor.share=50% config check
grep -q 'there is no account eve@example.com' "$dir/out" && ! grep -q "no account $bob" "$dir/out" || fail "$(cat "$dir/out")"

# ---- refusals: nothing changes ----
cp "$config" "$dir/config"
ends 2 config set "$own.gmail.window_units" 5x
ends 2 config set "accounts.$bob.workers.count" 3
grep -q 'for all accounts together' "$dir/err" || fail "$(cat "$dir/err")"
for one in priority.purge=3 bandwidth.down=1MiB log.level=debug alerts.mail.server=smtps://mail.example.com; do
    ends 2 config set "accounts.$bob.${one%%=*}" "${one#*=}"
    grep -q "${one%%=*} is for all accounts together, which share this process, its ledger and its network" "$dir/err" || fail "$(cat "$dir/err")"
done
ends 1 config set "$own.gmial.window_units" 600
grep -q 'governor.gmail.window_units' "$dir/err" || fail "$(cat "$dir/err")"
cmp -s "$config" "$dir/config" || fail "a refused value changed the file"
printf 'accounts:\n  %s:\n    workers: {count: 3}\n' "$user" >>"$config"
line=$(wc -l <"$config")
t config check >"$dir/out" 2>&1 && fail "a wrong file is accepted"
grep -q "config.yaml:$line: workers.count is for all accounts together" "$dir/out" || fail "$(cat "$dir/out")"
cp "$dir/config" "$config"

# ---- both run; one changes ----
start_serve
timeout 200 "$tidemark" --home "$dir/home" mail sync --quiet >"$dir/sync" 2>&1 &
sync=$!
until_true 60 limits 1000 500 || fail "limits at first: $(cat "$dir/limits")"
until_true 100 of "$bob" '.units > 300' || fail "bob does not start"
ends 0 config set "$own.gmail.window_units" 3000
until_true 30 limits 1000 3000 || fail "the change did not arrive: $(cat "$dir/limits")"
# A file that is wrong for one account changes nothing for any.
cp "$config" "$dir/config"
changes=$(grep -c 'setting changed' "$dir/serve.log")
sed -i "s/^governor.gmail.window_units: 1000/governor.gmail.window_units: 900/; s/window_units: 3000/window_units: 3/" "$config"
until_true 30 grep -q "settings refused.*$own.gmail.window_units = 3 " "$dir/serve.log" || fail "not refused: $(tail -n 3 "$dir/serve.log")"
grep -q "settings refused.*config.yaml:5" "$dir/serve.log" || fail "without its line: $(grep refused "$dir/serve.log")"
[ "$(grep -c 'setting changed' "$dir/serve.log")" -eq "$changes" ] || fail "a refused file changed something: $(grep 'setting changed' "$dir/serve.log")"
cp "$dir/config" "$config"
limits 1000 3000 || fail "a refused file changed something: $(cat "$dir/limits")"
wait "$sync" || fail "sync: $(cat "$dir/sync")"
stop_serve 0
for one in "$user" "$bob"; do
    of "$one" ".units >= $messages * 20 and .violations == 0 and (.refused | length) == 0" || fail "$one: $(curl -sS "${at[$one]}/_cloud/stats" | jq -c '.users')"
    ends 0 mail status "$one" --json
    [ "$(field stored)" -eq "$messages" ] || fail "$one: $(field stored) stored"
done
of "$user" '.offered_units_highest_in_60s <= 1000' || fail "ada's minute was crossed"
of "$bob" '.offered_units_highest_in_60s | . > 500 and . <= 3000' || fail "bob did not use what it has: $(curl -sS "${at[$bob]}/_cloud/stats" | jq -c '.users')"

# ---- Search Console: one sign-in in sequence, the other in batches and without a rate (B12) ----
sites=(sc-domain:one.example sc-domain:two.example)
serve --seed 7 --latency 60 --mailbox "$user=1" --token "tok=$user" --site "${sites[0]}=$user,rows=20" --site "${sites[1]}=$user,rows=20"
for i in 0 1; do
    ends 0 account add console "${sites[$i]}" --name "site$i" --endpoint "$origin" --bearer tok
done
ends 0 config set accounts.site0.console.workers 1
ends 0 config set accounts.site1.governor.console.site_units 0
for i in 0 1; do
    ends 0 console backfill "${sites[$i]}" --days 8 --rows 10 --quiet --json
    cp "$dir/out" "$dir/site$i"
done
[ "$(jq '.queries > 20 and .batches == .queries' "$dir/site0")" = true ] || fail "not in sequence: $(cat "$dir/site0")"
[ "$(jq '.queries > 20 and .batches < .queries' "$dir/site1")" = true ] || fail "not in batches: $(cat "$dir/site1")"

# ---- how long a failed job of one account waits; another one's goes on as before
eve=eve@example.com gil=gil@example.com
start_cloud --seed 7 --mailbox "$eve=3" --token "tev=$eve" --mailbox "$gil=3" --token "til=$gil"
sign_in "$eve" tev
sign_in "$gil" til
ends 0 config set "accounts.$eve.retry.backoff_max" 1h
ends 0 config set "accounts.$eve.retry.backoff_start" 1h
ends 0 config set "accounts.$gil.retry.attempts_max" 9
fault '{"method":"gmail.users.messages.list","rate":1,"fault":"garbage"}'
t mail sync "$eve" "$gil" --quiet --timeout 6s >"$dir/out" 2>&1
retry_of() { t jobs list --account "$1" --json | jq -e "[.items[] | select(.attempts > 0 and .state == \"pending\")] | length > 0 and all($2)" >/dev/null; }
retry_of "$eve" '.attempts == 1 and .not_before_unix_ms / 1000 - now > 1200' || fail "eve's retry: $(t jobs list --account "$eve")"
retry_of "$gil" '.attempts > 1 and .not_before_unix_ms / 1000 - now < 300' || fail "gil's retry: $(t jobs list --account "$gil")"

of_gil='[.items[] | .attempts_max] | length > 0 and any(. == 9)'
t jobs list --account "$gil" --json | jq -e "$of_gil" >/dev/null || fail "gil's attempts: $(t jobs list --account "$gil" --json)"
t jobs list --account "$eve" --json | jq -e "$of_gil | not" >/dev/null || fail "eve's attempts: $(t jobs list --account "$eve" --json)"

echo "$failed failed"
[ "$failed" -eq 0 ]
