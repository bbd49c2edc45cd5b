/* chosen.c - mail.choose: what a run would remove, for the command that asked (remove.h).
 *
 * Its result (mail/result.h) is the manifest to confirm, or for a dry run the sums and refusals. */
#include "mail/remove/inside.h"

#include "mail/result.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { REFUSALS_MAX = 100000 };

/* ---- the request ---- */

void tide_archiver_choose_ask(const struct tide_archiving *ask, bool dry, tide_json *payload)
{
    tide_json_set_u64(payload, "mode", ask->mode);
    tide_json_set_cstr(payload, "query", ask->query);
    tide_json_set_u64(payload, "now", ask->now_ms);
    tide_json_set_u64(payload, "limit", ask->limit);
    tide_json_set_bool(payload, "read_back", ask->read_back);
    tide_json_set_bool(payload, "with_history", ask->with_history);
    tide_json_set_bool(payload, "dry", dry);
}

static tide_status ask_read(const json_t *payload, struct tide_archiving *ask, bool *dry_out,
                            tide_error *err)
{
    tide_text query = TIDE_TEXT_NONE;
    uint64_t mode = 0;
    tide_status rc = tide_json_get_text(payload, "query", &query, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "mode", &mode, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "now", &ask->now_ms, err);
    if (rc == TIDE_OK)
        rc = tide_json_get_u64(payload, "limit", &ask->limit, err);
    if (rc == TIDE_OK && mode > TIDE_REMOVE_FOR_GOOD)
        rc = tide_error_set(err, TIDE_INVALID, "there is no such mode of removal");
    ask->query = query.data;
    ask->mode = (tide_removal_mode)(mode & 3U);
    ask->read_back = json_is_true(json_object_get(payload, "read_back"));
    ask->with_history = json_is_true(json_object_get(payload, "with_history"));
    *dry_out = json_is_true(json_object_get(payload, "dry"));
    return rc;
}

/* ---- sums ---- */

struct sums {
    uint64_t messages, bytes, refused, batches;
    uint64_t batch_messages, batch_bytes;
    uint64_t unsure; /* whose labels must be fetched */
    json_t *years;   /* "2019" to [messages, bytes] */
    json_t *labels;  /* id to [messages, bytes] */
    tide_json refusals;
};

static void sum_add(json_t *sums, const char *name, uint64_t bytes)
{
    json_t *sum = json_object_get(sums, name);
    if (sum == NULL) {
        sum = json_pack("[i,i]", 0, 0);
        (void)json_object_set_new(sums, name, sum);
    }
    json_t *messages = json_array_get(sum, 0);
    json_t *total = json_array_get(sum, 1);
    (void)json_integer_set(messages, json_integer_value(messages) + 1);
    (void)json_integer_set(total, json_integer_value(total) + (json_int_t)bytes);
}

static void sum_year(struct sums *sums, const struct tide_stored *stored)
{
    const time_t seconds = (time_t)(stored->internal_ms / 1000);
    struct tm local;
    char year[16] = "-";
    if (stored->internal_ms > 0 && localtime_r(&seconds, &local) != NULL)
        (void)strftime(year, sizeof year, "%Y", &local);
    sum_add(sums->years, year, stored->bytes);
}

static void sum_labels(struct sums *sums, const struct tide_candidate *candidate)
{
    for (const char *at = candidate->labels; *at != '\0';) {
        char label[600];
        const size_t word = strcspn(at, " ");
        (void)snprintf(label, sizeof label, "%.*s", (int)word, at);
        sum_add(sums->labels, label, candidate->stored.bytes);
        at += word + (at[word] == ' ');
    }
}

/* Counts batches as batch.c forms them. */
static void sum_calls(struct sums *sums, const struct tide_candidate *candidate)
{
    const uint64_t bytes = candidate->stored.bytes;
    sums->unsure += candidate->unsure;
    const uint64_t most = sums->unsure > 0 ? TIDE_REMOVE_UNSURE_IDS : TIDE_REMOVE_IDS;
    if (sums->batch_messages >= most ||
        (sums->batch_messages > 0 && sums->batch_bytes + bytes > TIDE_REMOVE_BYTES))
        sums->batch_messages = sums->batch_bytes = 0;
    sums->batches += sums->batch_messages == 0;
    sums->batch_messages++;
    sums->batch_bytes += bytes;
}

static bool sum_one(const struct tide_candidate *candidate, void *arg)
{
    struct sums *sums = arg;
    if (candidate->refused == NULL) {
        sums->messages++;
        sums->bytes += candidate->stored.bytes;
        sum_calls(sums, candidate);
        sum_year(sums, &candidate->stored);
        sum_labels(sums, candidate);
    } else if (++sums->refused <= REFUSALS_MAX) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "id", candidate->stored.gmail_id);
        tide_json_set_i64(&one, "internal_unix_ms", candidate->stored.internal_ms);
        tide_json_set_cstr(&one, "reason", candidate->refused);
        tide_json_append(&sums->refusals, &one);
    }
    return true;
}

/* As a list, in the order in which they were found. */
static void sums_list(tide_json *result, const char *key, json_t *sums)
{
    tide_json list;
    const char *name = NULL;
    json_t *sum = NULL;
    tide_json_array(&list);
    json_object_foreach(sums, name, sum)
    {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "name", name);
        tide_json_set_u64(&one, "messages", (uint64_t)json_integer_value(json_array_get(sum, 0)));
        tide_json_set_u64(&one, "bytes", (uint64_t)json_integer_value(json_array_get(sum, 1)));
        tide_json_append(&list, &one);
    }
    tide_json_set(result, key, &list);
    json_decref(sums);
}

static tide_status dry(tide_mail *mail, tide_job *job, const struct tide_archiving *ask,
                       tide_json *result, tide_error *err)
{
    struct sums sums = {.years = json_object(), .labels = json_object()};
    tide_json_array(&sums.refusals);
    const tide_status rc = tide_archiver_choose(mail, ask, job, sum_one, &sums, err);
    tide_json_set_u64(result, "messages", sums.messages);
    tide_json_set_u64(result, "bytes", sums.bytes);
    tide_json_set_u64(result, "batches", sums.batches);
    tide_json_set_u64(result, "last_batch", sums.batch_messages);
    tide_json_set_u64(result, "unsure", sums.unsure);
    sums_list(result, "years", sums.years);
    sums_list(result, "labels", sums.labels);
    tide_json_set(result, "refused", &sums.refusals);
    return rc;
}

/* ---- the job ---- */

static tide_status choose_run(tide_job *job, tide_mail *mail, tide_error *err)
{
    struct tide_archiving ask = {.email = NULL};
    struct tide_mail_user *user = NULL;
    struct tide_manifest manifest = {.id = 0};
    json_auto_t *payload = NULL;
    bool is_dry = false;
    tide_json result;
    tide_json_object(&result);
    tide_status rc = tide_json_parse(tide_job_payload(job), &payload, err);
    if (rc == TIDE_OK && !tide_engine_asked_here(mail->engine, payload))
        rc = tide_error_set(err, TIDE_PERMANENT, "this was asked of a process that has ended");
    if (rc == TIDE_OK)
        rc = ask_read(payload, &ask, &is_dry, err);
    if (rc == TIDE_OK)
        rc = tide_mail_user(mail, tide_job_account(job), &user, err);
    ask.email = rc == TIDE_OK ? user->email : "";
    if (rc == TIDE_OK && is_dry)
        rc = dry(mail, job, &ask, &result, err);
    else if (rc == TIDE_OK)
        rc = tide_archiver_plan(mail, &ask, job, &manifest, err);
    tide_json_set_u64(&result, "manifest", manifest.id);
    if (rc == TIDE_OK)
        rc = tide_result_put(mail->engine, job, &result, err);
    else
        tide_json_done(&result);
    return rc;
}

tide_status tide_mail_choose(tide_job *job, void *context, tide_error *err)
{
    return tide_mail_ended(context, job, choose_run(job, context, err), err);
}
