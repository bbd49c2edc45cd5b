# shellcheck shell=bash
# clients.sh: sourced by run.sh.  The three programs that are compared, each with a user and a folder of its own on the
# same server: open_CLIENT makes its configuration, down_CLIENT, up_CLIENT and idle_CLIENT are what is measured.
#
# rclone runs with 32 transfers and 32 checkers (4 and 8 are its defaults) and pages of 1,000; it is told that the drive
# is a business one, because this version checks the hashes of those only.  onedrive has no such settings.  Both, and ours,
# check the hashes of what they transfer.

user_of() { echo "$1@example.com"; }

# measure CLIENT COMMAND...: runs it and leaves $wall, $cpu, $rss, and $calls by the server's count.  After $limit seconds
# it is stopped and fails.
limit=
measure() {
    local client=$1 before took
    shift
    [ -z "$limit" ] || set -- "$(command -v timeout)" -k 5 "$limit" "$@"
    before=$(calls_of "$client")
    took=$("$build/bench/drive_cost" "$dir/$client.log" "$@") || {
        tail -n 15 "$dir/$client.log" >&2
        return 1
    }
    read -r wall cpu rss <<<"$took"
    calls=$(($(calls_of "$client") - before))
}

calls_of() {
    curl -sSf "$api/_cloud/stats" | jq ".users.\"$(user_of "$1")\".calls // 0"
}

# ---- rclone ----

rclone_run() {
    measure rclone "$(command -v rclone)" --config "$dir/rclone.conf" --transfers 32 --checkers 32 \
        --onedrive-list-chunk 1000 "$@"
}
open_rclone() {
    local drive
    drive=$(curl -sSf -H 'Authorization: Bearer rclone' "$api/v1.0/me/drive" | jq -r .id)
    mkdir -p rclone
    cat >rclone.conf <<CONFIG
[od]
type = onedrive
drive_id = $drive
drive_type = business
token = {"access_token":"rclone","token_type":"Bearer","refresh_token":"none","expiry":"2099-01-01T00:00:00Z"}
CONFIG
}
down_rclone() { rclone_run copy od: rclone; }
up_rclone() { rclone_run copy rclone/up od:up; }
adopt_rclone() { rclone_run bisync od: "$dir/rclone" --resync --workdir "$dir/bisync"; }
idle_rclone() { rclone_run bisync od: "$dir/rclone" --workdir "$dir/bisync"; }
full_rclone() { adopt_rclone; }

# ---- Debian's onedrive ----

onedrive_run() {
    measure onedrive "$(command -v onedrive)" --confdir "$dir/conf" --synchronize --disable-notifications "$@"
}
open_onedrive() { # the browser is curl; it signs in as the first user
    local native=https://login.microsoftonline.com/common/oauth2/nativeclient response
    response=$(curl -sS -o /dev/null -w '%{redirect_url}' -G \
        https://login.microsoftonline.com/common/oauth2/v2.0/authorize \
        -d client_id=d50ca740-c83f-4d1b-b616-12c519384f0c -d response_type=code -d prompt=login \
        --data-urlencode "redirect_uri=$native" \
        --data-urlencode 'scope=Files.ReadWrite Files.ReadWrite.all Sites.ReadWrite.All offline_access')
    rm -rf conf
    mkdir -p conf onedrive
    printf 'sync_dir = "%s"\nskip_symlinks = "true"\n' "$dir/onedrive" >conf/config
    "$(command -v onedrive)" --confdir "$dir/conf" --display-sync-status --auth-response "$response" >onedrive.log 2>&1 ||
        { tail -n 15 onedrive.log >&2; return 1; }
}
down_onedrive() { onedrive_run; }
up_onedrive() { onedrive_run; }
adopt_onedrive() { onedrive_run; }
idle_onedrive() { onedrive_run; }
full_onedrive() { onedrive_run --resync --resync-auth; }

# ---- ours ----

ours() { "$build/src/cli/tidemark" --home "$dir/home" "$@"; }
tidemark_run() { measure tidemark "$build/src/cli/tidemark" --home "$dir/home" "$@"; }
open_tidemark() {
    rm -rf home
    mkdir -p tidemark
    ours account add onedrive "$(user_of tidemark)" --bearer tidemark --endpoint "$api" >tidemark.log 2>&1 &&
        ours drive add "$dir/tidemark" >>tidemark.log 2>&1 || { cat tidemark.log >&2; return 1; }
}
down_tidemark() { tidemark_run drive sync; }
up_tidemark() { tidemark_run drive sync; }
adopt_tidemark() { tidemark_run drive sync; }
idle_tidemark() { tidemark_run drive sync; }
full_tidemark() { tidemark_run drive sync --full; }
