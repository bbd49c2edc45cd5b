/* import_job.c - mail.import: the import in the process that has the home (import.h). */
#include "mail/files/import.h"

#include "base/hash.h"
#include "mail/inside.h"
#include "mail/result.h"
#include "settings/settings.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

enum { TELL_MS = 500, PATHS_MAX = 4096 };

/* ---- what is asked and answered ---- */

static const struct {
    const char *name;
    size_t at;
} counts[] = {
    {"files", offsetof(struct tide_imported, files)},
    {"files_skipped", offsetof(struct tide_imported, files_skipped)},
    {"messages", offsetof(struct tide_imported, messages)},
    {"stored", offsetof(struct tide_imported, stored)},
    {"held", offsetof(struct tide_imported, held)},
    {"there", offsetof(struct tide_imported, there)},
    {"empty", offsetof(struct tide_imported, empty)},
    {"too_long", offsetof(struct tide_imported, too_long)},
    {"takeout", offsetof(struct tide_imported, takeout)},
    {"by_header", offsetof(struct tide_imported, by_header)},
    {"by_file", offsetof(struct tide_imported, by_file)},
    {"undated", offsetof(struct tide_imported, undated)},
    {"changed", offsetof(struct tide_imported, changed)},
    {"bytes", offsetof(struct tide_imported, bytes)},
    {"read_bytes", offsetof(struct tide_imported, read_bytes)},
};
enum { COUNTS = sizeof counts / sizeof counts[0] };
_Static_assert(COUNTS * sizeof(uint64_t) == sizeof(struct tide_imported), "a count is missing");

void tide_import_ask(const struct tide_import_ask *ask, tide_json *payload)
{
    tide_json paths;
    tide_json_array(&paths);
    for (size_t i = 0; i < ask->paths_count; i++)
        tide_json_append_cstr(&paths, ask->paths[i]);
    tide_json_set_cstr(payload, "email", ask->email);
    if (ask->label != NULL)
        tide_json_set_cstr(payload, "label", ask->label);
    tide_json_set(payload, "paths", &paths);
}

void tide_import_dedupe(const char *email, char dedupe_out[64])
{
    (void)snprintf(dedupe_out, 64, "import/%016" PRIx64,
                   tide_hash(TIDE_HASH_START, tide_text_of(email)));
}

void tide_import_answer(const json_t *result, struct tide_import_answer *answer_out)
{
    const char *error = json_string_value(json_object_get(result, "error"));
    *answer_out = (struct tide_import_answer){
        .indexed = (uint64_t)json_integer_value(json_object_get(result, "indexed")),
        .status = (tide_status)json_integer_value(json_object_get(result, "status")),
    };
    for (size_t i = 0; i < COUNTS; i++)
        *(uint64_t *)((char *)&answer_out->imported + counts[i].at) =
            (uint64_t)json_integer_value(json_object_get(result, counts[i].name));
    (void)snprintf(answer_out->error, sizeof answer_out->error, "%s", error == NULL ? "" : error);
}

/* ---- the job ---- */

struct running {
    tide_mail *mail;
    tide_job *job;
    uint64_t told_ms, indexed;
};

static tide_status tell(const struct running *running, const struct tide_imported *imported,
                        const tide_error *how, tide_error *err)
{
    tide_json result;
    tide_json_object(&result);
    tide_json_set_u64(&result, "status", (uint64_t)how->status);
    tide_json_set_cstr(&result, "error", how->text);
    tide_json_set_u64(&result, "indexed", running->indexed);
    for (size_t i = 0; i < COUNTS; i++)
        tide_json_set_u64(&result, counts[i].name,
                          *(const uint64_t *)((const char *)imported + counts[i].at));
    return tide_result_put(running->mail->engine, running->job, &result, err);
}

static void show(const struct tide_imported *imported, void *arg)
{
    struct running *running = arg;
    const uint64_t now_ms = tide_world_now_ms(running->mail->world);
    const tide_error fine = {TIDE_OK, 0, ""};
    tide_job_beat(running->job, 0);
    if (running->told_ms != 0 && now_ms - running->told_ms < TELL_MS)
        return;
    running->told_ms = now_ms;
    (void)tell(running, imported, &fine, NULL); /* the last one counts */
}

static void count_running(tide_mail *mail, int change)
{
    tide_lock_take(mail->world, mail->lock);
    mail->imports = (uint32_t)((int)mail->imports + change);
    tide_lock_drop(mail->world, mail->lock);
}

static tide_status import(struct running *running, const struct tide_import_ask *ask,
                          struct tide_imported *imported, tide_error *err)
{
    tide_mail *mail = running->mail;
    struct tide_mail_user *user = NULL;
    char dir[4096 + 256];
    if (ask->email == NULL || !tide_import_is_address(ask->email))
        return tide_error_set(err, TIDE_INVALID, "no address of an archive");
    for (size_t i = 0; i < ask->paths_count; i++)
        if (ask->paths[i][0] != '/') /* this process has another directory */
            return tide_error_set(err, TIDE_INVALID, "%.300s is not an absolute path",
                                  ask->paths[i]);
    TIDE_TRY(tide_mail_user_named(mail, ask->email, &user, err));
    tide_mail_dir(mail->archive_dir, ask->email, dir, sizeof dir);
    const struct tide_import wanted = {
        .archive = user->archive,
        .label = ask->label,
        .now_ms = (int64_t)tide_world_now_unix_ms(mail->world),
        .cancel = tide_job_cancellation(running->job),
        .disk_path = dir,
        .free_min_bytes = tide_engine_setting_u64(mail->engine, 0, TIDE_SET_DISK_FREE_MIN),
        .progress = show,
        .progress_arg = running};
    show(imported, running); /* it has begun */
    TIDE_TRY(tide_import_run(mail->world, &wanted, ask->paths, ask->paths_count, mail->mem,
                             imported, err));
    return tide_import_index(&wanted, imported, &running->indexed, err);
}

static tide_status import_payload(struct running *running, const json_t *payload, tide_error *err)
{
    tide_mail *mail = running->mail;
    const json_t *named = json_object_get(payload, "paths");
    const char **paths = tide_mem_array(mail->mem, PATHS_MAX, sizeof *paths);
    struct tide_import_ask ask = {.email = json_string_value(json_object_get(payload, "email")),
                                  .label = json_string_value(json_object_get(payload, "label")),
                                  .paths = paths};
    struct tide_imported imported = {0};
    tide_error own = {TIDE_OK, 0, ""};
    if (paths == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for an import");
    size_t index = 0;
    const json_t *path = NULL;
    json_array_foreach(named, index, path) if (json_is_string(path) && index < PATHS_MAX)
        paths[ask.paths_count++] = json_string_value(path);
    count_running(mail, 1);
    own.status = import(running, &ask, &imported, &own);
    tide_mem_free(mail->mem, paths, PATHS_MAX * sizeof *paths);
    const bool stopped = tide_canceled(tide_job_cancellation(running->job)) != TIDE_CANCEL_NONE;
    const tide_status told = tell(running, &imported, &own, err);
    count_running(mail, -1);
    return stopped ? tide_error_set(err, TIDE_CANCELED, "interrupted") : told;
}

tide_status tide_mail_import(tide_job *job, void *context, tide_error *err)
{
    struct running running = {.mail = context, .job = job};
    json_auto_t *payload = NULL;
    TIDE_TRY(tide_json_parse(tide_job_payload(job), &payload, err));
    return tide_engine_asked_here(running.mail->engine, payload)
               ? import_payload(&running, payload, err)
               : TIDE_OK;
}
