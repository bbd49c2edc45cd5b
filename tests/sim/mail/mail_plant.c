/* mail_plant.c - bugs on purpose.
 *
 * The linker puts these functions between the mail system and what it calls
 * (--wrap in meson.build), so that no line of the product knows about them.  With
 * MAIL_PLANT_NONE they pass everything on. */
#include "mail_sim.h"
#include "support/wrap.h"

#include "cloud/gmail.h"
#include "mail/rows.h"
#include "tidemark_inside.h"

#include <string.h>

static enum mail_plant planted;
static uint64_t counter; /* guarded by the baton: one thread runs at a time */

void mail_plant_set(enum mail_plant plant)
{
    planted = plant;
    counter = 0;
}

static bool one_in(uint64_t of)
{
    return ++counter % of == 0;
}

WRAP(tide_status, tide_archive_sync, tide_archive *archive, uint64_t ticket,
     const tide_cancel *cancel, tide_error *err)
{
    if (planted == MAIL_PLANT_SYNC_LIES)
        return TIDE_OK;
    return __real_tide_archive_sync(archive, ticket, cancel, err);
}

WRAP(tide_status, tide_archive_put, tide_archive *archive, const struct tide_incoming *message,
     const tide_cancel *cancel, uint64_t *ticket_out, tide_error *err)
{
    if (planted == MAIL_PLANT_PUT_DROPS && one_in(40)) {
        *ticket_out = 1;
        return TIDE_OK;
    }
    if (planted == MAIL_PLANT_PUT_SPOILS && one_in(40)) {
        struct tide_incoming shorter = *message;
        if (shorter.take != NULL && shorter.take->bytes > 0)
            shorter.take->data[shorter.take->bytes / 2] ^= 1;
        else if (shorter.raw.bytes > 0)
            shorter.raw.bytes--;
        return __real_tide_archive_put(archive, &shorter, cancel, ticket_out, err);
    }
    return __real_tide_archive_put(archive, message, cancel, ticket_out, err);
}

/* Slices of a small mailbox fit into one page: it is that page which is lost. */
static void lose_page(tide_status rc, struct tide_gmail_page *page)
{
    if (rc != TIDE_OK || planted != MAIL_PLANT_PAGE_LOST || !one_in(9))
        return;
    page->next = TIDE_TEXT_NONE;
    page->ids = NULL;
}

WRAP(tide_status, tide_gmail_list, tide_gmail *gmail, tide_job *job, const char *query,
     tide_text token, struct tide_gmail_page *page_out, tide_error *err)
{
    const tide_status rc = __real_tide_gmail_list(gmail, job, query, token, page_out, err);
    lose_page(rc, page_out);
    return rc;
}

WRAP(tide_status, tide_gmail_list_some, tide_gmail *gmail, tide_job *job,
     const struct tide_gmail_listing *listing, tide_text token, struct tide_gmail_page *page_out,
     tide_error *err)
{
    const tide_status rc = __real_tide_gmail_list_some(gmail, job, listing, token, page_out, err);
    lose_page(rc, page_out);
    return rc;
}

WRAP(tide_status, tide_job_call_judged, tide_job *job, uint32_t units, uint32_t parts,
     uint32_t method, tide_judge_with *judge, void *judge_arg, const struct tide_request *request,
     struct tide_response *response, tide_error *err)
{
    if (planted == MAIL_PLANT_CHEAP_GET)
        units = (units + 1) / 2;
    return __real_tide_job_call_judged(job, units, parts, method, judge, judge_arg, request,
                                       response, err);
}

WRAP(tide_status, tide_archive_gone, tide_archive *archive, tide_text gmail_id, int64_t at_ms,
     uint64_t *ticket_out, tide_error *err)
{
    if (planted == MAIL_PLANT_GONE_LOST)
        return TIDE_OK;
    return __real_tide_archive_gone(archive, gmail_id, at_ms, ticket_out, err);
}

WRAP(tide_status, tide_archive_labels, tide_archive *archive,
     const struct tide_label_change *changes, size_t count, uint64_t *ticket_out, tide_error *err)
{
    if (planted == MAIL_PLANT_LABELS_LOST)
        return TIDE_OK;
    return __real_tide_archive_labels(archive, changes, count, ticket_out, err);
}

WRAP(tide_status, tide_archive_missing, tide_archive *archive, const tide_text *ids, size_t count,
     bool *missing_out, tide_error *err)
{
    if (planted != MAIL_PLANT_FETCH_AGAIN)
        return __real_tide_archive_missing(archive, ids, count, missing_out, err);
    for (size_t i = 0; i < count; i++)
        missing_out[i] = true;
    return TIDE_OK;
}

WRAP(tide_status, tide_transaction_cycle, tide_transaction *transaction, uint64_t stream,
     const char *start, const char *end, uint64_t *cycle_out, tide_error *err)
{
    if (planted == MAIL_PLANT_MARK_EARLY)
        end = "1772323200000"; /* when the world begins */
    return __real_tide_transaction_cycle(transaction, stream, start, end, cycle_out, err);
}

typedef void shard_visit(const struct tide_shard_state *shard, void *arg);
WRAP(tide_status, tide_mail_shards, tide_rows db, uint32_t account, shard_visit *visit, void *arg,
     tide_error *err)
{
    if (planted == MAIL_PLANT_PROOF_LOST)
        return TIDE_OK;
    return __real_tide_mail_shards(db, account, visit, arg, err);
}

WRAP(void, tide_job_item_failed, tide_job *job, size_t index, tide_status status,
     const char *reason)
{
    if (planted == MAIL_PLANT_BAD_FORGIVEN)
        tide_job_item_done(job, index);
    else
        __real_tide_job_item_failed(job, index, status, reason);
}
