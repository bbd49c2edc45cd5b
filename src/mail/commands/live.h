/* live.h - the progress display of a running sync: the block that is redrawn in place,
 * the plain line, and the arithmetic for both.
 *
 * Pure: takes numbers and a width, returns text.  No clock, no terminal, no file;
 * watch.c has those.
 *
 * Invariants (tests/unit/mail/mail_live_test.c):
 *   V1  no line of a block is wider than the terminal less one column, and there are
 *       fewer lines than it has rows: nothing wraps and nothing scrolls.
 *   V2  the stored count is never shown above the total, nor 100 % before all is stored.
 *   V3  a time left is shown only when it is known; it is never shorter than the
 *       provider's quota allows (M6b).
 *   V4  without color a block contains only text and line ends.
 */
#ifndef TIDE_CLI_MAIL_LIVE_H
#define TIDE_CLI_MAIL_LIVE_H

#include "base/buf.h"

#define MAIL_LIVE_UNKNOWN UINT64_MAX

enum {
    MAIL_LIVE_COLUMNS_MAX = 300, /* wider terminals are used up to here */
    MAIL_METER_SAMPLES = 64,
    MAIL_METER_MS = 10000, /* the time over which a rate is measured */
};

struct mail_live {
    char email[256];
    uint64_t stored;
    uint64_t total;        /* MAIL_LIVE_UNKNOWN */
    uint64_t watermark_ms; /* 0: none yet */
    bool rate_known;
    double messages_per_s, bytes_per_s;
    uint64_t quota_used, quota_max; /* quota units of the last minute; max 0: unknown */
    uint64_t in_flight, retried, bad;
    uint64_t left_ms; /* MAIL_LIVE_UNKNOWN */
    char note[320];   /* why there is no progress; "": there is */
};

/* The block for a terminal with `columns` and `rows`; each line ends with '\n'. */
tide_status mail_live_block(const struct mail_live *accounts, size_t count, unsigned columns,
                            unsigned rows, bool color, tide_buf *out, unsigned *lines_out);
/* One line for a log, with a line end. */
tide_status mail_live_line(const struct mail_live *account, tide_buf *out);
/* The columns that a text takes: its characters, without color codes. */
unsigned mail_live_columns(tide_text text);

/* How long `messages` will take: as long as the quota requires, or longer if the last
 * seconds were slower.  MAIL_LIVE_UNKNOWN while neither is known. */
uint64_t mail_live_left_ms(uint64_t messages, uint64_t units_each, uint64_t units_per_minute,
                           bool rate_known, double messages_per_s);

/* ---- rates over the last seconds ---- */

struct mail_meter {
    struct mail_meter_sample {
        uint64_t at_ms, messages, bytes;
    } samples[MAIL_METER_SAMPLES];
    size_t first, count;
};
/* Adds a sample of the totals.  If they are lower than before (another archive), starts over. */
void mail_meter_add(struct mail_meter *meter, uint64_t now_ms, uint64_t messages, uint64_t bytes);
/* false: not known yet. */
bool mail_meter_rate(const struct mail_meter *meter, double *messages_per_s_out,
                     double *bytes_per_s_out);

#endif
