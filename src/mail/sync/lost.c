#include "mail/sync/lost.h"

#include "base/check.h"
#include "db/rows.h"
#include "mail/archive/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHAT "what is lost"

enum { PAGE = 500, IDS_MAX = 50000000, YEARS_MAX = 4096 };

typedef char lost_id[TIDE_GMAIL_ID_BYTES_MAX + 1];

/* ---- rows ---- */

tide_status tide_mail_loss_put(tide_rows db, uint32_t account, const char *name, uint64_t messages,
                               uint64_t now_ms, tide_error *err)
{
    return tide_rows_do(
        db, WHAT, err,
        "INSERT INTO mail_loss(account, name, messages, at_ms) VALUES(?1, ?2, ?3, ?4)"
        " ON CONFLICT(account, name) DO UPDATE SET messages = CASE"
        " WHEN mail_loss.messages > excluded.messages THEN mail_loss.messages"
        " ELSE excluded.messages END, at_ms = excluded.at_ms",
        account, name, messages, now_ms);
}

/* ---- what is known ---- */

struct year {
    int32_t year;
    bool doubted;    /* a shard of it differs, or differed, from the ledger's record */
    bool now_missed; /* a shard of it is missing now: the next sync fetches it */
    uint64_t before; /* messages that its shards had before one of them was lost */
    uint64_t now;    /* messages that it has now */
    uint64_t named;  /* missing messages whose ids are known */
    char name[32];   /* a shard that was lost */
};

struct known {
    const struct tide_lost_ask *ask;
    struct year *years;
    size_t years_count, years_capacity;
    lost_id *ids; /* messages that exist only in the archive; later the missing ones */
    int32_t *of;  /* their years */
    size_t ids_count, ids_capacity, of_capacity;
    bool full;
    tide_lost_visit *visit;
    void *arg;
    struct tide_mail_lost lost;
};

static struct year *year_of(struct known *known, int32_t number)
{
    for (size_t i = 0; i < known->years_count; i++)
        if (known->years[i].year == number)
            return &known->years[i];
    if (!TIDE_GROW_IN(known->ask->mem, known->years, known->years_capacity, known->years_count + 1,
                      YEARS_MAX)) {
        known->full = true;
        return NULL;
    }
    known->years[known->years_count] = (struct year){.year = number};
    return &known->years[known->years_count++];
}

static void id_add(struct known *known, const char *id, int32_t year)
{
    if (known->full || !TIDE_GROW_IN(known->ask->mem, known->ids, known->ids_capacity,
                                     known->ids_count + 1, IDS_MAX)) {
        known->full = true;
        return;
    }
    if (!TIDE_GROW_IN(known->ask->mem, known->of, known->of_capacity, known->ids_count + 1,
                      IDS_MAX)) {
        known->full = true;
        return;
    }
    known->of[known->ids_count] = year;
    (void)snprintf(known->ids[known->ids_count++], sizeof known->ids[0], "%s", id);
}

static int32_t year_number(const char *shard)
{
    return (int32_t)strtol(shard, NULL, 10);
}

static void doubted_shard(const struct tide_shard_state *seen, const char *why, tide_status broken,
                          void *arg)
{
    struct known *known = arg;
    struct year *year = year_of(known, year_number(seen->name));
    known->lost.shards++;
    if (year != NULL)
        year->doubted = year->now_missed = true;
    const struct tide_lost_one one = {.kind = TIDE_LOST_SHARD,
                                      .name = seen->name,
                                      .why = why,
                                      .broken = broken,
                                      .count = seen->messages};
    if (known->visit != NULL)
        known->visit(&one, known->arg);
}

static tide_status losses_read(struct known *known, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(known->ask->db, WHAT, &stmt, err,
                                   "SELECT name, messages FROM mail_loss WHERE account = ?1",
                                   known->ask->account);
    while (tide_rows_next(&stmt, &rc, err)) {
        char name[32];
        tide_rows_get_copy(&stmt, 0, name, sizeof name);
        struct year *year = year_of(known, year_number(name));
        if (year == NULL)
            break;
        year->doubted = true;
        if (tide_rows_get_u64(&stmt, 1) > year->before)
            year->before = tide_rows_get_u64(&stmt, 1);
        memcpy(year->name, name, sizeof name);
    }
    return rc;
}

static void years_add(const struct tide_shard_state *shard, void *arg)
{
    struct known *known = arg;
    for (size_t i = 0; i < known->years_count; i++)
        if (known->years[i].year == year_number(shard->name))
            known->years[i].now += shard->messages;
}

static tide_status years_count(struct known *known, tide_error *err)
{
    tide_archive *archive = known->ask->archive;
    if (archive == NULL)
        return TIDE_OK;
    const tide_status rc = tide_archive_states(archive, years_add, known, err);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* the directory was removed meanwhile */
}

static bool wanted(const struct known *known, int32_t number)
{
    if (known->ask->thorough)
        return true;
    for (size_t i = 0; i < known->years_count; i++)
        if (known->years[i].year == number && known->years[i].doubted)
            return true;
    return false;
}

/* Messages that were gone from the server when their shard was last recorded. */
static tide_status gone_read(struct known *known, tide_error *err)
{
    tide_auto_rows stmt;
    tide_status rc = tide_rows_ask(
        known->ask->db, WHAT, &stmt, err,
        "SELECT gmail_id, shard FROM mail_only WHERE account = ?1 AND accepted_ms = 0",
        known->ask->account);
    while (tide_rows_next(&stmt, &rc, err)) {
        lost_id id;
        char shard[32];
        tide_rows_get_copy(&stmt, 0, id, sizeof id);
        tide_rows_get_copy(&stmt, 1, shard, sizeof shard);
        if (wanted(known, year_number(shard)))
            id_add(known, id, year_number(shard));
    }
    return rc;
}

/* Messages that the archiver deleted for good, except restored ones and those in the table
 * above. */
static tide_status removed_read(struct known *known, tide_error *err)
{
    tide_rows_stmt stmt;
    bool has = false;
    tide_status rc = tide_rows_has(known->ask->db, "mail_removal", WHAT, &has, err);
    if (rc != TIDE_OK || !has)
        return rc;
    rc = tide_rows_ask(
        known->ask->db, WHAT, &stmt, err,
        "SELECT mail_removal.gmail_id, mail_removal.internal_ms FROM mail_removal"
        " JOIN mail_manifest ON mail_manifest.id = manifest"
        " WHERE account = ?1 AND mode = 2 AND state = 2 AND NOT EXISTS (SELECT 1 FROM mail_only"
        "  WHERE mail_only.account = ?1 AND mail_only.gmail_id = mail_removal.gmail_id)",
        known->ask->account);
    while (tide_rows_next(&stmt, &rc, err)) {
        lost_id id;
        tide_rows_get_copy(&stmt, 0, id, sizeof id);
        const int32_t year = tide_shard_year(tide_rows_get_i64(&stmt, 1));
        if (wanted(known, year))
            id_add(known, id, year);
    }
    tide_rows_end(&stmt);
    return rc;
}

/* ---- missing messages ---- */

/* Keeps only the ids that no shard has, at the front. */
static tide_status keep_absent(struct known *known, tide_error *err)
{
    size_t kept = 0;
    tide_status rc = TIDE_OK;
    for (size_t from = 0; rc == TIDE_OK && from < known->ids_count; from += PAGE) {
        tide_text texts[PAGE];
        bool absent[PAGE];
        const size_t some = known->ids_count - from < PAGE ? known->ids_count - from : PAGE;
        for (size_t i = 0; i < some; i++) {
            texts[i] = tide_text_of(known->ids[from + i]);
            absent[i] = true;
        }
        if (known->ask->archive != NULL)
            rc = tide_archive_absent(known->ask->archive, texts, some, absent, err);
        for (size_t i = 0; rc == TIDE_OK && i < some; i++) {
            if (!absent[i])
                continue;
            memmove(known->ids[kept], known->ids[from + i], sizeof known->ids[0]);
            known->of[kept++] = known->of[from + i];
        }
    }
    known->ids_count = kept;
    return rc;
}

static void tell(struct known *known)
{
    for (size_t i = 0; i < known->ids_count; i++) {
        const struct tide_lost_one one = {
            .kind = TIDE_LOST_MESSAGE, .name = known->ids[i], .why = "", .count = 1};
        struct year *year = year_of(known, known->of[i]);
        known->lost.messages++;
        if (year != NULL)
            year->named++;
        if (known->visit != NULL)
            known->visit(&one, known->arg);
    }
    for (size_t i = 0; i < known->years_count; i++) {
        const struct year *year = &known->years[i];
        if (year->now_missed || year->before <= year->now + year->named)
            continue; /* reported as a shard, or nothing is missing */
        const struct tide_lost_one one = {.kind = TIDE_LOST_OTHERS,
                                          .name = year->name,
                                          .why = "",
                                          .count = year->before - year->now - year->named};
        known->lost.others += one.count;
        if (known->visit != NULL)
            known->visit(&one, known->arg);
    }
}

static void known_done(struct known *known)
{
    tide_mem *mem = known->ask->mem;
    tide_mem_free(mem, known->years, known->years_capacity * sizeof *known->years);
    tide_mem_free(mem, known->ids, known->ids_capacity * sizeof *known->ids);
    tide_mem_free(mem, known->of, known->of_capacity * sizeof *known->of);
}

static tide_status known_read(struct known *known, tide_error *err)
{
    const struct tide_lost_ask *ask = known->ask;
    bool has = false;
    TIDE_TRY(tide_mail_shards_doubted(ask->db, ask->archive, ask->account, ask->mem, doubted_shard,
                                      known, err));
    TIDE_TRY(tide_rows_has(ask->db, "mail_loss", WHAT, &has, err));
    if (has)
        TIDE_TRY(losses_read(known, err));
    TIDE_TRY(years_count(known, err));
    if (has)
        TIDE_TRY(gone_read(known, err));
    if (has)
        TIDE_TRY(removed_read(known, err));
    if (known->full)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the list of lost messages");
    return keep_absent(known, err);
}

tide_status tide_mail_lost(const struct tide_lost_ask *ask, tide_lost_visit *visit, void *arg,
                           struct tide_mail_lost *lost_out, tide_error *err)
{
    struct known known = {.ask = ask, .visit = visit, .arg = arg};
    const tide_status rc = known_read(&known, err);
    if (rc == TIDE_OK) {
        tell(&known);
        *lost_out = known.lost;
    }
    known_done(&known);
    return rc;
}

/* ---- settling and accepting ---- */

static tide_status accept_id(tide_rows db, uint32_t account, const char *id, int32_t year,
                             uint64_t now_ms, tide_error *err)
{
    char shard[32];
    (void)snprintf(shard, sizeof shard, "%04d", year);
    return tide_rows_do(
        db, WHAT, err,
        "INSERT INTO mail_only(account, gmail_id, shard, accepted_ms) VALUES(?1, ?2, ?3, ?4)"
        " ON CONFLICT(account, gmail_id) DO UPDATE SET accepted_ms = excluded.accepted_ms",
        account, id, shard, now_ms);
}

tide_status tide_mail_lost_accept(const struct tide_lost_ask *ask, uint64_t now_ms, tide_error *err)
{
    struct known known = {.ask = ask};
    tide_status rc = known_read(&known, err);
    for (size_t i = 0; rc == TIDE_OK && i < known.ids_count; i++)
        rc = accept_id(ask->db, ask->account, known.ids[i], known.of[i], now_ms, err);
    if (rc == TIDE_OK)
        rc = tide_rows_do(ask->db, WHAT, err, "DELETE FROM mail_loss WHERE account = ?1",
                          ask->account);
    known_done(&known);
    return rc;
}

tide_status tide_mail_lost_settle(const struct tide_lost_ask *ask, tide_error *err)
{
    struct known known = {.ask = ask};
    tide_status rc = losses_read(&known, err);
    const bool none = known.years_count == 0;
    known_done(&known);
    if (rc != TIDE_OK || none)
        return rc;
    known = (struct known){.ask = ask};
    rc = known_read(&known, err);
    if (rc == TIDE_OK)
        tell(&known);
    for (size_t i = 0; rc == TIDE_OK && i < known.years_count; i++) {
        const struct year *year = &known.years[i];
        char pattern[16];
        if (year->now_missed || year->before > year->now || year->named > 0)
            continue;
        (void)snprintf(pattern, sizeof pattern, "%04d%%", year->year);
        rc = tide_rows_do(ask->db, WHAT, err,
                          "DELETE FROM mail_loss WHERE account = ?1 AND name LIKE ?2", ask->account,
                          pattern);
    }
    known_done(&known);
    return rc;
}
