/* archive_jobs.c - the jobs of `mail archive`, in our engine or in the process that has the directory:
 * syncs, choosing, batches. */
#include "mail/commands/archive.h"

#include "mail/result.h"
#include "mail/status.h"
#include "net/judge_google.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TICK_MS = 200 };

/* ---- signing in ---- */

tide_status archiving_needs_scope(struct archiving *archiving)
{
    (void)tide_error_set(&archiving->cli->err, TIDE_AUTH,
                         "the sign-in has no permission to %s mail",
                         archiving->ask.mode == TIDE_REMOVE_FOR_GOOD ? "delete" : "change");
    return mail_home_sign_in(archiving->cli, archiving->email,
                             tide_archiver_purpose(archiving->ask.mode));
}

static tide_status signed_out(struct archiving *archiving)
{
    return mail_home_sign_in(archiving->cli, archiving->email,
                             tide_archiver_purpose(archiving->ask.mode));
}

/* ---- jobs ---- */

tide_rows archiving_rows(const struct archiving *archiving)
{
    return tide_ledger_rows(archiving->cli->ledger);
}

tide_status archiving_open(struct archiving *archiving)
{
    cli_ask_close(&archiving->ask_of);
    const tide_status rc =
        mail_home_ask(archiving->cli, &archiving->home, archiving->email, &archiving->ask_of);
    archiving->handed_over = archiving->home.engine == NULL;
    return rc;
}

/* An interrupted run asks for no more; what another process does for it is canceled. */
static tide_status interrupted(struct archiving *archiving)
{
    struct cli_ask *ask = &archiving->ask_of;
    tide_status rc = TIDE_TIMEOUT;
    const bool ends =
        ask->engine == NULL && strcmp(ask->kind, TIDE_MAIL_PLAN_KIND) != 0 && cli_ask_cancel(ask);
    while (ends && rc == TIDE_TIMEOUT)
        rc = mail_home_wait(archiving->cli, &archiving->home, ask);
    archiving->cli->hint[0] = '\0';
    return cli_fail(archiving->cli, TIDE_STOPPED, NULL, "interrupted");
}

static tide_status wait_for_job(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    tide_status rc = TIDE_TIMEOUT;
    while (rc == TIDE_TIMEOUT && !cli_interrupted(cli)) {
        archiving_show(archiving, false);
        rc = mail_home_wait(cli, &archiving->home, &archiving->ask_of);
    }
    if (rc == TIDE_TIMEOUT)
        return interrupted(archiving);
    if (rc == TIDE_AUTH)
        return signed_out(archiving);
    return rc == TIDE_PERMANENT && tide_google_lacks_scope(cli->err.text)
               ? archiving_needs_scope(archiving)
               : rc;
}

typedef void payload_fn(const struct archiving *archiving, tide_json *payload);

/* Asks for a job and waits for it.  If the other process ends first, we take over. */
static tide_status do_job(struct archiving *archiving, const char *kind, const char *dedupe,
                          payload_fn *fill)
{
    tide_status rc = TIDE_OK;
    do {
        tide_json payload;
        if (archiving->ask_of.gone)
            rc = archiving_open(archiving);
        if (rc != TIDE_OK)
            return rc;
        tide_json_object(&payload);
        fill(archiving, &payload);
        rc = cli_ask_job(&archiving->ask_of, kind, archiving->email, dedupe, &payload);
        if (rc == TIDE_OK)
            rc = wait_for_job(archiving);
    } while (rc != TIDE_OK && archiving->ask_of.gone);
    return rc;
}

/* ---- syncing ---- */

static void plan_payload(const struct archiving *archiving, tide_json *payload)
{
    /* The user waits: exact bytes of held copies, which may take hours, are for a sync. */
    const struct tide_mail_run run = {.email = archiving->email, .inexact = true};
    struct tide_mail_request request;
    tide_mail_request(&run, archiving->account, &request);
    tide_json_done(payload);
    payload->value = NULL;
    (void)tide_json_parse(tide_text_of(request.payload), &payload->value, NULL);
}

/* Whether nothing of it is left to do.  Our engine may be idle before, with jobs that wait. */
static tide_status settled(struct archiving *archiving, bool *settled_out)
{
    struct cli *cli = archiving->cli;
    struct tide_mail_look look;
    tide_mail_look_init(&look, cli->mem);
    const tide_status rc = tide_mail_look(cli->ledger, archiving->email, true, &look, &cli->err);
    *settled_out = rc == TIDE_OK && tide_mail_look_settled(&look);
    tide_mail_look_done(&look);
    return rc;
}

static tide_status wait_until_settled(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    tide_engine *engine = archiving->home.engine;
    bool over = false;
    tide_status rc = settled(archiving, &over);
    while (rc == TIDE_OK && !over) {
        if (cli_interrupted(cli))
            return cli_fail(cli, TIDE_STOPPED, NULL, "interrupted");
        if (engine == NULL) {
            (void)tide_world_sleep_until(cli->world,
                                         tide_world_now_us(cli->world) + TICK_MS * 1000ull, NULL);
            rc = cli_ask_is_there(&archiving->ask_of);
        } else {
            rc = tide_engine_wait(engine, TICK_MS, &cli->err);
            over = rc == TIDE_OK;
            rc = rc == TIDE_TIMEOUT ? TIDE_OK : rc;
        }
        if (rc == TIDE_OK && !over)
            rc = settled(archiving, &over);
        if (rc == TIDE_OK && !over)
            rc = mail_home_can_run(cli, &archiving->home, archiving->email);
    }
    return rc == TIDE_AUTH ? signed_out(archiving) : rc;
}

tide_status archiving_sync(struct archiving *archiving)
{
    char dedupe[64];
    tide_status rc = TIDE_OK;
    if (!archiving->sync)
        return TIDE_OK;
    (void)snprintf(dedupe, sizeof dedupe, "plan/%" PRIu32, archiving->account);
    do {
        rc = do_job(archiving, TIDE_MAIL_PLAN_KIND, dedupe, plan_payload);
        if (rc == TIDE_OK)
            rc = wait_until_settled(archiving);
    } while (rc != TIDE_OK && archiving->ask_of.gone);
    return rc;
}

static void batch_payload(const struct archiving *archiving, tide_json *payload)
{
    const uint64_t now_ms = tide_world_now_unix_ms(archiving->cli->world);
    tide_archiver_batch_ask(archiving->manifest.id, 0,
                            archiving->handed_over ? now_ms + TIDE_REMOVE_ASKED_MS : 0, payload);
}

tide_status archiving_batch(struct archiving *archiving)
{
    char dedupe[64];
    tide_archiver_batch_dedupe(archiving->account, dedupe);
    const tide_status rc = cli_ask_clear(&archiving->ask_of, TIDE_MAIL_REMOVE, archiving->email);
    return rc != TIDE_OK ? rc : do_job(archiving, TIDE_MAIL_REMOVE, dedupe, batch_payload);
}

static void choose_payload(const struct archiving *archiving, tide_json *payload)
{
    tide_archiver_choose_ask(&archiving->ask, archiving->dry, payload);
}

tide_status archiving_choose(struct archiving *archiving, json_t **result_out)
{
    struct cli *cli = archiving->cli;
    archiving->ask.read_back = archiving->dry && cli_flag(cli, "quick") == NULL;
    archiving->ask.with_history = archiving->dry;
    const tide_status rc = do_job(archiving, TIDE_MAIL_CHOOSE, "", choose_payload);
    if (rc == TIDE_OK)
        return tide_result_get(archiving_rows(archiving), archiving->ask_of.job, result_out,
                               &cli->err);
    return cli_hint(cli, rc,
                    rc == TIDE_INVALID ? "`tidemark mail search` accepts the same queries." : NULL);
}
