/* content.c - the bytes of files: small uploads, and downloads from addresses that carry their own
 * permission. */
#include "base/check.h"
#include "base/encode.h"
#include "base/hash.h"
#include "cloudbox/graph/inside.h"

#include <inttypes.h>
#include <stdio.h>

enum { PUT_BYTES_MAX = 250 * 1000 * 1000, URL_LIFE_MS = 3600 * 1000 };

/* ---- addresses of bytes ---- */

/* The time until which an address is good, its user and item, and a seal over them. */
struct pass {
    uint32_t user;
    uint32_t slot;
    uint64_t until_ms;
};

static uint64_t seal(const struct box_call *call, const char *what, const struct pass *pass)
{
    char text[128];
    snprintf(text, sizeof text, "%s %" PRIu64 " %" PRIu32 " %" PRIu32 " %" PRIu64, what,
             box_cloud_options(call->cloud)->seed, pass->user, pass->slot, pass->until_ms);
    return tide_hash_key(tide_text_of(text));
}

void box_graph_pass_url(const struct box_call *call, const char *what, uint32_t slot,
                        uint64_t until_ms, tide_buf *out)
{
    const struct pass pass = {call->user->number, slot, until_ms};
    box_print(out, "%.*s/_files/%s/%08" PRIx32 "%08" PRIx32 "%016" PRIx64 "%016" PRIx64,
              (int)call->request->origin.bytes, call->request->origin.data, what, pass.user,
              pass.slot, pass.until_ms, seal(call, what, &pass));
}

void box_graph_download_url(const struct box_call *call, uint32_t slot, tide_buf *out)
{
    box_graph_pass_url(call, "download", slot, call->now_ms + URL_LIFE_MS, out);
}

static bool pass_parse(const struct box_call *call, const char *what, tide_text token,
                       struct pass *pass_out)
{
    uint64_t words[3] = {0};
    if (token.bytes != 48)
        return false;
    for (size_t i = 0; i < 48; i++) {
        const int digit = tide_hex_digit(token.data[i]);
        if (digit < 0)
            return false;
        words[i / 16] = words[i / 16] << 4 | (uint64_t)digit;
    }
    *pass_out = (struct pass){(uint32_t)(words[0] >> 32), (uint32_t)words[0], words[1]};
    return words[2] == seal(call, what, pass_out);
}

bool box_graph_pass_read(const struct box_call *call, const char *what, uint32_t *slot_out,
                         uint64_t *until_ms_out)
{
    struct pass pass;
    if (!pass_parse(call, what, call->args[0], &pass))
        return false;
    *slot_out = pass.slot;
    *until_ms_out = pass.until_ms;
    return true;
}

struct box_user *box_graph_pass_user(const struct box_call *call, const char *what, tide_text token)
{
    struct pass pass;
    if (!pass_parse(call, what, token, &pass) || pass.user == 0)
        return NULL;
    return box_cloud_user_at(call->cloud, pass.user - 1);
}

void box_graph_content_get(struct box_call *call)
{
    struct box_spot place;
    if (!box_graph_item(call, &place) || !box_graph_conditions(call, place.drive, place.slot))
        return;
    if (box_drive_at(place.drive, place.slot)->folder) {
        box_graph_fail(call, 400, "invalidRequest", NULL, "You cannot get content for a folder");
        return;
    }
    if (box_drive_at(place.drive, place.slot)->mark == BOX_MARK_MALWARE) {
        box_graph_malware(call);
        return;
    }
    tide_auto_buf url = tide_buf_heap(BOX_TARGET_BYTES_MAX);
    box_graph_download_url(call, place.slot, &url);
    box_answer_clear(call->answer);
    call->answer->status = 302;
    box_answer_header(call->answer, "Location", tide_buf_cstr(&url));
}

/* ---- downloads ---- */

/* A part of a content, held until it is sent. */
struct sending {
    struct box_content content;
    uint64_t at;
};

static void sending_read(void *arg, uint64_t at, char *out, size_t count)
{
    const struct sending *sending = arg;
    box_content_read(&sending->content, sending->at + at, out, count);
}

static void sending_done(void *arg)
{
    struct sending *sending = arg;
    box_content_drop(&sending->content);
    tide_mem_free(tide_mem_heap(), sending, sizeof *sending);
}

static void send(struct box_call *call, const struct box_content *content, uint64_t at,
                 uint64_t bytes)
{
    struct sending *sending = tide_mem_new(tide_mem_heap(), sizeof *sending);
    TIDE_ASSERT(sending != NULL);
    sending->content = box_content_hold(content);
    sending->at = at;
    box_answer_source(call->answer, &(struct box_source){.bytes = bytes,
                                                         .read = sending_read,
                                                         .done = sending_done,
                                                         .arg = sending});
}

typedef enum span { SPAN_NONE, SPAN_GOOD, SPAN_BAD } span;

/* "bytes=a-b", "bytes=a-", "bytes=-n"; what is not understood is ignored, as HTTP says. */
static span read_span(tide_text header, uint64_t size, uint64_t *at_out, uint64_t *bytes_out)
{
    if (!box_starts(header, "bytes="))
        return SPAN_NONE;
    header = (tide_text){header.data + 6, header.bytes - 6};
    const char *dash = header.bytes == 0 ? NULL : memchr(header.data, '-', header.bytes);
    if (dash == NULL || memchr(header.data, ',', header.bytes) != NULL)
        return SPAN_NONE;
    const tide_text from = {header.data, (size_t)(dash - header.data)};
    const tide_text to = {dash + 1, header.bytes - from.bytes - 1};
    uint64_t first = 0, last = size == 0 ? 0 : size - 1;
    if (from.bytes == 0) {
        if (!tide_text_to_u64(to, &last))
            return SPAN_NONE;
        first = last < size ? size - last : 0;
        last = size - 1;
    } else if (!tide_text_to_u64(from, &first) || (to.bytes > 0 && !tide_text_to_u64(to, &last)) ||
               last < first) {
        return first >= size && to.bytes == 0 ? SPAN_BAD : SPAN_NONE;
    }
    if (first >= size)
        return SPAN_BAD;
    *at_out = first;
    *bytes_out = (last < size ? last + 1 : size) - first;
    return SPAN_GOOD;
}

static void answer_bytes(struct box_call *call, const box_drive *drive, uint32_t slot)
{
    const struct box_content *content = &box_drive_at(drive, slot)->content;
    const tide_text if_range = box_request_header(call->request, "If-Range");
    uint64_t at = 0, bytes = content->bytes;
    span asked = read_span(box_request_header(call->request, "Range"), content->bytes, &at, &bytes);
    if (if_range.data != NULL && !box_graph_tag_fits(if_range, drive, slot))
        asked = SPAN_NONE;
    if (box_faults_strikes(box_cloud_faults(call->cloud), call, "no-range"))
        asked = SPAN_NONE;
    char text[80], tag[BOX_TAG_BYTES];
    if (asked == SPAN_BAD) {
        box_graph_fail(call, 416, "invalidRange", NULL, "The requested range cannot be served.");
        snprintf(text, sizeof text, "bytes */%" PRIu64, content->bytes);
        box_answer_header(call->answer, "Content-Range", text);
        return;
    }
    box_answer_clear(call->answer);
    snprintf(call->answer->type, sizeof call->answer->type, "application/octet-stream");
    if (asked == SPAN_GOOD) {
        call->answer->status = 206;
        snprintf(text, sizeof text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, at, at + bytes - 1,
                 content->bytes);
        box_answer_header(call->answer, "Content-Range", text);
    } else {
        at = 0;
        bytes = content->bytes;
    }
    box_item_ctag(drive, slot, tag);
    snprintf(text, sizeof text, "\"%.70s\"", tag);
    box_answer_header(call->answer, "ETag", text);
    box_answer_header(call->answer, "Accept-Ranges", "bytes");
    send(call, content, at, bytes);
}

void box_graph_download(struct box_call *call)
{
    struct pass pass;
    if (call->user == NULL || !pass_parse(call, "download", call->args[0], &pass) ||
        call->now_ms >= pass.until_ms) {
        box_graph_fail(call, 401, "unauthenticated", NULL, "The download address has expired.");
        return;
    }
    box_drive *drive = box_user_drive(call->user);
    if (pass.slot >= box_drive_slots(drive) || box_drive_at(drive, pass.slot)->gone ||
        box_drive_at(drive, pass.slot)->folder) {
        box_graph_missing(call);
        return;
    }
    if (box_drive_at(drive, pass.slot)->mark == BOX_MARK_MALWARE) {
        box_graph_malware(call);
        return;
    }
    answer_bytes(call, drive, pass.slot);
    if (call->answer->source.read != NULL)
        box_graph_bytes_sent(call, drive, pass.slot, call->answer->source.bytes);
}

/* ---- small uploads ---- */

struct receiving {
    struct box_gather gather;
    uint64_t bytes_max;
};

static bool receiving_write(void *arg, tide_text piece)
{
    struct receiving *receiving = arg;
    box_gather_add(&receiving->gather, piece);
    return receiving->gather.hash.bytes <= receiving->bytes_max;
}

static void receiving_done(void *arg)
{
    struct receiving *receiving = arg;
    box_gather_done(&receiving->gather);
    tide_mem_free(tide_mem_heap(), receiving, sizeof *receiving);
}

bool box_graph_receive(uint64_t bytes_max, struct box_sink *sink_out)
{
    struct receiving *receiving = tide_mem_new(tide_mem_heap(), sizeof *receiving);
    TIDE_ASSERT(receiving != NULL);
    box_gather_init(&receiving->gather);
    receiving->bytes_max = bytes_max;
    *sink_out =
        (struct box_sink){.write = receiving_write, .done = receiving_done, .arg = receiving};
    return true;
}

const struct box_gather *box_graph_received(const struct box_call *call)
{
    TIDE_ASSERT(call->request->sink != NULL); /* the gate opens one for a whole body too */
    const struct receiving *receiving = call->request->sink->arg;
    return &receiving->gather;
}

bool box_graph_sink(struct box_call *call, struct box_sink *sink_out)
{
    if (call->method->handle == box_graph_content_put)
        return box_graph_receive(PUT_BYTES_MAX, sink_out);
    return box_graph_session_sink(call, sink_out);
}

void box_graph_content_put(struct box_call *call)
{
    struct box_spot place;
    box_conflict conflict;
    if (!box_graph_place(call, &place) ||
        !box_graph_conflict(call, NULL, BOX_CONFLICT_REPLACE, &conflict) ||
        !box_graph_conditions(call, place.drive, place.slot))
        return;
    struct box_content content = box_content_stored(box_graph_received(call));
    const struct box_file_times now = {0};
    box_graph_put(call, &place, &content, now, conflict,
                  box_request_header(call->request, "If-Match").data != NULL);
    box_content_drop(&content);
}
