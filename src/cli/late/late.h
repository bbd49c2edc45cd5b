/* late.h - libraries that are loaded by the first call of one of their functions.
 *
 * Most commands read what is on the disk, and take a few milliseconds.  Loading libcurl, libpq and
 * others with the fifty libraries that these need would take ten more before main() begins.  So the
 * program is not linked with them: `stubs.py` writes a stub for each function of theirs that it calls.
 * A stub jumps through a slot.  The slots of a library lead here until one of them is used.
 *
 * Callers see nothing of it, and the tests, libtidemark and builds with sanitizers, which are linked
 * as usual, do without. */
#ifndef TIDE_CLI_LATE_H
#define TIDE_CLI_LATE_H

#include <stddef.h>

/* A library, as the stubs describe it.  The order of the fields is known to stubs.py. */
struct late_library {
    const char *file;         /* its soname */
    const char *const *names; /* of the functions that are called */
    void **slots;             /* as many, in the same order */
    size_t count;
};

/* Called by stubs, in any thread: fills all slots.  A library that cannot be loaded ends the process
 * with status 127, as it would if it were missing when a program starts. */
void late_load(const struct late_library *library);

#endif
