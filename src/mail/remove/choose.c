/* choose.c - finds the messages of a query that could be removed (M12, M14). */
#include "mail/remove/inside.h"

#include "base/check.h"
#include "mail/search/search.h"

#include <stdio.h>
#include <string.h>

enum {
    PAGE = TIDE_REMOVE_IDS,
    INDEX_GROUP = 200, /* so that the job can be canceled between two groups */
};

struct choosing {
    tide_mail *mail;
    tide_job *job;    /* NULL: none */
    tide_map changed; /* keys of the ids that have changed in Gmail */
    const struct tide_archiving *ask;
    struct tide_mail_user *user;
    struct tide_archiver_standing standing;
    tide_query *query;
    bool denies_words;
    struct tide_candidate *page; /* PAGE */
    struct tide_proof *proofs;   /* PAGE */
    size_t count;
    uint64_t left; /* remaining part of the limit */
    tide_status rc;
    tide_error *err;
};

/* ---- one message ---- */

/* Whether the mode would change it; else it is not a candidate. */
static bool fits_mode(tide_removal_mode mode, const char *labels)
{
    if (mode == TIDE_REMOVE_FROM_INBOX)
        return tide_archiver_has_label(labels, "INBOX");
    return mode != TIDE_REMOVE_TO_TRASH || !tide_archiver_has_label(labels, "TRASH");
}

static const char *refusal(const struct choosing *choosing, const struct tide_candidate *candidate)
{
    const struct tide_stored *stored = &candidate->stored;
    if (stored->internal_ms < 0 || (uint64_t)stored->internal_ms >= choosing->standing.tidemark_ms)
        return TIDE_REFUSED_PAST;
    if (tide_archiver_has_label(candidate->labels, "DRAFT"))
        return TIDE_REFUSED_DRAFT; /* its text may change, under another id */
    if (stored->copy != TIDE_COPY_EXACT)
        return tide_archiver_inexact(stored->copy);
    if (choosing->denies_words && !stored->indexed)
        return TIDE_REFUSED_UNREAD;
    uint32_t changed = 0;
    if (choosing->ask->with_history &&
        tide_map_get(&choosing->changed, tide_archiver_key(tide_text_of(stored->gmail_id)),
                     &changed))
        return TIDE_REFUSED_CHANGED;
    return NULL;
}

static bool take_found(const struct tide_found *found, void *arg)
{
    struct choosing *choosing = arg;
    struct tide_candidate *candidate = &choosing->page[choosing->count];
    if (!tide_stored_in_gmail(&found->stored))
        return true;
    *candidate = (struct tide_candidate){.stored = found->stored};
    tide_status rc = tide_archiver_labels(choosing->user->archive, &found->stored,
                                          choosing->mail->mem, candidate->labels, choosing->err);
    const bool too_many = rc == TIDE_FULL;
    int64_t stored_ms = INT64_MAX;
    if (too_many)
        rc = TIDE_OK;
    if (rc == TIDE_OK && choosing->standing.gap_ms > 0)
        rc = tide_archive_stored_ms(choosing->user->archive, &found->stored, &stored_ms,
                                    choosing->err);
    candidate->unsure = stored_ms < (int64_t)choosing->standing.gap_ms;
    choosing->rc = rc;
    if (rc != TIDE_OK)
        return false;
    if (!too_many && !fits_mode(choosing->ask->mode, candidate->labels))
        return true;
    candidate->refused = too_many ? TIDE_REFUSED_LABELS : refusal(choosing, candidate);
    choosing->count++;
    return true;
}

/* ---- one page ---- */

static tide_status page_bad(struct choosing *choosing)
{
    tide_text ids[PAGE];
    bool bad[PAGE];
    for (size_t i = 0; i < choosing->count; i++)
        ids[i] = tide_text_of(choosing->page[i].stored.gmail_id);
    TIDE_TRY(tide_items_bad(choosing->mail->engine, choosing->user->account, ids, choosing->count,
                            bad, choosing->err));
    for (size_t i = 0; i < choosing->count; i++) {
        if (bad[i] && choosing->page[i].refused == NULL)
            choosing->page[i].refused = TIDE_REFUSED_BAD;
    }
    return TIDE_OK;
}

static tide_status page_prove(struct choosing *choosing)
{
    for (size_t i = 0; i < choosing->count; i++) {
        choosing->proofs[i] = (struct tide_proof){.proven = false};
        memcpy(choosing->proofs[i].gmail_id, choosing->page[i].stored.gmail_id,
               sizeof choosing->proofs[i].gmail_id);
        memcpy(choosing->proofs[i].hash, choosing->page[i].stored.hash,
               sizeof choosing->proofs[i].hash);
    }
    TIDE_TRY(tide_archiver_prove(choosing->mail, choosing->user, choosing->job, choosing->proofs,
                                 choosing->count, choosing->err));
    for (size_t i = 0; i < choosing->count; i++) {
        if (!choosing->proofs[i].proven && choosing->page[i].refused == NULL)
            choosing->page[i].refused = choosing->proofs[i].reason;
    }
    return TIDE_OK;
}

static tide_status page_run(struct choosing *choosing, tide_buf *token, bool *more_out,
                            bool (*visit)(const struct tide_candidate *candidate, void *arg),
                            void *arg)
{
    tide_buf next;
    choosing->count = 0;
    tide_buf_init(&next, choosing->mail->mem, 4096);
    /* Exact: forms of words depend on the mail that is stored and on the stemmer, so that the same
     * query, perhaps of a schedule, would remove other mail from one version to the next. */
    const struct tide_search search = {.query = choosing->query,
                                       .limit = PAGE,
                                       .after = tide_buf_text(token),
                                       .strict = true,
                                       .exact = true};
    tide_status rc = tide_search_run(choosing->user->archive, &search, take_found, choosing, &next,
                                     more_out, choosing->err);
    if (rc == TIDE_OK)
        rc = choosing->rc;
    if (rc == TIDE_OK && choosing->count > 0)
        rc = page_bad(choosing);
    if (rc == TIDE_OK && choosing->count > 0 && choosing->ask->read_back)
        rc = page_prove(choosing);
    for (size_t i = 0; rc == TIDE_OK && i < choosing->count && choosing->left > 0; i++) {
        choosing->left -= choosing->page[i].refused == NULL;
        if (!visit(&choosing->page[i], arg))
            choosing->left = 0;
    }
    *more_out = *more_out && choosing->left > 0;
    tide_buf_done(token);
    *token = next;
    return rc;
}

/* ---- changes in Gmail ---- */

static void see_change(void *arg, tide_text id, tide_history_change change, tide_text label)
{
    struct choosing *choosing = arg;
    (void)change;
    (void)label;
    if (!tide_map_put(&choosing->changed, tide_archiver_key(id), 1))
        choosing->rc = tide_error_set(choosing->err, TIDE_NO_MEMORY, "no memory for what changed");
}

static tide_status see_changes(struct choosing *choosing)
{
    uint64_t waited_ms = 0;
    TIDE_ASSERT(choosing->job != NULL);
    tide_map_clear(&choosing->changed);
    const tide_status rc =
        tide_archiver_history(choosing->user, choosing->job, choosing->standing.history_id,
                              &waited_ms, choosing->mail->mem, see_change, choosing, choosing->err);
    return rc == TIDE_OK ? choosing->rc : rc;
}

/* ---- choosing ---- */

/* The query of a request; also after a failure the caller frees it. */
static tide_status query_read(const struct tide_archiving *ask, tide_mem *mem,
                              tide_query **query_out, tide_error *err)
{
    const tide_text text = tide_text_of(ask->query);
    TIDE_TRY(tide_query_parse(text, (int64_t)ask->now_ms, TIDE_QUERY_LOCAL, mem, query_out, err));
    if (tide_query_is_all(*query_out))
        return tide_error_set(err, TIDE_INVALID,
                              "no messages selected; use in:anywhere to select all mail");
    if (!tide_query_is_whole(*query_out))
        return tide_error_set(err, TIDE_INVALID,
                              "a term of the query has no letter and no digit; ignoring it would "
                              "select more mail than intended");
    return TIDE_OK;
}

static tide_status query_take(struct choosing *choosing)
{
    TIDE_TRY(query_read(choosing->ask, choosing->mail->mem, &choosing->query, choosing->err));
    choosing->denies_words = tide_query_denies_words(choosing->query);
    return TIDE_OK;
}

static tide_status check_canceled(struct choosing *choosing)
{
    tide_job *job = choosing->job;
    if (job == NULL)
        return TIDE_OK;
    tide_job_beat(job, 0);
    return tide_job_canceled(job) ? tide_error_set(choosing->err, TIDE_CANCELED, "canceled")
                                  : TIDE_OK;
}

/* So that the query sees what was just stored.  While a backfill stores faster than this indexes, it
 * lasts as long as the backfill. */
static tide_status index_all(struct choosing *choosing)
{
    uint64_t indexed = 1;
    while (indexed > 0) {
        TIDE_TRY(check_canceled(choosing));
        TIDE_TRY(tide_archive_index(choosing->user->archive, INDEX_GROUP, &indexed, choosing->err));
    }
    return TIDE_OK;
}

static tide_status open_all(struct choosing *choosing)
{
    tide_mail *mail = choosing->mail;
    uint32_t account = 0;
    tide_status rc = query_take(choosing);
    if (rc == TIDE_OK)
        rc = tide_engine_account(mail->engine, choosing->ask->email, "gmail", &account,
                                 choosing->err);
    if (rc == TIDE_OK)
        rc = tide_mail_user(mail, account, &choosing->user, choosing->err);
    if (rc == TIDE_OK)
        rc = tide_archiver_standing(mail, account, &choosing->standing, choosing->err);
    if (rc == TIDE_OK)
        rc = index_all(choosing);
    choosing->page = tide_mem_array(mail->mem, PAGE, sizeof *choosing->page);
    choosing->proofs = tide_mem_array(mail->mem, PAGE, sizeof *choosing->proofs);
    if (rc == TIDE_OK && (choosing->page == NULL || choosing->proofs == NULL))
        rc = tide_error_set(choosing->err, TIDE_NO_MEMORY, "no memory to choose mail");
    return rc;
}

tide_status tide_archiver_choose(tide_mail *mail, const struct tide_archiving *ask, tide_job *job,
                                 bool (*visit)(const struct tide_candidate *candidate, void *arg),
                                 void *arg, tide_error *err)
{
    struct choosing choosing = {.mail = mail,
                                .job = job,
                                .ask = ask,
                                .left = ask->limit == 0 ? UINT64_MAX : ask->limit,
                                .err = err};
    bool more = true;
    tide_auto_buf token = tide_buf_in(mail->mem, 4096);
    tide_map_init(&choosing.changed, mail->mem);
    tide_status rc = open_all(&choosing);
    if (rc == TIDE_OK && ask->with_history)
        rc = see_changes(&choosing);
    while (rc == TIDE_OK && more) {
        rc = page_run(&choosing, &token, &more, visit, arg);
        if (rc == TIDE_OK)
            rc = check_canceled(&choosing);
    }
    tide_map_done(&choosing.changed);
    tide_mem_free(mail->mem, choosing.page, PAGE * sizeof *choosing.page);
    tide_mem_free(mail->mem, choosing.proofs, PAGE * sizeof *choosing.proofs);
    tide_query_free(choosing.query);
    return rc;
}

tide_status tide_archiver_query_check(const struct tide_archiving *ask, tide_mem *mem,
                                      tide_error *err)
{
    tide_query *query = NULL;
    const tide_status rc = query_read(ask, mem, &query, err);
    tide_query_free(query);
    return rc;
}
