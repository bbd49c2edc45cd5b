/* archive.c - `tidemark mail archive`: removes mail from Gmail that is safely stored (M11-M15a). */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "engine/tuning.h"
#include "mail/remove/remove.h"
#include "mail/result.h"
#include "mail/rows.h"
#include "mail/status.h"
#include "net/judge_google.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    TICK_MS = 200,
    SHOWN_REFUSED = 20,
    REASONS_MAX = 16,
    SYNC_AFTER_BATCHES = 10, /* otherwise every batch reads the history of all batches before it */
    LINE_EVERY_MS = 10000,
};

struct archiving {
    struct cli *cli;
    struct mail_home home;
    struct cli_ask ask_of; /* where jobs are asked for */
    bool handed_over;
    uint32_t account;
    char email[256];
    char query[TIDE_ARCHIVING_QUERY_BYTES + 1];
    struct tide_archiving ask;
    struct tide_manifest manifest;
    uint64_t line_ms;
    bool dry;
    bool sync;
};

static const char *done_words(tide_removal_mode mode)
{
    static const char *const words[] = {"taken out of the inbox", "moved to the trash",
                                        "deleted from Gmail"};
    return words[mode];
}

/* ---- what is asked for ---- */

static tide_status usage(struct cli *cli, const char *hint, const char *what, const char *value)
{
    cli->exit_code = CLI_EXIT_USAGE;
    return cli_fail(cli, TIDE_INVALID, hint, "%s \"%.100s\"", what, value);
}

static tide_status mode_of(struct cli *cli, tide_removal_mode *mode_out)
{
    const char *name = cli_flag(cli, "mode");
    *mode_out = TIDE_REMOVE_FROM_INBOX;
    for (int mode = TIDE_REMOVE_FROM_INBOX; name != NULL; mode++) {
        if (mode > TIDE_REMOVE_FOR_GOOD)
            return usage(cli, "Modes: inbox, trash, delete.", "there is no mode", name);
        *mode_out = (tide_removal_mode)mode;
        if (strcmp(name, tide_removal_mode_name(*mode_out)) == 0)
            break;
    }
    return TIDE_OK;
}

/* Filters come before the query, so that the query can only narrow them. */
static tide_status add_filter(struct cli *cli, tide_buf *query, const char *flag, const char *name)
{
    const char *value = cli_flag(cli, flag);
    if (value == NULL)
        return TIDE_OK;
    if (value[0] == '\0' || strpbrk(value, "\"(){}") != NULL)
        return usage(cli, "Give a value without quotes and brackets.",
                     "not a value for a filter:", value);
    return tide_buf_print(query, "%s%s:\"%s\"", query->bytes == 0 ? "" : " ", name, value);
}

static tide_status query_add_words(struct cli *cli, tide_buf *query)
{
    const bool filtered = query->bytes > 0;
    tide_status rc = TIDE_OK;
    for (unsigned i = 0; rc == TIDE_OK && i < cli->arguments_count; i++)
        rc =
            tide_buf_print(query, "%s%s%s", i == 0 && filtered ? " (" : (i > 0 ? " " : ""),
                           cli->arguments[i], filtered && i + 1 == cli->arguments_count ? ")" : "");
    return rc;
}

static tide_status query_of(struct cli *cli, char query_out[TIDE_ARCHIVING_QUERY_BYTES + 1])
{
    tide_buf query;
    tide_buf_init(&query, cli->mem, TIDE_ARCHIVING_QUERY_BYTES);
    tide_status rc = add_filter(cli, &query, "older-than", "older_than");
    if (rc == TIDE_OK)
        rc = add_filter(cli, &query, "label", "label");
    if (rc == TIDE_OK)
        rc = add_filter(cli, &query, "larger-than", "larger");
    if (rc == TIDE_OK)
        rc = query_add_words(cli, &query);
    if (rc == TIDE_FULL)
        rc = cli_fail(cli, TIDE_INVALID, "Use a shorter query.", "the query is too long");
    if (rc == TIDE_OK && query.bytes == 0) {
        cli->exit_code = CLI_EXIT_USAGE;
        rc = cli_fail(
            cli, TIDE_INVALID,
            "Give a query or a filter, such as --older-than 1y. For all mail, use in:anywhere.",
            "no messages selected");
    }
    if (rc == TIDE_OK)
        (void)snprintf(query_out, TIDE_ARCHIVING_QUERY_BYTES + 1, "%s", tide_buf_cstr(&query));
    tide_buf_done(&query);
    return rc;
}

static tide_status read_flags(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    const char *limit = cli_flag(cli, "limit");
    const bool resume = cli_flag(cli, "resume") != NULL;
    archiving->dry = cli_flag(cli, "dry-run") != NULL;
    archiving->sync = !archiving->dry && cli_flag(cli, "no-sync") == NULL;
    archiving->ask.query = archiving->query;
    archiving->ask.email = archiving->email;
    archiving->ask.now_ms = cli->now_unix_ms;
    unsigned beside = 1;
    beside += cli_flag(cli, "yes") != NULL;
    beside += cli_flag(cli, "no-sync") != NULL;
    if (resume && (cli->arguments_count > 0 || cli->values_count > beside))
        return usage(cli, "Give only --yes and --no-sync with it.",
                     "a run keeps its own query and flags; --resume", cli_flag(cli, "resume"));
    if (resume)
        return cli_number(cli, cli_flag(cli, "resume"), "--resume", &archiving->manifest.id);
    tide_status rc = mode_of(cli, &archiving->ask.mode);
    if (rc == TIDE_OK && limit != NULL)
        rc = cli_number(cli, limit, "--limit", &archiving->ask.limit);
    return rc == TIDE_OK ? query_of(cli, archiving->query) : rc;
}

/* ---- signing in ---- */

static tide_status needs_scope(struct archiving *archiving)
{
    char hint[400];
    (void)snprintf(hint, sizeof hint,
                   "Sign in again with `tidemark account add gmail %.100s --for %s` and the "
                   "flags it was added with. Nothing was changed.",
                   archiving->email, tide_archiver_purpose(archiving->ask.mode));
    return cli_fail(archiving->cli, TIDE_AUTH, hint,
                    "the sign-in of %s has no permission to %s mail", archiving->email,
                    archiving->ask.mode == TIDE_REMOVE_FOR_GOOD ? "delete" : "change");
}

/* Why is in cli->err. */
static tide_status signed_out(struct archiving *archiving)
{
    const char *email = archiving->email;
    const tide_error why = archiving->cli->err;
    char hint[400];
    (void)snprintf(hint, sizeof hint,
                   "Sign in again with `tidemark account add gmail %.100s --for %s` and the flags "
                   "it was added with.",
                   email, tide_archiver_purpose(archiving->ask.mode));
    return cli_fail(archiving->cli, TIDE_AUTH, hint, "%.100s: %.250s", email, why.text);
}

/* ---- waiting ---- */

static void line(struct archiving *archiving)
{
    const struct tide_manifest *run = &archiving->manifest;
    const uint64_t now_ms = tide_world_now_ms(archiving->cli->world);
    if (archiving->cli->quiet || run->id == 0 ||
        (archiving->line_ms != 0 && now_ms - archiving->line_ms < LINE_EVERY_MS))
        return;
    archiving->line_ms = now_ms;
    (void)fprintf(stderr, "%" PRIu64 " %s, %" PRIu64 " left, %" PRIu64 " refused\n",
                  run->entries[TIDE_REMOVAL_REMOVED], done_words(run->mode),
                  run->entries[TIDE_REMOVAL_PLANNED] + run->entries[TIDE_REMOVAL_ASKED],
                  run->entries[TIDE_REMOVAL_REFUSED]);
}

/* ---- jobs ---- */

static tide_rows rows(const struct archiving *archiving)
{
    return tide_ledger_rows(archiving->cli->ledger);
}

/* Our engine, or that of the process that has the directory. */
static tide_status open_engine(struct archiving *archiving)
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
    while (rc == TIDE_TIMEOUT && !cli_interrupted())
        rc = mail_home_wait(cli, &archiving->home, &archiving->ask_of);
    if (rc == TIDE_TIMEOUT)
        return interrupted(archiving);
    if (rc == TIDE_AUTH)
        return signed_out(archiving);
    return rc == TIDE_PERMANENT && tide_google_lacks_scope(cli->err.text) ? needs_scope(archiving)
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
            rc = open_engine(archiving);
        if (rc != TIDE_OK)
            return rc;
        tide_json_object(&payload);
        fill(archiving, &payload);
        rc = cli_ask_job(&archiving->ask_of, kind, archiving->email, archiving->account, dedupe,
                         &payload);
        if (rc == TIDE_OK)
            rc = wait_for_job(archiving);
    } while (rc != TIDE_OK && archiving->ask_of.gone);
    return rc;
}

/* ---- syncing ---- */

static void plan_payload(const struct archiving *archiving, tide_json *payload)
{
    const struct tide_mail_run run = {.email = archiving->email};
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
        if (cli_interrupted())
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

/* An incremental sync, so that the archive knows what Gmail has. */
static tide_status bring_up_to_date(struct archiving *archiving)
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
    tide_archiver_batch_ask(archiving->manifest.id, 0, payload);
}

static tide_status batch(struct archiving *archiving)
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

/* Its result, owned by the caller. */
static tide_status choose(struct archiving *archiving, json_t **result_out)
{
    struct cli *cli = archiving->cli;
    archiving->ask.read_back = archiving->dry && cli_flag(cli, "quick") == NULL;
    archiving->ask.with_history = archiving->dry;
    const tide_status rc = do_job(archiving, TIDE_MAIL_CHOOSE, "", choose_payload);
    if (rc == TIDE_OK)
        return tide_result_get(rows(archiving), archiving->ask_of.job, result_out, &cli->err);
    return cli_hint(cli, rc,
                    rc == TIDE_INVALID ? "`tidemark mail search` accepts the same queries." : NULL);
}

/* ---- a dry run ---- */

static void name_label(const struct tide_label_row *label, void *arg)
{
    char id[TIDE_LABEL_BYTES_MAX + 1];
    (void)snprintf(id, sizeof id, "%.*s", (int)label->id.bytes, label->id.data);
    if (label->name.bytes > 0)
        (void)json_object_set_new(arg, id, json_stringn(label->name.data, label->name.bytes));
}

/* A list of sums in the result; `names` gives them other names. */
static void show_sums(struct cli *cli, const json_t *sums, const char *key, const char *one_key,
                      const json_t *names)
{
    size_t index = 0;
    const json_t *sum = NULL;
    tide_json list;
    tide_json_array(&list);
    json_array_foreach(sums, index, sum)
    {
        char size[TIDE_SIZE_TEXT_BYTES];
        tide_json one;
        const char *id = json_string_value(json_object_get(sum, "name"));
        const char *name = json_string_value(json_object_get(names, id));
        const uint64_t messages = (uint64_t)json_integer_value(json_object_get(sum, "messages"));
        const uint64_t bytes = (uint64_t)json_integer_value(json_object_get(sum, "bytes"));
        tide_size_human(bytes, size);
        cli_print(cli, "  %-30.200s %8" PRIu64 "  %s\n", name == NULL ? id : name, messages, size);
        tide_json_object(&one);
        tide_json_set_cstr(&one, one_key, id);
        if (names != NULL)
            tide_json_set_cstr(&one, "name", name == NULL ? id : name);
        tide_json_set_u64(&one, "messages", messages);
        tide_json_set_u64(&one, "bytes", bytes);
        tide_json_append(&list, &one);
    }
    tide_json_set(&cli->json, key, &list);
}

struct reasons {
    struct {
        char text[80];
        uint64_t count;
    } list[REASONS_MAX];
    size_t count;
};

static void reason_add(struct reasons *reasons, const char *reason)
{
    char text[80];
    (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(reason, ":"), reason);
    size_t at = 0;
    while (at < reasons->count && strcmp(reasons->list[at].text, text) != 0)
        at++;
    if (at == REASONS_MAX)
        return;
    if (at == reasons->count)
        (void)snprintf(reasons->list[reasons->count++].text, sizeof text, "%s", text);
    reasons->list[at].count++;
}

/* Prints counts by reason, then the first ids. */
static void show_refused(struct cli *cli, const json_t *refused)
{
    struct reasons reasons = {.count = 0};
    size_t index = 0;
    const json_t *one = NULL;
    json_array_foreach(refused, index, one)
        reason_add(&reasons, json_string_value(json_object_get(one, "reason")));
    for (size_t i = 0; i < reasons.count; i++)
        cli_print(cli, "  refused %" PRIu64 ": %s\n", reasons.list[i].count, reasons.list[i].text);
    json_array_foreach(refused, index, one)
    {
        if (index == SHOWN_REFUSED)
            break;
        cli_print(cli, "    %s  %s\n", json_string_value(json_object_get(one, "id")),
                  json_string_value(json_object_get(one, "reason")));
    }
    if (json_array_size(refused) > SHOWN_REFUSED)
        cli_print(cli, "    and %zu more\n", json_array_size(refused) - SHOWN_REFUSED);
}

static uint64_t number_of(const json_t *result, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(result, key));
}

static uint64_t units_of(const json_t *result, tide_removal_mode mode)
{
    /* A single message is cheaper (cloud/gmail.h); a page of history costs 2. */
    const uint64_t alone = mode == TIDE_REMOVE_FOR_GOOD ? 10 : 5;
    const uint64_t batches = number_of(result, "batches");
    const bool last_alone = batches > 0 && number_of(result, "last_batch") == 1;
    return batches * 52 - (last_alone ? 50 - alone : 0) + number_of(result, "unsure") * 20;
}

static void show_dry(struct archiving *archiving, const json_t *result, const json_t *names)
{
    struct cli *cli = archiving->cli;
    char size[TIDE_SIZE_TEXT_BYTES];
    const uint64_t messages = number_of(result, "messages");
    const uint64_t bytes = number_of(result, "bytes");
    const uint64_t units = units_of(result, archiving->ask.mode);
    const uint64_t calls = number_of(result, "batches") * 2 + number_of(result, "unsure");
    json_t *refused = json_object_get(result, "refused");
    tide_json refusals = {.value = json_incref(refused)};
    tide_size_human(bytes, size);
    cli_print(cli, "%s: %" PRIu64 " message%s (%s) would be %s; nothing was changed\n",
              archiving->email, messages, messages == 1 ? "" : "s", size,
              done_words(archiving->ask.mode));
    show_sums(cli, json_object_get(result, "years"), "by_year", "year", NULL);
    show_sums(cli, json_object_get(result, "labels"), "by_label", "label", names);
    show_refused(cli, refused);
    cli_print(cli, "  %" PRIu64 " calls, %" PRIu64 " units of Gmail's quota\n", calls, units);
    tide_json_set_bool(&cli->json, "dry_run", true);
    tide_json_set_cstr(&cli->json, "account", archiving->email);
    tide_json_set_cstr(&cli->json, "mode", tide_removal_mode_name(archiving->ask.mode));
    tide_json_set_cstr(&cli->json, "query", archiving->query);
    tide_json_set_u64(&cli->json, "messages", messages);
    tide_json_set_u64(&cli->json, "bytes", bytes);
    tide_json_set_u64(&cli->json, "calls", calls);
    tide_json_set_u64(&cli->json, "units", units);
    tide_json_set_bool(&cli->json, "handed_over", archiving->handed_over);
    tide_json_set(&cli->json, "refused", &refusals);
}

static tide_status dry_run(struct archiving *archiving, const json_t *result)
{
    struct cli *cli = archiving->cli;
    tide_archive *archive = NULL;
    json_t *names = json_object();
    struct mail_home places = {.engine = NULL};
    char email[256];
    tide_status rc = mail_home_archive(cli, &places, archiving->email, email, &archive);
    if (rc == TIDE_OK)
        rc = tide_archive_labels_all(archive, name_label, names, &cli->err);
    (void)tide_archive_close(archive, NULL);
    if (rc == TIDE_OK)
        show_dry(archiving, result, names);
    json_decref(names);
    return rc;
}

/* ---- the guard ---- */

static tide_status stored_in(struct archiving *archiving, uint64_t *stored_out)
{
    struct cli *cli = archiving->cli;
    struct tide_mail_kept kept = {.stored = 0};
    struct mail_home places = {.engine = NULL};
    tide_archive *archive = NULL;
    char email[256];
    tide_status rc = mail_home_archive(cli, &places, archiving->email, email, &archive);
    if (rc == TIDE_OK)
        rc = tide_mail_kept(archive, &kept, &cli->err);
    (void)tide_archive_close(archive, NULL);
    *stored_out = kept.stored;
    return rc;
}

/* Asks for consent to what the manifest still names. */
static tide_status confirm(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    const struct tide_manifest *run = &archiving->manifest;
    const uint64_t messages = run->entries[TIDE_REMOVAL_PLANNED] + run->entries[TIDE_REMOVAL_ASKED];
    const uint64_t bytes = run->bytes[TIDE_REMOVAL_PLANNED] + run->bytes[TIDE_REMOVAL_ASKED];
    uint64_t stored = 0;
    char size[TIDE_SIZE_TEXT_BYTES];
    char typed[64] = "";
    char wanted[32];
    const tide_status rc = stored_in(archiving, &stored);
    if (rc != TIDE_OK)
        return rc;
    const uint64_t guard = tide_tuning_engine(cli->settings).archive_guard;
    const bool much = messages > guard || messages > stored / 4;
    const bool final = archiving->ask.mode == TIDE_REMOVE_FOR_GOOD;
    if (messages == 0 || cli_flag(cli, "yes") != NULL || (!much && !final))
        return TIDE_OK;
    tide_size_human(bytes, size);
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return cli_fail(
            cli, TIDE_INVALID, "Nothing was changed. Check with --dry-run, then add --yes.",
            "%" PRIu64 " message%s (%s) would be %s, and there is no terminal to confirm it",
            messages, messages == 1 ? "" : "s", size, done_words(archiving->ask.mode));
    (void)snprintf(wanted, sizeof wanted, "%" PRIu64, messages);
    (void)fprintf(stderr,
                  "%" PRIu64 " message%s (%s) of %s will be %s.%s\nType %s to continue: ", messages,
                  messages == 1 ? "" : "s", size, archiving->email, done_words(archiving->ask.mode),
                  final ? " Gmail keeps no copy." : "", wanted);
    if (fgets(typed, sizeof typed, stdin) != NULL)
        typed[strcspn(typed, "\r\n")] = '\0';
    if (strcmp(typed, wanted) != 0)
        return cli_fail(cli, TIDE_CANCELED, "Nothing was changed.", "not confirmed");
    return TIDE_OK;
}

/* ---- the run ---- */

static tide_status batches(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    tide_status rc = TIDE_OK;
    for (uint64_t done = 0; rc == TIDE_OK && archiving->manifest.ended_ms == 0; done++) {
        if (done > 0 && done % SYNC_AFTER_BATCHES == 0)
            rc = bring_up_to_date(archiving);
        if (rc == TIDE_OK)
            rc = batch(archiving);
        const tide_status read =
            tide_manifest_get(rows(archiving), archiving->manifest.id, &archiving->manifest,
                              rc == TIDE_OK ? &cli->err : NULL);
        rc = rc == TIDE_OK ? read : rc;
        line(archiving);
    }
    return rc;
}

struct refusing {
    tide_json *list;
    uint64_t last;
    uint64_t count;
};

static bool refused_entry(const struct tide_removal *entry, void *arg)
{
    struct refusing *refusing = arg;
    tide_json one;
    tide_json_object(&one);
    tide_json_set_cstr(&one, "id", entry->gmail_id);
    tide_json_set_i64(&one, "internal_unix_ms", entry->internal_ms);
    tide_json_set_cstr(&one, "reason", entry->reason);
    tide_json_append(refusing->list, &one);
    refusing->last = entry->id;
    refusing->count++;
    return true;
}

static tide_status report(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    const struct tide_manifest *run = &archiving->manifest;
    const uint64_t removed =
        run->entries[TIDE_REMOVAL_REMOVED] + run->entries[TIDE_REMOVAL_RESTORED];
    const uint64_t bytes = run->bytes[TIDE_REMOVAL_REMOVED] + run->bytes[TIDE_REMOVAL_RESTORED];
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_json refused;
    struct refusing refusing = {.list = &refused};
    tide_json_array(&refused);
    tide_status rc = TIDE_OK;
    for (uint64_t before = UINT64_MAX;
         rc == TIDE_OK && before != refusing.count && refusing.count < CLI_LIST_MAX;) {
        before = refusing.count;
        rc = tide_removal_list(rows(archiving), run->id, TIDE_REMOVAL_REFUSED, refusing.last, 500,
                               refused_entry, &refusing, &cli->err);
    }
    tide_size_human(bytes, size);
    cli_print(cli, "%s: %" PRIu64 " message%s (%s) %s\n", archiving->email, removed,
              removed == 1 ? "" : "s", size, done_words(run->mode));
    show_refused(cli, refused.value);
    cli_print(cli, "  `tidemark mail manifest %" PRIu64 "` lists them", run->id);
    if (removed > 0)
        cli_print(cli, "; `tidemark mail restore --manifest %" PRIu64 "` puts them back", run->id);
    cli_print(cli, "\n");
    tide_json_set_cstr(&cli->json, "account", archiving->email);
    tide_json_set_u64(&cli->json, "manifest", run->id);
    tide_json_set_cstr(&cli->json, "mode", tide_removal_mode_name(run->mode));
    tide_json_set_cstr(&cli->json, "query", run->query);
    tide_json_set_u64(&cli->json, "removed", removed);
    tide_json_set_u64(&cli->json, "removed_bytes", bytes);
    tide_json_set_u64(&cli->json, "refused_count", run->entries[TIDE_REMOVAL_REFUSED]);
    tide_json_set_bool(&cli->json, "handed_over", archiving->handed_over);
    tide_json_set(&cli->json, "refused", &refused);
    if (run->entries[TIDE_REMOVAL_REFUSED] > 0)
        cli->exit_code = CLI_EXIT_BAD_ITEMS;
    return rc;
}

/* The error of a stopped run says how far it got, and how to resume. */
static tide_status stopped(struct archiving *archiving, tide_status rc)
{
    struct cli *cli = archiving->cli;
    const struct tide_manifest *run = &archiving->manifest;
    const uint64_t all = run->entries[TIDE_REMOVAL_REMOVED] + run->entries[TIDE_REMOVAL_PLANNED] +
                         run->entries[TIDE_REMOVAL_ASKED];
    char text[sizeof cli->err.text];
    char hint[sizeof cli->hint];
    char resume[80] = "Nothing was changed.";
    (void)snprintf(text, sizeof text, "%.240s", cli->err.text);
    if (run->planned_ms > 0) /* its first batch began */
        (void)snprintf(resume, sizeof resume,
                       "Resume with `tidemark mail archive --resume %" PRIu64 "`.", run->id);
    (void)snprintf(hint, sizeof hint, "%.250s%s%s", cli->hint, cli->hint[0] == '\0' ? "" : " ",
                   resume);
    return cli_fail(cli, rc, hint, "stopped after %" PRIu64 " of %" PRIu64 " message%s: %s",
                    run->entries[TIDE_REMOVAL_REMOVED], all, all == 1 ? "" : "s", text);
}

static tide_status remove_all(struct archiving *archiving)
{
    tide_status rc = batches(archiving);
    if (rc != TIDE_OK)
        return stopped(archiving, rc);
    rc = bring_up_to_date(archiving); /* the archive learns the new labels */
    return rc == TIDE_OK ? report(archiving) : rc;
}

static tide_status new_run(struct archiving *archiving)
{
    json_t *result = NULL;
    tide_status rc = choose(archiving, &result);
    if (rc == TIDE_OK && archiving->dry) {
        rc = dry_run(archiving, result);
    } else if (rc == TIDE_OK) {
        rc = tide_manifest_get(rows(archiving), number_of(result, "manifest"), &archiving->manifest,
                               &archiving->cli->err);
        if (rc == TIDE_OK)
            rc = confirm(archiving);
        if (rc == TIDE_OK)
            rc = remove_all(archiving);
    }
    json_decref(result);
    return rc;
}

/* ---- the command ---- */

/* The account of a new run; says what an earlier one has left. */
static tide_status aim_new(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    struct tide_manifest left;
    tide_status rc = tide_manifest_run_left(rows(archiving), archiving->account, &left, &cli->err);
    if (rc == TIDE_OK && !cli->quiet)
        (void)fprintf(stderr,
                      "Manifest %" PRIu64 " is not finished, %" PRIu64 " messages are left; "
                      "resume it with `tidemark mail archive --resume %" PRIu64 "`.\n",
                      left.id,
                      left.entries[TIDE_REMOVAL_PLANNED] + left.entries[TIDE_REMOVAL_ASKED],
                      left.id);
    if (rc == TIDE_OK)
        tide_json_set_u64(&cli->json, "unfinished", left.id);
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* The manifest of a run to resume, and its account. */
static tide_status aim_resume(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    struct tide_mail_row row;
    tide_status rc =
        tide_manifest_get(rows(archiving), archiving->manifest.id, &archiving->manifest, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark mail manifest` lists the runs.");
    if (rc == TIDE_OK &&
        (archiving->manifest.ended_ms != 0 || archiving->manifest.planned_ms == 0 ||
         archiving->manifest.mode > TIDE_REMOVE_FOR_GOOD))
        rc = cli_fail(cli, TIDE_INVALID, "`tidemark mail manifest` lists the runs.",
                      "manifest %" PRIu64 " is finished, or is not a run of `mail archive`",
                      archiving->manifest.id);
    archiving->ask.mode = archiving->manifest.mode;
    if (rc == TIDE_OK)
        rc = tide_mail_row_get(rows(archiving), archiving->manifest.account, &row, &cli->err);
    if (rc == TIDE_OK)
        memcpy(archiving->email, row.email, sizeof row.email);
    return rc;
}

static tide_status must_be_synced(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    struct tide_mail_look look;
    tide_mail_look_init(&look, cli->mem);
    tide_status rc = tide_mail_look(cli->ledger, archiving->email, false, &look, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark account list` shows the accounts.");
    if (rc == TIDE_OK && look.history_id[0] == '\0')
        rc = cli_fail(cli, TIDE_INVALID, "Run `tidemark mail sync` first.",
                      "%s is not fully synced yet", archiving->email);
    archiving->account = look.account;
    tide_mail_look_done(&look);
    return rc;
}

static tide_status must_be_allowed(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    tide_secrets *secrets = NULL;
    tide_status rc = tide_secrets_open(cli->world, archiving->home.secrets_dir, TIDE_SECRETS_BEST,
                                       cli->mem, &secrets, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_archiver_allowed(cli->world, secrets, archiving->email, archiving->ask.mode,
                                   cli->mem, &cli->err);
    tide_secrets_close(secrets);
    return rc == TIDE_AUTH ? needs_scope(archiving) : rc;
}

/* Reads only: nothing is opened that another process may have. */
static tide_status take_aim(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    const bool resume = archiving->manifest.id != 0;
    bool has = false;
    tide_status rc = mail_home_places(cli, &archiving->home);
    if (rc == TIDE_OK && !resume)
        rc = mail_home_account(cli, &archiving->home, cli_flag(cli, "account"), archiving->email);
    if (rc == TIDE_OK)
        rc = cli_ledger_read(cli);
    if (rc == TIDE_OK)
        rc = tide_rows_has(rows(archiving), "mail_removal", "the manifests", &has, &cli->err);
    if (rc == TIDE_OK && !has)
        rc = cli_fail(cli, TIDE_NOT_FOUND, "`tidemark account add gmail EMAIL` adds one.",
                      "there is no mail account");
    if (rc == TIDE_OK && resume)
        rc = aim_resume(archiving);
    if (rc == TIDE_OK)
        rc = must_be_synced(archiving);
    if (rc == TIDE_OK && !resume)
        rc = aim_new(archiving);
    return rc == TIDE_OK && !archiving->dry ? must_be_allowed(archiving) : rc;
}

static tide_status run(struct archiving *archiving)
{
    const bool resume = archiving->manifest.id != 0;
    tide_status rc = take_aim(archiving);
    if (rc == TIDE_OK)
        rc = open_engine(archiving);
    if (rc == TIDE_OK)
        rc = bring_up_to_date(archiving);
    if (rc == TIDE_OK && !resume)
        return new_run(archiving);
    if (rc == TIDE_OK)
        rc = confirm(archiving);
    return rc == TIDE_OK ? remove_all(archiving) : rc;
}

tide_status cli_mail_archive(struct cli *cli)
{
    struct archiving archiving = {.cli = cli};
    tide_status rc = read_flags(&archiving);
    if (rc != TIDE_OK)
        return rc;
    archiving.home.archiver = true;
    archiving.home.no_sync = !archiving.sync;
    (void)cli_interruptible(cli);
    rc = run(&archiving);
    if (rc == TIDE_STOPPED && cli_interrupted())
        cli->exit_code = CLI_EXIT_INTERRUPTED;
    if (archiving.home.engine != NULL)
        tide_engine_stop(archiving.home.engine);
    cli_ask_close(&archiving.ask_of);
    const tide_status closed = mail_home_close(cli, &archiving.home);
    return rc == TIDE_OK ? closed : rc;
}
