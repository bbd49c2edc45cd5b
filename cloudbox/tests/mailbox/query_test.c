/* Gmail's search language: examples over a few known messages, odd and hostile texts. */
#include "query_find.h"

/* ---- known messages: slot 0 is 'a', 1 is 'b', ... ---- */

struct known {
    uint64_t date_ms;
    uint16_t labels[4];
    size_t labels_count;
    const char *raw;
};

/* The user label "Work/Bills" is the first one behind the system ones. */
enum { WORK = BOX_LABELS_SYSTEM };

static const struct known known[] = {
    /* a */
    {PST_JAN_10,
     {BOX_LABEL_INBOX, BOX_LABEL_UNREAD, BOX_LABEL_CATEGORY_PERSONAL},
     3,
     "From: Bob Miller <bob@example.com>\r\nTo: Ann <ann@example.com>\r\n"
     "Subject: Quarterly report\r\nMessage-ID: <a1@mail.example.com>\r\n\r\n"
     "The numbers look good. Tea at 12:30?\r\n"},
    /* b */
    {PST_JAN_10 + 10 * DAY_MS,
     {BOX_LABEL_INBOX, BOX_LABEL_CATEGORY_PROMOTIONS},
     2,
     "From: Carol <carol@shop.test>\r\nTo: ann@example.com\r\nCc: Dave <dave@example.org>\r\n"
     "Subject: Your order 4711 has shipped\r\nMessage-ID: <b.{2}|x@shop.test>\r\n"
     "Delivered-To: ann+shop@example.com\r\n\r\nTrack the parcel, or wait.\r\n"},
    /* c */
    {PST_JAN_10 + 20 * DAY_MS,
     {BOX_LABEL_SENT},
     1,
     "From: Ann <ann@example.com>\r\nTo: bob@example.com\r\nBcc: hidden@example.net\r\n"
     "Subject: Re: Quarterly report\r\nMessage-ID: <c3@mail.example.com>\r\n"
     "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
     "Content-Transfer-Encoding: 8bit\r\n\r\nCaf\xc3\xa9 cr\xc3\xa8me in the Stra\xc3\x9f"
     "e, good numbers.\r\n"},
    /* d */
    {PST_JAN_10 + 30 * DAY_MS,
     {BOX_LABEL_INBOX, BOX_LABEL_STARRED, WORK},
     3,
     "From: billing@shop.test\r\nTo: ann@example.com\r\nSubject: Invoice\r\n"
     "Message-ID: <d4@shop.test>\r\nMIME-Version: 1.0\r\n"
     "Content-Type: multipart/mixed; boundary=B\r\n\r\n--B\r\nContent-Type: text/plain\r\n\r\n"
     "Please find it attached.\r\n--B\r\nContent-Type: application/pdf\r\n"
     "Content-Disposition: attachment; filename=\"Invoice 2024.pdf\"\r\n"
     "Content-Transfer-Encoding: base64\r\n\r\nJVBERg==\r\n--B--\r\n"},
    /* e */
    {PST_JAN_10 + 40 * DAY_MS,
     {BOX_LABEL_SPAM, BOX_LABEL_UNREAD},
     2,
     "From: prince@example.net\r\nTo: ann@example.com\r\nSubject: Money\r\n\r\nMoney for you\r\n"},
    /* f */
    {PST_JAN_10 + 50 * DAY_MS,
     {BOX_LABEL_TRASH},
     1,
     "From: prince@example.net\r\nTo: ann@example.com\r\nSubject: Old money\r\n\r\nYou for "
     "money\r\n"},
    /* g */
    {PST_JAN_10 + 60 * DAY_MS,
     {BOX_LABEL_INBOX, BOX_LABEL_IMPORTANT, BOX_LABEL_CATEGORY_FORUMS},
     3,
     "From: =?UTF-8?B?5bGx55Sw?= <yamada@example.jp>\r\nTo: list@example.jp\r\n"
     "List-ID: <weather.example.jp>\r\nSubject: =?UTF-8?B?5p2x5Lqs44Gu5aSp5rCX?=\r\n"
     "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
     "Content-Transfer-Encoding: 8bit\r\n\r\n"
     "\xe4\xbb\x8a\xe6\x97\xa5\xe3\x81\xaf\xe6\x99\xb4\xe3\x82\x8c\xe3\x81\xa7\xe3\x81\x99\r\n"},
    /* h */
    {PST_JAN_10 + 99 * DAY_MS, {BOX_LABEL_DRAFT}, 1, "From: ann@example.com\r\n\r\nunfinished\r\n"},
};
enum { KNOWN = sizeof known / sizeof known[0] };

static box_mailbox *known_mailbox(void)
{
    box_mailbox *mailbox = box_mailbox_new(&(struct box_mailbox_spec){
        .seed = 1, .now_ms = NOW_MS, .history_keep_ms = DAY_MS, .email = "ann@example.com"});
    uint32_t number = 0;
    struct box_label label = {.name = "Work/Bills"};
    assert_ok(box_mailbox_label_create(mailbox, &label, &number));
    assert_int_equal(number, WORK);
    for (size_t i = 0; i < KNOWN; i++)
        (void)box_mailbox_insert(mailbox,
                                 &(struct box_insert){.raw = tide_text_of(known[i].raw),
                                                      .date_ms = known[i].date_ms,
                                                      .labels = known[i].labels,
                                                      .labels_count = known[i].labels_count});
    return mailbox;
}

static void set_text(uint64_t set, char text_out[SET_MAX + 1])
{
    size_t count = 0;
    for (uint32_t slot = 0; slot < SET_MAX; slot++)
        if (set >> slot & 1)
            text_out[count++] = (char)(slot < 26 ? 'a' + slot : 'A' + slot - 26);
    text_out[count] = '\0';
}

/* ---- examples ---- */

static const struct {
    const char *query;
    const char *expected; /* letters of the messages, spam and trash among them */
} examples[] = {
    {"", "abcdefgh"},
    {"   \t\r\n", "abcdefgh"},
    /* words */
    {"money", "ef"},
    {"MONEY", "ef"},
    {"mone", ""},
    {"good", "ac"},
    {"good numbers", "ac"},
    {"\"good numbers\"", "c"},
    {"\"numbers good\"", ""},
    {"\"numbers look good\"", "a"},
    {"bob", "ac"},
    {"bob@example.com", "ac"},
    {"dave", "b"},
    {"12:30", "a"},
    {"4711", "b"},
    {"cafe", "c"},
    {"CAF\xc3\x89", "c"},
    {"creme", "c"},
    {"strasse", "c"},
    {"shipped,", "b"},
    {"\xe5\xa4\xa9\xe6\xb0\x97", "g"}, /* in the subject */
    {"\xe6\x99\xb4\xe3\x82\x8c", "g"}, /* in the middle of the body */
    {"\xe6\xb0\x97\xe5\xa4\xa9", ""},  /* the wrong way round */
    {"\xe5\xb1\xb1\xe7\x94\xb0", "g"}, /* the sender */
    {"\"for you\"", "e"},
    {"\"you for\"", "f"},
    {"\"report bob\"", ""}, /* no phrase goes from one header into another */
    /* joining */
    {"money OR invoice", "def"},
    {"money or invoice", ""},
    {"wait or", "b"},
    {"money | invoice", "def"},
    {"money|invoice", "def"},
    {"{money invoice}", "def"},
    {"money AND old", "f"},
    {"money OR report good", "ac"},
    {"good money OR report", "ac"},
    {"money OR", "ef"},
    {"OR money", "ef"},
    {"money OR OR invoice", "def"},
    {"-money", "abcdgh"},
    {"money -old", "e"},
    {"-(money old)", "abcdegh"},
    {"-{money invoice}", "abcgh"},
    {"-(money OR invoice)", "abcgh"},
    {"--money", "ef"},
    {"-\"good numbers\" good", "a"},
    {"(money)", "ef"},
    {"((((money))))", "ef"},
    {"(money OR invoice) -in:spam", "df"},
    {"{from:bob from:carol} subject:report", "a"},
    /* odd syntax */
    {"money)", "ef"},
    {"(money", "ef"},
    {"(money}", "ef"},
    {"\"money", "ef"},
    {"money\"old\"", "f"},
    {"()", "abcdefgh"},
    {"{}", "abcdefgh"},
    {"\"\"", "abcdefgh"},
    {"-", "abcdefgh"},
    {"- money", "ef"},
    {"-()", "abcdefgh"},
    {"!!! money ???", "ef"},
    {"|", "abcdefgh"},
    {"\xff\xfe money", "ef"},
    /* headers */
    {"from:bob", "a"},
    {"from:Miller", "a"},
    {"from:mill", "a"},
    {"from:bob@example.com", "a"},
    {"from:\"bob miller\"", "a"},
    {"FROM:BOB", "a"},
    {"from:shop.test", "bd"},
    {"from:(bob OR carol)", "ab"},
    {"from:{bob carol}", "ab"},
    {"from:me", "ch"},
    {"to:me", "abdef"},
    {"-from:me to:bob", ""},
    {"to:bob", "c"},
    {"cc:dave@example.org", "b"},
    {"bcc:hidden", "c"},
    {"deliveredto:ann+shop", "b"},
    {"list:weather.example.jp", "g"},
    {"subject:report", "ac"},
    {"subject:repo", ""},
    {"subject:(quarterly report)", "ac"},
    {"subject:\"quarterly report\"", "ac"},
    {"subject:\"report quarterly\"", ""},
    {"subject:(report -re)", "a"},
    {"subject:(report from:bob)", "a"},
    {"subject:{money invoice}", "def"},
    {"-subject:(quarterly report)", "bdefgh"},
    {"subject:good", ""},
    {"rfc822msgid:a1@mail.example.com", "a"},
    {"rfc822msgid:<a1@mail.example.com>", "a"},
    {"rfc822msgid:\"<a1@mail.example.com>\"", "a"},
    {"rfc822msgid:a1@mail", ""},
    {"rfc822msgid:<b.{2}|x@shop.test>", "b"},
    {"rfc822msgid:a1@mail.example.com OR rfc822msgid:d4@shop.test", "ad"},
    {"rfc822msgid:a1@mail.example.com rfc822msgid:d4@shop.test", ""},
    {"(rfc822msgid:d4@shop.test)", "d"},
    {"-rfc822msgid:a1@mail.example.com", "bcdefgh"},
    {"rfc822msgid:<>", ""},
    /* files */
    {"has:attachment", "d"},
    {"-has:attachment", "abcefgh"},
    {"filename:pdf", "d"},
    {"filename:invoice", "d"},
    {"filename:\"invoice 2024.pdf\"", "d"},
    {"filename:doc", ""},
    /* labels */
    {"in:inbox", "abdg"},
    {"label:inbox", "abdg"},
    {"label:INBOX", "abdg"},
    {"-in:inbox", "cefh"},
    {"in:sent", "c"},
    {"in:drafts", "h"},
    {"in:draft", "h"},
    {"in:spam", "e"},
    {"in:trash", "f"},
    {"in:anywhere", "abcdefgh"},
    {"in:chats", ""},
    {"-in:chats", "abcdefgh"},
    {"is:unread", "ae"},
    {"is:read", "bcdfgh"},
    {"-is:read", "ae"},
    {"is:starred", "d"},
    {"is:important", "g"},
    {"is:muted", ""},
    {"label:work-bills", "d"},
    {"label:Work/Bills", "d"},
    {"label:\"work/bills\"", "d"},
    {"in:work-bills", "d"},
    {"label:nowhere", ""},
    {"-label:nowhere", "abcdefgh"},
    {"label:inbox label:unread", "a"},
    {"label:(inbox unread)", "a"},
    {"label:{starred important}", "dg"},
    {"label:inbox -label:unread", "bdg"},
    {"has:userlabels", "d"},
    {"has:nouserlabels", "abcefgh"},
    {"-has:userlabels", "abcefgh"},
    {"category:primary", "a"},
    {"category:promotions", "b"},
    {"category:forums", "g"},
    {"category:social", ""},
    {"-category:social", "abcdefgh"},
    {"category:purchases", ""},
    /* dates: after is inclusive, before exclusive, a day begins in UTC-8 */
    {"after:2024/01/10", "abcdefgh"},
    {"after:2024/01/11", "bcdefgh"},
    {"before:2024/01/10", ""},
    {"before:2024/01/11", "a"},
    {"after:2024-1-20 before:2024-1-21", "b"},
    {"after:1/20/2024 before:1/21/2024", "b"},
    {"after:1704873600", "abcdefgh"},
    {"after:1704873601", "bcdefgh"},
    {"before:1704873600", ""},
    {"before:1704873601", "a"},
    {"newer:2024/02/29 older:2024/04/01", "fg"},
    {"-after:2024/01/11", "a"},
    {"-before:2024/01/11", "bcdefgh"},
    {"after:2024/01/20 before:2024/01/20", ""},
    {"after:1950/01/01", "abcdefgh"},
    {"before:1950/01/01", ""},
    {"newer_than:1d", "h"},
    {"newer_than:24h", "h"},
    {"newer_than:23h", ""},
    {"newer_than:2m", "efgh"},
    {"older_than:2m", "abcd"},
    {"newer_than:1y", "abcdefgh"},
    {"older_than:99999999999999999999y", ""},
    {"older_than:9999999999999999999y", ""},
    {"newer_than:9999999999999999999y", "abcdefgh"},
    {"-newer_than:2m", "abcd"},
    /* sizes */
    {"larger:1", "abcdefgh"},
    {"larger:1M", ""},
    {"smaller:1M", "abcdefgh"},
    {"smaller:1k", "abcdefgh"},
    {"-smaller:1k", ""},
    {"size:100000", ""},
    {"smaller:0", ""},
    /* what makes no sense matches nothing, negated or not, but only itself */
    {"foo:bar", ""},
    {"-foo:bar", ""},
    {"http://example.com", ""},
    {"foo:bar OR money", "ef"},
    {"-(foo:bar money)", "abcdgh"},
    {"foo:(bar money)", ""},
    {"from:", ""},
    {"from: bob", ""},
    {"-from:", ""},
    {"from:\"\"", ""},
    {"from:!!!", ""},
    {"label:", ""},
    {"is:nice", ""},
    {"-is:nice", ""},
    {"has:cheese", ""},
    {"category:cheese", ""},
    {"after:yesterday", ""},
    {"after:2024/13/01", ""},
    {"after:2024/02/30", ""},
    {"after:2024/02/29/1", ""},
    {"after:2024/02", ""},
    {"after:2024/02-01", ""},
    {"after:-1", ""},
    {"before:01/02/03", ""},
    {"newer_than:1w", ""},
    {"newer_than:10", ""},
    {"newer_than:d", ""},
    {"newer_than:-1d", ""},
    {"-newer_than:1w", ""},
    {"larger:10G", ""},
    {"larger:M", ""},
    {"larger:big", ""},
    {"larger:99999999999999999999", ""},
};

TEST(a_query_finds_what_it_says)
{
    auto_mailbox *mailbox = known_mailbox();
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        tide_auto_arena arena = tide_arena_heap(ARENA_BYTES_MAX);
        const box_query *query =
            box_query_parse(tide_text_of(examples[i].query), NOW_MS, mailbox, &arena);
        char matched[SET_MAX + 1];
        char walked[SET_MAX + 1];
        set_text(by_match(query, mailbox), matched);
        set_text(by_walk(query, mailbox), walked);
        if (strcmp(matched, examples[i].expected) != 0 || strcmp(walked, matched) != 0)
            fail_msg("%s: expected \"%s\", matched \"%s\", walked \"%s\"", examples[i].query,
                     examples[i].expected, matched, walked);
    }
}

static const struct {
    const char *query;
    bool nothing, spam_trash, exact;
    size_t labels;
} plans[] = {
    {"", false, false, true, 0},
    {"-in:chats", false, false, true, 0},
    {"in:chats", true, false, false, 0},
    {"in:inbox", false, false, true, 1},
    {"in:inbox is:unread after:2024/01/01", false, false, true, 2},
    {"in:inbox in:inbox", false, false, true, 1},
    {"after:2024/01/01 before:2024/02/01", false, false, true, 0},
    {"after:2024/02/01 before:2024/01/01", true, false, true, 0},
    {"-after:2024/01/20", false, false, true, 0},
    {"-in:inbox", false, false, false, 0},
    {"in:inbox -is:unread", false, false, false, 1},
    {"in:inbox OR in:sent", false, false, false, 0},
    {"{(in:inbox is:unread) (in:inbox is:starred)}", false, false, false, 1},
    {"in:inbox money", false, false, false, 1},
    {"rfc822msgid:a@b", false, false, false, 0},
    {"in:spam", false, true, true, 1},
    {"label:trash", false, true, true, 1},
    {"in:anywhere", false, true, true, 0},
    {"money OR in:trash", false, true, false, 0},
    {"-in:spam", false, false, false, 0},
    {"-(-in:spam)", false, true, true, 1},
    {"label:(spam)", false, true, true, 1},
    {"foo:bar", true, false, false, 0},
    {"in:inbox foo:bar", true, false, false, 0},
};

TEST(a_plan_knows_what_the_walk_decides)
{
    auto_mailbox *mailbox = known_mailbox();
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        tide_auto_arena arena = tide_arena_heap(ARENA_BYTES_MAX);
        struct box_query_plan plan;
        box_query_plan(box_query_parse(tide_text_of(plans[i].query), NOW_MS, mailbox, &arena),
                       &plan);
        if (plan.nothing != plans[i].nothing || plan.spam_trash != plans[i].spam_trash ||
            (!plan.nothing && plan.exact != plans[i].exact) ||
            (!plan.nothing && plan.walk.labels_count != plans[i].labels))
            fail_msg("%s: nothing %d, spam and trash %d, exact %d, labels %zu", plans[i].query,
                     plan.nothing, plan.spam_trash, plan.exact, plan.walk.labels_count);
    }
}

/* ---- hostile texts ---- */

/* `count` times `piece`, then `end`. */
static uint64_t find_repeated(box_mailbox *mailbox, const char *piece, size_t count,
                              const char *end)
{
    const size_t bytes = strlen(piece);
    auto_text *text = calloc(count * bytes + strlen(end) + 1, 1);
    assert_non_null(text);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * bytes, piece, bytes);
    memcpy(text + count * bytes, end, strlen(end));
    return find(mailbox, tide_text_of(text));
}

TEST(what_is_too_deep_or_too_long_matches_nothing)
{
    auto_mailbox *mailbox = known_mailbox();
    const uint64_t money = find(mailbox, TIDE_TEXT("money"));
    assert_int_not_equal(money, 0);
    assert_int_equal(find_repeated(mailbox, "(", BOX_QUERY_DEEP, "money"), money);
    assert_int_equal(find_repeated(mailbox, "(", BOX_QUERY_DEEP + 1, "money"), 0);
    assert_int_equal(find_repeated(mailbox, "-(", BOX_QUERY_DEEP, "money"), money);
    assert_int_equal(find_repeated(mailbox, "from:{", 1000, "money"), 0);
    assert_int_equal(find_repeated(mailbox, "(", 1000000, "money"), 0);
    assert_int_equal(find_repeated(mailbox, "--", 4000, "money"), money);
    assert_int_equal(find_repeated(mailbox, "--", 5000, "money"), 0);
    assert_int_equal(find_repeated(mailbox, "money ", 400, ""), money);
    assert_int_equal(find_repeated(mailbox, "money ", 1200, ""), 0);
    assert_int_equal(find_repeated(mailbox, "money OR ", 900, "money"), money);
    assert_int_equal(find_repeated(mailbox, "\"\"", 4000, "money"), money);
    assert_int_equal(find_repeated(mailbox, ")}|", 2000, " money"), money);
    assert_int_equal(find_repeated(mailbox, "in:inbox is:unread ", 200, ""),
                     find(mailbox, TIDE_TEXT("in:inbox is:unread")));
}

TEST(any_text_parses_and_its_plan_is_not_too_narrow)
{
    static const char *const pieces[] = {
        "(",
        ")",
        "{",
        "}",
        "\"",
        "-",
        " ",
        " OR ",
        "|",
        "in:",
        "inbox",
        "label:",
        "spam",
        "is:unread",
        "after:",
        "2024/1/20",
        "before:",
        "1705000000",
        "from:",
        "bob",
        "money",
        "subject:",
        "larger:",
        "500",
        "has:",
        "userlabels",
        "category",
        ":",
        "AND",
        "rfc822msgid:",
        "<a1@mail.example.com>",
        "newer_than:",
        "2m",
        "\xe5\xa4\xa9",
        "\xff",
        "x:y",
    };
    auto_mailbox *mailbox = known_mailbox();
    for (uint64_t seed = 1; seed <= scaled(15000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        char text[400] = "";
        for (uint64_t i = 1 + tide_rng_below(&rng, 14); i > 0; i--)
            (void)strncat(text, pieces[tide_rng_below(&rng, sizeof pieces / sizeof pieces[0])],
                          sizeof text - strlen(text) - 1);
        (void)find(mailbox, tide_text_of(text));
    }
}

int main(void)
{
    box_mime_start();
    return tests_run(NULL);
}
