/* pushes.c - what tells that an account changed: Pub/Sub's pushes (J6), notifications of OneDrive (D9), and
 * POST /api/sync.
 *
 * Both only wake the systems that have the account; what changed they find out themselves. */
#include "cli/serve/serve.h"

#include <stdio.h>

/* Tells every system that wants to hear of it.  TIDE_NOT_FOUND: none has that account. */
static tide_status tell_systems(struct cli_serve *serve, const char *subject, bool whole,
                                tide_error *err)
{
    const struct cli_engine *open = &serve->resident->open;
    tide_status rc = TIDE_NOT_FOUND;
    for (size_t i = 0; i < open->here.taken_count; i++) {
        const struct tide_system *system = open->here.taken[i];
        if (system->changed == NULL || open->states[i] == NULL)
            continue;
        const tide_status told = system->changed(open->states[i], subject, whole, err);
        if (told != TIDE_NOT_FOUND && (rc == TIDE_NOT_FOUND || rc == TIDE_OK))
            rc = told; /* the first failure counts */
    }
    return rc;
}

/* ---- notifications ---- */

static bool notified(void *arg, tide_text subscription, tide_text secret,
                     char subject_out[TIDE_SUBJECT_BYTES])
{
    struct cli_serve *serve = arg;
    const struct cli_engine *open = &serve->resident->open;
    for (size_t i = 0; i < open->here.taken_count; i++)
        if (open->here.taken[i]->notified != NULL && open->states[i] != NULL &&
            open->here.taken[i]->notified(open->states[i], subscription, secret, subject_out))
            return true;
    return false;
}

/* The listener runs: systems may ask their provider for notifications. */
static void hear(struct cli_serve *serve)
{
    const struct cli_engine *open = &serve->resident->open;
    for (size_t i = 0; serve->hook.url[0] != '\0' && i < open->here.taken_count; i++) {
        const struct tide_system *system = open->here.taken[i];
        tide_error err = {TIDE_OK, 0, ""};
        if (system->hear != NULL && open->states[i] != NULL &&
            system->hear(open->states[i], serve->hook.url, &err) != TIDE_OK)
            cli_resident_tell(serve->resident, TIDE_LOG_WARN, "no notifications", "detail",
                              err.text);
    }
}

/* ---- Pub/Sub ---- */

/* A push that cannot be noted has woken the systems all the same. */
static void note_push(struct cli_serve *serve, const char *address)
{
    const struct cli_engine *open = &serve->resident->open;
    for (size_t i = 0; i < open->here.taken_count; i++) {
        const struct tide_system *system = open->here.taken[i];
        tide_error err = {TIDE_OK, 0, ""};
        if (system->pushed == NULL || open->states[i] == NULL)
            continue;
        const tide_status rc = system->pushed(open->states[i], address, &err);
        if (rc != TIDE_OK && rc != TIDE_NOT_FOUND)
            cli_resident_tell(serve->resident, TIDE_LOG_WARN, "a push is not noted", "detail",
                              err.text);
    }
}

static tide_status wake(void *arg, const char *address, tide_error *err)
{
    TIDE_TRY(tell_systems(arg, address, false, err));
    note_push(arg, address);
    return TIDE_OK;
}

tide_status cli_pushes_start(struct cli_serve *serve)
{
    static const char *const issuers[] = {"https://accounts.google.com", "accounts.google.com",
                                          NULL};
    struct cli *cli = serve->cli;
    char address[64];
    if (!serve->hook.on)
        return TIDE_OK;
    const struct tide_webhook_options options = {
        .world = cli->world,
        .port = serve->hook.port,
        .rules = {issuers, serve->hook.audience, serve->hook.sender},
        .keys_url = serve->hook.keys,
        .log = &serve->resident->log,
        .wake = wake,
        .notified = serve->hook.url[0] == '\0' ? NULL : notified,
        .arg = serve,
    };
    tide_webhook *webhook = NULL;
    const tide_status rc = tide_webhook_start(&options, cli->mem, &webhook, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "Name another port with the setting serve.webhook.listen.");
    /* Metrics ask for it from other threads. */
    __atomic_store_n(&serve->webhook, webhook, __ATOMIC_RELEASE);
    (void)snprintf(address, sizeof address, "http://127.0.0.1:%u%s",
                   (unsigned)tide_webhook_port(webhook),
                   serve->hook.audience[0] != '\0' ? "/webhook/gmail" : "/webhook/onedrive");
    cli_resident_tell(serve->resident, TIDE_LOG_INFO, "takes pushes", "address", address);
    hear(serve);
    return TIDE_OK;
}

void cli_pushes_stopping(struct cli_serve *serve)
{
    tide_webhook_stopping(serve->webhook);
}

void cli_pushes_free(struct cli_serve *serve)
{
    tide_webhook *webhook = serve->webhook;
    __atomic_store_n(&serve->webhook, NULL, __ATOMIC_RELEASE);
    tide_webhook_free(webhook);
}

/* ---- POST /api/sync ---- */

/* false: it was answered with a problem. */
static bool sync_read(const struct tide_httpd_request *request, struct tide_httpd_answer *answer,
                      char account_out[TIDE_PUSH_ADDRESS_BYTES_MAX + 1], bool *whole_out)
{
    tide_error err = {TIDE_OK, 0, ""};
    tide_text account = TIDE_TEXT_NONE;
    json_t *body = NULL;
    tide_status rc = tide_json_parse(request->body, &body, &err);
    if (rc == TIDE_OK)
        rc = tide_json_get_text(body, "account", &account, &err);
    if (rc == TIDE_OK && (account.bytes == 0 || account.bytes > TIDE_PUSH_ADDRESS_BYTES_MAX))
        rc = tide_error_set(&err, TIDE_INVALID, "\"account\" is not the name of an account");
    if (rc == TIDE_OK && json_object_get(body, "force_full") != NULL)
        rc = tide_json_get_bool(body, "force_full", whole_out, &err);
    if (rc == TIDE_OK)
        (void)snprintf(account_out, TIDE_PUSH_ADDRESS_BYTES_MAX + 1, "%.*s", (int)account.bytes,
                       account.data);
    else
        tide_httpd_fail(answer, 400, "body", err.text,
                        &(struct tide_httpd_problem){
                            .help = "Send {\"account\":\"ada@example.com\"}; \"force_full\":true "
                                    "compares all of it."});
    json_decref(body);
    return rc == TIDE_OK;
}

void cli_pushes_sync(void *arg, const struct tide_httpd_request *request,
                     struct tide_httpd_answer *answer)
{
    struct cli_serve *serve = arg;
    char account[TIDE_PUSH_ADDRESS_BYTES_MAX + 1];
    tide_error err = {TIDE_OK, 0, ""};
    bool whole = false;
    if (!sync_read(request, answer, account, &whole))
        return;
    const tide_status rc = tell_systems(serve, account, whole, &err);
    if (rc == TIDE_OK) {
        tide_json json;
        tide_json_object(&json);
        tide_json_set_cstr(&json, "account", account);
        tide_httpd_json(answer, 202, &json);
    } else if (rc == TIDE_NOT_FOUND) {
        tide_httpd_fail(answer, 404, "account", "No account here has this name.",
                        &(struct tide_httpd_problem){.help = "Run: tidemark account list"});
    } else {
        tide_httpd_fail(answer, 503, tide_status_name(rc), err.text,
                        &(struct tide_httpd_problem){.retry_after_s = 1});
    }
}

/* ---- metrics ---- */

void cli_pushes_metrics(struct cli_serve *serve, tide_metrics *metrics)
{
    struct tide_webhook_counts counts;
    tide_webhook *webhook = __atomic_load_n(&serve->webhook, __ATOMIC_ACQUIRE);
    if (webhook == NULL)
        return;
    tide_webhook_count(webhook, &counts);
    tide_metric(metrics, "webhook_requests_total", "counter",
                "Requests to the webhook, by what they came to.");
    for (int i = 0; i < TIDE_WEBHOOK_OUTCOMES; i++)
        tide_metric_line(
            metrics, (double)counts.outcomes[i],
            TIDE_LABELS({"outcome", tide_webhook_outcome_name((tide_webhook_outcome)i)}));
    tide_metric(metrics, "webhook_request_duration_seconds", "histogram",
                "Time from the head of a push to the end of its answer.");
    tide_metric_histogram(metrics, &counts.duration, tide_histogram_local_us, NULL);
}
