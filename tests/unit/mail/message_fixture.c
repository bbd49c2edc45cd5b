#include "message_fixture.h"
#include "support/ok.h"
#include "support/heap.h"

void assert_clean(tide_text text, bool line)
{
    for (size_t i = 0; i < text.bytes;) {
        size_t bytes = tide_utf8_bytes((tide_text){text.data + i, text.bytes - i});
        unsigned char c = (unsigned char)text.data[i];
        if (bytes == 0)
            fail_msg("not UTF-8 at byte %zu of %zu", i, text.bytes);
        bool control = (c < 0x20 && (line || (c != '\n' && c != '\t'))) || c == 0x7f ||
                       (c == 0xc2 && (unsigned char)text.data[i + 1] < 0xa0);
        if (control)
            fail_msg("control character at byte %zu of %zu", i, text.bytes);
        i += bytes;
    }
}

static void assert_regions(tide_text raw, const struct tide_message *message)
{
    for (size_t i = 0; i < message->attachments_count; i++) {
        const struct tide_attachment *one = &message->attachments[i];
        assert_true(one->begin <= one->end);
        assert_true(one->end <= raw.bytes);
        assert_clean(one->name, true);
        assert_clean(one->type, true);
        assert_true(one->name.bytes == 0 || memchr(one->name.data, '/', one->name.bytes) == NULL);
        for (size_t j = 0; j < i; j++) { /* in order; apart, or one inside the other */
            const struct tide_attachment *other = &message->attachments[j];
            assert_true(other->begin <= one->begin);
            assert_true(other->end <= one->begin || other->end >= one->end);
        }
        tide_error err = {TIDE_OK, 0, ""};
        tide_buf out = heap_buf(raw.bytes + 1);
        OK(tide_attachment_decode(raw, one, &out, &err));
        assert_true(out.bytes <= one->end - one->begin);
        tide_buf_done(&out);
    }
}

static void assert_message(tide_text raw, const struct tide_message *message)
{
    const tide_text lines[] = {
        message->from,    message->to,         message->cc,          message->bcc,
        message->subject, message->message_id, message->in_reply_to, message->references,
        message->list_id, message->reply_to,
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        assert_clean(lines[i], true);
    assert_clean(message->text, false);
    assert_true(message->text.bytes <= TIDE_MESSAGE_TEXT_BYTES_MAX);
    assert_true(message->attachments_count <= TIDE_MESSAGE_ATTACHMENTS_MAX);
    assert_int_equal(message->problem == NULL, message->parsed == TIDE_PARSED_WHOLE);
    assert_regions(raw, message);
}

void parse(tide_text raw, struct parsed *parsed)
{
    tide_arena_init(&parsed->arena, tide_mem_heap(), 64 << 20);
    OK(tide_message_parse(raw, &parsed->arena, &parsed->message));
    assert_message(raw, &parsed->message);
    struct tide_parts parts;
    OK(tide_parts_scan(raw, tide_mem_heap(), &parts));
    assert_true(tide_parts_check(&parts, raw));
    tide_parts_done(&parts);
}

void parsed_done(struct parsed *parsed)
{
    tide_arena_done(&parsed->arena);
}

tide_text exact(tide_text text)
{
    char *copy = malloc(text.bytes == 0 ? 1 : text.bytes);
    assert_non_null(copy);
    if (text.bytes > 0)
        memcpy(copy, text.data, text.bytes);
    return (tide_text){copy, text.bytes};
}

void exact_free(tide_text text)
{
    free((void *)(uintptr_t)text.data);
}

void assert_text(tide_text text, const char *expected)
{
    if (!tide_text_equal(text, tide_text_of(expected)))
        fail_msg("got \"%.*s\"\nexpected \"%s\"", (int)text.bytes, text.data, expected);
}

static void corpus_file(struct corpus *corpus, const char *path, size_t bytes)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *data = malloc(bytes == 0 ? 1 : bytes);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, bytes, file), bytes);
    (void)fclose(file);
    corpus->names[corpus->count] = strdup(path);
    corpus->files[corpus->count++] = (tide_text){data, bytes};
}

static void corpus_dir(struct corpus *corpus, const char *path, int deep)
{
    struct dirent **names = NULL;
    int found = scandir(path, &names, NULL, alphasort);
    for (int i = 0; i < found; i++) {
        char file[4096];
        struct stat info;
        int bytes = snprintf(file, sizeof file, "%s/%s", path, names[i]->d_name);
        assert_true(bytes > 0 && (size_t)bytes < sizeof file);
        if (names[i]->d_name[0] != '.' && stat(file, &info) == 0) {
            if (S_ISDIR(info.st_mode) && deep > 0)
                corpus_dir(corpus, file, deep - 1);
            else if (S_ISREG(info.st_mode) && corpus->count < CORPUS_FILES_MAX)
                corpus_file(corpus, file, (size_t)info.st_size);
        }
        free(names[i]);
    }
    free(names);
}

struct corpus *corpus_open(void)
{
    static const char *const places[] = {
        "../shared/corpus/mail",
        "../../shared/corpus/mail",
        "../../../shared/corpus/mail",
    };
    struct corpus *corpus = calloc(1, sizeof *corpus);
    assert_non_null(corpus);
    const char *named = getenv("TIDE_CORPUS");
    if (named != NULL)
        corpus_dir(corpus, named, 4);
    for (size_t i = 0; corpus->count == 0 && i < sizeof places / sizeof places[0]; i++)
        corpus_dir(corpus, places[i], 4);
    if (corpus->count > 0)
        return corpus;
    (void)fprintf(stderr, "no corpus of mail: set TIDE_CORPUS to test with one\n");
    free(corpus);
    return NULL;
}

void corpus_close(struct corpus *corpus)
{
    for (size_t i = 0; corpus != NULL && i < corpus->count; i++) {
        exact_free(corpus->files[i]);
        free(corpus->names[i]);
    }
    free(corpus);
}

void encode_base64(const char *bytes, size_t count, char *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        uint32_t three = 0;
        for (size_t j = 0; j < 3; j++)
            three = three << 8 | (i + j < count ? (unsigned char)bytes[i + j] : 0);
        for (size_t j = 0; j < 4; j++)
            *out++ = i + j <= count ? digits[three >> (18 - 6 * j) & 63] : '=';
    }
    *out = '\0';
}
