/* The whole corpus, and GMime as a second opinion of it. */
#include "support/heap.h"
#include "support/test.h"
#include "unit/mail/message_fixture.h"

#include <gmime/gmime.h>

/* ---- the corpus ---- */

TEST(the_corpus_is_read_and_twice_the_same)
{
    struct corpus *corpus = corpus_open();
    size_t whole = 0, attachments = 0;
    for (size_t i = 0; corpus != NULL && i < corpus->count; i++) {
        struct parsed one, two;
        parse(corpus->files[i], &one);
        parse(corpus->files[i], &two);
        assert_true(tide_text_equal(one.message.text, two.message.text)); /* MSG1 */
        assert_true(tide_text_equal(one.message.subject, two.message.subject));
        assert_true(tide_text_equal(one.message.to, two.message.to));
        assert_int_equal(one.message.attachments_count, two.message.attachments_count);
        whole += one.message.parsed == TIDE_PARSED_WHOLE;
        attachments += one.message.attachments_count;
        parsed_done(&one);
        parsed_done(&two);
    }
    if (corpus != NULL)
        print_message("corpus: %zu messages, %zu read whole, %zu attachments\n", corpus->count,
                      whole, attachments);
    corpus_close(corpus);
    if (corpus == NULL)
        skip();
}

/* ---- GMime, as a second opinion ---- */

struct opinion {
    tide_text raw;
    const struct tide_message *message;
    size_t parts, agreed; /* parts that are no text, and how many have our bytes */
    const char *name;
};

static bool some_attachment_is(const struct opinion *opinion, const char *bytes, size_t count)
{
    for (size_t i = 0; i < opinion->message->attachments_count; i++) {
        tide_buf out = heap_buf(opinion->raw.bytes);
        (void)tide_attachment_decode(opinion->raw, &opinion->message->attachments[i], &out, NULL);
        bool same = out.bytes == count && (count == 0 || memcmp(out.data, bytes, count) == 0);
        tide_buf_done(&out);
        if (same)
            return true;
    }
    return false;
}

static void compare_part(GMimeObject *parent, GMimeObject *object, gpointer arg)
{
    (void)parent;
    struct opinion *opinion = arg;
    GMimeContentType *type = g_mime_object_get_content_type(object);
    if (!GMIME_IS_PART(object) || GMIME_IS_TEXT_PART(object) ||
        g_mime_content_type_is_type(type, "message", "delivery-status") ||
        g_mime_content_type_is_type(type, "message", "disposition-notification"))
        return; /* text, to us */
    GMimeDataWrapper *content = g_mime_part_get_content(GMIME_PART(object));
    if (content == NULL)
        return;
    GMimeStream *stream = g_mime_stream_mem_new();
    (void)g_mime_data_wrapper_write_to_stream(content, stream);
    GByteArray *bytes = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream));
    opinion->parts++;
    if (some_attachment_is(opinion, (const char *)bytes->data, bytes->len))
        opinion->agreed++;
    else
        print_message("  %s: a part of %u bytes that we have not\n", opinion->name, bytes->len);
    g_object_unref(stream);
}

/* GMime would overflow its stack on these. */
static bool gmime_survives(tide_text raw)
{
    size_t colons = 0;
    for (size_t i = 0; i < raw.bytes && i < 200000; i++)
        colons += raw.data[i] == ':';
    return colons < 4000;
}

struct tally {
    size_t subjects, subjects_agreed, dates, dates_agreed, parts, parts_agreed;
};

static void second_opinion(tide_text raw, const char *name, struct tally *tally)
{
    struct parsed parsed;
    parse(raw, &parsed);
    GMimeStream *stream = g_mime_stream_mem_new_with_buffer(raw.data, raw.bytes);
    GMimeParser *parser = g_mime_parser_new_with_stream(stream);
    if (raw.bytes > 5 && memcmp(raw.data, "From ", 5) == 0)
        g_mime_parser_set_format(parser, GMIME_FORMAT_MBOX);
    GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);
    if (message != NULL) {
        struct opinion opinion = {raw, &parsed.message, 0, 0, name};
        g_mime_message_foreach(message, compare_part, &opinion);
        const char *subject = g_mime_message_get_subject(message);
        GDateTime *date = g_mime_message_get_date(message);
        if (subject != NULL) {
            bool same = tide_text_equal(parsed.message.subject, tide_text_of(subject));
            if (!same)
                print_message("  %s:\n    GMime \"%s\"\n    ours  \"%.*s\"\n", name, subject,
                              (int)parsed.message.subject.bytes, parsed.message.subject.data);
            tally->subjects++;
            tally->subjects_agreed += same;
        }
        tally->dates += date != NULL;
        tally->dates_agreed += date != NULL && parsed.message.has_date &&
                               g_date_time_to_unix(date) * 1000 == parsed.message.date_ms;
        tally->parts += opinion.parts;
        tally->parts_agreed += opinion.agreed;
        g_object_unref(message);
    }
    g_object_unref(parser);
    g_object_unref(stream);
    parsed_done(&parsed);
}

/* The two differ where a message is broken; on the corpus, rarely. */
TEST(gmime_is_of_the_same_opinion)
{
    struct corpus *corpus = corpus_open();
    struct tally tally = {0, 0, 0, 0, 0, 0};
    for (size_t i = 0; corpus != NULL && i < corpus->count; i++) {
        if (gmime_survives(corpus->files[i]))
            second_opinion(corpus->files[i], corpus->names[i], &tally);
    }
    corpus_close(corpus);
    if (corpus == NULL)
        return;
    print_message("GMime agrees on %zu of %zu subjects, %zu of %zu dates, %zu of %zu parts\n",
                  tally.subjects_agreed, tally.subjects, tally.dates_agreed, tally.dates,
                  tally.parts_agreed, tally.parts);
    assert_true(tally.subjects_agreed * 100 >= tally.subjects * 90);
    assert_true(tally.dates_agreed * 100 >= tally.dates * 98);
    assert_true(tally.parts_agreed * 100 >= tally.parts * 95);
}
