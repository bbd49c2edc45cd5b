/* show.c - `tidemark reader show|thread`: a message, and a conversation, from archive and cache. */
#include "reader/commands/home.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREAD_MAX = 500 };

/* [{id, name}], as they are shown; names come from the server's list, which the cache has. */
struct names {
    json_t *of; /* id -> name */
};

static void note_name(const struct tide_cache_label *label, void *arg)
{
    struct names *names = arg;
    char id[TIDE_LABEL_BYTES_MAX + 1];
    (void)snprintf(id, sizeof id, "%.*s", (int)label->id.bytes, label->id.data);
    (void)json_object_set_new(names->of, id, json_stringn(label->name.data, label->name.bytes));
}

static void labels_set(const struct reader_home *home, const struct tide_reader_shown *shown,
                       tide_json *json)
{
    struct names names = {.of = json_object()};
    tide_json labels;
    const char *id = NULL;
    json_t *value = NULL;
    if (home->mailbox.cache != NULL)
        (void)tide_cache_labels_each(home->mailbox.cache, note_name, &names, NULL);
    tide_json_array(&labels);
    json_object_foreach(shown->labels, id, value)
    {
        const char *name = json_string_value(json_object_get(names.of, id));
        tide_json one;
        tide_json_object(&one);
        tide_json_set_cstr(&one, "id", id);
        tide_json_set_cstr(&one, "name", name == NULL ? id : name);
        tide_json_append(&labels, &one);
    }
    tide_json_set(json, "labels", &labels);
    json_decref(names.of);
}

/* What a row says, for a message whose body is not here. */
static void headers_only(const struct tide_reader_shown *shown, tide_json *json)
{
    tide_json none;
    tide_json_array(&none);
    tide_shown_json(shown, json);
    tide_json_set_cstr(json, "copy", "none");
    tide_json_set_cstr(json, "cc", "");
    tide_json_set_cstr(json, "bcc", "");
    tide_json_set_cstr(json, "reply_to", "");
    tide_json_set_cstr(json, "message_id", "");
    tide_json_set_cstr(json, "in_reply_to", "");
    tide_json_set_cstr(json, "references", "");
    tide_json_set_cstr(json, "list_id", "");
    tide_json_set_null(json, "date_unix_ms");
    tide_json_set_bool(json, "html", false);
    tide_json_set_cstr(json, "text", "");
    tide_json_set(json, "attachments", &none);
    tide_json_set_null(json, "problem");
}

/* Why Gmail does not give it; null: it was not refused. */
static void refused_set(const struct reader_home *home, const char *id, bool none, tide_json *json)
{
    char why[sizeof home->cli->err.text];
    if (none && home->mailbox.cache != NULL &&
        tide_cache_refused_why(home->mailbox.cache, tide_text_of(id), why, sizeof why, NULL) ==
            TIDE_OK)
        tide_json_set_cstr(json, "refused", why);
    else
        tide_json_set_null(json, "refused");
}

static tide_status remote_count(struct cli *cli, struct tide_view *view, uint64_t *count_out)
{
    struct tide_view_page page = {.remote_count = 0};
    tide_auto_buf html = tide_buf_in(cli->mem, TIDE_VIEW_HTML_BYTES_MAX);
    const tide_status rc = view->readable ? tide_view_html(view, &html, &page) : TIDE_OK;
    *count_out = page.remote_count;
    return rc;
}

static tide_status message_json(const struct reader_home *home, const char *id, tide_json *json)
{
    struct cli *cli = home->cli;
    struct tide_reader_shown shown;
    struct tide_view view = {.mem = NULL};
    const char *body = "none";
    uint64_t remote = 0;
    tide_status rc = tide_shown_read(&home->mailbox, tide_text_of(id), &shown, &cli->err);
    if (rc == TIDE_OK)
        rc = reader_home_view(home, id, &view, &body);
    if (rc == TIDE_OK) {
        if (strcmp(body, "none") == 0)
            headers_only(&shown, json);
        else
            tide_view_json(&view, json);
        rc = remote_count(cli, &view, &remote);
        tide_json_set_cstr(json, "body", body);
        refused_set(home, id, strcmp(body, "none") == 0, json);
        tide_json_set_bool(json, "gone", shown.gone);
        tide_json_set_bool(json, "pending", shown.pending);
        tide_json_set_bool(json, "pinned", shown.pinned);
        tide_json_set_u64(json, "remote_images", remote);
        labels_set(home, &shown, json);
    }
    tide_view_done(&view);
    tide_shown_done(&shown);
    return rc;
}

static void print_missing(struct cli *cli, const json_t *message)
{
    const char *why = json_string_value(json_object_get(message, "refused"));
    if (json_is_true(json_object_get(message, "gone")))
        cli_print(cli, "\nIt is gone from Gmail, and it is not stored here.\n");
    else if (why != NULL)
        cli_print(cli, "\nGmail refused: %s\n", why);
    else
        cli_print(cli, "\nNot stored here yet.\n");
}

static void print_one(struct cli *cli, const json_t *message)
{
    static const char *const fields[] = {"from", "to", "subject"};
    static const char *const names[] = {"From", "To", "Subject"};
    for (size_t i = 0; i < 3; i++)
        cli_print(cli, "%s: %s\n", names[i],
                  json_string_value(json_object_get(message, fields[i])));
    if (strcmp(json_string_value(json_object_get(message, "body")), "none") == 0)
        print_missing(cli, message);
    else
        cli_print(cli, "\n%s\n", json_string_value(json_object_get(message, "text")));
}

tide_status cli_reader_show(struct cli *cli)
{
    const char *account = cli_flag(cli, "account");
    struct reader_home home;
    if (account == NULL)
        return cli_wrong(cli, "Name it with --account EMAIL.", "no account is named");
    tide_status rc = reader_home_open(cli, account, &home);
    if (rc == TIDE_OK)
        rc = message_json(&home, cli->arguments[0], &cli->json);
    if (rc == TIDE_OK)
        print_one(cli, cli->json.value);
    reader_home_close(&home);
    return rc;
}

/* ---- a thread ---- */

struct member {
    int64_t internal_ms;
    char id[TIDE_CACHE_ID_BYTES];
};

struct thread {
    struct member list[THREAD_MAX];
    size_t count;
    bool more;
};

static void member_add(struct thread *thread, const char *id, int64_t internal_ms)
{
    for (size_t i = 0; i < thread->count; i++)
        if (strcmp(thread->list[i].id, id) == 0)
            return;
    thread->more = thread->more || thread->count == THREAD_MAX;
    if (thread->count == THREAD_MAX)
        return;
    struct member *member = &thread->list[thread->count++];
    member->internal_ms = internal_ms;
    (void)snprintf(member->id, sizeof member->id, "%s", id);
}

static bool of_cache(const struct tide_cached *cached, void *arg)
{
    member_add(arg, cached->id, cached->internal_ms);
    return true;
}

static bool of_archive(const struct tide_stored *stored, void *arg)
{
    member_add(arg, stored->gmail_id, stored->internal_ms);
    return true;
}

static int oldest_first(const void *one, const void *other)
{
    const struct member *a = one;
    const struct member *b = other;
    if (a->internal_ms != b->internal_ms)
        return a->internal_ms < b->internal_ms ? -1 : 1;
    return strcmp(a->id, b->id);
}

static tide_status thread_read(const struct reader_home *home, tide_text id, struct thread *thread)
{
    tide_error *err = &home->cli->err;
    if (home->mailbox.archive != NULL)
        TIDE_TRY(tide_archive_thread(home->mailbox.archive, id, of_archive, thread, err));
    if (home->mailbox.cache != NULL)
        TIDE_TRY(tide_cache_thread(home->mailbox.cache, id, of_cache, thread, err));
    if (thread->count == 0)
        return cli_fail(home->cli, TIDE_NOT_FOUND, "`tidemark reader list` shows messages.",
                        "there is no such thread here");
    qsort(thread->list, thread->count, sizeof thread->list[0], oldest_first);
    return TIDE_OK;
}

/* What is gone from the server and not in the archive has nothing to show. */
static tide_status thread_json(const struct reader_home *home, const struct thread *thread,
                               tide_json *list)
{
    for (size_t i = 0; i < thread->count; i++) {
        tide_json one;
        tide_json_object(&one);
        const tide_status rc = message_json(home, thread->list[i].id, &one);
        if (rc != TIDE_OK) {
            tide_json_done(&one);
            return rc;
        }
        print_one(home->cli, one.value);
        tide_json_append(list, &one);
    }
    return TIDE_OK;
}

tide_status cli_reader_thread(struct cli *cli)
{
    const char *account = cli_flag(cli, "account");
    struct thread *thread = NULL;
    struct reader_home home;
    tide_json list;
    if (account == NULL)
        return cli_wrong(cli, "Name it with --account EMAIL.", "no account is named");
    tide_status rc = reader_home_open(cli, account, &home);
    thread = tide_mem_new(cli->mem, sizeof *thread);
    tide_json_array(&list);
    if (rc == TIDE_OK && thread == NULL)
        rc = cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory");
    if (rc == TIDE_OK)
        rc = thread_read(&home, tide_text_of(cli->arguments[0]), thread);
    if (rc == TIDE_OK)
        rc = thread_json(&home, thread, &list);
    tide_json_set_cstr(&cli->json, "thread", cli->arguments[0]);
    tide_json_set(&cli->json, "messages", &list);
    tide_json_set_bool(&cli->json, "more", thread != NULL && thread->more);
    tide_mem_free(cli->mem, thread, sizeof *thread);
    reader_home_close(&home);
    return rc;
}
