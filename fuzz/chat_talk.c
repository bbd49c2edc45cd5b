/* chat_talk.c - stored conversations, in any text (cloud/chat/talk.h). */
#include "cloud/chat/talk.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const tide_text text = fuzz_exact((tide_text){(const char *)data, bytes});
    struct tide_chat_stored stored = {.talk = {.messages_count = 0}};
    struct tide_chat_stored again = {.talk = {.messages_count = 0}};
    tide_auto_buf line = tide_buf_heap(SIZE_MAX / 2);
    tide_auto_buf twice = tide_buf_heap(SIZE_MAX / 2);
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_chat_talk_read(text, tide_mem_heap(), &stored, &err) == TIDE_OK) {
        /* TLK1: what was read can be written, and reads back the same. */
        TIDE_ASSERT(tide_chat_talk_write(&stored.talk, &line, &err) == TIDE_OK);
        TIDE_ASSERT(tide_chat_talk_read(tide_buf_text(&line), tide_mem_heap(), &again, &err) ==
                    TIDE_OK);
        TIDE_ASSERT(tide_chat_talk_write(&again.talk, &twice, &err) == TIDE_OK);
        TIDE_ASSERT(tide_text_equal(tide_buf_text(&line), tide_buf_text(&twice)));
        TIDE_ASSERT(tide_chat_cost_of(&stored.talk, 0) == tide_chat_cost_of(&again.talk, 0));
    }
    tide_chat_stored_done(&stored);
    tide_chat_stored_done(&again);
    free((void *)(uintptr_t)text.data);
    return 0;
}
