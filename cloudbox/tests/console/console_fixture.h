/* console_fixture.h - what every file of the tests of Search Console needs: a cloud with two
 * owners, ways to ask it, and what its answers say.  Each test begins with a cloud of its
 * own. */
#ifndef BOX_TESTS_CONSOLE_FIXTURE_H
#define BOX_TESTS_CONSOLE_FIXTURE_H

#include "base/check.h"
#include "cloudbox/console/console.h"
#include "cloudbox/console/query.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/signin/auth.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 2026-09-10 20:00 UTC, 13:00 in California. */
#define NOW_MS   (UINT64_C(1789070400) * 1000)
#define HOUR_MS  (UINT64_C(3600) * 1000)
#define DAY_MS   (24 * HOUR_MS)
#define QUERY_AT "/webmasters/v3/sites/sc-domain%3Aexample.com/searchAnalytics/query"

/* The number of a day that is written right. */
int32_t day(const char *text);

/* ---- a cloud with two owners ---- */

struct world {
    box_cloud *cloud;
    uint64_t now_ms;
    struct box_answer answer;
    json_t *json; /* of the last answer */
};

int setup(void **state);
int teardown(void **state);

/* ---- asking ---- */

/* Pieces of queries: one day, and a filter on it. */
#define DAYS "\"startDate\":\"2026-08-01\",\"endDate\":\"2026-08-01\""
#define FILTER(d, o, e)                                                                            \
    "{" DAYS ",\"dimensionFilterGroups\":[{\"filters\":[{\"dimension\":\"" d                       \
    "\",\"operator\":\"" o "\",\"expression\":\"" e "\"}]}]}"

/* The query for a page of the days from 2026-08-01 on. */
void page_body(char *out, size_t bytes, const char *dimensions, const char *last, size_t start,
               size_t limit);

/* The status; the answer has to be JSON. */
int serve(struct world *world, const char *token, box_verb verb, const char *target,
          const char *body);
/* A query of Ann's that must succeed; the rows, borrowed, NULL when absent. */
json_t *rows_of(struct world *world, const char *body);

/* ---- what was answered ---- */

const char *message_of(struct world *world);
const char *reason_of(struct world *world);

struct sums {
    double clicks;
    double impressions;
    double positions;
    size_t rows;
};

/* Checks the order and the rates, too. */
struct sums sums_of(const json_t *rows);

#endif
