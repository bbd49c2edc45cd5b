/* console_inside.h - what the files of the console system share. */
#ifndef TIDE_CONSOLE_INSIDE_H
#define TIDE_CONSOLE_INSIDE_H

#include "console/console.h"
#include "console/dates.h"
#include "engine/archive_id.h"
#include "engine/ledger_rows.h"

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
    uint64_t days, rows, bytes;
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
/* Halts the account of this job (K3) and says why; returns `rc`. */
tide_status tide_console_halt(tide_console *console, tide_job *job, tide_status rc,
                              const char *text);

/* What a page job is about: its payload. */
struct tide_console_ask {
    uint64_t site;
    uint64_t plan; /* the job that opened the day */
    struct tide_console_set set;
    char date[16];
    bool final;
    bool totals_next; /* the totals come first */
    bool totals;      /* they are known: */
    double clicks, impressions, position;
    uint32_t start_row, row_limit;
};
tide_status tide_console_ask_write(const struct tide_console_ask *ask, tide_buf *out);
tide_status tide_console_ask_read(tide_text payload, struct tide_console_ask *ask_out,
                                  tide_error *err);

/* Handlers; context is the tide_console. */
tide_handler tide_console_plan;     /* plan.c */
tide_handler tide_console_page_job; /* page.c */
tide_handler tide_console_list_job; /* list.c */

#endif
