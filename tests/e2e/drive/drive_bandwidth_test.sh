#!/usr/bin/env bash
# drive_bandwidth_test.sh TIDEMARK CLOUD: the limits of each direction and their timetable hold for the transfers of a drive (D7, D9).
# A limit makes a transfer take a time at least; a slow machine only adds to it.
source "$(dirname "$0")/../stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=4,size=500000 --token tok=ada@example.com
ends 0 account add onedrive ada@example.com --endpoint "$origin" --bearer tok
ends 0 drive add "$dir/One"
now_ms() { date +%s%3N; }
# takes_at_least MS ARGUMENT...: a sync with these settings.
takes_at_least() {
    local least=$1 began took
    shift
    began=$(now_ms)
    ends 0 "$@" drive sync --quiet
    took=$(($(now_ms) - began))
    [ "$took" -ge "$least" ] || fail "line ${BASH_LINENO[0]}: $* took $took ms, at least $least are right"
}
online() { curl -sSf "$origin/_cloud/drive?user=ada@example.com" | grep -c '^file'; }

# 2,000,000 bytes down at 500,000 a second; a limit of the other direction does not count.
takes_at_least 2500 --set bandwidth.down=500000 --set bandwidth.up=1000
[ "$(find "$dir/One" -type f ! -name '.tidemark-*' | wc -l)" = 4 ] || fail "not downloaded"

# 1,500,000 bytes up, by a timetable that holds all day.
for i in 1 2 3; do head -c 500000 /dev/urandom >"$dir/One/up$i.bin"; done
takes_at_least 1800 --set 'bandwidth.schedule=00:00-12:00 up=500000; 12:00-00:00 up=500000'
[ "$(online)" = 7 ] || fail "not uploaded: $(online)"

# Outside of its hours the timetable does not count: this would take a quarter of an hour.
hour=$((10#$(date -u +%H)))
head -c 1000000 /dev/urandom >"$dir/One/free.bin"
began=$(now_ms)
ends 0 --set "bandwidth.schedule=$(printf '%02d:00-%02d:00' $(((hour + 3) % 24)) $(((hour + 4) % 24))) up=1000" drive sync --quiet
[ "$(online)" = 8 ] || fail "not uploaded: $(online)"
[ $(($(now_ms) - began)) -lt 55000 ] || fail "the timetable counts at any time"
exit $((failed > 0))
