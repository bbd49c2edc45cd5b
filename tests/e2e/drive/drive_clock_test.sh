#!/usr/bin/env bash
# drive_clock_test.sh TIDEMARK CLOUD PRELOAD: the clock is put back by a day between two syncs, and forward again.  Edits and
# deletions of that time cross all the same, nothing else does, what waits does not wait for a day.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
preload=$(realpath "$3")
serve --quota off --drive ada@example.com=10,size=700 --token tok=ada@example.com
join
for i in $(seq 5); do echo "before $i" >"$one/before$i.txt"; done
put gone.txt gone
put kept.txt kept
ends 0 drive sync
# Something is owed, with a time that will be far ahead.
put owed.txt owed
fault '{"method":"graph.download.get","fault":"garbage","rate":1}'
ends 3 drive sync
no_faults

# ---- a day back
yesterday() { LD_PRELOAD=$preload CLOCK_BACK_S=86400 timeout 100 "$tidemark" --home "$dir/home" "$@" >"$dir/out" 2>"$dir/err"; }
yesterday drive status --json || true
before=$(files_here | grep -v ' owed.txt$')
yesterday drive sync || fail "a sync after the clock was put back ended with $?: $(cat "$dir/out" "$dir/err")"
here owed.txt owed || fail "what was owed waits for a day: $(cat "$dir/out")"
[ "$before" = "$(files_here | grep -v ' owed.txt$')" ] || fail "files here changed"
same_trees "after the clock was put back"
echo edited >"$one/before1.txt"
echo new >"$one/new.txt"
mv "$one/before2.txt" "$one/renamed.txt"
rm "$one/before3.txt"
put online.txt online
other delete '"path":"gone.txt"'
yesterday drive sync || fail "changes after the clock was put back: $? $(cat "$dir/out" "$dir/err")"
[ "$(online before1.txt)" = edited ] && [ "$(online new.txt)" = new ] && [ "$(online renamed.txt)" = 'before 2' ] ||
    fail "changes were not sent: $(tree)"
gone_online before3.txt || fail "a deletion did not go online"
here online.txt online || fail "a new file did not come"
[ ! -e "$one/gone.txt" ] || fail "a deletion did not come"
find "$one" -name '*.conflict-*' | grep -q . && fail "a conflict that is none: $(ls "$one")"
same_trees "changes after the clock was put back"

# ---- and forward again
echo 'edited again' >"$one/before1.txt"
ends 0 drive sync
[ "$(online before1.txt)" = 'edited again' ] || fail "an edit after the clock was set forward"
ends 0 drive sync --json
holds '.accounts[0].drives[0] | .downloaded == 0 and .uploaded == 0 and .owed_count == 0'
same_trees "at the end"
exit $((failed > 0))
