#!/usr/bin/env bash
# mcp_client_test.sh TIDEMARK CLOUD WORK: `tidemark mcp` with the official client from npm.  WORK is
# kept between runs.  Status 77 and a line: skipped, for want of it.
version=1.32.2
work=$3
skip() {
    echo "skipped: $1"
    exit 77
}
command -v npm >/dev/null || skip "npm is not installed"
mkdir -p "$work"
if [ "$(jq -r .version "$work/node_modules/@modelcontextprotocol/sdk/package.json" 2>/dev/null)" != $version ]; then
    timeout 300 npm install --prefix "$work" --no-audit --no-fund --ignore-scripts --loglevel=error \
        @modelcontextprotocol/sdk@$version >/dev/null || skip "the npm registry does not answer"
fi
. "$(dirname "$0")/../stage.sh"
here=$(cd "$(dirname "$0")" && pwd)
start_cloud --seed 5 --mailbox ada@example.com=30 --token tok=ada@example.com
export TIDEMARK_GOVERNOR_GMAIL_WINDOW_UNITS=60000 # no pacing: the cloud has no quota here
mkdir "$dir/home"
sign_in
ends 0 mail sync --quiet
timeout 120 node "$here/mcp_client.mjs" "$(realpath "$work")" "$tidemark" "$dir/home" || fail "the client: $?"
exit "$((failed > 0))"
