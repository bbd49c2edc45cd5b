/* M20: a plain word finds its forms; quotation marks and + are exact; a * is a prefix. */
#include "search_fixture.h"

/* `label` is a number in search_fixture.c; LABELS: none. */
static void mail_made(struct fixture *f, const char *subject, const char *text, size_t label,
                      const char *headers)
{
    struct mail *mail = &f->mails[f->count];
    *mail = (struct mail){.indexed = true};
    (void)snprintf(mail->id, sizeof mail->id, "m%04zu", f->count);
    (void)snprintf(mail->message_id, sizeof mail->message_id, "%zu@id.example", f->count);
    (void)snprintf(mail->from, sizeof mail->from, "billing@reports.example");
    (void)snprintf(mail->to, sizeof mail->to, "me@example.com");
    (void)snprintf(mail->subject, sizeof mail->subject, "%s", subject);
    (void)snprintf(mail->text, sizeof mail->text, "%s", text);
    (void)snprintf(mail->headers, sizeof mail->headers, "%s", headers);
    if (label < LABELS)
        mail->labels[label] = true;
    mail->ms = start_ms + (int64_t)f->count * 60000;
    mail_put(f, mail);
    f->count++;
}

static void mail_labeled(struct fixture *f, const char *subject, const char *text, size_t label)
{
    mail_made(f, subject, text, label, "");
}

static void mail_text(struct fixture *f, const char *subject, const char *text)
{
    mail_labeled(f, subject, text, LABELS);
}

static void begin(struct fixture *f)
{
    archive_open(f, false, 0);
}

static void end(struct fixture *f)
{
    sync_all(f);
    index_all(f);
    OK(tide_archive_close(f->archive, &f->err));
    archive_open(f, true, 0);
}

/* The numbers of what is found, oldest first: "0 2 3". */
static void search_finds(struct fixture *f, struct tide_search search, const char *text,
                         const char *expected)
{
    static struct seen seen;
    tide_query *query = parse(f, text);
    search.query = query;
    search.limit = 50;
    search.oldest_first = true;
    search_all(f, search, &seen);
    char found[400] = "";
    size_t at = 0;
    for (size_t i = 0; i < seen.count; i++)
        at +=
            (size_t)snprintf(found + at, sizeof found - at, i == 0 ? "%zu" : " %zu", seen.list[i]);
    if (strcmp(found, expected) != 0)
        fail_msg("%s finds %s, not %s", text, found, expected);
    /* Ranked, the same messages. */
    const size_t count = seen.count;
    search.oldest_first = false;
    search.ranked = true;
    search_all(f, search, &seen);
    assert_int_equal(seen.count, count);
    tide_query_free(query);
}

static void finds(struct fixture *f, const char *text, const char *expected)
{
    search_finds(f, (struct tide_search){.exact = false}, text, expected);
}

CASE(a_plain_word_finds_its_forms)
{
    begin(f);
    mail_text(f, "one", "your invoice");               /* 0 */
    mail_text(f, "two", "all INVOICES of March");      /* 1 */
    mail_text(f, "Invoicing", "how we do it");         /* 2 */
    mail_text(f, "three", "a voice");                  /* 3 */
    mail_text(f, "four", "a happy party");             /* 4 */
    mail_text(f, "five", "happiness and two parties"); /* 5 */
    mail_text(f, "six", "what we use");                /* 6 */
    mail_text(f, "seven", "we are using it");          /* 7 */
    mail_text(f, "eight", "b\xc3\xa9ton, invoice2");   /* 8 */
    end(f);
    finds(f, "invoice", "0 1 2");
    finds(f, "Invoices", "0 1 2");
    finds(f, "invoiced", "0 1 2");
    finds(f, "subject:invoices", "2");
    finds(f, "-invoice -happy -using", "3 8");
    finds(f, "(invoice OR party)", "0 1 2 4 5");
    finds(f, "invoices march", "1");
    finds(f, "happy", "4 5");
    finds(f, "happiness", "4 5");
    finds(f, "party", "4 5");
    finds(f, "use", "6 7");
    finds(f, "using", "6 7");
    finds(f, "invoice2", "8");
    finds(f, "betons", "8");
    finds(f, "from:report", "");
    finds(f, "from:reports", "0 1 2 3 4 5 6 7 8");
}

CASE(quotation_marks_and_a_plus_are_exact)
{
    begin(f);
    mail_text(f, "one", "your invoice");
    mail_text(f, "two", "all invoices of March");
    mail_text(f, "three", "an invoice of March");
    end(f);
    finds(f, "+invoice", "0 2");
    finds(f, "\"invoice\"", "0 2");
    finds(f, "-+invoice", "1");
    finds(f, "+(invoice march)", "2");
    finds(f, "\"invoices of March\"", "1");
    finds(f, "subject:+two", "1");
}

/* What removes mail searches so: a plain word is as after a '+', and nothing else changes. */
CASE(an_exact_search_finds_no_forms)
{
    const struct tide_search exact = {.exact = true, .strict = true};
    begin(f);
    mail_text(f, "one", "your invoice");
    mail_text(f, "two", "all invoices of March");
    mail_text(f, "Invoices", "an invoice of March");
    end(f);
    search_finds(f, exact, "invoice", "0 2");
    search_finds(f, exact, "INVOICES", "1 2");
    search_finds(f, exact, "-invoice", "1");
    search_finds(f, exact, "subject:invoice", "");
    search_finds(f, exact, "(invoice OR invoicing) march", "2");
    search_finds(f, exact, "invoic*", "0 1 2"); /* as written */
    finds(f, "invoice", "0 1 2");
}

CASE(a_star_is_a_prefix)
{
    begin(f);
    mail_text(f, "one", "your invoice");
    mail_text(f, "two", "all invoices of March");
    mail_text(f, "three", "a voice, in void, \xe6\x97\xa5\xe6\x9c\xac");
    end(f);
    finds(f, "invoic*", "0 1");
    finds(f, "invoices*", "1");
    finds(f, "-invo* vo*", "2");
    finds(f, "in*", "0 1 2");
    finds(f, "subject:tw*", "1");
    finds(f, "from:bill*", "0 1 2");
    finds(f, "to:me@ex*", "0 1 2");
    finds(f, "cc:me*", "");
    finds(f, "\xe6\x97\xa5*", "2");
    finds(f, "\"invoic*\"", "");
    finds(f, "in-vo*", "2");
    finds(f, "all-invoices-of-mar*", "1");
}

/* Another language counts where a message shows that it is written, and its letters say which. */
CASE(other_languages_count_where_they_are_written)
{
    begin(f);
    mail_text(f, "Rechnungen", "Die ist nicht mit dabei");
    mail_text(f, "Rechnung", "kurz");
    mail_text(f, "one", "\xd0\xba\xd0\xbd\xd0\xb8\xd0\xb3\xd0\xb0");                 /* kniga */
    mail_text(f, "two", "\xd0\xba\xd0\xbd\xd0\xb8\xd0\xb3\xd0\xb0\xd0\xbc\xd0\xb8"); /* knigami */
    sync_all(f);
    index_all(f);
    finds(f, "Rechnung", "1"); /* und is missing */
    finds(f, "\xd0\xba\xd0\xbd\xd0\xb8\xd0\xb3\xd0\xb8", "2 3");
    mail_text(f, "ja", "Das ist so, und nicht mit uns");
    end(f);
    finds(f, "Rechnung", "0 1");
    finds(f, "Rechnungen", "0 1");
    finds(f, "+Rechnung", "1");
}

/* A word with more places than are read one by one is skipped, and what follows it is found. */
CASE(a_frequent_word_does_not_hide_the_next)
{
    begin(f);
    for (size_t i = 0; i < 40; i++)
        mail_text(f, "many",
                  "report report report report report report report report report report report "
                  "report report report report report report report report report report report");
    mail_text(f, "last", "reported");
    mail_text(f, "last", "reports");
    end(f);
    finds(f, "reporting -subject:many", "40 41");
}

CASE(around_finds_words_near_each_other)
{
    begin(f);
    mail_text(f, "one", "the holiday is a good time for a vacation");
    mail_text(f, "two", "vacation holiday");
    mail_text(f, "three", "holiday one two three four five six seven eight nine ten vacation");
    mail_text(f, "four", "holidays, vacation");
    end(f);
    finds(f, "holiday AROUND 3 vacation", "1");
    finds(f, "holiday AROUND vacation", "1");
    finds(f, "holiday AROUND 6 vacation", "0 1");
    finds(f, "holiday AROUND 10 vacation", "0 1 2");
    finds(f, "vacation AROUND 10 holiday -subject:two", "0 2");
    finds(f, "\"good time\" AROUND 2 vacation", "0");
    finds(f, "-(holiday AROUND 10 vacation)", "3");
}

CASE(has_finds_labels_and_links)
{
    begin(f);
    mail_text(f, "one", "see https://docs.google.com/document/d/1x and write");
    mail_text(f, "two", "https://youtu.be/abc");
    mail_labeled(f, "three", "no link", 6); /* the user's */
    mail_labeled(f, "four", "no link", 5);  /* a star */
    end(f);
    finds(f, "has:document", "0");
    finds(f, "has:drive", "0");
    finds(f, "has:spreadsheet", "");
    finds(f, "has:youtube", "1");
    finds(f, "-has:drive -has:youtube", "2 3");
    finds(f, "has:userlabels", "2");
    finds(f, "has:nouserlabels", "0 1 3");
    finds(f, "has:nouserlabels link", "3");
}

CASE(headers_are_read_from_the_messages)
{
    begin(f);
    mail_made(f, "one", "hello", LABELS,
              "List-Id: News of the harbour\r\n <news.harbour.example>\r\n"
              "Delivered-To: me+news@example.com\r\n");
    mail_made(f, "two", "hello", LABELS, "LIST-POST: <mailto:talk@harbour.example>\r\n");
    mail_made(f, "three", "List-Id: news.harbour.example", LABELS, "X-List-Id: news\r\n");
    end(f);
    finds(f, "list:news@harbour.example", "0");
    finds(f, "list:harbour", "0 1");
    finds(f, "list:news.harbour.example", "0");
    finds(f, "-list:harbour", "2");
    finds(f, "hello -list:talk", "0");
    finds(f, "list:talk OR three", "1 2");
    finds(f, "-(list:talk OR three)", "0");
    finds(f, "list:harbour list:talk", "1");
    finds(f, "deliveredto:me+news@example.com", "0");
    finds(f, "deliveredto:example.com in:anywhere", "0");
    finds(f, "list:nothing", "");
}

struct guessed {
    char text[200];
};

static void guess_add(const struct tide_spelling *spelling, void *arg)
{
    struct guessed *guessed = arg;
    const size_t used = strlen(guessed->text);
    (void)snprintf(guessed->text + used, sizeof guessed->text - used, "%s%.*s>%.*s",
                   used == 0 ? "" : " ", (int)spelling->word.bytes, spelling->word.data,
                   (int)spelling->better.bytes, spelling->better.data);
}

static void guesses(struct fixture *f, const char *text, const char *expected)
{
    struct guessed guessed = {.text = ""};
    tide_query *query = parse(f, text);
    OK(tide_search_spelling(f->archive, query, NULL, guess_add, &guessed, &f->err));
    if (strcmp(guessed.text, expected) != 0)
        fail_msg("%s: %s, not %s", text, guessed.text, expected);
    tide_query_free(query);
}

CASE(a_word_that_no_message_has_is_compared_with_those_they_have)
{
    begin(f);
    mail_text(f, "one", "an invoice for the harbour");
    mail_text(f, "two", "two invoices, harbour, arbour, invoke");
    end(f);
    guesses(f, "invoyce", "invoyce>invoice");
    guesses(f, "harbor", "harbor>harbour");
    guesses(f, "harbor invoyce -nothere", "harbor>harbour invoyce>invoice");
    guesses(f, "invoicing", ""); /* a form of it is there */
    guesses(f, "harbour", "");
    guesses(f, "xarbour", "");
    guesses(f, "tow", ""); /* too short to guess */
    guesses(f, "\"invoyce harbour\"", "");
    guesses(f, "invoy*", "");
    guesses(f, "from:biling", "biling>billing");
}

/* Marks of expressions are ours alone. */
CASE(control_characters_in_a_query_are_blanks)
{
    begin(f);
    mail_text(f, "one", "a 0 b");
    mail_text(f, "two", "invoice");
    end(f);
    finds(f,
          "\"\x01"
          "0\x02\"",
          "0");
    finds(f,
          "invoices \"\x01"
          "0\x02\"",
          "");
}
