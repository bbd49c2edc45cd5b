# shellcheck shell=bash
# microsoft.sh: sourced by tests whose program knows only Microsoft's host names (tests/support/private_names.sh).
# shellcheck source=tests/support/private_names.sh
. "$(dirname "${BASH_SOURCE[0]}")/../../../tests/support/private_names.sh"

# start_cloud CLOUD FILES: a drive with so many files for $user.
start_cloud() {
    user=reader@example.com
    api=https://graph.microsoft.com
    exec 3< <(exec "$1" --listen 127.0.0.1:443 --tls cert.pem,key.pem --auto-consent --quota off \
        --seed 7 --mailbox "$user=0" --token referee="$user" --drive "$user=$2" 2>cloud.log)
    read -r _ <&3 || { cat cloud.log; exit 1; }
}

# What is in the drive: "file SIZE HASH PATH", "folder 0 - PATH".
tree() { curl -sSf "$api/_cloud/drive?user=$user"; }
