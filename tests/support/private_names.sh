# shellcheck shell=bash
# private_names.sh: sourced by scripts whose program knows only a provider's host names and https.  Such a script is
# started again in a network namespace of its own, with a hosts file and a certificate authority made for the occasion.
# Where the machine cannot do that, it ends with status 77 (skipped) and a line.
skip() {
    echo "skipped: $1"
    exit 77
}

# enter_namespace TOOLS SCRIPT ARGUMENT...: starts the script again inside; returns when it is there.
enter_namespace() {
    local tool apart=(unshare --mount --net --pid --fork --kill-child)
    [ -z "${PRIVATE_NAMES:-}" ] || return 0
    for tool in $1 openssl unshare ip curl; do
        command -v "$tool" >/dev/null || skip "$tool is not installed"
    done
    shift
    [ "$(id -u)" -eq 0 ] || apart+=(--user --map-root-user)
    "${apart[@]}" true 2>/dev/null || skip "this machine allows no namespaces"
    # The leak sanitizer finds threads by their new numbers in /proc.
    if "${apart[@]}" --mount-proc true 2>/dev/null; then
        apart+=(--mount-proc)
    else
        export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
    fi
    PRIVATE_NAMES=1 exec "${apart[@]}" "$@"
}

# make_names NAME...: inside.  Makes $dir and goes there; the names are this machine, and its authority (ca.pem)
# is trusted for them, with cert.pem and key.pem.
make_names() {
    dir=$(mktemp -d)
    trap 'rm -rf "$dir"' EXIT
    ip link set lo up
    {
        echo "127.0.0.1 localhost"
        printf '127.0.0.1 %s\n' "$@"
    } >"$dir/hosts"
    mount --bind "$dir/hosts" /etc/hosts
    cd "$dir"
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj '/CN=A test authority' \
        -keyout ca.key -out ca.pem 2>/dev/null
    openssl req -newkey rsa:2048 -nodes -subj '/CN=localhost' -keyout key.pem -out req.pem 2>/dev/null
    printf 'subjectAltName=%s' "$(printf ',DNS:%s' "$@" | cut -c 2-)" >ext
    openssl x509 -req -in req.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext \
        -out cert.pem 2>/dev/null
    export HTTPLIB2_CA_CERTS=$dir/ca.pem SSL_CERT_FILE=$dir/ca.pem CURL_CA_BUNDLE=$dir/ca.pem HOME=$dir
}
google_names=(accounts.google.com oauth2.googleapis.com www.googleapis.com gmail.googleapis.com)
microsoft_names=(graph.microsoft.com login.microsoftonline.com)
