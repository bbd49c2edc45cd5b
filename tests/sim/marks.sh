#!/bin/sh
# marks.sh SOURCES: every TIDE_SEEN mark of the engine, as C strings, for the campaign.
# The systems on it have tests of their own.
cd "$1" || exit 1
grep -rhoE 'TIDE_SEEN\("[^"]*"\)' base core db engine world | sed -E 's/TIDE_SEEN\(("[^"]*")\)/    \1,/' | sort -u
