#!/bin/sh
# marks.sh SOURCES: every TIDE_SEEN mark of the engine, as C strings, for the campaign.
# The systems on it have tests of their own; so have PostgreSQL and the fleet, which no
# simulated world has.
cd "$1" || exit 1
grep -rhoE --exclude='ledger_pg*' --exclude='fleet*' --exclude=ledger_fleet.c --exclude=archive_id.c \
    'TIDE_SEEN\("[^"]*"\)' base core db engine world | sed -E 's/TIDE_SEEN\(("[^"]*")\)/    \1,/' | sort -u
