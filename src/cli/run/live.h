/* live.h - the progress of running work as text: the block that is redrawn in place, the plain
 * line, and the arithmetic for both.
 *
 * Pure: takes numbers and a width, returns text.  No clock, no terminal, no file;
 * display.c has those.
 *
 * Invariants (tests/unit/cli/live_test.c):
 *   LIVE1  no line of a block is wider than the terminal less one column, and there are fewer lines
 *          than it has rows: nothing wraps and nothing scrolls.
 *   LIVE2  what is done is never shown above the total, nor 100 % before all is done.
 *   LIVE3  a time left is shown only when it is known; it is never shorter than the provider's
 *          quota allows (M6b).
 *   LIVE4  without color a block contains only text and line ends.
 *   LIVE5  a total that is known moves only when what is counted moved by more than the samples of
 *          one moment differ by (cli_total_steady()).
 */
#ifndef TIDE_CLI_CLI_LIVE_H
#define TIDE_CLI_CLI_LIVE_H

#include "base/buf.h"

#define CLI_UNKNOWN UINT64_MAX

enum {
    CLI_LIVE_COLUMNS_MAX = 300, /* wider terminals are used up to here */
    CLI_LIVE_MORE_MAX = 4,
    CLI_METER_SAMPLES = 64,
    CLI_METER_MS = 10000, /* the time over which a rate is measured */
    CLI_PACE_MS = 120000, /* the same for a time left: quotas by the minute make bursts */
};

/* What a system counts, by the names of its display and of its JSON events. */
struct cli_columns {
    const char *done, *done_json; /* "stored": messages, days */
    const char *rate, *rate_json; /* "msg/s", "messages_per_s" */
    uint64_t units_each;          /* quota units that one of them costs at least; 0: unknown */
    bool tidemark;                /* an account has one */
    struct {
        const char *name, *json;
    } more[CLI_LIVE_MORE_MAX]; /* further counts; the first NULL ends them */
};

/* The work of one account. */
struct cli_live {
    char name[256];
    char phase[40]; /* "listing", "fetching": what it does; "": it has no phases */
    uint64_t done;
    uint64_t total;       /* CLI_UNKNOWN */
    uint64_t bytes;       /* of what is done */
    uint64_t tidemark_ms; /* 0: none yet */
    bool rate_known;
    double done_per_s, bytes_per_s;
    uint64_t quota_used, quota_max; /* quota units of the last minute; max 0: unknown */
    uint64_t in_flight, retried, bad;
    uint64_t left_ms; /* CLI_UNKNOWN */
    uint64_t more[CLI_LIVE_MORE_MAX];
    char note[320]; /* why there is no progress; "": there is */
};

/* The block for a terminal with `columns` and `rows`; each line ends with '\n'. */
tide_status cli_live_block(const struct cli_columns *of, const struct cli_live *lives, size_t count,
                           unsigned columns, unsigned rows, bool color, tide_buf *out,
                           unsigned *lines_out);
/* One line for a log, with a line end. */
tide_status cli_live_line(const struct cli_columns *of, const struct cli_live *live, tide_buf *out);
/* The columns that a text takes: its characters, without color codes. */
unsigned cli_live_width(tide_text text);

/* How long `left` of them will take: as long as the quota requires, or longer if the last
 * seconds were slower.  CLI_UNKNOWN while neither is known. */
uint64_t cli_left_ms(uint64_t left, uint64_t units_each, uint64_t units_per_minute, bool rate_known,
                     double done_per_s);

/* The total to show when `shown` is on the screen and `counted` is the newest count.  What is done and
 * what is left are counted one after the other, while work goes on: `slack` is how much the sum may be
 * off for that reason alone (LIVE5).  Either may be CLI_UNKNOWN. */
uint64_t cli_total_steady(uint64_t shown, uint64_t counted, uint64_t done, uint64_t slack);

/* ---- how fast it goes in the long run ---- */

/* An average over CLI_PACE_MS in which what is longer ago counts less: work that a quota allows in
 * bursts has a steady one.  Zeroed at the start. */
struct cli_pace {
    uint64_t first_ms, at_ms, moved_ms, done;
    double per_s;
    bool begun;
};
void cli_pace_add(struct cli_pace *pace, uint64_t now_ms, uint64_t done);
/* false: not known yet.  0: nothing has moved for two minutes. */
bool cli_pace_rate(const struct cli_pace *pace, double *done_per_s_out);

/* ---- rates over the last seconds ---- */

struct cli_meter {
    struct cli_meter_sample {
        uint64_t at_ms, done, bytes;
    } samples[CLI_METER_SAMPLES];
    size_t first, count;
};
/* Adds a sample of the totals.  If they are lower than before (another archive), starts over. */
void cli_meter_add(struct cli_meter *meter, uint64_t now_ms, uint64_t done, uint64_t bytes);
/* false: not known yet. */
bool cli_meter_rate(const struct cli_meter *meter, double *done_per_s_out, double *bytes_per_s_out);

#endif
