# shellcheck shell=bash
# microsoft.sh: sourced by tests whose program knows only Microsoft's host names and https.  It starts the
# test again in a network namespace of its own, with a hosts file and a certificate authority made for the
# occasion, and there the cloud.  Ends with status 77 (skipped) and a line where the machine cannot
# do that.

skip() {
    echo "skipped: $1"
    exit 77
}

# enter_namespace TEST CLOUD FILES TOOL...
enter_namespace() {
    local test=$1 cloud=$2 files=$3 tool
    shift 3
    [ -z "${MICROSOFT_INSIDE:-}" ] || return 0
    for tool in "$@" openssl unshare ip curl jq; do
        command -v "$tool" >/dev/null || skip "$tool is not installed"
    done
    local apart=(unshare --mount --net --pid --fork --kill-child)
    [ "$(id -u)" -eq 0 ] || apart=(unshare --user --map-root-user --mount --net --pid --fork --kill-child)
    "${apart[@]}" true 2>/dev/null || skip "this machine allows no namespaces"
    MICROSOFT_INSIDE=1 exec "${apart[@]}" "$test" "$cloud" "$files"
}

# Makes $dir and goes there: nothing but loopback, and Microsoft's names point to it.
make_names() {
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    ip link set lo up
    local names=(graph.microsoft.com login.microsoftonline.com)
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
}

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
