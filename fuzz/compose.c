/* compose.c - any bytes as the fields of a message that is written (mail/compose:  CMP1 to CMP3):
 * what was accepted is read back by our own parser. */
#include "base/json.h"
#include "mail/compose/answer.h"
#include "mail/mime/charset.h"
#include "mail/mime/message.h"
#include "fuzz.h"

/* The next field: up to a zero byte. */
static tide_text field(tide_text *rest)
{
    const char *end = rest->bytes == 0 ? NULL : memchr(rest->data, '\0', rest->bytes);
    const size_t bytes = end == NULL ? rest->bytes : (size_t)(end - rest->data);
    const tide_text text = {rest->data, bytes};
    const size_t skipped = end == NULL ? bytes : bytes + 1;
    *rest = (tide_text){rest->data + skipped, rest->bytes - skipped};
    return text;
}

static void check_file(tide_text mime, const struct tide_message *message, tide_text bytes)
{
    tide_auto_buf back = tide_buf_heap(4 << 20);
    TIDE_ASSERT(message->attachments_count == 1);
    TIDE_ASSERT(tide_attachment_decode(mime, &message->attachments[0], &back, NULL) == TIDE_OK);
    TIDE_ASSERT(tide_text_equal(tide_buf_text(&back), bytes));
}

/* On one line, without the signs that say how bytes are ordered: a reader drops those. */
static void squeeze(tide_text text, tide_buf *out)
{
    static const char order[] = "\xef\xbb\xbf";
    tide_auto_buf clean = tide_buf_heap(16 << 20);
    TIDE_ASSERT(tide_clean_add(text, TIDE_CLEAN_LINE, &clean) == TIDE_OK);
    for (size_t i = 0; i < clean.bytes; i++) {
        if (clean.bytes - i >= 3 && memcmp(clean.data + i, order, 3) == 0)
            i += 2;
        else
            TIDE_ASSERT(tide_buf_add(out, clean.data + i, 1) == TIDE_OK);
    }
}

/* White space aside: what is shown of it is squeezed. */
static bool same_words(tide_text a, tide_text b)
{
    tide_auto_buf one = tide_buf_heap(16 << 20), two = tide_buf_heap(16 << 20);
    squeeze(a, &one);
    squeeze(b, &two);
    return tide_text_equal(tide_text_trimmed(tide_buf_text(&one)),
                           tide_text_trimmed(tide_buf_text(&two)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const tide_text input = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_text rest = input;
    struct tide_mailbox to[20];
    size_t to_count = 0;
    tide_text wrong;
    const tide_text typed = field(&rest);
    struct tide_compose compose = {.from = {field(&rest), TIDE_TEXT("me@home.cz")},
                                   .to = to,
                                   .subject = field(&rest),
                                   .message_id = field(&rest)};
    const struct tide_compose_file file = {field(&rest), field(&rest), field(&rest)};
    compose.text = rest;
    compose.opaque = bytes % 5 == 0;
    compose.files = &file;
    compose.files_count = file.bytes.bytes > 0;
    compose.to_count =
        tide_mailboxes_typed(typed, to, sizeof to / sizeof to[0], &to_count, &wrong) ? to_count : 0;
    tide_auto_buf mime = tide_buf_heap(16 << 20);
    tide_auto_arena arena = tide_arena_heap(64 << 20);
    const tide_status rc = tide_compose_add(&compose, &mime, NULL);
    TIDE_ASSERT(rc == TIDE_OK || rc == TIDE_INVALID || rc == TIDE_FULL);
    if (rc == TIDE_OK) {
        struct tide_message message;
        TIDE_ASSERT(tide_message_parse(tide_buf_text(&mime), &arena, &message) == TIDE_OK);
        TIDE_ASSERT(message.parsed == TIDE_PARSED_WHOLE);
        TIDE_ASSERT(same_words(message.subject, compose.subject));
        TIDE_ASSERT(same_words(message.text, compose.text));
        TIDE_ASSERT(tide_text_equal(message.message_id, compose.message_id));
        TIDE_ASSERT(message.bcc.bytes == 0);
        if (compose.files_count > 0)
            check_file(tide_buf_text(&mime), &message, file.bytes);
    }
    free((void *)(uintptr_t)input.data);
    return 0;
}
