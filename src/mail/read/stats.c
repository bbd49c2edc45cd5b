/* stats.c - `tidemark mail stats` and `mail labels`: what fills a mailbox, and how much of it Gmail still
 * has, which is what `mail archive` could remove (M20).
 *
 * `stats` walks the matches of a query once and adds each message to its groups; `labels` asks each
 * archive for its sums.  A row has the query that selects it, so that it can be handed to `mail search`
 * and `mail archive`.  What is advised is one command for one account, which is counted by its own query:
 * the rows have all accounts, spam and trash. */
#include "mail/commands/home.h"

#include "base/calendar.h"
#include "base/check.h"
#include "base/clocktext.h"
#include "base/map.h"
#include "mail/read/pasted.h"
#include "mail/search/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum {
    GROUPS_MAX = 4 << 20,
    GROUPS_BYTES_MAX = 1 << 30,
    ROWS_DEFAULT = 20,
    KEY_BYTES = 320,
};

typedef enum grouping { BY_SENDER, BY_DOMAIN, BY_YEAR, BY_LABEL, BY_SIZE, GROUPINGS } grouping;
static const char *const grouping_names[GROUPINGS] = {"sender", "domain", "year", "label", "size"};

struct sums {
    uint64_t messages, bytes;
    uint64_t held, held_bytes; /* of these: still in Gmail */
    uint64_t unread;
    int64_t oldest_ms, newest_ms;
};

struct group {
    const char *name;  /* as it is shown */
    const char *query; /* that selects it; "": none does */
    const char *type;  /* of a label */
    struct sums sums;
    size_t source;      /* the account whose mail is added ... */
    uint64_t here;      /* ... with so many bytes in Gmail */
    size_t best_source; /* the account with most of them */
    uint64_t best;      /* 0: none, or it was tried */
};

struct counting {
    struct cli *cli;
    grouping by;
    tide_archive *archive;
    struct mail_names names; /* accounts that are counted */
    size_t source;           /* whose archive it is */
    tide_map keys;           /* hash of the name: index of the group */
    tide_arena texts;
    struct group *groups;
    size_t count, capacity;
    struct sums all;
    const struct tide_found *found; /* while its labels are visited */
    bool is_unread;
    bool passed; /* an archive could not be read */
    struct tide_search_labels labels;
    tide_status rc;
};

/* ---- groups ---- */

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash == 0 ? 1 : hash;
}

static const char *kept(struct counting *counting, const char *text)
{
    return tide_arena_copy(&counting->texts, text, strlen(text));
}

/* The group of that name; two names with one hash are told apart by the next one. */
static struct group *group_at(struct counting *counting, const char *name, const char *query,
                              const char *type)
{
    uint64_t key = hash_of(name);
    for (uint32_t index = 0; tide_map_get(&counting->keys, key, &index);
         key = key == UINT64_MAX ? 1 : key + 1)
        if (strcmp(counting->groups[index].name, name) == 0)
            return &counting->groups[index];
    void *groups = counting->groups;
    if (!tide_mem_grow(counting->cli->mem, &groups, &counting->capacity, counting->count + 1,
                       GROUPS_MAX, sizeof *counting->groups))
        return NULL;
    counting->groups = groups;
    struct group *group = &counting->groups[counting->count];
    *group = (struct group){
        .name = kept(counting, name), .query = kept(counting, query), .type = kept(counting, type)};
    if (group->name == NULL || group->query == NULL || group->type == NULL ||
        !tide_map_put(&counting->keys, key, (uint32_t)counting->count))
        return NULL;
    counting->count++;
    return group;
}

static void sums_add(struct sums *sums, const struct tide_stored *stored, bool unread)
{
    if (sums->messages == 0 || stored->internal_ms < sums->oldest_ms)
        sums->oldest_ms = stored->internal_ms;
    if (sums->messages == 0 || stored->internal_ms > sums->newest_ms)
        sums->newest_ms = stored->internal_ms;
    sums->messages++;
    sums->bytes += stored->bytes;
    sums->held += tide_stored_in_gmail(stored);
    sums->held_bytes += tide_stored_in_gmail(stored) ? stored->bytes : 0;
    sums->unread += unread;
}

static void best_note(const struct counting *counting, struct group *group, uint64_t bytes)
{
    if (group->source != counting->source)
        group->here = 0;
    group->source = counting->source;
    group->here += bytes;
    if (group->here > group->best) {
        group->best = group->here;
        group->best_source = group->source;
    }
}

static void count_in(struct counting *counting, const char *name, const char *query,
                     const char *type)
{
    struct group *group = group_at(counting, name, query, type);
    if (group == NULL) {
        counting->rc = TIDE_NO_MEMORY;
        return;
    }
    const struct tide_stored *stored = &counting->found->stored;
    sums_add(&group->sums, stored, counting->is_unread);
    best_note(counting, group, tide_stored_in_gmail(stored) ? stored->bytes : 0);
}

/* ---- senders ---- */

/* The address in "Name <address>", in lower case; all of it where there is none. */
static void address_of(tide_text from, char address[KEY_BYTES])
{
    const char *open = from.bytes == 0 ? NULL : memrchr(from.data, '<', from.bytes);
    if (open != NULL) {
        from.bytes -= (size_t)(open + 1 - from.data);
        from.data = open + 1;
        const char *close = from.bytes == 0 ? NULL : memchr(from.data, '>', from.bytes);
        from.bytes = close == NULL ? from.bytes : (size_t)(close - from.data);
    }
    const tide_text cut = tide_utf8_cut(from, KEY_BYTES - 1);
    for (size_t i = 0; i < cut.bytes; i++) {
        const char c = cut.data[i];
        address[i] = c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
    }
    address[cut.bytes] = '\0';
}

/* Without an '@' a query would be words, and find more than the row. */
static void by_sender(struct counting *counting, bool domain)
{
    char address[KEY_BYTES], query[KEY_BYTES + 16] = "";
    address_of(counting->found->from, address);
    const char *at = strrchr(address, '@');
    const char *name = domain && at != NULL ? at + 1 : address;
    if (at > address && at[1] != '\0' && strpbrk(address, " \t\"(){}|<>,;*") == NULL)
        (void)snprintf(query, sizeof query, "from:%s", domain ? at : address);
    count_in(counting, name[0] == '\0' ? "(none)" : name, query, "");
}

/* ---- years and sizes ---- */

static void by_year(struct counting *counting)
{
    const time_t seconds = (time_t)(counting->found->stored.internal_ms / 1000);
    struct tm local;
    char name[32] = "(none)", query[64] = "";
    if (localtime_r(&seconds, &local) != NULL && local.tm_year > -900 && local.tm_year < 8099) {
        (void)snprintf(name, sizeof name, "%d", local.tm_year + 1900);
        (void)snprintf(query, sizeof query, "after:%d before:%d", local.tm_year + 1900,
                       local.tm_year + 1901);
    }
    count_in(counting, name, query, "");
}

static void by_size(struct counting *counting)
{
    static const struct {
        uint64_t more_than;
        const char *name, *query;
    } sizes[] = {
        {25 << 20, "over 25 MiB", "larger:25M"},
        {10 << 20, "10 to 25 MiB", "larger:10M -larger:25M"},
        {5 << 20, "5 to 10 MiB", "larger:5M -larger:10M"},
        {1 << 20, "1 to 5 MiB", "larger:1M -larger:5M"},
        {100 << 10, "100 KiB to 1 MiB", "larger:100k -larger:1M"},
        {10 << 10, "10 to 100 KiB", "larger:10k -larger:100k"},
        {0, "up to 10 KiB", "-larger:10k"},
    };
    size_t i = 0;
    while (sizes[i].more_than > 0 && counting->found->stored.bytes <= sizes[i].more_than)
        i++;
    count_in(counting, sizes[i].name, sizes[i].query, "");
}

/* ---- labels ---- */

static void label_seen(const struct tide_label_row *label, void *arg)
{
    struct counting *counting = arg;
    counting->is_unread = counting->is_unread || tide_text_equal(label->id, TIDE_TEXT("UNREAD"));
}

/* The three texts of a label's group. */
struct label_texts {
    char name[KEY_BYTES], query[KEY_BYTES + 16], type[16];
};

static void label_texts_of(const struct tide_label_row *label, struct label_texts *texts)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./@+";
    const tide_text text = label->name.bytes == 0 ? label->id : label->name;
    const tide_text cut = tide_utf8_cut(text, KEY_BYTES - 1);
    (void)snprintf(texts->name, sizeof texts->name, "%.*s", (int)cut.bytes, cut.data);
    (void)snprintf(texts->type, sizeof texts->type, "%.*s", (int)label->type.bytes,
                   label->type.bytes == 0 ? "" : label->type.data);
    texts->query[0] = '\0';
    if (strchr(texts->name, '"') == NULL)
        (void)snprintf(texts->query, sizeof texts->query,
                       texts->name[strspn(texts->name, plain)] == '\0' ? "label:%s"
                                                                       : "label:\"%s\"",
                       texts->name);
}

static void label_count(const struct tide_label_row *label, void *arg)
{
    struct label_texts texts;
    label_texts_of(label, &texts);
    count_in(arg, texts.name, texts.query, texts.type);
}

/* The sums of one shard. */
static void label_sums_add(const struct tide_label_sums *sums, void *arg)
{
    struct counting *counting = arg;
    struct label_texts texts;
    label_texts_of(&sums->label, &texts);
    struct group *group =
        counting->rc == TIDE_OK ? group_at(counting, texts.name, texts.query, texts.type) : NULL;
    if (group == NULL) {
        counting->rc = TIDE_NO_MEMORY;
        return;
    }
    struct sums *all = &group->sums;
    if (all->messages == 0 || sums->oldest_ms < all->oldest_ms)
        all->oldest_ms = sums->oldest_ms;
    if (all->messages == 0 || sums->newest_ms > all->newest_ms)
        all->newest_ms = sums->newest_ms;
    all->messages += sums->messages;
    all->bytes += sums->bytes;
    all->held += sums->in_gmail;
    all->held_bytes += sums->in_gmail_bytes;
    all->unread += sums->unread;
}

static tide_status by_label(struct counting *counting)
{
    struct cli *cli = counting->cli;
    const struct tide_stored *stored = &counting->found->stored;
    counting->is_unread = false;
    TIDE_TRY(tide_archive_label_rows(counting->archive, stored, label_seen, counting, &cli->err));
    TIDE_TRY(tide_archive_label_rows(counting->archive, stored, label_count, counting, &cli->err));
    return counting->rc;
}

/* ---- counting ---- */

static bool count_one(const struct tide_found *found, void *arg)
{
    struct counting *counting = arg;
    counting->found = found;
    sums_add(&counting->all, &found->stored, false);
    switch (counting->by) {
    case BY_SENDER:
    case BY_DOMAIN:
        by_sender(counting, counting->by == BY_DOMAIN);
        break;
    case BY_YEAR:
        by_year(counting);
        break;
    case BY_SIZE:
        by_size(counting);
        break;
    case BY_LABEL:
    case GROUPINGS:
        counting->rc = by_label(counting);
        break;
    }
    return counting->rc == TIDE_OK;
}

static tide_status count_matches(struct counting *counting, const tide_query *query)
{
    struct cli *cli = counting->cli;
    tide_auto_buf next = tide_buf_in(cli->mem, 4096);
    tide_auto_buf token = tide_buf_in(cli->mem, 4096);
    struct tide_search search = {.query = query,
                                 .limit = TIDE_SEARCH_PAGE_MAX,
                                 .labels = counting->names.count > 1 ? &counting->labels : NULL,
                                 .cancel = cli->cancel};
    for (bool more = true; more && counting->rc == TIDE_OK;) {
        TIDE_TRY(tide_search_run(counting->archive, &search, count_one, counting, &next, &more,
                                 &cli->err));
        tide_buf_clear(&token);
        TIDE_TRY(tide_buf_add(&token, tide_buf_cstr(&next), next.bytes));
        search.after = tide_buf_text(&token);
    }
    return TIDE_OK;
}

/* `query` NULL: the sums of its labels. */
static tide_status count_archive(struct counting *counting, const tide_query *query)
{
    struct cli *cli = counting->cli;
    const char *account = counting->names.list[counting->source];
    struct mail_home home = {0};
    char email[256];
    tide_archive *archive = NULL;
    tide_status rc = mail_home_take(cli, &home, account, email, &archive);
    if (mail_home_pass(cli, account, counting->names.count, rc)) {
        mail_home_give(cli, archive);
        counting->passed = true;
        return TIDE_OK;
    }
    counting->archive = archive;
    if (rc == TIDE_OK)
        rc = query == NULL ? tide_archive_label_sums(archive, label_sums_add, counting, &cli->err)
                           : count_matches(counting, query);
    if (rc == TIDE_OK && counting->rc == TIDE_OK)
        rc = mail_home_broken(cli, archive);
    mail_home_give(cli, archive);
    if (rc == TIDE_OK && counting->rc == TIDE_NO_MEMORY)
        rc = cli_fail(cli, TIDE_NO_MEMORY, "Give a query that selects less.", "out of memory");
    return rc == TIDE_OK ? counting->rc : rc;
}

static tide_status count_archives(struct counting *counting, const tide_query *query)
{
    struct cli *cli = counting->cli;
    tide_status rc = mail_names_find(cli, cli_flag(cli, "account"), &counting->names);
    for (size_t i = 0; rc == TIDE_OK && i < counting->names.count; i++) {
        counting->source = i;
        rc = count_archive(counting, query);
    }
    if (rc == TIDE_OK && !counting->passed)
        rc = tide_search_labels_check(&counting->labels, &cli->err);
    return mail_label_hint(cli, rc);
}

static tide_status count_all(struct counting *counting)
{
    struct cli *cli = counting->cli;
    tide_query *query = NULL;
    tide_auto_buf words = tide_buf_in(cli->mem, TIDE_QUERY_BYTES_MAX);
    TIDE_TRY(mail_query_words(cli, 0, TIDE_QUERY_BYTES_MAX, &words));
    /* Everything takes room, also spam and trash. */
    tide_status rc =
        tide_query_parse(words.bytes == 0 ? TIDE_TEXT("in:anywhere") : tide_buf_text(&words),
                         (int64_t)cli->now_unix_ms, TIDE_QUERY_LOCAL, cli->mem, &query, &cli->err);
    TIDE_TRY(cli_hint(cli, rc, "`tidemark mail search --help` lists the operators."));
    rc = count_archives(counting, query);
    tide_query_free(query);
    return rc;
}

static int largest_first(const void *one, const void *other)
{
    const struct group *a = one, *b = other;
    if (a->sums.bytes != b->sums.bytes)
        return a->sums.bytes > b->sums.bytes ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_group_name(const void *one, const void *other)
{
    return strcmp(((const struct group *)one)->name, ((const struct group *)other)->name);
}

static int newest_year_first(const void *one, const void *other)
{
    return by_group_name(other, one);
}

/* ---- showing ---- */

static void sums_json(const struct sums *sums, tide_json *json)
{
    tide_json_set_u64(json, "messages", sums->messages);
    tide_json_set_u64(json, "bytes", sums->bytes);
    tide_json_set_u64(json, "in_gmail", sums->held);
    tide_json_set_u64(json, "in_gmail_bytes", sums->held_bytes);
    if (sums->messages == 0)
        return;
    tide_json_set_i64(json, "oldest_unix_ms", sums->oldest_ms);
    tide_json_set_i64(json, "newest_unix_ms", sums->newest_ms);
}

static void day_cell(struct cli *cli, int64_t ms)
{
    char when[32];
    (void)cli_time(ms > 0 ? (uint64_t)ms : 0, when);
    when[strlen(when) > 10 ? 10 : strlen(when)] = '\0';
    cli_cell(cli, "%s", when);
}

static void group_show(const struct counting *counting, const struct group *group, tide_json *list)
{
    struct cli *cli = counting->cli;
    char size[TIDE_SIZE_TEXT_BYTES], held[TIDE_SIZE_TEXT_BYTES];
    tide_json one;
    tide_size_human(group->sums.bytes, size);
    tide_size_human(group->sums.held_bytes, held);
    cli_cell(cli, "%" PRIu64, group->sums.messages);
    cli_cell(cli, "%s", size);
    cli_cell(cli, "%s", held);
    day_cell(cli, group->sums.oldest_ms);
    day_cell(cli, group->sums.newest_ms);
    cli_cell_text(cli, tide_text_of(group->name));
    tide_json_object(&one);
    tide_json_set_cstr(&one, "name", group->name);
    sums_json(&group->sums, &one);
    tide_json_set_cstr(&one, "query", group->query);
    tide_json_append(list, &one);
}

/* ---- advice ---- */

/* Mail that may be removed by the command: no one wants the own mail or the inbox to go. */
static bool can_advise(const struct counting *counting, const struct group *group)
{
    const char *account = counting->names.list[group->best_source];
    if (group->query[0] == '\0' || group->best == 0)
        return false;
    if (counting->by == BY_SENDER)
        return strcasecmp(group->name, account) != 0;
    return counting->by != BY_LABEL || strcmp(group->type, "system") != 0 ||
           strncmp(group->name, "CATEGORY_", 9) == 0;
}

struct freeing {
    uint64_t bytes;
};

static bool free_one(const struct tide_found *found, void *arg)
{
    struct freeing *freeing = arg;
    freeing->bytes += tide_stored_in_gmail(&found->stored) ? found->stored.bytes : 0;
    return true;
}

/* What the command would take, as the archiver reads its query (mail/remove/choose.c): without spam and
 * trash. */
static tide_status free_count(struct counting *counting, const struct group *group,
                              uint64_t *bytes_out)
{
    struct cli *cli = counting->cli;
    struct mail_home home = {0};
    struct freeing freeing = {0};
    char email[256];
    tide_archive *archive = NULL;
    tide_query *query = NULL;
    tide_auto_buf next = tide_buf_in(cli->mem, 4096);
    tide_auto_buf token = tide_buf_in(cli->mem, 4096);
    tide_status rc = tide_query_parse(tide_text_of(group->query), (int64_t)cli->now_unix_ms,
                                      TIDE_QUERY_LOCAL, cli->mem, &query, &cli->err);
    struct tide_search search = {.query = query,
                                 .limit = TIDE_SEARCH_PAGE_MAX,
                                 .strict = true,
                                 .exact = true,
                                 .cancel = cli->cancel};
    if (rc == TIDE_OK)
        rc = mail_home_take(cli, &home, counting->names.list[group->best_source], email, &archive);
    for (bool more = true; rc == TIDE_OK && more;) {
        rc = tide_search_run(archive, &search, free_one, &freeing, &next, &more, &cli->err);
        tide_buf_clear(&token);
        if (rc == TIDE_OK)
            rc = tide_buf_add(&token, tide_buf_cstr(&next), next.bytes);
        search.after = tide_buf_text(&token);
    }
    mail_home_give(cli, archive);
    tide_query_free(query);
    *bytes_out = freeing.bytes;
    return rc;
}

/* Whether the command has to name the account: there are several archives, whichever was counted. */
static bool needs_account(struct cli *cli)
{
    struct mail_names all;
    const bool needs = mail_names_find(cli, NULL, &all) != TIDE_OK || all.count > 1;
    mail_names_done(&all);
    return needs;
}

static void advice_print(struct counting *counting, const struct group *group, uint64_t bytes)
{
    struct cli *cli = counting->cli;
    char size[TIDE_SIZE_TEXT_BYTES];
    tide_size_human(bytes, size);
    cli_print(cli, "`");
    mail_pasted_command(cli, "mail archive --mode trash");
    if (needs_account(cli)) {
        cli_print(cli, " --account");
        mail_pasted_word(cli, counting->names.list[group->best_source]);
    }
    mail_pasted_word(cli, group->query);
    cli_print(cli, "` would free up to %s in Gmail.\n", size);
}

/* The row that would free most, as the command that does it.  Only a help: a failure is none of the
 * statistics. */
static void advice_show(struct counting *counting, size_t shown)
{
    struct cli *cli = counting->cli;
    const tide_error before = cli->err;
    uint64_t bytes = 0;
    while (bytes == 0 && cli->arguments_count == 0) {
        struct group *best = NULL;
        for (size_t i = 0; i < shown; i++)
            if (can_advise(counting, &counting->groups[i]) &&
                (best == NULL || counting->groups[i].best > best->best))
                best = &counting->groups[i];
        if (best == NULL || free_count(counting, best, &bytes) != TIDE_OK)
            break;
        best->best = 0;
        if (bytes > 0)
            advice_print(counting, best, bytes);
    }
    cli->err = before;
}

/* ---- tables ---- */

static void stats_show(struct counting *counting, size_t limit)
{
    static const char *const names[GROUPINGS] = {"SENDER", "DOMAIN", "YEAR", "LABEL", "SIZE"};
    const char *const headings[] = {"MESSAGES", "SIZE",   "IN GMAIL",
                                    "OLDEST",   "NEWEST", names[counting->by]};
    struct cli *cli = counting->cli;
    char size[TIDE_SIZE_TEXT_BYTES], held[TIDE_SIZE_TEXT_BYTES];
    tide_json list, all;
    const size_t shown = counting->count < limit ? counting->count : limit;
    if (counting->count > 0)
        qsort(counting->groups, counting->count, sizeof *counting->groups,
              counting->by == BY_YEAR ? newest_year_first : largest_first);
    tide_json_array(&list);
    cli_table_begin(cli, headings, 6);
    for (size_t i = 0; i < shown; i++)
        group_show(counting, &counting->groups[i], &list);
    cli_table_end(cli, "no messages match");
    if (shown < counting->count)
        cli_print(cli, "(%zu more: --limit N)\n", counting->count - shown);
    tide_size_human(counting->all.bytes, size);
    tide_size_human(counting->all.held_bytes, held);
    if (counting->all.messages > 0)
        cli_print(cli, "%" PRIu64 " messages, %s; %" PRIu64 " of them, %s, are in Gmail.\n",
                  counting->all.messages, size, counting->all.held, held);
    advice_show(counting, shown);
    tide_json_set_cstr(&cli->json, "by", grouping_names[counting->by]);
    tide_json_set(&cli->json, "groups", &list);
    tide_json_set_u64(&cli->json, "groups_count", counting->count);
    tide_json_object(&all);
    sums_json(&counting->all, &all);
    tide_json_set(&cli->json, "all", &all);
}

static void labels_show(struct counting *counting)
{
    static const char *const headings[] = {"MESSAGES", "UNREAD", "SIZE", "LABEL"};
    struct cli *cli = counting->cli;
    tide_json list;
    if (counting->count > 0)
        qsort(counting->groups, counting->count, sizeof *counting->groups, by_group_name);
    tide_json_array(&list);
    cli_table_begin(cli, headings, 4);
    for (int user = 0; user < 2; user++) { /* Gmail's own first */
        for (size_t i = 0; i < counting->count; i++) {
            const struct group *group = &counting->groups[i];
            char size[TIDE_SIZE_TEXT_BYTES];
            tide_json one;
            if ((strcmp(group->type, "user") == 0) != (user == 1))
                continue;
            tide_size_human(group->sums.bytes, size);
            cli_cell(cli, "%" PRIu64, group->sums.messages);
            cli_cell(cli, "%" PRIu64, group->sums.unread);
            cli_cell(cli, "%s", size);
            cli_cell_text(cli, tide_text_of(group->name));
            tide_json_object(&one);
            tide_json_set_cstr(&one, "name", group->name);
            tide_json_set_cstr(&one, "type", group->type);
            sums_json(&group->sums, &one);
            tide_json_set_u64(&one, "unread", group->sums.unread);
            tide_json_set_cstr(&one, "query", group->query);
            tide_json_append(&list, &one);
        }
    }
    cli_table_end(cli, "no message has a label");
    tide_json_set(&cli->json, "labels", &list);
}

/* ---- the commands ---- */

static void begin(struct counting *counting, struct cli *cli, grouping by)
{
    *counting = (struct counting){.cli = cli, .by = by, .names = {.mem = cli->mem}, .rc = TIDE_OK};
    tide_map_init(&counting->keys, cli->mem);
    tide_arena_init(&counting->texts, cli->mem, GROUPS_BYTES_MAX);
}

static void end(struct counting *counting)
{
    tide_mem_free(counting->cli->mem, counting->groups,
                  counting->capacity * sizeof *counting->groups);
    tide_arena_done(&counting->texts);
    tide_map_done(&counting->keys);
    mail_names_done(&counting->names);
}

static tide_status grouping_of(struct cli *cli, grouping *by_out)
{
    const char *named = cli_flag(cli, "by");
    *by_out = BY_SENDER;
    if (named == NULL)
        return TIDE_OK;
    for (int i = 0; i < GROUPINGS; i++)
        if (strcmp(named, grouping_names[i]) == 0) {
            *by_out = (grouping)i;
            return TIDE_OK;
        }
    return cli_wrong(cli, "Give sender, domain, year, label or size.", "--by %.60s", named);
}

tide_status cli_mail_stats(struct cli *cli)
{
    struct counting counting;
    grouping by = BY_SENDER;
    uint64_t limit = ROWS_DEFAULT;
    TIDE_TRY(grouping_of(cli, &by));
    if (cli_flag(cli, "limit") != NULL)
        TIDE_TRY(cli_number(cli, cli_flag(cli, "limit"), "--limit", &limit));
    if (limit == 0) /* as in a search */
        limit = ROWS_DEFAULT;
    begin(&counting, cli, by);
    const tide_status rc = count_all(&counting);
    if (rc == TIDE_OK)
        stats_show(&counting, limit > SIZE_MAX ? SIZE_MAX : (size_t)limit);
    end(&counting);
    cli->paged = true;
    return rc;
}

tide_status cli_mail_labels(struct cli *cli)
{
    struct counting counting;
    begin(&counting, cli, BY_LABEL);
    const tide_status rc = count_archives(&counting, NULL);
    if (rc == TIDE_OK)
        labels_show(&counting);
    end(&counting);
    cli->paged = true;
    return rc;
}
