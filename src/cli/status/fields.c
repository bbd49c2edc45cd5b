/* fields.c - what the JSON of `tidemark status` has beside the lines: systems, jobs, lanes, pace. */
#include "cli/status/status.h"

void status_totals_add(struct status_totals *totals, const struct tide_job_count *count)
{
    if (count->state == TIDE_ROW_RUNNING)
        totals->running += count->count;
    else if (count->state == TIDE_ROW_FAILED)
        totals->failed += count->count;
    else if (count->state == TIDE_ROW_PENDING)
        totals->waiting += count->count;
    totals->blocked += count->blocked;
    totals->delayed += count->delayed;
}

void status_totals_json(const struct status_totals *totals, tide_json *json)
{
    tide_json jobs;
    tide_json_object(&jobs);
    tide_json_set_u64(&jobs, "running", totals->running);
    tide_json_set_u64(&jobs, "waiting", totals->waiting);
    tide_json_set_u64(&jobs, "blocked", totals->blocked);
    tide_json_set_u64(&jobs, "delayed", totals->delayed);
    tide_json_set_u64(&jobs, "failed", totals->failed);
    tide_json_set(json, "jobs", &jobs);
}

void status_systems(const struct cli *cli, tide_json *json)
{
    tide_json list;
    tide_json_array(&list);
    for (const struct tide_system *const *system = cli->systems; *system != NULL; system++) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "name", (*system)->name);
        tide_json_set_cstr(&one, "provider", (*system)->provider);
        tide_json_set_cstr(&one, "unit", (*system)->unit);
        tide_json_set_cstr(&one, "subject", (*system)->subject);
        tide_json_append(&list, &one);
    }
    tide_json_set(json, "systems", &list);
}

/* Copies a field as it is; one that is missing is null. */
static void copy(const json_t *from, const char *name, tide_json *to)
{
    json_t *value = json_object_get(from, name);
    if (value == NULL)
        tide_json_set_null(to, name);
    else
        tide_json_set(to, name, &(tide_json){.value = json_incref(value)});
}

void status_lanes(const json_t *snapshot, tide_json *json)
{
    copy(snapshot, "lanes", json);
}

void status_pace(const json_t *account, tide_json *json)
{
    static const char *const fields[] = {"rate_units_per_s", "rate_max_units_per_s",
                                         "in_flight",        "in_flight_max",
                                         "workers",          "calls",
                                         "calls_by_class",   "errors_by_code",
                                         "retried",          "split"};
    tide_json pace;
    if (account == NULL) {
        tide_json_set_null(json, "pace");
        return;
    }
    tide_json_object(&pace);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        copy(account, fields[i], &pace);
    tide_json_set(json, "pace", &pace);
}
