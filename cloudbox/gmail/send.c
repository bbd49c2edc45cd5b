#include "cloudbox/gmail/send.h"

#include "base/calendar.h"
#include "base/check.h"
#include "cloudbox/mailbox/mime.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

/* ---- header fields, as bytes ---- */

struct field {
    size_t start, end; /* with its continuation lines and line ends */
    tide_text name;
};

/* The next field from *at on; false at the empty line or the end. */
static bool field_next(tide_text raw, size_t *at, struct field *field_out)
{
    const size_t start = *at;
    if (start >= raw.bytes || raw.data[start] == '\n' || raw.data[start] == '\r')
        return false;
    size_t end = start;
    do {
        const char *line_end = memchr(raw.data + end, '\n', raw.bytes - end);
        end = line_end == NULL ? raw.bytes : (size_t)(line_end - raw.data) + 1;
    } while (end < raw.bytes && (raw.data[end] == ' ' || raw.data[end] == '\t'));
    const char *colon = memchr(raw.data + start, ':', end - start);
    *field_out = (struct field){.start = start, .end = end};
    if (colon != NULL)
        field_out->name = (tide_text){raw.data + start, (size_t)(colon - raw.data) - start};
    *at = end;
    return true;
}

static bool field_is(const struct field *field, const char *name)
{
    return field->name.bytes == strlen(name) &&
           strncasecmp(field->name.data, name, field->name.bytes) == 0;
}

static bool has_field(tide_text raw, const char *name)
{
    struct field field;
    for (size_t at = 0; field_next(raw, &at, &field);)
        if (field_is(&field, name))
            return true;
    return false;
}

/* ---- recipients ---- */

/* One address without its display name: {NULL, 0} when the piece has none. */
static tide_text address_of(tide_text piece)
{
    tide_text inner = piece;
    bool quoted = false;
    for (size_t i = 0; i < piece.bytes; i++) {
        if (piece.data[i] == '"')
            quoted = !quoted;
        if (piece.data[i] == '<' && !quoted) {
            inner = (tide_text){piece.data + i + 1, piece.bytes - i - 1};
            const char *end = memchr(inner.data, '>', inner.bytes);
            if (end != NULL)
                inner.bytes = (size_t)(end - inner.data);
        }
    }
    const char *comment = inner.bytes == 0 ? NULL : memchr(inner.data, '(', inner.bytes);
    if (comment != NULL)
        inner.bytes = (size_t)(comment - inner.data);
    inner = box_trim(inner, BOX_SPACES);
    const char *at = inner.bytes == 0 ? NULL : memchr(inner.data, '@', inner.bytes);
    const bool good = at != NULL && at > inner.data && at + 1 < inner.data + inner.bytes &&
                      memchr(inner.data, ' ', inner.bytes) == NULL;
    return good ? inner : TIDE_TEXT_NONE;
}

/* The next piece between commas (or of a group), outside quotes and comments.  What ends in a colon
 * is the name of a group. */
static bool piece_next(tide_text list, size_t *at, tide_text *piece_out, bool *group_out)
{
    if (*at >= list.bytes)
        return false;
    const size_t start = *at;
    bool quoted = false, angle = false;
    size_t i = start, deep = 0;
    for (; i < list.bytes; i++) {
        const char c = list.data[i];
        if (c == '\\' && quoted)
            i++;
        else if (c == '"' && deep == 0)
            quoted = !quoted;
        else if (!quoted && c == '(')
            deep++;
        else if (!quoted && c == ')' && deep > 0)
            deep--;
        else if (deep > 0)
            continue;
        else if (!quoted && (c == '<' || c == '>'))
            angle = c == '<';
        else if (!quoted && !angle && (c == ',' || c == ';' || c == ':'))
            break;
    }
    const size_t end = i < list.bytes ? i : list.bytes;
    *group_out = end < list.bytes && list.data[end] == ':';
    *piece_out = (tide_text){list.data + start, end - start};
    *at = end + 1;
    return true;
}

static void add_recipient(struct box_call *call, tide_text address, struct box_recipients *to)
{
    char lower[BOX_EMAIL_BYTES_MAX + 1];
    to->count++;
    if (address.bytes > BOX_EMAIL_BYTES_MAX)
        return;
    for (size_t i = 0; i < address.bytes; i++)
        lower[i] = (char)tolower((unsigned char)address.data[i]);
    lower[address.bytes] = '\0';
    struct box_user *user = box_cloud_user(call->cloud, (tide_text){lower, address.bytes});
    if (user == call->user) {
        to->self = true;
        return;
    }
    bool listed = user == NULL;
    for (size_t i = 0; i < to->users_count; i++)
        listed = listed || to->users[i] == user;
    if (!listed && to->users_count < BOX_RECIPIENTS_MAX)
        to->users[to->users_count++] = user;
}

/* One header, as it stands: decoded names may have commas of their own.  An entry that is no
 * address is refused, as Gmail does. */
static bool read_header(struct box_call *call, const char *name, tide_text value,
                        struct box_recipients *to)
{
    tide_text piece;
    bool group = false;
    for (size_t at = 0; piece_next(value, &at, &piece, &group);) {
        const tide_text address = address_of(piece);
        if (group || box_trim(piece, BOX_SPACES).bytes == 0)
            continue;
        if (address.data == NULL) {
            box_fail_argument(call, "Invalid %s header", name);
            return false;
        }
        add_recipient(call, address, to);
    }
    return true;
}

bool box_recipients_read(struct box_call *call, tide_text raw, struct box_recipients *to_out)
{
    static const char *const names[] = {"To", "Cc", "Bcc"};
    struct field field;
    memset(to_out, 0, sizeof *to_out);
    for (size_t at = 0; field_next(raw, &at, &field);)
        for (size_t i = 0; i < 3; i++)
            if (field_is(&field, names[i])) {
                const size_t skipped = field.start + field.name.bytes + 1;
                if (!read_header(call, names[i],
                                 (tide_text){raw.data + skipped, field.end - skipped}, to_out))
                    return false;
            }
    if (to_out->count > BOX_RECIPIENTS_MAX) {
        box_fail_argument(call, "Too many recipients");
        return false;
    }
    if (to_out->count == 0) {
        box_fail_argument(call, "Recipient address required");
        return false;
    }
    return true;
}

/* ---- twice ---- */

static bool is_one(void *arg, uint32_t slot)
{
    (void)slot;
    *(bool *)arg = true;
    return false;
}

void box_send_watch(struct box_call *call, tide_text raw)
{
    static const uint16_t sent[] = {BOX_LABEL_SENT};
    struct box_view view;
    box_mime_headers(raw, call->scratch, &view);
    const struct box_walk walk = {.labels = sent,
                                  .labels_count = 1,
                                  .date_high_ms = UINT64_MAX,
                                  .message_id = view.message_id};
    bool found = false;
    if (view.message_id.bytes > 0)
        box_mailbox_walk(box_user_mailbox(call->user), &walk, BOX_WALK_START, is_one, &found);
    if (found)
        box_call_violation(call, "sent-twice", view.message_id);
}

/* ---- what is missing ---- */

/* "Tue, 14 Nov 2023 22:13:20 +0000" */
static void add_date(tide_buf *out, uint64_t now_ms)
{
    const int64_t days = (int64_t)(now_ms / 86400000);
    const unsigned rest_s = (unsigned)(now_ms % 86400000 / 1000);
    const struct tide_date date = tide_date_of(days);
    box_print(out, "%s, %u %s %d %02u:%02u:%02u +0000", tide_day_names[tide_weekday_of(days)],
              date.day, tide_month_names[date.month - 1], (int)date.year, rest_s / 3600,
              rest_s / 60 % 60, rest_s % 60);
}

void box_send_complete(struct box_call *call, tide_text raw, tide_buf *out)
{
    /* New lines end as the message's own do. */
    const char *first = memchr(raw.data, '\n', raw.bytes);
    const char *line_end =
        first != NULL && (first == raw.data || first[-1] != '\r') ? "\n" : "\r\n";
    if (!has_field(raw, "Date")) {
        box_add_cstr(out, "Date: ");
        add_date(out, call->now_ms);
        box_add_cstr(out, line_end);
    }
    if (!has_field(raw, "Message-ID")) {
        /* From what never comes again, so that none is given out twice, also not by a
         * cloud that was restarted with its state. */
        tide_rng rng = tide_rng_seeded(box_cloud_options(call->cloud)->seed ^
                                       (uint64_t)call->user->number << 40 ^
                                       box_mailbox_history_id(box_user_mailbox(call->user)));
        const uint64_t high = tide_rng_next(&rng);
        const uint64_t low = tide_rng_next(&rng);
        const char *domain = strchr(call->user->email, '@');
        box_print(out, "Message-ID: <%016" PRIx64 "%016" PRIx64 "@%s>%s", high, low,
                  domain != NULL ? domain + 1 : "localhost", line_end);
    }
    if (!has_field(raw, "From"))
        box_print(out, "From: %s%s", call->user->email, line_end);
    box_add(out, raw.data, raw.bytes);
}

/* ---- delivery ---- */

/* Blind copies are blind. */
static void add_without_bcc(tide_text raw, tide_buf *out)
{
    struct field field;
    size_t at = 0;
    while (field_next(raw, &at, &field))
        if (!field_is(&field, "Bcc"))
            box_add(out, raw.data + field.start, field.end - field.start);
    box_add(out, raw.data + at, raw.bytes - at);
}

void box_send_deliver(struct box_call *call, tide_text raw, const struct box_recipients *to)
{
    static const uint16_t labels[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD};
    if (to->users_count == 0)
        return;
    tide_auto_buf copy = tide_buf_heap(BOX_ANSWER_BYTES_MAX);
    add_without_bcc(raw, &copy);
    const struct box_insert message = {
        .raw = tide_buf_text(&copy), .date_ms = call->now_ms, .labels = labels, .labels_count = 2};
    for (size_t i = 0; i < to->users_count; i++) {
        struct box_user *user = to->users[i];
        TIDE_ASSERT(user != call->user);
        box_mailbox_insert(box_user_mailbox(user), &message);
    }
}
