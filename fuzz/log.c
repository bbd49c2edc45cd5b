/* log.c - log lines with any text: LOG2 (one line, valid JSON, bounded) and LOG3 (no secret: text
 * after "token=" and the like is never printed). */
#include "fuzz.h"
#include "base/json.h"
#include "base/log.h"

#define SECRET "QzXj7Wq9"

struct caught {
    char data[TIDE_LOG_LINE_BYTES_MAX];
    size_t bytes;
};

static void catch_line(void *arg, const char *line, size_t bytes)
{
    struct caught *caught = arg;
    TIDE_ASSERT(bytes <= sizeof caught->data);
    memcpy(caught->data, line, bytes);
    caught->bytes = bytes;
}

static void check_line(const struct caught *caught, tide_log_format format, bool leaks)
{
    TIDE_ASSERT(caught->bytes > 0 && caught->data[caught->bytes - 1] == '\n');
    TIDE_ASSERT(memchr(caught->data, '\n', caught->bytes - 1) == NULL);
    for (size_t i = 0; i + 1 < caught->bytes; i++)
        TIDE_ASSERT((unsigned char)caught->data[i] >= 0x20 && caught->data[i] != 0x7f);
    bool shown = memmem(caught->data, caught->bytes, SECRET, strlen(SECRET)) != NULL;
    TIDE_ASSERT(leaks || !shown);
    if (format == TIDE_LOG_PLAIN)
        return;
    /* Numbers beyond an int64_t are valid JSON, but jansson cannot hold them. */
    json_t *line = json_loadb(caught->data, caught->bytes,
                              JSON_DECODE_INT_AS_REAL | JSON_REJECT_DUPLICATES, NULL);
    TIDE_ASSERT(line != NULL);
    TIDE_ASSERT(json_object_get(line, "event") != NULL);
    json_decref(line);
}

/* Puts text around a secret.  Texts that contain it already prove nothing. */
static bool plant(tide_text before, const char *lead, tide_text after, tide_buf *text)
{
    if (memmem(before.data, before.bytes, SECRET, strlen(SECRET)) != NULL ||
        memmem(after.data, after.bytes, SECRET, strlen(SECRET)) != NULL)
        return false;
    return tide_buf_add(text, before.data, before.bytes) == TIDE_OK &&
           tide_buf_add_text(text, lead) == TIDE_OK && tide_buf_add_text(text, SECRET) == TIDE_OK &&
           tide_buf_add(text, after.data, after.bytes) == TIDE_OK;
}

static void write_line(tide_log_format format, tide_text text, uint64_t number, bool leaks)
{
    struct caught caught = {.bytes = 0};
    tide_log log;
    tide_log_init(&log, TIDE_LOG_DEBUG, format, "run", catch_line, &caught);
    tide_log_event(&log, TIDE_LOG_WARN, number, "fuzz", TIDE_F_TEXT("url", text),
                   TIDE_F_TEXT("access_token", TIDE_TEXT(SECRET)), TIDE_F_U64("n", number),
                   TIDE_F_I64("i", number), TIDE_F_TEXT("error", text));
    check_line(&caught, format, leaks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const leads[] = {"token=",         "Bearer ",
                                        "password: ",     "api_key=\"",
                                        "secret\":\"",    "client_secret=",
                                        "cookie:",        "token:",
                                        "password='",     "Bearer  ",
                                        "apikey :\t",     "passphrase=\r\n",
                                        "token\\\":\\\"", "Authorization: Basic  "};
    struct fuzz_input input = {data, bytes};
    const char *lead = leads[fuzz_below(&input, sizeof leads / sizeof leads[0])];
    uint64_t number = fuzz_u64(&input);
    tide_text whole = {(const char *)input.data, input.bytes};
    tide_text before = fuzz_text(&input, '|');
    tide_text after = {(const char *)input.data, input.bytes};
    bool leaks = memmem(whole.data, whole.bytes, SECRET, strlen(SECRET)) != NULL;
    write_line(TIDE_LOG_JSON, whole, number, leaks);
    write_line(TIDE_LOG_PLAIN, whole, number, leaks);

    tide_buf planted;
    tide_buf_init(&planted, tide_mem_heap(), 1 << 20);
    if (plant(before, lead, after, &planted)) {
        write_line(TIDE_LOG_JSON, tide_buf_text(&planted), number, false);
        write_line(TIDE_LOG_PLAIN, tide_buf_text(&planted), number, false);
    }
    tide_buf_done(&planted);
    return 0;
}
