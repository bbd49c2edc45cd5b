#include "mail/compose/answer.h"

#include "base/calendar.h"
#include "base/json.h"
#include "mail/mime/charset.h"

#include <stdio.h>

enum { SUBJECT_SEEN_BYTES_MAX = 16 << 10, DAY_MS = 86400000 };

/* ---- recipients ---- */

static bool is_in(const struct tide_mailbox *mailboxes, size_t count, tide_text address)
{
    for (size_t i = 0; i < count; i++)
        if (tide_mailbox_equal(mailboxes[i].address, address))
            return true;
    return false;
}

static bool is_self(const tide_text *selves, size_t count, tide_text address)
{
    for (size_t i = 0; i < count; i++)
        if (tide_mailbox_equal(selves[i], address))
            return true;
    return false;
}

/* Adds the mailboxes of a header that are neither the user's nor in the lists already. */
static void take(struct tide_recipients *recipients, tide_text header, const tide_text *selves,
                 size_t selves_count, bool cc)
{
    struct tide_mailbox found[TIDE_MAILBOXES_MAX];
    const size_t count = tide_mailboxes_read(header, found, TIDE_MAILBOXES_MAX);
    struct tide_mailbox *list = cc ? recipients->cc : recipients->to;
    size_t *list_count = cc ? &recipients->cc_count : &recipients->to_count;
    for (size_t i = 0; i < count && *list_count < TIDE_ANSWER_RECIPIENTS_MAX; i++) {
        const tide_text address = found[i].address;
        if (!is_self(selves, selves_count, address) &&
            !is_in(recipients->to, recipients->to_count, address) &&
            !is_in(recipients->cc, recipients->cc_count, address)) {
            if (found[i].name.bytes > TIDE_COMPOSE_NAME_BYTES_MAX ||
                tide_compose_has_control(found[i].name))
                found[i].name = TIDE_TEXT(""); /* of a stranger: no reason to refuse the answer */
            list[(*list_count)++] = found[i];
        }
    }
}

void tide_answer_recipients(const struct tide_answered *answered, const tide_text *selves,
                            size_t selves_count, tide_answer_to whom,
                            struct tide_recipients *recipients_out)
{
    *recipients_out = (struct tide_recipients){.to_count = 0};
    const bool own = is_self(selves, selves_count, tide_mailbox_first(answered->from).address);
    if (own)
        take(recipients_out, answered->to, selves, selves_count, false);
    else
        take(recipients_out, answered->reply_to, selves, selves_count, false);
    if (!own && recipients_out->to_count == 0)
        take(recipients_out, answered->from, selves, selves_count, false);
    if (!own && whom == TIDE_ANSWER_ONE && recipients_out->to_count > 1)
        recipients_out->to_count = 1;
    if (whom == TIDE_ANSWER_EVERYONE) {
        if (!own)
            take(recipients_out, answered->to, selves, selves_count, true);
        take(recipients_out, answered->cc, selves, selves_count, true);
    }
    if (recipients_out->to_count == 0 && recipients_out->cc_count == 0 && own) {
        /* A note to oneself. */
        recipients_out->to[0] = (struct tide_mailbox){TIDE_TEXT(""), selves[0]};
        recipients_out->to_count = tide_mailbox_is_address(selves[0]);
    }
}

/* ---- subjects ---- */

/* The length of "Re:", "RE :", "Re[2]:" and what other languages have for it, at the front. */
static size_t prefix_of(tide_text subject, const char *const *words)
{
    for (size_t w = 0; words[w] != NULL; w++) {
        size_t at = strlen(words[w]);
        if (subject.bytes <= at || !tide_text_starts_nocase(subject, words[w]))
            continue;
        if (subject.data[at] == '[') {
            const size_t digits = at + 1;
            for (at = digits; at < subject.bytes && subject.data[at] >= '0' &&
                              subject.data[at] <= '9' && at < digits + 3;)
                at++;
            if (at == digits || at >= subject.bytes || subject.data[at] != ']')
                continue;
            at++;
        }
        while (at < subject.bytes && subject.data[at] == ' ')
            at++;
        if (at < subject.bytes && subject.data[at] == ':')
            return at + 1;
    }
    return 0;
}

tide_status tide_answer_subject(tide_text subject, bool forward, tide_buf *out)
{
    static const char *const replies[] = {"re", "aw", "sv", "odp", "vs", "antw", NULL};
    static const char *const forwards[] = {"fwd", "fw", "wg", "vb", "pd", NULL};
    tide_auto_buf clean = tide_buf_in(out->mem, SUBJECT_SEEN_BYTES_MAX);
    const tide_status rc = tide_clean_add(subject, TIDE_CLEAN_LINE, &clean);
    if (rc != TIDE_OK && rc != TIDE_FULL)
        return rc;
    tide_text text = tide_text_trimmed(tide_buf_text(&clean));
    for (size_t prefix = 0; (prefix = prefix_of(text, forward ? forwards : replies)) > 0;)
        text = tide_text_trimmed((tide_text){text.data + prefix, text.bytes - prefix});
    text = tide_utf8_cut(text, TIDE_ANSWER_SUBJECT_BYTES_MAX);
    TIDE_TRY(tide_buf_add_text(out, forward ? "Fwd: " : "Re: "));
    return text.bytes == 0 ? TIDE_OK : tide_buf_add(out, text.data, text.bytes);
}

/* ---- ids ---- */

size_t tide_answer_references(const struct tide_answered *answered,
                              tide_text ids_out[TIDE_COMPOSE_REFERENCES_MAX])
{
    size_t count = 0;
    tide_text rest = answered->references;
    while (rest.bytes > 0) {
        const tide_text id = tide_text_word(&rest);
        if (!tide_compose_is_id(id) || tide_text_equal(id, answered->message_id))
            continue;
        if (count == TIDE_COMPOSE_REFERENCES_MAX - 1) { /* the second one makes room */
            memmove(&ids_out[1], &ids_out[2], (count - 2) * sizeof ids_out[0]);
            count--;
        }
        ids_out[count++] = id;
    }
    if (tide_compose_is_id(answered->message_id))
        ids_out[count++] = answered->message_id;
    return count;
}

/* ---- repeated text ---- */

/* "16 November 2026"; "": it has no date. */
static void day_of(const struct tide_answered *answered, char day[40])
{
    static const char months[12][10] = {"January",   "February", "March",    "April",
                                        "May",       "June",     "July",     "August",
                                        "September", "October",  "November", "December"};
    const int64_t ms = answered->date_unix_ms;
    day[0] = '\0';
    if (!answered->has_date)
        return;
    const struct tide_date date =
        tide_date_of(ms >= 0 ? ms / DAY_MS : -((DAY_MS - 1 - ms) / DAY_MS));
    (void)snprintf(day, 40, "%u %s %d", date.day, months[(date.month - 1) % 12], (int)date.year);
}

tide_status tide_answer_quote(const struct tide_answered *answered, size_t bytes_max, tide_buf *out)
{
    const tide_text shown = tide_utf8_cut(answered->text, bytes_max);
    const tide_text who =
        tide_utf8_cut(answered->from.bytes > 0 ? answered->from : TIDE_TEXT("the sender"), 200);
    tide_text rest = shown;
    char day[40];
    day_of(answered, day);
    TIDE_TRY(day[0] == '\0' ? TIDE_OK : tide_buf_print(out, "On %s, ", day));
    TIDE_TRY(tide_buf_print(out, "%.*s wrote:\n", (int)who.bytes, who.data));
    while (rest.bytes > 0) {
        const tide_text line = tide_text_line(&rest);
        const bool tight = line.bytes == 0 || line.data[0] == '>';
        TIDE_TRY(tide_buf_add(out, tight ? ">" : "> ", tight ? 1 : 2));
        TIDE_TRY(tide_buf_add(out, line.data, line.bytes));
        TIDE_TRY(tide_buf_add(out, "\n", 1));
    }
    return shown.bytes < answered->text.bytes ? tide_buf_add_text(out, "> [...]\n") : TIDE_OK;
}

static tide_status add_line(const char *name, tide_text value, tide_buf *out)
{
    const tide_text shown = tide_utf8_cut(value, 1000);
    return shown.bytes == 0 ? TIDE_OK
                            : tide_buf_print(out, "%s: %.*s\n", name, (int)shown.bytes, shown.data);
}

tide_status tide_answer_forward(const struct tide_answered *answered, size_t bytes_max,
                                tide_buf *out)
{
    const tide_text shown = tide_utf8_cut(answered->text, bytes_max);
    char day[40];
    day_of(answered, day);
    TIDE_TRY(tide_buf_add_text(out, "---------- Forwarded message ---------\n"));
    TIDE_TRY(add_line("From", answered->from, out));
    TIDE_TRY(add_line("Date", tide_text_of(day), out));
    TIDE_TRY(add_line("Subject", answered->subject, out));
    TIDE_TRY(add_line("To", answered->to, out));
    TIDE_TRY(add_line("Cc", answered->cc, out));
    TIDE_TRY(tide_buf_add_text(out, "\n"));
    TIDE_TRY(shown.bytes == 0 ? TIDE_OK : tide_buf_add(out, shown.data, shown.bytes));
    return shown.bytes < answered->text.bytes ? tide_buf_add_text(out, "\n[...]\n") : TIDE_OK;
}
