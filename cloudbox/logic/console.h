/* console.h - Search Console: properties and their search analytics, out of a seed.
 *
 * A day of a property has a fixed number of (query, page, country, device) rows
 * with clicks and impressions that follow a power law; every total is the sum
 * of its rows plus what rare queries hide.  Nothing is stored.
 *
 * Invariants:
 *   C1  same seed, site, type and date: same rows; sums agree between
 *       groupings that do not contain the query dimension.
 *   C2  at most 50,000 rows a day and type; rows by clicks descending, ties in
 *       an order that changes from call to call.
 *   C3  totals with the query dimension are below those without.
 *   C4  the last two days are not final; their numbers grow until they are.
 */
#ifndef BOX_CONSOLE_H
#define BOX_CONSOLE_H

#include "logic/service.h"

struct box_sites *box_sites_new(uint64_t seed);
void box_sites_free(struct box_sites *sites);
/* Domain ("sc-domain:x") and URL-prefix properties.  TIDE_INVALID: neither. */
tide_status box_sites_add(struct box_sites *sites, tide_text site, const struct box_user *user,
                          uint32_t rows_per_day, tide_error *err);
/* 1-based number of a site, for the quota's windows; 0: unknown. */
uint32_t box_sites_number(const struct box_sites *sites, tide_text site);
/* What a query costs of the hidden load quota. */
uint32_t box_sites_load(const json_t *query);

#endif
