#include "cli/commands/jobs_item.h"

#include <string.h>

enum { PAGE = 1000 };

/* Whether JSON has only one way to write it. */
static bool is_plain(const char *item)
{
    for (const char *at = item; *at != '\0'; at++)
        if ((unsigned char)*at < 0x20 || (unsigned char)*at > 0x7e || strchr("\"\\/", *at) != NULL)
            return false;
    return true;
}

/* Payloads are written by handlers, and read here from a file: what is not JSON has no items. */
bool jobs_item_has(tide_text payload, const char *item, uint64_t *items_out)
{
    json_t *object = NULL;
    bool has = false;
    /* Nearly all payloads end here: parsing a million of them would take minutes.  An item with a
     * character that JSON may escape is not looked for this way. */
    if (is_plain(item) && memmem(payload.data, payload.bytes, item, strlen(item)) == NULL)
        return false;
    if (tide_json_parse_stored(payload, &object, NULL) != TIDE_OK)
        return false;
    const json_t *items = json_object_get(object, "items");
    const char *path = json_string_value(json_object_get(object, "path"));
    *items_out = json_array_size(items) + (path != NULL);
    has = path != NULL && strcmp(path, item) == 0;
    for (size_t i = 0; !has && i < json_array_size(items); i++) {
        const char *one = json_string_value(json_array_get(items, i));
        has = one != NULL && strcmp(one, item) == 0;
    }
    json_decref(object);
    return has;
}

static bool is_listed(const struct jobs_item *list, uint64_t id)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->jobs[i].id == id)
            return true;
    return false;
}

struct finding {
    struct jobs_item *list;
    uint64_t last_id;
    size_t rows;
};

static bool row_look(const struct tide_job_row *row, void *arg)
{
    struct finding *finding = arg;
    struct jobs_item *list = finding->list;
    uint64_t items = 0;
    finding->last_id = row->id;
    finding->rows++;
    if (list->count < JOBS_ITEM_MAX && jobs_item_has(row->payload, list->item, &items) &&
        !is_listed(list, row->id)) {
        list->jobs[list->count].id = row->id;
        list->jobs[list->count++].items = items;
    }
    return true;
}

tide_status jobs_item_find(struct cli *cli, const struct tide_control_filter *named,
                           tide_row_state state, struct jobs_item *list)
{
    struct tide_job_filter filter = TIDE_JOB_FILTER_ANY;
    struct finding finding = {.list = list, .rows = PAGE};
    tide_status rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_control_filter_find(named, cli->ledger, &filter, &cli->err);
    filter.state = (int)state;
    filter.count_max = PAGE;
    while (rc == TIDE_OK && finding.rows == PAGE) {
        finding.rows = 0;
        rc = tide_ledger_jobs(cli->ledger, &filter, row_look, &finding, &cli->err);
        filter.before_id = finding.last_id;
        if (filter.id != 0)
            break;
    }
    return rc;
}
