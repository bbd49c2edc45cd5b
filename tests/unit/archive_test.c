/* Goal: what is put into an archive is there, byte for byte, where and as the
 * documented schema says, whatever was put.  Method: real files in a temporary
 * directory, read back through the archive and through plain SQLite; bytes made
 * from a seed; the corpus of nasty mail where it is found. */
#include "mail/archive.h"
#include "mail/message.h"
#include "mail/shard.h"

#include "base/rng.h"

#include <dirent.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define OK(call) assert_int_equal((call), TIDE_OK)

static const int64_t year_2019 = 1546300800000;
static const int64_t year_2020 = 1577836800000;

static uint64_t scaled(uint64_t count)
{
    const char *percent = getenv("TIDE_TEST_SCALE");
    uint64_t scale = 100;
    if (percent != NULL && !tide_text_to_u64(tide_text_of(percent), &scale))
        scale = 100;
    uint64_t result = count * scale / 100;
    return result < 1 ? 1 : result;
}

/* ---- a fixture ------------------------------------------------------------------------ */

struct fixture {
    tide_world *world;
    char dir[64];
    struct tide_archive_options options;
    tide_archive *archive;
    tide_error err;
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/tide-archive-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    OK(tide_world_real_new(tide_mem_heap(), &f->world, &f->err));
    f->options = (struct tide_archive_options){
        .dir = f->dir, .account = "me@example.com", .world = f->world, .index_later = true};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    DIR *dir = opendir(f->dir);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[400];
        (void)snprintf(path, sizeof path, "%s/%s", f->dir, entry->d_name);
        (void)unlink(path);
    }
    (void)closedir(dir);
    (void)rmdir(f->dir);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

static void open_archive(struct fixture *f)
{
    tide_status rc = tide_archive_open(&f->options, tide_mem_heap(), &f->archive, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

static void close_archive(struct fixture *f)
{
    OK(tide_archive_close(f->archive, &f->err));
    f->archive = NULL;
}

static struct tide_incoming mail(const char *id, int64_t internal_ms, tide_text raw)
{
    return (struct tide_incoming){
        .gmail_id = tide_text_of(id),
        .thread_id = TIDE_TEXT("t1"),
        .history_id = TIDE_TEXT("100"),
        .internal_ms = internal_ms,
        .raw = raw,
    };
}

static void put(struct fixture *f, const struct tide_incoming *incoming)
{
    tide_status rc = tide_archive_put(f->archive, incoming, NULL, NULL, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

/* Puts something small that covers everything before it. */
static void sync_all(struct fixture *f)
{
    uint64_t ticket = 0;
    OK(tide_archive_gone(f->archive, TIDE_TEXT("nobody"), 1, &ticket, &f->err));
    tide_status rc = tide_archive_sync(f->archive, ticket, NULL, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

static void put_text(struct fixture *f, const char *id, int64_t internal_ms, const char *raw)
{
    struct tide_incoming incoming = mail(id, internal_ms, tide_text_of(raw));
    put(f, &incoming);
}

static void assert_raw(struct fixture *f, const char *id, tide_text raw)
{
    struct tide_stored stored;
    tide_buf out;
    tide_buf_init(&out, tide_mem_heap(), TIDE_MESSAGE_BYTES_MAX);
    tide_status rc = tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err);
    if (rc == TIDE_OK)
        rc = tide_archive_raw(f->archive, &stored, &out, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
    assert_int_equal(stored.bytes, raw.bytes);
    assert_int_equal(out.bytes, raw.bytes);
    assert_true(tide_text_equal(tide_buf_text(&out), raw));
    tide_buf_done(&out);
}

/* One number from a shard, through SQLite alone. */
static int64_t ask(struct fixture *f, const char *shard, const char *sql)
{
    char path[200];
    sqlite3 *handle = NULL;
    sqlite3_stmt *stmt = NULL;
    (void)snprintf(path, sizeof path, "%s/%s.db", f->dir, shard);
    assert_int_equal(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(stmt, 0);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    return number;
}

static void assert_labels(struct fixture *f, const char *id, const char *wanted)
{
    struct tide_stored stored;
    tide_buf labels;
    tide_buf_init(&labels, tide_mem_heap(), 10000);
    OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
    OK(tide_archive_labels_of(f->archive, &stored, &labels, &f->err));
    assert_string_equal(tide_buf_cstr(&labels), wanted);
    tide_buf_done(&labels);
}

static size_t damages;
static struct tide_damage last_damage;

static void count_damage(const struct tide_damage *damage, void *arg)
{
    (void)arg;
    damages++;
    last_damage = *damage;
}

static void assert_sound(struct fixture *f, uint64_t messages)
{
    uint64_t checked = 0;
    damages = 0;
    OK(tide_archive_verify(f->archive, 0, count_damage, NULL, &checked, &f->err));
    if (damages != 0)
        print_error("%s: %s\n", last_damage.gmail_id, last_damage.what);
    assert_int_equal(damages, 0);
    assert_int_equal(checked, messages);
}

/* ---- bytes ------------------------------------------------------------------------------ */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Base64 as a mailer writes it, character by character: nothing shared with the
 * code that is tested. */
static void add_base64(tide_buf *out, const uint8_t *bytes, size_t count, size_t line,
                       const char *eol)
{
    size_t in_line = 0;
    for (size_t i = 0; i < count; i += 3) {
        uint32_t group = (uint32_t)bytes[i] << 16;
        if (i + 1 < count)
            group |= (uint32_t)bytes[i + 1] << 8;
        if (i + 2 < count)
            group |= bytes[i + 2];
        for (unsigned j = 0; j < 4; j++) {
            char character = alphabet[group >> (18 - 6 * j) & 63];
            if ((j == 2 && i + 1 >= count) || (j == 3 && i + 2 >= count))
                character = '=';
            if (line != 0 && in_line == line) {
                OK(tide_buf_add_text(out, eol));
                in_line = 0;
            }
            OK(tide_buf_add(out, &character, 1));
            in_line++;
        }
    }
}

static void random_bytes(tide_rng *rng, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)tide_rng_next(rng);
}

/* Something like mail, whole or broken, with base64 of every make in it. */
static void make_mail(tide_rng *rng, tide_buf *out)
{
    static const char *const eols[] = {"\r\n", "\n"};
    const char *eol = eols[tide_rng_below(rng, 2)];
    OK(tide_buf_print(out, "From: a@example.com%sSubject: %" PRIu64 "%s%s", eol, tide_rng_next(rng),
                      eol, eol));
    size_t parts = (size_t)tide_rng_below(rng, 5);
    for (size_t part = 0; part < parts; part++) {
        static const size_t lines[] = {76, 76, 72, 64, 60, 57, 998, 77, 1, 16, 0};
        size_t line = lines[tide_rng_below(rng, sizeof lines / sizeof lines[0])];
        size_t count = (size_t)tide_rng_below(rng, tide_rng_chance(rng, 1, 4) ? 40000 : 8000);
        uint8_t *bytes = malloc(count + 1);
        random_bytes(rng, bytes, count);
        OK(tide_buf_print(out, "--b%sContent-Transfer-Encoding: base64%s%s", eol, eol, eol));
        size_t begin = out->bytes;
        add_base64(out, bytes, count, line, tide_rng_chance(rng, 1, 10) ? eols[0] : eol);
        free(bytes);
        /* At times one character of it is something else. */
        if (tide_rng_chance(rng, 1, 3) && out->bytes > begin)
            out->data[begin + tide_rng_below(rng, out->bytes - begin)] =
                "=\r\n A!-"[tide_rng_below(rng, 7)];
        if (!tide_rng_chance(rng, 1, 5))
            OK(tide_buf_add_text(out, eol));
    }
    if (tide_rng_chance(rng, 1, 2))
        OK(tide_buf_print(out, "--b--%s", eol));
}

struct given {
    tide_buf *pieces;
    size_t count;
};

static tide_status give(void *arg, size_t index, tide_text *piece_out, tide_error *err)
{
    (void)err;
    struct given *given = arg;
    assert_true(index < given->count);
    *piece_out = tide_buf_text(&given->pieces[index]);
    return TIDE_OK;
}

static tide_status gather(void *arg, const char *bytes, size_t count)
{
    return tide_buf_add(arg, bytes, count);
}

/* B1, over many kinds of bytes; and that cutting does happen. */
static void what_is_cut_is_put_back_exactly(void **state)
{
    (void)state;
    static struct tide_cut cuts[TIDE_CUTS_MAX];
    static tide_buf pieces[TIDE_CUTS_MAX];
    size_t cut_in_all = 0;
    for (uint64_t seed = 1; seed <= scaled(3000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        tide_buf raw;
        tide_buf left;
        tide_buf joined;
        tide_buf_init(&raw, tide_mem_heap(), 10 << 20);
        tide_buf_init(&left, tide_mem_heap(), 10 << 20);
        tide_buf_init(&joined, tide_mem_heap(), 10 << 20);
        make_mail(&rng, &raw);
        size_t count = tide_content_cuts(tide_buf_text(&raw), cuts);
        size_t done = 0;
        for (size_t i = 0; i < count; i++) {
            OK(tide_buf_add(&left, raw.data + done, cuts[i].begin - done));
            assert_int_equal(left.bytes, cuts[i].at);
            done = cuts[i].end;
            tide_buf_init(&pieces[i], tide_mem_heap(), 10 << 20);
            OK(tide_cut_decode(tide_buf_text(&raw), &cuts[i], &pieces[i], NULL));
            assert_true(pieces[i].bytes * 4 / 3 <= cuts[i].end - cuts[i].begin);
        }
        OK(tide_buf_add(&left, raw.data + done, raw.bytes - done));
        struct given given = {pieces, count};
        OK(tide_content_join(tide_buf_text(&left), cuts, count, give, &given, gather, &joined,
                             NULL));
        if (!tide_text_equal(tide_buf_text(&joined), tide_buf_text(&raw)))
            fail_msg("seed %" PRIu64, seed);
        for (size_t i = 0; i < count; i++)
            tide_buf_done(&pieces[i]);
        cut_in_all += count;
        tide_buf_done(&joined);
        tide_buf_done(&left);
        tide_buf_done(&raw);
    }
    assert_true(cut_in_all > scaled(1000));
}

/* Every length of line that a mailer can choose without breaking a group of four,
 * every rest, and both ends of lines. */
static void base64_of_every_shape_is_cut(void **state)
{
    (void)state;
    static struct tide_cut cuts[TIDE_CUTS_MAX];
    static uint8_t bytes[5000];
    tide_rng rng = tide_rng_seeded(1);
    random_bytes(&rng, bytes, sizeof bytes);
    for (size_t line = TIDE_CUT_LINE_BYTES_MIN; line < 400; line += 4) {
        for (size_t count = 4000; count < 4006; count++) {
            tide_buf raw;
            tide_buf piece;
            tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
            tide_buf_init(&piece, tide_mem_heap(), 1 << 20);
            OK(tide_buf_add_text(&raw, "Subject: x\r\n\r\n"));
            size_t begin = raw.bytes;
            add_base64(&raw, bytes, count, line, count % 2 == 0 ? "\r\n" : "\n");
            size_t end = raw.bytes;
            if (line % 8 == 0)
                OK(tide_buf_add_text(&raw, "\r\n--x--\r\n"));
            if (tide_content_cuts(tide_buf_text(&raw), cuts) != 1)
                fail_msg("lines of %zu, %zu bytes", line, count);
            assert_int_equal(cuts[0].begin, begin);
            assert_int_equal(cuts[0].end, end);
            assert_int_equal(cuts[0].line, line);
            OK(tide_cut_decode(tide_buf_text(&raw), &cuts[0], &piece, NULL));
            assert_int_equal(piece.bytes, count);
            assert_memory_equal(piece.data, bytes, count);
            tide_buf_done(&piece);
            tide_buf_done(&raw);
        }
    }
}

/* B2 and B3: also what was tampered with ends in a status. */
static void what_is_packed_is_unpacked_or_refused(void **state)
{
    (void)state;
    tide_packer *packer = NULL;
    OK(tide_packer_new(tide_mem_heap(), 3, &packer, NULL));
    for (uint64_t seed = 1; seed <= scaled(3000); seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        size_t count = (size_t)tide_rng_below(&rng, seed % 100 == 0 ? 3 << 20 : 20000);
        char *bytes = malloc(count + 1);
        uint64_t letters = 1 + tide_rng_below(&rng, 256);
        for (size_t i = 0; i < count; i++)
            bytes[i] = (char)tide_rng_below(&rng, letters);
        struct tide_packed packed;
        tide_buf out;
        tide_buf_init(&out, tide_mem_heap(), 8 << 20);
        OK(tide_content_pack(packer, (tide_text){bytes, count}, &packed, NULL));
        assert_true(packed.body.bytes <= count);
        OK(tide_content_unpack(packer, packed.codec, packed.body, count, &out, NULL));
        assert_true(tide_text_equal(tide_buf_text(&out), (tide_text){bytes, count}));
        if (packed.codec == TIDE_CODEC_ZSTD) {
            char *broken = malloc(packed.body.bytes);
            memcpy(broken, packed.body.data, packed.body.bytes);
            broken[tide_rng_below(&rng, packed.body.bytes)] ^= (char)(1 << tide_rng_below(&rng, 8));
            tide_buf_clear(&out);
            tide_status rc = tide_content_unpack(
                packer, TIDE_CODEC_ZSTD, (tide_text){broken, packed.body.bytes}, count, &out, NULL);
            assert_true(rc == TIDE_OK || rc == TIDE_CORRUPT);
            assert_true(out.bytes <= count);
            assert_int_equal(
                tide_content_unpack(packer, TIDE_CODEC_ZSTD, packed.body, count - 1, &out, NULL),
                TIDE_CORRUPT);
            free(broken);
        }
        assert_int_equal(tide_content_unpack(packer, 7, packed.body, count, &out, NULL),
                         TIDE_CORRUPT);
        tide_buf_done(&out);
        free(bytes);
    }
    tide_packer_free(packer);
}

/* ---- storing ------------------------------------------------------------------------------ */

static void a_stored_message_is_read_back_byte_for_byte(void **state)
{
    struct fixture *f = *state;
    const tide_text raw = TIDE_TEXT("Subject: hello\r\n\r\nbody \0 with everything \xff\r\n");
    struct tide_incoming incoming = mail("17f0", year_2019 + 12345, raw);
    uint64_t ticket = 0;
    open_archive(f);
    OK(tide_archive_put(f->archive, &incoming, NULL, &ticket, &f->err));
    assert_int_equal(ticket, 1);
    OK(tide_archive_sync(f->archive, ticket, NULL, &f->err));
    assert_raw(f, "17f0", raw);
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, TIDE_TEXT("17f0"), &stored, &f->err));
    assert_string_equal(stored.gmail_id, "17f0");
    assert_string_equal(stored.thread_id, "t1");
    assert_string_equal(stored.history_id, "100");
    assert_int_equal(stored.internal_ms, year_2019 + 12345);
    assert_int_equal(stored.rowid, 12345 / TIDE_SHARD_UNIT_MS);
    assert_false(stored.indexed);
    assert_false(stored.gone);
    assert_int_equal(tide_archive_find(f->archive, TIDE_TEXT("17f1"), &stored, &f->err),
                     TIDE_NOT_FOUND);
    close_archive(f);
    f->options.read_only = true;
    open_archive(f);
    assert_raw(f, "17f0", raw);
    assert_sound(f, 1);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "PRAGMA application_id"), 0x74696465);
    assert_int_equal(ask(f, "2019", "PRAGMA user_version"), 1);
    assert_int_equal(ask(f, "2019", "SELECT messages FROM shard"), 1);
}

static void years_go_into_their_own_shards(void **state)
{
    struct fixture *f = *state;
    open_archive(f);
    put_text(f, "a", year_2020 - 1, "last of 2019");
    put_text(f, "b", year_2020, "first of 2020");
    put_text(f, "c", -1, "last of 1969");
    put_text(f, "d", 951782400000, "29 February 2000");
    sync_all(f);
    assert_int_equal(tide_archive_shards(f->archive), 4);
    static const char *const names[] = {"1969", "2000", "2019", "2020"};
    for (size_t i = 0; i < 4; i++) {
        struct tide_shard_state shard;
        OK(tide_archive_shard(f->archive, i, &shard, &f->err));
        assert_string_equal(shard.name, names[i]);
        assert_int_equal(shard.messages, 1);
        assert_int_equal(strlen(shard.id), 32);
        assert_int_equal(shard.oldest_ms, shard.newest_ms);
    }
    assert_raw(f, "c", TIDE_TEXT("last of 1969"));
    assert_sound(f, 4);
    for (int32_t year = 1; year < 9999; year++) {
        int64_t start_ms = tide_shard_year_ms(year);
        assert_int_equal(tide_shard_year(start_ms), year);
        assert_int_equal(tide_shard_year(start_ms - 1), year - 1);
    }
    close_archive(f);
}

static void what_cannot_be_stored_is_refused(void **state)
{
    struct fixture *f = *state;
    char long_id[100];
    memset(long_id, 'x', sizeof long_id);
    long_id[sizeof long_id - 1] = '\0';
    open_archive(f);
    struct tide_incoming incoming = mail("", year_2019, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    incoming = mail(long_id, year_2019, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    incoming = mail("a", INT64_MAX, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    incoming = mail("a", INT64_MIN, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(f->archive, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    incoming = mail("a", year_2019, TIDE_TEXT(""));
    put(f, &incoming); /* an empty message is a message */
    sync_all(f);
    assert_raw(f, "a", TIDE_TEXT(""));
    close_archive(f);
}

static void putting_twice_is_harmless(void **state)
{
    struct fixture *f = *state;
    open_archive(f);
    put_text(f, "a", year_2019, "one");
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    put_text(f, "a", year_2019, "one");
    /* A server that changes its mind about the date changes nothing here (A3). */
    put_text(f, "a", year_2020, "one");
    put_text(f, "a", year_2019 + 1, "one");
    sync_all(f);
    assert_int_equal(tide_archive_shards(f->archive), 1);
    assert_sound(f, 1);
    close_archive(f);
    open_archive(f); /* and so it is for the next process */
    put_text(f, "a", year_2020, "one");
    put_text(f, "b", year_2020, "two");
    put_text(f, "b", year_2019, "two");
    sync_all(f);
    assert_sound(f, 2);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message"), 1);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM content"), 1);
    assert_int_equal(ask(f, "2020", "SELECT count(*) FROM message"), 1);
}

/* Ids in no order at all, so that every shard may have each of them. */
static void an_id_is_stored_once_over_all_shards(void **state)
{
    struct fixture *f = *state;
    enum { IDS = 200 };
    int64_t first_ms[IDS] = {0};
    tide_rng rng = tide_rng_seeded(11);
    uint64_t distinct = 0;
    open_archive(f);
    for (uint64_t i = 0; i < scaled(3000); i++) {
        size_t which = (size_t)tide_rng_below(&rng, IDS);
        int64_t ms = year_2019 + (int64_t)tide_rng_below(&rng, 8) * 31557600000;
        char id[32];
        char raw[32];
        (void)snprintf(id, sizeof id, "%zx", which * 0x9e3779b9u % 0xfffff);
        (void)snprintf(raw, sizeof raw, "message %zu", which);
        put_text(f, id, ms, raw);
        if (first_ms[which] == 0) {
            first_ms[which] = ms;
            distinct++;
        }
    }
    sync_all(f);
    for (size_t which = 0; which < IDS; which++) {
        char id[32];
        struct tide_stored stored;
        (void)snprintf(id, sizeof id, "%zx", which * 0x9e3779b9u % 0xfffff);
        if (first_ms[which] == 0)
            continue;
        OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
        assert_int_equal(stored.internal_ms, first_ms[which]);
    }
    assert_sound(f, distinct);
    close_archive(f);
}

static void other_bytes_replace_and_the_earlier_ones_stay(void **state)
{
    struct fixture *f = *state;
    open_archive(f);
    put_text(f, "a", year_2019, "cut off");
    sync_all(f);
    put_text(f, "a", year_2019, "cut off no longer");
    sync_all(f);
    assert_raw(f, "a", TIDE_TEXT("cut off no longer"));
    assert_sound(f, 2); /* both are checked */
    close_archive(f);
    assert_int_equal(ask(f, "2019",
                         "SELECT count(*) FROM earlier e JOIN content c"
                         " ON c.id = e.content AND c.bytes = 7"),
                     1);
    assert_int_equal(ask(f, "2019", "SELECT raw_bytes FROM shard"), 17);
}

static void equal_bytes_are_stored_once(void **state)
{
    struct fixture *f = *state;
    open_archive(f);
    for (int i = 0; i < 50; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id%d", i);
        put_text(f, id, year_2019 + i, "the same newsletter");
    }
    sync_all(f);
    assert_sound(f, 50);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message"), 50);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM content"), 1);
}

static void an_attachment_is_stored_once_for_all_messages(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[100000];
    tide_rng rng = tide_rng_seeded(3);
    random_bytes(&rng, bytes, sizeof bytes);
    tide_buf raw[20];
    open_archive(f);
    for (size_t i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id%zu", i);
        tide_buf_init(&raw[i], tide_mem_heap(), 1 << 20);
        OK(tide_buf_print(&raw[i], "Subject: %zu\r\n\r\n", i));
        /* The same file, sent by different mailers. */
        add_base64(&raw[i], bytes, sizeof bytes, i % 2 == 0 ? 76 : 72, i % 3 == 0 ? "\n" : "\r\n");
        OK(tide_buf_add_text(&raw[i], "\r\n--end--\r\n"));
        struct tide_incoming incoming = mail(id, year_2019, tide_buf_text(&raw[i]));
        put(f, &incoming);
    }
    sync_all(f);
    for (size_t i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id%zu", i);
        assert_raw(f, id, tide_buf_text(&raw[i]));
        tide_buf_done(&raw[i]);
    }
    assert_sound(f, 20);
    OK(tide_archive_checkpoint(f->archive, NULL, &f->err));
    struct tide_shard_state shard;
    OK(tide_archive_shard(f->archive, 0, &shard, &f->err));
    assert_true(shard.bytes < 8 * sizeof bytes);
    assert_true(shard.raw_bytes > 20 * sizeof bytes);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM piece"), 1);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM cut"), 20);
}

static void a_buffer_may_be_handed_over(void **state)
{
    struct fixture *f = *state;
    tide_buf raw;
    tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
    OK(tide_buf_add_text(&raw, "Subject: mine\n\n"));
    open_archive(f);
    struct tide_incoming incoming = mail("a", year_2019, TIDE_TEXT_NONE);
    incoming.take = &raw;
    put(f, &incoming);
    assert_int_equal(raw.bytes, 0);
    OK(tide_buf_add_text(&raw, "something else"));
    sync_all(f);
    assert_raw(f, "a", TIDE_TEXT("Subject: mine\n\n"));
    tide_buf_done(&raw);
    close_archive(f);
}

/* ---- order --------------------------------------------------------------------------------- */

struct walked {
    struct fixture *f;
    uint64_t count;
    int64_t last_ms;
    int64_t from_ms, to_ms;
    uint64_t stop_after;
    bool read_too;
    bool unordered;
};

static bool walk_on(const struct tide_stored *stored, void *arg)
{
    struct walked *walked = arg;
    assert_true(walked->unordered || stored->internal_ms >= walked->last_ms);
    assert_true(stored->internal_ms >= walked->from_ms);
    assert_true(stored->internal_ms < walked->to_ms);
    walked->last_ms = stored->internal_ms;
    if (walked->read_too) {
        tide_buf raw;
        tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
        OK(tide_archive_raw(walked->f->archive, stored, &raw, &walked->f->err));
        assert_int_equal(raw.bytes, stored->bytes);
        tide_buf_done(&raw);
    }
    return ++walked->count != walked->stop_after;
}

static uint64_t walk(struct fixture *f, int64_t from_ms, int64_t to_ms, uint64_t stop_after)
{
    struct walked walked = {.f = f,
                            .last_ms = INT64_MIN,
                            .from_ms = from_ms,
                            .to_ms = to_ms,
                            .stop_after = stop_after,
                            .read_too = stop_after == 0};
    OK(tide_archive_walk(f->archive, from_ms, to_ms, walk_on, &walked, &f->err));
    return walked.count;
}

/* A4 with late arrivals, several shards, and parts that overlap in time. */
static void a_walk_is_in_order_of_time_over_all_shards(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 2000 };
    static int64_t times[COUNT];
    tide_rng rng = tide_rng_seeded(7);
    f->options.shard_bytes_max = 600000; /* some parts a year */
    open_archive(f);
    for (size_t i = 0; i < COUNT; i++) {
        char id[16];
        char raw[300];
        times[i] = year_2019 + (int64_t)tide_rng_below(&rng, (uint64_t)3 * 31557600000);
        if (tide_rng_chance(&rng, 1, 3) && i > 0)
            times[i] = times[tide_rng_below(&rng, i)];
        (void)snprintf(id, sizeof id, "%zx", i);
        for (size_t j = 0; j < sizeof raw - 1; j++)
            raw[j] = (char)(33 + tide_rng_below(&rng, 90));
        raw[sizeof raw - 1] = '\0';
        put_text(f, id, times[i], raw);
    }
    sync_all(f);
    assert_true(tide_archive_shards(f->archive) > 5);
    assert_int_equal(walk(f, INT64_MIN, INT64_MAX, 0), COUNT);
    assert_int_equal(walk(f, INT64_MIN, INT64_MAX, 100), 100);
    for (int i = 0; i < 50; i++) {
        int64_t from_ms = times[tide_rng_below(&rng, COUNT)];
        int64_t to_ms = times[tide_rng_below(&rng, COUNT)];
        uint64_t wanted = 0;
        for (size_t j = 0; j < COUNT; j++)
            wanted += times[j] >= from_ms && times[j] < to_ms;
        assert_int_equal(walk(f, from_ms, to_ms, UINT64_MAX), wanted);
    }
    assert_int_equal(walk(f, year_2019 - 5, year_2019 - 1, 0), 0);
    assert_sound(f, COUNT);
    close_archive(f);
    f->options.read_only = true;
    open_archive(f);
    assert_int_equal(walk(f, INT64_MIN, INT64_MAX, 0), COUNT);
    close_archive(f);
}

/* A4 where it is hardest: an import in which nothing has a date of its own. */
static void ten_thousand_messages_of_one_date_are_told_from_their_neighbours(void **state)
{
    struct fixture *f = *state;
    enum { CROWD = 10000, NEIGHBOURS = 100 };
    const int64_t date_ms = year_2019 + 10 * 1000 * 1000 + 7; /* not where an id begins */
    open_archive(f);
    for (int i = 0; i < CROWD; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id%d", i);
        put_text(f, id, date_ms, "without a date");
        if (i == CROWD / 2) { /* a writer that has forgotten how far it was */
            sync_all(f);
            close_archive(f);
            open_archive(f);
        }
    }
    /* On either side, among those that had to stand behind their date, and far behind. */
    for (int i = -NEIGHBOURS; i < NEIGHBOURS; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "n%d", i + NEIGHBOURS);
        put_text(f, id, date_ms + (i < 0 ? i : i + 1) * 20 * 1000, "with a date");
    }
    put_text(f, "next", date_ms + 1, "in the same eighth of a second");
    sync_all(f);
    const uint64_t all = CROWD + 2 * NEIGHBOURS + 1;
    assert_int_equal(tide_archive_shards(f->archive), 1);
    assert_sound(f, all);
    struct tide_shard_state shard;
    OK(tide_archive_shard(f->archive, 0, &shard, &f->err));
    assert_int_equal(shard.oldest_ms, date_ms - NEIGHBOURS * 20 * 1000);
    assert_int_equal(shard.newest_ms, date_ms + NEIGHBOURS * 20 * 1000);
    struct walked walked = {.f = f, .unordered = true, .from_ms = INT64_MIN, .to_ms = INT64_MAX};
    OK(tide_archive_walk(f->archive, INT64_MIN, INT64_MAX, walk_on, &walked, &f->err));
    assert_int_equal(walked.count, all);
    const struct {
        int64_t from_ms, to_ms;
        uint64_t count;
    } spans[] = {
        {date_ms, date_ms + 1, CROWD},
        {date_ms + 1, date_ms + 2, 1},
        {date_ms + 2, year_2020, NEIGHBOURS},
        {year_2019, date_ms, NEIGHBOURS},
        {date_ms + 20 * 1000, date_ms + 60 * 1000, 2},
        {date_ms - 20 * 1000, date_ms + 2, CROWD + 2},
    };
    for (size_t i = 0; i < sizeof spans / sizeof spans[0]; i++) {
        walked = (struct walked){
            .f = f, .unordered = true, .from_ms = spans[i].from_ms, .to_ms = spans[i].to_ms};
        OK(tide_archive_walk(f->archive, spans[i].from_ms, spans[i].to_ms, walk_on, &walked,
                             &f->err));
        assert_int_equal(walked.count, spans[i].count);
    }
    close_archive(f);
    /* Nobody stands further behind than the crowd is long, and the row says how far. */
    assert_in_range(ask(f, "2019", "SELECT late FROM shard"), CROWD, CROWD + 2 * NEIGHBOURS);
    assert_int_equal(ask(f, "2019",
                         "SELECT max(message.id - (internal_ms - start_ms) / 125) - max("
                         "late) FROM message, shard"),
                     0);
    assert_int_equal(ask(f, "2019",
                         "SELECT count(*) FROM shard, (SELECT internal_ms, max("
                         "internal_ms) OVER (ORDER BY id) AS newest FROM message)"
                         " WHERE newest > internal_ms + (late + 1) * 125"),
                     0);
}

/* ---- labels --------------------------------------------------------------------------------- */

static void change(struct fixture *f, const char *id, const char *label, bool added,
                   const char *history)
{
    struct tide_label_change one = {.gmail_id = tide_text_of(id),
                                    .label = tide_text_of(label),
                                    .added = added,
                                    .at_ms = 77,
                                    .history_id = tide_text_of(history)};
    OK(tide_archive_labels(f->archive, &one, 1, NULL, &f->err));
}

static void labels_follow_the_server_and_their_history_stays(void **state)
{
    struct fixture *f = *state;
    const tide_text labels[] = {TIDE_TEXT("INBOX"), TIDE_TEXT("UNREAD")};
    struct tide_incoming incoming = mail("a", year_2019, TIDE_TEXT("x"));
    incoming.labels = labels;
    incoming.labels_count = 2;
    open_archive(f);
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_7"), TIDE_TEXT("Trips"),
                               TIDE_TEXT("user"), NULL, &f->err));
    put(f, &incoming);
    sync_all(f);
    assert_labels(f, "a", "INBOX\nUNREAD\n");
    change(f, "a", "UNREAD", false, "101");
    change(f, "a", "Label_7", true, "102");
    change(f, "unknown", "Label_7", true, "103");
    sync_all(f);
    assert_labels(f, "a", "INBOX\nLabel_7\n");
    /* The same history again, and one from before the message was stored. */
    change(f, "a", "UNREAD", false, "101");
    change(f, "a", "Label_7", true, "102");
    change(f, "a", "INBOX", false, "99");
    change(f, "a", "Label_7", false, "1000");
    change(f, "a", "Label_7", true, "102");
    sync_all(f);
    assert_labels(f, "a", "INBOX\n");
    put(f, &incoming); /* stored at 100: older than what we know */
    sync_all(f);
    assert_labels(f, "a", "INBOX\n");
    incoming.history_id = TIDE_TEXT("2000");
    incoming.labels_count = 0;
    put(f, &incoming);
    sync_all(f);
    assert_labels(f, "a", "");
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM label_change"), 5);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM label WHERE name = 'Trips'"), 1);
    open_archive(f);
    OK(tide_archive_label_name(f->archive, TIDE_TEXT("Label_7"), TIDE_TEXT("Journeys"),
                               TIDE_TEXT("user"), NULL, &f->err));
    sync_all(f);
    close_archive(f);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM label WHERE name = 'Journeys'"), 1);
}

static void what_is_gone_from_the_server_stays_here(void **state)
{
    struct fixture *f = *state;
    struct tide_stored stored;
    open_archive(f);
    put_text(f, "a", year_2019, "x");
    OK(tide_archive_gone(f->archive, TIDE_TEXT("a"), 5, NULL, &f->err));
    OK(tide_archive_gone(f->archive, TIDE_TEXT("a"), 6, NULL, &f->err));
    sync_all(f);
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    assert_true(stored.gone);
    assert_raw(f, "a", TIDE_TEXT("x"));
    assert_int_equal(ask(f, "2019", "SELECT gone_ms FROM message"), 5);
    put_text(f, "a", year_2019, "x"); /* it was there after all */
    sync_all(f);
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    assert_false(stored.gone);
    close_archive(f);
}

static void what_is_missing_is_named(void **state)
{
    struct fixture *f = *state;
    const tide_text ids[] = {TIDE_TEXT("a"), TIDE_TEXT("b"), TIDE_TEXT("c"), TIDE_TEXT("d")};
    bool missing[4] = {false, false, false, false};
    open_archive(f);
    OK(tide_archive_missing(f->archive, ids, 4, missing, &f->err));
    for (int i = 0; i < 4; i++)
        assert_true(missing[i]);
    put_text(f, "b", year_2019, "x");
    put_text(f, "d", year_2020, "x");
    sync_all(f);
    OK(tide_archive_missing(f->archive, ids, 4, missing, &f->err));
    assert_true(missing[0]);
    assert_false(missing[1]);
    assert_true(missing[2]);
    assert_false(missing[3]);
    close_archive(f);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void a_reader_sees_what_is_committed_and_new_shards(void **state)
{
    struct fixture *f = *state;
    open_archive(f);
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    tide_archive *writer = f->archive;
    f->options.read_only = true;
    open_archive(f);
    tide_archive *reader = f->archive;
    assert_raw(f, "a", TIDE_TEXT("one"));
    f->archive = writer;
    put_text(f, "b", year_2019 + 5, "two");
    put_text(f, "c", year_2020, "three");
    sync_all(f);
    f->archive = reader;
    assert_raw(f, "b", TIDE_TEXT("two"));
    assert_raw(f, "c", TIDE_TEXT("three"));
    assert_int_equal(tide_archive_shards(reader), 2);
    assert_int_equal(walk(f, INT64_MIN, INT64_MAX, 0), 3);
    struct tide_incoming incoming = mail("x", year_2019, TIDE_TEXT("x"));
    assert_int_equal(tide_archive_put(reader, &incoming, NULL, NULL, &f->err), TIDE_INVALID);
    assert_int_equal(tide_archive_sync(reader, 0, NULL, &f->err), TIDE_INVALID);
    close_archive(f);
    f->archive = writer;
    close_archive(f);
    /* A shard that was taken away is no longer counted. */
    char path[200];
    (void)snprintf(path, sizeof path, "%s/2019.db", f->dir);
    assert_int_equal(unlink(path), 0);
    open_archive(f);
    assert_int_equal(tide_archive_shards(f->archive), 1);
    close_archive(f);
}

static void generations_grow_and_tell_an_older_copy(void **state)
{
    struct fixture *f = *state;
    struct tide_shard_state before;
    struct tide_shard_state after;
    open_archive(f);
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    OK(tide_archive_shard(f->archive, 0, &before, &f->err));
    put_text(f, "b", year_2019 + 9, "two");
    sync_all(f);
    OK(tide_archive_shard(f->archive, 0, &after, &f->err));
    assert_string_equal(before.id, after.id);
    assert_true(after.generation > before.generation);
    assert_int_equal(after.messages, 2);
    assert_int_equal(after.raw_bytes, 6);
    assert_int_equal(after.newest_ms, year_2019 + 9);
    assert_int_equal(tide_archive_shard(f->archive, 1, &after, &f->err), TIDE_NOT_FOUND);
    close_archive(f);
}

static void a_second_writer_and_a_strangers_files_are_refused(void **state)
{
    struct fixture *f = *state;
    tide_archive *other = NULL;
    open_archive(f);
    put_text(f, "a", year_2019, "one");
    sync_all(f);
    assert_int_equal(tide_archive_open(&f->options, tide_mem_heap(), &other, &f->err), TIDE_BUSY);
    close_archive(f);
    struct tide_archive_options options = f->options;
    options.account = "you@example.com";
    assert_int_equal(tide_archive_open(&options, tide_mem_heap(), &other, &f->err), TIDE_INVALID);
    assert_non_null(strstr(f->err.text, "me@example.com"));
    options.read_only = true;
    assert_int_equal(tide_archive_open(&options, tide_mem_heap(), &other, &f->err), TIDE_INVALID);
    char path[200];
    sqlite3 *handle = NULL;
    (void)snprintf(path, sizeof path, "%s/2019.db", f->dir);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(sqlite3_exec(handle, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    assert_int_equal(tide_archive_open(&f->options, tide_mem_heap(), &other, &f->err), TIDE_NEWER);
    options = f->options;
    options.dir = "/nowhere/at/all";
    options.read_only = true;
    assert_int_equal(tide_archive_open(&options, tide_mem_heap(), &other, &f->err), TIDE_NOT_FOUND);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void damage_is_reported_by_name(void **state)
{
    struct fixture *f = *state;
    char path[200];
    sqlite3 *handle = NULL;
    open_archive(f);
    put_text(f, "good", year_2019, "a message that stays well");
    put_text(f, "bad", year_2019 + 1, "a message that will be changed behind our back");
    put_text(f, "worse", year_2019 + 2, "a message whose bytes vanish");
    sync_all(f);
    close_archive(f);
    (void)snprintf(path, sizeof path, "%s/2019.db", f->dir);
    assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(handle,
                     "UPDATE content SET body = CAST('a message that will be changed BEHIND our"
                     " back' AS BLOB), codec = 0 WHERE id ="
                     " (SELECT content FROM message WHERE gmail_id = 'bad');"
                     "UPDATE message SET content = 99 WHERE gmail_id = 'worse';"
                     "UPDATE shard SET messages = 4",
                     NULL, NULL, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    open_archive(f);
    struct tide_stored stored;
    tide_buf raw;
    tide_buf_init(&raw, tide_mem_heap(), 1000);
    OK(tide_archive_find(f->archive, TIDE_TEXT("bad"), &stored, &f->err));
    assert_int_equal(tide_archive_raw(f->archive, &stored, &raw, &f->err), TIDE_CORRUPT);
    assert_non_null(strstr(f->err.text, "bad"));
    assert_non_null(strstr(f->err.text, "2019"));
    assert_int_equal(raw.bytes, 0);
    tide_buf_done(&raw);
    uint64_t checked = 0;
    damages = 0;
    OK(tide_archive_verify(f->archive, 0, count_damage, NULL, &checked, &f->err));
    assert_int_equal(damages, 3); /* both messages, and the count */
    assert_int_equal(checked, 1);
    assert_raw(f, "good", TIDE_TEXT("a message that stays well"));
    OK(tide_archive_verify(f->archive, 2, count_damage, NULL, &checked, &f->err));
    close_archive(f);
}

/* ---- the index -------------------------------------------------------------------------------- */

/* A reader of headers for these tests: "Subject:", "From:", "To:", an empty line,
 * text.  It refuses what begins with "unreadable". */
static tide_text header(tide_text raw, const char *name)
{
    const char *at = raw.bytes == 0 ? NULL : memmem(raw.data, raw.bytes, name, strlen(name));
    if (at == NULL)
        return TIDE_TEXT_NONE;
    at += strlen(name);
    size_t left = (size_t)(raw.data + raw.bytes - at);
    const char *end = memchr(at, '\n', left);
    return (tide_text){at, end == NULL ? left : (size_t)(end - at)};
}

static uint64_t parsed_count;

static tide_status parse_simply(tide_text raw, tide_arena *arena, struct tide_message *message_out)
{
    parsed_count++;
    *message_out = (struct tide_message){.parsed = TIDE_PARSED_WHOLE};
    if (raw.bytes >= 10 && memcmp(raw.data, "unreadable", 10) == 0) {
        message_out->parsed = TIDE_PARSED_NOT;
        message_out->problem = "it says so itself";
        return TIDE_OK;
    }
    if (raw.bytes >= 6 && memcmp(raw.data, "partly", 6) == 0) {
        message_out->parsed = TIDE_PARSED_PARTLY;
        message_out->problem = "too many parts";
    }
    message_out->subject = header(raw, "Subject: ");
    message_out->from = header(raw, "From: ");
    message_out->to = header(raw, "To: ");
    message_out->cc = header(raw, "Cc: ");
    message_out->message_id = header(raw, "Message-ID: ");
    const char *body = raw.bytes == 0 ? NULL : memmem(raw.data, raw.bytes, "\n\n", 2);
    if (body != NULL)
        message_out->text = (tide_text){body + 2, (size_t)(raw.data + raw.bytes - body) - 2};
    tide_text file = header(raw, "File: ");
    if (file.bytes > 0) {
        struct tide_attachment *attachment = tide_arena_take(arena, sizeof *attachment);
        if (attachment == NULL)
            return TIDE_NO_MEMORY;
        attachment->name = file;
        message_out->attachments = attachment;
        message_out->attachments_count = 1;
    }
    return TIDE_OK;
}

static tide_status fold_nothing(tide_text text, tide_buf *out)
{
    return tide_buf_add(out, text.data, text.bytes);
}

static const struct tide_indexer simple_indexer = {parse_simply, fold_nothing};

static const char letter[] = "Subject: Rivers of Europe\nFrom: Anna <anna@example.com>\n"
                             "To: Bert\nCc: Carla\nMessage-ID: m1@x\nFile: danube map.pdf\n\n"
                             "The Danube flows through ten countries.\n";

static void what_is_indexed_is_found_by_its_words(void **state)
{
    struct fixture *f = *state;
    uint64_t done = 0;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    put_text(f, "a", year_2019 + 7, letter);
    put_text(f, "b", year_2019 + 8, "Subject: nothing\n\nDanube\n");
    put_text(f, "c", year_2020, "unreadable");
    put_text(f, "d", year_2020, "partly\nSubject: half\n\n");
    sync_all(f);
    parsed_count = 0;
    OK(tide_archive_index(f->archive, 1, &done, &f->err));
    assert_int_equal(done, 1);
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(done, 3);
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(done, 0);
    assert_int_equal(parsed_count, 4);
    struct tide_stored stored;
    OK(tide_archive_find(f->archive, TIDE_TEXT("a"), &stored, &f->err));
    assert_true(stored.indexed);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM words WHERE words MATCH 'danube'"), 2);
    assert_int_equal(ask(f, "2019",
                         "SELECT m.internal_ms FROM words JOIN message m ON m.id = words.rowid"
                         " WHERE words MATCH 'text:\"flows through ten\" AND from:anna AND"
                         " to:carla AND files:map AND subject:rivers'"),
                     year_2019 + 7);
    assert_int_equal(ask(f, "2019",
                         "SELECT count(*) FROM words WHERE words MATCH"
                         " '\"through flows\"'"),
                     0);
    assert_int_equal(ask(f, "2019", "SELECT files FROM head WHERE message_id = 'm1@x'"), 1);
    /* Without an id it gets one from its bytes (M8). */
    assert_int_equal(ask(f, "2019",
                         "SELECT count(*) FROM head h JOIN message m ON m.id = h.id"
                         " JOIN content c ON c.id = m.content WHERE h.message_id ="
                         " 'sha256:' || lower(hex(c.hash))"),
                     1);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM mail WHERE subject LIKE 'Rivers%'"), 1);
    assert_int_equal(ask(f, "2020", "SELECT count(*) FROM message WHERE mark = 3"), 1);
    OK(tide_archive_find(f->archive, TIDE_TEXT("c"), &stored, &f->err));
    assert_false(stored.indexed);
    assert_raw(f, "c", TIDE_TEXT("unreadable"));
    assert_sound(f, 4);
    close_archive(f);
}

static void note_problem(const struct tide_stored *stored, const char *problem, void *arg)
{
    tide_buf *notes = arg;
    OK(tide_buf_print(notes, "%s: %s\n", stored->gmail_id, problem));
}

static void what_could_not_be_read_is_named_and_tried_again_on_request(void **state)
{
    struct fixture *f = *state;
    uint64_t done = 0;
    tide_buf notes;
    tide_buf_init(&notes, tide_mem_heap(), 1000);
    f->options.indexer = &simple_indexer;
    open_archive(f);
    put_text(f, "a", year_2019, "unreadable 1");
    put_text(f, "b", year_2019 + 1, "partly\n\n");
    put_text(f, "c", year_2019 + 2, "unreadable 2");
    put_text(f, "d", year_2019 + 3, "whole\n\n");
    put_text(f, "e", year_2020, "unreadable 3");
    sync_all(f);
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    OK(tide_archive_unreadable(f->archive, note_problem, &notes, &f->err));
    assert_string_equal(tide_buf_cstr(&notes),
                        "e: it says so itself\na: it says so itself\nb: too many parts\n"
                        "c: it says so itself\n");
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(done, 0);
    OK(tide_archive_index_again(f->archive, NULL, &f->err));
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(done, 3);
    tide_buf_done(&notes);
    close_archive(f);
}

/* The thread inside does it by itself. */
static void new_mail_is_indexed_without_being_asked(void **state)
{
    struct fixture *f = *state;
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    for (int i = 0; i < 500; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id%d", i);
        put_text(f, id, year_2019 + i * 1000, letter);
    }
    sync_all(f);
    /* Whatever it has left when we ask, the rest is done when we are answered. */
    uint64_t done = 0;
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message WHERE mark = 2"), 500);
    assert_int_equal(ask(f, "2019", "SELECT count(*) FROM words WHERE words MATCH 'danube'"), 500);
    close_archive(f);
    open_archive(f);
    close_archive(f);
}

/* What came shortly before is found by the next one who searches. */
static void closing_indexes_what_came(void **state)
{
    struct fixture *f = *state;
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    for (int i = 0; i < 3; i++) {
        char id[16];
        open_archive(f);
        for (int j = 0; j < 50; j++) {
            (void)snprintf(id, sizeof id, "id%d-%d", i, j);
            put_text(f, id, year_2019 + i * 1000, letter);
        }
        sync_all(f);
        close_archive(f);
        assert_int_equal(ask(f, "2019", "SELECT count(*) FROM message WHERE mark = 2"),
                         50 * (i + 1));
    }
}

/* Its bytes come from memory or from its shard: more than memory keeps, larger than
 * what it keeps, and two shards with the same numbers. */
static void every_message_is_indexed_with_its_own_words(void **state)
{
    struct fixture *f = *state;
    enum { COUNT = 2500, PADDING = 8000 };
    static char raw[2 << 20];
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    for (int i = 0; i < COUNT; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "id%d", i);
        int bytes = snprintf(raw, sizeof raw, "Subject: own%d\n\ndanube text%d ", i, i);
        const int end = bytes + (i % 500 == 7 ? 1500000 : PADDING);
        memset(raw + bytes, '.', (size_t)(end - bytes));
        raw[end] = '\0';
        put_text(f, id, (i % 2 == 0 ? year_2019 : year_2020) + i * 1000, raw);
    }
    sync_all(f);
    uint64_t done = 0;
    OK(tide_archive_index(f->archive, UINT64_MAX, &done, &f->err));
    close_archive(f);
    for (int year = 2019; year <= 2020; year++) {
        char name[8];
        (void)snprintf(name, sizeof name, "%d", year);
        assert_int_equal(ask(f, name, "SELECT count(*) FROM words WHERE words MATCH 'danube'"),
                         COUNT / 2);
        assert_int_equal(ask(f, name, "SELECT count(*) FROM message WHERE mark = 2"), COUNT / 2);
        for (int i = year - 2019; i < COUNT; i += 2) {
            char sql[200];
            (void)snprintf(sql, sizeof sql,
                           "SELECT count(*) FROM words JOIN message ON message.id = words.rowid"
                           " WHERE words MATCH 'subject:own%d text:text%d' AND gmail_id = 'id%d'",
                           i, i, i);
            if (i % 97 < 2 || i % 500 == 7)
                assert_int_equal(ask(f, name, sql), 1);
        }
    }
}

/* ---- threads ------------------------------------------------------------------------------------ */

enum { PUTTERS = 4 };

struct putter {
    struct fixture *f;
    int number;
    uint64_t count;
    uint64_t failures;
};

static void put_many(void *arg)
{
    struct putter *putter = arg;
    tide_rng rng = tide_rng_seeded((uint64_t)putter->number);
    for (uint64_t i = 0; i < putter->count; i++) {
        char id[32];
        tide_buf raw;
        tide_buf_init(&raw, tide_mem_heap(), 10 << 20);
        make_mail(&rng, &raw);
        (void)snprintf(id, sizeof id, "%d-%" PRIu64, putter->number, i);
        struct tide_incoming incoming =
            mail(id, year_2019 + (int64_t)tide_rng_below(&rng, 31557600000 * 2), TIDE_TEXT_NONE);
        incoming.take = &raw;
        uint64_t ticket = 0;
        bool missing = true;
        if (tide_archive_put(putter->f->archive, &incoming, NULL, &ticket, NULL) != TIDE_OK)
            putter->failures++;
        else if (i % 20 == 0 &&
                 (tide_archive_sync(putter->f->archive, ticket, NULL, NULL) != TIDE_OK ||
                  tide_archive_missing(putter->f->archive, &incoming.gmail_id, 1, &missing, NULL) !=
                      TIDE_OK ||
                  missing))
            putter->failures++;
        tide_buf_done(&raw);
    }
}

static void many_threads_put_at_once(void **state)
{
    struct fixture *f = *state;
    struct putter putters[PUTTERS];
    tide_thread *threads[PUTTERS];
    uint64_t count = scaled(300);
    f->options.index_later = false;
    f->options.indexer = &simple_indexer;
    open_archive(f);
    for (int i = 0; i < PUTTERS; i++) {
        putters[i] = (struct putter){.f = f, .number = i + 1, .count = count};
        OK(tide_world_thread(f->world, "putter", put_many, &putters[i], &threads[i], NULL));
    }
    for (int i = 0; i < PUTTERS; i++) {
        tide_world_join(f->world, threads[i]);
        assert_int_equal(putters[i].failures, 0);
    }
    close_archive(f); /* commits what is queued */
    f->options.read_only = true;
    open_archive(f);
    for (int i = 0; i < PUTTERS; i++) {
        tide_rng rng = tide_rng_seeded((uint64_t)i + 1);
        for (uint64_t j = 0; j < count; j++) {
            char id[32];
            tide_buf raw;
            tide_buf_init(&raw, tide_mem_heap(), 10 << 20);
            make_mail(&rng, &raw);
            (void)tide_rng_next(&rng);
            (void)snprintf(id, sizeof id, "%d-%" PRIu64, i + 1, j);
            assert_raw(f, id, tide_buf_text(&raw));
            tide_buf_done(&raw);
        }
    }
    assert_sound(f, PUTTERS * count);
    close_archive(f);
}

/* ---- mail as it is ------------------------------------------------------------------------------ */

static uint64_t put_files(struct fixture *f, const char *dir, bool check)
{
    uint64_t count = 0;
    DIR *handle = opendir(dir);
    if (handle == NULL)
        return 0;
    for (struct dirent *entry; (entry = readdir(handle)) != NULL;) {
        char path[1000];
        struct stat info;
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
        if (stat(path, &info) != 0)
            continue;
        if (S_ISDIR(info.st_mode)) {
            count += put_files(f, path, check);
            continue;
        }
        tide_buf raw;
        tide_buf_init(&raw, tide_mem_heap(), 64 << 20);
        OK(tide_file_read(f->world, path, 64 << 20, &raw, &f->err));
        char id[40];
        uint64_t hash = 1469598103934665603u;
        for (const char *at = path; *at != '\0'; at++)
            hash = (hash ^ (unsigned char)*at) * 1099511628211u;
        (void)snprintf(id, sizeof id, "%016" PRIx64, hash);
        struct tide_incoming incoming =
            mail(id, year_2019 + (int64_t)(hash % 31536000000), tide_buf_text(&raw));
        if (check)
            assert_raw(f, id, tide_buf_text(&raw));
        else
            put(f, &incoming);
        tide_buf_done(&raw);
        count++;
    }
    (void)closedir(handle);
    return count;
}

static void the_corpus_of_nasty_mail_comes_back_exactly(void **state)
{
    struct fixture *f = *state;
    static const char *const places[] = {"../shared/corpus/mail", "../../shared/corpus/mail",
                                         "../../../shared/corpus/mail"};
    const char *place = getenv("TIDE_CORPUS");
    for (size_t i = 0; place == NULL && i < 3; i++)
        if (access(places[i], R_OK) == 0)
            place = places[i];
    if (place == NULL) {
        print_message("no corpus of mail here (TIDE_CORPUS names it)\n");
        skip();
    }
    open_archive(f);
    uint64_t count = put_files(f, place, false);
    sync_all(f);
    assert_int_equal(put_files(f, place, true), count);
    assert_true(count > 0);
    assert_sound(f, count);
    close_archive(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_cut_is_put_back_exactly),
        cmocka_unit_test(base64_of_every_shape_is_cut),
        cmocka_unit_test(what_is_packed_is_unpacked_or_refused),
        TEST(a_stored_message_is_read_back_byte_for_byte),
        TEST(years_go_into_their_own_shards),
        TEST(what_cannot_be_stored_is_refused),
        TEST(putting_twice_is_harmless),
        TEST(an_id_is_stored_once_over_all_shards),
        TEST(other_bytes_replace_and_the_earlier_ones_stay),
        TEST(equal_bytes_are_stored_once),
        TEST(an_attachment_is_stored_once_for_all_messages),
        TEST(a_buffer_may_be_handed_over),
        TEST(a_walk_is_in_order_of_time_over_all_shards),
        TEST(ten_thousand_messages_of_one_date_are_told_from_their_neighbours),
        TEST(labels_follow_the_server_and_their_history_stays),
        TEST(what_is_gone_from_the_server_stays_here),
        TEST(what_is_missing_is_named),
        TEST(a_reader_sees_what_is_committed_and_new_shards),
        TEST(generations_grow_and_tell_an_older_copy),
        TEST(a_second_writer_and_a_strangers_files_are_refused),
        TEST(damage_is_reported_by_name),
        TEST(what_is_indexed_is_found_by_its_words),
        TEST(what_could_not_be_read_is_named_and_tried_again_on_request),
        TEST(new_mail_is_indexed_without_being_asked),
        TEST(closing_indexes_what_came),
        TEST(every_message_is_indexed_with_its_own_words),
        TEST(many_threads_put_at_once),
        TEST(the_corpus_of_nasty_mail_comes_back_exactly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
