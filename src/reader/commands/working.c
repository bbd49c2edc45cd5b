#include "reader/commands/working.h"

#include "base/json.h"
#include "base/limits.h"
#include "ledger/ledger.h"
#include "reader/reader.h"

#include <stdio.h>
#include <string.h>

enum { RUNNING_MAX = 500 };

static struct reader_work *work_of(struct reader_working *working, uint32_t account)
{
    for (size_t i = 0; i < working->count; i++)
        if (working->list[i].account == account)
            return &working->list[i];
    if (!tide_mem_grow(working->mem, (void **)&working->list, &working->capacity,
                       working->count + 1, TIDE_ACCOUNTS_MAX, sizeof *working->list))
        return NULL; /* it is shown as one that does nothing */
    working->list[working->count] = (struct reader_work){.account = account};
    return &working->list[working->count++];
}

/* Its payload has one field, or none.  What changed anywhere is of no label. */
static void what_read(tide_text payload, char what[READER_WHAT_BYTES])
{
    static const char *const fields[] = {"message", "folder", "query"};
    json_auto_t *json = NULL;
    what[0] = '\0';
    if (tide_json_parse(payload, &json, NULL) != TIDE_OK)
        return;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *value = json_string_value(json_object_get(json, fields[i]));
        if (value != NULL && value[0] != '@')
            (void)snprintf(what, READER_WHAT_BYTES, "%s", value);
    }
}

static bool note_running(const struct tide_job_row *row, void *arg)
{
    struct reader_work *work =
        tide_reader_level(row->kind_name) == 0 ? NULL : work_of(arg, row->account);
    if (work == NULL || (work->kind[0] != '\0' && work->priority >= row->priority))
        return true;
    work->job = row->id;
    work->priority = row->priority;
    (void)snprintf(work->kind, sizeof work->kind, "%.*s", (int)row->kind_name.bytes,
                   row->kind_name.data);
    what_read(row->payload, work->what);
    return true;
}

static bool note_waiting(const struct tide_job_count *row, void *arg)
{
    const unsigned level = row->state == TIDE_ROW_PENDING ? tide_reader_level(row->kind_name) : 0;
    struct reader_work *work = level == 0 ? NULL : work_of(arg, row->account);
    if (work != NULL && row->count > row->delayed)
        work->waiting[level] += row->count - row->delayed;
    return true;
}

tide_status reader_working_read(struct cli *cli, struct reader_working *working)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    working->mem = cli->mem;
    filter.state = TIDE_ROW_RUNNING;
    filter.count_max = RUNNING_MAX;
    TIDE_TRY(tide_ledger_jobs(cli->ledger, &filter, note_running, working, &cli->err));
    return tide_ledger_counts_left(cli->ledger, cli->now_unix_ms, note_waiting, working, &cli->err);
}

void reader_working_done(struct reader_working *working)
{
    if (working->mem != NULL)
        tide_mem_free(working->mem, working->list, working->capacity * sizeof *working->list);
    *working = (struct reader_working){.mem = NULL};
}

const struct reader_work *reader_working_of(const struct reader_working *working, uint32_t account)
{
    static const struct reader_work nothing;
    for (size_t i = 0; i < working->count; i++)
        if (working->list[i].account == account)
            return &working->list[i];
    return &nothing;
}

uint64_t reader_work_waiting(const struct reader_work *work)
{
    uint64_t sum = 0;
    for (unsigned i = 1; i <= READER_LEVELS; i++)
        sum += work->waiting[i];
    return sum;
}
