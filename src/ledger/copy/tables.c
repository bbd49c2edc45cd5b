/* tables.c - the tables of a ledger in their canonical form.
 *
 * The columns are those of PostgreSQL (ledger/postgres/schema.c).  SQLite keeps what runs in
 * `claim`, what most jobs never have in `detail`, and flags in `traits`
 * (ledger/sqlite/sqlite.h): the tables below say how these are joined and split.
 * What is not listed belongs to processes (member, share, the owner of an account) or
 * follows from the rest (job.noted).
 *
 * Tables of the systems beside the ledger are read from the database's own catalog. */
#include "ledger/copy/inside.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array)          (sizeof(array) / sizeof(array)[0])
#define COLUMNS(array, count) .columns = (array), .columns_count = COUNT(array), .keys_count = count

static const struct copy_column run_columns[] = {
    {"id", COPY_INT8, NULL}, {"name", COPY_TEXT, NULL}, {"started", COPY_INT8, NULL}};

static const struct copy_column kind_columns[] = {{"id", COPY_INT4, NULL},
                                                  {"name", COPY_TEXT, NULL},
                                                  {"scope", COPY_INT2, NULL},
                                                  {"paused", COPY_BOOL, NULL},
                                                  {"splits", COPY_BOOL, NULL}};

static const struct copy_column account_columns[] = {
    {"id", COPY_INT4, NULL},        {"name", COPY_TEXT, NULL},     {"provider", COPY_TEXT, NULL},
    {"paused", COPY_BOOL, NULL},    {"halted", COPY_BOOL, NULL},   {"halt_reason", COPY_TEXT, NULL},
    {"halted_at", COPY_INT8, NULL}, {"governor", COPY_TEXT, NULL}, {"archive", COPY_TEXT, NULL},
    {"secret", COPY_TEXT, NULL}};

/* ---- jobs ---- */

#define LANE        "(j.traits & 1)"
#define PREEMPTIBLE "((j.traits >> 1) & 1)"
#define FORCE       "((j.traits >> 2) & 1)"
#define LEVEL       "(j.traits >> 3)"

enum job_column {
    JOB_ID,
    JOB_STATE,
    JOB_OPEN_DEPS,
    JOB_ACCOUNT,
    JOB_KIND,
    JOB_SCOPE,
    JOB_PRIORITY,
    JOB_LANE,
    JOB_LEVEL,
    JOB_ATTEMPTS,
    JOB_ATTEMPTS_MAX,
    JOB_PREEMPTIBLE,
    JOB_FORCE,
    JOB_CANCEL_WANTED,
    JOB_STATUS,
    JOB_CYCLE,
    JOB_NOT_BEFORE,
    JOB_SIZE,
    JOB_CREATED,
    JOB_STARTED,
    JOB_FINISHED,
    JOB_RUN,
    JOB_TOKEN,
    JOB_OWNER,
    JOB_BEAT,
    JOB_BYTES_DONE,
    JOB_DEDUPE,
    JOB_PAYLOAD,
    JOB_ERROR,
    JOB_RESUME,
};

/* While a job runs its claim has the current values; its row still has the times of the
 * attempt before. */
static const struct copy_column job_columns[] = {
    [JOB_ID] = {"id", COPY_INT8, "j.id"},
    [JOB_STATE] = {"state", COPY_INT2, "j.state"},
    [JOB_OPEN_DEPS] = {"open_deps", COPY_INT4, "j.open_deps"},
    [JOB_ACCOUNT] = {"account", COPY_INT4, "j.account"},
    [JOB_KIND] = {"kind", COPY_INT4, "j.kind"},
    [JOB_SCOPE] = {"scope", COPY_INT2, "j.scope"},
    [JOB_PRIORITY] = {"priority", COPY_INT2, "j.priority"},
    [JOB_LANE] = {"lane", COPY_INT2, LANE},
    [JOB_LEVEL] = {"level", COPY_INT2, LEVEL},
    [JOB_ATTEMPTS] = {"attempts", COPY_INT4, "j.attempts"},
    [JOB_ATTEMPTS_MAX] = {"attempts_max", COPY_INT4, "j.attempts_max"},
    [JOB_PREEMPTIBLE] = {"preemptible", COPY_BOOL, PREEMPTIBLE},
    [JOB_FORCE] = {"force", COPY_BOOL, FORCE},
    [JOB_CANCEL_WANTED] = {"cancel_wanted", COPY_BOOL, "coalesce(c.cancel_wanted, 0)"},
    [JOB_STATUS] = {"status", COPY_INT2, "d.status"},
    [JOB_CYCLE] = {"cycle", COPY_INT8, "j.cycle"},
    [JOB_NOT_BEFORE] = {"not_before", COPY_INT8, "j.not_before"},
    [JOB_SIZE] = {"size", COPY_INT8, "j.size"},
    [JOB_CREATED] = {"created", COPY_INT8, "j.created"},
    [JOB_STARTED] = {"started", COPY_INT8, "coalesce(c.started, j.started)"},
    [JOB_FINISHED] = {"finished", COPY_INT8, "j.finished"},
    [JOB_RUN] = {"run", COPY_INT8, "coalesce(c.run, j.run)"},
    [JOB_TOKEN] = {"token", COPY_INT8, "c.token"},
    [JOB_OWNER] = {"owner", COPY_INT8, "c.owner"},
    [JOB_BEAT] = {"beat", COPY_INT8, "c.beat"},
    [JOB_BYTES_DONE] = {"bytes_done", COPY_INT8, "coalesce(c.bytes_done, d.bytes_done)"},
    [JOB_DEDUPE] = {"dedupe", COPY_TEXT, "j.dedupe"},
    [JOB_PAYLOAD] = {"payload", COPY_TEXT, "j.payload"},
    [JOB_ERROR] = {"error", COPY_TEXT, "d.error"},
    [JOB_RESUME] = {"resume", COPY_TEXT, "d.resume"},
};

enum done_column {
    DONE_ID,
    DONE_ACCOUNT,
    DONE_KIND,
    DONE_PRIORITY,
    DONE_LANE,
    DONE_LEVEL,
    DONE_ATTEMPTS,
    DONE_ATTEMPTS_MAX,
    DONE_PREEMPTIBLE,
    DONE_FORCE,
    DONE_STATUS,
    DONE_CYCLE,
    DONE_SIZE,
    DONE_CREATED,
    DONE_STARTED,
    DONE_FINISHED,
    DONE_RUN,
    DONE_BYTES_DONE,
    DONE_DEDUPE,
    DONE_PAYLOAD,
    DONE_ERROR,
    DONE_RESUME,
};

static const struct copy_column done_columns[] = {
    [DONE_ID] = {"id", COPY_INT8, "j.id"},
    [DONE_ACCOUNT] = {"account", COPY_INT4, "j.account"},
    [DONE_KIND] = {"kind", COPY_INT4, "j.kind"},
    [DONE_PRIORITY] = {"priority", COPY_INT2, "j.priority"},
    [DONE_LANE] = {"lane", COPY_INT2, LANE},
    [DONE_LEVEL] = {"level", COPY_INT2, LEVEL},
    [DONE_ATTEMPTS] = {"attempts", COPY_INT4, "j.attempts"},
    [DONE_ATTEMPTS_MAX] = {"attempts_max", COPY_INT4, "j.attempts_max"},
    [DONE_PREEMPTIBLE] = {"preemptible", COPY_BOOL, PREEMPTIBLE},
    [DONE_FORCE] = {"force", COPY_BOOL, FORCE},
    [DONE_STATUS] = {"status", COPY_INT2, "d.status"},
    [DONE_CYCLE] = {"cycle", COPY_INT8, "j.cycle"},
    [DONE_SIZE] = {"size", COPY_INT8, "j.size"},
    [DONE_CREATED] = {"created", COPY_INT8, "j.created"},
    [DONE_STARTED] = {"started", COPY_INT8, "j.started"},
    [DONE_FINISHED] = {"finished", COPY_INT8, "j.finished"},
    [DONE_RUN] = {"run", COPY_INT8, "j.run"},
    [DONE_BYTES_DONE] = {"bytes_done", COPY_INT8, "d.bytes_done"},
    [DONE_DEDUPE] = {"dedupe", COPY_TEXT, "j.dedupe"},
    [DONE_PAYLOAD] = {"payload", COPY_TEXT, "j.payload"},
    [DONE_ERROR] = {"error", COPY_TEXT, "d.error"},
    [DONE_RESUME] = {"resume", COPY_TEXT, "d.resume"},
};

#define TRAITS ":lane | (:preemptible << 1) | (:force << 2) | (:level << 3)"
#define NOTED  "iif(coalesce(:status, :bytes_done, :error, :resume) IS NULL, NULL, 1)"
#define DETAIL                                                                                     \
    "INSERT INTO detail (job, status, bytes_done, error, resume)"                                  \
    " VALUES (:id, :status, :bytes_done, :error, :resume)"
#define BIT(column) ((uint64_t)1 << (column))

/* ---- the rest ---- */

static const struct copy_column dep_columns[] = {{"needs", COPY_INT8, NULL},
                                                 {"job", COPY_INT8, NULL}};

static const struct copy_column stream_columns[] = {
    {"id", COPY_INT8, NULL},      {"account", COPY_INT4, NULL},      {"name", COPY_TEXT, NULL},
    {"ordinal", COPY_INT8, NULL}, {"ordinal_next", COPY_INT8, NULL}, {"cursor", COPY_TEXT, NULL},
    {"floor", COPY_TEXT, NULL},   {"moved", COPY_INT8, NULL}};

static const struct copy_column cycle_columns[] = {
    {"id", COPY_INT8, NULL},          {"stream", COPY_INT8, NULL}, {"ordinal", COPY_INT8, NULL},
    {"start", COPY_TEXT, NULL},       {"end", COPY_TEXT, NULL},    {"total", COPY_INT8, NULL},
    {"outstanding", COPY_INT8, NULL}, {"failed", COPY_INT8, NULL}, {"opened", COPY_INT8, NULL}};

static const struct copy_column bad_columns[] = {
    {"account", COPY_INT4, NULL},    {"kind", COPY_INT4, NULL},    {"item", COPY_TEXT, NULL},
    {"state", COPY_INT2, NULL},      {"cycle", COPY_INT8, NULL},   {"first_seen", COPY_INT8, NULL},
    {"last_tried", COPY_INT8, NULL}, {"retries", COPY_INT4, NULL}, {"reason", COPY_TEXT, NULL}};

static const struct copy_column intent_columns[] = {
    {"tag", COPY_TEXT, NULL},    {"job", COPY_INT8, NULL},   {"state", COPY_INT2, NULL},
    {"made", COPY_INT8, NULL},   {"ended", COPY_INT8, NULL}, {"detail", COPY_TEXT, NULL},
    {"outcome", COPY_TEXT, NULL}};

static const struct copy_column schedule_columns[] = {
    {"id", COPY_INT8, NULL},     {"name", COPY_TEXT, NULL},        {"kind", COPY_INT4, NULL},
    {"period", COPY_INT8, NULL}, {"anchor", COPY_INT8, NULL},      {"slot_last", COPY_INT8, NULL},
    {"fired", COPY_INT8, NULL},  {"per_account", COPY_BOOL, NULL}, {"at_start", COPY_BOOL, NULL},
    {"payload", COPY_TEXT, NULL}};

static const struct copy_column alert_columns[] = {
    {"condition", COPY_TEXT, NULL}, {"account", COPY_INT4, NULL},  {"level", COPY_INT2, NULL},
    {"since", COPY_INT8, NULL},     {"notified", COPY_INT8, NULL}, {"text", COPY_TEXT, NULL}};

static const struct copy_column note_columns[] = {{"key", COPY_TEXT, NULL},
                                                  {"value", COPY_TEXT, NULL}};

/* A JSON array on SQLite; the row's number exists on SQLite only and is not copied. */
static const struct copy_column batch_columns[] = {
    {"name", COPY_TEXT, NULL},
    {"ids", COPY_IDS, "replace(trim(ids, '[]'), ' ', '')"},
    {"made", COPY_INT8, NULL}};

const struct copy_table tide_copy_ledger_tables[] = {
    {.name = "run", .people = "run", COLUMNS(run_columns, 1)},
    {.name = "kind", .people = "kind", COLUMNS(kind_columns, 1)},
    {.name = "account", .people = "account", COLUMNS(account_columns, 1)},
    {.name = "stream", .people = "stream", COLUMNS(stream_columns, 1)},
    {.name = "cycle", .people = "cycle", COLUMNS(cycle_columns, 1)},
    {.name = "job",
     .people = "job",
     COLUMNS(job_columns, 1),
     .sqlite_from = "job j NOT INDEXED LEFT JOIN claim c ON c.job = j.id"
                    " LEFT JOIN detail d ON d.job = j.id",
     .sqlite_where = "j.state <> 2",
     .sqlite_clear = "DELETE FROM claim; DELETE FROM detail; DELETE FROM job",
     .inserts =
         {{"INSERT INTO job (id, state, open_deps, account, priority, kind, scope, dedupe, cycle,"
           " attempts, attempts_max, traits, not_before, size, created, started, finished, run,"
           " noted, payload) VALUES (:id, :state, :open_deps, :account, :priority, :kind, :scope,"
           " :dedupe, :cycle, :attempts, :attempts_max, " TRAITS ", :not_before, :size, :created,"
           " :started, :finished, :run, " NOTED ", :payload)",
           0},
          {"INSERT INTO claim (job, token, owner, run, started, cycle, noted, beat, bytes_done,"
           " cancel_wanted) VALUES (:id, :token, :owner, :run, :started, :cycle, " NOTED ", :beat,"
           " :bytes_done, nullif(:cancel_wanted, 0))",
           BIT(JOB_TOKEN)},
          {DETAIL, BIT(JOB_STATUS) | BIT(JOB_BYTES_DONE) | BIT(JOB_ERROR) | BIT(JOB_RESUME)}}},
    /* SQLite has done jobs in the same table.  A row of no kind is not a job: it holds the
     * greatest id that was ever given (LCP7). */
    {.name = "job_done",
     .people = "job",
     COLUMNS(done_columns, 1),
     .sqlite_from = "job j NOT INDEXED LEFT JOIN detail d ON d.job = j.id",
     .sqlite_where = "j.state = 2 AND j.kind <> 0",
     .sqlite_clear = "DELETE FROM detail; DELETE FROM job",
     .inserts =
         {{"INSERT INTO job (id, state, open_deps, account, priority, kind, scope, dedupe, cycle,"
           " attempts, attempts_max, traits, size, created, started, finished, run, noted, payload)"
           " VALUES (:id, 2, 0, :account, :priority, :kind, 0, :dedupe, :cycle, :attempts,"
           " :attempts_max, " TRAITS ", :size, :created, :started, :finished, :run, " NOTED ","
           " :payload)",
           0},
          {DETAIL, BIT(DONE_STATUS) | BIT(DONE_BYTES_DONE) | BIT(DONE_ERROR) | BIT(DONE_RESUME)}}},
    {.name = "dep", .people = "dependency", COLUMNS(dep_columns, 2)},
    {.name = "bad", .people = "bad item", COLUMNS(bad_columns, 3)},
    {.name = "intent", .people = "intent", COLUMNS(intent_columns, 1)},
    {.name = "schedule", .people = "schedule", COLUMNS(schedule_columns, 1)},
    {.name = "alert", .people = "alert", COLUMNS(alert_columns, 2)},
    /* `running` says that a process did not stop cleanly: not copied, it did not run on the
     * target. */
    {.name = "note", .people = "note", COLUMNS(note_columns, 1), .where = "key <> 'running'"},
    {.name = "batch",
     .people = "batch",
     COLUMNS(batch_columns, 1),
     .inserts = {{"INSERT INTO batch (name, ids, made) VALUES (:name, '[' || :ids || ']', :made)",
                  0}}},
};
const size_t tide_copy_ledger_tables_count = COUNT(tide_copy_ledger_tables);

/* Tables of the ledger that are not copied, or are parts of those above. */
static const char *const own_names[] = {"claim", "detail", "member", "share", "meta", "copying"};

/* ---- tables of the systems, from the catalog ---- */

struct found_column {
    const char *name;
    copy_type type;
    bool key;
};

struct finding {
    struct copy_list *list;
    const struct tide_ledger_copy *copy;
    struct copy_side *side;
    bool second; /* of the two sides */
    bool postgres;
    char *left_out;
    size_t left_out_bytes;
    struct found_column columns[TIDE_COPY_COLUMNS_MAX];
    size_t columns_count;
    const char *table;
    tide_error *err;
};

static const char *keep(struct finding *finding, tide_text text)
{
    return tide_arena_copy(&finding->list->arena, text.data, text.bytes);
}

static bool type_of(const char *name, copy_type *type_out)
{
    static const struct {
        const char *name;
        copy_type type;
    } types[] = {{"INTEGER", COPY_INT8}, {"TEXT", COPY_TEXT}, {"BLOB", COPY_BYTES},
                 {"int8", COPY_INT8},    {"int4", COPY_INT4}, {"int2", COPY_INT2},
                 {"bool", COPY_BOOL},    {"text", COPY_TEXT}, {"bytea", COPY_BYTES}};
    for (size_t i = 0; i < COUNT(types); i++)
        if (strcmp(types[i].name, name) == 0) {
            *type_out = types[i].type;
            return true;
        }
    return false;
}

static tide_status find_column(const tide_text *columns, void *arg)
{
    struct finding *finding = arg;
    if (finding->columns_count == TIDE_COPY_COLUMNS_MAX)
        return tide_error_set(finding->err, TIDE_FULL, "the table %s has too many columns",
                              finding->table);
    struct found_column *column = &finding->columns[finding->columns_count];
    const char *type = keep(finding, columns[1]);
    column->name = keep(finding, columns[0]);
    if (type == NULL || column->name == NULL)
        return tide_error_set(finding->err, TIDE_NO_MEMORY, "no memory for the list of tables");
    if (!type_of(type, &column->type))
        return tide_error_set(finding->err, TIDE_INVALID,
                              "%s.%s is a %s, which this version cannot copy", finding->table,
                              column->name, type);
    column->key = columns[2].bytes == 1 && columns[2].data[0] == '1';
    finding->columns_count++;
    return TIDE_OK;
}

/* Its columns, those of the key first. */
static tide_status find_columns(struct finding *finding, const char *table, tide_error *err)
{
    char sql[600];
    finding->columns_count = 0;
    finding->table = table;
    if (finding->side->pg == NULL)
        (void)snprintf(sql, sizeof sql,
                       "SELECT name, type, pk > 0 FROM pragma_table_info('%s')"
                       " ORDER BY pk = 0, pk, cid",
                       table);
    else
        (void)snprintf(sql, sizeof sql,
                       "SELECT a.attname::text, t.typname::text,"
                       " (array_position(i.indkey::int2[], a.attnum) IS NOT NULL)::int"
                       " FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
                       " LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary"
                       " WHERE a.attrelid = 'tidemark.\"%s\"'::regclass AND a.attnum > 0"
                       " AND NOT a.attisdropped"
                       " ORDER BY array_position(i.indkey::int2[], a.attnum) NULLS LAST, a.attnum",
                       table);
    return tide_copy_side_list(finding->side, sql, 3, find_column, finding, err);
}

static struct copy_table *listed(struct copy_list *list, const char *name, size_t *at_out)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->tables[i].name, name) == 0) {
            *at_out = i;
            return &list->tables[i];
        }
    return NULL;
}

/* Adds a table of a system that was not seen on the other side. */
static tide_status add_found(struct finding *finding, const char *name, tide_error *err)
{
    struct copy_list *list = finding->list;
    if (list->count == TIDE_COPY_TABLES_MAX)
        return tide_error_set(err, TIDE_FULL, "there are more than %d tables",
                              TIDE_COPY_TABLES_MAX);
    struct copy_column *columns =
        tide_arena_take(&list->arena, finding->columns_count * sizeof columns[0]);
    if (columns == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the list of tables");
    struct copy_table *table = &list->tables[list->count];
    *table = (struct copy_table){
        .name = name, .people = name, .columns = columns, .columns_count = finding->columns_count};
    for (size_t i = 0; i < finding->columns_count; i++) {
        columns[i] = (struct copy_column){finding->columns[i].name, finding->columns[i].type, NULL};
        table->keys_count += finding->columns[i].key;
    }
    if (table->keys_count == 0 || table->keys_count > COPY_KEYS_MAX)
        return tide_error_set(err, TIDE_INVALID, "the table %s has no key to copy it by", name);
    list->in_from[list->count] = !finding->second;
    list->in_to[list->count] = finding->second;
    list->count++;
    return TIDE_OK;
}

static bool is_text(copy_type type)
{
    return type >= COPY_TEXT;
}

/* The same table on the second side: it must have the same columns.  PostgreSQL's types
 * are narrower, so they count. */
static tide_status match_found(struct finding *finding, size_t at, tide_error *err)
{
    struct copy_table *table = &finding->list->tables[at];
    struct copy_column *columns = (struct copy_column *)table->columns; /* from add_found() */
    bool same = table->columns_count == finding->columns_count;
    for (size_t i = 0; same && i < table->columns_count; i++) {
        size_t j = 0;
        while (j < finding->columns_count && strcmp(columns[i].name, finding->columns[j].name) != 0)
            j++;
        same = j < finding->columns_count && (j < table->keys_count) == (i < table->keys_count) &&
               is_text(columns[i].type) == is_text(finding->columns[j].type);
        if (same && finding->side->pg != NULL)
            columns[i].type = finding->columns[j].type;
    }
    if (!same)
        return tide_error_set(err, TIDE_INVALID,
                              "the table %s differs on both sides: they were made by different "
                              "versions; start this version once on the source",
                              table->name);
    finding->list->in_to[at] = true;
    return TIDE_OK;
}

static bool is_own(const char *name)
{
    for (size_t i = 0; i < COUNT(own_names); i++)
        if (strcmp(own_names[i], name) == 0)
            return true;
    for (size_t i = 0; i < tide_copy_ledger_tables_count; i++)
        if (strcmp(tide_copy_ledger_tables[i].name, name) == 0)
            return true;
    return false;
}

bool tide_copy_system_has(const struct tide_copy_system *system, const char *table)
{
    const size_t bytes = strlen(system->name);
    return strncmp(table, system->name, bytes) == 0 && table[bytes] == '_';
}

static const struct tide_copy_system *system_of(const struct finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->copy->systems_count; i++)
        if (tide_copy_system_has(&finding->copy->systems[i], name))
            return &finding->copy->systems[i];
    return NULL;
}

/* Names are collected first: a side runs one statement at a time. */
struct names {
    struct finding *finding;
    const char *list[TIDE_COPY_TABLES_MAX];
    size_t count;
};

static tide_status note_name(const tide_text *columns, void *arg)
{
    struct names *names = arg;
    struct finding *finding = names->finding;
    const char *name = keep(finding, columns[0]);
    if (name == NULL)
        return tide_error_set(finding->err, TIDE_NO_MEMORY, "no memory for the list of tables");
    if (is_own(name))
        return TIDE_OK;
    const struct tide_copy_system *system = system_of(finding, name);
    if (system == NULL || strchr(name, '\'') != NULL || strchr(name, '"') != NULL) {
        const size_t used = strlen(finding->left_out);
        (void)snprintf(finding->left_out + used, finding->left_out_bytes - used, "%s%s",
                       used > 0 ? ", " : "", name);
        return TIDE_OK;
    }
    if (system->stays != NULL)
        TIDE_TRY(system->stays(name, finding->err));
    if (names->count == TIDE_COPY_TABLES_MAX)
        return tide_error_set(finding->err, TIDE_FULL, "there are more than %d tables",
                              TIDE_COPY_TABLES_MAX);
    names->list[names->count++] = name;
    return TIDE_OK;
}

static tide_status find_tables(struct finding *finding, tide_error *err)
{
    struct names names = {.finding = finding};
    tide_status rc = tide_copy_side_list(
        finding->side,
        finding->side->pg == NULL
            ? "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
              " ORDER BY name"
            : "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid ="
              " c.relnamespace WHERE n.nspname = 'tidemark' AND c.relkind IN ('r', 'p')"
              " AND NOT c.relispartition ORDER BY c.relname::text COLLATE \"C\"",
        1, note_name, &names, err);
    for (size_t i = 0; rc == TIDE_OK && i < names.count; i++) {
        size_t at = 0;
        rc = find_columns(finding, names.list[i], err);
        if (rc == TIDE_OK && listed(finding->list, names.list[i], &at) != NULL)
            rc = match_found(finding, at, err);
        else if (rc == TIDE_OK)
            rc = add_found(finding, names.list[i], err);
    }
    return rc;
}

void tide_copy_list_init(struct copy_list *list, tide_mem *mem)
{
    memset(list, 0, sizeof *list);
    tide_arena_init(&list->arena, mem, 1 << 20);
}

void tide_copy_list_done(struct copy_list *list)
{
    tide_arena_done(&list->arena);
}

tide_status tide_copy_list_make(struct copy_list *list, const struct tide_ledger_copy *copy,
                                struct copy_side *from, struct copy_side *to, char *left_out,
                                size_t left_out_bytes, tide_error *err)
{
    char ignored[300] = "";
    left_out[0] = '\0';
    list->count = tide_copy_ledger_tables_count;
    for (size_t i = 0; i < list->count; i++) {
        list->tables[i] = tide_copy_ledger_tables[i];
        list->in_from[i] = list->in_to[i] = true;
    }
    struct finding finding = {.list = list,
                              .copy = copy,
                              .side = from,
                              .left_out = left_out,
                              .left_out_bytes = left_out_bytes,
                              .err = err};
    TIDE_TRY(find_tables(&finding, err));
    if (to == NULL)
        return TIDE_OK;
    struct finding second = {.list = list,
                             .copy = copy,
                             .side = to,
                             .second = true,
                             .left_out = ignored,
                             .left_out_bytes = sizeof ignored,
                             .err = err};
    return find_tables(&second, err);
}
