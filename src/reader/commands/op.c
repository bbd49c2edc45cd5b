/* op.c - what commands ask the engine's process for: {"op": "reader", "do": ..., "account": EMAIL}.
 *
 *     do        fields                          answer
 *     states    -                               accounts
 *     open      message                         job
 *     more      folder                          job
 *     refresh   folder                          job
 *     search    query                           job
 *     act       action, messages, label, draft  id, changed, due_unix_ms
 *     undo      id                              inverse
 *     begin     -                               -
 *     people    -                               -
 *     save      draft, json                     saved_unix_ms, created
 *     continue  message                         draft, job
 *     discard   draft                           removed
 *     attach    draft, name, type, file, bytes  -
 *     detach    draft, name                     removed
 *
 * It runs on the thread of the asker, and waits for the ledger alone. */
#include "reader/commands/home.h"
#include "reader/reader.h"

#include <stdio.h>
#include <string.h>

enum { MESSAGES_MAX = 1000 };

static tide_status text_of(const json_t *request, const char *field, const char **text_out,
                           tide_error *err)
{
    const char *text = json_string_value(json_object_get(request, field));
    if (text == NULL || text[0] == '\0')
        return tide_error_set(err, TIDE_INVALID, "\"%s\" is missing", field);
    *text_out = text;
    return TIDE_OK;
}

static tide_status op_job(tide_reader *reader, uint32_t account, const json_t *request,
                          const char *field,
                          tide_status (*ask)(tide_reader *reader, uint32_t account,
                                             const char *what, uint64_t *job_out, tide_error *err),
                          tide_json *answer, tide_error *err)
{
    const char *what = NULL;
    uint64_t job = 0;
    TIDE_TRY(text_of(request, field, &what, err));
    TIDE_TRY(ask(reader, account, what, &job, err));
    tide_json_set_u64(answer, "job", job);
    return TIDE_OK;
}

static tide_status op_act(tide_reader *reader, uint32_t account, const json_t *request,
                          tide_json *answer, tide_error *err)
{
    const json_t *list = json_object_get(request, "messages");
    const size_t count = json_array_size(list);
    tide_text messages[MESSAGES_MAX];
    struct tide_reader_wish wish = {.messages = messages, .messages_count = count};
    struct tide_reader_action action;
    TIDE_TRY(text_of(request, "action", &wish.what, err));
    if (count > MESSAGES_MAX)
        return tide_error_set(err, TIDE_INVALID, "\"messages\" is a list of 1 to %d", MESSAGES_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(list, i);
        messages[i] = (tide_text){json_string_value(one), json_string_length(one)};
        if (messages[i].data == NULL || messages[i].bytes == 0)
            return tide_error_set(err, TIDE_INVALID, "an id of a message is a text");
    }
    wish.label = json_string_value(json_object_get(request, "label"));
    wish.draft = json_string_value(json_object_get(request, "draft"));
    TIDE_TRY(tide_reader_act(reader, account, &wish, &action, err));
    tide_json_set_u64(answer, "id", action.id);
    tide_json_set_u64(answer, "changed", action.messages);
    tide_json_set_u64(answer, "due_unix_ms", action.due_ms);
    return TIDE_OK;
}

static tide_status op_undo(tide_reader *reader, uint32_t account, const json_t *request,
                           tide_json *answer, tide_error *err)
{
    uint64_t id = 0;
    uint64_t inverse = 0;
    TIDE_TRY(tide_json_get_u64(request, "id", &id, err));
    TIDE_TRY(tide_reader_undo(reader, account, id, &inverse, err));
    tide_json_set_u64(answer, "inverse", inverse);
    return TIDE_OK;
}

/* ---- drafts ---- */

static tide_status op_save(tide_reader *reader, uint32_t account, const json_t *request,
                           tide_json *answer, tide_error *err)
{
    const char *id = NULL;
    bool created = false;
    struct tide_draft draft = {.account = account};
    TIDE_TRY(text_of(request, "draft", &id, err));
    TIDE_TRY(tide_json_get_text(request, "json", &draft.json, err));
    if (!tide_draft_is_id(id))
        return tide_error_set(err, TIDE_INVALID,
                              "the id of a draft has 1 to 64 letters, digits, - and _");
    (void)snprintf(draft.id, sizeof draft.id, "%s", id);
    TIDE_TRY(tide_reader_draft_put(reader, &draft, &created, err));
    tide_json_set_u64(answer, "saved_unix_ms", draft.changed_ms);
    tide_json_set_bool(answer, "created", created);
    return TIDE_OK;
}

static tide_status op_continue(tide_reader *reader, uint32_t account, const json_t *request,
                               tide_json *answer, tide_error *err)
{
    const char *message = NULL;
    char id[TIDE_DRAFT_ID_BYTES];
    uint64_t job = 0;
    TIDE_TRY(text_of(request, "message", &message, err));
    TIDE_TRY(tide_reader_continue(reader, account, message, id, &job, err));
    tide_json_set_cstr(answer, "draft", id);
    tide_json_set_u64(answer, "job", job);
    return TIDE_OK;
}

static tide_status op_discard(tide_reader *reader, uint32_t account, const json_t *request,
                              tide_json *answer, tide_error *err)
{
    const char *id = NULL;
    bool removed = false;
    TIDE_TRY(text_of(request, "draft", &id, err));
    TIDE_TRY(tide_reader_draft_drop(reader, account, id, &removed, err));
    tide_json_set_bool(answer, "removed", removed);
    return TIDE_OK;
}

static tide_status op_attach(tide_reader *reader, uint32_t account, const json_t *request,
                             tide_json *answer, tide_error *err)
{
    const char *id = NULL;
    struct tide_draft_file file = {.type = ""};
    (void)answer;
    TIDE_TRY(text_of(request, "draft", &id, err));
    TIDE_TRY(text_of(request, "name", &file.name, err));
    TIDE_TRY(text_of(request, "type", &file.type, err));
    TIDE_TRY(text_of(request, "file", &file.file, err));
    TIDE_TRY(tide_json_get_u64(request, "bytes", &file.bytes, err));
    return tide_reader_attach(reader, account, id, &file, err);
}

static tide_status op_detach(tide_reader *reader, uint32_t account, const json_t *request,
                             tide_json *answer, tide_error *err)
{
    const char *id = NULL;
    const char *name = NULL;
    bool removed = false;
    TIDE_TRY(text_of(request, "draft", &id, err));
    TIDE_TRY(text_of(request, "name", &name, err));
    TIDE_TRY(tide_reader_detach(reader, account, id, name, &removed, err));
    tide_json_set_bool(answer, "removed", removed);
    return TIDE_OK;
}

static tide_status op_begin(tide_reader *reader, uint32_t account, const json_t *request,
                            tide_json *answer, tide_error *err)
{
    (void)request;
    (void)answer;
    return tide_reader_begin(reader, account, err);
}

static tide_status op_people(tide_reader *reader, uint32_t account, const json_t *request,
                             tide_json *answer, tide_error *err)
{
    (void)request;
    (void)answer;
    return tide_reader_people(reader, account, err);
}

static void op_states(tide_reader *reader, tide_json *answer)
{
    tide_json list;
    tide_json_array(&list);
    tide_reader_states(reader, &list);
    tide_json_set(answer, "accounts", &list);
}

tide_status reader_op(void *arg, const json_t *request, tide_json *answer, tide_error *err)
{
    static const struct {
        const char *name, *field;
        tide_status (*ask)(tide_reader *reader, uint32_t account, const char *what,
                           uint64_t *job_out, tide_error *err);
    } jobs[] = {{"open", "message", tide_reader_fetch},
                {"more", "folder", tide_reader_more},
                {"refresh", "folder", tide_reader_refresh},
                {"search", "query", tide_reader_search}};
    static const struct {
        const char *name;
        tide_status (*run)(tide_reader *reader, uint32_t account, const json_t *request,
                           tide_json *answer, tide_error *err);
    } others[] = {{"act", op_act},       {"undo", op_undo},       {"begin", op_begin},
                  {"save", op_save},     {"discard", op_discard}, {"attach", op_attach},
                  {"detach", op_detach}, {"people", op_people},   {"continue", op_continue}};
    tide_reader *reader = arg;
    const char *what = NULL;
    const char *email = NULL;
    uint32_t account = 0;
    TIDE_TRY(text_of(request, "do", &what, err));
    if (strcmp(what, "states") == 0) {
        op_states(reader, answer);
        return TIDE_OK;
    }
    TIDE_TRY(text_of(request, "account", &email, err));
    TIDE_TRY(tide_reader_account(reader, email, &account, err));
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        if (strcmp(jobs[i].name, what) == 0)
            return op_job(reader, account, request, jobs[i].field, jobs[i].ask, answer, err);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(others[i].name, what) == 0)
            return others[i].run(reader, account, request, answer, err);
    return tide_error_set(err, TIDE_INVALID, "the reader cannot do \"%.40s\"", what);
}
