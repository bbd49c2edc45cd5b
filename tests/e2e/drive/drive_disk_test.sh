#!/usr/bin/env bash
# Disks that are full, not mounted or not readable: each is said clearly, nothing is deleted on the other side, the rest goes
# on, and all of it comes when the disk is back.  In a mount namespace of its own; skipped where there are none.
if [ -z "${DRIVE_APART:-}" ]; then
    apart=(unshare --mount)
    [ "$(id -u)" -eq 0 ] || apart+=(--user --map-root-user)
    "${apart[@]}" mount -t tmpfs none /mnt 2>/dev/null || { echo "skipped: this machine allows no mounts" && exit 77; }
    DRIVE_APART=1 exec "${apart[@]}" "$0" "$@"
fi
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
serve --quota off --drive ada@example.com=0 --token tok=ada@example.com
trap 'umount -l "$one/sub" "$one" 2>/dev/null; leave' EXIT
disk() { mkdir -p "$one" && mount -t tmpfs -o "$1" none "$one" || fail "mount"; }

# ---- a full disk: 64 MiB are kept free; a file that does not fit is not begun, others come
disk size=80m
join
put_made large.bin 20000000
put small.txt small
ends 3 drive sync
says '1 owed'
ends 3 drive status
says 'owed: large.bin: large.bin needs 19.1 MiB; the disk has'
says 'free some space'
here small.txt small || fail "a small file did not come"
[ ! -e "$one/large.bin" ] || fail "a file came that does not fit"
echo up >"$one/up.txt"
ends 3 drive sync
[ "$(online up.txt)" = up ] || fail "a full disk keeps files from going online: $(cat "$dir/out")"
mount -o remount,size=200m "$one"
ends 0 drive sync
same_trees "with room again"

# ---- a disk that can take no more files at all
used=$(df --output=iused "$one" | tail -n 1)
mount -o "remount,nr_inodes=$((used + 2))" "$one" || fail "remount"
for i in $(seq 6); do put "more$i.txt" "more $i"; done
ends 3 drive sync
ends 3 drive status
says 'No space left on device'
[ "$(find "$one" -name '.tidemark-*' -size 0 -name '*.txt' | wc -l)" = 0 ] || fail "empty files: $(ls -la "$one")"
for i in $(seq 6); do
    [ ! -e "$one/more$i.txt" ] || here "more$i.txt" "more $i" || fail "half a file: $(ls -la "$one")"
done
[ "$(tree | grep -c ' more')" = 6 ] || fail "a full disk removed files online"
mount -o remount,nr_inodes=100000 "$one"
ends 0 drive sync
same_trees "with room for files again"

# ---- the disk is not mounted: an empty folder is no deletion
before=$(tree)
mount --move "$one" /mnt || { mkdir "$dir/parked" && mount --bind "$one" "$dir/parked" && umount "$one"; }
[ -z "$(ls -A "$one")" ] || fail "it is still mounted"
ends 1 drive sync
says 'its marker .tidemark-root is missing'
complains 'Mount it'
complains 'Nothing was deleted'
ends 3 drive status
says 'stopped: '
[ -z "$(ls -A "$one")" ] || fail "files were put beneath the mount point: $(ls -A "$one")"
[ "$before" = "$(tree)" ] || fail "files online changed"
mount --move /mnt "$one" 2>/dev/null || mount --bind "$dir/parked" "$one" || fail "mount again"
ends 0 drive sync
[ "$before" = "$(tree)" ] || fail "files online changed"

# ---- another disk over a folder, and a folder of another disk that is gone
mkdir "$one/sub"
for i in 1 2 3; do echo "$i" >"$one/sub/s$i.txt"; done
ends 0 drive sync
before=$(tree)
mount -t tmpfs none "$one/sub"
ends 3 drive sync
says '1 here that cannot be read'
[ "$before" = "$(tree)" ] || fail "a disk over a folder deleted files online"
ends 3 drive status
says 'left alone: sub: is on another disk'
umount "$one/sub"
mv "$one/sub" "$one/was"
mkdir "$one/sub"
mount --bind "$one/was" "$one/sub" # the same file system: only the folder's number tells
ends 0 drive ignore add One '/was/'
ends 0 drive sync
[ "$(tree | grep -c ' sub/s')" = 3 ] || fail "the folder of a mount is not synced: $(tree)"
before=$(tree)
umount "$one/sub"
ends 3 drive sync
ends 3 drive status
says 'left alone: sub: is empty, and another folder than the one that was synced: mount its disk, or remove it'
ends 3 drive sync # and it stays so
[ "$(tree | grep -c ' sub/s')" = 3 ] || fail "a mount that is gone deleted files online: $(tree)"
mount --bind "$one/was" "$one/sub"
ends 0 drive sync
[ "$(tree | grep -c ' sub/s')" = 3 ] || fail "after it came back: $(tree)"
umount "$one/sub"

# ---- a folder and a file that cannot be read (root without the right to read everything)
ends 0 drive ignore remove One '/was/'
rmdir "$one/sub" && mv "$one/was" "$one/sub"
mkdir "$one/dark"
echo deep >"$one/dark/deep.txt"
echo secret >"$one/secret.txt"
echo hidden >"$one/hidden.txt"
ends 0 drive sync
before=$(tree)
mv "$one/hidden.txt" "$one/dark/" # it may have been moved where nobody can look
chmod 0 "$one/dark" "$one/secret.txt"
dark=(setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search)
if "${dark[@]}" cat "$one/secret.txt" >/dev/null 2>&1; then
    echo "skipped: a folder that cannot be read (this user reads everything)"
else
    echo beside >"$one/beside.txt"
    "${dark[@]}" "$tidemark" --home "$dir/home" drive sync >"$dir/out" 2>"$dir/err"
    code=$?
    [ "$code" -eq 3 ] || fail "a folder that cannot be read: ended with $code: $(cat "$dir/out" "$dir/err")"
    "${dark[@]}" "$tidemark" --home "$dir/home" drive status >"$dir/out" 2>"$dir/err"
    says 'left alone: dark: cannot be read'
    says 'left alone: secret.txt: cannot be read'
    says 'deletions: 1 missing here and kept online'
    [ "$(online hidden.txt)" = hidden ] || fail "a file that was moved to a folder that cannot be read was deleted online"
    [ "$(online beside.txt)" = beside ] || fail "another file did not go online"
    [ "$(online dark/deep.txt)" = deep ] || fail "a file in a folder that cannot be read was deleted online"
    [ "$(online secret.txt)" = secret ] || fail "a file that cannot be read was deleted online"
fi
chmod 755 "$one/dark" && chmod 644 "$one/secret.txt"
ends 0 drive sync
same_trees "at the end"
exit $((failed > 0))
