/* console_inside.h - what the files of the console system share. */
#ifndef TIDE_CONSOLE_INSIDE_H
#define TIDE_CONSOLE_INSIDE_H

#include "console/console.h"
#include "console/dates.h"
#include "engine/accounts/archive_id.h"
#include "ledger/rows.h"

/* A sign-in in use. */
struct tide_console_user {
    uint32_t account;
    char name[128];
    tide_tokens *tokens;
    tide_searchconsole *client;
};

/* A site in use: its file is open. */
struct tide_console_open_site {
    struct tide_console_site row;
    tide_console_store *store;
    struct tide_console_user *user;
    char refused[400]; /* why, since this process asked last; "": it is not */
};

enum { TIDE_CONSOLE_USERS_MAX = 64 };

struct tide_console {
    tide_mem *mem;
    struct tide_console_options options;
    char dir[4096];
    uint32_t plan_kind, page_kind, sites_kind;
    tide_lock *lock; /* over everything below */
    /* On a shared ledger: nobody else writes to our directory.  NULL: no site is open. */
    tide_file_lock *dir_lock;
    struct tide_console_user *users[TIDE_CONSOLE_USERS_MAX];
    size_t users_count;
    struct tide_console_open_site *sites[TIDE_CONSOLE_SITES_MAX];
    size_t sites_count;
    uint64_t days, rows, bytes, readings_more, rows_missing;
    tide_buf listed; /* of the last console.sites: site, level, each terminated */
    char signed_out[128];
    char signed_out_text[400];
    char halted[400];
};

/* The site of a job, opened when it is not yet.  Borrowed. */
tide_status tide_console_use(tide_console *console, uint64_t site,
                             struct tide_console_open_site **site_out, tide_error *err);
/* The sign-in of an account, opened when it is not yet.  Borrowed. */
tide_status tide_console_user(tide_console *console, uint32_t account,
                              struct tide_console_user **user_out, tide_error *err);
enum { TIDE_CONSOLE_STREAM_BYTES = 96 };
void tide_console_stream_name(const struct tide_console_site *site,
                              const struct tide_console_set *set, uint32_t epoch,
                              char name_out[TIDE_CONSOLE_STREAM_BYTES]);
/* The stream of a series; the epoch grows when an earlier day is asked for. */
tide_status tide_console_stream(tide_console *console, const struct tide_console_site *site,
                                const struct tide_console_set *set, uint32_t epoch,
                                const char *floor, uint64_t *stream_out, tide_error *err);

/* The series as the ledger remembers it. */
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

/* How every handler ends: a refused sign-in, or a halt, is noted for whoever watches. */
tide_status tide_console_ended(tide_console *console, tide_job *job, tide_status rc,
                               const tide_error *err);
/* Halts the account of this job (B2) and says why; returns `rc`. */
tide_status tide_console_halt(tide_console *console, tide_job *job, tide_status rc,
                              const char *text);

/* ---- sites that are refused (refused.c) ---- */

/* Whether trying again cannot help.  A 404 counts: the engine would take a vanished page for
 * done, and the mark would pass its day. */
static inline bool tide_console_is_final(tide_status rc)
{
    return tide_status_class(rc) == TIDE_CLASS_PERMANENT ||
           tide_status_class(rc) == TIDE_CLASS_GONE;
}
/* Notes that the server refuses this site for good; TIDE_PERMANENT with that text. */
tide_status tide_console_refuse(tide_console *console, struct tide_console_open_site *site,
                                const char *text, tide_error *err);
/* TIDE_PERMANENT: it does, no need to ask. */
tide_status tide_console_is_refused(tide_console *console,
                                    const struct tide_console_open_site *site, tide_error *err);
/* The server answered for this site: forgets the refusal, and lets what failed run again. */
tide_status tide_console_accepted(tide_console *console, struct tide_console_open_site *site,
                                  tide_error *err);
tide_status tide_console_refused_read(tide_rows db, tide_console_refused_visit *visit, void *arg,
                                      tide_error *err);
/* A pattern for payloads of a site's plans and pages, which begin with its number. */
enum { TIDE_CONSOLE_SITE_LIKE_BYTES = 48 };
void tide_console_site_like(uint64_t site, char out[TIDE_CONSOLE_SITE_LIKE_BYTES]);

/* What a page job is about: its payload. */
struct tide_console_ask {
    uint64_t site;
    uint64_t plan; /* that opened the day; a random number, since ledgers come and go */
    struct tide_console_set set;
    char date[16];
    bool final;
    bool totals_next; /* the totals come first */
    bool totals;      /* they are known: */
    double clicks, impressions, position;
    uint32_t start_row, row_limit;
    uint32_t reading, from; /* as in struct tide_console_part */
};
tide_status tide_console_ask_write(const struct tide_console_ask *ask, tide_buf *out);
tide_status tide_console_ask_read(tide_text payload, struct tide_console_ask *ask_out,
                                  tide_error *err);

struct tide_console_part tide_console_ask_part(const struct tide_console_ask *ask);
/* Whether the reading goes on after a page of so many rows.  One across a border is one page. */
bool tide_console_ask_more(const struct tide_console_ask *ask, uint32_t rows);
/* Where to look for rows that were on no page.  One answer is sorted once and has each row
 * once, so pages become as large as they can be; a day of more than one is read by turns from
 * its first row on, and across the border between its pages, where the rows got lost. */
void tide_console_ask_again(struct tide_console_ask *ask,
                            const struct tide_console_committed *so_far);

/* Handlers; context is the tide_console. */
tide_handler tide_console_plan;     /* plan.c */
tide_handler tide_console_page_job; /* page.c */
tide_handler tide_console_list_job; /* list.c */

#endif
