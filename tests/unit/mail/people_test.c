/* People whom the user writes to and hears from (mail/people/people.h PPL1 to PPL3; K14).
 *
 * Goal: what is typed is completed by those the user means most often, by any word of name or
 * address; the list follows the archive, also when old mail comes later, and after a crash; and it
 * reads little.  Method: small archives, and forty thousand people made from a seed. */
#include "archive/archive_fixture.h"

#include "mail/people/inside.h"
#include "support/heap.h"
#include "support/wrap.h"

#include <inttypes.h>

enum { DAY_MS = 86400000 };

#define ME "me@example.com"

static tide_people *open_people(struct fixture *f)
{
    static char path[128];
    tide_people *people = NULL;
    (void)snprintf(path, sizeof path, "%s/people.cache", f->dir);
    const struct tide_people_options options = {.path = path, .world = f->world};
    OK(tide_people_open(&options, tide_mem_heap(), &people, &f->err));
    return people;
}

static void put_mail(struct fixture *f, const char *id, int64_t at_ms, const char *label,
                     const char *from, const char *to)
{
    const tide_text labels[] = {tide_text_of(label)};
    struct tide_incoming incoming =
        mail(id, at_ms,
             tide_text_of(textf("From: %s\r\nTo: %s\r\nSubject: x\r\n\r\n%s\r\n", from, to, id)));
    incoming.labels = labels;
    incoming.labels_count = 1;
    put(f, &incoming);
}

static unsigned update(struct fixture *f, tide_people *people, bool all)
{
    bool left = true;
    unsigned calls = 0;
    uint64_t done = 0;
    sync_all(f);
    OK(tide_archive_index(f->archive, 1000000, &done, &f->err));
    while (left) {
        OK(tide_people_update(people, f->archive, all, &left, &f->err));
        calls++;
        assert_true(calls < 100);
    }
    return calls;
}

/* "ann@x.cz bob@x.cz" */
static const char *found(tide_people *people, const char *typed)
{
    static char out[8192];
    const tide_text without = TIDE_TEXT(ME);
    struct tide_person persons[TIDE_PEOPLE_FOUND_MAX];
    tide_error err = {TIDE_OK, 0, ""};
    size_t count = 0, at = 0;
    OK(tide_people_find(people, tide_text_of(typed), &without, 1, TIDE_PEOPLE_FOUND_MAX, persons,
                        &count, &err));
    out[0] = '\0';
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%s", i == 0 ? "" : " ",
                               persons[i].address);
    return out;
}

OPENED(people_are_found_by_any_word_best_first)
{
    tide_people *people = open_people(f);
    assert_string_equal(found(people, "a"), "");
    put_mail(f, "a", year_2019, "INBOX", "Ann Lee <Ann.Lee@x.cz>", ME);
    put_mail(f, "b", year_2019 + 1000, "INBOX", "Bob <bob@work.example>", ME ", carol@x.cz");
    put_mail(f, "c", year_2019 + 2000, "INBOX", "Bob <bob@work.example>", ME);
    put_mail(f, "d", year_2019 + 3000, "SENT", ME, "\"Nov\xc3\xa1k, Jan\" <jan@y.cz>");
    put_mail(f, "e", year_2019 + 4000, "SPAM", "annoying@x.cz", ME);
    put_mail(f, "f", year_2019 + 5000, "DRAFT", ME, "andrew@x.cz");
    put_mail(f, "g", year_2019 + 6000, "INBOX", "news <no-reply@x.cz>", ME);
    (void)update(f, people, false);
    /* Whom the user wrote to, who wrote twice, who wrote once, who only got it too. */
    assert_string_equal(found(people, ""), "jan@y.cz bob@work.example ann.lee@x.cz carol@x.cz");
    assert_string_equal(found(people, "an"), "ann.lee@x.cz");
    assert_string_equal(found(people, "LEE"), "ann.lee@x.cz");
    assert_string_equal(found(people, "lee ann"), "ann.lee@x.cz");
    assert_string_equal(found(people, "ann.l"), "ann.lee@x.cz");
    assert_string_equal(found(people, "novak"), "jan@y.cz");
    assert_string_equal(found(people, "x"), "ann.lee@x.cz carol@x.cz");
    assert_string_equal(found(people, "wor"), "bob@work.example");
    assert_string_equal(found(people, "cz"), ""); /* names nobody */
    assert_string_equal(found(people, "an bob"), "");
    assert_string_equal(found(people, "me"), "");
    assert_string_equal(found(people, "@"), "");
    assert_string_equal(found(people, "no"), "jan@y.cz");
    tide_people_close(people);
}

OPENED(the_newest_name_and_recent_mail_count)
{
    tide_people *people = open_people(f);
    struct tide_person person;
    size_t count = 0;
    put_mail(f, "a", year_2019, "INBOX", "Anna Old <anna@x.cz>", ME);
    put_mail(f, "b", year_2019 + 1000, "INBOX", "Anna Old <anna@x.cz>", ME);
    put_mail(f, "c", year_2019 + INT64_C(400) * DAY_MS, "INBOX", "Annabel <annabel@x.cz>", ME);
    put_mail(f, "d", year_2019 + 2000, "INBOX", "\"anna@x.cz\" <anna@x.cz>", ME);
    put_mail(f, "e", year_2019 + 3000, "INBOX", "Anna New <ANNA@x.cz>", ME);
    (void)update(f, people, false);
    assert_string_equal(found(people, "anna"), "annabel@x.cz anna@x.cz");
    OK(tide_people_find(people, TIDE_TEXT("anna@x"), NULL, 0, 1, &person, &count, &f->err));
    assert_int_equal(count, 1);
    assert_string_equal(found(people, "new"), "anna@x.cz");
    assert_string_equal(found(people, "old"), ""); /* a name of the past */
    tide_people_close(people);
}

static tide_status read_cached(tide_people_take *take, void *taking, void *arg, tide_error *err)
{
    const struct tide_parties heads[] = {
        {.rowid = 1,
         .internal_ms = year_2019,
         .ready = true,
         .sent = true,
         .to = TIDE_TEXT("Cy <cy@z.cz>")},
        {.rowid = 2, .internal_ms = year_2019, .ready = true, .from = TIDE_TEXT("Dee <dee@z.cz>")}};
    (void)err;
    for (int i = 0; i < *(const int *)arg; i++)
        if (!take(&heads[i], taking))
            break;
    return TIDE_OK;
}

/* What a cache says is replaced as a whole, and read only if it has changed; the archive's stay. */
OPENED(what_the_archive_does_not_have_counts_too)
{
    tide_people *people = open_people(f);
    int count = 2;
    put_mail(f, "a", year_2019, "INBOX", "Ann <ann@z.cz>", ME);
    (void)update(f, people, false);
    OK(tide_people_others(people, "7", read_cached, &count, &f->err));
    assert_string_equal(found(people, "z"), "cy@z.cz ann@z.cz dee@z.cz");
    count = 1;
    OK(tide_people_others(people, "7", read_cached, &count, &f->err));
    assert_string_equal(found(people, "dee"), "dee@z.cz");
    OK(tide_people_others(people, "8", read_cached, &count, &f->err));
    assert_string_equal(found(people, "z"), "cy@z.cz ann@z.cz");
    (void)update(f, people, true);
    assert_string_equal(found(people, "z"), "cy@z.cz ann@z.cz");
    tide_people_close(people);
}

/* PPL1: new mail, older mail that comes later, another file in place of a shard. */
OPENED(the_list_follows_the_archive)
{
    tide_people *people = open_people(f);
    for (int i = 0; i < 8; i++)
        put_mail(f, textf("m%d", i), year_2019 + (int64_t)(i + 100) * DAY_MS, "INBOX",
                 textf("p%d@x.cz", i), ME);
    (void)update(f, people, false);
    assert_string_equal(found(people, "p7"), "p7@x.cz");
    put_mail(f, "new", year_2019 + INT64_C(200) * DAY_MS, "INBOX", "fresh@x.cz", ME);
    (void)update(f, people, false);
    assert_string_equal(found(people, "fresh"), "fresh@x.cz");
    /* One older message may wait, unless all is wanted. */
    put_mail(f, "old", year_2019 + DAY_MS, "INBOX", "elder@x.cz", ME);
    (void)update(f, people, false);
    assert_string_equal(found(people, "elder"), "");
    (void)update(f, people, true);
    assert_string_equal(found(people, "elder"), "elder@x.cz");
    /* Many do not wait. */
    for (int i = 0; i < 8; i++)
        put_mail(f, textf("o%d", i), year_2019 + (int64_t)(i + 10) * DAY_MS, "INBOX",
                 textf("q%d@x.cz", i), ME);
    (void)update(f, people, false);
    assert_string_equal(found(people, "q3"), "q3@x.cz");
    /* Read anew, nothing is counted twice. */
    struct tide_gathering once;
    tide_gathering_init(&once, tide_mem_heap());
    const struct tide_parties head = {.internal_ms = year_2019 + INT64_C(13) * DAY_MS,
                                      .from = TIDE_TEXT("q3@x.cz")};
    tide_gathering_add(&once, &head);
    int64_t score = 0, expected = (int64_t)(once.list[0].score * 1e6);
    OK(tide_db_number(&people->db,
                      "SELECT CAST(score * 1e6 AS INTEGER) FROM person WHERE address = 'q3@x.cz'",
                      &score, &f->err));
    assert_int_equal(score, expected);
    tide_gathering_done(&once);
    /* Nothing new: nothing is read. */
    assert_int_equal(update(f, people, true), 1);
    tide_people_close(people);
}

OPENED(a_file_that_cannot_be_read_is_made_anew)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/people.cache", f->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < 2000; i++)
        (void)fputs("this is no database\n", file);
    (void)fclose(file);
    tide_people *people = open_people(f);
    put_mail(f, "a", year_2019, "INBOX", "ann@x.cz", ME);
    (void)update(f, people, false);
    assert_string_equal(found(people, "ann"), "ann@x.cz");
    tide_people_close(people);
    people = open_people(f); /* and is there the next time */
    assert_string_equal(found(people, "ann"), "ann@x.cz");
    tide_people_close(people);
    const struct tide_people_options none = {
        .path = "/nonexistent/people", .world = f->world, .read_only = true};
    assert_int_equal(tide_people_open(&none, tide_mem_heap(), &people, &f->err), TIDE_NOT_FOUND);
}

/* ---- many people ---- */

static const char *const firsts[] = {"Anna", "Bob",  "Carl",  "Dora", "Emil", "Frank", "Greta",
                                     "Hugo", "Ines", "Jan",   "Karl", "Lena", "Mia",   "Nina",
                                     "Otto", "Petr", "Quido", "Rosa", "Sven", "Tom"};

/* Of a few people much, of many little. */
static uint64_t draw_person(tide_rng *rng, uint64_t people)
{
    const uint64_t below = tide_rng_below(rng, people) + 1;
    return tide_rng_below(rng, below);
}

static void fill(tide_people *people, uint64_t messages, uint64_t persons)
{
    tide_rng rng = tide_rng_seeded(5);
    tide_error err = {TIDE_OK, 0, ""};
    enum { SHARDS = 10 };
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        struct tide_gathering gathering;
        tide_gathering_init(&gathering, tide_mem_heap());
        OK(tide_people_begin(people, shard, false, &err));
        for (uint64_t i = 0; i < messages / SHARDS; i++) {
            char from[200], to[200];
            const uint64_t one = draw_person(&rng, persons), two = draw_person(&rng, persons);
            (void)snprintf(from, sizeof from, "%s Family%llu <%s.f%llu@host%llu.example>",
                           firsts[one % 20], (unsigned long long)one, firsts[one % 20],
                           (unsigned long long)one, (unsigned long long)(one % 977));
            (void)snprintf(to, sizeof to, "%s.f%llu@host%llu.example", firsts[two % 20],
                           (unsigned long long)two, (unsigned long long)(two % 977));
            const struct tide_parties head = {.internal_ms = year_2019 + (int64_t)i * 60000,
                                              .sent = tide_rng_below(&rng, 10) == 0,
                                              .from = tide_text_of(from),
                                              .to = tide_text_of(to)};
            tide_gathering_add(&gathering, &head);
            if (gathering.count > TIDE_GATHERING_MAX)
                OK(tide_people_add(people, shard, &gathering, &err));
        }
        assert_false(gathering.failed);
        OK(tide_people_add(people, shard, &gathering, &err));
        OK(tide_people_end(people, shard, "id", messages / SHARDS, 1, &err));
        tide_gathering_done(&gathering);
    }
}

static uint64_t steps;

WRAP(int, sqlite3_step, sqlite3_stmt *stmt)
{
    steps++;
    return __real_sqlite3_step(stmt);
}

/* PPL2. */
OPENED(what_is_typed_reads_a_bounded_number_of_rows_however_many_people_there_are)
{
    enum { WORDS = 3, STEPS_MAX = WORDS * (TIDE_PEOPLE_RANGE_MAX + 2) + TIDE_PEOPLE_WALK_MAX + 1 };
    tide_people *people = open_people(f);
    fill(people, 100000, 40000);
    static const char *const typed[] = {
        "",       "a", "an",       "anna",    "f1",    "f12",      "family1",      "host",
        "host12", "x", "anna fam", "bob f77", "tom h", "qu host9", "rosa f1 host2"};
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
        steps = 0;
        (void)found(people, typed[i]);
        if (steps == 0 || steps > STEPS_MAX)
            fail_msg("\"%s\" reads %" PRIu64 " rows", typed[i], steps);
    }
    assert_true(strlen(found(people, "anna")) > 0);
    tide_people_close(people);
}
