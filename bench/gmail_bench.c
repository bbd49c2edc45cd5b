/* gmail_bench.c - measures extracting a message from messages.get?format=raw: our extractor
 * compared with the obvious way (jansson parses everything, then the string is decoded), in one
 * run on the same answers.
 *
 * Also measures what compression would save and cost on the same answers, which is why
 * it is requested only where the network is the bottleneck (cloud/gmail.h).
 *
 * Prints one JSON object per line: {"name","value","unit","ratio","to"}. */
#include "bench.h"

#include "base/json.h"
#include "base/rng.h"
#include "cloud/gmail_raw.h"
#include "cloudbox/generate/generate.h"
#include "cloudbox/gate/http.h"
#include "world/inflate.h"

#include <inttypes.h>
#include <stdlib.h>
#include <zlib.h>

/* The name of a figure for messages of one size. */
static void report(const char *name, uint32_t bytes, double value, const char *unit, double ratio,
                   const char *to)
{
    char whole[64];
    (void)snprintf(whole, sizeof whole, "%s_%" PRIu32, name, bytes);
    figure(whole, value, unit, ratio, to);
}

enum { ANSWERS = 16, PART_BYTES = 16 << 10 };

/* Makes answers in Google's format, of generated mail of one size. */
static void answers_make(tide_buf answers[ANSWERS], uint32_t bytes)
{
    const struct box_generator generator = {.seed = 5,
                                            .count = ANSWERS,
                                            .size_bytes = bytes,
                                            .newest_ms = 1790000000000,
                                            .email = "ada@example.com"};
    tide_buf raw;
    tide_buf_init(&raw, tide_mem_heap(), (size_t)1 << 30);
    for (uint32_t i = 0; i < ANSWERS; i++) {
        tide_buf_clear(&raw);
        box_generate_raw(&generator, i, &raw);
        tide_buf_init(&answers[i], tide_mem_heap(), (size_t)1 << 30);
        box_print(&answers[i],
                  "{\"id\":\"18c5f2a7b3d4e%03u\",\"threadId\":\"18c5f2a7b3d4e001\",\"labelIds\":"
                  "[\"INBOX\",\"UNREAD\",\"CATEGORY_UPDATES\"],\"sizeEstimate\":%zu,\"raw\":\"",
                  i, raw.bytes);
        box_add_base64url(&answers[i], tide_buf_text(&raw));
        box_add_cstr(&answers[i],
                     "\",\"historyId\":\"9876543\",\"internalDate\":\"1790000000000\"}");
    }
    tide_buf_done(&raw);
}

static size_t extract(tide_text answer)
{
    struct tide_gmail_raw extractor;
    tide_buf raw;
    json_t *fields = NULL;
    tide_buf_init(&raw, tide_mem_heap(), (size_t)1 << 30);
    tide_gmail_raw_init(&extractor, tide_mem_heap(), &raw);
    for (size_t at = 0; at < answer.bytes; at += PART_BYTES) {
        const size_t left = answer.bytes - at;
        expect(tide_gmail_raw_write(&extractor, answer.data + at,
                                    left < PART_BYTES ? left : PART_BYTES) == TIDE_OK,
               "an answer was refused");
    }
    expect(tide_gmail_raw_end(&extractor, &fields, NULL) == TIDE_OK, "an answer was refused");
    const size_t bytes = raw.bytes;
    json_decref(fields);
    tide_gmail_raw_done(&extractor);
    tide_buf_done(&raw);
    return bytes;
}

/* The obvious way: collect, parse, decode. */
static size_t parse(tide_text answer)
{
    tide_buf body, raw;
    json_t *value = NULL;
    tide_buf_init(&body, tide_mem_heap(), (size_t)1 << 30);
    tide_buf_init(&raw, tide_mem_heap(), (size_t)1 << 30);
    for (size_t at = 0; at < answer.bytes; at += PART_BYTES) {
        const size_t left = answer.bytes - at;
        expect(tide_buf_add(&body, answer.data + at, left < PART_BYTES ? left : PART_BYTES) ==
                   TIDE_OK,
               "no memory");
    }
    expect(tide_json_parse(tide_buf_text(&body), &value, NULL) == TIDE_OK, "not JSON");
    const json_t *text = json_object_get(value, "raw");
    expect(box_base64_decode((tide_text){json_string_value(text), json_string_length(text)}, &raw),
           "not base64");
    const size_t bytes = raw.bytes;
    json_decref(value);
    tide_buf_done(&raw);
    tide_buf_done(&body);
    return bytes;
}

/* Microseconds per message, the best of several rounds. */
static double measure(size_t (*way)(tide_text answer), const tide_buf answers[ANSWERS])
{
    double best = 1e18;
    const size_t rounds = 1 + (2u << 20) / answers[0].bytes;
    for (int try = 0; try < 5; try++) {
        const double start = cpu_s() * 1e6;
        for (size_t round = 0; round < rounds; round++)
            for (size_t i = 0; i < ANSWERS; i++)
                expect(way(tide_buf_text(&answers[i])) > 0, "an empty message");
        const double one = (cpu_s() * 1e6 - start) / (double)(rounds * ANSWERS);
        best = one < best ? one : best;
    }
    return best;
}

static tide_status swallow(void *arg, const char *bytes, size_t count)
{
    (void)bytes;
    *(size_t *)arg += count;
    return TIDE_OK;
}

/* Compresses like a server (gzip, level 6) and decompresses like the world. */
static size_t gzip(const tide_buf *answer, char *out, size_t room)
{
    z_stream stream = {.next_in = (Bytef *)answer->data, .avail_in = (uInt)answer->bytes};
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)room;
    expect(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
    expect(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib");
    const size_t bytes = room - stream.avail_out;
    (void)deflateEnd(&stream);
    return bytes;
}

static void measure_gzip(const tide_buf answers[ANSWERS], uint32_t message_bytes,
                         double extractor_us)
{
    double deflate_us = 0, inflate_us = 0;
    size_t plain_bytes = 0, packed_bytes = 0;
    for (size_t i = 0; i < ANSWERS; i++) {
        const size_t room = answers[i].bytes + 4096;
        char *packed = malloc(room);
        expect(packed != NULL, "no memory");
        const double start = cpu_s() * 1e6;
        const size_t bytes = gzip(&answers[i], packed, room);
        const double middle = cpu_s() * 1e6;
        tide_inflate inflate;
        size_t out_bytes = 0;
        tide_inflate_init(&inflate, tide_mem_heap());
        expect(tide_inflate_feed(&inflate, packed, bytes, swallow, &out_bytes) == TIDE_OK &&
                   tide_inflate_whole(&inflate) && out_bytes == answers[i].bytes,
               "gzip does not come back");
        tide_inflate_done(&inflate);
        inflate_us += cpu_s() * 1e6 - middle;
        deflate_us += middle - start;
        plain_bytes += answers[i].bytes;
        packed_bytes += bytes;
        free(packed);
    }
    report("gmail_gzip_bytes", message_bytes, (double)packed_bytes / ANSWERS, "bytes",
           (double)packed_bytes / (double)plain_bytes, "plain answer");
    report("gmail_inflate", message_bytes, inflate_us / ANSWERS, "us",
           inflate_us / ANSWERS / extractor_us, "extractor");
    report("gmail_deflate", message_bytes, deflate_us / ANSWERS, "us",
           deflate_us / ANSWERS / extractor_us, "extractor");
}

int main(void)
{
    static const uint32_t sizes[] = {1000, 10000, 100000, 10000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        tide_buf answers[ANSWERS];
        answers_make(answers, sizes[i]);
        const size_t bytes = extract(tide_buf_text(&answers[0]));
        expect(bytes == parse(tide_buf_text(&answers[0])), "the two ways differ");
        const double library_us = measure(parse, answers);
        const double extractor_us = measure(extract, answers);
        report("gmail_extract", sizes[i], extractor_us, "us", extractor_us / library_us,
               "jansson and base64");
        report("gmail_jansson", sizes[i], library_us, "us", library_us / extractor_us, "extractor");
        report("gmail_extract_rate", sizes[i], (double)bytes / extractor_us, "MB/s",
               library_us / extractor_us, "jansson and base64");
        measure_gzip(answers, sizes[i], extractor_us);
        for (size_t k = 0; k < ANSWERS; k++)
            tide_buf_done(&answers[k]);
    }
    return 0;
}
