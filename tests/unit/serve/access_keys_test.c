/* access_keys_test.c - keys in memory and in their rows, on both databases. */
#include "serve/access/keys_rows.h"
#include "unit/db/rows_fixture.h"

struct store {
    tide_rows rows;
    const char *home;
    bool broken;
};

static tide_rows rows_of(struct store *store)
{
    return store->rows;
}

static const char *home_of(struct store *store)
{
    return store->home;
}

static tide_status load(void *arg, bool (*take)(void *take_arg, const struct tide_key *key),
                        void *take_arg, tide_error *err)
{
    return tide_keys_rows_load(rows_of(arg), home_of(arg), take, take_arg, err);
}

static tide_status add(void *arg, const struct tide_key *key, uint64_t gone, tide_error *err)
{
    struct store *store = arg;
    if (store->broken)
        return tide_error_set(err, TIDE_DISK_FULL, "no room");
    return tide_keys_rows_add(rows_of(store), store->home, key, gone, err);
}

static tide_status revoke(void *arg, uint64_t id, uint64_t now_unix_ms, tide_error *err)
{
    struct store *store = arg;
    if (store->broken)
        return tide_error_set(err, TIDE_DISK_FULL, "no room");
    return tide_keys_rows_revoke(rows_of(store), store->home, id, now_unix_ms, err);
}

struct fixture {
    tide_world *world;
    tide_keys *keys;
    struct store store;
    tide_error err;
};

static void open_keys(struct fixture *fixture)
{
    const struct tide_keys_store store = {load, add, revoke, &fixture->store};
    assert_int_equal(
        tide_keys_new(fixture->world, tide_mem_heap(), &store, &fixture->keys, &fixture->err),
        TIDE_OK);
}

static void fixture_init(struct fixture *fixture, tide_rows rows)
{
    memset(fixture, 0, sizeof *fixture);
    fixture->store.rows = rows;
    fixture->store.home = "";
    assert_int_equal(tide_world_real_new(tide_mem_heap(), &fixture->world, &fixture->err), TIDE_OK);
    OK(tide_keys_rows_tables(rows, err));
    OK(tide_keys_rows_tables(rows, err)); /* twice is harmless */
    open_keys(fixture);
}

static void fixture_done(struct fixture *fixture)
{
    tide_keys_free(fixture->keys);
    tide_world_real_free(fixture->world);
}

static bool is_known(struct fixture *fixture, const char *text)
{
    struct tide_httpd_who who = {0};
    return tide_keys_authorize(fixture->keys, tide_text_of(text), &who);
}

typedef char key_text[TIDE_KEY_TEXT_BYTES + 1];

static uint64_t make(struct fixture *fixture, const char *name, uint64_t lifetime_ms, key_text text)
{
    uint64_t id = 0;
    assert_int_equal(tide_keys_add(fixture->keys, tide_text_of(name), TIDE_HTTPD_WORK, lifetime_ms,
                                   text, &id, &fixture->err),
                     TIDE_OK);
    return id;
}

#define CASE(name) TEST_WITH(name, rows_setup, rows_teardown)

CASE(a_key_holds_across_a_restart_and_its_text_is_stored_nowhere)
{
    struct fixture fixture;
    key_text text;
    struct tide_httpd_who who = {0};
    fixture_init(&fixture, *(tide_rows *)*state);
    const uint64_t id = make(&fixture, "grafana", 0, text);
    tide_keys_free(fixture.keys);
    open_keys(&fixture);
    assert_true(tide_keys_authorize(fixture.keys, tide_text_of(text), &who));
    assert_int_equal(who.id, id);
    assert_int_equal(who.scope, TIDE_HTTPD_WORK);
    assert_string_equal(who.name, "grafana");
    tide_rows_stmt stmt;
    OK(tide_rows_prepare(fixture.store.rows, "SELECT name, scope, hash FROM serve_key", "keys",
                         &stmt, err));
    OK(tide_rows_one(&stmt, err));
    for (int i = 0; i < 3; i++) {
        const tide_text column = tide_rows_get_text(&stmt, i);
        assert_null(memmem(column.data, column.bytes, text, 16));
    }
    tide_rows_end(&stmt);
    text[0] ^= 1;
    assert_false(is_known(&fixture, text));
    assert_false(is_known(&fixture, ""));
    fixture_done(&fixture);
}

CASE(a_revoked_key_is_refused_at_once_and_for_good)
{
    struct fixture fixture;
    key_text text, other;
    fixture_init(&fixture, *(tide_rows *)*state);
    const uint64_t id = make(&fixture, "one", 0, text);
    (void)make(&fixture, "two", 0, other);
    assert_true(tide_keys_still(fixture.keys, id));
    assert_int_equal(tide_keys_revoke(fixture.keys, id, &fixture.err), TIDE_OK);
    assert_false(is_known(&fixture, text));
    assert_false(tide_keys_still(fixture.keys, id));
    assert_true(is_known(&fixture, other));
    assert_int_equal(tide_keys_revoke(fixture.keys, 99, &fixture.err), TIDE_NOT_FOUND);
    tide_keys_free(fixture.keys);
    open_keys(&fixture);
    assert_false(is_known(&fixture, text));
    assert_true(is_known(&fixture, other));
    fixture_done(&fixture);
}

/* ACC1, ACC2: what the store cannot keep is not given out, but is taken away. */
CASE(a_store_that_fails_gives_no_key_and_takes_one_away)
{
    struct fixture fixture;
    key_text text, other = "";
    uint64_t none = 0;
    fixture_init(&fixture, *(tide_rows *)*state);
    const uint64_t id = make(&fixture, "one", 0, text);
    fixture.store.broken = true;
    assert_int_equal(tide_keys_add(fixture.keys, TIDE_TEXT("two"), TIDE_HTTPD_LOOK, 0, other, &none,
                                   &fixture.err),
                     TIDE_DISK_FULL);
    assert_string_equal(other, "");
    assert_int_equal(tide_keys_revoke(fixture.keys, id, &fixture.err), TIDE_DISK_FULL);
    assert_false(is_known(&fixture, text));
    fixture.store.broken = false;
    assert_int_equal(tide_keys_revoke(fixture.keys, id, &fixture.err), TIDE_OK);
    tide_keys_free(fixture.keys);
    open_keys(&fixture);
    assert_false(is_known(&fixture, text));
    fixture_done(&fixture);
}

CASE(an_expired_key_is_refused)
{
    struct fixture fixture;
    key_text text;
    fixture_init(&fixture, *(tide_rows *)*state);
    const uint64_t id = make(&fixture, "brief", 1, text);
    while (tide_keys_still(fixture.keys, id)) /* for a millisecond */
        continue;
    assert_false(is_known(&fixture, text));
    fixture_done(&fixture);
}

static void count(void *arg, const struct tide_key *key)
{
    size_t *counts = arg;
    counts[0]++;
    counts[1] += key->revoked_unix_ms == 0;
}

CASE(ended_keys_make_room_and_ids_are_never_used_again)
{
    struct fixture fixture;
    key_text text;
    uint64_t id = 0;
    size_t counts[2] = {0, 0};
    fixture_init(&fixture, *(tide_rows *)*state);
    for (int i = 0; i < TIDE_KEYS_MAX; i++)
        id = make(&fixture, "many", 0, text);
    assert_int_equal(id, TIDE_KEYS_MAX);
    assert_int_equal(
        tide_keys_add(fixture.keys, TIDE_TEXT("more"), TIDE_HTTPD_LOOK, 0, text, &id, &fixture.err),
        TIDE_FULL);
    assert_int_equal(tide_keys_revoke(fixture.keys, 7, &fixture.err), TIDE_OK);
    assert_int_equal(make(&fixture, "more", 0, text), TIDE_KEYS_MAX + 1);
    tide_keys_each(fixture.keys, count, counts);
    assert_int_equal(counts[0], TIDE_KEYS_MAX);
    assert_int_equal(counts[1], TIDE_KEYS_MAX);
    tide_keys_free(fixture.keys);
    open_keys(&fixture);
    assert_true(is_known(&fixture, text));
    fixture_done(&fixture);
}

CASE(a_name_is_for_people_to_read)
{
    struct fixture fixture;
    key_text text;
    uint64_t id;
    fixture_init(&fixture, *(tide_rows *)*state);
    static const char *const names[] = {
        "", "a\nb", "\x1b[31m", "0123456789012345678901234567890123456789012345678901234567890123"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_int_equal(tide_keys_add(fixture.keys, tide_text_of(names[i]), TIDE_HTTPD_LOOK, 0,
                                       text, &id, &fixture.err),
                         TIDE_INVALID);
    fixture_done(&fixture);
}

CASE(homes_on_one_ledger_have_keys_of_their_own)
{
    struct fixture here, there;
    key_text text, other;
    fixture_init(&here, *(tide_rows *)*state);
    fixture_init(&there, *(tide_rows *)*state);
    there.store.home = "there:/home";
    tide_keys_free(there.keys);
    open_keys(&there);
    const uint64_t id = make(&here, "grafana", 0, text);
    assert_int_equal(make(&there, "grafana", 0, other), id); /* numbers are a home's own, too */
    tide_keys_free(there.keys);
    open_keys(&there);
    assert_false(is_known(&there, text));
    assert_true(is_known(&there, other));
    OK(tide_keys_revoke(here.keys, id, err));
    tide_keys_free(there.keys);
    open_keys(&there);
    assert_true(is_known(&there, other));
    fixture_done(&here);
    fixture_done(&there);
}

int main(void)
{
    return rows_tests_run();
}
