#!/usr/bin/env bash
# drive_names_test.sh TIDEMARK CLOUD [FILES]: hostile names through a real sync.  The cloud gives FILES files (4,000) names
# that no service gives (cloudbox/graph/hostile.c); a few hundred hostile names are made here.  No byte is written outside of
# the folder, no name is changed on its way, and what is refused is shown.
source "$(dirname "$0")/drive_stage.sh" "$1" "$2"
files=${3:-4000}
t() { timeout 600 "$tidemark" --home "$dir/home" "$@"; }
serve --quota off --drive "ada@example.com=$files,size=1" --token tok=ada@example.com \
    --fault '{"method":"graph.*","fault":"hostile-names","rate":1}'
mkdir "$dir/around" "$dir/around/inner"
one=$dir/around/inner/One
mkdir "$one"
surroundings() { # all that is beside the folder: names, sizes, times
    (cd "$dir/around" && find . -path ./inner/One -prune -o \( -type d -printf 'd %p\n' -o -printf '%y %s %T@ %p\n' \) | LC_ALL=C sort)
    find /tmp -maxdepth 1 -newer "$dir/start" \( -name 'x0*' -o -name 'x[0-9a-f]*[0-9a-f]' \) 2>/dev/null
    find /etc -maxdepth 1 -newer "$dir/start" -name 'x*' 2>/dev/null
}
touch "$dir/around/precious" "$dir/start"
before=$(surroundings)
join

# ---- from online
t drive sync --quiet --json >"$dir/out" 2>"$dir/err"
code=$?
[ "$code" -le 3 ] || fail "ended with $code: $(head -c 2000 "$dir/out" "$dir/err")"
[ "$before" = "$(surroundings)" ] || fail "something outside of the folder changed: $(diff <(echo "$before") <(surroundings))"
[ -s "$one/.tidemark-root" ] || fail "the marker is gone"
t drive status --json >"$dir/status"
python3 - "$one" "$dir/status" "$files" "$origin" <<'PY' || fail "names from online"
import json, os, sys, urllib.request
root, status, files, origin = os.fsencode(sys.argv[1]), json.load(open(sys.argv[2])), int(sys.argv[3]), sys.argv[4]
drive = status["drives"][0]

# What the cloud says, item by item.
items, link = {}, f"{origin}/v1.0/me/drive/root/delta?$top=1000"
while link:
    page = json.load(urllib.request.urlopen(urllib.request.Request(link, headers={"Authorization": "Bearer tok"})))
    for item in page["value"]:
        items[item["id"]] = item
    link = page.get("@odata.nextLink")
said = sum("file" in item for item in items.values())
assert said == files, f"{said} files, not {files}"

def path_of(item):
    parts = []
    while "root" not in item:
        parts.append(item["name"])
        item = items[item["parentReference"]["id"]]
    return parts[::-1]

def may_be(name):
    raw = name.encode()
    ours = raw.lower().startswith(b".tidemark-")
    return raw not in (b"", b".", b"..") and b"/" not in raw and len(raw) <= 255 and not ours

allowed, refused = set(), 0
for item in items.values():
    if "root" in item:
        continue
    parts = path_of(item)
    if all(map(may_be, parts)):
        allowed.add(b"/".join(part.encode() for part in parts))
    else:
        refused += 1

here = set()
for folder, folders, names in os.walk(root):
    if b".tidemark-trash" in folders:
        folders.remove(b".tidemark-trash")
    for name in folders + names:
        if not name.startswith(b".tidemark-"):
            here.add(os.path.relpath(os.path.join(folder, name), root))
mangled = [path for path in here if path not in allowed]
assert not mangled, f"names that nobody gave: {mangled[:5]}"

missing = [path for path in allowed if path not in here]
assert not missing, f"{len(missing)} names did not come, such as {missing[:5]}"
assert refused > files * 3 // 4, f"{refused} of {files} are refused"
listed = drive["skipped_online"]
assert listed > 0 and all(one["reason"] for one in drive["skipped"]), "the refused are not shown"
reasons = {one["reason"] for one in drive["skipped"]}
for word in ("slash", "another folder", "too long", "belongs to Tidemark"):
    assert any(word in reason for reason in reasons), f"no reason with {word}: {reasons}"
print(f"{said} names: {len(here)} came, {refused} refused, {listed} of them shown by themselves")
PY
# A second sync finds the same, transfers nothing and asks little.
moved=$(drive_stat bytes)
asked=$(calls graph.drive.item.get)
t drive sync --quiet --json >"$dir/out" 2>"$dir/err"
[ "$(drive_stat bytes)" = "$moved" ] || fail "a second sync fetched again"
[ $(($(calls graph.drive.item.get) - asked)) -le 500 ] || fail "a second sync asked for $(($(calls graph.drive.item.get) - asked)) items"
[ "$(calls graph.drive.item.delete)" = 0 ] && [ "$(calls graph.drive.item.update)" = 0 ] || fail "a sync changed names online"
[ "$(calls graph.upload.put)" = 0 ] || fail "a sync sent what it had fetched"

# ---- from here: names that no service takes, links that lead outside, very deep folders
no_faults
ends 0 drive remove One
rm -rf "$one"
tree | sed -n 's/^[a-z]* [0-9]* [^ ]* \([^/]*\)$/\1/p' | while read -r name; do other delete "\"path\":\"$name\""; done
mkdir "$one"
python3 - "$one" "$dir/good" <<'PY'
import os, random, sys
root, good = os.fsencode(sys.argv[1]), []
os.chdir(root)
rng = random.Random(5)
def make(name, ok):
    try:
        with open(name, "xb") as file:
            file.write(name[:40])
        if ok:
            good.append(name)
    except OSError as error:
        assert error.errno in (17, 36), (name, error)
for i in range(100):
    n = b"%03d" % i
    make(b"fine " + n + "ä#%+&;'".encode(), True)
    make(bytes(rng.randrange(128, 256) for _ in range(6)) + n + b"\xff", False)    # not UTF-8
    make(b"line" + n + b"\nfeed", False)
    make(bytes([rng.randrange(1, 32)]) + b"control" + n, False)
    make(n + bytes([rng.choice(b'"*:<>?\\|')]) + b"x", False)
    make(b"space" + n + b" ", False)
    make(b"dot" + n + b".", False)
    make(b"~$" + n, False)
    make(b"x_vti_" + n, False)
    make(b"CON" if i == 0 else b"com%d" % (i % 10), False)
    make(b"l" * (252 - 3) + n, True)
for folder in (b"bad:folder", b"newline\nfolder", b"nul"):
    os.mkdir(folder)
    make(folder + b"/below.txt", False)
os.symlink("/etc", b"link to etc")
os.symlink("../precious", b"link to precious")
os.symlink("/", b"fine link")
os.mkfifo(b"pipe")
os.mkdir(b"deep")
os.chdir(b"deep")
for _ in range(60):                                                              # beyond what a path may have
    os.mkdir(b"d" * 100)
    os.chdir(b"d" * 100)
with open("bottom", "w"):
    pass
os.chdir(root)
with open(sys.argv[2], "wb") as file:
    file.write(b"\0".join(sorted(good)))
PY
ends 0 drive add "$one"
ends 0 drive sync
tree >"$dir/tree"
python3 - "$dir/tree" "$dir/good" <<'PY' || fail "names from here"
import sys
lines = open(sys.argv[1], "rb").read().split(b"\n")
online = {line.split(b" ", 3)[3] for line in lines if line.startswith(b"file ")}
good = set(open(sys.argv[2], "rb").read().split(b"\0"))
assert online == good, f"only online {sorted(online - good)[:5]}, missing {sorted(good - online)[:5]}"
PY
ends 0 drive status --json
holds '.drives[0].skipped_here >= 700'
holds '[.drives[0].skipped[] | select(.path | startswith("link"))] | length == 2 and all(.reason == "is a link")'
holds '[.drives[0].skipped[].reason] | any(test("400 characters"))'
[ "$(calls graph.drive.upload.create)" -le 210 ] || fail "refused names were sent: $(calls graph.drive.upload.create)"
count=$(find "$one" | wc -l)
ends 0 drive sync --json
holds '.accounts[0].drives[0] | .downloaded == 0 and .uploaded == 0'
[ "$count" = "$(find "$one" | wc -l)" ] || fail "files here changed"
[ "$before" = "$(surroundings)" ] || fail "something outside of the folder changed"
exit $((failed > 0))
