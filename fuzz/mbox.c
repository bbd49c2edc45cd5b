/* mbox.c - any bytes as a mailbox: some sequence of messages that covers every byte of the file
 * once; and the same bytes written as a message are read back. */
#include "fuzz.h"
#include "mail/files/mbox.h"

static tide_status from_text(void *arg, uint64_t at, char *bytes, size_t room, size_t *count_out,
                             tide_error *err)
{
    const tide_text *file = arg;
    (void)err;
    const size_t left = at >= file->bytes ? 0 : file->bytes - (size_t)at;
    *count_out = left < room ? left : room;
    if (*count_out > 0)
        memcpy(bytes, file->data + at, *count_out);
    return TIDE_OK;
}

static tide_status to_buf(void *arg, const char *bytes, size_t count, tide_error *err)
{
    (void)err;
    return tide_buf_add(arg, bytes, count);
}

/* Reads all of it; *last is the last message. */
static size_t read_all(tide_text file, tide_buf *last)
{
    tide_mbox *mbox = NULL;
    struct tide_mbox_message message;
    tide_error err = {TIDE_OK, 0, ""};
    size_t count = 0;
    uint64_t total = 0;
    TIDE_ASSERT(tide_mbox_new(from_text, &file, 0, tide_mem_heap(), &mbox, &err) == TIDE_OK);
    tide_status rc = TIDE_OK;
    while ((rc = tide_mbox_next(mbox, &message, &err)) == TIDE_OK) {
        TIDE_ASSERT(message.bytes == message.raw->bytes);
        total += message.bytes;
        count++;
        tide_buf_clear(last);
        TIDE_ASSERT(tide_buf_add(last, message.raw->data, message.raw->bytes) == TIDE_OK);
    }
    TIDE_ASSERT(rc == TIDE_NOT_FOUND);
    TIDE_ASSERT(tide_mbox_at(mbox) == file.bytes);
    TIDE_ASSERT(total <= file.bytes);
    tide_mbox_free(mbox);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    tide_text text = fuzz_exact((tide_text){(const char *)data, bytes});
    tide_buf last, file, scratch;
    tide_error err = {TIDE_OK, 0, ""};
    struct tide_mbox_note note;
    tide_text rest = TIDE_TEXT_NONE;
    int64_t date_ms = 0;
    tide_buf_init(&last, tide_mem_heap(), 64 << 20);
    tide_buf_init(&file, tide_mem_heap(), 64 << 20);
    tide_buf_init(&scratch, tide_mem_heap(), 1 << 20);
    (void)read_all(text, &last);
    (void)tide_mbox_date(text, &date_ms);
    (void)tide_mbox_note_read(text, &note, &rest);
    const struct tide_mbox_entry entry = {.raw = text, .sender = text, .note = {.id = text}};
    if (tide_mbox_write(&entry, &scratch, to_buf, &file, &err) == TIDE_OK) {
        TIDE_ASSERT(read_all(tide_buf_text(&file), &last) == 1);
        TIDE_ASSERT(tide_mbox_note_read(tide_buf_text(&last), &note, &rest));
        TIDE_ASSERT(note.bytes == text.bytes);
        TIDE_ASSERT(rest.bytes - note.bytes <= 1);
        TIDE_ASSERT(text.bytes == 0 || memcmp(rest.data, text.data, text.bytes) == 0);
    }
    tide_buf_done(&last);
    tide_buf_done(&file);
    tide_buf_done(&scratch);
    free((void *)(uintptr_t)text.data);
    return 0;
}
