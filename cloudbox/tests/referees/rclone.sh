#!/usr/bin/env bash
# rclone.sh CLOUD [FILES]: Debian's rclone, a program we did not write, downloads a whole OneDrive,
# uploads a folder with a large file, moves and removes, and checks both sides by their hashes.  It
# knows only Microsoft's host names and https, so it runs in a network namespace of its
# own, with a hosts file and a certificate authority made for the occasion.
#
# Ends with status 77 (skipped) and a line where the machine cannot do that.
set -euo pipefail
cloud=$(realpath "$1")
files=${2:-300}
here=$(realpath "$0")

skip() {
    echo "skipped: $1"
    exit 77
}

if [ -z "${RCLONE_INSIDE:-}" ]; then
    for tool in rclone openssl unshare ip curl jq; do
        command -v "$tool" >/dev/null || skip "$tool is not installed"
    done
    if [ "$(id -u)" -eq 0 ]; then
        apart=(unshare --mount --net --pid --fork --kill-child)
    else
        apart=(unshare --user --map-root-user --mount --net --pid --fork --kill-child)
    fi
    "${apart[@]}" true 2>/dev/null || skip "this machine allows no namespaces"
    RCLONE_INSIDE=1 exec "${apart[@]}" "$here" "$cloud" "$files"
fi

# ---- inside: nothing but loopback, and Microsoft's names point to it ----
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
ip link set lo up
names=(graph.microsoft.com login.microsoftonline.com)
{
    echo "127.0.0.1 localhost"
    printf '127.0.0.1 %s\n' "${names[@]}"
} >"$dir/hosts"
mount --bind "$dir/hosts" /etc/hosts
cd "$dir"
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=A test authority' \
    -keyout ca.key -out ca.pem 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj '/CN=localhost' -keyout key.pem -out req.pem 2>/dev/null
printf 'subjectAltName=%s' "$(printf ',DNS:%s' "${names[@]}" | cut -c 2-)" >ext
openssl x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext \
    -out cert.pem 2>/dev/null
export SSL_CERT_FILE=$dir/ca.pem CURL_CA_BUNDLE=$dir/ca.pem HOME=$dir

user=reader@example.com
exec 3< <(exec "$cloud" --listen 127.0.0.1:443 --tls cert.pem,key.pem --auto-consent --quota off \
    --seed 7 --token referee="$user" --drive "$user=$files" 2>cloud.log)
read -r _ <&3 || { cat cloud.log; exit 1; }
api=https://graph.microsoft.com
drive=$(curl -sSf -H 'Authorization: Bearer referee' $api/v1.0/me/drive | jq -r .id)
# For a business drive it compares QuickXorHash; this version knows only SHA-1 for personal ones.
cat >rclone.conf <<CONFIG
[od]
type = onedrive
drive_id = $drive
drive_type = business
token = {"access_token":"referee","token_type":"Bearer","refresh_token":"none","expiry":"2099-01-01T00:00:00Z"}
CONFIG
run() {
    rclone --config rclone.conf --retries 1 --low-level-retries 3 --log-file rclone.log -v "$@" ||
        { tail -n 40 rclone.log; exit 1; }
}
tree() { curl -sSf "$api/_cloud/drive?user=$user"; }

# ---- all of it comes, and every hash is right ----
run copy od: down
[ "$(find down -type f | wc -l)" -eq "$files" ]
run check od: down
echo "downloaded and checked $files files"

# ---- a folder goes up: small, empty and large files, awkward names ----
mkdir -p 'up/deep/er folder'
printf hello >'up/a #1 100%.txt'
: >up/empty
head -c 3000000 /dev/urandom >'up/deep/medium.bin'
head -c 25000000 /dev/urandom >'up/deep/er folder/large.bin'
run copy up od:up
run check up od:up
run copyto od:up/deep/medium.bin again.bin
cmp again.bin up/deep/medium.bin
echo "uploaded and checked $(find up -type f | wc -l) files"

# ---- changes ----
head -c 12000000 /dev/urandom >'up/deep/er folder/large.bin'
printf more >up/empty
run copy up od:up
run check up od:up
run moveto od:up/deep/medium.bin 'od:up/moved to.bin'
run delete 'od:up/a #1 100%.txt'
run purge 'od:up/deep/er folder'
tree | grep -q ' up/moved to.bin$'
! tree | grep -qE ' up/(a #1|deep/er folder|deep/medium)'
run mkdir od:made/by/rclone
tree | grep -q '^folder 0 - made/by/rclone$'
run about od: >about.txt
grep -q '^Used:' about.txt
! grep -q 'hashes could not be checked' rclone.log
echo "changed, moved and removed"
curl -sSf $api/_cloud/stats | jq -c '.violations | map({(.kind): .count}) | add'
