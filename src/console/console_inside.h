/* console_inside.h - declarations shared by the files of the console system. */
#ifndef TIDE_CONSOLE_INSIDE_H
#define TIDE_CONSOLE_INSIDE_H

#include "console/console.h"
#include "console/dates.h"
#include "engine/accounts/archive_id.h"
#include "ledger/rows.h"
#include "tidemark_inside.h"

/* An open sign-in. */
struct tide_console_user {
    uint32_t account;
    char name[128];
    tide_tokens *tokens;
    tide_searchconsole *client;
    uint64_t days, rows, bytes, readings_more, rows_missing; /* atomic; as in the state */
};

/* An open site: its file is open.  Jobs read it without the lock: only `refused` changes. */
struct tide_console_open_site {
    struct tide_console_site row;
    struct tide_console_open_site *former; /* the same with the sign-in before; NULL: none */
    tide_console_store *store;
    struct tide_console_user *user;
    char refused[400]; /* why it is refused, since the last call of this process; "": it is not */
};

enum { TIDE_CONSOLE_USERS_MAX = 64 };

struct tide_console {
    tide_mem *mem;
    struct tide_console_options options;
    char dir[4096];
    uint32_t plan_kind, page_kind, sites_kind;
    tide_lock *lock; /* guards everything below */
    /* On a shared ledger: locks out other writers of our directory.  NULL: no site is open. */
    tide_file_lock *dir_lock;
    struct tide_console_user *users[TIDE_CONSOLE_USERS_MAX];
    size_t users_count;
    struct tide_console_open_site *sites[TIDE_CONSOLE_SITES_MAX];
    size_t sites_count;
};

/* The site of a job of `account`; opens it on first use.  Borrowed. */
tide_status tide_console_use(tide_console *console, uint64_t site, uint32_t account,
                             struct tide_console_open_site **site_out, tide_error *err);
/* The sign-in of an account; opens it on first use.  Borrowed. */
tide_status tide_console_user(tide_console *console, uint32_t account,
                              struct tide_console_user **user_out, tide_error *err);
enum { TIDE_CONSOLE_STREAM_BYTES = 96 };
void tide_console_stream_name(const struct tide_console_site *site,
                              const struct tide_console_set *set, uint32_t epoch,
                              char name_out[TIDE_CONSOLE_STREAM_BYTES]);
/* The stream of a series; the epoch grows when an earlier day is requested. */
tide_status tide_console_stream(tide_console *console, const struct tide_console_site *site,
                                const struct tide_console_set *set, uint32_t epoch,
                                const char *floor, uint64_t *stream_out, tide_error *err);

/* The ledger's row of a series. */
struct tide_console_series_row {
    uint64_t site;
    struct tide_console_set set;
    uint32_t epoch;
    char floor[16];  /* the first day of its stream */
    char opened[16]; /* the last day that has a cycle */
};
tide_status tide_console_sites_read(tide_rows db,
                                    void (*visit)(const struct tide_console_site *site, void *arg),
                                    void *arg, tide_error *err);
/* TIDE_NOT_FOUND. */
tide_status tide_console_series_get(tide_rows db, struct tide_console_series_row *row,
                                    tide_error *err);
tide_status tide_console_series_put(tide_rows db, const struct tide_console_series_row *row,
                                    tide_error *err);

/* Every handler returns through this: files that another process still uses are waited for. */
tide_status tide_console_ended(tide_console *console, tide_job *job, tide_status rc);
/* ---- refused sites (refused.c) ---- */

/* Whether a retry cannot help.  A 404 counts: the engine would take a vanished page for done, and
 * the tidemark would pass its day. */
static inline bool tide_console_is_final(tide_status rc)
{
    return tide_status_class(rc) == TIDE_CLASS_PERMANENT ||
           tide_status_class(rc) == TIDE_CLASS_GONE;
}
/* Records that the server refuses this site permanently; TIDE_PERMANENT with that text. */
tide_status tide_console_refuse(tide_console *console, struct tide_console_open_site *site,
                                const char *text, tide_error *err);
/* TIDE_PERMANENT: it is refused; no call is needed. */
tide_status tide_console_is_refused(tide_console *console,
                                    const struct tide_console_open_site *site, tide_error *err);
/* The server answered for this site: forgets the refusal and restarts the failed jobs. */
tide_status tide_console_accepted(tide_console *console, struct tide_console_open_site *site,
                                  tide_error *err);
tide_status tide_console_refused_read(tide_rows db, tide_console_refused_visit *visit, void *arg,
                                      tide_error *err);
/* A pattern for payloads of a site's plans and pages, which start with its number. */
enum { TIDE_CONSOLE_SITE_LIKE_BYTES = 48 };
void tide_console_site_like(uint64_t site, char out[TIDE_CONSOLE_SITE_LIKE_BYTES]);

/* The payload of a page job. */
struct tide_console_ask {
    uint64_t site;
    uint64_t plan; /* the plan that opened the day; a random number, since ledgers are replaced */
    struct tide_console_set set;
    char date[16];
    bool final;
    bool totals_next; /* request the totals first */
    bool totals;      /* the totals are known: */
    double clicks, impressions, position;
    uint32_t start_row, row_limit;
    uint32_t reading, from; /* as in struct tide_console_part */
};
tide_status tide_console_ask_write(const struct tide_console_ask *ask, tide_buf *out);
tide_status tide_console_ask_read(tide_text payload, struct tide_console_ask *ask_out,
                                  tide_error *err);

struct tide_console_part tide_console_ask_part(const struct tide_console_ask *ask);
/* Whether the reading continues after a page of `rows`.  A reading across a border is one page. */
bool tide_console_ask_more(const struct tide_console_ask *ask, uint32_t rows);
/* Chooses where to look for rows that were on no page.  One answer is sorted once and has each row
 * once, so pages become as large as possible; a day of more than one page is read alternately from
 * its first row on and across the border between its pages, where rows get lost. */
void tide_console_ask_again(struct tide_console_ask *ask,
                            const struct tide_console_committed *so_far);

/* Handlers; context is the tide_console. */
tide_handler tide_console_plan;     /* plan.c */
tide_handler tide_console_page_job; /* page.c */
tide_handler tide_console_list_job; /* list.c */

#endif
