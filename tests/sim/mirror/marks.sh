#!/bin/sh
# marks.sh SOURCES: every TIDE_SEEN mark of the engine, as C strings, for the campaign.
# The systems on it have tests of their own; so have PostgreSQL and the fleet, which no
# simulated world has.
cd "$1" || exit 1
grep -rhoE --exclude-dir=postgres --exclude-dir=copy --exclude=members.c --exclude=archive_id.c \
    'TIDE_SEEN\("[^"]*"\)' base core db engine ledger settings world | sed -E 's/TIDE_SEEN\(("[^"]*")\)/    \1,/' | sort -u
