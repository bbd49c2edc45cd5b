# smtp_stage.sh: a mail server for end-to-end scripts; sourced after stage.sh.
# post_office NAME OPTION...: starts one; its directory is $dir/NAME, its port in $port.
post_office() {
    local name=$1
    shift
    exec 4< <(exec python3 "$(dirname "${BASH_SOURCE[0]}")/../support/smtp_server.py" "$dir/$name" "$@")
    stage_pids+=("$!")
    read -r _ port <&4 || { echo "the mail server did not start" >&2; exit 1; }
}
# mode NAME TEXT: what it does with the next messages.  Replaced, never half written.
mode() { echo "$2" >"$dir/$1/mode.new" && mv "$dir/$1/mode.new" "$dir/$1/mode"; }
# mails NAME: how many it took; mail_has NAME N REGEX; header NAME N HEADER.
mails() { find "$dir/$1" -name 'mail.*' ! -name '*.new' 2>/dev/null | wc -l; }
has_mails() { [ "$(mails "$1")" -eq "$2" ]; }
mail_has() { grep -Eq -- "$3" "$dir/$1/mail.$2" || fail "mail $2 of $1 lacks $3: $(cat "$dir/$1/mail.$2")"; }
header() { sed -n "s/^$3: \(.*\)\r$/\1/p" "$dir/$1/mail.$2" | head -n 1; }
# only NAME N: it took exactly so many.
only() { has_mails "$1" "$2" || fail "$(mails "$1") mails at $1, not $2: $(head -n 40 "$dir/$1"/mail.*)"; }
# certificates: a test CA in $dir/ca.pem, a certificate of 127.0.0.1 in $dir/server.pem and server.key.
certificates() {
    (
        cd "$dir" || exit 1
        openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=test-ca \
            -addext basicConstraints=critical,CA:TRUE
        openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=mail
        printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' >server.ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem
    ) >"$dir/openssl.log" 2>&1 || fail "certificates: $(cat "$dir/openssl.log")"
}
