/* message.c - any bytes as a message: read, MSG3 and MSG4 of mail/mime/message.h, the parts CHK1 to
 * CHK3, and every attachment decoded. */
#include "fuzz.h"
#include "base/json.h"
#include "mail/mime/message.h"
#include "mail/mime/check.h"
#include "mail/search/search.h"

static void check_clean(tide_text text, bool line)
{
    for (size_t i = 0; i < text.bytes;) {
        size_t bytes = tide_utf8_bytes((tide_text){text.data + i, text.bytes - i});
        unsigned char c = (unsigned char)text.data[i];
        TIDE_ASSERT(bytes > 0);
        TIDE_ASSERT(c >= 0x20 || (!line && (c == '\n' || c == '\t')));
        TIDE_ASSERT(c != 0x7f && (c != 0xc2 || (unsigned char)text.data[i + 1] >= 0xa0));
        i += bytes;
    }
}

static void check_attachments(tide_text raw, const struct tide_message *message)
{
    uint64_t last = 0;
    for (size_t i = 0; i < message->attachments_count; i++) {
        const struct tide_attachment *one = &message->attachments[i];
        TIDE_ASSERT(one->begin >= last && one->begin <= one->end && one->end <= raw.bytes);
        last = one->begin;
        check_clean(one->name, true);
        check_clean(one->type, true);
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), raw.bytes + 1);
        TIDE_ASSERT(tide_attachment_decode(raw, one, &out, NULL) == TIDE_OK);
        TIDE_ASSERT(out.bytes <= one->end - one->begin);
        tide_buf_done(&out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tide_text raw = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_arena arena;
    struct tide_message message;
    tide_arena_init(&arena, tide_mem_heap(), 64 << 20);
    TIDE_ASSERT(tide_message_parse(raw, &arena, &message) == TIDE_OK);
    const tide_text lines[] = {message.from,       message.to,      message.cc,
                               message.bcc,        message.subject, message.reply_to,
                               message.message_id, message.list_id, message.in_reply_to,
                               message.references};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        check_clean(lines[i], true);
    check_clean(message.text, false);
    check_attachments(raw, &message);

    struct tide_parts parts;
    TIDE_ASSERT(tide_parts_scan(raw, tide_mem_heap(), &parts) == TIDE_OK);
    TIDE_ASSERT(tide_parts_check(&parts, raw));
    tide_parts_done(&parts);

    tide_buf folded;
    tide_buf_init(&folded, tide_mem_heap(), 64 << 20);
    TIDE_ASSERT(tide_search_fold(message.text, &folded) == TIDE_OK);
    check_clean(tide_buf_text(&folded), false);
    tide_buf_done(&folded);
    tide_arena_done(&arena);
    free((void *)(uintptr_t)raw.data);
    return 0;
}
