/* archive_show.c - what `mail archive` prints: progress, a dry run, the end. */
#include "mail/commands/archive.h"

#include "base/clocktext.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SHOWN_REFUSED = 20, REASONS_MAX = 16 };

const char *archiving_words(tide_removal_mode mode)
{
    static const char *const words[] = {"taken out of the inbox", "moved to the trash",
                                        "deleted from Gmail"};
    return words[mode];
}

void archiving_show(struct archiving *archiving, bool last)
{
    static const struct cli_columns columns = {.done = "removed",
                                               .done_json = "removed",
                                               .rate = "msg/s",
                                               .rate_json = "messages_per_s",
                                               .more = {{"refused", "refused"}}};
    const struct tide_manifest *run = &archiving->manifest;
    struct cli_live *live = &archiving->shown.live;
    if (run->planned_ms == 0)
        return; /* its first batch has not begun */
    if (archiving->shown.display.cli == NULL)
        cli_shown_open(archiving->cli, &tide_mail_system, &columns, archiving->email,
                       &archiving->shown);
    live->done = run->entries[TIDE_REMOVAL_REMOVED];
    live->total =
        live->done + run->entries[TIDE_REMOVAL_PLANNED] + run->entries[TIDE_REMOVAL_ASKED];
    live->bytes = run->bytes[TIDE_REMOVAL_REMOVED];
    live->more[0] = run->entries[TIDE_REMOVAL_REFUSED];
    cli_shown_tick(&archiving->shown, archiving->home.engine, last);
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
              archiving_words(archiving->ask.mode));
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

tide_status archiving_dry(struct archiving *archiving, const json_t *result)
{
    struct cli *cli = archiving->cli;
    tide_archive *archive = NULL;
    json_auto_t *names = json_object();
    struct mail_home places = {.engine = NULL};
    char email[256];
    tide_status rc = mail_home_archive(cli, &places, archiving->email, email, &archive);
    if (rc == TIDE_OK)
        rc = tide_archive_labels_all(archive, name_label, names, &cli->err);
    (void)tide_archive_close(archive, NULL);
    if (rc == TIDE_OK)
        show_dry(archiving, result, names);
    return rc;
}

/* ---- the end ---- */

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

tide_status archiving_report(struct archiving *archiving)
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
        rc = tide_removal_list(archiving_rows(archiving), run->id, TIDE_REMOVAL_REFUSED,
                               refusing.last, 500, refused_entry, &refusing, &cli->err);
    }
    tide_size_human(bytes, size);
    cli_print(cli, "%s: %" PRIu64 " message%s (%s) %s\n", archiving->email, removed,
              removed == 1 ? "" : "s", size, archiving_words(run->mode));
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

tide_status archiving_stopped(struct archiving *archiving, tide_status rc)
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
