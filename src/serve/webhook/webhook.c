#include "serve/webhook/webhook.h"

#include "serve/webhook/limits.h"
#include "serve/webhook/notice.h"

#include <stdio.h>

enum { TELL_MS = 60000 }; /* between two log lines of one outcome (HOK1) */

struct tide_webhook {
    struct tide_webhook_options options;
    tide_mem *mem;
    struct tide_httpd_route routes[TIDE_WEBHOOK_ROUTES];
    size_t routes_count;
    tide_issuer *issuer;
    tide_waker *waker;
    tide_httpd *server; /* atomic: its handlers run before its start returned it */
    bool stopping;      /* atomic */
    uint64_t outcomes[TIDE_WEBHOOK_OUTCOMES]; /* atomic, as `duration` */
    tide_histogram duration;

    /* Of the server's thread alone. */
    struct webhook_rate taken, refused;
    struct webhook_good good;
    struct webhook_seen seen;
    uint64_t told_ms[TIDE_WEBHOOK_OUTCOMES]; /* 0: never */
};

const char *tide_webhook_outcome_name(tide_webhook_outcome outcome)
{
    static const char *const names[] = {
        [TIDE_WEBHOOK_ACCEPTED] = "accepted", [TIDE_WEBHOOK_REPEATED] = "repeated",
        [TIDE_WEBHOOK_UNKNOWN] = "unknown",   [TIDE_WEBHOOK_MALFORMED] = "malformed",
        [TIDE_WEBHOOK_NO_TOKEN] = "no_token", [TIDE_WEBHOOK_BAD_TOKEN] = "bad_token",
        [TIDE_WEBHOOK_FORGED] = "forged",     [TIDE_WEBHOOK_NO_KEYS] = "no_keys",
        [TIDE_WEBHOOK_LIMITED] = "limited",   [TIDE_WEBHOOK_STOPPING] = "stopping",
        [TIDE_WEBHOOK_REFUSED] = "refused",   [TIDE_WEBHOOK_VALIDATED] = "validated",
    };
    return names[outcome];
}

/* ---- judging a request ---- */

/* What a request comes to; `detail` is for the log. */
struct verdict {
    tide_webhook_outcome outcome;
    bool wait; /* the issuer's keys are being fetched */
    char detail[160];
};

static struct verdict verdict_of(tide_webhook_outcome outcome, const char *detail)
{
    struct verdict verdict = {.outcome = outcome};
    (void)snprintf(verdict.detail, sizeof verdict.detail, "%s", detail);
    return verdict;
}

static struct verdict judge_token(tide_webhook *webhook, tide_text text,
                                  struct tide_token *token_out)
{
    const tide_token_fault fault =
        tide_token_read(text, &webhook->options.rules,
                        tide_world_now_unix_ms(webhook->options.world), webhook->mem, token_out);
    if (fault == TIDE_TOKEN_NO_MEMORY)
        return verdict_of(TIDE_WEBHOOK_NO_KEYS, tide_token_fault_name(fault));
    if (fault != TIDE_TOKEN_GOOD)
        return verdict_of(TIDE_WEBHOOK_BAD_TOKEN, tide_token_fault_name(fault));
    switch (tide_issuer_check(webhook->issuer, token_out)) {
    case TIDE_ISSUER_SIGNED:
        return verdict_of(TIDE_WEBHOOK_ACCEPTED, "");
    case TIDE_ISSUER_FORGED:
        return verdict_of(TIDE_WEBHOOK_FORGED, "the signature is not the issuer's");
    case TIDE_ISSUER_WAIT: {
        struct verdict verdict = verdict_of(TIDE_WEBHOOK_NO_KEYS, "the issuer does not answer");
        verdict.wait = true;
        return verdict;
    }
    case TIDE_ISSUER_AWAY:
        break;
    }
    return verdict_of(TIDE_WEBHOOK_NO_KEYS, "the issuer's keys cannot be fetched");
}

/* The token is good. */
static struct verdict judge_push(tide_webhook *webhook, tide_text body, uint64_t now_ms)
{
    struct tide_push push;
    tide_error err = {TIDE_OK, 0, ""};
    if (!webhook_rate_take(&webhook->taken, now_ms))
        return verdict_of(TIDE_WEBHOOK_LIMITED, "too many pushes");
    const tide_status rc = tide_push_read(body, webhook->mem, &push, &err);
    if (rc != TIDE_OK)
        return verdict_of(rc == TIDE_NO_MEMORY ? TIDE_WEBHOOK_LIMITED : TIDE_WEBHOOK_MALFORMED,
                          err.text);
    if (webhook_seen_has(&webhook->seen, push.message))
        return verdict_of(TIDE_WEBHOOK_REPEATED, "");
    if (!tide_waker_add(webhook->waker, push.address, push.history_id))
        return verdict_of(TIDE_WEBHOOK_LIMITED, "too many addresses");
    webhook_seen_add(&webhook->seen, push.message);
    return verdict_of(TIDE_WEBHOOK_ACCEPTED, "");
}

static struct verdict judge(tide_webhook *webhook, const struct tide_httpd_request *request)
{
    const uint64_t now_ms = tide_world_now_ms(webhook->options.world);
    const tide_text text = tide_httpd_credentials(request->head, "Bearer");
    struct tide_token token;
    if (__atomic_load_n(&webhook->stopping, __ATOMIC_ACQUIRE))
        return verdict_of(TIDE_WEBHOOK_STOPPING, "");
    const bool known =
        text.data != NULL &&
        webhook_good_has(&webhook->good, text, tide_world_now_unix_ms(webhook->options.world));
    if (!known && !webhook_rate_has(&webhook->refused, now_ms)) /* HOK5 */
        return verdict_of(TIDE_WEBHOOK_LIMITED, "too many refused requests");
    struct verdict verdict = text.data == NULL
                                 ? verdict_of(TIDE_WEBHOOK_NO_TOKEN, "there is no token")
                                 : judge_token(webhook, text, &token);
    if (verdict.outcome == TIDE_WEBHOOK_ACCEPTED) {
        if (!known)
            webhook_good_add(&webhook->good, text, token.expires_unix_s);
        return judge_push(webhook, request->body, now_ms);
    }
    if (!verdict.wait || request->last)
        (void)webhook_rate_take(&webhook->refused, now_ms);
    return verdict;
}

/* ---- answering ---- */

static void count(tide_webhook *webhook, tide_webhook_outcome outcome)
{
    __atomic_fetch_add(&webhook->outcomes[outcome], 1, __ATOMIC_RELAXED);
}

/* Why a request was refused is for the log alone: the answer is the same for all tokens. */
static void tell(tide_webhook *webhook, const struct verdict *verdict)
{
    const uint64_t now_ms = tide_world_now_ms(webhook->options.world);
    uint64_t *told_ms = &webhook->told_ms[verdict->outcome];
    if (verdict->detail[0] == '\0' || (*told_ms != 0 && now_ms - *told_ms < TELL_MS))
        return;
    *told_ms = now_ms;
    tide_log_event(webhook->options.log, TIDE_LOG_WARN,
                   tide_world_now_unix_ms(webhook->options.world), "a push was refused",
                   TIDE_F_CSTR("outcome", tide_webhook_outcome_name(verdict->outcome)),
                   TIDE_F_CSTR("detail", verdict->detail));
}

static void answer_with(const struct verdict *verdict, struct tide_httpd_answer *answer)
{
    const struct tide_httpd_problem soon = {.retry_after_s = 1};
    switch (verdict->outcome) {
    case TIDE_WEBHOOK_NO_TOKEN:
    case TIDE_WEBHOOK_BAD_TOKEN:
    case TIDE_WEBHOOK_FORGED:
        tide_httpd_fail(answer, 401, "token", "This needs a token of the configured sender.", NULL);
        tide_httpd_set(answer, "WWW-Authenticate", "Bearer");
        break;
    case TIDE_WEBHOOK_MALFORMED:
        tide_httpd_fail(answer, 400, "body", "The body is not a push.", NULL);
        break;
    case TIDE_WEBHOOK_LIMITED:
        tide_httpd_fail(answer, 429, "often", "Too many requests.", &soon);
        break;
    case TIDE_WEBHOOK_NO_KEYS:
    case TIDE_WEBHOOK_STOPPING:
        tide_httpd_fail(answer, 503, "later", "This cannot be checked now.", &soon);
        break;
    default:
        answer->status = 204;
        break;
    }
}

static void post(void *arg, const struct tide_httpd_request *request,
                 struct tide_httpd_answer *answer)
{
    tide_webhook *webhook = arg;
    const struct verdict verdict = judge(webhook, request);
    if (verdict.wait && !request->last) {
        tide_httpd_hold(answer, TIDE_WEBHOOK_HOLD_MS);
        return;
    }
    /* The waker counts what it was given, when it knows whether the address is (HOK4). */
    if (verdict.outcome != TIDE_WEBHOOK_ACCEPTED)
        count(webhook, verdict.outcome);
    tell(webhook, &verdict);
    answer_with(&verdict, answer);
}

/* ---- notifications ---- */

struct hearing {
    tide_webhook *webhook;
    unsigned good, full;
};

static void hear(const struct tide_notice *notice, void *arg)
{
    struct hearing *hearing = arg;
    tide_webhook *webhook = hearing->webhook;
    char subject[TIDE_PUSH_ADDRESS_BYTES_MAX + 1];
    if (!webhook->options.notified(webhook->options.arg, notice->subscription, notice->secret,
                                   subject))
        return;
    if (webhook_rate_take(&webhook->taken, tide_world_now_ms(webhook->options.world)) &&
        tide_waker_add(webhook->waker, subject, ""))
        hearing->good++;
    else
        hearing->full++;
}

static struct verdict judge_notice(tide_webhook *webhook, tide_text body)
{
    const uint64_t now_ms = tide_world_now_ms(webhook->options.world);
    struct hearing hearing = {.webhook = webhook};
    if (__atomic_load_n(&webhook->stopping, __ATOMIC_ACQUIRE))
        return verdict_of(TIDE_WEBHOOK_STOPPING, "");
    const tide_status rc = tide_notices_hear(body, hear, &hearing);
    if (hearing.full > 0)
        return verdict_of(TIDE_WEBHOOK_LIMITED, "too many notifications");
    if (hearing.good > 0)
        return verdict_of(TIDE_WEBHOOK_ACCEPTED, "");
    if (!webhook_rate_take(&webhook->refused, now_ms)) /* HOK5 */
        return verdict_of(TIDE_WEBHOOK_LIMITED, "too many refused requests");
    return rc == TIDE_OK
               ? verdict_of(TIDE_WEBHOOK_FORGED, "no subscription of ours has this secret")
               : verdict_of(TIDE_WEBHOOK_MALFORMED, "the body is not a notification");
}

/* The sender gets back what it sent, as text that no browser takes for a page: it tells nothing. */
static struct verdict judge_ticket(tide_webhook *webhook, tide_text ticket,
                                   struct tide_httpd_answer *answer)
{
    const uint64_t now_ms = tide_world_now_ms(webhook->options.world);
    if (ticket.bytes == 0 || ticket.bytes > TIDE_WEBHOOK_TICKET_BYTES_MAX)
        return verdict_of(TIDE_WEBHOOK_MALFORMED, "a validation token of no or too many bytes");
    if (!webhook_rate_take(&webhook->taken, now_ms))
        return verdict_of(TIDE_WEBHOOK_LIMITED, "too many validations");
    tide_httpd_text(answer, 200, "text/plain", ticket);
    return verdict_of(TIDE_WEBHOOK_VALIDATED, "");
}

static void notice_post(void *arg, const struct tide_httpd_request *request,
                        struct tide_httpd_answer *answer)
{
    tide_webhook *webhook = arg;
    const tide_text ticket = tide_httpd_param(request, "validationToken");
    const struct verdict verdict = ticket.data != NULL ? judge_ticket(webhook, ticket, answer)
                                                       : judge_notice(webhook, request->body);
    if (verdict.outcome != TIDE_WEBHOOK_ACCEPTED)
        count(webhook, verdict.outcome);
    tell(webhook, &verdict);
    /* Whether a secret is right is told to nobody. */
    if (verdict.outcome == TIDE_WEBHOOK_ACCEPTED || verdict.outcome == TIDE_WEBHOOK_FORGED)
        answer->status = 202;
    else if (verdict.outcome != TIDE_WEBHOOK_VALIDATED)
        answer_with(&verdict, answer);
}

static void observe(void *arg, const struct tide_httpd_route *route, int status,
                    uint64_t duration_us)
{
    tide_webhook *webhook = arg;
    const unsigned step = tide_histogram_step(tide_histogram_local_us, duration_us);
    __atomic_fetch_add(&webhook->duration.counts[step], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&webhook->duration.sum_us, duration_us, __ATOMIC_RELAXED);
    /* The handler counted the others; a body that is too long or never came did not reach it. */
    if (route == NULL || status == 0 || status == 413)
        count(webhook, TIDE_WEBHOOK_REFUSED);
}

/* ---- life ---- */

/* There are keys, or there will be none for now: ask those again that wait. */
static void keys_changed(void *arg)
{
    tide_webhook *webhook = arg;
    tide_httpd *server = __atomic_load_n(&webhook->server, __ATOMIC_ACQUIRE);
    if (server != NULL)
        tide_httpd_wake(server);
}

static tide_status start(tide_webhook *webhook, tide_error *err)
{
    const struct tide_webhook_options *options = &webhook->options;
    const struct tide_issuer_options issuer = {.world = options->world,
                                               .keys_url = options->keys_url,
                                               .log = options->log,
                                               .changed = keys_changed,
                                               .arg = webhook};
    const struct tide_waker_options waker = {
        .world = options->world, .log = options->log, .wake = options->wake, .arg = options->arg};
    const struct tide_httpd_options http = {.port = options->port,
                                            .routes = webhook->routes,
                                            .routes_count = webhook->routes_count,
                                            .observe = observe,
                                            .observe_arg = webhook};
    tide_httpd *server = NULL;
    tide_status rc = tide_issuer_new(&issuer, webhook->mem, &webhook->issuer, err);
    if (rc == TIDE_OK)
        rc = tide_waker_new(&waker, webhook->mem, &webhook->waker, err);
    if (rc == TIDE_OK)
        rc = tide_httpd_start(options->world, webhook->mem, &http, &server, err);
    __atomic_store_n(&webhook->server, server, __ATOMIC_RELEASE);
    return rc;
}

static void route_add(tide_webhook *webhook, const char *path, tide_httpd_handler *handler,
                      unsigned flags)
{
    webhook->routes[webhook->routes_count++] =
        (struct tide_httpd_route){.method = "POST",
                                  .path = path,
                                  .handler = handler,
                                  .arg = webhook,
                                  .flags = TIDE_HTTPD_ANY_HOST | TIDE_HTTPD_REPEATS | flags,
                                  .body_bytes_max = TIDE_PUSH_BODY_BYTES_MAX};
}

tide_status tide_webhook_start(const struct tide_webhook_options *options, tide_mem *mem,
                               tide_webhook **webhook_out, tide_error *err)
{
    tide_webhook *webhook = tide_mem_new(mem, sizeof *webhook);
    if (webhook == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the webhook");
    const uint64_t now_ms = tide_world_now_ms(options->world);
    webhook->options = *options;
    webhook->mem = mem;
    if (options->rules.audience[0] != '\0')
        route_add(webhook, "/webhook/gmail", post, 0);
    if (options->notified != NULL) /* a question whether it is there comes as text/plain */
        route_add(webhook, "/webhook/onedrive", notice_post, TIDE_HTTPD_ANY_TYPE);
    webhook_rate_init(&webhook->taken, TIDE_WEBHOOK_TAKEN_PER_S, now_ms);
    webhook_rate_init(&webhook->refused, TIDE_WEBHOOK_REFUSED_PER_S, now_ms);
    const tide_status rc = start(webhook, err);
    if (rc != TIDE_OK) {
        tide_webhook_free(webhook);
        return rc;
    }
    *webhook_out = webhook;
    return TIDE_OK;
}

uint16_t tide_webhook_port(const tide_webhook *webhook)
{
    return tide_httpd_port(webhook->server);
}

void tide_webhook_stopping(tide_webhook *webhook)
{
    if (webhook != NULL)
        __atomic_store_n(&webhook->stopping, true, __ATOMIC_RELEASE);
}

/* The issuer wakes the server, whose handler asks the issuer and the waker. */
void tide_webhook_free(tide_webhook *webhook)
{
    if (webhook == NULL)
        return;
    tide_webhook_stopping(webhook);
    tide_issuer_stop(webhook->issuer);
    tide_httpd_stop(webhook->server);
    tide_issuer_free(webhook->issuer);
    tide_waker_free(webhook->waker);
    tide_mem_free(webhook->mem, webhook, sizeof *webhook);
}

void tide_webhook_count(tide_webhook *webhook, struct tide_webhook_counts *counts_out)
{
    for (size_t i = 0; i < TIDE_WEBHOOK_OUTCOMES; i++)
        counts_out->outcomes[i] = __atomic_load_n(&webhook->outcomes[i], __ATOMIC_RELAXED);
    for (size_t i = 0; i < TIDE_HISTOGRAM_STEPS; i++)
        counts_out->duration.counts[i] =
            __atomic_load_n(&webhook->duration.counts[i], __ATOMIC_RELAXED);
    counts_out->duration.sum_us = __atomic_load_n(&webhook->duration.sum_us, __ATOMIC_RELAXED);
    tide_waker_count(webhook->waker, &counts_out->outcomes[TIDE_WEBHOOK_ACCEPTED],
                     &counts_out->outcomes[TIDE_WEBHOOK_UNKNOWN]);
}
