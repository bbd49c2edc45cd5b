#!/usr/bin/env bash
# signin_test.sh TIDEMARK CLOUD: signing in to the local cloud as people do it, with
# curl for a browser: the loopback redirect, pasting, a service account; then tokens
# that expire, a sign-in that is revoked, and not a secret anywhere but in its file
# (M15a, M16).
. "$(dirname "$0")/stage.sh"
unset "${!TIDEMARK_@}"
serve --seed 7 --auto-consent --token-life 3599 \
    --mailbox "$user=12" --mailbox bob@example.com=3 --service-account "robot@project.example.com=$dir/key.json"
tell() { curl -sSf -o "$dir/told" --data "$2" "$origin/_cloud/$1" || fail "telling the cloud $1"; }

# ---- the browser: follows the link as far as it goes, and keeps the page
cat >"$dir/browser" <<'EOF'
#!/usr/bin/env bash
here=$(dirname "$0")
url=$(sed -f "$here/choice" <<<"$1")$(cat "$here/more")
curl -sS -L --max-time 20 -o "$here/page" -w '%{url_effective} %{http_code}' "$url" >"$here/visited"
EOF
chmod +x "$dir/browser"
: >"$dir/more"
: >"$dir/choice" # edits the link: a person may choose another mailbox on the page
export BROWSER=$dir/browser

add() { t account add gmail "$user" --endpoint "$origin" "$@" >"$dir/out" 2>"$dir/err"; }
# as_bob: signs in to another mailbox than the one that is added; it must be refused.
as_bob() {
    echo 's/login_hint=[^&]*/login_hint=bob%40example.com/' >"$dir/choice"
    add
    local code=$?
    : >"$dir/choice"
    [ "$code" -eq 4 ] || fail "the mailbox of another ended with $code: $(cat "$dir/out" "$dir/err")"
    grep -q "bob@example.com, not of $user" "$dir/err" || fail "whose mailbox: $(cat "$dir/err")"
}

# ---- the mailbox of another: nothing is added, nothing is kept
as_bob
t account list --json | jq -e '.accounts == []' >/dev/null || fail "it was added: $(t account list)"
[ -z "$(find "$dir/home/secrets" -type f)" ] || fail "its sign-in was kept"
rm -f "$dir/visited"

add || fail "signing in with a browser: $(cat "$dir/err")"
grep -q 'stored in the file' "$dir/out" || fail "where is it kept: $(cat "$dir/out")"
for _ in $(seq 100); do # the browser is its own process
    [ -s "$dir/visited" ] && break
    read -rt 0.05 <> <(:) || true
done
grep -qE '^http://127\.0\.0\.1:[0-9]+/\?.* 200$' "$dir/visited" || fail "the browser ended at $(cat "$dir/visited")"
grep -q 'You can close this window' "$dir/page" || fail "the page says $(cat "$dir/page")"
port=$(sed -E 's/^http:..127.0.0.1:([0-9]+).*/\1/' "$dir/visited")
curl -s --max-time 2 "http://127.0.0.1:$port/" >"$dir/page" && fail "the port still listens"

# ---- the secret is in one private file and nowhere else
secret=$(find "$dir/home/secrets" -type f)
[ "$(stat -c %a "$secret")" = 600 ] || fail "the secret has mode $(stat -c %a "$secret")"
[ "$(stat -c %a "$dir/home/secrets")" = 700 ] || fail "its directory has mode $(stat -c %a "$dir/home/secrets")"
refresh=$(jq -r .refresh_token "$secret")
[ ${#refresh} -gt 20 ] || fail "no refresh token"
t mail sync --quiet >"$dir/out" 2>"$dir/err" || fail "the first sync: $(cat "$dir/err")"
leaks() {
    local token file
    for token in "$(jq -r .refresh_token "$secret")" "$(jq -r .access_token "$secret")"; do
        while read -r file; do
            [ "$file" = "$secret" ] || fail "a token is in $file"
        done < <(grep -rlF -- "$token" "$dir" 2>/dev/null)
    done
}
leaks

# ---- expiry: one refresh, unseen
access=$(jq -r .access_token "$secret")
tell token/expire "{\"user\":\"$user\"}"
t mail sync --quiet >"$dir/out" 2>"$dir/err" || fail "a sync with an expired token: $(cat "$dir/err")"
[ "$(jq -r .access_token "$secret")" != "$access" ] || fail "the token was not refreshed"
[ "$(jq -r .refresh_token "$secret")" = "$refresh" ] || fail "the refresh token changed"
leaks

# ---- a file that others can read is refused, with the cure
chmod 644 "$secret"
t mail sync --quiet >"$dir/out" 2>"$dir/err" && fail "a secret that others can read was used"
grep -rq "chmod 600" "$dir/out" "$dir/err" || fail "no cure in: $(cat "$dir/out" "$dir/err")"
chmod 600 "$secret"

# ---- revoked: the command that repairs it works
tell token/revoke "{\"user\":\"$user\"}"
t mail sync --quiet >"$dir/out" 2>"$dir/err"
code=$?
[ $code -eq 4 ] || fail "a sync without a sign-in ended with $code: $(cat "$dir/out" "$dir/err")"
grep -q "tidemark account add gmail $user" "$dir/out" "$dir/err" || fail "no cure in: $(cat "$dir/out" "$dir/err")"
leaks

# ---- the mailbox of another does not replace a sign-in either
cp "$secret" "$dir/kept"
as_bob
cmp -s "$secret" "$dir/kept" && [ "$(find "$dir/home/secrets" -type f)" = "$secret" ] || fail "the sign-in was replaced"
rm "$dir/kept"

# ---- no is no
echo '&box_deny=true' >"$dir/more"
add && fail "access was denied"
grep -q 'not granted' "$dir/err" || fail "denied: $(cat "$dir/err")"
: >"$dir/more"

# ---- by pasting
mkfifo "$dir/paste"
t account add gmail "$user" --endpoint "$origin" --headless <"$dir/paste" >"$dir/out" 2>"$dir/asked" &
adding=$!
exec 4>"$dir/paste"
for _ in $(seq 100); do
    link=$(grep -oE "http[^ ]+code_challenge[^ ]+" "$dir/asked" 2>/dev/null | head -1)
    [ -n "$link" ] && break
    read -rt 0.05 <> <(:) || true
done
[ -n "$link" ] || fail "no link: $(cat "$dir/asked")"
# What is not the answer is asked for again: a word, and the link itself.
echo yes >&4
echo "$link" >&4
until_true 10 eval '[ "$(grep -c "not the final address" "$dir/asked")" = 2 ]' || fail "garbage: $(cat "$dir/asked")"
curl -sS -o "$dir/page" -w '%{redirect_url}\n' "$link" >&4
exec 4>&-
wait "$adding" || fail "signing in by pasting: $(cat "$dir/asked")"
t mail sync --quiet >"$dir/out" 2>"$dir/err" || fail "a sync after pasting: $(cat "$dir/err")"
leaks

# Three times is enough, and the end of the input is the end.
printf 'yes\nno\nperhaps\nmore\n' | t account add gmail "$user" --endpoint "$origin" --headless >"$dir/out" 2>"$dir/asked" && fail "garbage signs in"
[ "$(grep -c 'Paste that address here' "$dir/asked")" = 3 ] || fail "three tries: $(cat "$dir/asked")"
echo yes | t account add gmail "$user" --endpoint "$origin" --headless >"$dir/out" 2>"$dir/asked" && fail "garbage signs in"
grep -q 'this is not the final address' "$dir/asked" || fail "what was wrong: $(cat "$dir/asked")"

# ---- a service account
if [ -s "$dir/key.json" ]; then
    key=$(jq -r .private_key "$dir/key.json" | sed -n 2p)
    add --service-account "$dir/key.json" || fail "a service account: $(cat "$dir/err")"
    secret=$(find "$dir/home/secrets" -type f)
    jq -e '.type == "service" and .user == "'"$user"'"' "$secret" >/dev/null || fail "not a service account's"
    mv "$dir/key.json" "$dir/home/secrets.key" # it is needed no more
    t mail sync --quiet >"$dir/out" 2>"$dir/err" || fail "a sync by a service account: $(cat "$dir/err")"
    rm "$dir/home/secrets.key"
    while read -r file; do
        [ "$file" = "$secret" ] || fail "the key is in $file"
    done < <(grep -rlF -- "$key" "$dir" 2>/dev/null)
else
    fail "the cloud wrote no key"
fi

# ---- two hours later by the provider's clock: a 401, a refresh, and on
add || fail "signing in again: $(cat "$dir/err")"
tell clock '{"advance":"7200s"}'
t mail sync --quiet >"$dir/out" 2>"$dir/err" || fail "a sync two hours later: $(cat "$dir/err")"

# ---- gone, here and there
secret=$(find "$dir/home/secrets" -type f)
refresh=$(jq -r .refresh_token "$secret")
trade() {
    curl -s -o /dev/null -w '%{http_code}' -d grant_type=refresh_token -d "refresh_token=$refresh" \
        -d "client_id=$(jq -r '.client_id // ""' "$dir/grant")" -d "client_secret=$(jq -r '.client_secret // ""' "$dir/grant")" "$origin/token"
}
cp "$secret" "$dir/grant"
[ "$(trade)" = 200 ] || fail "the grant does not live before its end"
# A sync that waits for jobs of the account ends while the removal still waits for the provider: it must not
# take the canceled jobs for done.
fault '{"method":"gmail.users.labels.list","fault":"latency","ms":600000}'
fault '{"method":"revoke","fault":"latency","ms":3000}'
printf 'From: b@example.org\r\nSubject: x\r\n\r\nx\r\n' | curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' \
    --data-binary @- "$origin/_cloud/mail?user=$user" || fail deliver
t mail sync --quiet >"$dir/sync.out" 2>&1 &
sync=$!
struck() { curl -sS "$origin/_cloud/faults" | jq -e '[.. | .struck? // 0] | add > 0'; }
until_true 60 struck || fail "no job waits for the cloud"
t account remove "$user" >"$dir/out" 2>"$dir/err" || fail "removing: $(cat "$dir/err")"
grep -q 'sign-in is revoked' "$dir/out" || fail "it was not revoked: $(cat "$dir/out" "$dir/err")"
wait "$sync" && fail "a sync of an account that is being removed succeeds: $(cat "$dir/sync.out")"
no_faults
[ "$(trade)" = 400 ] || fail "the grant lives on at the provider"
[ -z "$(find "$dir/home/secrets" -type f)" ] || fail "a secret is left"

# ---- a provider that cannot be reached does not block a removal
add || fail "signing in once more: $(cat "$dir/err")"
kill "$cloud_pid"
wait "$cloud_pid" 2>/dev/null
t account remove "$user" >"$dir/out" 2>"$dir/err" || fail "removing without the provider: $(cat "$dir/err")"
grep -q 'could not be revoked' "$dir/err" || fail "no warning: $(cat "$dir/err")"
grep -q 'sign-in is removed' "$dir/out" || fail "it says $(cat "$dir/out")"
[ -z "$(find "$dir/home/secrets" -type f)" ] || fail "a secret is left behind"

[ $failed -eq 0 ] || exit 1
echo "signin: fine"
