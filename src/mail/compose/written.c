#include "mail/compose/written.h"

#include "base/json.h"
#include "mail/mime/charset.h"

enum { ARENA_BYTES_MAX = 1 << 20, LIST_MAX = TIDE_COMPOSE_RECIPIENTS_MAX + 1 };

struct form {
    const struct tide_written *written;
    json_t *value;
    tide_arena *arena;
};

/* "" when it is missing. */
static tide_status get(const struct form *form, const char *key, tide_text *text_out,
                       tide_error *err)
{
    const tide_status rc = tide_json_get_text(form->value, key, text_out, err);
    if (rc == TIDE_NOT_FOUND)
        *text_out = TIDE_TEXT("");
    return rc == TIDE_NOT_FOUND ? TIDE_OK : rc;
}

/* WTN1 */
static tide_status get_people(const struct form *form, const char *key,
                              const struct tide_mailbox **people_out, size_t *count_out,
                              tide_error *err)
{
    tide_text typed, wrong;
    TIDE_TRY(get(form, key, &typed, err));
    struct tide_mailbox *people = tide_arena_take(form->arena, LIST_MAX * sizeof *people);
    if (people == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for recipients");
    const bool good = tide_mailboxes_typed(typed, people, LIST_MAX, count_out, &wrong);
    if (*count_out == LIST_MAX)
        return tide_error_set(err, TIDE_FULL, "more than %d recipients",
                              TIDE_COMPOSE_RECIPIENTS_MAX);
    if (!good && form->written->sending) {
        const tide_text shown = tide_utf8_cut(wrong, 80);
        return tide_error_set(err, TIDE_INVALID, "%s: \"%.*s\" is not an address", key,
                              (int)shown.bytes, shown.data);
    }
    *people_out = people;
    return TIDE_OK;
}

/* The next id of a list, without its <>; "" when there is none. */
static tide_text next_id(tide_text *rest)
{
    while (rest->bytes > 0) {
        tide_text id = tide_text_trimmed(tide_text_word(rest));
        if (id.bytes > 2 && id.data[0] == '<' && id.data[id.bytes - 1] == '>')
            id = (tide_text){id.data + 1, id.bytes - 2};
        if (tide_compose_is_id(id))
            return id;
    }
    return TIDE_TEXT("");
}

static tide_status get_ids(const struct form *form, struct tide_compose *compose,
                           tide_text ids[TIDE_COMPOSE_REFERENCES_MAX], tide_error *err)
{
    tide_text rest;
    TIDE_TRY(get(form, "in_reply_to", &rest, err));
    compose->in_reply_to = next_id(&rest);
    TIDE_TRY(get(form, "references", &rest, err));
    for (tide_text id = next_id(&rest);
         id.bytes > 0 && compose->references_count < TIDE_COMPOSE_REFERENCES_MAX;
         id = next_id(&rest))
        ids[compose->references_count++] = id;
    compose->references = ids;
    return TIDE_OK;
}

/* WTN2 */
static tide_status get_subject(const struct form *form, tide_buf *line, tide_text *subject_out,
                               tide_error *err)
{
    TIDE_TRY(get(form, "subject", subject_out, err));
    if (form->written->sending || !tide_compose_has_control(*subject_out))
        return TIDE_OK;
    const tide_status rc = tide_clean_add(*subject_out, TIDE_CLEAN_LINE, line);
    if (rc != TIDE_OK && rc != TIDE_FULL)
        return tide_error_set(err, rc, "no memory for a subject");
    *subject_out = tide_buf_text(line);
    return TIDE_OK;
}

static tide_status add(const struct form *form, tide_buf *out, tide_error *err)
{
    const struct tide_written *written = form->written;
    tide_text ids[TIDE_COMPOSE_REFERENCES_MAX];
    tide_auto_buf line = tide_buf_in(form->arena->mem, TIDE_COMPOSE_SUBJECT_BYTES_MAX);
    struct tide_compose compose = {.from = written->from,
                                   .message_id = written->message_id,
                                   .dated = written->dated,
                                   .date_unix_ms = written->date_unix_ms,
                                   .zone_minutes = written->zone_minutes,
                                   .files = written->files,
                                   .files_count = written->files_count};
    TIDE_TRY(get_people(form, "to", &compose.to, &compose.to_count, err));
    TIDE_TRY(get_people(form, "cc", &compose.cc, &compose.cc_count, err));
    TIDE_TRY(get_people(form, "bcc", &compose.bcc, &compose.bcc_count, err));
    if (written->sending && compose.to_count + compose.cc_count + compose.bcc_count == 0)
        return tide_error_set(err, TIDE_INVALID, "the message has no recipient");
    TIDE_TRY(get_subject(form, &line, &compose.subject, err));
    TIDE_TRY(get(form, "text", &compose.text, err));
    TIDE_TRY(get_ids(form, &compose, ids, err));
    return tide_compose_add(&compose, out, err);
}

tide_status tide_written_add(const struct tide_written *written, tide_buf *out, tide_error *err)
{
    json_auto_t *value = NULL;
    TIDE_TRY(tide_json_parse(written->json, &value, err));
    if (!json_is_object(value))
        return tide_error_set(err, TIDE_INVALID, "a message is a JSON object");
    tide_auto_arena arena = tide_arena_in(out->mem, ARENA_BYTES_MAX);
    const struct form form = {.written = written, .value = value, .arena = &arena};
    return add(&form, out, err);
}
