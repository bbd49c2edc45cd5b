/* archive_id.c - ids of archive directories, and where an account's archive is (archive_id.h). */
#include "engine/accounts/archive_id.h"

#include "base/check.h"
#include "base/encode.h"
#include "engine/engine.h"
#include "ledger/rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { RANDOM_BYTES = 16, FILE_BYTES_MAX = 256, PATH_BYTES = 4096 + 300 };

static tide_status path_of(const char *dir, const char *name, char path_out[PATH_BYTES],
                           tide_error *err)
{
    return (size_t)snprintf(path_out, PATH_BYTES, "%s/%s", dir, name) < PATH_BYTES
               ? TIDE_OK
               : tide_error_set(err, TIDE_INVALID, "the path of an archive is too long");
}

static bool is_good(tide_text id)
{
    return id.bytes == 2 * RANDOM_BYTES && strspn(id.data, "0123456789abcdef") == id.bytes;
}

tide_status tide_archive_id_read(tide_world *world, const char *dir,
                                 char id_out[TIDE_ARCHIVE_ID_BYTES], tide_error *err)
{
    char path[PATH_BYTES];
    TIDE_TRY(path_of(dir, TIDE_ARCHIVE_ID_FILE, path, err));
    tide_auto_buf text = tide_buf_heap(FILE_BYTES_MAX);
    tide_status rc = tide_file_read(world, path, FILE_BYTES_MAX, &text, err);
    char *end = rc == TIDE_OK && text.bytes > 0 ? strpbrk(text.data, "\r\n") : NULL;
    if (end != NULL) {
        text.bytes = (size_t)(end - text.data);
        *end = '\0';
    }
    if (rc == TIDE_OK && !is_good(tide_buf_text(&text)))
        rc = tide_error_set(err, TIDE_CORRUPT,
                            "%.230s does not hold the id of an archive; restore it from a backup, "
                            "or write the id into it that `tidemark account list --json` shows",
                            path);
    if (rc == TIDE_OK)
        memcpy(id_out, text.data, TIDE_ARCHIVE_ID_BYTES);
    return rc;
}

tide_status tide_archive_id_copy(tide_world *world, const char *from_dir, const char *to_dir,
                                 tide_error *err)
{
    char id[TIDE_ARCHIVE_ID_BYTES];
    char there[TIDE_ARCHIVE_ID_BYTES];
    char line[TIDE_ARCHIVE_ID_BYTES + 1];
    char path[PATH_BYTES];
    tide_error why = {TIDE_OK, 0, ""};
    tide_status rc = tide_archive_id_read(world, from_dir, id, &why);
    if (rc == TIDE_NOT_FOUND)
        return TIDE_OK; /* an older version, without ids, made it */
    if (rc != TIDE_OK && err != NULL)
        *err = why;
    if (rc == TIDE_OK)
        rc = path_of(to_dir, TIDE_ARCHIVE_ID_FILE, path, err);
    if (rc != TIDE_OK)
        return rc;
    if (tide_archive_id_read(world, to_dir, there, NULL) == TIDE_OK && strcmp(id, there) == 0)
        return TIDE_OK;
    (void)snprintf(line, sizeof line, "%s\n", id);
    return tide_file_replace(world, path, tide_text_of(line), 0600, err);
}

/* Writes the id under a temporary name and renames it, which fails where an id exists: of two
 * processes that make one at the same time, the second reads the id of the first (AID1). */
static tide_status make(tide_world *world, const char *dir, tide_error *err)
{
    uint8_t random[RANDOM_BYTES];
    char id[TIDE_ARCHIVE_ID_BYTES];
    char name[64];
    char line[TIDE_ARCHIVE_ID_BYTES + 1];
    char path[PATH_BYTES];
    char beside[PATH_BYTES];
    tide_world_random(world, random, sizeof random);
    tide_hex(random, sizeof random, id);
    (void)snprintf(name, sizeof name, "." TIDE_ARCHIVE_ID_FILE ".%.16s", id);
    (void)snprintf(line, sizeof line, "%s\n", id);
    tide_status rc = path_of(dir, TIDE_ARCHIVE_ID_FILE, path, err);
    if (rc == TIDE_OK)
        rc = path_of(dir, name, beside, err);
    if (rc == TIDE_OK)
        rc = tide_file_replace(world, beside, tide_text_of(line), 0600, err);
    if (rc == TIDE_OK)
        rc = tide_file_rename(world, beside, path, err);
    if (rc == TIDE_EXISTS) {
        TIDE_SEEN("archive id: another process was first");
        rc = tide_file_remove(world, beside, err);
    }
    return rc;
}

tide_status tide_archive_id_make(tide_world *world, const char *dir,
                                 char id_out[TIDE_ARCHIVE_ID_BYTES], tide_error *err)
{
    tide_status rc = tide_archive_id_read(world, dir, id_out, err);
    if (rc != TIDE_NOT_FOUND)
        return rc;
    TIDE_TRY(tide_dir_make(world, dir, err));
    TIDE_TRY(make(world, dir, err));
    return tide_archive_id_read(world, dir, id_out, err);
}

bool tide_archive_id_is(tide_world *world, const char *dir, const char *id)
{
    char here[TIDE_ARCHIVE_ID_BYTES];
    return tide_archive_id_read(world, dir, here, NULL) == TIDE_OK && strcmp(here, id) == 0;
}

tide_status tide_transaction_place(tide_transaction *transaction, uint32_t account,
                                   const char *archive, const char *secret, tide_error *err)
{
    TIDE_TRY(tide_ledger_account_place(transaction->tx, account, archive, secret, err));
    return tide_tx_hint(transaction->tx, TIDE_HINT_CONTROL, account, err);
}

void tide_secret_place(const char *where, char place_out[TIDE_SECRET_PLACE_BYTES])
{
    char host[65] = "?";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(place_out, TIDE_SECRET_PLACE_BYTES, "%s: %.100s", host, where);
}

/* ---- where an account's archive is ---- */

struct place {
    const struct tide_placing *placing;
    char known[65];                   /* the archive that the ledger names; "" */
    char here[TIDE_ARCHIVE_ID_BYTES]; /* the one in our directory */
    bool shared;
};

static tide_status place_read(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct place *place = arg;
    const tide_rows rows = tide_transaction_rows(transaction);
    place->shared = tide_ledger_shared(transaction->engine->ledger);
    tide_status rc =
        tide_rows_copy(rows, "the place of an archive", place->known, sizeof place->known, err,
                       "SELECT archive FROM account WHERE id = ?1", place->placing->account);
    if (rc == TIDE_NOT_FOUND)
        (void)tide_error_set(err, rc, "there is no account %.200s", place->placing->name);
    return rc;
}

static tide_status place_write(tide_transaction *transaction, void *arg, tide_error *err)
{
    const struct place *place = arg;
    struct place now = *place;
    const tide_status rc = place_read(transaction, &now, err);
    if (rc == TIDE_OK && now.shared && strcmp(now.known, place->known) != 0)
        return tide_error_set(err, TIDE_BUSY,
                              "another process just set the archive of %.200s; try again",
                              place->placing->name);
    char secret[TIDE_SECRET_PLACE_BYTES];
    tide_secret_place(place->placing->secret, secret);
    return rc == TIDE_OK ? tide_transaction_place(transaction, place->placing->account, place->here,
                                                  secret, err)
                         : rc;
}

tide_status tide_archive_place(tide_engine *engine, tide_world *world,
                               const struct tide_placing *placing, bool *shared_out,
                               tide_error *err)
{
    struct place place = {.placing = placing};
    tide_status rc = tide_transact(engine, place_read, &place, err);
    if (rc == TIDE_OK && place.shared && place.known[0] != '\0') {
        rc = tide_archive_id_read(world, placing->dir, place.here, err);
        if (rc == TIDE_NOT_FOUND || (rc == TIDE_OK && strcmp(place.here, place.known) != 0))
            return tide_error_set(err, TIDE_INVALID,
                                  "the archive of %.100s is not here: %.140s is not the archive "
                                  "with the id %s. Run this where that archive is, or move it here",
                                  placing->name, placing->dir, place.known);
    } else if (rc == TIDE_OK) {
        rc = tide_archive_id_make(world, placing->dir, place.here, err);
    }
    if (rc != TIDE_OK)
        return rc;
    *shared_out = place.shared;
    if (strcmp(place.here, place.known) == 0 && !placing->added)
        return TIDE_OK;
    return tide_transact(engine, place_write, &place, err);
}
