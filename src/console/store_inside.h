/* store_inside.h - declarations shared by the files of the store. */
#ifndef TIDE_CONSOLE_STORE_INSIDE_H
#define TIDE_CONSOLE_STORE_INSIDE_H

#include "console/names.h"
#include "console/store.h"
#include "db/migrate.h"

extern const struct tide_schema tide_console_schema;

/* Dimensions whose texts have numbers: all but the date. */
enum { TIDE_CONSOLE_NAMED = 5, TIDE_CONSOLE_DAY_FACTS = 65536 };

enum tide_console_sql {
    TIDE_CONSOLE_SERIES_FIND,
    TIDE_CONSOLE_SERIES_LIST,
    TIDE_CONSOLE_DAYS,
    TIDE_CONSOLE_SUMS,
    TIDE_CONSOLE_NAME_OF,
    TIDE_CONSOLE_READ_SQL = TIDE_CONSOLE_NAME_OF + TIDE_CONSOLE_NAMED,
    /* the rest only for files open for writing */
    TIDE_CONSOLE_SERIES_ADD = TIDE_CONSOLE_READ_SQL,
    TIDE_CONSOLE_DAY_FIND,
    TIDE_CONSOLE_DAY_PUT,
    TIDE_CONSOLE_FACTS_REMOVE,
    TIDE_CONSOLE_FACT_ADD,
    TIDE_CONSOLE_SUM_PUT,
    TIDE_CONSOLE_STAGE,
    TIDE_CONSOLE_STAGED,
    TIDE_CONSOLE_STAGED_ROWS,
    TIDE_CONSOLE_UNSTAGE_READINGS,
    TIDE_CONSOLE_UNSTAGE,
    TIDE_CONSOLE_NAME_FIND,
    TIDE_CONSOLE_NAME_ADD = TIDE_CONSOLE_NAME_FIND + TIDE_CONSOLE_NAMED,
    TIDE_CONSOLE_SQL = TIDE_CONSOLE_NAME_ADD + TIDE_CONSOLE_NAMED,
};
extern const char *const tide_console_sql[TIDE_CONSOLE_SQL];
/* The days of a file that is open read-only and not yet migrated to version 2. */
extern const char tide_console_sql_days_1[];

struct tide_console_store {
    tide_mem *mem;
    tide_world *world;
    tide_lock *lock; /* guards everything below */
    tide_db db;
    bool read_only;
    char site[TIDE_SC_SITE_BYTES_MAX + 1];
    tide_names names[TIDE_CONSOLE_NAMED];
};

/* A row with numbers for its texts, as staged; 0: that dimension was not requested. */
struct tide_console_fact {
    uint32_t keys[TIDE_CONSOLE_NAMED];
    double clicks, impressions, position;
};

/* The rows of all readings of a day so far, including the one that ends now. */
struct tide_console_gathered {
    tide_buf facts;         /* each key once, by clicks */
    uint64_t counted;       /* rows that the last complete reading returned */
    uint64_t missing;       /* of these were on no page */
    bool proven;            /* nothing is missing */
    bool gap;               /* a page of this reading is not staged; the other fields are not set */
    uint32_t reading_first; /* earlier ones are of another state of the day */
};
void tide_console_gathered_init(struct tide_console_gathered *gathered, tide_mem *mem);
void tide_console_gathered_done(struct tide_console_gathered *gathered);
/* `page` has the facts that end this reading. */
tide_status tide_console_gather(tide_console_store *store, uint64_t series,
                                const struct tide_console_part *part, const tide_buf *page,
                                struct tide_console_gathered *gathered, tide_error *err);

struct tide_console_page {
    tide_mem *mem;
    tide_buf texts;
    struct tide_console_line {
        uint32_t at[TIDE_CONSOLE_NAMED]; /* in texts */
        uint32_t bytes[TIDE_CONSOLE_NAMED];
        double clicks, impressions, position;
    } * lines;
    size_t count, capacity;
};

/* An entry of day_sum, unpacked. */
struct tide_console_sum {
    uint32_t key;
    double clicks, impressions, weight; /* position * impressions */
};
enum { TIDE_CONSOLE_SUM_BYTES = 28, TIDE_CONSOLE_SUMS_MAX = 64 << 20 };

/* Sums by key: open addressing, embedded. */
typedef struct tide_console_sums {
    tide_mem *mem;
    struct tide_console_sum *cells;
    size_t capacity, count;
} tide_console_sums;
void tide_console_sums_done(tide_console_sums *sums);
void tide_console_sums_clear(tide_console_sums *sums);
tide_status tide_console_sums_add(tide_console_sums *sums, const struct tide_console_sum *sum);
tide_status tide_console_sums_pack(const tide_console_sums *sums, tide_buf *out);
/* TIDE_CORRUPT: a part of an entry is missing. */
tide_status tide_console_sums_unpack(tide_console_sums *sums, tide_text body);

/* The name of a dimension that has numbers, 0 .. TIDE_CONSOLE_NAMED - 1. */
static inline const char *tide_console_named(unsigned index)
{
    return tide_sc_dimension_name((tide_sc_dimension)(index + TIDE_SC_QUERY));
}

/* The number of a series; 0: there is none (and `make` is false). */
tide_status tide_console_series(tide_console_store *store, const struct tide_console_set *set,
                                bool make, uint64_t *series_out, tide_error *err);

#endif
