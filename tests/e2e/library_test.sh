#!/usr/bin/env bash
# library_test.sh SOURCE BUILD: installs libtidemark into a directory and checks it as a
# user does: headers, symbols, pkg-config, manual; then the examples, an old program and one
# from the future, compiled and run against it.  With TIDE_TEST_POSTGRES also on PostgreSQL.
set -euo pipefail
source=$(realpath "$1")
build=$(realpath "$2")
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
die() {
    echo "library: $*" >&2
    exit 1
}
cc=${CC:-cc}

meson install -C "$build" --no-rebuild --quiet --destdir "$dir/dest" >"$dir/install.log" 2>&1 ||
    { cat "$dir/install.log"; die "cannot install"; }
package=$(find "$dir/dest" -name tidemark.pc)
[ -n "$package" ] || die "no tidemark.pc"
libdir=$(dirname "$(dirname "$package")")
prefix=${dir}/dest$(sed -n 's/^prefix=//p' "$package")
includes=$prefix/include
export PKG_CONFIG_PATH=${package%/*}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
export LD_LIBRARY_PATH=$libdir${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
flags() { pkg-config --define-variable=prefix="$prefix" "$@" tidemark; }

# ---- headers: these and no others; each stands alone, in C and in C++
expected="tidemark.h tidemark/buf.h tidemark/http.h tidemark/status.h tidemark/text.h"
found=$(cd "$includes" && find . -type f | sed 's|^\./||' | sort | xargs)
[ "$found" = "$expected" ] || die "installed headers: $found"
for header in $expected; do
    echo "#include <$header>" >"$dir/alone.c"
    $cc -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only $(flags --cflags) "$dir/alone.c" ||
        die "$header does not stand alone"
    if command -v c++ >/dev/null; then
        c++ -std=c++17 -Wall -Wextra -Werror -fsyntax-only $(flags --cflags) -x c++ "$dir/alone.c" ||
            die "$header does not stand alone in C++"
    fi
done

# ---- documents: those that the program names, and what they lead to
for document in google-client.md mail/sign-in.md internals/mail.md; do
    [ -s "$prefix/share/doc/tidemark/$document" ] || die "no document $document"
done

# ---- symbols: exactly what the map lists, each with its version
library=$libdir/libtidemark.so.0
[ -e "$library" ] && [ -e "$libdir/libtidemark.so" ] && [ -e "$libdir/libtidemark.a" ] ||
    die "the library is not there"
readelf -d "$library" | grep -q 'SONAME.*\[libtidemark\.so\.0\]' || die "another soname"
nm -D --defined-only "$library" | awk '$2 != "A" {print $3}' | sort >"$dir/symbols"
awk '/^TIDEMARK_/ {version = $1} /^    tide_/ {sub(";", "", $1); print $1 "@@" version}' \
    "$source/src/libtidemark.map" | sort >"$dir/listed"
diff "$dir/listed" "$dir/symbols" || die "the library shows something else than the map lists"

# ---- pkg-config: what a program links, shared and static
[ "$(flags --modversion)" = "$(sed -n 's/^#define TIDEMARK_VERSION "\(.*\)".*/\1/p' "$includes/tidemark.h")" ] ||
    die "tidemark.pc and tidemark.h have different versions"
[ "$(flags --libs | xargs)" = "-L$libdir -ltidemark" ] || die "pkg-config: $(flags --libs)"

compile() { # compile NAME SOURCE [FLAGS...]
    local name=$1 from=$2
    shift 2
    $cc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -o "$dir/$name" "$from" "$@"
}
compile first "$source/examples/first.c" $(flags --cflags --libs)
(cd "$dir" && ./first >first.log) && grep -q 'heard {"say":"ahoy"}' "$dir/first.log" || die "first"
# The archive with shared libraries beneath it: what docs/library.md says.
compile first_static "$source/examples/first.c" $(flags --cflags) -L"$libdir" -l:libtidemark.a \
    $(pkg-config --libs $(flags --print-requires-private | cut -d ' ' -f 1)) \
    $(sed -n 's/^Libs.private: //p' "$package")
! readelf -d "$dir/first_static" | grep -q libtidemark || die "static and yet shared"
(cd "$dir" && rm -rf first-state && ./first_static | grep -q ahoy) || die "first, linked statically"

# ---- the examples
for name in orders channel days; do
    compile $name "$source/examples/$name.c" $(flags --cflags --libs) \
        $(pkg-config --cflags --libs sqlite3 libpq)
    "$source/examples/examples_test.sh" $name "$dir/$name" 2>"$dir/$name.log" ||
        { cat "$dir/$name.log"; die "$name"; }
done

# ---- an old program, and one from the future
compile old "$source/tests/abi/program_0.2.c" -L"$libdir" -ltidemark
! nm -D --undefined-only "$dir/old" | grep ' tide_' | grep -v '@TIDEMARK_0\.2$' ||
    die "an old program is bound to a newer version"
"$dir/old" "$dir/old-state" || die "an old program does not run"
cp -r "$includes" "$dir/newer-include"
sed -i '/^struct tide_spec {/,/^};/ s/uint64_t reserved\[4\];/uint64_t to_come; uint64_t reserved[3];/' \
    "$dir/newer-include/tidemark.h"
compile newer "$source/tests/abi/program_newer.c" -I"$dir/newer-include" $(flags --libs)
"$dir/newer" "$dir/newer-state" 0 >"$dir/newer.log" || die "zero is not the default"
! "$dir/newer" "$dir/newer-state" 7 >"$dir/newer.log" || die "an unknown field was ignored"
grep -q '^invalid: struct tide_spec has reserved fields' "$dir/newer.log" || die "$(cat "$dir/newer.log")"

# ---- the manual: every function's page can be read
man3=$(find "$dir/dest" -type d -name man3)
while read -r name; do
    page=$man3/${name%%@*}.3
    [ -f "$page" ] || die "no page for $name"
    target=$(sed -n 's/^\.so //p' "$page")
    [ -z "$target" ] || [ -f "$man3/../$target" ] || die "$page leads nowhere"
done <"$dir/symbols"
echo "library: $(wc -l <"$dir/symbols") functions"
