/* archive.c - `tidemark mail archive`: removes mail from Gmail that is safely stored (M11-M15a). */
#include "mail/commands/home.h"

#include "base/clocktext.h"
#include "engine/tuning.h"
#include "mail/remove/remove.h"
#include "tidemark_inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

enum {
    TICK_MS = 100,
    SHOWN_REFUSED = 20,
    REASONS_MAX = 16,
    YEARS_MAX = 200,
    SYNC_AFTER_BATCHES = 10, /* otherwise every batch reads the history of all batches before it */
    LINE_EVERY_MS = 10000,
};

struct archiving {
    struct cli *cli;
    struct mail_home home;
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

static bool signed_out(struct archiving *archiving)
{
    const char *email = archiving->email;
    char why[400];
    char hint[400];
    if (!tide_mail_signed_out(archiving->home.mail, email, why))
        return false;
    (void)snprintf(hint, sizeof hint,
                   "Sign in again with `tidemark account add gmail %.100s --for %s` and the flags "
                   "it was added with.",
                   email, tide_archiver_purpose(archiving->ask.mode));
    (void)cli_fail(archiving->cli, TIDE_AUTH, hint, "%.100s: %.250s", email, why);
    return true;
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

/* One tick.  TIDE_OK: the engine is idle; TIDE_TIMEOUT: it is not. */
static tide_status tick(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    if (signed_out(archiving))
        return TIDE_AUTH;
    if (cli_interrupted())
        return cli_fail(cli, TIDE_STOPPED, NULL, "interrupted");
    return tide_engine_wait(archiving->home.engine, TICK_MS, &cli->err);
}

/* An incremental sync, so that the archive knows what Gmail has. */
static tide_status bring_up_to_date(struct archiving *archiving)
{
    const struct tide_mail_run run = {.email = archiving->email};
    if (!archiving->sync)
        return TIDE_OK;
    tide_status rc = tide_mail_run(archiving->home.mail, &run, &archiving->cli->err);
    if (rc == TIDE_OK)
        rc = TIDE_TIMEOUT;
    while (rc == TIDE_TIMEOUT)
        rc = tick(archiving);
    return rc;
}

static tide_status batch(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    uint64_t job = 0;
    tide_status rc =
        tide_archiver_next(archiving->home.mail, archiving->manifest.id, 0, &job, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    do {
        const tide_status waited = tick(archiving);
        if (waited != TIDE_OK && waited != TIDE_TIMEOUT)
            return waited;
        rc = tide_archiver_look(archiving->home.mail, job, &cli->err);
        if (rc == TIDE_TIMEOUT && waited == TIDE_OK)
            return cli_fail(cli, TIDE_BUSY,
                            "`tidemark jobs list` and `tidemark account list` show what is paused "
                            "or halted.",
                            "the jobs of %s do not run", archiving->email);
    } while (rc == TIDE_TIMEOUT);
    return rc == TIDE_AUTH ? needs_scope(archiving) : rc;
}

/* ---- choosing ---- */

struct sum {
    char name[260];
    uint64_t messages, bytes;
};

struct chosen {
    struct archiving *archiving;
    uint64_t messages, bytes, refused, batches;
    uint64_t batch_messages, batch_bytes;
    uint64_t unsure; /* whose labels must be fetched, 20 units each */
    struct sum years[YEARS_MAX];
    size_t years_count;
    json_t *labels; /* id to [messages, bytes] */
    tide_json refusals;
};

static void sum_year(struct chosen *chosen, const struct tide_stored *stored)
{
    char when[32];
    (void)cli_time((uint64_t)stored->internal_ms, when);
    when[4] = '\0';
    size_t at = 0;
    while (at < chosen->years_count && strcmp(chosen->years[at].name, when) != 0)
        at++;
    if (at == YEARS_MAX)
        return;
    if (at == chosen->years_count)
        (void)snprintf(chosen->years[chosen->years_count++].name, sizeof chosen->years[0].name,
                       "%s", when);
    chosen->years[at].messages++;
    chosen->years[at].bytes += stored->bytes;
}

static void sum_labels(struct chosen *chosen, const struct tide_candidate *candidate)
{
    for (const char *at = candidate->labels; *at != '\0';) {
        char label[600];
        const size_t word = strcspn(at, " ");
        (void)snprintf(label, sizeof label, "%.*s", (int)word, at);
        json_t *sum = json_object_get(chosen->labels, label);
        if (sum == NULL) {
            sum = json_pack("[i,i]", 0, 0);
            (void)json_object_set_new(chosen->labels, label, sum);
        }
        (void)json_integer_set(json_array_get(sum, 0),
                               json_integer_value(json_array_get(sum, 0)) + 1);
        (void)json_integer_set(json_array_get(sum, 1), json_integer_value(json_array_get(sum, 1)) +
                                                           (json_int_t)candidate->stored.bytes);
        at += word + (at[word] == ' ');
    }
}

/* Counts batches as mail/remove/batch.c forms them. */
static void sum_calls(struct chosen *chosen, const struct tide_candidate *candidate)
{
    const uint64_t bytes = candidate->stored.bytes;
    chosen->unsure += candidate->unsure;
    const uint64_t most = chosen->unsure > 0 ? TIDE_REMOVE_UNSURE_IDS : TIDE_REMOVE_IDS;
    if (chosen->batch_messages >= most ||
        (chosen->batch_messages > 0 && chosen->batch_bytes + bytes > TIDE_REMOVE_BYTES))
        chosen->batch_messages = chosen->batch_bytes = 0;
    chosen->batches += chosen->batch_messages == 0;
    chosen->batch_messages++;
    chosen->batch_bytes += bytes;
}

static bool choose_one(const struct tide_candidate *candidate, void *arg)
{
    struct chosen *chosen = arg;
    if (candidate->refused == NULL) {
        chosen->messages++;
        chosen->bytes += candidate->stored.bytes;
        sum_calls(chosen, candidate);
        if (chosen->archiving->dry) {
            sum_year(chosen, &candidate->stored);
            sum_labels(chosen, candidate);
        }
        return !cli_interrupted();
    }
    chosen->refused++;
    if (chosen->archiving->dry && chosen->refused <= CLI_LIST_MAX) {
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "id", candidate->stored.gmail_id);
        tide_json_set_i64(&one, "internal_unix_ms", candidate->stored.internal_ms);
        tide_json_set_cstr(&one, "reason", candidate->refused);
        tide_json_append(&chosen->refusals, &one);
    }
    return !cli_interrupted();
}

/* ---- a dry run ---- */

static void name_label(const struct tide_label_row *label, void *arg)
{
    char id[TIDE_LABEL_BYTES_MAX + 1];
    (void)snprintf(id, sizeof id, "%.*s", (int)label->id.bytes, label->id.data);
    if (label->name.bytes > 0)
        (void)json_object_set_new(arg, id, json_stringn(label->name.data, label->name.bytes));
}

static void show_sums(struct cli *cli, const struct chosen *chosen, json_t *names)
{
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_json years;
    tide_json labels;
    tide_json_array(&years);
    tide_json_array(&labels);
    for (size_t i = 0; i < chosen->years_count; i++) {
        const struct sum *year = &chosen->years[i];
        tide_json one;
        tide_size_human(year->bytes, size);
        cli_print(cli, "  %-30s %8" PRIu64 "  %s\n", year->name, year->messages, size);
        tide_json_object(&one);
        tide_json_set_cstr(&one, "year", year->name);
        tide_json_set_u64(&one, "messages", year->messages);
        tide_json_set_u64(&one, "bytes", year->bytes);
        tide_json_append(&years, &one);
    }
    const char *id = NULL;
    json_t *sum = NULL;
    json_object_foreach(chosen->labels, id, sum)
    {
        const char *name = json_string_value(json_object_get(names, id));
        const uint64_t messages = (uint64_t)json_integer_value(json_array_get(sum, 0));
        const uint64_t bytes = (uint64_t)json_integer_value(json_array_get(sum, 1));
        tide_json one;
        tide_size_human(bytes, size);
        cli_print(cli, "  %-30.200s %8" PRIu64 "  %s\n", name == NULL ? id : name, messages, size);
        tide_json_object(&one);
        tide_json_set_cstr(&one, "label", id);
        tide_json_set_cstr(&one, "name", name == NULL ? id : name);
        tide_json_set_u64(&one, "messages", messages);
        tide_json_set_u64(&one, "bytes", bytes);
        tide_json_append(&labels, &one);
    }
    tide_json_set(&cli->json, "by_year", &years);
    tide_json_set(&cli->json, "by_label", &labels);
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

static uint64_t units_of(const struct chosen *chosen, tide_removal_mode mode)
{
    /* A single message is cheaper (cloud/gmail.h); a page of history costs 2. */
    const uint64_t alone = mode == TIDE_REMOVE_FOR_GOOD ? 10 : 5;
    const bool last_alone = chosen->batches > 0 && chosen->batch_messages == 1;
    return chosen->batches * 52 - (last_alone ? 50 - alone : 0) + chosen->unsure * 20;
}

static tide_status dry_run(struct archiving *archiving, struct chosen *chosen)
{
    struct cli *cli = archiving->cli;
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_archive *archive = NULL;
    json_t *names = json_object();
    const uint64_t units = units_of(chosen, archiving->ask.mode);
    const uint64_t calls = chosen->batches * 2 + chosen->unsure;
    struct mail_home places = {.engine = NULL};
    char email[256];
    tide_status rc = mail_home_archive(cli, &places, archiving->email, email, &archive);
    if (rc == TIDE_OK)
        rc = tide_archive_labels_all(archive, name_label, names, &cli->err);
    (void)tide_archive_close(archive, NULL);
    if (rc == TIDE_OK) {
        tide_size_human(chosen->bytes, size);
        cli_print(cli, "%s: %" PRIu64 " message%s (%s) would be %s; nothing was changed\n",
                  archiving->email, chosen->messages, chosen->messages == 1 ? "" : "s", size,
                  done_words(archiving->ask.mode));
        show_sums(cli, chosen, names);
        show_refused(cli, chosen->refusals.value);
        cli_print(cli, "  %" PRIu64 " calls, %" PRIu64 " units of Gmail's quota\n", calls, units);
        tide_json_set_bool(&cli->json, "dry_run", true);
        tide_json_set_cstr(&cli->json, "account", archiving->email);
        tide_json_set_cstr(&cli->json, "mode", tide_removal_mode_name(archiving->ask.mode));
        tide_json_set_cstr(&cli->json, "query", archiving->query);
        tide_json_set_u64(&cli->json, "messages", chosen->messages);
        tide_json_set_u64(&cli->json, "bytes", chosen->bytes);
        tide_json_set_u64(&cli->json, "calls", calls);
        tide_json_set_u64(&cli->json, "units", units);
        tide_json_set(&cli->json, "refused", &chosen->refusals);
    }
    json_decref(names);
    return rc;
}

/* ---- the guard ---- */

static tide_status confirm(struct archiving *archiving, uint64_t messages, uint64_t bytes)
{
    struct cli *cli = archiving->cli;
    struct tide_mail_state state;
    char size[TIDE_SIZE_TEXT_BYTES];
    char typed[64] = "";
    char wanted[32];
    tide_status rc = tide_mail_state(archiving->home.mail, archiving->email, &state, &cli->err);
    if (rc != TIDE_OK)
        return rc;
    const uint64_t guard = tide_tuning_engine(cli->settings).archive_guard;
    const bool much = messages > guard || messages > state.stored / 4;
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
            tide_archiver_manifest(archiving->home.mail, archiving->manifest.id,
                                   &archiving->manifest, rc == TIDE_OK ? &cli->err : NULL);
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

struct refused_ask {
    uint64_t manifest;
    struct refusing refusing;
};

static tide_status refused_run(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct refused_ask *ask = arg;
    return tide_removal_list(tide_transaction_rows(transaction), ask->manifest,
                             TIDE_REMOVAL_REFUSED, ask->refusing.last, 500, refused_entry,
                             &ask->refusing, err);
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
    struct refused_ask ask = {.manifest = run->id, .refusing = {.list = &refused}};
    tide_json_array(&refused);
    tide_status rc = TIDE_OK;
    for (uint64_t before = UINT64_MAX;
         rc == TIDE_OK && before != ask.refusing.count && ask.refusing.count < CLI_LIST_MAX;) {
        before = ask.refusing.count;
        rc = tide_transact(archiving->home.engine, refused_run, &ask, &cli->err);
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
    (void)snprintf(text, sizeof text, "%.240s", cli->err.text);
    (void)snprintf(hint, sizeof hint,
                   "%.250s%sResume with `tidemark mail archive --resume %" PRIu64 "`.", cli->hint,
                   cli->hint[0] == '\0' ? "" : " ", run->id);
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
    struct cli *cli = archiving->cli;
    struct chosen chosen = {.archiving = archiving, .labels = json_object()};
    tide_json_array(&chosen.refusals);
    archiving->ask.read_back = archiving->dry && cli_flag(cli, "quick") == NULL;
    archiving->ask.with_history = archiving->dry;
    tide_status rc =
        tide_archiver_choose(archiving->home.mail, &archiving->ask, choose_one, &chosen, &cli->err);
    archiving->ask.read_back = archiving->ask.with_history = false;
    rc = cli_hint(cli, rc,
                  rc == TIDE_INVALID ? "`tidemark mail search` accepts the same queries." : NULL);
    if (rc == TIDE_OK && cli_interrupted())
        rc = cli_fail(cli, TIDE_STOPPED, "Nothing was changed.", "interrupted");
    if (rc == TIDE_OK && archiving->dry) {
        rc = dry_run(archiving, &chosen);
    } else if (rc == TIDE_OK) {
        rc = confirm(archiving, chosen.messages, chosen.bytes);
        /* Never more than the user confirmed. */
        if (archiving->ask.limit == 0 || archiving->ask.limit > chosen.messages)
            archiving->ask.limit = chosen.messages == 0 ? UINT64_MAX : chosen.messages;
        if (rc == TIDE_OK)
            rc = tide_archiver_plan(archiving->home.mail, &archiving->ask, &archiving->manifest,
                                    &cli->err);
        if (rc == TIDE_OK)
            rc = remove_all(archiving);
    }
    json_decref(chosen.labels);
    tide_json_done(&chosen.refusals);
    return rc;
}

/* ---- the command ---- */

/* Determines the account, and the manifest of a run to resume. */
static tide_status take_aim(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    struct tide_manifest unfinished;
    tide_mail *mail = archiving->home.mail;
    if (archiving->manifest.id == 0) {
        tide_status rc =
            mail_home_account(cli, &archiving->home, cli_flag(cli, "account"), archiving->email);
        if (rc != TIDE_OK)
            return rc;
        rc = tide_archiver_unfinished(mail, archiving->email, &unfinished, &cli->err);
        if (rc == TIDE_OK && !cli->quiet)
            (void)fprintf(stderr,
                          "Manifest %" PRIu64 " is not finished, %" PRIu64 " messages are left; "
                          "resume it with `tidemark mail archive --resume %" PRIu64 "`.\n",
                          unfinished.id,
                          unfinished.entries[TIDE_REMOVAL_PLANNED] +
                              unfinished.entries[TIDE_REMOVAL_ASKED],
                          unfinished.id);
        if (rc == TIDE_OK)
            tide_json_set_u64(&cli->json, "unfinished", unfinished.id);
        return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
    }
    tide_status rc =
        tide_archiver_manifest(mail, archiving->manifest.id, &archiving->manifest, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark mail manifest` lists the runs.");
    if (rc == TIDE_OK &&
        (archiving->manifest.ended_ms != 0 || archiving->manifest.planned_ms == 0 ||
         archiving->manifest.mode > TIDE_REMOVE_FOR_GOOD))
        rc = cli_fail(cli, TIDE_INVALID, "`tidemark mail manifest` lists the runs.",
                      "manifest %" PRIu64 " is finished, or is not a run of `mail archive`",
                      archiving->manifest.id);
    archiving->ask.mode = archiving->manifest.mode;
    if (rc == TIDE_OK)
        rc = tide_archiver_email(mail, archiving->manifest.account, archiving->email, &cli->err);
    return rc;
}

static tide_status must_be_synced(struct archiving *archiving)
{
    struct tide_mail_state state;
    struct cli *cli = archiving->cli;
    tide_status rc = tide_mail_state(archiving->home.mail, archiving->email, &state, &cli->err);
    rc = cli_hint(cli, rc, "`tidemark account list` shows the accounts.");
    if (rc == TIDE_OK && state.history_id[0] == '\0')
        rc = cli_fail(cli, TIDE_INVALID, "Run `tidemark mail sync` first.",
                      "%s is not fully synced yet", archiving->email);
    return rc;
}

static tide_status run(struct archiving *archiving)
{
    struct cli *cli = archiving->cli;
    const bool resume = archiving->manifest.id != 0;
    tide_status rc = take_aim(archiving);
    if (rc == TIDE_OK)
        rc = must_be_synced(archiving);
    if (rc == TIDE_OK && !archiving->dry)
        rc = tide_archiver_allowed(archiving->home.mail, archiving->email, archiving->ask.mode,
                                   &cli->err);
    if (rc == TIDE_AUTH)
        return needs_scope(archiving);
    const char *only = archiving->email;
    if (rc == TIDE_OK)
        rc = tide_engine_only(archiving->home.engine, &only, 1, &cli->err);
    if (rc == TIDE_OK)
        rc = tide_engine_start(archiving->home.engine, &cli->err);
    if (rc == TIDE_OK)
        rc = bring_up_to_date(archiving);
    if (rc == TIDE_OK && resume) {
        const struct tide_manifest *left = &archiving->manifest;
        rc = confirm(archiving,
                     left->entries[TIDE_REMOVAL_PLANNED] + left->entries[TIDE_REMOVAL_ASKED],
                     left->bytes[TIDE_REMOVAL_PLANNED] + left->bytes[TIDE_REMOVAL_ASKED]);
        return rc == TIDE_OK ? remove_all(archiving) : rc;
    }
    return rc == TIDE_OK ? new_run(archiving) : rc;
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
    rc = mail_home_open(cli, &archiving.home);
    if (rc == TIDE_OK)
        rc = run(&archiving);
    if (rc == TIDE_STOPPED && cli_interrupted())
        cli->exit_code = CLI_EXIT_INTERRUPTED;
    if (archiving.home.engine != NULL)
        tide_engine_stop(archiving.home.engine);
    const tide_status closed = mail_home_close(cli, &archiving.home);
    return rc == TIDE_OK ? closed : rc;
}
