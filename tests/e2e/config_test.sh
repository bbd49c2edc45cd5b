#!/usr/bin/env bash
# config_test.sh TIDEMARK CLOUD: `config unset|edit|path` and --account (E11.1, E11.2).  A setting is removed with its
# line and no other byte; an edit replaces the file whole, or is refused with line and reason and kept.
. "$(dirname "$0")/stage.sh"
config=$dir/home/config.yaml
copy=$config.edit
# editor TEXT: an editor whose arguments end with the file, which gets this text.
editor() {
    printf '%s' "$1" >"$dir/text"
    cat >"$dir/editor" <<'SH'
#!/bin/sh
[ "$1" = --wait ] || exit 9
cp "$2" "$0.saw"
echo "an editor that talks"
cat "${0%/*}/text" >"$2"
SH
    chmod +x "$dir/editor"
    export EDITOR="$dir/editor --wait"
}
unset VISUAL
has() { # FILE TEXT
    [ "$(cat "$1"; echo x)" = "$2x" ] || fail "$1 has: $(cat "$1")"
}

# ---- path ----
ends 0 config path
[ "$(cat "$dir/out")" = "$config" ] || fail "$(cat "$dir/out")"
ends 0 config path --json
[ "$(jq -c '[.file == $file, .exists]' --arg file "$config" "$dir/out")" = '[true,false]' ] || fail "$(cat "$dir/out")"
[ ! -e "$dir/home" ] || fail "looking made a directory"

# ---- unset ----
ends 0 config unset workers.count
grep -q 'is not set in' "$dir/out" && [ ! -e "$config" ] || fail "$(cat "$dir/out")"
mkdir "$dir/home"
printf '# mine\nworkers:\n  count: 8 # eight\nstall.after: 20m\n' >"$config"
ends 0 config unset workers.count --json
[ "$(jq -c '[.removed, .setting.value, .setting.origin]' "$dir/out")" = '[true,"16","default"]' ] || fail "$(cat "$dir/out")"
has "$config" $'# mine\nstall.after: 20m\n'
ends 1 config unset workers.cuont
grep -q 'Did you mean workers.count' "$dir/err" || fail "$(cat "$dir/err")"
printf 'workers: {count: 32, reserved_bulk: 2}\n' >"$config"
ends 1 config unset workers.count
grep -q 'by hand' "$dir/err" || fail "$(cat "$dir/err")"
has "$config" $'workers: {count: 32, reserved_bulk: 2}\n'
: >"$config"

# ---- for one account ----
ends 0 config set archive.guard 5 --account "$user"
grep -q "there is no account $user" "$dir/out" || fail "$(cat "$dir/out")"
has "$config" "accounts.$user.archive.guard: 5"$'\n'
ends 0 config get archive.guard --account "$user" --quiet
[ "$(tail -n 1 "$dir/out")" = 5 ] || fail "$(cat "$dir/out")"
ends 0 config get archive.guard --quiet
[ "$(cat "$dir/out")" = 1000 ] || fail "$(cat "$dir/out")"
ends 0 config list --account "$user" --json
[ "$(jq '[.settings[] | select(.name | endswith("archive.guard")).value] == ["5"] and all(.settings[]; .per_account)' "$dir/out")" = true ] || fail "$(cat "$dir/out")"
ends 2 config set workers.count 5 --account "$user"
grep -q 'for all accounts together' "$dir/err" || fail "$(cat "$dir/err")"
ends 2 config get "accounts.$user.archive.guard" --account "$user"
ends 2 config get archive.guard --account ''
ends 0 config unset archive.guard --account "$user"
has "$config" ''

# ---- edit ----
rm "$config"
editor $'workers.count: 8\n'
ends 0 config edit --json
grep -q '^# Settings of Tidemark' "$dir/editor.saw" || fail "the editor saw: $(cat "$dir/editor.saw")"
[ "$(jq -c .changes "$dir/out")" = '[{"name":"workers.count","value":"8","before":"16"}]' ] || fail "$(cat "$dir/out")"
has "$config" $'workers.count: 8\n'
[ "$(stat -c %a "$config")" = 600 ] && [ ! -e "$copy" ] || fail "$(ls -l "$dir/home")"
editor $'workers.count: 8\n'
ends 0 config edit
grep -q 'nothing was changed' "$dir/out" && [ ! -e "$copy" ] || fail "$(cat "$dir/out")"
# A wrong one: the line, the reason, the copy; the next edit goes on with it.
editor $'workers.count: 8\nstall.after: soon\n'
ends 1 config edit
grep -q 'config.yaml.edit:2: stall.after: "soon"' "$dir/err" && grep -q 'config edit. opens it again' "$dir/err" || fail "$(cat "$dir/err")"
has "$config" $'workers.count: 8\n'
has "$copy" $'workers.count: 8\nstall.after: soon\n'
editor $'workers.count: 8\nworkers.reserved_bulk: 9\n'
ends 1 config edit
grep -q 'stall.after: soon' "$dir/editor.saw" || fail "not the copy that was kept: $(cat "$dir/editor.saw")"
grep -q 'config.yaml.edit:2' "$dir/err" || fail "values that do not agree have no line: $(cat "$dir/err")"
# Nor does it overwrite what someone else set since.
ends 0 config set stall.after 30m
ends 1 config edit
grep -q 'has changed since' "$dir/err" || fail "$(cat "$dir/err")"
has "$config" $'workers.count: 8\nstall.after: 30m\n'
rm "$copy"
cat >"$dir/editor" <<SH
#!/bin/sh
echo 'workers.count: 7' >"\$2"
"$tidemark" --home "$dir/home" config set stall.after 40m >/dev/null
SH
ends 1 config edit
grep -q 'has changed while you edited' "$dir/err" && [ -e "$copy" ] || fail "$(cat "$dir/err")"
has "$config" $'workers.count: 8\nstall.after: 40m\n'
rm "$copy"
# An editor that fails, one that is not there, and VISUAL before EDITOR.
EDITOR='false' ends 1 config edit
grep -q 'the editor `false` failed' "$dir/err" && [ ! -e "$copy" ] || fail "$(cat "$dir/err")"
EDITOR="$dir/none" ends 1 config edit
grep -q 'VISUAL or EDITOR' "$dir/err" && [ ! -e "$copy" ] || fail "$(cat "$dir/err")"
EDITOR='false' VISUAL=true ends 0 config edit
has "$config" $'workers.count: 8\nstall.after: 40m\n'

# ---- two at once: neither change is lost ----
for i in 1 2 3 4 5 6 7 8; do
    t config set workers.count "$((i + 8))" >/dev/null &
    first=$!
    t config set retry.attempts_max "$i" >/dev/null || fail "set $i"
    wait "$first" || fail "set $i beside another"
    [ "$(grep -c "^workers.count: $((i + 8))\$\|^retry.attempts_max: $i\$" "$config")" = 2 ] || fail "one was lost: $(cat "$config")"
done
ends 0 config unset retry.attempts_max
ends 0 config set workers.count 8

# ---- a running process follows ----
start_serve
editor $'workers.count: 5\nstall.after: 40m\n'
ends 0 config edit --json
[ "$(jq .engine "$dir/out")" = true ] || fail "$(cat "$dir/out")"
until_true 30 grep -q 'setting changed.*workers.count' "$dir/serve.log" || fail "it does not follow: $(tail -n 3 "$dir/serve.log")"
ends 0 config unset workers.count --json
[ "$(jq .engine "$dir/out")" = true ] || fail "$(cat "$dir/out")"
stop_serve 0

echo "$failed failed"
[ "$failed" -eq 0 ]
