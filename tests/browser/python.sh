#!/usr/bin/env bash
# python.sh ARGUMENT...: a Python that can drive Debian's Chromium.  Status 77 and a line: something is missing.
set -euo pipefail
skip() {
    echo "skipped: $1"
    exit 77
}
command -v chromium >/dev/null || skip "chromium is not installed"
command -v chromedriver >/dev/null || skip "chromium-driver is not installed"
export PYTHONDONTWRITEBYTECODE=1
for one in /usr/bin/python3 python3; do # Debian's has Debian's packages
    if command -v "$one" >/dev/null && "$one" -c 'import selenium' 2>/dev/null; then exec "$one" "$@"; fi
done
skip "python3-selenium is not installed"
