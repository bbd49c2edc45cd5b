#!/usr/bin/env bash
# onedrive.sh CLOUD [FILES]: Debian's onedrive, a sync program we did not write, signs in, brings a
# whole drive here, and carries changes both ways: by delta down, by simple uploads and sessions up.
set -euo pipefail
cloud=$(realpath "$1")
files=${2:-200}
here=$(realpath "$0")
# shellcheck source=cloudbox/tests/referees/microsoft.sh
. "$(dirname "$here")/microsoft.sh"
enter_namespace "onedrive jq" "$here" "$cloud" "$files"
make_names "${microsoft_names[@]}"
mount --bind "$dir/ca.pem" /etc/ssl/certs/ca-certificates.crt # libcurl's own default
start_cloud "$cloud" "$files"

# ---- sign in: the browser is curl ----
native=https://login.microsoftonline.com/common/oauth2/nativeclient
client=d50ca740-c83f-4d1b-b616-12c519384f0c
response=$(curl -sS -o /dev/null -w '%{redirect_url}' -G \
    https://login.microsoftonline.com/common/oauth2/v2.0/authorize -d "client_id=$client" \
    -d response_type=code -d prompt=login --data-urlencode "redirect_uri=$native" \
    --data-urlencode 'scope=Files.ReadWrite Files.ReadWrite.all Sites.ReadWrite.All offline_access')
mkdir conf drive
printf 'sync_dir = "%s"\nskip_symlinks = "true"\n' "$dir/drive" >conf/config
run() {
    onedrive --confdir "$dir/conf" --synchronize --verbose "$@" >client.log 2>&1 ||
        { tail -n 60 client.log; exit 1; }
    if grep -qE 'ERROR: .*(HTTP|unhandled|returned an error)' client.log; then
        grep -nE -A 6 'ERROR' client.log | head -n 60
        exit 1
    fi
}
run --auth-response "$response"
run

# ---- all of it came ----
same() { # every file of the drive is here with its size, and nothing else
    diff <(tree | sed -n 's/^file \([0-9]*\) [^ ]* /\1 /p' | sort) \
        <(cd drive && find . -type f -printf '%s %P\n' | sort)
}
same
echo "downloaded $(find drive -type f | wc -l) files"

# ---- changes on both sides ----
mkdir 'drive/local folder'
printf hello >'drive/local folder/a #1 100%.txt'
head -c 15000000 /dev/urandom >'drive/local folder/large.bin'
say() { curl -sSf "$api/_cloud/drive/$1" -d "$2" >/dev/null; }
say put "{\"user\":\"$user\",\"path\":\"other device/b.txt\",\"content\":\"from elsewhere\"}"
run
run
same
[ "$(cat 'drive/other device/b.txt')" = "from elsewhere" ]
say move "{\"user\":\"$user\",\"path\":\"other device/b.txt\",\"to\":\"other device/c.txt\"}"
say put "{\"user\":\"$user\",\"path\":\"other device/d.txt\",\"content\":\"later\"}"
rm 'drive/local folder/large.bin'
run
run
same
[ "$(cat 'drive/other device/c.txt')" = "from elsewhere" ]
say delete "{\"user\":\"$user\",\"path\":\"other device\"}"
run
same
echo "changed on both sides"
curl -sSf $api/_cloud/stats | jq -c '.violations | map({(.kind): .count}) | add'
