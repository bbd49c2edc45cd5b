#!/usr/bin/env bash
# drive_ignore_referee.sh TIDEMARK CLOUD: ignore rules of rclone and of Debian's onedrive, imported.  The programs themselves say
# which files of a tree their rules leave out; `drive plan` must leave out the same ones.  Rules that the import refuses are
# counted, not compared.  Skipped where neither program is installed.
set -uo pipefail
tidemark=$(realpath "$1")
cloud=$(realpath "$2")
here=$(realpath "$0")
# shellcheck source=tests/support/private_names.sh
. "$(dirname "$here")/../../support/private_names.sh"
command -v rclone >/dev/null || command -v onedrive >/dev/null || skip "neither rclone nor onedrive is installed"
enter_namespace "jq python3" "$here" "$tidemark" "$cloud"
make_names "${microsoft_names[@]}"
mount --bind "$dir/ca.pem" /etc/ssl/certs/ca-certificates.crt # libcurl's own default
unset DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR
api=https://graph.microsoft.com
failed=0
fail() {
    echo "FAILED: $1" >&2
    failed=$((failed + 1))
}
exec 3< <(exec "$cloud" --listen 127.0.0.1:443 --tls cert.pem,key.pem --auto-consent --quota off --quiet --seed 7 \
    --mailbox other@example.com=0 --drive other@example.com=0 --mailbox us@example.com=0 --token us=us@example.com 2>cloud.log)
read -r _ <&3 || { cat cloud.log >&2 && exit 1; }

# A tree of names that rules like to speak of.
python3 - tree <<'PY'
import itertools, os, sys
folders = ["", "a", "a/b", "build", "a/build", "a/b/cache", "cache", "cache2", "docs", "docs/old", "node_modules", "a/node_modules/x", ".git", ".hidden"]
names = ["x.tmp", "x.txt", "~lock", ".~y", "tmp", "build", "cache.txt", "notes.md", "a.bak", "ab.bak", ".dot", "old"]
for folder in folders:
    os.makedirs(os.path.join(sys.argv[1], folder), exist_ok=True)
for folder, name in itertools.product(folders, names):
    full = os.path.join(sys.argv[1], folder, name)
    if not os.path.isdir(full):
        with open(full, "w") as file:
            file.write(full)
PY
t() { timeout 150 "$tidemark" --home "$dir/home" "$@"; }
t account add onedrive us@example.com --endpoint $api --bearer us >/dev/null || fail "account add"
t drive add "$dir/tree" --name us >/dev/null || fail "drive add"
# ours: the files that a sync would send, with the rules that the drive has now.
ours() { t drive plan us --quiet --json 2>plan.err | jq -r '.drives[0].actions[] | select(.action == "upload_new") | .path' | LC_ALL=C sort; }
forget() { t drive ignore list us --json | jq -r '.patterns[]?' | while read -r rule; do t drive ignore remove us "$rule" >/dev/null; done; }

# ---- rclone
if command -v rclone >/dev/null; then
    compared=0 refused=0
    while IFS= read -r rules; do
        printf '%b' "$rules" >filters
        if t drive ignore import us filters --format rclone >import.out 2>&1; then
            rclone lsf -R --files-only --filter-from filters --exclude '.tidemark-*' tree 2>rclone.log | LC_ALL=C sort >theirs
            ours >mine
            diff theirs mine >diff.out || fail "rclone and ours differ about $rules: $(head -n 8 diff.out)"
            [ "$(wc -l <mine)" -lt "$(find tree -type f ! -name '.tidemark-*' | wc -l)" ] && compared=$((compared + 1))
            forget
        else
            refused=$((refused + 1))
            grep -q 'line ' import.out || fail "a refusal without a line: $(cat import.out)"
        fi
    done <<'RULES'
- *.tmp\n
- /build/**\n
- build/**\n
- cache*/**\n
- /docs/old/**\n- *.bak\n
- node_modules/**\n- .git/**\n
- .*\n
- ?b.bak\n
- [ax]*.txt\n
- /a/b/**\n- ~*\n
- notes.md\n- /tmp\n
- /a/*.txt\n
- a/*.txt\n
+ keep.txt\n- *\n
- *.{tmp,bak}\n
- a**b\n
# a comment\n- *.md\n\n; another\n- old\n
RULES
    echo "rclone: $compared rule files compared, $refused refused"
    [ "$compared" -ge 8 ] || fail "too few rules of rclone were taken over: $compared"
else
    echo "skipped: rclone is not installed"
fi

# ---- Debian's onedrive: it uploads the tree; what is online afterwards is what its rules let through
if command -v onedrive >/dev/null; then
    native=https://login.microsoftonline.com/common/oauth2/nativeclient
    response=$(curl -sS -o /dev/null -w '%{redirect_url}' -G https://login.microsoftonline.com/common/oauth2/v2.0/authorize \
        -d client_id=d50ca740-c83f-4d1b-b616-12c519384f0c -d response_type=code -d prompt=login \
        --data-urlencode "redirect_uri=$native" \
        --data-urlencode 'scope=Files.ReadWrite Files.ReadWrite.all Sites.ReadWrite.All offline_access')
    cp -r tree theirs-tree
    rm -f theirs-tree/.tidemark-*
    mkdir conf
    {
        printf 'sync_dir = "%s"\n' "$dir/theirs-tree"
        printf 'skip_file = "~*|.~*|*.tmp|a.bak"\n'
        printf 'skip_dir = "build|node_modules|cache*"\n'
        printf 'skip_dotfiles = "false"\n'
    } >conf/config
    onedrive --confdir "$dir/conf" --synchronize --disable-notifications --auth-response "$response" >client.log 2>&1
    onedrive --confdir "$dir/conf" --synchronize --disable-notifications >client.log 2>&1 || fail "onedrive: $(tail -n 5 client.log)"
    curl -sSf "$api/_cloud/drive?user=other@example.com" | sed -n 's/^file [0-9]* [^ ]* //p' | LC_ALL=C sort >theirs
    if [ ! -s theirs ]; then
        fail "onedrive sent nothing: $(tail -n 5 client.log)"
    else
        t drive ignore import us conf/config --format onedrive >import.out 2>&1 || fail "import: $(cat import.out)"
        ours >mine
        diff theirs mine >diff.out || fail "onedrive and ours differ: $(head -n 20 diff.out)"
        echo "onedrive: $(wc -l <theirs) of $(find theirs-tree -type f | wc -l) files pass its rules and ours"
    fi
else
    echo "skipped: onedrive is not installed"
fi
exit $((failed > 0))
