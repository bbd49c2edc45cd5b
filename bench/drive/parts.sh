# shellcheck shell=bash
# parts.sh: sourced by run.sh.  What is measured, one function a part.

files_in() { find "$1" -type f ! -name '.tidemark*' | wc -l; }

# Small files that are not in the drive yet, fifty to a folder.
make_small() { # FOLDER COUNT
    python3 - "$1" "$2" <<'PY'
import os, sys
folder, count = sys.argv[1], int(sys.argv[2])
for i in range(count):
    if i % 50 == 0:
        os.makedirs(f"{folder}/f{i // 50:05d}", exist_ok=True)
    with open(f"{folder}/f{i // 50:05d}/small {i:06d}.bin", "wb") as file:
        file.write(os.urandom(4096))
PY
}

# The ratio of ours to the faster of the others, as lines.
compare() { # NAME UNIT
    local client least='' value
    for client in rclone onedrive; do
        value=${took[$client]:-}
        [ -z "$value" ] || least=$(awk "BEGIN {print (\"$least\" == \"\" || $value < \"$least\" + 0) ? $value : \"$least\"}")
    done
    for client in rclone onedrive tidemark; do
        [ -z "${took[$client]:-}" ] || [ "$client" = tidemark ] || say "drive_$1_$client" "${took[$client]}" "$2"
    done
    [ -z "${took[tidemark]:-}" ] || say "drive_$1" "${took[tidemark]}" "$2" "$least" "the faster of rclone and onedrive"
}

# ---- small: many small files down, then up, without latency and with 30 ms ----

part_small() {
    local latency client
    for latency in 0 30; do
        local -A down=() up=()
        start_cloud --latency "$latency" --drives "$files,size=4096"
        for client in $clients; do
            # With latency the goal is a rate; one file at a time, as onedrive has it, would take most of an hour.
            [ "$latency" -eq 0 ] || [ "$client" = tidemark ] || [ -n "$hours" ] || continue
            small_of "$client" || say_skipped "drive_small_${latency}ms_$client" "it failed, or is slower than the other"
            limit=
        done
        stop_cloud
        local -A took=()
        for client in "${!down[@]}"; do took[$client]=${down[$client]}; done
        compare "small_down_${latency}ms" s
        rate_of "small_down_${latency}ms"
        took=()
        for client in "${!up[@]}"; do took[$client]=${up[$client]}; done
        compare "small_up_${latency}ms" s
        rate_of "small_up_${latency}ms"
    done
}
# The second of the others has as long as the first took: only the faster one counts.
limit_of() { # CLIENT RCLONE-TOOK
    limit=
    [ "$1" != onedrive ] || [ -n "$hours" ] || [ -z "$2" ] || limit=$(awk "BEGIN {print int($2 * 1.1) + 2}")
}
small_of() { # CLIENT
    "open_$1" || return 1
    limit_of "$1" "${down[rclone]:-}"
    "down_$1" || return 1
    [ "$(files_in "$1")" -eq "$files" ] || { echo "$1 left files out" >&2; return 1; }
    down[$1]=$wall
    make_small "$1/up" "$files"
    limit_of "$1" "${up[rclone]:-}"
    "up_$1" || return 1
    [ "$(tree "$1" | grep -c '^file .* up/')" -eq "$files" ] || { echo "$1 left files out" >&2; return 1; }
    up[$1]=$wall
    rm -rf "$1"
}
rate_of() { # NAME
    [ -z "${took[tidemark]:-}" ] || say "drive_$1_rate" "$(awk "BEGIN {print $files / ${took[tidemark]}}")" files/s
}

# ---- converged: a run that finds nothing to do, and a scan of everything ----

part_converged() {
    local client from=''
    start_cloud --latency 0 --drives "$converged,size=100"
    for client in tidemark rclone onedrive; do # the first one downloads, the others adopt a copy
        [[ " $clients " == *" $client "* ]] || continue
        [ "$client" = tidemark ] || [ -n "$hours" ] || continue
        converged_of "$client" || say_skipped "drive_converged_$client" "it failed"
    done
    stop_cloud
}
converged_of() { # CLIENT
    if [ -n "$from" ]; then
        cp -a "$from" "$1"
        rm -rf "$1"/.tidemark*
        "open_$1" && "adopt_$1" || return 1
    else
        "open_$1" && "down_$1" || return 1
        [ "$1" != rclone ] || adopt_rclone || return 1
        [ "$(files_in "$1")" -eq "$converged" ] || { echo "$1 left files out" >&2; return 1; }
        from=$1
    fi
    say "drive_first_$1" "$wall" s
    say "drive_first_${1}_rss" "$rss" MB
    # A file whose time is that of its hash may have been written since without a trace: ours reads those once more.
    "idle_$1" || return 1
    say "drive_second_$1" "$wall" s
    "idle_$1" || return 1
    say "drive_converged_$1" "$wall" s
    say "drive_converged_${1}_calls" "$calls" calls
    say "drive_converged_${1}_rss" "$rss" MB
    "full_$1" || return 1
    say "drive_rescan_$1" "$wall" s
    say "drive_rescan_${1}_rss" "$rss" MB
}

# ---- million: a first listing until the first file comes, and what the program takes then and while files come ----

million_wait=15 # seconds between two looks

part_million() {
    local sync began peak
    start_cloud --latency 0 --drives "$million,size=100"
    open_tidemark || { say_skipped drive_million "it failed"; stop_cloud; return; }
    "$build/src/cli/tidemark" --home "$dir/home" drive sync >million.log 2>&1 &
    sync=$!
    began=$(date +%s%N)
    until [ "$(downloads_of tidemark)" -gt 0 ]; do
        kill -0 "$sync" 2>/dev/null || { say_skipped drive_million "it failed"; cat million.log >&2; stop_cloud; return; }
        sleep 0.5
    done
    say drive_million_listed "$(awk "BEGIN {print ($(date +%s%N) - $began) / 1e9}")" s
    peak=$(peak_mb "$sync")
    say drive_million_rss "$peak" MB
    local point jobs most=0 second
    for point in 1 2 3; do
        for ((second = 0; second < million_wait; second++)); do
            sleep 1
            jobs=$(jobs_now)
            [ "$jobs" -le "$most" ] || most=$jobs
        done
        # Transfers need some memory more than a listing; then it stays as it is.
        if [ "$point" -eq 1 ]; then
            peak=$(peak_mb "$sync")
            say "drive_million_rss_${million_wait}s" "$peak" MB
        else
            say "drive_million_rss_$((point * million_wait))s" "$(peak_mb "$sync")" MB "$peak" "the first of these"
        fi
        say "drive_million_files_$((point * million_wait))s" "$(downloads_of tidemark)" files
    done
    say drive_million_jobs "$most" jobs # the tracker has no more than the ledger
    kill "$sync"
    wait "$sync" || true
    stop_cloud
}
downloads_of() { curl -sSf "$api/_cloud/stats" | jq ".users.\"$(user_of "$1")\".drive.downloads // 0"; }
jobs_now() {
    python3 -c 'import sqlite3, sys
print(sqlite3.connect("file:" + sys.argv[1] + "?mode=ro", uri=True).execute("SELECT count(*) FROM job WHERE state IN (0, 1)").fetchone()[0])' \
        "$dir/home/state.db"
}
peak_mb() { awk '/^VmHWM/ {print $2 / 1024}' "/proc/$1/status"; }

# ---- large: one large file against curl alone ----

part_large() {
    local item url
    start_cloud --latency 0 --drives 0
    curl -sSf "$api/_cloud/drive/put" \
        -d "{\"user\":\"$(user_of tidemark)\",\"path\":\"large.bin\",\"size\":$large,\"seed\":7}" >/dev/null
    item=$(curl -sSf -H 'Authorization: Bearer tidemark' "$api/v1.0/me/drive/root:/large.bin")
    url=$(jq -r '."@microsoft.graph.downloadUrl"' <<<"$item")
    measure tidemark "$(command -v curl)" -sSf -o "$dir/curl.bin" "$url"
    say drive_large_curl "$(rate_mb)" MB/s
    local alone
    alone=$(rate_mb)
    rm -f curl.bin
    open_tidemark && down_tidemark || { say_skipped drive_large "it failed"; stop_cloud; return; }
    [ "$(stat -c %s tidemark/large.bin)" -eq "$large" ]
    say drive_large_down "$(rate_mb)" MB/s "$alone" "curl alone"
    say drive_large_down_rss "$rss" MB
    head -c "$large" /dev/zero | openssl enc -aes-128-ctr -K 00 -iv 00 2>/dev/null >tidemark/up.bin
    up_tidemark || { say_skipped drive_large_up "it failed"; stop_cloud; return; }
    say drive_large_up "$(rate_mb)" MB/s
    stop_cloud
}
rate_mb() { awk "BEGIN {print $large / 1e6 / $wall}"; }

# ---- watch: from a file's last write until it is online ----

part_watch() {
    local i began watcher waits=()
    start_cloud --latency 30 --drives 100,size=4096
    open_tidemark && down_tidemark || { say_skipped drive_watch "it failed"; stop_cloud; return; }
    ours drive watch >watch.log 2>&1 &
    watcher=$!
    sleep 3
    for ((i = 0; i < changes; i++)); do
        echo "change $i" >"tidemark/watched $i.txt"
        began=$(date +%s%N)
        until tree tidemark | grep -q "^file .* watched $i.txt$"; do
            [ $(($(date +%s%N) - began)) -lt 20000000000 ] || break
            sleep 0.02
        done
        waits+=($((($(date +%s%N) - began) / 1000000)))
    done
    kill "$watcher"
    wait "$watcher" || true
    mapfile -t waits < <(printf '%s\n' "${waits[@]}" | sort -n)
    say drive_watch_p50 "$(awk "BEGIN {print ${waits[$((changes / 2))]} / 1000}")" s
    say drive_watch_p99 "$(awk "BEGIN {print ${waits[$((changes * 99 / 100))]} / 1000}")" s
    stop_cloud
}

# ---- overlap: both directions at once against the longer one alone, each limited to the same rate ----

part_overlap() {
    local alone_down alone_up size=$overlap
    start_cloud --latency 0 --drives 0
    overlap_run one 1 0 && alone_down=$wall && overlap_run two 0 1 && alone_up=$wall && overlap_run both 1 1 ||
        { say_skipped drive_overlap "it failed"; stop_cloud; return; }
    say drive_overlap_down "$alone_down" s
    say drive_overlap_up "$alone_up" s
    say drive_overlap "$wall" s "$(awk "BEGIN {print ($alone_down > $alone_up ? $alone_down : $alone_up)}")" "the longer alone"
    stop_cloud
}
overlap_run() { # NAME DOWN UP: ten files in each wanted direction
    local i
    open_tidemark_once
    for ((i = 0; i < 10; i++)); do
        [ "$2" -eq 0 ] || curl -sSf "$api/_cloud/drive/put" -d "{\"user\":\"$(user_of tidemark)\",
            \"path\":\"$1-down/$i.bin\",\"size\":$((size / 10)),\"seed\":$RANDOM$i}" >/dev/null
        [ "$3" -eq 0 ] || { mkdir -p "tidemark/$1-up" && head -c $((size / 10)) /dev/urandom >"tidemark/$1-up/$i.bin"; }
    done
    tidemark_run drive sync --set "bandwidth.down=$overlap_rate" --set "bandwidth.up=$overlap_rate"
}
open_tidemark_once() { [ -d home ] || open_tidemark; }
