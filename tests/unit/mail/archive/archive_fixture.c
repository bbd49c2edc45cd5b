#include "archive_fixture.h"
#include "support/temp_dir.h"
#include "support/scale.h"
#include "support/heap.h"

int set_up(void **state)
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

int set_up_opened(void **state)
{
    (void)set_up(state);
    open_archive(*state);
    return 0;
}

int tear_down(void **state)
{
    struct fixture *f = *state;
    if (f->archive != NULL)
        close_archive(f);
    assert_int_equal(temp_dir_remove(f->dir), 0);
    tide_world_real_free(f->world);
    free(f);
    return 0;
}

void open_archive(struct fixture *f)
{
    tide_status rc = tide_archive_open(&f->options, tide_mem_heap(), &f->archive, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

void close_archive(struct fixture *f)
{
    OK(tide_archive_close(f->archive, &f->err));
    f->archive = NULL;
}

void reopen(struct fixture *f)
{
    close_archive(f);
    open_archive(f);
}

void reopen_to_read(struct fixture *f)
{
    f->options.read_only = true;
    reopen(f);
}

struct tide_incoming mail(const char *id, int64_t internal_ms, tide_text raw)
{
    return (struct tide_incoming){
        .gmail_id = tide_text_of(id),
        .thread_id = TIDE_TEXT("t1"),
        .history_id = TIDE_TEXT("100"),
        .internal_ms = internal_ms,
        .raw = raw,
    };
}

void put(struct fixture *f, const struct tide_incoming *incoming)
{
    tide_status rc = tide_archive_put(f->archive, incoming, NULL, NULL, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

void sync_all(struct fixture *f)
{
    uint64_t ticket = 0;
    OK(tide_archive_gone(f->archive, TIDE_TEXT("nobody"), 1, &ticket, &f->err));
    tide_status rc = tide_archive_sync(f->archive, ticket, NULL, &f->err);
    if (rc != TIDE_OK)
        print_error("%s\n", f->err.text);
    OK(rc);
}

void put_text(struct fixture *f, const char *id, int64_t internal_ms, const char *raw)
{
    struct tide_incoming incoming = mail(id, internal_ms, tide_text_of(raw));
    put(f, &incoming);
}

void assert_raw(struct fixture *f, const char *id, tide_text raw)
{
    struct tide_stored stored;
    tide_buf out = heap_buf(TIDE_MESSAGE_BYTES_MAX);
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

int64_t ask(struct fixture *f, const char *shard, const char *sql)
{
    sqlite3 *handle = NULL;
    sqlite3_stmt *stmt = NULL;
    const char *path = textf("%s/%s.db", f->dir, shard);
    assert_int_equal(sqlite3_open_v2(path, &handle, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL) != SQLITE_OK)
        fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(stmt, 0);
    assert_int_equal(sqlite3_finalize(stmt), SQLITE_OK);
    assert_int_equal(sqlite3_close(handle), SQLITE_OK);
    return number;
}

void assert_labels(struct fixture *f, const char *id, const char *wanted)
{
    struct tide_stored stored;
    tide_buf labels = heap_buf(10000);
    OK(tide_archive_find(f->archive, tide_text_of(id), &stored, &f->err));
    OK(tide_archive_labels_of(f->archive, &stored, &labels, &f->err));
    assert_string_equal(tide_buf_cstr(&labels), wanted);
    tide_buf_done(&labels);
}

size_t damages;
struct tide_damage last_damage;

void count_damage(const struct tide_damage *damage, void *arg)
{
    (void)arg;
    damages++;
    last_damage = *damage;
}

void assert_sound(struct fixture *f, uint64_t messages)
{
    uint64_t checked = 0;
    damages = 0;
    OK(tide_archive_verify(f->archive, 0, count_damage, NULL, &checked, &f->err));
    if (damages != 0)
        print_error("%s: %s\n", last_damage.gmail_id, last_damage.what);
    assert_int_equal(damages, 0);
    assert_int_equal(checked, messages);
}

/* ---- mail ---- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void add_base64(tide_buf *out, const uint8_t *bytes, size_t count, size_t line, const char *eol)
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

void random_bytes(tide_rng *rng, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (uint8_t)tide_rng_next(rng);
}

void make_mail(tide_rng *rng, tide_buf *out)
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

/* ---- order ---- */

bool walk_on(const struct tide_stored *stored, void *arg)
{
    struct walked *walked = arg;
    assert_true(walked->unordered || stored->internal_ms >= walked->last_ms);
    assert_true(stored->internal_ms >= walked->from_ms);
    assert_true(stored->internal_ms < walked->to_ms);
    walked->last_ms = stored->internal_ms;
    if (walked->read_too) {
        tide_buf raw = heap_buf(1 << 20);
        OK(tide_archive_raw(walked->f->archive, stored, &raw, &walked->f->err));
        assert_int_equal(raw.bytes, stored->bytes);
        tide_buf_done(&raw);
    }
    return ++walked->count != walked->stop_after;
}

uint64_t walk(struct fixture *f, int64_t from_ms, int64_t to_ms, uint64_t stop_after)
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

/* ---- the index ---- */

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

uint64_t parsed_count;

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

const struct tide_indexer simple_indexer = {parse_simply, fold_nothing};

const char letter[] = "Subject: Rivers of Europe\nFrom: Anna <anna@example.com>\n"
                      "To: Bert\nCc: Carla\nMessage-ID: m1@x\nFile: danube map.pdf\n\n"
                      "The Danube flows through ten countries.\n";
