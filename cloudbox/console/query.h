/* query.h - a search analytics query, read and checked.
 *
 * Turns the body of searchanalytics.query into plain numbers and filters that
 * are ready to run, or into the 400 that Google would send.  Names of fields may
 * be in camel or snake case, names of values in any case with or without
 * underscores; an unknown field is refused.
 *
 * Regular expressions are RE2 at Google and cloudbox/gate/pattern.h here; nothing regards case.
 */
#ifndef BOX_CONSOLE_QUERY_H
#define BOX_CONSOLE_QUERY_H

#include "cloudbox/console/data.h"
#include "cloudbox/gate/service.h"

#include <regex.h>

enum {
    BOX_ROW_LIMIT_MAX = 25000,
    BOX_ROW_LIMIT_DEFAULT = 1000,
    BOX_ANALYTICS_ROWS_MAX = 50000, /* that one query can ever reach */
    BOX_FILTERS_MAX = 64,
    BOX_FILTER_BYTES_MAX = 4096,
};

typedef enum box_dimension {
    BOX_BY_DATE,
    BOX_BY_HOUR,
    BOX_BY_QUERY,
    BOX_BY_PAGE,
    BOX_BY_COUNTRY,
    BOX_BY_DEVICE,
    BOX_BY_APPEARANCE,
    BOX_DIMENSIONS,
} box_dimension;

typedef enum box_aggregation {
    BOX_AGGREGATE_AUTO,
    BOX_AGGREGATE_PROPERTY,
    BOX_AGGREGATE_PAGE,
    BOX_AGGREGATE_PANEL,
} box_aggregation;

typedef enum box_data_state { BOX_DATA_FINAL, BOX_DATA_ALL, BOX_DATA_HOURLY } box_data_state;

struct box_filter {
    box_dimension dimension;
    bool negated;
    enum { BOX_FILTER_EQUALS, BOX_FILTER_CONTAINS, BOX_FILTER_REGEX } kind;
    char *text; /* in the call's arena, lower case unless a regex */
    size_t bytes;
    regex_t regex; /* compiled when kind says so */
};

struct box_analytics {
    int32_t first_day;
    int32_t last_day;
    box_dimension dimensions[BOX_DIMENSIONS];
    size_t dimensions_count;
    uint32_t grouped;  /* bits of box_dimension */
    uint32_t filtered; /* the same */
    box_search type;
    box_data_state state;
    box_aggregation aggregation; /* as asked */
    box_aggregation aggregated;  /* as answered */
    uint32_t row_limit;
    uint32_t start_row;
    struct box_filter filters[BOX_FILTERS_MAX];
    size_t filters_count;
};

/* false: the answer is a 400.  Afterwards box_analytics_done(), in either case. */
bool box_analytics_parse(struct box_call *call, const json_t *body, struct box_analytics *query);
void box_analytics_done(struct box_analytics *query);
/* Whether one value passes one filter; `text` is terminated. */
bool box_filter_passes(const struct box_filter *filter, const char *text, size_t bytes);

/* Runs the query at the call's now and writes the answer.  `luck` decides the
 * order of ties: rows with the same clicks change places inside runs of
 * BOX_TIE_RUN rows, counted from the first row plus `tie_shift`.  With a shift
 * of 0, pages that begin and end at multiples of it are exact (BCON2). */
enum { BOX_TIE_RUN = 8 };
void box_analytics_answer(struct box_call *call, const struct box_property *property,
                          const struct box_analytics *query, uint64_t luck, uint32_t tie_shift);

static inline bool box_analytics_uses(const struct box_analytics *query, box_dimension dimension)
{
    return ((query->grouped | query->filtered) >> dimension & 1u) != 0;
}

#endif
