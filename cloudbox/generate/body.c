#include "cloudbox/generate/stage.h"
#include "base/check.h"

#define ADD(pen, literal) box_pen_add(pen, literal, sizeof(literal) - 1)

enum {
    TEXT_BYTES = 1500,  /* of prose; what is larger has something beside it */
    PARTS_LEAST = 1400, /* what a multipart needs below its headers */
    ATTACHMENTS_MAX = 4,
    BOUNDARY_BYTES = 18, /* "=_", a letter, 15 hex digits */
    CLOSE_BYTES = BOUNDARY_BYTES + 8,
};

/* ---- parts ---- */

/* Each level of parts has its own letter. */
static void put_boundary(struct box_stage *stage, char letter)
{
    ADD(&stage->pen, "=_");
    box_pen_add(&stage->pen, &letter, 1);
    box_pen_hex(&stage->pen, box_mix(stage->traits->hash, 31), 15);
}

static void put_multipart(struct box_stage *stage, const char *subtype, char letter)
{
    ADD(&stage->pen, "Content-Type: multipart/");
    box_pen_text(&stage->pen, subtype);
    ADD(&stage->pen, ";\r\n boundary=\"");
    put_boundary(stage, letter);
    ADD(&stage->pen, "\"\r\n\r\n");
}

static void put_delimiter(struct box_stage *stage, char letter)
{
    ADD(&stage->pen, "--");
    put_boundary(stage, letter);
    ADD(&stage->pen, "\r\n");
}

static void put_close(struct box_stage *stage, char letter)
{
    ADD(&stage->pen, "--");
    put_boundary(stage, letter);
    ADD(&stage->pen, "--");
}

/* Spaces and line ends up to exactly the size (BGEN2): at the end of a line of text
 * and behind a closing delimiter they mean nothing. */
static void pad(struct box_stage *stage)
{
    size_t left = stage->traits->bytes - stage->pen.at;
    TIDE_ASSERT(left >= 2);
    while (left > 0) {
        size_t spaces = left <= 78 ? left - 2 : left == 79 ? 75 : 76;
        box_pen_fill(&stage->pen, ' ', spaces);
        ADD(&stage->pen, "\r\n");
        left -= spaces + 2;
    }
}

static void put_text_head(struct box_stage *stage, const char *subtype, box_charset charset,
                          box_coding coding)
{
    struct box_pen *pen = &stage->pen;
    ADD(pen, "Content-Type: text/");
    box_pen_text(pen, subtype);
    ADD(pen, "; charset=");
    box_pen_text(pen, box_charset_name(charset));
    ADD(pen, "\r\nContent-Transfer-Encoding: ");
    box_pen_text(pen, box_coding_name(coding));
    ADD(pen, "\r\n\r\n");
}

static void text_part(struct box_stage *stage, size_t limit, bool whole)
{
    struct box_sink sink;
    put_text_head(stage, "plain", stage->charset, stage->coding);
    box_sink_init(&sink, &stage->pen, stage->charset, stage->coding, limit);
    box_say_text(stage, &sink, whole);
    box_sink_end(&sink);
}

static void html_part(struct box_stage *stage, size_t limit)
{
    struct box_sink sink;
    put_text_head(stage, "html", stage->charset, stage->coding);
    box_sink_init(&sink, &stage->pen, stage->charset, stage->coding, limit);
    box_say_html(stage, &sink);
    box_sink_end(&sink);
}

/* Text and HTML up to `limit`, without the closing delimiter. */
static void alternatives(struct box_stage *stage, char letter, size_t limit)
{
    size_t left = limit - stage->pen.at;
    put_multipart(stage, "alternative", letter);
    put_delimiter(stage, letter);
    size_t share = left * (box_personal(stage) ? 4 : 3) / 10;
    text_part(stage, stage->pen.at + (share < TEXT_BYTES ? share : TEXT_BYTES), false);
    if (stage->peek != NULL)
        return;
    put_delimiter(stage, letter);
    html_part(stage, limit);
}

struct file_type {
    const char *type;
    const char *suffix;
    const char *magic; /* how its base64 starts; a multiple of four */
};
static const struct file_type file_types[] = {
    {"application/pdf", ".pdf", "JVBERi0xLjQK"},
    {"image/jpeg", ".jpg", "/9j/4AAQSkZJRgAB"},
    {"image/png", ".png", "iVBORw0KGgoA"},
    {"application/zip", ".zip", "UEsDBBQAAAAI"},
    {"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", ".xlsx", "UEsDBBQABgAI"},
    {"application/vnd.openxmlformats-officedocument.wordprocessingml.document", ".docx",
     "UEsDBBQABgAI"},
};
enum { PDF, JPEG, PNG, ZIP, XLSX, DOCX, FILE_TYPES };

/* Names beyond ASCII travel percent-encoded (RFC 2231). */
static void put_file_name(struct box_stage *stage, const char *suffix, uint32_t index)
{
    static const char *const foreign[BOX_LANGS] = {
        NULL, "Übersicht", "Pièce jointe", "Información", "資料", "Отчёт", "ملف",
    };
    struct box_pen *pen = &stage->pen;
    const char *name = foreign[stage->lang];
    if (name != NULL && (stage->traits->hash >> 50 & 1) != 0) {
        ADD(pen, "filename*=UTF-8''");
        for (const char *p = name; *p != '\0'; p++) {
            bool plain = ((*p | 32) >= 'a') && ((*p | 32) <= 'z');
            if (plain)
                box_pen_add(pen, p, 1);
            else {
                ADD(pen, "%");
                box_pen_hex(pen, (unsigned char)*p, 2);
            }
        }
        box_pen_number(pen, index + 1, 1);
        box_pen_text(pen, suffix);
        return;
    }
    ADD(pen, "filename=\"");
    switch (stage->traits->kind) {
    case BOX_INVOICE:
        box_stage_expand(stage, "{i}", pen);
        break;
    case BOX_STATEMENT:
        ADD(pen, "Statement ");
        box_pen_number(pen, 1 + stage->traits->topic % 12, 2);
        break;
    case BOX_PHOTOS:
        ADD(pen, "IMG_");
        box_pen_number(pen, 1000 + (stage->traits->topic % 8000) + index, 4);
        break;
    default:
        box_stage_expand(stage, "{p} ", pen);
        box_pen_number(pen, index + 1, 1);
        break;
    }
    box_pen_text(pen, suffix);
    ADD(pen, "\"");
}

/* Base64 up to `limit`; whole groups only, so that it can be decoded. */
static void put_file_data(struct box_stage *stage, const char *magic, size_t limit)
{
    struct box_pen *pen = &stage->pen;
    bool first = true;
    while (pen->at + 6 <= limit) {
        size_t line = limit - pen->at - 2;
        line = line >= 76 ? 76 : line / 4 * 4;
        if (first && line < 16)
            break;
        size_t used = first ? strlen(magic) : 0;
        box_pen_add(pen, magic, used);
        box_pen_noise(pen, line - used, &stage->noise);
        ADD(pen, "\r\n");
        first = false;
    }
}

static void file_part(struct box_stage *stage, const struct file_type *type, uint32_t index,
                      const char *disposition, size_t limit)
{
    struct box_pen *pen = &stage->pen;
    ADD(pen, "Content-Type: ");
    box_pen_text(pen, type->type);
    ADD(pen, "\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: ");
    box_pen_text(pen, disposition);
    ADD(pen, ";\r\n ");
    put_file_name(stage, type->suffix, index);
    ADD(pen, "\r\nContent-ID: <part");
    box_pen_number(pen, index, 1);
    ADD(pen, ".");
    box_pen_hex(pen, stage->traits->hash, 16);
    ADD(pen, "@inbox.example>\r\n\r\n");
    put_file_data(stage, type->magic, limit);
}

/* ---- layouts: each fills the message to its size ---- */

static void lay_text(struct box_stage *stage)
{
    text_part(stage, stage->traits->bytes - 2, true);
    if (stage->peek == NULL)
        pad(stage);
}

static void lay_html(struct box_stage *stage)
{
    html_part(stage, stage->traits->bytes - 2);
    if (stage->peek == NULL)
        pad(stage);
}

static void lay_alternative(struct box_stage *stage)
{
    alternatives(stage, 'a', stage->traits->bytes - CLOSE_BYTES);
    if (stage->peek != NULL)
        return;
    put_close(stage, 'a');
    pad(stage);
}

/* Text, alone or with HTML, and files.  The files get the room. */
static void lay_files(struct box_stage *stage)
{
    static const uint8_t by_draw[8] = {PDF, PDF, DOCX, XLSX, PNG, ZIP, JPEG, PDF};
    uint64_t hash = box_mix(stage->traits->hash, 41);
    size_t left = stage->traits->bytes - stage->pen.at;
    size_t for_text = left / 4 < TEXT_BYTES ? left / 4 : 800 + hash % 1000;
    put_multipart(stage, "mixed", 'm');
    put_delimiter(stage, 'm');
    size_t limit = stage->pen.at + for_text;
    if ((hash >> 16) % 3 == 0 && for_text > PARTS_LEAST) {
        alternatives(stage, 'a', limit);
        if (stage->peek != NULL)
            return;
        put_close(stage, 'a');
        ADD(&stage->pen, "\r\n");
    } else {
        text_part(stage, limit, false);
        if (stage->peek != NULL)
            return;
    }
    box_kind kind = stage->traits->kind;
    uint32_t files =
        kind == BOX_PHOTOS || kind == BOX_TALK ? 1 + (hash >> 24) % ATTACHMENTS_MAX : 1;
    if (stage->traits->bytes < 20000)
        files = 1;
    for (uint32_t i = 0; i < files; i++) {
        uint32_t type = kind == BOX_PHOTOS ? JPEG : by_draw[(hash >> (32 + 3 * i)) & 7];
        if (kind == BOX_INVOICE || kind == BOX_STATEMENT || kind == BOX_TRAVEL)
            type = PDF;
        put_delimiter(stage, 'm');
        size_t rest = stage->traits->bytes - CLOSE_BYTES - stage->pen.at;
        file_part(stage, &file_types[type], i, "attachment", stage->pen.at + rest / (files - i));
    }
    put_close(stage, 'm');
    pad(stage);
}

/* HTML with a picture that it shows, a person's with a plain text beside it. */
static void lay_related(struct box_stage *stage)
{
    size_t left = stage->traits->bytes - stage->pen.at;
    size_t share = left * 6 / 10 < 2 * TEXT_BYTES ? left * 6 / 10 : 2 * TEXT_BYTES;
    put_multipart(stage, "related", 'r');
    put_delimiter(stage, 'r');
    if (box_personal(stage))
        alternatives(stage, 'a', stage->pen.at + share);
    else
        html_part(stage, stage->pen.at + share);
    if (stage->peek != NULL)
        return;
    if (box_personal(stage)) {
        put_close(stage, 'a');
        ADD(&stage->pen, "\r\n");
    }
    put_delimiter(stage, 'r');
    file_part(stage, &file_types[PNG], 0, "inline", stage->traits->bytes - CLOSE_BYTES);
    put_close(stage, 'r');
    pad(stage);
}

static void put_calendar(struct box_stage *stage, struct box_pen *pen)
{
    uint64_t start_ms =
        stage->root_date_ms + (3 + box_mix(stage->traits->topic, 'd') % 25) * UINT64_C(86400000);
    start_ms = start_ms / 86400000 * 86400000;
    uint64_t clock = box_mix(stage->traits->topic, 't');
    start_ms += ((8 + clock % 11) * 60 + (clock >> 16) % 4 * 15) * UINT64_C(60000);
    ADD(pen, "BEGIN:VCALENDAR\r\nPRODID:-//Harbour//Calendar 3//EN\r\nVERSION:2.0\r\n"
             "METHOD:REQUEST\r\nBEGIN:VEVENT\r\nDTSTART:");
    box_pen_stamp(pen, start_ms);
    ADD(pen, "\r\nDTEND:");
    box_pen_stamp(pen, start_ms + UINT64_C(3600000));
    ADD(pen, "\r\nDTSTAMP:");
    box_pen_stamp(pen, stage->traits->date_ms);
    ADD(pen, "\r\nORGANIZER:mailto:");
    box_pen_text(pen, stage->other.local);
    ADD(pen, "@");
    box_pen_text(pen, stage->other_domain);
    ADD(pen, "\r\nATTENDEE;ROLE=REQ-PARTICIPANT;PARTSTAT=NEEDS-ACTION;RSVP=TRUE:\r\n mailto:");
    box_pen_text(pen, stage->generator->email);
    ADD(pen, "\r\nUID:");
    box_pen_hex(pen, stage->traits->hash, 16);
    ADD(pen, "@calendar.example\r\nSEQUENCE:0\r\nSTATUS:CONFIRMED\r\nSUMMARY:");
    box_stage_expand(stage, "{p} planning", pen);
    ADD(pen, "\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n");
}

/* Text and the event, and the event once more as a file, as calendars send it. */
static void lay_invitation(struct box_stage *stage)
{
    char room[2048];
    struct box_pen event = {room, 0};
    put_calendar(stage, &event);
    size_t behind = 2 * event.at + 4 * CLOSE_BYTES + 300; /* what stands behind the text */
    if (stage->pen.at + behind + PARTS_LEAST > stage->traits->bytes) {
        lay_text(stage);
        return;
    }
    struct box_pen *pen = &stage->pen;
    put_multipart(stage, "mixed", 'm');
    put_delimiter(stage, 'm');
    alternatives(stage, 'a', stage->traits->bytes - behind);
    if (stage->peek != NULL)
        return;
    put_delimiter(stage, 'a');
    ADD(pen, "Content-Type: text/calendar; charset=UTF-8; method=REQUEST\r\n"
             "Content-Transfer-Encoding: 7bit\r\n\r\n");
    box_pen_add(pen, room, event.at);
    put_close(stage, 'a');
    ADD(pen, "\r\n");
    put_delimiter(stage, 'm');
    ADD(pen, "Content-Type: application/ics; name=\"invite.ics\"\r\n"
             "Content-Disposition: attachment; filename=\"invite.ics\"\r\n"
             "Content-Transfer-Encoding: 7bit\r\n\r\n");
    box_pen_add(pen, room, event.at);
    put_close(stage, 'm');
    pad(stage);
}

/* A whole message inside, up to `limit`. */
static void inner_message(struct box_stage *stage, size_t limit)
{
    struct box_pen *pen = &stage->pen;
    struct box_sink sink;
    ADD(pen, "From: sales@");
    box_pen_text(pen, box_domain(stage->traits->hash >> 9));
    ADD(pen, "\r\nTo: j.doe@gone.example\r\nSubject: ");
    box_stage_expand(stage, "Offer for {p}", pen);
    ADD(pen, "\r\nDate: ");
    box_pen_date(pen, stage->traits->date_ms - 3600000);
    ADD(pen, "\r\nMessage-ID: <offer.");
    box_pen_hex(pen, stage->traits->hash, 16);
    ADD(pen, "@inner.example>\r\nMIME-Version: 1.0\r\n");
    put_text_head(stage, "plain", BOX_ASCII, BOX_7BIT);
    box_sink_init(&sink, pen, BOX_ASCII, BOX_7BIT, limit);
    box_say_offer(stage, &sink);
}

static void lay_forward(struct box_stage *stage)
{
    size_t left = stage->traits->bytes - stage->pen.at;
    put_multipart(stage, "mixed", 'm');
    put_delimiter(stage, 'm');
    size_t share = left * 4 / 10 < TEXT_BYTES ? left * 4 / 10 : TEXT_BYTES;
    text_part(stage, stage->pen.at + share, false);
    if (stage->peek != NULL)
        return;
    put_delimiter(stage, 'm');
    ADD(&stage->pen, "Content-Type: message/rfc822\r\nContent-Disposition: attachment\r\n\r\n");
    inner_message(stage, stage->traits->bytes - CLOSE_BYTES);
    put_close(stage, 'm');
    pad(stage);
}

static void lay_report(struct box_stage *stage)
{
    struct box_pen *pen = &stage->pen;
    size_t left = stage->traits->bytes - pen->at;
    ADD(pen, "Content-Type: multipart/report; report-type=delivery-status;\r\n boundary=\"");
    put_boundary(stage, 'm');
    ADD(pen, "\"\r\n\r\n");
    put_delimiter(stage, 'm');
    text_part(stage, pen->at + (left * 4 / 10 < TEXT_BYTES ? left * 4 / 10 : TEXT_BYTES), false);
    if (stage->peek != NULL)
        return;
    put_delimiter(stage, 'm');
    ADD(pen, "Content-Type: message/delivery-status\r\n\r\nReporting-MTA: dns; mx.inbox.example\r\n"
             "Arrival-Date: ");
    box_pen_date(pen, stage->traits->date_ms);
    ADD(pen, "\r\n\r\nFinal-Recipient: rfc822; j.doe@gone.example\r\nAction: failed\r\n"
             "Status: 5.1.1\r\nDiagnostic-Code: smtp; 550 5.1.1 no such user here\r\n\r\n");
    put_delimiter(stage, 'm');
    ADD(pen, "Content-Type: message/rfc822\r\n\r\n");
    inner_message(stage, stage->traits->bytes - CLOSE_BYTES);
    put_close(stage, 'm');
    pad(stage);
}

void box_stage_body(struct box_stage *stage)
{
    uint64_t draw = box_mix(stage->traits->hash, 51) % 100;
    box_kind kind = stage->traits->kind;
    if (stage->pen.at + PARTS_LEAST > stage->traits->bytes) {
        lay_text(stage);
        return;
    }
    if (stage->traits->file) {
        lay_files(stage);
        return;
    }
    switch (kind) {
    case BOX_INVITE:
        lay_invitation(stage);
        return;
    case BOX_FORWARD:
        lay_forward(stage);
        return;
    case BOX_REPORT:
        lay_report(stage);
        return;
    case BOX_REVIEW:
    case BOX_FORUM:
        draw += 55; /* plain people */
        break;
    case BOX_NEWSLETTER:
        if (draw >= 88) {
            lay_related(stage);
            return;
        }
        draw = draw < 75 ? 0 : 99;
        break;
    default:
        break;
    }
    bool large = stage->traits->bytes - stage->pen.at > 3 * TEXT_BYTES;
    if (large && box_personal(stage) && kind != BOX_REVIEW && kind != BOX_FORUM)
        lay_related(stage);
    else if (draw < 55 || (large && !box_personal(stage) && draw < 88))
        lay_alternative(stage);
    else if (!box_personal(stage) && draw >= 88)
        lay_html(stage);
    else
        lay_text(stage);
}
