/* home.h - one small home for the fuzz target of the API: a ledger with every kind of row, an archive,
 * keys of every scope, and `tidemark serve` on it.
 *
 * The engine runs, so a POST may start jobs.  No call reaches the network: the world answers every one
 * of them with a small image. */
#ifndef TIDE_FUZZ_API_HOME_H
#define TIDE_FUZZ_API_HOME_H

#include "cli/serve/serve.h"

/* Accounts: one with mail; one that the ledger knows without an archive; and one that it does not know
 * any more, whose archive is still there. */
#define HOME_MAIL    "me@example.com"
#define HOME_EMPTY   "halted@example.com"
#define HOME_REMOVED "removed@example.com"
/* The message that an input brings; the home has "plain", "hostile", "binary" and the
 * draft "begun" as well. */
#define HOME_GIVEN "given"
/* A word of the stored mail that is in no other row: whoever may not read mail never gets it. */
#define HOME_MAIL_WORD "xylophonequartz"

enum { HOME_SECRETS = 8 };

/* Opens it as it was made: what earlier inputs changed is undone.  Aborts if that fails. */
struct cli_serve *home_open(void);
/* The key of a scope; NULL for TIDE_HTTPD_NONE. */
const char *home_key(tide_httpd_scope scope);
/* Texts that no answer may contain; ends with NULL. */
const char *const *home_secrets(void);
/* Stores a message of HOME_MAIL. */
void home_mail_put(tide_text raw);
/* Changes when a file of the home has another name, or a row of its databases was written. */
uint64_t home_version(void);

#endif
