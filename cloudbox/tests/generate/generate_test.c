
#include "cloudbox/generate/generate.h"
#include "cloudbox/generate/plan.h"
#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/mailbox/mime.h"
#include "support/scale.h"
#include "support/test.h"

#include <gmime/gmime.h>
#include <stdio.h>
#include <stdlib.h>

#define ROOM      (1u << 30)
#define NEWEST_MS UINT64_C(1790000000000)

static uint32_t some(uint32_t count)
{
    return (uint32_t)scaled_at_least(count, 50);
}

static struct box_generator generator_of(uint64_t seed, uint32_t count, uint32_t size_bytes)
{
    struct box_generator generator = {
        .seed = seed, .count = count, .size_bytes = size_bytes, .newest_ms = NEWEST_MS};
    snprintf(generator.email, sizeof generator.email, "dana.k@example.com");
    return generator;
}

/* Visits `many` messages spread over the whole mailbox. */
static uint32_t spread(const struct box_generator *generator, uint32_t i, uint32_t many)
{
    return (uint32_t)((uint64_t)i * generator->count / many);
}

static uint64_t fingerprint(uint64_t hash, const void *bytes, size_t count)
{
    const unsigned char *u = bytes;
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ u[i]) * 0x100000001b3u;
    return hash;
}

TEST(the_same_number_gives_the_same_bytes)
{
    tide_auto_buf a = tide_buf_heap(ROOM);
    tide_auto_buf b = tide_buf_heap(ROOM);
    struct box_generator generator = generator_of(11, 20000, 0);
    for (uint32_t i = 0; i < some(3000); i++) {
        uint32_t n = spread(&generator, i, some(3000));
        tide_buf_clear(&a);
        tide_buf_clear(&b);
        box_generate_raw(&generator, n, &a);
        (void)tide_buf_add_text(&b, "before");
        box_generate_raw(&generator, n, &b);
        assert_int_equal(b.bytes, a.bytes + 6); /* it appends */
        assert_memory_equal(a.data, b.data + 6, a.bytes);
        struct box_generated first, second;
        box_generate_plan(&generator, n, &first);
        box_generate_plan(&generator, n, &second);
        assert_int_equal(first.message_id_hash, second.message_id_hash);
        assert_int_equal(first.date_ms, second.date_ms);
    }
}

/* Stored ids of a mirror outlive a build: what a seed gives may not change by
 * accident.  After an intended change put the new number here. */
TEST(a_seed_gives_the_same_mailbox_in_every_version)
{
    struct box_generator generator = generator_of(7, 1000, 0);
    uint64_t hash = 0xcbf29ce484222325u;
    tide_auto_buf raw = tide_buf_heap(ROOM);
    for (uint32_t n = 0; n < 1000; n++) {
        struct box_generated plan;
        box_generate_plan(&generator, n, &plan);
        hash = fingerprint(hash, &plan.date_ms, sizeof plan.date_ms);
        hash = fingerprint(hash, plan.labels, plan.labels_count * sizeof plan.labels[0]);
        if (plan.bytes > 100000)
            continue;
        tide_buf_clear(&raw);
        box_generate_raw(&generator, n, &raw);
        hash = fingerprint(hash, raw.data, raw.bytes);
    }
    if (hash != UINT64_C(0xa22f7e3c7fbba114))
        print_error("the fingerprint is now 0x%016llx\n", (unsigned long long)hash);
    assert_true(hash == UINT64_C(0xa22f7e3c7fbba114));
}

TEST(messages_are_exactly_as_large_as_planned)
{
    static const uint64_t seeds[] = {1, 7, UINT64_MAX};
    static const uint32_t counts[] = {1, 2, 63, 64, 1000, 1000000};
    tide_auto_buf raw = tide_buf_heap(ROOM);
    for (size_t s = 0; s < 3; s++) {
        for (size_t c = 0; c < 6; c++) {
            struct box_generator generator = generator_of(seeds[s], counts[c], 0);
            uint32_t many = counts[c] < some(2000) ? counts[c] : some(2000);
            for (uint32_t i = 0; i < many; i++) {
                struct box_generated plan;
                uint32_t n = spread(&generator, i, many);
                box_generate_plan(&generator, n, &plan);
                tide_buf_clear(&raw);
                box_generate_raw(&generator, n, &raw);
                assert_int_equal(raw.bytes, plan.bytes);
                assert_in_range(plan.bytes, 1000, 26000000);
            }
        }
    }
}

TEST(a_wanted_size_is_kept_to_the_byte)
{
    tide_auto_buf raw = tide_buf_heap(ROOM);
    for (uint32_t i = 0; i < some(12000); i++) {
        /* Every size from 1,000 to 5,000 and some larger ones. */
        uint32_t size = i < 4000 ? 1000 + i : 1000 + (i * 7919u) % 60000u;
        struct box_generator generator = generator_of(i % 5, 100000, size);
        if (i % 3 == 0) { /* the longest address there can be */
            memset(generator.email, 'x', sizeof generator.email - 1);
            memcpy(generator.email + 240, "@example.com", 13);
            generator.email[252] = '\0';
        }
        uint32_t n = (i * 104729u) % 100000u;
        tide_buf_clear(&raw);
        box_generate_raw(&generator, n, &raw);
        assert_int_equal(raw.bytes, size);
    }
    struct box_generator generator = generator_of(3, 10, 5); /* less than any can be */
    struct box_generated plan;
    box_generate_plan(&generator, 9, &plan);
    assert_int_equal(plan.bytes, 1000);
}

TEST(dates_ascend_and_end_at_the_newest)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        struct box_generator generator = generator_of(seed, some(200000), 0);
        uint64_t before = 0;
        struct box_generated plan;
        for (uint32_t n = 0; n < generator.count; n++) {
            box_generate_plan(&generator, n, &plan);
            assert_true(plan.date_ms >= before);
            assert_true(plan.date_ms <= NEWEST_MS);
            before = plan.date_ms;
        }
        assert_true(NEWEST_MS - before < UINT64_C(3) * 86400000);
        box_generate_plan(&generator, 0, &plan);
        assert_true(NEWEST_MS - plan.date_ms > UINT64_C(11) * 365 * 86400000);
    }
}

TEST(threads_begin_with_their_root_and_stay_short)
{
    struct box_generator generator = generator_of(5, some(100000), 0);
    uint16_t *sizes = calloc(generator.count, sizeof *sizes);
    assert_non_null(sizes);
    uint32_t longest = 0, replies = 0, twins = 0;
    for (uint32_t n = 0; n < generator.count; n++) {
        struct box_generated plan, root, twin;
        box_generate_plan(&generator, n, &plan);
        assert_true(plan.root <= n);
        box_generate_plan(&generator, plan.root, &root);
        assert_int_equal(root.root, plan.root);
        assert_true(plan.twin <= n);
        if (plan.twin != n) {
            box_generate_plan(&generator, plan.twin, &twin);
            assert_int_equal(twin.twin, plan.twin);
            assert_int_equal(twin.bytes, plan.bytes);
            assert_int_equal(twin.message_id_hash, plan.message_id_hash);
            assert_int_equal(twin.root, plan.root);
            twins++;
        }
        replies += plan.root != n;
        sizes[plan.root]++;
        if (sizes[plan.root] > longest)
            longest = sizes[plan.root];
    }
    assert_in_range(longest, 25, 40);
    assert_in_range(replies * 100 / generator.count, 10, 40);
    assert_in_range(twins * 1000 / generator.count, 5, 15);
    free(sizes);
}

TEST(twins_have_the_same_bytes)
{
    struct box_generator generator = generator_of(9, 100000, 0);
    tide_auto_buf a = tide_buf_heap(ROOM);
    tide_auto_buf b = tide_buf_heap(ROOM);
    uint32_t seen = 0;
    for (uint32_t n = 0; n < some(20000); n++) {
        struct box_generated plan;
        box_generate_plan(&generator, n, &plan);
        if (plan.twin == n)
            continue;
        tide_buf_clear(&a);
        tide_buf_clear(&b);
        box_generate_raw(&generator, n, &a);
        box_generate_raw(&generator, plan.twin, &b);
        assert_int_equal(a.bytes, b.bytes);
        assert_memory_equal(a.data, b.data, a.bytes);
        seen++;
    }
    assert_true(seen > 0);
}

TEST(lines_end_as_they_should)
{
    struct box_generator generator = generator_of(13, 100000, 0);
    tide_auto_buf raw = tide_buf_heap(ROOM);
    for (uint32_t i = 0; i < some(8000); i++) {
        struct box_traits traits;
        uint32_t n = spread(&generator, i, some(8000));
        box_traits(&generator, box_twin(&generator, n), &traits);
        if (traits.broken || traits.bytes > 1000000)
            continue;
        tide_buf_clear(&raw);
        box_generate_raw(&generator, n, &raw);
        size_t column = 0;
        for (size_t at = 0; at < raw.bytes; at++) {
            bool feed = raw.data[at] == '\n';
            assert_true(raw.data[at] != '\0');
            if (feed)
                assert_int_equal(raw.data[at - 1], '\r');
            if (raw.data[at] == '\r')
                assert_int_equal(raw.data[at + 1], '\n');
            column = feed ? 0 : column + 1;
            assert_true(column <= 998);
        }
        assert_int_equal(raw.data[raw.bytes - 1], '\n');
    }
}

TEST(headers_say_what_the_plan_says)
{
    struct box_generator generator = generator_of(17, 100000, 0);
    tide_auto_buf raw = tide_buf_heap(ROOM);
    tide_auto_arena arena = tide_arena_heap(1 << 28);
    uint32_t replies = 0;
    for (uint32_t i = 0; i < some(6000); i++) {
        uint32_t n = spread(&generator, i, some(6000));
        struct box_generated plan, root;
        struct box_traits traits;
        box_generate_plan(&generator, n, &plan);
        box_traits(&generator, plan.twin, &traits);
        if (plan.twin != n || traits.broken || plan.bytes > 1000000)
            continue;
        tide_buf_clear(&raw);
        tide_arena_reset(&arena);
        box_generate_raw(&generator, n, &raw);
        struct box_view view;
        box_mime_headers(tide_buf_text(&raw), &arena, &view);
        assert_true(view.has_date);
        assert_int_equal(view.date_ms, plan.date_ms / 1000 * 1000);
        if (plan.message_id_hash == 0)
            assert_int_equal(view.message_id.bytes, 0);
        else
            assert_true(box_message_id_hash(view.message_id) == plan.message_id_hash);
        assert_true(view.subject.bytes > 0);
        bool mine = memmem(view.from.data, view.from.bytes, "dana.k@example.com", 18) != NULL;
        bool sent = false;
        for (uint32_t k = 0; k < plan.labels_count; k++)
            sent = sent || plan.labels[k] == BOX_LABEL_SENT;
        assert_int_equal(mine, sent);
        if (plan.root == n) {
            assert_int_equal(view.references.bytes, 0);
            continue;
        }
        /* A reply names its root first, so that others thread it as we do. */
        box_generate_plan(&generator, plan.root, &root);
        const char *end = memchr(view.references.data, '>', view.references.bytes);
        assert_non_null(end);
        tide_text first = {view.references.data + 1, (size_t)(end - view.references.data) - 1};
        assert_true(box_message_id_hash(first) == root.message_id_hash || plan.bytes < 2000);
        replies++;
    }
    assert_true(replies > 0);
}

static void count_leaf(GMimeObject *parent, GMimeObject *part, gpointer arg)
{
    (void)parent;
    if (!GMIME_IS_MULTIPART(part)) /* a message inside has one part here */
        ++*(uint32_t *)arg;
}

static uint32_t leaves(const json_t *part)
{
    const json_t *parts = json_object_get(part, "parts");
    if (parts == NULL)
        return 1;
    uint32_t count = 0;
    for (size_t i = 0; i < json_array_size(parts); i++)
        count += leaves(json_array_get(parts, i));
    return count;
}

TEST(every_whole_message_parses_the_same_elsewhere)
{
    struct box_generator generator = generator_of(19, 100000, 0);
    tide_auto_buf raw = tide_buf_heap(ROOM);
    for (uint32_t i = 0; i < some(3000); i++) {
        uint32_t n = spread(&generator, i, some(3000));
        struct box_traits traits;
        box_traits(&generator, box_twin(&generator, n), &traits);
        if (traits.broken || traits.bytes > 1000000)
            continue;
        tide_buf_clear(&raw);
        box_generate_raw(&generator, n, &raw);
        GMimeStream *stream = g_mime_stream_mem_new_with_buffer(raw.data, raw.bytes);
        GMimeParser *parser = g_mime_parser_new_with_stream(stream);
        GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);
        assert_non_null(message);
        uint32_t theirs = 0;
        GMimeObject *root = g_mime_message_get_mime_part(message);
        if (GMIME_IS_MULTIPART(root))
            g_mime_multipart_foreach(GMIME_MULTIPART(root), count_leaf, &theirs);
        else
            theirs = 1;
        json_auto_t *ours = box_mime_full(tide_buf_text(&raw));
        assert_int_equal(leaves(ours), theirs);
        g_object_unref(message);
        g_object_unref(parser);
        g_object_unref(stream);
    }
}

TEST(texts_arrive_in_their_charset_and_snippets_agree)
{
    struct box_generator generator = generator_of(23, 100000, 0);
    tide_auto_buf raw = tide_buf_heap(ROOM);
    tide_auto_buf told = tide_buf_heap(ROOM);
    tide_auto_buf seen = tide_buf_heap(ROOM);
    tide_auto_arena arena = tide_arena_heap(1 << 28);
    for (uint32_t i = 0; i < some(6000); i++) {
        uint32_t n = spread(&generator, i, some(6000));
        struct box_traits traits;
        box_traits(&generator, box_twin(&generator, n), &traits);
        if (traits.broken || traits.bytes > 1000000)
            continue;
        tide_buf_clear(&raw);
        tide_buf_clear(&told);
        tide_buf_clear(&seen);
        tide_arena_reset(&arena);
        box_generate_raw(&generator, n, &raw);
        box_generate_snippet(&generator, n, &told);
        box_mime_snippet(tide_buf_text(&raw), &seen);
        assert_string_equal(tide_buf_cstr(&told), tide_buf_cstr(&seen));
        assert_true(told.bytes > 0);
        struct box_view view;
        box_mime_view(tide_buf_text(&raw), &arena, &view);
        /* No letter was lost on the way through any charset. */
        assert_null(memmem(view.text.data, view.text.bytes, "\xef\xbf\xbd", 3));
        assert_null(memmem(view.subject.data, view.subject.bytes, "\xef\xbf\xbd", 3));
        assert_null(memmem(view.subject.data, view.subject.bytes, "=?", 2));
        if (traits.file)
            assert_true(view.has_attachment || traits.bytes < 6000);
    }
}

TEST(snippets_of_tiny_messages_agree_too)
{
    tide_auto_buf raw = tide_buf_heap(ROOM);
    tide_auto_buf told = tide_buf_heap(ROOM);
    tide_auto_buf seen = tide_buf_heap(ROOM);
    for (uint32_t i = 0; i < some(4000); i++) {
        struct box_generator generator = generator_of(i % 3, 100000, 1000 + i % 3000);
        uint32_t n = (i * 7919u) % 100000u;
        struct box_traits traits;
        box_traits(&generator, box_twin(&generator, n), &traits);
        if (traits.broken)
            continue;
        tide_buf_clear(&raw);
        tide_buf_clear(&told);
        tide_buf_clear(&seen);
        box_generate_raw(&generator, n, &raw);
        box_generate_snippet(&generator, n, &told);
        box_mime_snippet(tide_buf_text(&raw), &seen);
        assert_string_equal(tide_buf_cstr(&told), tide_buf_cstr(&seen));
    }
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

TEST(the_mailbox_looks_like_one)
{
    enum { COUNT = 100000 };
    struct box_generator generator = generator_of(7, COUNT, 0);
    uint32_t *sizes = calloc(COUNT, sizeof *sizes);
    assert_non_null(sizes);
    uint32_t labels[2000] = {0}, files = 0, nameless = 0, broken = 0, langs[BOX_LANGS] = {0};
    double sum = 0;
    for (uint32_t n = 0; n < COUNT; n++) {
        struct box_generated plan;
        struct box_traits traits;
        box_generate_plan(&generator, n, &plan);
        box_traits(&generator, plan.twin, &traits);
        sizes[n] = plan.bytes;
        sum += plan.bytes;
        files += traits.file;
        nameless += plan.message_id_hash == 0;
        broken += traits.broken;
        langs[traits.lang]++;
        for (uint32_t k = 0; k < plan.labels_count; k++) {
            assert_true(k == 0 || plan.labels[k] > plan.labels[k - 1]);
            assert_true(plan.labels[k] < BOX_LABELS_SYSTEM ||
                        plan.labels[k] - 1000u < BOX_GENERATED_USER_LABELS);
            labels[plan.labels[k]]++;
        }
    }
    qsort(sizes, COUNT, sizeof *sizes, compare_u32);
    print_message("sizes: mean %.0f, median %u, 95 %% %u, largest %u\n", sum / COUNT,
                  sizes[COUNT / 2], sizes[COUNT / 100 * 95], sizes[COUNT - 1]);
    assert_in_range(sum / COUNT, 12000, 30000);
    assert_in_range(sizes[COUNT / 2], 3000, 6000);
    assert_in_range(sizes[COUNT - 1], 2000000, 25000000);
    assert_in_range(files, COUNT / 20, COUNT / 6);
    assert_in_range(nameless, COUNT / 400, COUNT / 100);
    assert_in_range(broken, COUNT / 800, COUNT / 100);
    for (uint32_t i = 0; i < BOX_LANGS; i++)
        assert_true(langs[i] > COUNT / 60);
    assert_in_range(labels[BOX_LABEL_INBOX], COUNT / 20, COUNT / 3);
    assert_in_range(labels[BOX_LABEL_UNREAD], COUNT / 50, COUNT / 5);
    assert_in_range(labels[BOX_LABEL_SENT], COUNT / 25, COUNT / 4);
    assert_in_range(labels[BOX_LABEL_SPAM], COUNT / 200, COUNT / 50);
    assert_in_range(labels[BOX_LABEL_TRASH], COUNT / 200, COUNT / 50);
    assert_in_range(labels[BOX_LABEL_STARRED], COUNT / 200, COUNT / 25);
    assert_true(labels[BOX_LABEL_CATEGORY_SOCIAL] > COUNT / 50);
    assert_true(labels[BOX_LABEL_CATEGORY_FORUMS] > COUNT / 50);
    for (uint32_t i = 0; i < BOX_GENERATED_USER_LABELS; i++)
        assert_true(labels[1000 + i] > 0);
    free(sizes);
}

TEST(recent_mail_is_in_the_inbox)
{
    struct box_generator generator = generator_of(3, 5000, 0);
    uint32_t recent = 0, old = 0;
    for (uint32_t i = 0; i < 100; i++) {
        struct box_generated plan;
        box_generate_plan(&generator, generator.count - 1 - i, &plan);
        recent += plan.labels[0] == BOX_LABEL_INBOX;
        box_generate_plan(&generator, i, &plan);
        old += plan.labels[0] == BOX_LABEL_INBOX;
    }
    assert_true(recent > 60);
    assert_true(old < 40);
}

TEST(user_labels_have_names_of_their_own)
{
    for (uint32_t i = 0; i < BOX_GENERATED_USER_LABELS; i++) {
        assert_true(strlen(box_generated_label(i)) > 0);
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(box_generated_label(i), box_generated_label(k));
    }
}

static int compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

TEST(message_id_hashes_tell_ids_apart)
{
    assert_true(box_message_id_hash(TIDE_TEXT("a@b")) == box_message_id_hash(TIDE_TEXT("a@b")));
    assert_true(box_message_id_hash(TIDE_TEXT("a@b")) != box_message_id_hash(TIDE_TEXT("a@c")));
    assert_true(box_message_id_hash(TIDE_TEXT("")) != 0);
    struct box_generator generator = generator_of(2, 100000, 0);
    uint32_t count = 0, many = some(100000);
    uint64_t *hashes = calloc(many, sizeof *hashes);
    assert_non_null(hashes);
    for (uint32_t n = 0; n < many; n++) {
        struct box_generated plan;
        box_generate_plan(&generator, n, &plan);
        if (plan.twin == n && plan.message_id_hash != 0)
            hashes[count++] = plan.message_id_hash;
    }
    qsort(hashes, count, sizeof *hashes, compare_u64);
    for (uint32_t i = 1; i < count; i++)
        assert_true(hashes[i] != hashes[i - 1]);
    free(hashes);
}

static void check_text(const char *text, box_lang lang)
{
    assert_true(strlen(text) < BOX_TEXT_BYTES_MAX);
    for (const char *p = text; *p != '\0'; p++) {
        assert_null(strchr("<>&\"", *p));
        if (lang == BOX_EN)
            assert_true((unsigned char)*p < 0x80);
        if (*p == '{')
            assert_true(p[1] != '\0' && p[2] == '}');
    }
}

TEST(texts_can_stand_in_any_part)
{
    for (uint32_t lang = 0; lang < BOX_LANGS; lang++) {
        const struct box_tongue *tongue = box_tongue((box_lang)lang);
        for (size_t i = 0; i < tongue->sentences_count; i++)
            check_text(tongue->sentences[i], (box_lang)lang);
        for (size_t i = 0; i < tongue->print_count; i++)
            check_text(tongue->print[i], (box_lang)lang);
        for (size_t i = 0; i < tongue->articles_count; i++)
            check_text(tongue->articles[i], (box_lang)lang);
        for (size_t kind = 0; kind < 3; kind++) {
            for (size_t i = 0; i < tongue->topics_count[kind]; i++) {
                const struct box_topic *topic = &tongue->topics[kind][i];
                check_text(topic->subject, (box_lang)lang);
                for (size_t k = 0; k < BOX_TOPIC_PARAGRAPHS && topic->opening[k] != NULL; k++)
                    check_text(topic->opening[k], (box_lang)lang);
                for (size_t k = 0; k < BOX_TOPIC_REPLIES; k++)
                    check_text(topic->replies[k], (box_lang)lang);
            }
        }
    }
    size_t count;
    const struct box_notice *notices = box_notices(&count);
    for (size_t i = 0; i < count; i++) {
        check_text(notices[i].subject, notices[i].lang);
        for (size_t k = 0; k < BOX_NOTICE_PARAGRAPHS && notices[i].paragraphs[k] != NULL; k++)
            check_text(notices[i].paragraphs[k], notices[i].lang);
    }
}

int main(void)
{
    box_mime_start();
    return tests_run(NULL);
}
