/* ledger_stores.c - the places in which the suite runs a ledger. */
#include "ledger_fixture.h"
#include "support/pg_test.h"

#include <unistd.h>

/* ---- SQLite in a real file ------------------------------------------------------------ */

static void real_world(struct store *store)
{
    tide_error err;
    OK(tide_world_real_new(tide_mem_heap(), &store->world, &err));
}

static void sqlite_make(struct store *store, uint64_t seed)
{
    (void)seed;
    real_world(store);
    (void)snprintf(store->dir, sizeof store->dir, "/tmp/tide-ledger-XXXXXX");
    assert_non_null(mkdtemp(store->dir));
    (void)snprintf(store->path, sizeof store->path, "%s/state.db", store->dir);
}

static void sqlite_destroy(struct store *store)
{
    static const char *const names[] = {"state.db", "state.db-wal", "state.db-shm",
                                        "copy.db",  "copy.db-wal",  "copy.db-shm"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[100];
        (void)snprintf(path, sizeof path, "%s/%s", store->dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(store->dir);
    tide_world_real_free(store->world);
}

/* ---- SQLite on the simulated disk ------------------------------------------------------ */

static void simulated_make(struct store *store, uint64_t seed)
{
    const struct tide_sim_options options = {.any_cpu = true};
    store->sim = tide_sim_new(seed, &options);
    store->world = tide_sim_world(store->sim);
    (void)snprintf(store->path, sizeof store->path, "/state.db");
}

static void simulated_destroy(struct store *store)
{
    tide_sim_free(store->sim);
}

static void simulated_crash(struct store *store)
{
    tide_sim_crash(store->sim, TIDE_SIM_CRASH_POWER);
}

/* ---- PostgreSQL ------------------------------------------------------------------------- */

/* Filled once with the schema; every store is a copy of it. */
static char template_url[STORE_PATH_BYTES];
static char template_name[PG_TEST_NAME_BYTES];

static void postgres_make(struct store *store, uint64_t seed)
{
    (void)seed;
    real_world(store);
    pg_test_create(template_name, store->path, sizeof store->path);
}

static void postgres_destroy(struct store *store)
{
    pg_test_drop(store->path);
    tide_world_real_free(store->world);
}

/* A server that dies in the middle is for the tests of a whole fleet; here the process
 * alone does. */
static const struct store_kind kinds[] = {
    {"sqlite", sqlite_make, sqlite_destroy, NULL},
    {"simulated", simulated_make, simulated_destroy, simulated_crash},
    {"postgres", postgres_make, postgres_destroy, NULL},
};

const struct store_kind *store_kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

/* ---- all of them ------------------------------------------------------------------------- */

void store_make(struct store *store, const struct store_kind *kind, uint64_t seed)
{
    memset(store, 0, sizeof *store);
    store->kind = kind;
    kind->make(store, seed);
}

void store_destroy(struct store *store)
{
    store->kind->destroy(store);
    memset(store, 0, sizeof *store);
}

tide_ledger *store_open(struct store *store, const char *run_id, bool read_only)
{
    struct tide_ledger_options options = {
        .path = store->path, .run_id = run_id, .now_unix_ms = NOW, .read_only = read_only};
    tide_ledger *ledger = NULL;
    tide_error err = {.text = ""};
    tide_status rc = tide_ledger_open(store->world, &options, &ledger, &err);
    if (rc != TIDE_OK)
        print_error("%s: %s\n", store->path, err.text);
    OK(rc);
    return ledger;
}

bool store_kind_begin(const struct store_kind *kind)
{
    if (kind->make != postgres_make)
        return true;
    if (pg_test_server() == NULL) {
        (void)printf("skipped: TIDE_TEST_POSTGRES names no server\n");
        return false;
    }
    struct store store = {.kind = kind};
    real_world(&store);
    pg_test_create(NULL, template_url, sizeof template_url);
    pg_test_name(template_url, template_name);
    (void)snprintf(store.path, sizeof store.path, "%s", template_url);
    tide_ledger_close(store_open(&store, "template", false), true);
    tide_world_real_free(store.world);
    return true;
}

void store_kind_end(const struct store_kind *kind)
{
    if (kind->make == postgres_make && template_url[0] != '\0')
        pg_test_drop(template_url);
}
