#include "cloudbox/generate/stage.h"
#include "base/check.h"

#define ADD(pen, literal) box_pen_add(pen, literal, sizeof(literal) - 1)

/* ---- lines ---- */

static bool enough(const struct box_stage *stage)
{
    return stage->peek != NULL && stage->peek->bytes >= BOX_PEEK_BYTES;
}

static void remember(struct box_stage *stage, const char *text, size_t bytes)
{
    struct box_peek *peek = stage->peek;
    if (peek == NULL || peek->bytes >= BOX_PEEK_BYTES)
        return;
    TIDE_ASSERT(peek->bytes + bytes < sizeof peek->text);
    memcpy(peek->text + peek->bytes, text, bytes);
    peek->text[peek->bytes + bytes] = '\n';
    peek->bytes += bytes + 1;
}

/* One line of text between a prefix and a suffix, which are markup that a reader
 * does not see, or "> ". */
static bool say(struct box_stage *stage, struct box_sink *sink, const char *before,
                const char *text, size_t bytes, const char *after)
{
    char room[BOX_LINE_ROOM];
    if (*before == '\0' && *after == '\0') {
        if (!box_sink_line(sink, text, bytes))
            return false;
    } else {
        struct box_pen pen = {room, 0};
        box_pen_text(&pen, before);
        box_pen_add(&pen, text, bytes);
        box_pen_text(&pen, after);
        if (!box_sink_line(sink, room, pen.at))
            return false;
    }
    if (*before == '>') /* the mark of a quotation is seen */
        remember(stage, before, 1);
    remember(stage, text, bytes);
    return true;
}

static bool say_slots(struct box_stage *stage, struct box_sink *sink, const char *before,
                      const char *text, const char *after)
{
    char room[BOX_LINE_ROOM];
    struct box_pen pen = {room, 0};
    box_stage_expand(stage, text, &pen);
    return say(stage, sink, before, room, pen.at, after);
}

static void gap(struct box_sink *sink)
{
    (void)box_sink_line(sink, "", 0);
}

/* Where sentences come from and how many are natural here. */
struct pool {
    const char *const *sentences;
    size_t count;
    size_t at; /* the next one: one after the other, so that none repeats soon */
    size_t left;
};

/* Paragraphs of sentences until the pool has said enough or no more fit. */
static void fill(struct box_stage *stage, struct box_sink *sink, struct pool *pool,
                 const char *before, const char *after)
{
    enum { TRIES = 3, SENTENCES_MAX = 4 };
    tide_rng rng = tide_rng_seeded(stage->traits->hash + pool->at);
    uint32_t failed = 0;
    while (failed < TRIES && pool->left > 0 && !enough(stage)) {
        char room[BOX_LINE_ROOM];
        struct box_pen pen = {room, 0};
        size_t left = sink->limit > sink->pen->at ? sink->limit - sink->pen->at : 0;
        uint64_t sentences = left > 1500 ? 1 + tide_rng_below(&rng, SENTENCES_MAX) : 1;
        for (uint64_t i = 0; i < sentences && pool->left > 0 && pen.at < 600; i++) {
            if (i > 0)
                ADD(&pen, " ");
            box_stage_expand(stage, pool->sentences[pool->at++ % pool->count], &pen);
            pool->left--;
        }
        if (!say(stage, sink, before, room, pen.at, after))
            failed++;
        else if (*after == '\0')
            gap(sink);
    }
}

/* ---- what is said ---- */

static const char *const *core(const struct box_stage *stage, size_t *count_out)
{
    const char *const *lines;
    size_t count = 0, count_max;
    if (stage->notice != NULL) {
        lines = stage->notice->paragraphs;
        count_max = BOX_NOTICE_PARAGRAPHS;
    } else if (stage->traits->root == stage->traits->n) {
        lines = stage->topic->opening;
        count_max = BOX_TOPIC_PARAGRAPHS;
    } else {
        lines = &stage->topic->replies[(stage->traits->hash >> 44) % BOX_TOPIC_REPLIES];
        count_max = 1;
    }
    while (count < count_max && lines[count] != NULL)
        count++;
    *count_out = count;
    return lines;
}

bool box_personal(const struct box_stage *stage)
{
    return stage->notice == NULL || stage->notice->from == NULL;
}

static void say_hello(struct box_stage *stage, struct box_sink *sink, const char *before,
                      const char *after)
{
    char room[BOX_LINE_ROOM];
    struct box_pen pen = {room, 0};
    tide_text name = stage->traits->mine ? box_first_name(stage->other.name) : stage->owner_name;
    box_pen_text(&pen, stage->tongue->hello);
    if (name.bytes > 0) {
        ADD(&pen, " ");
        box_pen_add(&pen, name.data, name.bytes);
    }
    ADD(&pen, ",");
    (void)say(stage, sink, before, room, pen.at, after);
}

static void say_bye(struct box_stage *stage, struct box_sink *sink, const char *before,
                    const char *after)
{
    tide_text name = stage->traits->mine ? stage->owner_name : box_first_name(stage->other.name);
    (void)say(stage, sink, before, stage->tongue->bye, strlen(stage->tongue->bye), after);
    (void)say(stage, sink, before, name.data, name.bytes, after);
}

static struct pool pool_of(const struct box_stage *stage, bool whole)
{
    const struct box_tongue *tongue = stage->tongue;
    uint64_t hash = box_mix(stage->traits->hash, 61);
    struct pool pool;
    if (box_personal(stage))
        pool = (struct pool){tongue->sentences, tongue->sentences_count, 0, 2 + hash % 6};
    else if (stage->traits->kind == BOX_NEWSLETTER)
        pool = (struct pool){tongue->articles, tongue->articles_count, 0, 7 + hash % 8};
    else
        pool = (struct pool){tongue->print, tongue->print_count, 0, 2 + hash % 4};
    pool.at = hash >> 32;
    if (whole)
        pool.left = SIZE_MAX;
    return pool;
}

/* The message before, as mail programs quote it. */
static void say_quotation(struct box_stage *stage, struct box_sink *sink)
{
    const struct box_tongue *tongue = stage->tongue;
    char room[BOX_LINE_ROOM];
    struct box_pen pen = {room, 0};
    box_pen_text(&pen, stage->other.name);
    ADD(&pen, " ");
    box_pen_text(&pen, tongue->wrote);
    ADD(&pen, ":");
    gap(sink);
    (void)say(stage, sink, "", room, pen.at, "");
    for (size_t i = 0; i < BOX_TOPIC_PARAGRAPHS && stage->topic->opening[i] != NULL; i++)
        (void)say_slots(stage, sink, "> ", stage->topic->opening[i], "");
}

/* What real mail is mostly made of: style sheets, and in reviews code. */
static const char styles[] =
    "body,td{font-family:Helvetica,Arial,sans-serif;font-size:15px;color:#222}\r\n"
    "img{border:0;outline:none;text-decoration:none;max-width:100%}\r\n"
    ".wrap{width:600px;margin:0 auto;padding:24px 16px;background:#ffffff}\r\n"
    ".lead{font-size:18px;line-height:1.5;padding:0 0 12px 0;color:#1a3344}\r\n"
    ".cell{padding:12px 8px;border-bottom:1px solid #e4e4e4;vertical-align:top}\r\n"
    ".note{font-size:12px;line-height:1.4;color:#8a8a8a;padding:16px 0 0 0}\r\n"
    "a{color:#0b57a4;text-decoration:underline} a:hover{color:#083c72}\r\n"
    ".button{display:inline-block;padding:10px 22px;border-radius:4px}\r\n"
    ".button,.button:visited{background:#1d6f42;color:#ffffff;font-weight:bold}\r\n"
    ".price{font-size:22px;font-weight:bold;color:#a3241c;white-space:nowrap}\r\n"
    ".hide{display:none;max-height:0;overflow:hidden;mso-hide:all}\r\n"
    "@media only screen and (max-width:620px){.wrap{width:100%;padding:8px}}\r\n"
    "@media only screen and (max-width:620px){.cell{display:block;width:auto}}\r\n"
    "@media (prefers-color-scheme:dark){body{background:#111;color:#ddd}}\r\n";
static const char code[] = "@@ -118,9 +118,14 @@ static int read_entry(struct reader *r)\r\n"
                           "     if (r->left < 4)\r\n"
                           "         return -1;\r\n"
                           "-    skip(r, 4);\r\n"
                           "+    if (!skip(r, 4)) {\r\n"
                           "+        note(r, \"entry cut off\");\r\n"
                           "+        return -1;\r\n"
                           "+    }\r\n"
                           "     while (more(r)) {\r\n"
                           "         step(r);\r\n"
                           "+        if (r->steps++ > STEPS_MAX)\r\n"
                           "+            return -1;\r\n"
                           "     }\r\n"
                           "     return finish(r);\r\n"
                           " }\r\n";

/* Repeats a block while it fits below `until`, each time from another line. */
static void blocks(struct box_stage *stage, struct box_sink *sink, const char *block, size_t bytes,
                   size_t until)
{
    size_t from = stage->traits->hash % bytes;
    const char *line = memmem(block + from, bytes - from, "\r\n", 2);
    from = line == NULL ? 0 : (size_t)(line - block) + 2;
    while (sink->pen->at + bytes < until && stage->peek == NULL) {
        if (!box_sink_block(sink, block + from, bytes - from))
            return;
        from = 0;
    }
}

/* Programmers paste; what is said stands above it. */
static void say_with_code(struct box_stage *stage, struct box_sink *sink, struct pool *pool)
{
    enum { PROSE_BYTES = 1500 };
    size_t limit = sink->limit;
    sink->limit = sink->pen->at + PROSE_BYTES;
    fill(stage, sink, pool, "", "");
    sink->limit = limit;
    blocks(stage, sink, code, sizeof code - 1, limit);
    fill(stage, sink, pool, "", "");
}

void box_say_text(struct box_stage *stage, struct box_sink *sink, bool whole)
{
    enum { BYE_BYTES = 240, CODE_LEAST = 3000 };
    size_t count, limit = sink->limit;
    const char *const *lines = core(stage, &count);
    struct pool pool = pool_of(stage, whole);
    bool reply = stage->traits->root != stage->traits->n;
    if (box_personal(stage)) {
        say_hello(stage, sink, "", "");
        gap(sink);
    }
    for (size_t i = 0; i < count; i++) {
        if (say_slots(stage, sink, "", lines[i], ""))
            gap(sink);
    }
    size_t left = limit > sink->pen->at ? limit - sink->pen->at : 0;
    if (whole && left > CODE_LEAST && stage->traits->kind == BOX_REVIEW) {
        say_with_code(stage, sink, &pool);
    } else if (box_personal(stage) && left > BYE_BYTES) {
        /* What is left is shared with what a reply quotes. */
        sink->limit = reply ? sink->pen->at + (left - BYE_BYTES) / 2 : limit - BYE_BYTES;
        fill(stage, sink, &pool, "", "");
        sink->limit = limit;
        say_bye(stage, sink, "", "");
        if (reply)
            say_quotation(stage, sink);
        fill(stage, sink, &pool, reply ? "> " : "", "");
    } else {
        fill(stage, sink, &pool, "", "");
    }
}

/* Style sheets up to the limit: whole sheets first, then line by line. */
static void say_styles(struct box_stage *stage, struct box_sink *sink)
{
    static const char open[] = "<style>";
    if (stage->peek != NULL || sink->pen->at + 200 > sink->limit ||
        !box_sink_line(sink, open, sizeof open - 1))
        return;
    size_t limit = sink->limit;
    sink->limit = limit - 40; /* what closing it takes */
    blocks(stage, sink, styles, sizeof styles - 1, sink->limit);
    for (const char *line = styles; *line != '\0';) {
        size_t bytes = strcspn(line, "\r") + 2;
        if (!box_sink_block(sink, line, bytes))
            break;
        line += bytes;
    }
    sink->limit = limit;
    (void)box_sink_line(sink, "</style>", 8);
}

static bool markup(struct box_sink *sink, const char *line)
{
    return box_sink_line(sink, line, strlen(line));
}

void box_say_html(struct box_stage *stage, struct box_sink *sink)
{
    enum { END_BYTES = 260 };
    static const char cell[] = "<tr><td class=\"cell\" style=\"padding:8px 0\"><p>";
    size_t count, limit = sink->limit;
    const char *const *lines = core(stage, &count);
    struct pool pool = pool_of(stage, false);
    bool person = box_personal(stage);
    const char *before = person ? "<div>" : cell;
    const char *after = person ? "</div>" : "</p></td></tr>";
    sink->limit = limit - END_BYTES;
    (void)markup(sink, "<!DOCTYPE html><html><head></head><body>");
    if (person) {
        say_hello(stage, sink, before, after);
    } else {
        char room[BOX_LINE_ROOM];
        struct box_pen pen = {room, 0};
        (void)markup(sink, "<table class=\"wrap\" width=\"600\" border=\"0\">");
        box_stage_subject(stage, &pen);
        (void)say(stage, sink, "<tr><td><h2>", room, pen.at, "</h2></td></tr>");
    }
    for (size_t i = 0; i < count; i++)
        (void)say_slots(stage, sink, before, lines[i], after);
    fill(stage, sink, &pool, before, after);
    sink->limit = limit;
    if (person)
        say_bye(stage, sink, before, after);
    else
        (void)markup(sink, "</table>");
    sink->limit = limit - 60;
    say_styles(stage, sink);
    sink->limit = limit;
    (void)markup(sink, "</body></html>");
}

void box_say_offer(struct box_stage *stage, struct box_sink *sink)
{
    const struct box_tongue *english = box_tongue(BOX_EN);
    box_lang lang = stage->lang;
    stage->lang = BOX_EN;
    (void)say_slots(stage, sink, "", "We offer {q} pieces of {b} at {a} USD each.", "");
    struct pool pool = {english->print, english->print_count, 0, SIZE_MAX};
    fill(stage, sink, &pool, "", "");
    stage->lang = lang;
}
