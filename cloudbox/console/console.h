/* console.h - Search Console: properties and their search analytics, out of a seed.
 *
 * A day of a property has a fixed number of (query, page, country, device) rows
 * with clicks and impressions that follow a power law; every total is the sum
 * of its rows plus what rare queries hide.  Nothing is stored.
 *
 * Invariants:
 *   BCON1  same seed, site, type and date: same rows; sums agree between groupings that do not
 *          contain the query dimension.
 *   BCON2  no query reaches more than 50,000 rows; rows by clicks descending, ties in an order that
 *          changes from call to call, inside runs of 8 rows: pages that begin and end at multiples
 *          of 8 hold every row once.  The fault "list-shift" moves the runs, so that page borders
 *          lose and repeat rows.
 *   BCON3  totals with the query dimension are below those without.
 *   BCON4  a day is final one to two days after its end, so the newest final day is the day before
 *          yesterday or the one before; until then numbers grow.
 */
#ifndef BOX_CONSOLE_H
#define BOX_CONSOLE_H

#include "cloudbox/gate/service.h"

extern const struct box_service box_console;
struct box_sites *box_cloud_sites(box_cloud *cloud);

/* A property with rows per day, and a user, who is made if need be; see box_sites_add(). */
tide_status box_cloud_add_site(box_cloud *cloud, tide_text site, tide_text email,
                               uint32_t rows_per_day, tide_error *err);
/* Domain ("sc-domain:x") and URL-prefix properties.  TIDE_INVALID: neither, or
 * too many rows.  The first user of a property owns it, further ones are full
 * users (their rows_per_day is ignored); TIDE_EXISTS: that user has it. */
tide_status box_sites_add(struct box_sites *sites, tide_text site, const struct box_user *user,
                          uint32_t rows_per_day, tide_error *err);
/* 1-based number of a site; 0: unknown. */
uint32_t box_sites_number(const struct box_sites *sites, tide_text site);

/* ---- limits (limits.c) ---- */

enum { BOX_METER_ANALYTICS = 1, BOX_METER_CONSOLE_OTHER = 2, BOX_CONSOLE_LIMITS = 8 };
extern const struct box_limit box_console_limits[BOX_CONSOLE_LIMITS];
extern const struct box_problem box_console_rate;
/* What a query costs of the hidden load quota: a unit per day of its range,
 * times 10 for grouping or filtering by page or by query, times 40 for both. */
uint32_t box_sites_load(const json_t *query);
uint32_t box_console_load(const struct box_call *call);
void box_console_refuse(struct box_call *call, const struct box_limit *limit, uint64_t retry_at_ms);

#endif
