/* Random queries over random mail.  What a query must find is computed while it
 * is written, from the sets of its parts; both ways to find must agree with it (BQRY2). */
#include "query_find.h"

/* The only user label, "Work/Bills", is the first one behind the system ones. */
enum { WORK = BOX_LABELS_SYSTEM };

/* What a query finds and what its negation finds: for an invalid term both are
 * empty, so one does not follow from the other. */
struct sets {
    uint64_t yes, no;
};

struct writing {
    tide_rng rng;
    box_mailbox *mailbox;
    uint64_t all;
    char text[4096];
    bool words; /* terms that need the bytes too */
};

enum { DATES = 40, SUBJECTS = 6 };
static const char *const subjects[SUBJECTS] = {"red apple", "green pear",  "red pear",
                                               "blue plum", "green apple", "plum"};
static const char *const senders[] = {"ann@x.test", "bob@y.test", "carol@x.test"};

static box_mailbox *random_mailbox(tide_rng *rng)
{
    box_mailbox *mailbox = box_mailbox_new(
        &(struct box_mailbox_spec){.seed = 2, .now_ms = NOW_MS, .email = "me@x.test"});
    uint32_t number = 0;
    struct box_label label = {.name = "Work/Bills"};
    assert_ok(box_mailbox_label_create(mailbox, &label, &number));
    for (uint32_t i = 0; i < SET_MAX; i++) {
        char raw[512];
        (void)snprintf(raw, sizeof raw,
                       "From: %s\r\nSubject: %s\r\nMessage-ID: <%u@x.test>\r\n\r\n%s %*s\r\n",
                       senders[tide_rng_below(rng, 3)], subjects[tide_rng_below(rng, SUBJECTS)],
                       (unsigned)tide_rng_below(rng, 20), subjects[tide_rng_below(rng, SUBJECTS)],
                       (int)tide_rng_below(rng, 200), ".");
        uint16_t labels[BOX_LABELS_SYSTEM + 1];
        size_t count = 0;
        for (uint16_t n = 0; n <= WORK; n++)
            if (n != BOX_LABEL_CHAT && n != BOX_LABEL_DRAFT && tide_rng_chance(rng, 1, 3))
                labels[count++] = n;
        const struct box_insert insert = {.raw = tide_text_of(raw),
                                          .date_ms =
                                              PST_JAN_10 + tide_rng_below(rng, DATES) * DAY_MS / 2,
                                          .labels = labels,
                                          .labels_count = count};
        (void)box_mailbox_insert(mailbox, &insert);
    }
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t slot = (uint32_t)tide_rng_below(rng, SET_MAX);
        if (!box_mailbox_at(mailbox, slot)->gone)
            box_mailbox_remove(mailbox, slot);
    }
    return mailbox;
}

static uint64_t living(const box_mailbox *mailbox)
{
    uint64_t set = 0;
    for (uint32_t slot = 0; slot < SET_MAX; slot++)
        if (!box_mailbox_at(mailbox, slot)->gone)
            set |= UINT64_C(1) << slot;
    return set;
}

static void write_text(struct writing *writing, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void write_text(struct writing *writing, const char *format, ...)
{
    const size_t used = strlen(writing->text);
    va_list args;
    va_start(args, format);
    const int bytes = vsnprintf(writing->text + used, sizeof writing->text - used, format, args);
    va_end(args);
    TIDE_ASSERT(bytes >= 0 && (size_t)bytes < sizeof writing->text - used);
}

static uint64_t labeled(const struct writing *writing, uint32_t label)
{
    uint64_t set = 0;
    for (uint32_t slot = 0; slot < SET_MAX; slot++)
        if (box_mailbox_has_label(writing->mailbox, slot, label))
            set |= UINT64_C(1) << slot;
    return set & writing->all;
}

/* Looks for the words in the bytes, plainly: they are ASCII and in one case. */
static uint64_t containing(struct writing *writing, const char *line, const char *word)
{
    uint64_t set = 0;
    for (uint32_t slot = 0; slot < SET_MAX; slot++) {
        if ((writing->all >> slot & 1) == 0)
            continue;
        tide_auto_buf scratch = tide_buf_heap(1 << 20);
        const tide_text raw = box_mailbox_raw(writing->mailbox, slot, &scratch);
        char copy[1024];
        (void)snprintf(copy, sizeof copy, "%.*s", (int)raw.bytes, raw.data);
        char *from = strstr(copy, line);
        TIDE_ASSERT(from != NULL);
        char *end = strstr(from, "\r\n\r\n");
        if (line[0] != '\0' && end != NULL)
            *strstr(from, "\r\n") = '\0';
        if (strstr(from, word) != NULL)
            set |= UINT64_C(1) << slot;
    }
    return set;
}

static struct sets both_ways(const struct writing *writing, uint64_t set)
{
    return (struct sets){set, writing->all & ~set};
}

static struct sets write_label(struct writing *writing)
{
    static const struct {
        const char *text;
        uint32_t label;
    } terms[] = {
        {"in:inbox", BOX_LABEL_INBOX},     {"label:spam", BOX_LABEL_SPAM},
        {"in:trash", BOX_LABEL_TRASH},     {"is:unread", BOX_LABEL_UNREAD},
        {"is:starred", BOX_LABEL_STARRED}, {"IN:Sent", BOX_LABEL_SENT},
        {"label:\"work bills\"", WORK},    {"category:updates", BOX_LABEL_CATEGORY_UPDATES},
        {"has:userlabels", WORK},          {"in:chats", BOX_LABEL_CHAT},
        {"in:drafts", BOX_LABEL_DRAFT},
    };
    const size_t n = tide_rng_below(&writing->rng, sizeof terms / sizeof terms[0]);
    write_text(writing, "%s", terms[n].text);
    return both_ways(writing, labeled(writing, terms[n].label));
}

static struct sets write_range(struct writing *writing)
{
    const bool date = tide_rng_chance(&writing->rng, 2, 3);
    const bool from = tide_rng_chance(&writing->rng, 1, 2);
    const uint64_t bound = date ? PST_JAN_10 + tide_rng_below(&writing->rng, DATES) * DAY_MS / 2
                                : 80 + tide_rng_below(&writing->rng, 250);
    uint64_t set = 0;
    for (uint32_t slot = 0; slot < SET_MAX; slot++) {
        const struct box_message *message = box_mailbox_at(writing->mailbox, slot);
        const uint64_t number = date ? message->date_ms : message->bytes;
        const bool inside = from ? (date ? number >= bound : number > bound) : number < bound;
        set |= (uint64_t)inside << slot;
    }
    if (!date)
        write_text(writing, "%s:%u", from ? "larger" : "smaller", (unsigned)bound);
    else if (tide_rng_chance(&writing->rng, 1, 2))
        write_text(writing, "%s:%llu", from ? "after" : "before",
                   (unsigned long long)(bound / 1000));
    else
        write_text(writing, "%s:%lluh", from ? "newer_than" : "older_than",
                   (unsigned long long)((NOW_MS - bound) / HOUR_MS));
    return both_ways(writing, set & writing->all);
}

static struct sets write_word(struct writing *writing)
{
    static const char *const words[] = {"red", "green", "apple", "pear", "plum"};
    const char *word = words[tide_rng_below(&writing->rng, 5)];
    const char *sender = senders[tide_rng_below(&writing->rng, 3)];
    switch (tide_rng_below(&writing->rng, 4)) {
    case 0:
        write_text(writing, "subject:%s", word);
        return both_ways(writing, containing(writing, "Subject:", word));
    case 1:
        write_text(writing, "from:%s", sender);
        return both_ways(writing, containing(writing, "From:", sender));
    case 2: {
        char id[32];
        (void)snprintf(id, sizeof id, "<%u@x.test>", (unsigned)tide_rng_below(&writing->rng, 20));
        write_text(writing, "rfc822msgid:%s", id);
        return both_ways(writing, containing(writing, "Message-ID:", id));
    }
    default:
        write_text(writing, "%s", word);
        return both_ways(writing, containing(writing, "", word));
    }
}

static struct sets write_leaf(struct writing *writing)
{
    const uint64_t way = tide_rng_below(&writing->rng, writing->words ? 10 : 8);
    if (way == 0) {
        write_text(writing, "weight:heavy");
        return (struct sets){0, 0};
    }
    if (way == 1) {
        write_text(writing, "label:nowhere");
        return both_ways(writing, 0);
    }
    if (way < 5)
        return write_label(writing);
    return way < 8 ? write_range(writing) : write_word(writing);
}

static struct sets write_query(struct writing *writing, uint64_t deep);

static struct sets write_item(struct writing *writing, uint64_t deep)
{
    const bool negated = tide_rng_chance(&writing->rng, 1, 3);
    write_text(writing, "%s", negated ? "-" : "");
    const struct sets sets = deep == 0 || tide_rng_chance(&writing->rng, 1, 2)
                                 ? write_leaf(writing)
                                 : write_query(writing, deep - 1);
    return negated ? (struct sets){sets.no, sets.yes} : sets;
}

/* A group in brackets: all, any in one of its spellings, or both mixed. */
static struct sets write_query(struct writing *writing, uint64_t deep)
{
    static const char *const betweens[] = {" ", " ", " OR ", "|", " AND "};
    const uint64_t way = tide_rng_below(&writing->rng, 5);
    const bool braces = way == 1;
    struct sets all = {writing->all, 0};
    struct sets run = {0, writing->all};
    struct sets any = {0, writing->all};
    write_text(writing, "%s", braces ? "{" : "(");
    for (uint64_t left = 1 + tide_rng_below(&writing->rng, 3); left > 0; left--) {
        const struct sets item = write_item(writing, deep);
        run = (struct sets){run.yes | item.yes, run.no & item.no};
        any = (struct sets){any.yes | item.yes, any.no & item.no};
        const bool joins = way == 2 || way == 3;
        if (left > 1)
            write_text(writing, "%s", betweens[way]);
        if (left == 1 || !joins) {
            all = (struct sets){all.yes & run.yes, all.no | run.no};
            run = (struct sets){0, writing->all};
        }
    }
    write_text(writing, "%s", braces ? "}" : ")");
    return braces ? any : all;
}

static void random_queries(uint64_t first_seed, uint64_t rounds, bool words)
{
    tide_rng rng = tide_rng_seeded(first_seed);
    auto_mailbox *mailbox = random_mailbox(&rng);
    static struct writing writing;
    for (uint64_t seed = first_seed; seed < first_seed + rounds; seed++) {
        writing.rng = tide_rng_seeded(seed);
        writing.mailbox = mailbox;
        writing.all = living(mailbox);
        writing.words = words;
        writing.text[0] = '\0';
        const struct sets sets = write_query(&writing, 3);
        const uint64_t found = find(mailbox, tide_text_of(writing.text));
        if (found != sets.yes)
            fail_msg("seed %llu: %s finds %llx, not %llx", (unsigned long long)seed, writing.text,
                     (unsigned long long)found, (unsigned long long)sets.yes);
    }
}

TEST(random_queries_find_the_right_set_by_both_ways)
{
    random_queries(1, scaled(60000), false);
}

TEST(random_queries_about_content_do_so_too)
{
    random_queries(1000000, scaled(2000), true);
}

/* The index of generated mail is made without its bytes; it must agree with them. */
TEST(a_generated_message_is_found_by_its_message_id)
{
    size_t with_id = 0;
    for (uint64_t seed = 1; seed <= scaled(100); seed++) {
        auto_mailbox *mailbox = box_mailbox_new(&(struct box_mailbox_spec){
            .seed = seed, .generated = SET_MAX, .now_ms = NOW_MS, .email = "me@x.test"});
        for (uint32_t slot = 0; slot < SET_MAX; slot += 7) {
            tide_auto_buf scratch = tide_buf_heap(64 << 20);
            tide_auto_arena arena = tide_arena_heap(64 << 20);
            struct box_view view;
            box_mime_headers(box_mailbox_raw(mailbox, slot, &scratch), &arena, &view);
            char text[512];
            (void)snprintf(text, sizeof text, "rfc822msgid:<%.*s>", (int)view.message_id.bytes,
                           view.message_id.data);
            if (view.message_id.bytes > 0) {
                with_id++;
                if ((find(mailbox, tide_text_of(text)) >> slot & 1) == 0)
                    fail_msg("seed %u: message %u is not found by %s", (unsigned)seed, slot, text);
            }
        }
    }
    assert_true(with_id > 0);
}

int main(void)
{
    box_mime_start();
    return tests_run(NULL);
}
