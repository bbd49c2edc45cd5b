/* chat_intake.c - answers of a model, in any bytes, whole and in pieces, in both dialects
 * (cloud/chat/intake.h).  The first byte chooses the dialect and the size of the pieces. */
#include "cloud/chat/intake.h"
#include "fuzz.h"

enum { BYTES_MAX = 2000 };

static const struct tide_chat_tool tools[] = {{{"f", 1}, {"", 0}, {"{}", 2}}};
static const struct tide_chat_talk talk = {.tools = tools, .tools_count = 1};

static void check_calls(const struct tide_chat_answer *answer)
{
    TIDE_ASSERT(answer->calls_count <= TIDE_CHAT_CALLS_MAX);
    for (size_t i = 0; i < answer->calls_count; i++) { /* TLK2 */
        json_t *value = NULL;
        TIDE_ASSERT(tide_json_parse(answer->calls[i].arguments, &value, NULL) == TIDE_OK);
        TIDE_ASSERT(json_is_object(value));
        json_decref(value);
    }
}

/* The answer as JSON, which reads back the same (TLK1); an empty text: there is none. */
static tide_status take(const struct tide_chat_reader *reader, tide_text text, size_t piece,
                        tide_buf *out)
{
    struct tide_chat_intake intake;
    struct tide_chat_answer answer = {.calls_count = 0};
    struct tide_chat_answer again = {.calls_count = 0};
    tide_auto_buf twice = tide_buf_heap(SIZE_MAX / 2);
    tide_error err = {TIDE_OK, 0, ""};
    tide_chat_intake_init(&intake, reader, BYTES_MAX, tide_mem_heap());
    for (size_t at = 0; at < text.bytes; at += piece) {
        const size_t left = text.bytes - at;
        (void)tide_chat_intake_write(&intake, text.data + at, left < piece ? left : piece);
    }
    const tide_status rc = tide_chat_intake_end(&intake, &talk, &answer, &err);
    TIDE_ASSERT(rc == TIDE_OK || (err.status == rc && err.text[0] != '\0'));
    TIDE_ASSERT(intake.bytes_kept <= BYTES_MAX || intake.mode == TIDE_INTAKE_WHOLE);
    if (rc == TIDE_OK) {
        check_calls(&answer);
        TIDE_ASSERT(tide_chat_answer_write(&answer, out, &err) == TIDE_OK);
        TIDE_ASSERT(tide_chat_answer_read(tide_buf_text(out), tide_mem_heap(), &again, &err) ==
                    TIDE_OK);
        TIDE_ASSERT(tide_chat_answer_write(&again, &twice, &err) == TIDE_OK);
        TIDE_ASSERT(tide_text_equal(tide_buf_text(out), tide_buf_text(&twice)));
    }
    tide_chat_answer_done(&again);
    tide_chat_answer_done(&answer);
    tide_chat_intake_done(&intake);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct fuzz_input input = {data, bytes};
    const uint8_t first = fuzz_u8(&input);
    const struct tide_chat_reader *reader =
        first % 2 == 0 ? &tide_chat_reader_openai : &tide_chat_reader_anthropic;
    const tide_text text = fuzz_exact((tide_text){(const char *)input.data, input.bytes});
    tide_auto_buf whole = tide_buf_heap(SIZE_MAX / 2);
    tide_auto_buf parts = tide_buf_heap(SIZE_MAX / 2);
    const tide_status rc = take(reader, text, text.bytes + 1, &whole);
    TIDE_ASSERT(take(reader, text, first / 2 + 1u, &parts) == rc); /* ITK1 */
    TIDE_ASSERT(tide_text_equal(tide_buf_text(&whole), tide_buf_text(&parts)));
    free((void *)(uintptr_t)text.data);
    return 0;
}
