#include "assistant/text/reply.h"

#include "assistant/match/fold.h"
#include "base/encode.h"
#include "base/json.h"
#include "mail/mime/charset.h"

enum { NAME_BYTES_MAX = 120, BASE64_LINE_BYTES = 57 };

/* ---- recipients ------------------------------------------------------------------- */

static bool is_in(const struct tide_mailbox *mailboxes, size_t count, tide_text address)
{
    for (size_t i = 0; i < count; i++)
        if (tide_mailbox_equal(mailboxes[i].address, address))
            return true;
    return false;
}

/* Adds the mailboxes of a header that are neither the user's nor in the lists already. */
static void take(struct tide_recipients *recipients, tide_text header, tide_text self, bool cc)
{
    struct tide_mailbox found[TIDE_MAILBOXES_MAX];
    const size_t count = tide_mailboxes_read(header, found, TIDE_MAILBOXES_MAX);
    struct tide_mailbox *list = cc ? recipients->cc : recipients->to;
    size_t *list_count = cc ? &recipients->cc_count : &recipients->to_count;
    for (size_t i = 0; i < count && *list_count < TIDE_REPLY_RECIPIENTS_MAX; i++) {
        const tide_text address = found[i].address;
        if (!tide_mailbox_equal(address, self) &&
            !is_in(recipients->to, recipients->to_count, address) &&
            !is_in(recipients->cc, recipients->cc_count, address))
            list[(*list_count)++] = found[i];
    }
}

void tide_reply_recipients(const struct tide_letter *answered, tide_text self, bool everyone,
                           struct tide_recipients *recipients_out)
{
    *recipients_out = (struct tide_recipients){.to_count = 0};
    const bool own = tide_mailbox_equal(tide_letter_sender(answered), self);
    if (own)
        take(recipients_out, answered->to, self, false);
    else
        take(recipients_out, answered->reply_to, self, false);
    if (!own && recipients_out->to_count == 0)
        take(recipients_out, answered->from, self, false);
    if (!own && !everyone && recipients_out->to_count > 1)
        recipients_out->to_count = 1; /* a stranger's Reply-To is no list of ours to serve */
    if (everyone) {
        if (!own)
            take(recipients_out, answered->to, self, true);
        take(recipients_out, answered->cc, self, true);
    }
    if (recipients_out->to_count == 0 && recipients_out->cc_count == 0 && own) {
        /* A note to oneself. */
        recipients_out->to[0] = (struct tide_mailbox){TIDE_TEXT(""), self};
        recipients_out->to_count = tide_mailbox_is_address(self);
    }
}

/* ---- headers ----------------------------------------------------------------------- */

static bool is_ascii(tide_text text)
{
    for (size_t i = 0; i < text.bytes; i++)
        if ((unsigned char)text.data[i] >= 0x7f || (unsigned char)text.data[i] < ' ')
            return false;
    return true;
}

/* Whether it can stand in a header as it is.  An encoded word that a stranger wrote as plain text
 * would be decoded by the next reader, with whatever is in it. */
static bool is_plain(tide_text text)
{
    return is_ascii(text) && (text.bytes < 2 || memmem(text.data, text.bytes, "=?", 2) == NULL);
}

/* The name as a stranger wrote it, without the quotes that display put around it. */
static tide_status plain_name(tide_text name, tide_buf *out)
{
    tide_auto_buf clean = tide_buf_in(out->mem, NAME_BYTES_MAX * 2);
    const tide_status rc = tide_clean_add(name, TIDE_CLEAN_LINE, &clean);
    if (rc != TIDE_OK)
        return rc == TIDE_FULL ? TIDE_OK : rc; /* too long to be a name */
    tide_text text = tide_text_trimmed(tide_buf_text(&clean));
    const bool quoted = text.bytes >= 2 && text.data[0] == '"' && text.data[text.bytes - 1] == '"';
    if (quoted)
        text = (tide_text){text.data + 1, text.bytes - 2};
    for (size_t i = 0; i < text.bytes; i++) {
        i += quoted && text.data[i] == '\\' && i + 1 < text.bytes;
        TIDE_TRY(tide_buf_add(out, &text.data[i], 1));
    }
    return TIDE_OK;
}

static tide_status add_name(tide_text name, tide_buf *out)
{
    tide_auto_buf plain = tide_buf_in(out->mem, NAME_BYTES_MAX * 2);
    TIDE_TRY(plain_name(name, &plain));
    const tide_text text = tide_buf_text(&plain);
    if (text.bytes == 0 || text.bytes > NAME_BYTES_MAX)
        return TIDE_OK;
    if (!is_plain(text)) {
        TIDE_TRY(tide_encoded_words_add(out, text));
        return tide_buf_add(out, " ", 1);
    }
    TIDE_TRY(tide_buf_add(out, "\"", 1));
    for (size_t i = 0; i < text.bytes; i++) {
        if (text.data[i] == '"' || text.data[i] == '\\')
            TIDE_TRY(tide_buf_add(out, "\\", 1));
        TIDE_TRY(tide_buf_add(out, &text.data[i], 1));
    }
    return tide_buf_add(out, "\" ", 2);
}

/* "To: Ann <ann@example.org>,\r\n Bob <bob@example.org>\r\n"; nothing without mailboxes. */
static tide_status add_mailboxes(const char *header, const struct tide_mailbox *mailboxes,
                                 size_t count, tide_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        TIDE_TRY(i == 0 ? tide_buf_print(out, "%s: ", header) : tide_buf_add_text(out, ",\r\n "));
        TIDE_TRY(add_name(mailboxes[i].name, out));
        TIDE_TRY(tide_buf_print(out, "<%.*s>", (int)mailboxes[i].address.bytes,
                                mailboxes[i].address.data));
    }
    return count == 0 ? TIDE_OK : tide_buf_add_text(out, "\r\n");
}

/* The length of "Re:", "RE :", "Re[2]:" and what other languages have for it, at the front. */
static size_t reply_prefix(tide_text subject)
{
    static const char *const words[] = {"re", "aw", "sv", "odp", "vs", "antw"};
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        size_t at = strlen(words[w]);
        if (subject.bytes <= at ||
            !tide_fold_equal((tide_text){subject.data, at}, tide_text_of(words[w])))
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

tide_status tide_reply_subject(tide_text subject, tide_buf *out)
{
    tide_auto_buf clean = tide_buf_in(out->mem, TIDE_LETTER_HEADER_BYTES_MAX);
    const tide_status rc = tide_clean_add(subject, TIDE_CLEAN_LINE, &clean);
    if (rc != TIDE_OK && rc != TIDE_FULL)
        return rc;
    tide_text text = tide_text_trimmed(tide_buf_text(&clean));
    for (size_t prefix = 0; (prefix = reply_prefix(text)) > 0;)
        text = tide_text_trimmed((tide_text){text.data + prefix, text.bytes - prefix});
    text = tide_utf8_cut(text, TIDE_REPLY_SUBJECT_BYTES_MAX);
    TIDE_TRY(tide_buf_add_text(out, "Re: "));
    return text.bytes == 0 ? TIDE_OK : tide_buf_add(out, text.data, text.bytes);
}

static tide_status add_subject(tide_text subject, tide_buf *out)
{
    tide_auto_buf text = tide_buf_in(out->mem, TIDE_REPLY_SUBJECT_BYTES_MAX + 8);
    TIDE_TRY(tide_reply_subject(subject, &text));
    TIDE_TRY(tide_buf_add_text(out, "Subject: "));
    TIDE_TRY(is_plain(tide_buf_text(&text)) ? tide_buf_add(out, text.data, text.bytes)
                                            : tide_encoded_words_add(out, tide_buf_text(&text)));
    return tide_buf_add_text(out, "\r\n");
}

/* The ids of a thread: the first one, by which it is known, and the last ones. */
static tide_status add_references(const struct tide_letter *answered, tide_buf *out)
{
    tide_text ids[TIDE_REPLY_REFERENCES_MAX];
    size_t count = 0;
    tide_text rest = answered->references;
    while (rest.bytes > 0) {
        const tide_text id = tide_text_word(&rest);
        if (!tide_letter_is_id(id) || tide_text_equal(id, answered->message_id))
            continue;
        if (count == TIDE_REPLY_REFERENCES_MAX - 1) { /* the second one makes room */
            memmove(&ids[1], &ids[2], (count - 2) * sizeof ids[0]);
            count--;
        }
        ids[count++] = id;
    }
    if (tide_letter_is_id(answered->message_id))
        ids[count++] = answered->message_id;
    for (size_t i = 0; i < count; i++)
        TIDE_TRY(tide_buf_print(out, "%s<%.*s>", i == 0 ? "References: " : "\r\n ",
                                (int)ids[i].bytes, ids[i].data));
    return count == 0 ? TIDE_OK : tide_buf_add_text(out, "\r\n");
}

static bool is_token(tide_text token)
{
    for (size_t i = 0; i < token.bytes; i++)
        if (!tide_is_plain(token.data[i], "-_"))
            return false;
    return token.bytes <= TIDE_REPLY_TOKEN_BYTES_MAX;
}

static tide_status add_body(tide_text body, tide_buf *out)
{
    for (size_t at = 0; at < body.bytes; at += BASE64_LINE_BYTES) {
        const size_t left = body.bytes - at;
        const tide_text line = {body.data + at,
                                left < BASE64_LINE_BYTES ? left : BASE64_LINE_BYTES};
        TIDE_TRY(tide_base64_add(out, line, tide_base64_standard, true));
        TIDE_TRY(tide_buf_add_text(out, "\r\n"));
    }
    return TIDE_OK;
}

static tide_status add_clean_body(tide_text body, tide_buf *out)
{
    tide_auto_buf clean = tide_buf_in(out->mem, TIDE_REPLY_BODY_BYTES_MAX * 2);
    tide_auto_buf lines = tide_buf_in(out->mem, TIDE_REPLY_BODY_BYTES_MAX * 3);
    TIDE_TRY(tide_clean_add(body, TIDE_CLEAN_TEXT, &clean));
    for (size_t i = 0; i < clean.bytes; i++) /* text in a message has CR LF */
        TIDE_TRY(clean.data[i] == '\n' ? tide_buf_add(&lines, "\r\n", 2)
                                       : tide_buf_add(&lines, &clean.data[i], 1));
    return add_body(tide_buf_text(&lines), out);
}

static tide_status add_all(const struct tide_reply *reply, tide_buf *out)
{
    const struct tide_letter *answered = reply->answered;
    struct tide_recipients recipients;
    tide_reply_recipients(answered, reply->self, reply->everyone, &recipients);
    TIDE_TRY(tide_buf_print(out, "From: <%.*s>\r\n", (int)reply->self.bytes, reply->self.data));
    TIDE_TRY(add_mailboxes("To", recipients.to, recipients.to_count, out));
    TIDE_TRY(add_mailboxes("Cc", recipients.cc, recipients.cc_count, out));
    TIDE_TRY(add_subject(answered->subject, out));
    if (reply->message_id.bytes > 0)
        TIDE_TRY(tide_buf_print(out, "Message-ID: <%.*s>\r\n", (int)reply->message_id.bytes,
                                reply->message_id.data));
    if (tide_letter_is_id(answered->message_id))
        TIDE_TRY(tide_buf_print(out, "In-Reply-To: <%.*s>\r\n", (int)answered->message_id.bytes,
                                answered->message_id.data));
    TIDE_TRY(add_references(answered, out));
    if (reply->token.bytes > 0)
        TIDE_TRY(tide_buf_print(out, "X-Tidemark-Draft: %.*s\r\n", (int)reply->token.bytes,
                                reply->token.data));
    TIDE_TRY(tide_buf_add_text(out, "MIME-Version: 1.0\r\n"
                                    "Content-Type: text/plain; charset=utf-8\r\n"
                                    "Content-Transfer-Encoding: base64\r\n\r\n"));
    return add_clean_body(reply->body, out);
}

tide_status tide_reply_add(const struct tide_reply *reply, tide_buf *out, tide_error *err)
{
    if (!tide_mailbox_is_address(reply->self))
        return tide_error_set(err, TIDE_INVALID, "\"%.*s\" is not an address to write from",
                              (int)tide_utf8_cut(reply->self, 80).bytes, reply->self.data);
    if (!is_token(reply->token))
        return tide_error_set(err, TIDE_INVALID, "the tag of a draft is malformed");
    if (reply->message_id.bytes > 0 && !tide_letter_is_id(reply->message_id))
        return tide_error_set(err, TIDE_INVALID, "the id of a reply is malformed");
    if (reply->body.bytes > TIDE_REPLY_BODY_BYTES_MAX)
        return tide_error_set(err, TIDE_FULL, "the draft is longer than %d bytes",
                              TIDE_REPLY_BODY_BYTES_MAX);
    const tide_status rc = add_all(reply, out);
    return rc == TIDE_OK ? rc : tide_error_set(err, rc, "the draft could not be written");
}
