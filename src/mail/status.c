#include "mail/status.h"

#include "base/check.h"
#include "core/governor/saved.h"
#include "ledger/rows.h"
#include "ledger/outcome.h"
#include "mail/rows.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WHAT "the mail accounts"

enum { SPANS_MAX = 1 << 20 };

/* ---- accounts ---- */

/* A state directory that was never used for mail has none of its tables. */
static tide_status has_tables(tide_rows db, bool *has_out, tide_error *err)
{
    return tide_rows_has(db, "mail_account", WHAT, has_out, err);
}

static tide_status rows_of(tide_ledger *ledger,
                           void (*visit)(const struct tide_mail_row *row, void *arg), void *arg,
                           tide_error *err)
{
    const tide_rows db = tide_ledger_rows(ledger);
    bool has = false;
    const tide_status rc = has_tables(db, &has, err);
    return rc == TIDE_OK && has ? tide_mail_rows(db, visit, arg, err) : rc;
}

struct row_ask {
    const char *email;
    struct tide_mail_row row;
    bool found;
};

static void row_visit(const struct tide_mail_row *row, void *arg)
{
    struct row_ask *ask = arg;
    if (strcmp(row->email, ask->email) != 0)
        return;
    ask->row = *row;
    ask->found = true;
}

/* Reads the stored governor state: it remembers a refused sign-in. */
static bool account_row(const struct tide_account_row *row, void *arg)
{
    struct tide_mail_look *look = arg;
    struct tide_governor_saved saved;
    if (row->id != look->account)
        return true;
    look->paused = row->paused;
    look->halted = row->halted;
    look->owner = row->owner;
    (void)snprintf(look->archive, sizeof look->archive, "%s", row->archive);
    (void)snprintf(look->halt_reason, sizeof look->halt_reason, "%s", row->halt_reason);
    look->signed_out = row->governor.bytes > 0 &&
                       tide_governor_saved_parse(row->governor, &saved) == TIDE_OK &&
                       saved.paused_until_unix_ms > 0 && saved.paused_why == TIDE_AUTH;
    return false;
}

/* The outcome of the account's calls is newer than a pause the governor remembers. */
static void look_outcome(tide_ledger *ledger, struct tide_mail_look *look)
{
    struct tide_outcome outcome;
    tide_outcome_read(ledger, look->account, look->mem, &outcome);
    if (outcome.ok_unix_ms > 0 || outcome.failed_unix_ms > 0)
        look->signed_out = tide_outcome_is_bad(&outcome) && outcome.status == TIDE_AUTH;
}

/* ---- the stream ---- */

struct stream_ask {
    uint32_t account;
    char name[32];
    struct tide_mail_look *look;
    uint64_t stream;
    uint64_t finished;
};

static uint64_t ms_of(tide_text text)
{
    uint64_t ms = 0;
    (void)tide_text_to_u64(text, &ms);
    return ms;
}

static bool stream_visit(const struct tide_stream_row *row, void *arg)
{
    struct stream_ask *ask = arg;
    if (row->account != ask->account || !tide_text_equal(row->name, tide_text_of(ask->name)))
        return true;
    ask->stream = row->id;
    ask->finished = row->ordinal;
    ask->look->tidemark_ms = ms_of(row->cursor);
    ask->look->moved_ms = row->moved_unix_ms;
    ask->look->cycles = row->ordinal_next;
    ask->look->cycles_open = row->ordinal_next - row->ordinal;
    return false;
}

/* ---- spans ---- */

struct spans_ask {
    struct tide_mail_look *look;
    uint64_t *cycles; /* ids, ascending like the spans */
    size_t cycles_capacity;
    bool full;
};

static bool span_visit(const struct tide_cycle_row *row, void *arg)
{
    struct spans_ask *ask = arg;
    struct tide_mail_look *look = ask->look;
    if (!TIDE_GROW_IN(look->mem, look->spans, look->spans_capacity, look->spans_count + 1,
                      SPANS_MAX) ||
        !TIDE_GROW_IN(look->mem, ask->cycles, ask->cycles_capacity, look->spans_count + 1,
                      SPANS_MAX)) {
        ask->full = true;
        return false;
    }
    ask->cycles[look->spans_count] = row->id;
    look->spans[look->spans_count++] = (struct tide_mail_span){
        .ordinal = row->ordinal,
        .from_ms = ms_of(row->start),
        .to_ms = ms_of(row->end),
        .state = row->failed > 0        ? TIDE_SPAN_FAILED
                 : row->outstanding > 0 ? TIDE_SPAN_FETCHING
                                        : TIDE_SPAN_COVERED,
        .jobs_left = row->outstanding,
        .failed = row->failed,
        .bad = row->bad,
    };
    return true;
}

static struct tide_mail_span *span_of(const struct spans_ask *ask, uint64_t cycle)
{
    size_t low = 0;
    size_t high = ask->look->spans_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (ask->cycles[middle] < cycle)
            low = middle + 1;
        else
            high = middle;
    }
    const bool found = low < ask->look->spans_count && ask->cycles[low] == cycle;
    return found ? &ask->look->spans[low] : NULL;
}

bool tide_mail_kind_is_ours(tide_text kind_name)
{
    return kind_name.bytes > 5 && memcmp(kind_name.data, "mail.", 5) == 0;
}

static bool left_visit(const struct tide_work_left *row, void *arg)
{
    struct spans_ask *ask = arg;
    struct tide_mail_look *look = ask->look;
    if (!tide_mail_kind_is_ours(row->kind_name))
        return true;
    if (row->state == TIDE_ROW_FAILED || row->state == TIDE_ROW_CANCELED) {
        look->jobs_failed += row->jobs;
        return true;
    }
    /* While one of these jobs is left, the remaining work is not fully known. */
    const bool changes = tide_text_equal(row->kind_name, TIDE_TEXT("mail.history"));
    const bool lists = changes || tide_text_equal(row->kind_name, TIDE_TEXT("mail.list")) ||
                       tide_text_equal(row->kind_name, TIDE_TEXT("mail.labels")) ||
                       tide_text_equal(row->kind_name, TIDE_TEXT("mail.plan"));
    const bool exact =
        tide_text_equal(row->kind_name, TIDE_TEXT("mail.exact")) ||
        tide_text_equal(row->kind_name, TIDE_TEXT("mail.held")) ||
        (row->cycle == 0 && tide_text_equal(row->kind_name, TIDE_TEXT("mail.confirm")));
    look->jobs_left += row->jobs;
    look->jobs_running += row->state == TIDE_ROW_RUNNING ? row->jobs : 0;
    look->jobs_exact += exact ? row->jobs : 0;
    look->messages_left += exact ? 0 : row->items; /* they are stored */
    look->listing = look->listing || lists;
    const bool heals = tide_text_equal(row->kind_name, TIDE_TEXT("mail.heal")) ||
                       tide_text_equal(row->kind_name, TIDE_TEXT("mail.fetch"));
    look->jobs_healing += heals && row->cycle == 0 ? row->jobs : 0;
    struct tide_mail_span *span = row->cycle == 0 ? NULL : span_of(ask, row->cycle);
    if (span == NULL)
        return true;
    span->messages_left += row->items;
    if (changes && span->state != TIDE_SPAN_FAILED)
        span->state = TIDE_SPAN_CHANGES;
    else if (lists && span->state == TIDE_SPAN_FETCHING)
        span->state = TIDE_SPAN_LISTING;
    return true;
}

static bool bad_visit(const struct tide_bad_row *row, void *arg)
{
    struct tide_mail_look *look = arg;
    if (!tide_mail_kind_is_ours(row->kind_name))
        return true;
    switch (row->state) {
    case TIDE_BAD_BAD:
        look->bad++;
        break;
    case TIDE_BAD_GONE:
        break;
    case TIDE_BAD_OWED:
        look->owed++;
        break;
    case TIDE_BAD_ACCEPTED:
        look->accepted++;
        break;
    case TIDE_BAD_RETRYING:
        look->retrying++;
        break;
    }
    return true;
}

static tide_status look_full(tide_ledger *ledger, uint64_t stream, struct tide_mail_look *look,
                             tide_error *err)
{
    struct spans_ask ask = {.look = look};
    look->spans_count = 0;
    look->jobs_left = look->jobs_running = look->jobs_failed = look->messages_left = 0;
    look->jobs_healing = look->jobs_exact = 0;
    look->bad = look->owed = look->accepted = look->retrying = 0;
    look->listing = false;
    tide_status rc =
        stream == 0 ? TIDE_OK : tide_ledger_cycles(ledger, stream, span_visit, &ask, err);
    if (rc == TIDE_OK && ask.full)
        rc = tide_error_set(err, TIDE_NO_MEMORY, "no memory for the gaps of %s", look->email);
    if (rc == TIDE_OK)
        rc = tide_ledger_work_left(ledger, look->account, left_visit, &ask, err);
    if (rc == TIDE_OK)
        rc = tide_ledger_bad_list(ledger, look->account, 0, bad_visit, look, err);
    tide_mem_free(look->mem, ask.cycles, ask.cycles_capacity * sizeof *ask.cycles);
    return rc;
}

/* ---- all ---- */

void tide_mail_look_init(struct tide_mail_look *look, tide_mem *mem)
{
    memset(look, 0, sizeof *look);
    look->mem = mem;
}

void tide_mail_look_done(struct tide_mail_look *look)
{
    if (look->mem != NULL)
        tide_mem_free(look->mem, look->spans, look->spans_capacity * sizeof *look->spans);
    memset(look, 0, sizeof *look);
}

static tide_status look_stream(tide_ledger *ledger, const struct tide_mail_row *row,
                               struct tide_mail_look *look, uint64_t *stream_out, tide_error *err)
{
    struct stream_ask ask = {.account = row->account, .look = look};
    (void)snprintf(ask.name, sizeof ask.name, "mail.%" PRIu32, row->epoch);
    look->tidemark_ms = look->moved_ms = look->cycles = look->cycles_open = 0;
    look->history_id[0] = '\0';
    tide_status rc = tide_ledger_streams(ledger, stream_visit, &ask, err);
    if (rc == TIDE_OK && ask.stream != 0)
        rc = tide_mail_mark_get(tide_ledger_rows(ledger), ask.stream, ask.finished,
                                look->history_id, err);
    *stream_out = ask.stream;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

tide_status tide_mail_look(tide_ledger *ledger, const char *email, bool full,
                           struct tide_mail_look *look, tide_error *err)
{
    struct row_ask ask = {.email = email};
    uint64_t stream = 0;
    bool own = false;
    /* One snapshot for all statements: otherwise a cycle could finish between two of them.  A
     * handle that is already in a transaction uses that one. */
    tide_status rc = tide_rows_snapshot(tide_ledger_rows(ledger), WHAT, &own, err);
    if (rc == TIDE_OK)
        rc = rows_of(ledger, row_visit, &ask, err);
    if (rc == TIDE_OK && !ask.found)
        rc = tide_error_set(err, TIDE_NOT_FOUND, "%.200s is not an account of the mail system",
                            email);
    if (rc == TIDE_OK) {
        look->account = ask.row.account;
        (void)snprintf(look->email, sizeof look->email, "%s", ask.row.email);
        (void)snprintf(look->endpoint, sizeof look->endpoint, "%s", ask.row.endpoint);
        look->messages_total = ask.row.messages_total;
        look->last_run_ms = ask.row.last_run_ms;
        look->since_ms = ask.row.since_ms;
        (void)snprintf(look->notice, sizeof look->notice, "%.399s", ask.row.notice);
        rc = tide_ledger_accounts(ledger, account_row, look, err);
    }
    if (rc == TIDE_OK)
        look_outcome(ledger, look);
    if (rc == TIDE_OK)
        rc = look_stream(ledger, &ask.row, look, &stream, err);
    if (rc == TIDE_OK && look->tidemark_ms == 0 && ask.row.floor_ms > ask.row.since_ms)
        look->tidemark_ms = ask.row.floor_ms; /* where this stream began: proven before */
    if (rc == TIDE_OK && ask.row.lost && ask.row.lost_ms < look->tidemark_ms)
        look->tidemark_ms = ask.row.lost_ms; /* the next plan moves it back to here */
    if (rc == TIDE_OK && full)
        rc = look_full(ledger, stream, look, err);
    tide_rows_snapshot_end(tide_ledger_rows(ledger), own);
    return rc;
}

uint64_t tide_mail_look_complete_since(const struct tide_mail_look *look)
{
    size_t i = look->spans_count;
    while (i > 0 && look->spans[i - 1].state == TIDE_SPAN_COVERED &&
           (i == look->spans_count || look->spans[i - 1].to_ms == look->spans[i].from_ms))
        i--;
    return i > 0 && i < look->spans_count ? look->spans[i].from_ms : 0;
}

bool tide_mail_look_settled(const struct tide_mail_look *look)
{
    for (size_t i = 0; i < look->spans_count; i++)
        if (look->spans[i].jobs_left > 0)
            return false;
    /* The engine moves the tidemark in the commit after the one that ends the last job. */
    if (look->spans_count > 0 && look->spans[0].state == TIDE_SPAN_COVERED)
        return false;
    /* An owed message has a job of its own outside of cycles, which no run waits for. */
    return !look->listing && look->jobs_healing + look->jobs_exact <= look->owed;
}

bool tide_mail_look_check(const struct tide_mail_look *look)
{
    bool gaps = false;
    uint64_t jobs = 0;
    for (size_t i = 0; i < look->spans_count; i++) {
        const struct tide_mail_span *span = &look->spans[i];
        if (i > 0 && look->spans[i - 1].ordinal >= span->ordinal) /* MST1 */
            return false;
        if (span->state == TIDE_SPAN_COVERED &&
            (span->jobs_left > 0 || span->failed > 0)) /* MST1 */
            return false;
        gaps = gaps || span->state != TIDE_SPAN_COVERED;
        jobs += span->jobs_left;
    }
    if (look->spans_count > look->cycles_open) /* MST2 */
        return false;
    return gaps || jobs == 0; /* MST3 */
}

static void kept_add(const struct tide_shard_state *shard, void *arg)
{
    struct tide_mail_kept *kept = arg;
    if (shard->messages > 0 && (kept->oldest_ms == 0 || shard->oldest_ms < kept->oldest_ms))
        kept->oldest_ms = shard->oldest_ms;
    if (shard->messages > 0 && shard->newest_ms > kept->newest_ms)
        kept->newest_ms = shard->newest_ms;
    kept->shards++;
    kept->stored += shard->messages;
    kept->raw_bytes += shard->raw_bytes;
    kept->archive_bytes += shard->bytes;
}

tide_status tide_mail_kept(tide_archive *archive, struct tide_mail_kept *kept_out, tide_error *err)
{
    struct tide_mail_kept kept = {0};
    const tide_status rc = tide_archive_states(archive, kept_add, &kept, err);
    *kept_out = kept;
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc; /* the account was removed meanwhile */
}
