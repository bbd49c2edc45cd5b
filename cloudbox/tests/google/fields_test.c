/* Partial answers: examples, malformed selections, and random selections
 * against a model that writes every path out. */
#include "cloudbox/google/fields.h"

#include "base/check.h"
#include "base/rng.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>

enum { ARENA_BYTES_MAX = 1 << 20 };

static const char *const page =
    "{\"messages\":[{\"id\":\"1\",\"threadId\":\"2\",\"payload\":{\"headers\":[{\"name\":\"a\","
    "\"value\":\"b\"}],\"body\":{\"size\":3}}},{\"id\":\"4\",\"threadId\":\"5\"}],"
    "\"nextPageToken\":\"t\",\"resultSizeEstimate\":9,\"empty\":[],\"tags\":[\"x\",\"y\"]}";

static const struct {
    const char *fields;
    const char *expected; /* NULL: not a selection */
} examples[] = {
    {"nextPageToken", "{\"nextPageToken\":\"t\"}"},
    {"messages/id", "{\"messages\":[{\"id\":\"1\"},{\"id\":\"4\"}]}"},
    {"messages(id,threadId),nextPageToken",
     "{\"messages\":[{\"id\":\"1\",\"threadId\":\"2\"},{\"id\":\"4\",\"threadId\":\"5\"}],"
     "\"nextPageToken\":\"t\"}"},
    {"messages(id),messages(threadId)",
     "{\"messages\":[{\"id\":\"1\",\"threadId\":\"2\"},{\"id\":\"4\",\"threadId\":\"5\"}]}"},
    {"messages/payload/headers/name",
     "{\"messages\":[{\"payload\":{\"headers\":[{\"name\":\"a\"}]}},{}]}"},
    {"messages/payload(body/size)", "{\"messages\":[{\"payload\":{\"body\":{\"size\":3}}},{}]}"},
    {"messages(payload(headers(value)))",
     "{\"messages\":[{\"payload\":{\"headers\":[{\"value\":\"b\"}]}},{}]}"},
    {"messages/*/body", "{\"messages\":[{\"payload\":{\"body\":{\"size\":3}}},{}]}"},
    {"*/id", "{\"messages\":[{\"id\":\"1\"},{\"id\":\"4\"}]}"},
    {"*", NULL}, /* everything; compared below */
    {"tags", "{\"tags\":[\"x\",\"y\"]}"},
    {"tags/x", "{}"},
    {"resultSizeEstimate/x", "{}"},
    {"empty", "{\"empty\":[]}"},
    {"nothing", "{}"},
    {"nothing/at(all)", "{}"},
    {"messages/id,messages", NULL}, /* the whole of messages; compared below */
};

static const char *const malformed[] = {
    "",     ",",     "a,",    ",a",  "a,,b", "/",    "/a",      "a/",    "a//b",   "(",
    ")",    "()",    "a(",    "a()", "a(b",  "a)",   "a(b))",   "a(b)c", "a(b)/c", "a(,)",
    "a(b,", "a(b,)", "a b",   " a",  "a ",   "a(b ", "**",      "a*",    "*a",     "a/(b)",
    "a=b",  "a;b",   "\"a\"", "a\n", "a[0]", "a?",   "a(b)(c)", "a,b)",  "((a))",  "\xff",
};

static json_t *select_from(const char *fields, const json_t *value)
{
    tide_auto_arena arena = tide_arena_heap(ARENA_BYTES_MAX);
    return box_fields_select(tide_text_of(fields), value, &arena);
}

TEST(a_selection_keeps_what_it_names)
{
    json_auto_t *value = json_loads(page, 0, NULL);
    assert_non_null(value);
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++) {
        json_auto_t *out = select_from(examples[i].fields, value);
        assert_non_null(out);
        json_auto_t *expected = NULL;
        if (examples[i].expected != NULL)
            expected = json_loads(examples[i].expected, 0, NULL);
        else if (examples[i].fields[0] == '*')
            expected = json_deep_copy(value);
        else
            expected = json_pack("{s:O}", "messages", json_object_get(value, "messages"));
        assert_non_null(expected);
        if (!json_equal(out, expected))
            fail_msg("%s gives %s", examples[i].fields, json_dumps(out, 0));
    }
}

TEST(what_is_not_a_selection_is_refused)
{
    json_auto_t *value = json_loads(page, 0, NULL);
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
        if (select_from(malformed[i], value) != NULL)
            fail_msg("\"%s\" was taken for a selection", malformed[i]);
}

/* 100,000 brackets, names and slashes must neither crash nor be accepted. */
TEST(a_bomb_is_refused)
{
    static const char *const pieces[] = {"a(", "a/", "(", "*/", "*(", "a,", "ab1,"};
    json_auto_t *value = json_loads(page, 0, NULL);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        for (size_t count = 1000; count <= 100000; count *= 10) {
            const size_t bytes = strlen(pieces[i]);
            auto_text *text = calloc(count * bytes + 1, 1);
            assert_non_null(text);
            for (size_t n = 0; n < count; n++)
                memcpy(text + n * bytes, pieces[i], bytes);
            assert_null(select_from(text, value));
        }
    }
}

/* ---- the model: all paths a selection names, all paths a value has ---- */

enum { PATHS_MAX = 256, PATH_BYTES = 64, DEEP = 4, TEXT_BYTES = 8192 };

struct paths {
    char path[PATHS_MAX][PATH_BYTES];
    size_t count;
};

static void path_add(struct paths *paths, const char *prefix, const char *name)
{
    assert_true(paths->count < PATHS_MAX);
    const int bytes = snprintf(paths->path[paths->count], PATH_BYTES, "%s%s%s", prefix,
                               prefix[0] != '\0' ? "/" : "", name);
    assert_true(bytes > 0 && bytes < PATH_BYTES);
    paths->count++;
}

static const char *random_name(tide_rng *rng)
{
    static const char *const names[] = {"a", "b", "c", "*"};
    return names[tide_rng_below(rng, 4)];
}

/* Writes a random list to `text` and the paths it means to `paths`. */
static void random_list(tide_rng *rng, const char *prefix, size_t deep, char *text,
                        struct paths *paths)
{
    const uint64_t count = 1 + tide_rng_below(rng, 3);
    for (uint64_t i = 0; i < count; i++) {
        char here[PATH_BYTES];
        const char *name = random_name(rng);
        (void)snprintf(here, sizeof here, "%s%s%s", prefix, prefix[0] != '\0' ? "/" : "", name);
        (void)snprintf(text + strlen(text), TEXT_BYTES - strlen(text), "%s%s", i > 0 ? "," : "",
                       name);
        const uint64_t way = deep + 1 < DEEP ? tide_rng_below(rng, 3) : 0;
        if (way == 0) {
            path_add(paths, prefix, name);
        } else if (way == 1) {
            (void)snprintf(text + strlen(text), TEXT_BYTES - strlen(text), "(");
            random_list(rng, here, deep + 1, text, paths);
            (void)snprintf(text + strlen(text), TEXT_BYTES - strlen(text), ")");
        } else {
            const char *second = random_name(rng);
            (void)snprintf(text + strlen(text), TEXT_BYTES - strlen(text), "/%s", second);
            path_add(paths, here, second);
        }
    }
}

static json_t *random_value(tide_rng *rng, size_t deep)
{
    const uint64_t way = deep < DEEP ? tide_rng_below(rng, 4) : 3;
    if (way == 3)
        return json_integer((json_int_t)tide_rng_below(rng, 1000));
    if (way == 2 && deep > 0) {
        json_t *list = json_array();
        for (uint64_t i = tide_rng_below(rng, 3); i > 0; i--)
            json_array_append_new(list, random_value(rng, deep + 1));
        return list;
    }
    json_t *object = json_object();
    for (const char *name = "a\0b\0c\0d\0"; *name != '\0'; name += 2)
        if (tide_rng_chance(rng, 2, 3))
            json_object_set_new(object, name, random_value(rng, deep + 1));
    return object;
}

/* Whether a path that was asked for covers this one. */
static bool covers(const char *asked, const char *path)
{
    for (;;) {
        const size_t asked_bytes = strcspn(asked, "/");
        const size_t path_bytes = strcspn(path, "/");
        if (asked[0] != '*' && (asked_bytes != path_bytes || memcmp(asked, path, asked_bytes) != 0))
            return false;
        if (asked[asked_bytes] == '\0')
            return true;
        if (path[path_bytes] == '\0')
            return false;
        asked += asked_bytes + 1;
        path += path_bytes + 1;
    }
}

/* Prints the numbers below `value` in order, those under a covered path when
 * `asked` is given.  Arrays are no step of a path. */
static void leaves(json_t *value, const char *path, const struct paths *asked, char *out)
{
    if (json_is_array(value)) {
        for (size_t i = 0; i < json_array_size(value); i++)
            leaves(json_array_get(value, i), path, asked, out);
        return;
    }
    if (json_is_object(value)) {
        const char *key = NULL;
        json_t *member = NULL;
        json_object_foreach(value, key, member)
        {
            char inner[PATH_BYTES];
            (void)snprintf(inner, sizeof inner, "%s%s%s", path, path[0] != '\0' ? "/" : "", key);
            leaves(member, inner, asked, out);
        }
        return;
    }
    bool wanted = asked == NULL;
    for (size_t i = 0; !wanted && i < asked->count; i++)
        wanted = covers(asked->path[i], path);
    if (wanted)
        (void)snprintf(out + strlen(out), TEXT_BYTES - strlen(out), "%s=%d ", path,
                       (int)json_integer_value(value));
}

TEST(random_selections_keep_exactly_the_paths_they_name)
{
    const uint64_t rounds = scaled(20000);
    static char text[TEXT_BYTES], expected[TEXT_BYTES], found[TEXT_BYTES];
    static struct paths asked;
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        tide_rng rng = tide_rng_seeded(seed);
        json_auto_t *value = json_object();
        for (const char *name = "a\0b\0c\0d\0"; *name != '\0'; name += 2)
            json_object_set_new(value, name, random_value(&rng, 1));
        asked.count = 0;
        text[0] = expected[0] = found[0] = '\0';
        random_list(&rng, "", 0, text, &asked);
        leaves(value, "", &asked, expected);
        json_auto_t *out = select_from(text, value);
        assert_non_null(out);
        leaves(out, "", NULL, found);
        if (strcmp(expected, found) != 0)
            fail_msg("seed %llu: %s of %s gives %s", (unsigned long long)seed, text,
                     json_dumps(value, 0), json_dumps(out, 0));
    }
}
