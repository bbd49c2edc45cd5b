#!/usr/bin/env bash
# mail_show_test.sh TIDEMARK CLOUD: a message as JSON, as a thread, as an HTML file that a browser
# can open offline, and its attachments (M9, M19a); with hostile mail through the real sync.
. "$(dirname "$0")/../stage.sh"
start_cloud --seed 14 --mailbox ada@example.com=3 --token tok=ada@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
sign_in
deliver() { curl -sSf -H 'Content-Type: message/rfc822' --data-binary @- "$origin/_cloud/mail?user=ada@example.com" | jq -r .id; }
png=iVBORw0KGgoAAAANSUhEUg==
hostile=$({
    printf 'From: =?utf-8?Q?M=C3=A5ns?= <m@example.org>\r\nTo: ada@example.com\r\nSubject: </title>S&S\r\n'
    printf 'Date: Mon, 5 Jan 2026 10:00:00 +0000\r\nMessage-ID: <one@example.org>\r\n'
    printf 'Content-Type: multipart/related; boundary=b\r\n\r\n--b\r\nContent-Type: text/html; charset=utf-8\r\n\r\n'
    printf '<script>evil()</script><link rel=preconnect href=https://evil.example><p onclick=x()>Hello <b>you</b>'
    printf '<img src=cid:logo alt=Logo><img src="https://track.example/p.gif?u=ada" alt=Pixel>'
    printf '<a href="javascript:x()">bad</a> <a href="https://example.org/">good</a>'
    printf '<style>@import url(https://evil.example/x.css);p{background:url(https://evil.example/y)}</style>\r\n'
    printf -- '--b\r\nContent-Type: image/png\r\nContent-ID: <logo>\r\nContent-Transfer-Encoding: base64\r\n\r\n%s\r\n' "$png"
    printf -- '--b\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename="../../a:b.pdf"\r\n'
    printf 'Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--b--\r\n'
} | deliver)
plain=$(printf 'From: p@example.org\r\nSubject: plain\r\n\r\n1 < 2 & <script>\r\n' | deliver)
ends 0 mail sync --quiet

# ---- one object, with what is known about the copy
ends 0 mail show "$hostile" --json
jq -e --arg id "$hostile" '.id == $id and .copy == "exact" and .gone == false and .html == true and .problem == null
    and .from == "Måns <m@example.org>" and .subject == "</title>S&S" and .message_id == "one@example.org"
    and .date_unix_ms == 1767607200000 and (.labels | map(.id) | index("INBOX") != null)
    and (.attachments | length) == 2
    and (.attachments[0] | .number == 1 and .type == "image/png" and .inline and .content_id == "logo" and .bytes == 16)
    and (.attachments[1] | .number == 2 and .type == "application/pdf" and .bytes == 5 and .file == "_.._a_b.pdf")' \
    "$dir/out" >/dev/null || fail "the object: $(cat "$dir/out")"
jq -S 'del(.alerts, .broken, .remote_images)' "$dir/out" >"$dir/alone" # images are counted of one message alone
ends 0 mail show "$hostile" --thread --json
jq -S '.messages[0]' "$dir/out" | diff "$dir/alone" - >"$dir/differs" || fail "a thread has another object: $(cat "$dir/differs")"
jq -e '.more == false and (.messages | length) == 1' "$dir/out" >/dev/null || fail "the thread: $(cat "$dir/out")"
ends 0 mail show "$hostile"
grep -qx 'Attachment: .._.._a:b.pdf (application/pdf, 5 B)' "$dir/out" || fail "as text: $(cat "$dir/out")"
grep -q '^Copy:' "$dir/out" && fail "an exact copy has a line: $(cat "$dir/out")"

# ---- as HTML: standard output has the document and nothing else
ends 0 mail show "$hostile" --html
cp "$dir/out" "$dir/page.html"
[ "$(head -n 1 "$dir/page.html")" = '<!DOCTYPE html>' ] || fail "no document: $(head -c 300 "$dir/page.html")"
[ "$(tail -n 1 "$dir/page.html")" = '</body></html>' ] || fail "no end: $(tail -c 300 "$dir/page.html")"
grep -qF "content=\"default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\"" \
    "$dir/page.html" || fail "no policy"
grep -qF '<title>&lt;/title&gt;S&amp;S</title>' "$dir/page.html" || fail "the title: $(grep title "$dir/page.html")"
grep -qF "<img src=\"data:image/png;base64,$png\" alt=\"Logo\">" "$dir/page.html" || fail "no image"
grep -qF '[remote image, not loaded: Pixel, https://track.example/p.gif?u=ada]' "$dir/page.html" || fail "no text for the remote image"
grep -qF '<a href="https://example.org/" rel="noopener noreferrer">good</a>' "$dir/page.html" || fail "no link"
grep -qiE '<script|<link|onclick|javascript:|evil|src="http|@import' "$dir/page.html" && fail "not washed: $(cat "$dir/page.html")"

# ---- ... to a file, which is never overwritten by another document
ends 0 mail show "$hostile" --html "$dir/file.html"
cmp -s "$dir/page.html" "$dir/file.html" || fail "the file is another document"
grep -qx "wrote $dir/file.html; remote images not loaded: 1" "$dir/out" || fail "said: $(cat "$dir/out")"
ends 0 mail show "$hostile" --html "$dir/file.html" # the same bytes
echo mine >"$dir/file.html"
ends 1 mail show "$hostile" --html "$dir/file.html"
grep -q 'exists and has other content' "$dir/err" || fail "why: $(cat "$dir/err")"
[ "$(cat "$dir/file.html")" = mine ] || fail "a file was overwritten"
ends 1 mail show "$hostile" --html "$dir/no/such/dir/file.html"
ends 0 mail show "$hostile" --html "$dir/json.html" --json
jq -e --arg file "$dir/json.html" '.file == $file and .html and (.cut | not)
    and .remote_images == [{"number": 0, "url": "https://track.example/p.gif?u=ada"}]' "$dir/out" >/dev/null || fail "counts: $(cat "$dir/out")"
ends 0 mail show "$plain" --html
grep -qF '<div style="white-space:pre-wrap">1 &lt; 2 &amp; &lt;script&gt;' "$dir/out" || fail "plain text: $(cat "$dir/out")"

# ---- what cannot be
ends 2 mail show "$hostile" --html --raw
ends 2 mail show "$hostile" --html --thread
ends 1 mail show "$hostile" "$dir/file2.html" # no id
ends 2 mail show "$hostile" --html "$dir/file2.html" "$plain"
[ -e "$dir/file2.html" ] && fail "a file without --html"
ends 1 mail show nosuch --html "$dir/file3.html"
[ -e "$dir/file3.html" ] && fail "a file for no message"

# ---- attachments under safe names
ends 0 mail show "$hostile" --save-attachments "$dir/deep/save" --json
jq -e '.saved | map(.number) == [1, 2]' "$dir/out" >/dev/null || fail "saved: $(cat "$dir/out")"
[ "$(cd "$dir/deep" && find . -type f | LC_ALL=C sort | tr '\n' ' ')" = './save/_.._a_b.pdf ./save/attachment-1 ' ] || fail "files: $(find "$dir/deep")"

# ---- a damaged copy: alone it is an error, in its thread it is named
shard=$(find "$archive" -name '2*.db' | while read -r one; do
    [ "$(sqlite3 "$one" "SELECT count(*) FROM message WHERE gmail_id = '$plain'")" -eq 1 ] && echo "$one"
done)
sqlite3 "$shard" "UPDATE content SET hash = zeroblob(32) WHERE id = (SELECT content FROM message WHERE gmail_id = '$plain')" || fail "spoil"
ends 1 mail show "$plain"
grep -q 'mail heal' "$dir/err" || fail "no way out: $(cat "$dir/err")"
ends 1 mail show "$plain" --html "$dir/file4.html"
[ -e "$dir/file4.html" ] && fail "a file for a damaged message"
ends 3 mail show "$plain" --thread --json
jq -e '.messages[0] | .copy == "damaged" and .text == "" and .problem != null' "$dir/out" >/dev/null || fail "the damaged one: $(cat "$dir/out")"


exit "$((failed > 0))"
