#!/usr/bin/env bash
# drive_mcp_test.sh TIDEMARK CLOUD: a program reads the status of drives through `tidemark mcp`; names of files are marked as text
# from outside.
source "$(dirname "$0")/../stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=30,size=100 --token tok=ada@example.com
ask_mcp() { # ARGUMENTS: the result of drive_status
    {
        printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}' \
            '{"jsonrpc":"2.0","method":"notifications/initialized"}' \
            '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"drive_status","arguments":'"$1"'}}'
        until_true 30 grep -q '"id":2' "$dir/mcp" # its input ends only then
    } | t mcp >"$dir/mcp" 2>"$dir/err"
    grep '"id":2' "$dir/mcp" | jq .result >"$dir/out"
}
holds() { jq -e "$1" "$dir/out" >/dev/null || fail "not $1: $(head -c 1500 "$dir/out") $(cat "$dir/err")"; }
ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok
ask_mcp '{}'; holds '.structuredContent.untrusted.drives == []'
ends 0 drive add "$dir/One"
ends 0 drive sync --quiet
ask_mcp '{}'
holds '.structuredContent | (.untrusted.drives[0] | .drive == "One" and .files == 30 and (.last_changes | length) == 20) and (.notice | length > 0) and (has("drives") | not)'
ask_mcp '{"drive":"One"}'; holds '.structuredContent.untrusted.drives | length == 1'
ask_mcp '{"drive":"Two"}'; holds '.isError'
ask_mcp '{"drive":"--json"}'; holds '.isError'
exit $((failed > 0))
