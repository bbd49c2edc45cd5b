#include "cloudbox/generate/stage.h"
#include "base/calendar.h"
#include "base/check.h"

#define ADD(pen, literal) box_pen_add(pen, literal, sizeof(literal) - 1)

enum { DAY_S = 24 * 60 * 60, REFERENCES_MAX = 12 };

/* How much of the headers a message can afford. */
enum { LEVEL_FULL, LEVEL_SOME, LEVEL_FEW, LEVEL_BARE, LEVELS };

/* ---- dates ---- */

struct calendar {
    uint32_t year, month, day, weekday; /* month from 1, weekday from Sunday */
    uint32_t hour, minute, second;
};

static struct calendar calendar_of(uint64_t date_ms)
{
    const uint64_t seconds = date_ms / 1000;
    const int64_t days = (int64_t)(seconds / DAY_S);
    const uint32_t rest = (uint32_t)(seconds % DAY_S);
    const struct tide_date date = tide_date_of(days);
    return (struct calendar){
        .year = (uint32_t)date.year,
        .month = date.month,
        .day = date.day,
        .weekday = tide_weekday_of(days),
        .hour = rest / 3600,
        .minute = rest / 60 % 60,
        .second = rest % 60,
    };
}

void box_pen_date(struct box_pen *pen, uint64_t date_ms)
{
    struct calendar date = calendar_of(date_ms);
    box_pen_add(pen, tide_day_names[date.weekday], 3);
    ADD(pen, ", ");
    box_pen_number(pen, date.day, 1);
    ADD(pen, " ");
    box_pen_add(pen, tide_month_names[date.month - 1], 3);
    ADD(pen, " ");
    box_pen_number(pen, date.year, 4);
    ADD(pen, " ");
    box_pen_number(pen, date.hour, 2);
    ADD(pen, ":");
    box_pen_number(pen, date.minute, 2);
    ADD(pen, ":");
    box_pen_number(pen, date.second, 2);
    ADD(pen, " +0000");
}

void box_pen_stamp(struct box_pen *pen, uint64_t date_ms)
{
    struct calendar date = calendar_of(date_ms);
    box_pen_number(pen, date.year, 4);
    box_pen_number(pen, date.month, 2);
    box_pen_number(pen, date.day, 2);
    ADD(pen, "T");
    box_pen_number(pen, date.hour, 2);
    box_pen_number(pen, date.minute, 2);
    ADD(pen, "00Z");
}

/* As people of that language write it. */
static void put_day(const struct box_stage *stage, struct box_pen *pen, uint64_t date_ms)
{
    struct calendar date = calendar_of(date_ms);
    if (stage->lang == BOX_EN) {
        box_pen_number(pen, date.day, 1);
        ADD(pen, " ");
        box_pen_add(pen, tide_month_names[date.month - 1], 3);
        ADD(pen, " ");
        box_pen_number(pen, date.year, 4);
        return;
    }
    if (stage->lang == BOX_JA) {
        box_pen_number(pen, date.year, 4);
        ADD(pen, "/");
        box_pen_number(pen, date.month, 1);
        ADD(pen, "/");
        box_pen_number(pen, date.day, 1);
        return;
    }
    const char *gap = stage->lang == BOX_DE || stage->lang == BOX_RU ? "." : "/";
    box_pen_number(pen, date.day, 2);
    box_pen_add(pen, gap, 1);
    box_pen_number(pen, date.month, 2);
    box_pen_add(pen, gap, 1);
    box_pen_number(pen, date.year, 4);
}

/* ---- slots ---- */

tide_text box_first_name(const char *name)
{
    return (tide_text){name, strcspn(name, " ")};
}

static void put_amount(const struct box_stage *stage, struct box_pen *pen, uint64_t hash)
{
    uint64_t whole = 4 + hash % 90;
    if (hash >> 32 & 1)
        whole = whole * 13 + hash % 997;
    if (stage->lang == BOX_JA) {
        box_pen_number(pen, whole * 120, 1);
        return;
    }
    bool english = stage->lang == BOX_EN || stage->lang == BOX_AR;
    if (whole >= 1000) {
        box_pen_number(pen, whole / 1000, 1);
        box_pen_text(pen, english ? "," : stage->lang == BOX_RU ? "" : ".");
        box_pen_number(pen, whole % 1000, 3);
    } else {
        box_pen_number(pen, whole, 1);
    }
    box_pen_text(pen, english ? "." : ",");
    box_pen_number(pen, (hash >> 40) % 100, 2);
}

static void put_numbers(const struct box_stage *stage, struct box_pen *pen, char slot,
                        uint64_t hash)
{
    switch (slot) {
    case 'i':
        ADD(pen, "INV-");
        box_pen_number(pen, calendar_of(stage->root_date_ms).year, 4);
        ADD(pen, "-");
        box_pen_number(pen, hash % 1000000, 6);
        return;
    case 'o':
        box_pen_number(pen, 100 + hash % 900, 3);
        ADD(pen, "-");
        box_pen_number(pen, (hash >> 16) % 10000000, 7);
        return;
    case 'k':
        ADD(pen, "DL");
        box_pen_number(pen, hash % 10000000000u, 10);
        return;
    case 'r':
        box_pen_number(pen, 100000 + hash % 900000, 6);
        return;
    case 't':
        box_pen_number(pen, 8 + hash % 11, 2);
        ADD(pen, ":");
        box_pen_number(pen, (hash >> 16) % 4 * 15, 2);
        return;
    case 'q':
        box_pen_number(pen, 5 + hash % 55, 1);
        return;
    default:
        TIDE_ASSERT(slot == 'h');
        box_pen_hex(pen, hash, 16);
        return;
    }
}

static void put_slot(const struct box_stage *stage, struct box_pen *pen, char slot)
{
    uint64_t hash = box_mix(stage->traits->topic, (unsigned char)slot);
    uint64_t later_ms = stage->root_date_ms +
                        (3 + box_mix(stage->traits->topic, 'd') % 25) * DAY_S * UINT64_C(1000);
    tide_text first;
    switch (slot) {
    case 'm':
        box_pen_add(pen, stage->owner_name.data, stage->owner_name.bytes);
        return;
    case 'f':
        first = box_first_name(stage->other.name);
        box_pen_add(pen, first.data, first.bytes);
        return;
    case 'e':
        box_pen_text(pen, stage->generator->email);
        return;
    case 'p':
        box_pen_text(pen, box_project(hash));
        return;
    case 'c':
        box_pen_text(pen, box_company(hash));
        return;
    case 'v':
        box_pen_text(pen, box_city(hash));
        return;
    case 'b':
        box_pen_text(pen, box_product(hash));
        return;
    case 'y':
        box_pen_text(pen, box_repository(hash));
        return;
    case 'z':
        box_pen_text(pen, box_source(hash));
        return;
    case 'w':
        box_pen_text(pen, stage->tongue->weekdays[calendar_of(later_ms).weekday]);
        return;
    case 'd':
        put_day(stage, pen, later_ms);
        return;
    case 'D':
        put_day(stage, pen, stage->traits->date_ms);
        return;
    case 'a':
        put_amount(stage, pen, hash);
        return;
    default:
        put_numbers(stage, pen, slot, hash);
        return;
    }
}

void box_stage_expand(const struct box_stage *stage, const char *text, struct box_pen *pen)
{
    for (;;) {
        const char *slot = strchrnul(text, '{');
        box_pen_add(pen, text, (size_t)(slot - text));
        if (*slot == '\0')
            return;
        TIDE_ASSERT(slot[2] == '}');
        put_slot(stage, pen, slot[1]);
        text = slot + 3;
    }
}

void box_stage_subject(const struct box_stage *stage, struct box_pen *pen)
{
    box_stage_expand(stage, stage->notice != NULL ? stage->notice->subject : stage->topic->subject,
                     pen);
}

/* ---- who and what ---- */

static void choose_notice(struct box_stage *stage)
{
    size_t count, fitting = 0;
    const struct box_notice *notices = box_notices(&count);
    const struct box_notice *found[16];
    box_lang lang = stage->traits->lang;
    for (;;) {
        for (size_t i = 0; i < count && fitting < 16; i++) {
            if (notices[i].kind == stage->traits->kind && notices[i].lang == lang)
                found[fitting++] = &notices[i];
        }
        if (fitting > 0)
            break;
        TIDE_ASSERT(lang != BOX_EN); /* there is an English one of every kind */
        lang = BOX_EN;
    }
    stage->lang = lang;
    stage->notice = found[(stage->traits->topic >> 20) % fitting];
}

/* The first letters of the address, as a first name: "Dana" of dana.k@... */
static void choose_owner(struct box_stage *stage)
{
    const char *email = stage->generator->email;
    size_t bytes = 0;
    while (bytes < sizeof stage->owner_room && ((email[bytes] | 32) >= 'a') &&
           ((email[bytes] | 32) <= 'z')) {
        stage->owner_room[bytes] = email[bytes];
        bytes++;
    }
    if (bytes > 0)
        stage->owner_room[0] = (char)(stage->owner_room[0] & ~32);
    stage->owner_name = (tide_text){stage->owner_room, bytes};
}

static void choose_encoding(struct box_stage *stage)
{
    uint32_t draw = (uint32_t)(box_mix(stage->traits->hash, 21) % 100);
    stage->charset = BOX_UTF8;
    stage->coding = BOX_8BIT;
    switch (stage->lang) {
    case BOX_EN:
        stage->charset = draw < 50 ? BOX_ASCII : BOX_UTF8;
        stage->coding = draw < 80 ? BOX_7BIT : draw < 97 ? BOX_QUOTED : BOX_BASE64;
        break;
    case BOX_DE:
    case BOX_FR:
    case BOX_ES:
        stage->charset = draw < 35 ? BOX_LATIN1 : BOX_UTF8;
        stage->coding = draw < 15 || draw >= 85 ? BOX_8BIT : draw < 78 ? BOX_QUOTED : BOX_BASE64;
        break;
    case BOX_JA:
        stage->charset = draw < 40 ? BOX_SJIS : BOX_UTF8;
        stage->coding = draw < 20 || draw >= 80 ? BOX_8BIT : BOX_BASE64;
        break;
    case BOX_RU:
        stage->charset = draw < 18 ? BOX_CP1251 : draw < 32 ? BOX_KOI8R : BOX_UTF8;
        stage->coding = draw < 10 || draw >= 80 ? BOX_8BIT : BOX_BASE64;
        break;
    default:
        stage->coding = draw < 20 ? BOX_8BIT : BOX_BASE64;
        break;
    }
}

static void set_stage(struct box_stage *stage)
{
    const struct box_traits *traits = stage->traits;
    stage->lang = traits->lang;
    if (traits->kind <= BOX_FORUM) {
        const struct box_tongue *tongue = box_tongue(stage->lang);
        stage->topic =
            &tongue
                 ->topics[traits->kind][(traits->topic >> 20) % tongue->topics_count[traits->kind]];
    } else {
        choose_notice(stage);
    }
    stage->tongue = box_tongue(stage->lang);
    /* The owner talks with one person, a list has many voices. */
    uint64_t hash = box_mix(
        traits->kind == BOX_REVIEW || traits->kind == BOX_FORUM ? traits->hash : traits->topic, 11);
    stage->other = stage->tongue->people[hash % stage->tongue->people_count];
    stage->other_domain = box_domain(box_mix(hash % stage->tongue->people_count, stage->lang));
    choose_owner(stage);
    choose_encoding(stage);
    stage->noise = traits->hash;
}

/* ---- headers ---- */

static void put_owner(struct box_stage *stage, bool named)
{
    struct box_pen *pen = &stage->pen;
    if (named && stage->owner_name.bytes > 0) {
        box_pen_add(pen, stage->owner_name.data, stage->owner_name.bytes);
        ADD(pen, " <");
        box_pen_text(pen, stage->generator->email);
        ADD(pen, ">");
    } else {
        box_pen_text(pen, stage->generator->email);
    }
}

static void put_mailbox(struct box_stage *stage, const char *name, const char *local,
                        const char *domain)
{
    struct box_pen *pen = &stage->pen;
    if (name != NULL) {
        box_pen_words(pen, stage->charset == BOX_ASCII ? BOX_UTF8 : stage->charset,
                      tide_text_of(name));
        ADD(pen, " ");
    }
    ADD(pen, "<");
    box_pen_text(pen, local);
    ADD(pen, "@");
    box_pen_text(pen, domain);
    ADD(pen, ">");
}

static const char *sender_domain(const struct box_stage *stage)
{
    if (stage->notice != NULL && stage->notice->domain != NULL)
        return stage->notice->domain;
    return stage->traits->kind == BOX_REVIEW ? "reviews.example" : stage->other_domain;
}

static void put_other(struct box_stage *stage, bool named)
{
    const struct box_notice *notice = stage->notice;
    if (notice != NULL && notice->from != NULL)
        put_mailbox(stage, named ? notice->from : NULL, notice->local, notice->domain);
    else if (stage->traits->kind == BOX_REVIEW)
        put_mailbox(stage, named ? stage->other.name : NULL, "notifications", "reviews.example");
    else
        put_mailbox(stage, named ? stage->other.name : NULL, stage->other.local,
                    stage->other_domain);
}

static void put_signature(struct box_stage *stage, const char *lead, uint32_t lines)
{
    struct box_pen *pen = &stage->pen;
    box_pen_text(pen, lead);
    for (uint32_t i = 0; i < lines; i++) {
        if (i > 0)
            ADD(pen, "\r\n         ");
        box_pen_noise(pen, 64, &stage->noise);
    }
    ADD(pen, "==\r\n");
}

/* What the mail systems on the way would have added. */
static void put_trace(struct box_stage *stage, uint32_t level)
{
    struct box_pen *pen = &stage->pen;
    const char *domain = sender_domain(stage);
    uint64_t date_ms = stage->traits->date_ms;
    if (level == LEVEL_FULL) {
        ADD(pen, "Delivered-To: ");
        box_pen_text(pen, stage->generator->email);
        ADD(pen, "\r\nReceived: by 2002:a05:6a10:b0c5:b0:4fc:9a1b:77d2 with SMTP id g5csp");
        box_pen_number(pen, stage->traits->hash % 10000000, 7);
        ADD(pen, "pxb;\r\n        ");
        box_pen_date(pen, date_ms);
        ADD(pen, "\r\nX-Received: by 2002:a17:906:fc21:b0:a4d:2b1c:0e5f with SMTP id ");
        box_pen_hex(pen, stage->traits->hash, 16);
        ADD(pen, ";\r\n        ");
        box_pen_date(pen, date_ms);
        put_signature(
            stage,
            "\r\nARC-Seal: i=1; a=rsa-sha256; cv=none; d=inbox.example; s=arc-20160816;\r\n"
            "        b=",
            4);
        put_signature(
            stage,
            "ARC-Message-Signature: i=1; a=rsa-sha256; c=relaxed/relaxed; d=inbox.example;\r\n"
            "        s=arc-20160816; h=mime-version:date:message-id:subject:from:to;\r\n"
            "        b=",
            4);
        ADD(pen, "Return-Path: <bounce-");
        box_pen_hex(pen, stage->traits->hash >> 20, 8);
        ADD(pen, "@");
        box_pen_text(pen, domain);
        ADD(pen, ">\r\n");
    }
    ADD(pen, "Received: from mail-out.");
    box_pen_text(pen, domain);
    ADD(pen, " (mail-out.");
    box_pen_text(pen, domain);
    ADD(pen, " [198.51.100.");
    box_pen_number(pen, stage->traits->hash % 250, 1);
    ADD(pen, "])\r\n        by mx.inbox.example with ESMTPS id ");
    box_pen_hex(pen, box_mix(stage->traits->hash, 9), 16);
    ADD(pen, "\r\n        for <");
    box_pen_text(pen, stage->generator->email);
    ADD(pen,
        ">\r\n        (version=TLS1_3 cipher=TLS_AES_256_GCM_SHA384 bits=256/256);\r\n        ");
    box_pen_date(pen, date_ms);
    ADD(pen, "\r\n");
    if (level > LEVEL_FULL)
        return;
    ADD(pen, "Authentication-Results: mx.inbox.example;\r\n       dkim=pass header.i=@");
    box_pen_text(pen, domain);
    ADD(pen, " header.s=s1;\r\n       spf=pass smtp.mailfrom=");
    box_pen_text(pen, domain);
    ADD(pen, ";\r\n       dmarc=pass (p=NONE sp=NONE dis=NONE) header.from=");
    box_pen_text(pen, domain);
    ADD(pen, "\r\nDKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed;\r\n        d=");
    box_pen_text(pen, domain);
    put_signature(stage,
                  "; s=s1; h=from:to:subject:date:message-id:mime-version;\r\n        b=", 4);
}

static void put_id(struct box_stage *stage, uint32_t n)
{
    struct box_traits traits;
    char text[BOX_MESSAGE_ID_BYTES_MAX];
    box_traits(stage->generator, n, &traits);
    size_t bytes = box_message_id(&traits, text);
    ADD(&stage->pen, "<");
    box_pen_add(&stage->pen, text, bytes);
    ADD(&stage->pen, ">");
}

/* In-Reply-To and References: the way back to the root, the newest last. */
static void put_references(struct box_stage *stage, uint32_t level)
{
    uint32_t chain[REFERENCES_MAX];
    uint32_t count = 0, at = stage->traits->n;
    uint32_t count_max = level <= LEVEL_SOME ? REFERENCES_MAX : 1;
    while (at != stage->traits->root && count < count_max)
        chain[count++] = at = box_parent(stage->generator, at);
    if (count == 0 || level == LEVEL_BARE)
        return;
    ADD(&stage->pen, "In-Reply-To: ");
    put_id(stage, chain[0]);
    ADD(&stage->pen, "\r\nReferences: ");
    if (chain[count - 1] != stage->traits->root && level <= LEVEL_SOME) {
        put_id(stage, stage->traits->root);
        ADD(&stage->pen, "\r\n ");
    }
    while (count-- > 0) {
        put_id(stage, chain[count]);
        if (count > 0)
            ADD(&stage->pen, "\r\n ");
    }
    ADD(&stage->pen, "\r\n");
}

static void put_list(struct box_stage *stage)
{
    struct box_pen *pen = &stage->pen;
    const char *domain = sender_domain(stage);
    uint64_t hash = stage->traits->topic;
    switch (stage->traits->kind) {
    case BOX_NEWSLETTER:
        ADD(pen, "List-Id: <");
        box_pen_text(pen, stage->notice->local);
        ADD(pen, ".");
        box_pen_text(pen, domain);
        ADD(pen, ">\r\nList-Unsubscribe: <https://");
        box_pen_text(pen, domain);
        ADD(pen, "/unsubscribe/");
        box_pen_hex(pen, stage->traits->hash, 16);
        ADD(pen, ">,\r\n <mailto:unsubscribe@");
        box_pen_text(pen, domain);
        ADD(pen, ">\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\nPrecedence: bulk\r\n");
        break;
    case BOX_REVIEW:
        ADD(pen, "List-Id: ");
        box_pen_text(pen, box_repository(box_mix(hash, 'y')));
        ADD(pen, " <code.reviews.example>\r\nList-Archive: <https://reviews.example/");
        box_pen_text(pen, box_repository(box_mix(hash, 'y')));
        ADD(pen, ">\r\nPrecedence: list\r\n");
        break;
    case BOX_FORUM:
        ADD(pen, "List-Id: Members <members.lists.example>\r\nList-Post: "
                 "<mailto:members@lists.example>\r\nList-Unsubscribe: "
                 "<mailto:members-leave@lists.example>\r\nPrecedence: list\r\n");
        break;
    default:
        break;
    }
}

static void put_addresses(struct box_stage *stage, uint32_t level)
{
    struct box_pen *pen = &stage->pen;
    bool named = level < LEVEL_BARE, mine = stage->traits->mine;
    ADD(pen, "From: ");
    if (mine)
        put_owner(stage, named);
    else
        put_other(stage, named);
    ADD(pen, "\r\nTo: ");
    if (stage->traits->kind == BOX_FORUM)
        ADD(pen, "Members <members@lists.example>");
    else if (mine)
        put_other(stage, named);
    else
        put_owner(stage, named && (stage->traits->hash >> 30 & 1) != 0);
    if (level <= LEVEL_SOME && stage->traits->kind == BOX_TALK &&
        (stage->traits->topic >> 28) % 4 == 0) {
        const struct box_tongue *tongue = stage->tongue;
        const struct box_person *third =
            &tongue->people[(stage->traits->topic >> 33) % tongue->people_count];
        ADD(pen, "\r\nCc: ");
        put_mailbox(stage, third->name, third->local, stage->other_domain);
    }
    ADD(pen, "\r\n");
}

static void put_head(struct box_stage *stage, uint32_t level)
{
    static const char *const mailers[] = {
        "User-Agent: Harbour Mail 12.4\r\n",
        "X-Mailer: Larkspur Mobile (3.1.7)\r\n",
        "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Postbird/115.2\r\n",
        "X-Mailer: Meridian Outbox 16.0\r\n",
    };
    struct box_pen *pen = &stage->pen;
    const struct box_traits *traits = stage->traits;
    if (level <= LEVEL_SOME && !traits->mine)
        put_trace(stage, level);
    put_addresses(stage, level);
    char room[BOX_LINE_ROOM];
    struct box_pen subject = {room, 0};
    box_stage_subject(stage, &subject);
    ADD(pen, "Subject: ");
    if (traits->root != traits->n)
        box_pen_text(pen, stage->lang == BOX_DE && (traits->hash >> 34 & 3) == 0 ? "AW: " : "Re: ");
    box_pen_words(pen, stage->charset == BOX_ASCII ? BOX_UTF8 : stage->charset,
                  (tide_text){room, subject.at});
    ADD(pen, "\r\nDate: ");
    box_pen_date(pen, traits->date_ms);
    ADD(pen, "\r\n");
    if (!traits->nameless) {
        ADD(pen, "Message-ID: ");
        put_id(stage, traits->n);
        ADD(pen, "\r\n");
    }
    if (traits->root != traits->n)
        put_references(stage, level);
    if (level <= LEVEL_SOME) {
        put_list(stage);
        if (traits->kind == BOX_TALK)
            box_pen_text(pen, mailers[traits->hash >> 36 & 3]);
        if (traits->kind == BOX_REPORT)
            ADD(pen, "Auto-Submitted: auto-replied\r\nX-Failed-Recipients: j.doe@gone.example\r\n");
    }
    ADD(pen, "MIME-Version: 1.0\r\n");
}

/* ---- damage ---- */

static char *find(char *in, size_t bytes, const char *what)
{
    return memmem(in, bytes, what, strlen(what));
}

/* Breaks a finished message in one of eight ways that occur in life, and keeps
 * its length (BGEN2). */
static void damage(const struct box_traits *traits, char *room, size_t head)
{
    size_t bytes = traits->bytes;
    char *p;
    switch ((traits->hash >> 12) % 8) {
    case 0: /* no empty line after the headers */
        memcpy(room + head - 2, "  ", 2);
        break;
    case 1: /* bare line feeds */
        for (p = room + head; (p = find(p, bytes - (size_t)(p - room), "\r\n")) != NULL; p += 2)
            *p = ' ';
        break;
    case 2: /* a multipart that never ends */
        for (p = room + head; (p = find(p, bytes - (size_t)(p - room), "--\r\n")) != NULL; p += 4)
            memcpy(p, "  ", 2);
        break;
    case 3: /* an unknown charset */
        if ((p = find(room, bytes, "charset=")) != NULL)
            memcpy(p + 8, "x-no", 4);
        break;
    case 4: /* a NUL in the text, and control characters */
        memcpy(room + bytes - 20, "\0\1\2\033\177", 5);
        break;
    case 5: /* a header line without a colon */
        if ((p = find(room, bytes, "MIME-Version:")) != NULL)
            p[12] = ' ';
        break;
    case 6: /* one line that is far too long */
        for (p = room + head; (p = find(p, bytes - (size_t)(p - room), "\r\n")) != NULL; p += 2)
            memcpy(p, "  ", 2);
        break;
    default: /* bytes that are no UTF-8, in the subject too */
        if ((p = find(room, bytes, "Subject: ")) != NULL)
            memcpy(p + 9, "\xff\xe4\x80", 3);
        break;
    }
}

void box_render(const struct box_generator *generator, const struct box_traits *traits, char *room,
                struct box_peek *peek)
{
    enum { BODY_LEAST = 120 };
    struct box_stage stage = {.generator = generator, .traits = traits, .peek = peek};
    stage.pen.room = room;
    struct box_traits root;
    stage.root_date_ms = traits->date_ms;
    if (traits->root != traits->n) {
        box_traits(generator, traits->root, &root);
        stage.root_date_ms = root.date_ms;
    }
    set_stage(&stage);
    uint32_t level = traits->bytes >= 4200   ? LEVEL_FULL
                     : traits->bytes >= 2000 ? LEVEL_SOME
                                             : LEVEL_FEW;
    put_head(&stage, level);
    while (stage.pen.at + BODY_LEAST > traits->bytes) {
        TIDE_ASSERT(level < LEVEL_BARE); /* its headers fit BOX_SMALLEST_BYTES */
        stage.pen.at = 0;
        put_head(&stage, ++level);
    }
    size_t head = stage.pen.at;
    box_stage_body(&stage);
    if (peek != NULL)
        return;
    TIDE_ASSERT(stage.pen.at == traits->bytes); /* BGEN2 */
    if (traits->broken) {
        char *end = find(room + head - 2, traits->bytes - head + 2, "\r\n\r\n");
        damage(traits, room, end == NULL ? traits->bytes : (size_t)(end - room) + 4);
    }
}
