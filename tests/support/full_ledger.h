/* full_ledger.h - a ledger with every kind of row that there is, for tests of copies.
 *
 * Made through ledger/ledger.h, as an engine would: jobs in all states, with and without
 * dependencies, cycles, keys, times, errors and resume data; streams, bad items, intents,
 * schedules, alerts, notes, batches; the tables of mail and console; and texts that a
 * careless copy would change.  The same `jobs` give the same ledger. */
#ifndef TIDE_TESTS_FULL_LEDGER_H
#define TIDE_TESTS_FULL_LEDGER_H

#include "base/rng.h"
#include "console/console.h"
#include "ledger/rows.h"
#include "mail/rows.h"
#include "mail/manifest.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FULL_SLICE = 500, FULL_DAY_MS = 86400000 };
#define FULL_NOW 1790000000000ull

static tide_error full_err;

#define FULL_MUST(call) full_must((call), #call)
static void full_must(tide_status rc, const char *what)
{
    if (rc == TIDE_OK)
        return;
    (void)fprintf(stderr, "full_ledger: %s: %s: %s\n", what, tide_status_name(rc), full_err.text);
    abort();
}

struct full {
    tide_ledger *ledger;
    struct tide_changes changes;
    uint32_t kinds[4]; /* plain, alone, splits, paused */
    uint32_t accounts[4];
    uint64_t streams[2];
    uint64_t cycles[6];
    uint64_t token;
    char *longest; /* a payload of 300,000 bytes */
    size_t longest_bytes;
};

/* What breaks escapes, encodings and formats. */
#define FULL_TEXT(literal)                                                                         \
    {                                                                                              \
        (literal), sizeof(literal) - 1                                                             \
    }
static const tide_text full_texts[] = {
    FULL_TEXT("{}"),
    FULL_TEXT("{\"a\":\"\\\\ \\t \\N \\. \\x41\"}"),
    FULL_TEXT("tab\tnewline\nreturn\r\n end"),
    FULL_TEXT("\\."),
    FULL_TEXT("\\N"),
    FULL_TEXT("NULL"),
    FULL_TEXT("'quotes' \"double\" $1 $$ ?1 %s %n"),
    FULL_TEXT("\xc3\xa9\xe2\x82\xac\xf0\x9f\x8c\x8a \xe6\xbc\xa2\xe5\xad\x97 \xd7\xa9"),
    FULL_TEXT("\x01\x02\x1b[31m\x7f"),
    FULL_TEXT(" leading and trailing "),
};
enum { FULL_TEXTS = sizeof full_texts / sizeof full_texts[0] };

static tide_text full_text(const struct full *full, size_t i)
{
    if (i % 1009 == 7)
        return (tide_text){full->longest, full->longest_bytes};
    return full_texts[i % FULL_TEXTS];
}

static tide_tx *full_begin(struct full *full)
{
    tide_tx *tx = NULL;
    FULL_MUST(tide_tx_begin(full->ledger, &tx, &full_err));
    return tx;
}

static void full_names(struct full *full)
{
    static const char *const kinds[] = {"plain", "alone", "splits", "pau'sed \xe2\x82\xac"};
    static const char *const accounts[] = {"me@example.com", "halted@example.com",
                                           "pau\"sed@example.com", "placed@example.com"};
    tide_tx *tx = full_begin(full);
    for (size_t i = 0; i < 4; i++) {
        FULL_MUST(tide_ledger_kind(tx, kinds[i],
                                   i == 1 ? TIDE_DEDUPE_PENDING_AND_RUNNING : TIDE_DEDUPE_PENDING,
                                   &full->kinds[i], &full_err));
        FULL_MUST(tide_ledger_account(tx, accounts[i], "gmail", &full->accounts[i], &full_err));
    }
    FULL_MUST(tide_ledger_kind_splits(tx, full->kinds[2], true, &full_err));
    FULL_MUST(tide_ledger_kind_pause(tx, full->kinds[3], true, &full_err));
    FULL_MUST(tide_ledger_account_halt(tx, full->accounts[1], true, "the owner\tasked", FULL_NOW,
                                       &full_err));
    FULL_MUST(tide_ledger_account_pause(tx, full->accounts[2], true, &full_err));
    FULL_MUST(tide_ledger_governor_save(tx, full->accounts[0], TIDE_TEXT("{\"window\":[1,2,3]}\n"),
                                        &full_err));
    FULL_MUST(tide_ledger_account_place(tx, full->accounts[3], "archive-1", "file:/somewhere else",
                                        &full_err));
    FULL_MUST(tide_tx_commit(tx, &full_err));
}

static void full_streams(struct full *full)
{
    tide_tx *tx = full_begin(full);
    for (size_t i = 0; i < 2; i++) {
        struct tide_stream_row stream;
        FULL_MUST(tide_ledger_stream(tx, full->accounts[i], i == 0 ? "mail.1" : "str\xc3\xa9\\am",
                                     i == 0 ? TIDE_TEXT_NONE : TIDE_TEXT("floor\n"), &stream,
                                     &full_err));
        full->streams[i] = stream.id;
    }
    for (size_t i = 0; i < 6; i++) {
        struct tide_cycle_row cycle;
        char end[40];
        (void)snprintf(end, sizeof end, "end %zu\t'\"", i);
        FULL_MUST(tide_ledger_cycle(tx, full->streams[i / 3], TIDE_TEXT("start"), tide_text_of(end),
                                    FULL_NOW + i, &cycle, &full_err));
        full->cycles[i] = cycle.id;
    }
    FULL_MUST(tide_tx_commit(tx, &full_err));
}

/* Enqueues one slice of jobs, numbered from `first`. */
static void full_enqueue(struct full *full, size_t first, size_t count, uint64_t *ids_out)
{
    static struct tide_job_new jobs[FULL_SLICE];
    static struct tide_enqueued enqueued[FULL_SLICE];
    static uint32_t needs[FULL_SLICE][2];
    static char keys[FULL_SLICE][60];
    for (size_t i = 0; i < count; i++) {
        const size_t n = first + i;
        jobs[i] = (struct tide_job_new){
            .account = n % 5 == 4 ? 0 : full->accounts[n % 4],
            .kind = full->kinds[n % 11 == 0 ? 3 : n % 3],
            .cycle = n % 3 == 0 ? full->cycles[1 + n % 5] : 0,
            .payload = full_text(full, n),
            .size_bytes = n % 4 == 0 ? n * 1000 : 0,
            .not_before_unix_ms = n % 17 == 0 ? FULL_NOW + FULL_DAY_MS + n : 0,
            .attempts = (uint16_t)(n % 3),
            .attempts_max = (uint16_t)(n % 1000 == 1 ? 65535 : 5),
            .priority = (uint8_t)(n % 101),
            .lane = (uint8_t)(n % 2),
            .level = (uint8_t)(n % 7 == 0 ? 255 : n % 5),
            .preemptible = n % 2 == 0,
            .force = n % 13 == 0,
        };
        if (n % 6 == 0) {
            (void)snprintf(keys[i], sizeof keys[i], "key\\%zu\t\xc3\xa9", n);
            jobs[i].dedupe_key = tide_text_of(keys[i]);
        }
        if (i > 2 && n % 10 == 9) {
            needs[i][0] = (uint32_t)i - 1;
            needs[i][1] = (uint32_t)i - 3;
            jobs[i].needs_earlier = needs[i];
            jobs[i].needs_earlier_count = 2;
        }
    }
    tide_tx *tx = full_begin(full);
    FULL_MUST(tide_ledger_enqueue(tx, jobs, count, FULL_NOW + first, enqueued, &full_err));
    FULL_MUST(tide_tx_commit(tx, &full_err));
    for (size_t i = 0; i < count; i++)
        ids_out[i] = enqueued[i].id;
}

/* How the n-th job ends; false: it keeps running. */
static bool full_end(struct full *full, size_t n, struct tide_finish *finish)
{
    static const struct tide_item_report items[] = {
        {TIDE_TEXT("item'1\t"), TIDE_TEXT("cannot\nbe decoded \\"), TIDE_PERMANENT},
        {TIDE_TEXT("item-\xf0\x9f\x8c\x8a"), TIDE_TEXT(""), TIDE_GONE},
        {TIDE_TEXT("Item-2"), TIDE_TEXT("late"), TIDE_TIMEOUT},
        {TIDE_TEXT("item-10"), TIDE_TEXT("b"), TIDE_PERMANENT},
    };
    finish->state = TIDE_ROW_DONE;
    if (n % 19 == 3)
        *finish = (struct tide_finish){.state = TIDE_ROW_FAILED,
                                       .attempts_add = 1,
                                       .status = TIDE_SERVER,
                                       .error = full_texts[n % FULL_TEXTS],
                                       .bytes_done = n};
    else if (n % 19 == 5)
        *finish = (struct tide_finish){.state = TIDE_ROW_PENDING,
                                       .attempts_add = 1,
                                       .not_before_unix_ms = FULL_NOW + n,
                                       .status = TIDE_NETWORK,
                                       .resume_set = true,
                                       .resume = full_text(full, n + 1)};
    else if (n % 19 == 8)
        *finish = (struct tide_finish){
            .state = TIDE_ROW_DONE, .bytes_done = n, .items = items, .items_count = 1 + n % 4};
    if (finish->resume.bytes > 1000)
        finish->resume.bytes = 1000;
    return n % 41 != 0;
}

/* Claims what can be claimed of a slice, and ends most of it, over some days. */
static void full_work(struct full *full, size_t first, size_t count, const uint64_t *ids)
{
    static struct tide_job_body *bodies[FULL_SLICE];
    static struct tide_finish finishes[FULL_SLICE];
    static bool applied[FULL_SLICE];
    static uint64_t wanted[FULL_SLICE];
    static size_t numbers[FULL_SLICE];
    size_t wanted_count = 0, ends = 0;
    for (size_t i = 0; i < count; i++)
        if ((first + i) % 4 != 1 && (first + i) % 17 != 0) {
            numbers[wanted_count] = first + i;
            wanted[wanted_count++] = ids[i];
        }
    const uint64_t now = FULL_NOW - (first / FULL_SLICE % 9) * FULL_DAY_MS + first;
    tide_tx *tx = full_begin(full);
    FULL_MUST(tide_ledger_claim(tx, wanted, wanted_count, 77, full->token, now, tide_mem_heap(),
                                bodies, &full_err));
    full->token += wanted_count;
    for (size_t i = 0; i < wanted_count; i++) {
        if (bodies[i] == NULL)
            continue;
        finishes[ends] = (struct tide_finish){0};
        struct tide_beat beat = {.id = wanted[i],
                                 .token = bodies[i]->token,
                                 .bytes_done = numbers[i],
                                 .resume_set = numbers[i] % 2 == 0,
                                 .resume = TIDE_TEXT("resume\\\t")};
        if (full_end(full, numbers[i], &finishes[ends])) {
            finishes[ends].id = wanted[i];
            finishes[ends++].token = bodies[i]->token;
        } else {
            bool beaten = false;
            FULL_MUST(tide_ledger_beat(tx, &beat, 1, now + 5, &beaten, &full_err));
        }
        tide_job_body_free(tide_mem_heap(), bodies[i]);
    }
    tide_changes_clear(&full->changes);
    FULL_MUST(tide_ledger_finish(tx, finishes, ends, now + 10, applied, &full->changes, &full_err));
    FULL_MUST(tide_tx_commit(tx, &full_err));
}

/* A few are canceled, waiting and running ones, and a few failed ones accepted. */
static void full_commands(struct full *full, uint64_t last)
{
    uint64_t running[4];
    size_t count = 0, running_count = 0;
    tide_tx *tx = full_begin(full);
    for (uint64_t id = 1; id <= last && id <= 400; id++) {
        struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
        filter.id = id;
        tide_changes_clear(&full->changes);
        if (id % 7 == 0)
            FULL_MUST(tide_ledger_cancel(tx, &filter, FULL_NOW + id, &count, running, 4,
                                         &running_count, &full->changes, &full_err));
        else if (id % 11 == 0)
            FULL_MUST(
                tide_ledger_accept(tx, &filter, FULL_NOW + id, &count, &full->changes, &full_err));
    }
    FULL_MUST(tide_tx_commit(tx, &full_err));
}

static void full_records(struct full *full)
{
    static const uint64_t ids[] = {1, 2, 3000000000ull};
    tide_intent_state state;
    tide_buf outcome;
    uint64_t id = 0;
    tide_buf_init(&outcome, tide_mem_heap(), 1 << 16);
    tide_tx *tx = full_begin(full);
    for (size_t i = 0; i < 8; i++) {
        char tag[40];
        (void)snprintf(tag, sizeof tag, "%s-%zu", i % 2 == 0 ? "Tag\xc3\xa9" : "tag", i);
        FULL_MUST(tide_ledger_intent(tx, 1 + i, tide_text_of(tag), full_texts[i], FULL_NOW + i,
                                     &state, &outcome, &full_err));
        if (i % 4 != 0)
            FULL_MUST(tide_ledger_intent_end(tx, tide_text_of(tag), (tide_intent_state)(i % 4),
                                             full_texts[i + 1], FULL_NOW + i, &full_err));
        (void)snprintf(tag, sizeof tag, "note %zu", i);
        FULL_MUST(tide_ledger_note(tx, tag, full_texts[i], &full_err));
        FULL_MUST(tide_ledger_alert(tx, tag, full->accounts[i % 4], 1 + (int)i % 2,
                                    "some text\twith \\ in it", FULL_NOW + i, &full_err));
        if (i % 2 == 0)
            FULL_MUST(
                tide_ledger_alert_notified(tx, tag, full->accounts[i % 4], FULL_NOW, &full_err));
        const struct tide_schedule_row schedule = {.kind = full->kinds[i % 3],
                                                   .period_ms = 60000 + i,
                                                   .anchor_unix_ms = FULL_NOW,
                                                   .per_account = i % 2 == 0,
                                                   .at_start = i % 3 == 0,
                                                   .name = tide_text_of(tag),
                                                   .payload = full_texts[i]};
        FULL_MUST(tide_ledger_schedule(tx, &schedule, &id, &full_err));
        if (i % 2 == 1)
            FULL_MUST(tide_ledger_schedule_fire(tx, id, 5 + i, FULL_NOW, &full_err));
    }
    FULL_MUST(tide_ledger_note(tx, "", TIDE_TEXT("of no name"), &full_err));
    FULL_MUST(
        tide_ledger_batch_put(tx, TIDE_TEXT("batch \xe2\x82\xac"), ids, 3, FULL_NOW, &full_err));
    FULL_MUST(tide_ledger_batch_put(tx, TIDE_TEXT("Batch 2"), ids, 1, FULL_NOW + 1, &full_err));
    FULL_MUST(tide_tx_commit(tx, &full_err));
    tide_buf_done(&outcome);
}

/* Rows beside the ledger; the texts are what both databases read alike. */
static void full_systems(struct full *full)
{
    static const char *const rows[] = {
        "INSERT INTO mail_account(account, email, endpoint, epoch, messages_total, last_run_ms,"
        " since_ms, floor_ms, lost_ms, rewind_ms, notice) VALUES"
        " (1, 'me@example.com', '', 3, 100000, 1, 2, 3, NULL, 0, 'a notice'),"
        " (2, 'x@example.com', 'http://box', 1, 0, 1, 2, 3, 17, 5, '')",
        "INSERT INTO mail_mark(stream, ordinal, history_id) VALUES (1, 0, '42'), (1, 7, '43')",
        "INSERT INTO mail_shard(account, name, id, generation, messages) VALUES"
        " (1, '2019.db', 'abc', 5, 1000), (1, '2020.db', 'ABC', 6, 0)",
        "INSERT INTO mail_proof(account, id, generation, at_ms, history_id) VALUES"
        " (1, 'abc', 5, 1790000000000, '42')",
        "INSERT INTO mail_listing(id, account, from_ms, begun_ms, spans_left) VALUES"
        " (4, 1, 0, 17, 3)",
        "INSERT INTO mail_seen(listing, gmail_id) VALUES (4, 'Zid'), (4, 'aid'), (4, 'bid')",
        "INSERT INTO mail_epoch(account, epoch) VALUES (9, 12)",
        "INSERT INTO mail_manifest(id, account, mode, query, made_ms, ended_ms, watermark_ms,"
        " planned_ms) VALUES (3, 1, 2, 'from:\"a b\"', 1, 2, 3, 4)",
        "INSERT INTO console_account(account, name, endpoint) VALUES (3, 'console', '')",
        "INSERT INTO console_site(id, account, site) VALUES (5, 3, 'sc-domain:example.com')",
        "INSERT INTO console_series(site, type, dimensions, epoch, floor, opened) VALUES"
        " (5, 1, 15, 2, '2026-01-01', '2026-02-01')",
    };
    static const unsigned char hash[] = {0, 1, 0xff, '\\', '\n', 0};
    tide_tx *tx = full_begin(full);
    const tide_rows db = tide_tx_rows(tx);
    tide_rows_stmt stmt;
    FULL_MUST(tide_mail_tables(db, &full_err));
    FULL_MUST(tide_manifest_tables(db, &full_err));
    FULL_MUST(tide_console_tables(db, &full_err));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        FULL_MUST(tide_rows_prepare(db, rows[i], "rows", &stmt, &full_err));
        FULL_MUST(tide_rows_run(&stmt, &full_err));
    }
    FULL_MUST(tide_rows_prepare(
        db,
        "INSERT INTO mail_removal(id, manifest, gmail_id, thread_id, hash, bytes, internal_ms,"
        " labels, state, reason, restored_id, changed_ms) VALUES"
        " (8, 3, 'g1', 't1', ?1, 100, 5, 'INBOX', 2, '', '', 9)",
        "rows", &stmt, &full_err));
    tide_rows_blob(&stmt, 1, hash, sizeof hash);
    FULL_MUST(tide_rows_run(&stmt, &full_err));
    FULL_MUST(tide_tx_commit(tx, &full_err));
}

/* Makes the ledger at `path` with so many jobs. */
static void full_ledger_make(tide_world *world, const char *path, size_t jobs)
{
    struct full full = {.token = 1000, .longest_bytes = 300000};
    const struct tide_ledger_options options = {
        .path = path, .run_id = "run-1", .now_unix_ms = FULL_NOW};
    static uint64_t ids[FULL_SLICE];
    full.longest = malloc(full.longest_bytes);
    if (full.longest == NULL)
        abort();
    memset(full.longest, 'x', full.longest_bytes);
    tide_changes_init(&full.changes, tide_mem_heap());
    FULL_MUST(tide_ledger_open(world, &options, &full.ledger, &full_err));
    full_names(&full);
    full_streams(&full);
    for (size_t first = 0; first < jobs; first += FULL_SLICE) {
        const size_t count = jobs - first < FULL_SLICE ? jobs - first : FULL_SLICE;
        full_enqueue(&full, first, count, ids);
        full_work(&full, first, count, ids);
    }
    full_commands(&full, jobs);
    full_records(&full);
    full_systems(&full);
    tide_ledger_close(full.ledger, false);
    tide_changes_done(&full.changes);
    free(full.longest);
}

#endif
