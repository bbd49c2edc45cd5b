/* next_schema.c - the tables of a version to come, for upgrade_test.sh.  Linked before the
 * library, it takes the place of ledger/postgres/schema.c: the same first step, and one more that
 * gives every table a column that this version does not know, and makes a table.
 * NEXT_OLDEST is the oldest program that they still serve. */
#define tide_pg_schema tide_pg_schema_now
#include "../../src/ledger/postgres/schema.c"
#undef tide_pg_schema

static const char columns[] =
    "DO $$ DECLARE t regclass; BEGIN"
    " FOR t IN SELECT c.oid FROM pg_catalog.pg_class c"
    "  JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    "  WHERE n.nspname = 'tidemark' AND c.relkind IN ('r', 'p') AND NOT c.relispartition"
    "  ORDER BY c.oid LOOP"
    "  EXECUTE format('ALTER TABLE %s ADD COLUMN future bigint NOT NULL DEFAULT 7', t);"
    " END LOOP; END $$;"
    "CREATE TABLE tidemark.future (id int PRIMARY KEY);";
static const char *const second[] = {columns, NULL};
static const char *const *const steps_next[] = {first, second};

extern const struct tide_pg_schema_now tide_pg_schema;
const struct tide_pg_schema_now tide_pg_schema = {
    .steps = steps_next, .steps_count = 2, .oldest = NEXT_OLDEST};
