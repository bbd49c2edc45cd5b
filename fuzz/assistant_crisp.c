/* assistant_crisp.c - any bytes as a message that Crisp forwards, and as one that is answered
 * (assistant/text: crisp.h CRS1 and CRS2, letter.h, reply.h RPL2). */
#include "assistant/text/crisp.h"
#include "assistant/text/reply.h"
#include "base/json.h"
#include "fuzz.h"

static bool inside(tide_text part, tide_text whole)
{
    return part.bytes == 0 ||
           (part.data >= whole.data && part.data + part.bytes <= whole.data + whole.bytes);
}

static void check_crisp(const struct tide_letter *letter)
{
    struct tide_crisp crisp;
    tide_crisp_read(letter, &crisp);
    TIDE_ASSERT(inside(crisp.message, letter->text));
    TIDE_ASSERT(inside(crisp.name, letter->text));
    TIDE_ASSERT(crisp.address.bytes == 0 || tide_mailbox_is_address(crisp.address));
    TIDE_ASSERT(crisp.recognized ||
                (crisp.name.bytes == 0 && crisp.message.bytes == letter->text.bytes));
}

/* Every line before the empty one is one of our headers, or continues it. */
static void check_headers(tide_text mime)
{
    static const char *const known[] = {"From: ",
                                        "To: ",
                                        "Cc: ",
                                        "Subject: ",
                                        "In-Reply-To: ",
                                        "References: ",
                                        "MIME-Version",
                                        "Content-Type",
                                        "Content-Transfer-Encoding",
                                        " "};
    while (mime.bytes >= 2 && memcmp(mime.data, "\r\n", 2) != 0) {
        const char *end = memmem(mime.data, mime.bytes, "\r\n", 2);
        TIDE_ASSERT(end != NULL);
        const size_t bytes = (size_t)(end - mime.data);
        bool good = false;
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
            good = good || (bytes >= strlen(known[i]) &&
                            memcmp(mime.data, known[i], strlen(known[i])) == 0);
        TIDE_ASSERT(good && bytes <= 998);
        for (size_t i = 0; i < bytes; i++)
            TIDE_ASSERT(mime.data[i] >= ' ' && mime.data[i] < 0x7f);
        mime = (tide_text){end + 2, mime.bytes - bytes - 2};
    }
    TIDE_ASSERT(mime.bytes >= 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const tide_text raw = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_auto_arena arena = tide_arena_heap(64 << 20);
    struct tide_letter letter;
    TIDE_ASSERT(tide_letter_read(raw, &arena, &letter) == TIDE_OK);
    check_crisp(&letter);
    tide_auto_buf mime = tide_buf_heap(4 << 20);
    const struct tide_reply reply = {.answered = &letter,
                                     .self = TIDE_TEXT("me@home.cz"),
                                     .body = tide_utf8_cut(letter.text, 1000),
                                     .everyone = true};
    TIDE_ASSERT(tide_reply_add(&reply, &mime, NULL) == TIDE_OK);
    check_headers(tide_buf_text(&mime));
    free((void *)(uintptr_t)raw.data);
    return 0;
}
