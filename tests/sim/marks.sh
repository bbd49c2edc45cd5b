#!/bin/sh
# marks.sh SOURCES: every TIDE_SEEN mark, as C strings, for the campaign.
grep -rhoE 'TIDE_SEEN\("[^"]*"\)' "$1" | sed -E 's/TIDE_SEEN\(("[^"]*")\)/    \1,/' | sort -u
