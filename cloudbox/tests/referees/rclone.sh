#!/usr/bin/env bash
# rclone.sh CLOUD [FILES]: Debian's rclone, a program we did not write, downloads a whole OneDrive,
# uploads a folder with a large file, moves and removes, and checks both sides by their hashes.
set -euo pipefail
cloud=$(realpath "$1")
files=${2:-300}
here=$(realpath "$0")
# shellcheck source=cloudbox/tests/referees/microsoft.sh
. "$(dirname "$here")/microsoft.sh"
enter_namespace "rclone jq" "$here" "$cloud" "$files"
make_names "${microsoft_names[@]}"
start_cloud "$cloud" "$files"
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
