# assistant_stage.sh: a home with a Gmail account and a chat account at the local cloud, for scripts of the
# assistant.  Sourced after stage.sh, with the cloud running.
unset "${!TIDEMARK_@}" "${!GMA_@}"
add_chat() { # [NAME]
    (umask 077 && echo key-0a1B2c3D4e5F6a7B8c9D >"$dir/key")
    t account add chat "${1:-model}" --key-file "$dir/key" --model tide-good --fast-model tide-fast --endpoint "$origin" \
        >"$dir/out" 2>&1 || fail "account add chat: $(cat "$dir/out")"
}
# says TEXT REPLY: the model answers that to requests which contain the text.
says() {
    jq -n --arg text "$1" --arg reply "$2" '{contains: $text, reply: $reply}' |
        curl -sSf -o /dev/null "$origin/_cloud/chat" -d @- || fail "the model"
}
category() { # TEXT CATEGORY: a mail with this text is that
    says "$1" "{\"category\":\"$2\",\"confidence\":\"high\",\"reasoning\":\"so\",\"detected_language\":\"en\",\"resolved_style\":\"business\"}"
}
# arrive SUBJECT TEXT [USER]: mail from a stranger.
arrive() {
    printf 'From: Bob <bob@example.org>\r\nTo: %s\r\nSubject: %s\r\nMessage-ID: <%s@example.org>\r\n\r\n%s\r\n' \
        "${3:-$user}" "$1" "$(tr -dc a-z0-9 <<<"${1,,}")" "$2" |
        curl -sSf -o /dev/null -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=${3:-$user}" ||
        fail "mail"
}
drafts() { ask "$api/drafts" | jq -r '.drafts // [] | length'; }
# labels_of QUERY: names of the labels of the assistant on the messages that a search finds.
labels_of() {
    local id
    id=$(ask -G "$api/messages" --data-urlencode "q=$1" | jq -r '.messages[0].id')
    ask "$api/messages/$id?format=minimal" | jq -r '.labelIds[]' | sort >"$dir/ids"
    ask "$api/labels" | jq -r '.labels[] | select(.name | startswith("🤖 AI")) | .id + " " + .name' |
        sort | join - "$dir/ids" | sed 's/^[^ ]* //'
}
