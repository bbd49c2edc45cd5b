#include "mail/commands/watch.h"

#include "base/check.h"
#include "base/clocktext.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    SAMPLE_MS = 500,
    LOOK_MS = 5000, /* between two full counts of what is left */
    LINE_MS = 10000,
    EVENT_MS = 1000,
    BLOCK_BYTES_MAX = 1 << 20,
};

/* ---- the snapshot ---- */

static json_t *snapshot_of_ours(struct cli *cli, tide_engine *engine)
{
    tide_buf text;
    json_t *snapshot = NULL;
    tide_buf_init(&text, cli->mem, 64 << 20);
    if (tide_engine_snapshot(engine, &text, NULL) == TIDE_OK)
        (void)tide_json_parse(tide_buf_text(&text), &snapshot, NULL);
    tide_buf_done(&text);
    return snapshot;
}

json_t *mail_snapshot(struct cli *cli, struct mail_home *home)
{
    if (home != NULL && home->engine != NULL)
        return snapshot_of_ours(cli, home->engine);
    /* No running engine is not an error of this command. */
    const tide_error kept = cli->err;
    char hint[sizeof cli->hint];
    memcpy(hint, cli->hint, sizeof hint);
    tide_json request;
    json_t *answer = NULL;
    json_t *snapshot = NULL;
    bool runs = false;
    tide_control_request(TIDE_OP_SNAPSHOT, &request);
    const tide_status rc = cli_engine_ask(cli, &request, &runs, &answer);
    if (rc == TIDE_OK)
        snapshot = json_incref(json_object_get(answer, "snapshot"));
    else if (runs)
        (void)fprintf(stderr, "tidemark: warning: %s\n", cli->err.text);
    json_decref(answer);
    cli->err = kept;
    memcpy(cli->hint, hint, sizeof hint);
    return snapshot;
}

static uint64_t number_of(const json_t *object, const char *field)
{
    const json_int_t number = json_integer_value(json_object_get(object, field));
    return number < 0 ? 0 : (uint64_t)number;
}

/* The outcome of its last calls, if they failed. */
static void take_failure(const json_t *account, struct mail_watched *watched)
{
    const char *text = json_string_value(json_object_get(account, "last_failure"));
    const bool lasts = text != NULL && number_of(account, "last_failed_unix_ms") >
                                           number_of(account, "last_ok_unix_ms");
    watched->next_try_ms = number_of(account, "next_try_unix_ms");
    (void)snprintf(watched->failure, sizeof watched->failure, "%s", lasts ? text : "");
}

/* Why an account makes no progress, in a few words; "" if it does. */
static void account_note(const json_t *account, struct mail_watched *watched, char *note,
                         size_t note_bytes)
{
    const char *state = json_string_value(json_object_get(account, "state"));
    const char *reason = json_string_value(json_object_get(account, "reason"));
    const uint64_t for_ms = number_of(account, "for_ms");
    char wait[TIDE_DURATION_TEXT_BYTES] = "";
    take_failure(account, watched);
    watched->signed_out = reason != NULL && strcmp(reason, tide_status_name(TIDE_AUTH)) == 0;
    watched->stopped = json_is_true(json_object_get(account, "paused")) ||
                       (state != NULL && strcmp(state, "halted") == 0);
    note[0] = '\0';
    if (state != NULL && strcmp(state, "halted") == 0)
        (void)snprintf(note, note_bytes, "halted: %s", reason == NULL ? "-" : reason);
    else if (json_is_true(json_object_get(account, "paused")))
        (void)snprintf(note, note_bytes, "paused by command");
    else if (watched->signed_out)
        (void)snprintf(note, note_bytes, "needs a sign-in");
    else if (state != NULL && strcmp(state, "running") != 0 && reason != NULL) {
        tide_duration_human(for_ms < 1000 ? 1000 : for_ms / 1000 * 1000, wait);
        (void)snprintf(note, note_bytes, "next try in %s: %.260s", wait,
                       watched->failure[0] == '\0' ? reason : watched->failure);
    }
}

static void take_snapshot(const json_t *snapshot, struct mail_watched *watched,
                          struct mail_live *live)
{
    const json_t *account = account_in_snapshot(snapshot, watched->look.email);
    static const char *const jobs[] = {"running", "parked", "waiting", "delayed", "blocked"};
    enum { ACTIVE = 3 }; /* index of the first active state */
    watched->jobs = watched->active = 0;
    if (account == NULL)
        return;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++)
        watched->jobs += number_of(account, jobs[i]);
    for (size_t i = 0; i < ACTIVE; i++)
        watched->active += number_of(account, jobs[i]);
    watched->failed = number_of(account, "failed");
    watched->bad = number_of(account, "bad");
    live->quota_used = number_of(account, "window_used_units");
    live->quota_max = number_of(account, "window_max_units");
    live->in_flight = number_of(account, "in_flight");
    live->retried = number_of(account, "retried");
    account_note(account, watched, live->note, sizeof live->note);
}

/* ---- a shared ledger ---- */

struct holder_ask {
    uint64_t owner;
    char *name;
};

static bool take_holder(const struct tide_member *member, void *arg)
{
    struct holder_ask *ask = arg;
    if (member->owner != ask->owner || member->dead)
        return true;
    (void)snprintf(ask->name, sizeof member->name, "%s", member->name);
    return false;
}

/* On a shared ledger: takes from the ledger, for all engines, what a snapshot says about ours. */
static void take_ledger(struct mail_watch *watch, struct mail_watched *watched,
                        struct mail_live *live)
{
    const struct tide_mail_look *look = &watched->look;
    struct holder_ask ask = {.owner = look->owner, .name = watched->holder};
    watched->jobs = look->jobs_left;
    watched->active = look->jobs_left;
    watched->failed = look->jobs_failed;
    watched->bad = look->bad;
    watched->stopped = look->paused || look->halted;
    watched->holder[0] = '\0';
    if (look->owner != 0)
        (void)tide_ledger_members(watch->cli->ledger, take_holder, &ask, NULL);
    if (look->halted)
        (void)snprintf(live->note, sizeof live->note, "halted: %.140s", look->halt_reason);
    else if (look->paused)
        (void)snprintf(live->note, sizeof live->note, "paused by command");
    else if (watched->jobs > 0 && look->owner == 0 && live->note[0] == '\0')
        (void)snprintf(live->note, sizeof live->note, "waiting for a process that has its archive");
}

void mail_watch_look_soon(struct mail_watch *watch)
{
    watch->looked_ms = 0;
    watch->sampled_ms = 0;
}

/* ---- looking ---- */

static void open_archive(struct mail_watch *watch, struct mail_watched *watched)
{
    char dir[CLI_PATH_BYTES + 300];
    if (watched->archive != NULL)
        return;
    (void)snprintf(dir, sizeof dir, "%s/%s", watch->home->archive_dir, watched->look.email);
    const struct tide_archive_options options = {
        .dir = dir, .account = watched->look.email, .world = watch->cli->world, .read_only = true};
    /* Before the first sync the directory does not exist. */
    if (access(dir, F_OK) == 0)
        (void)tide_archive_open(&options, watch->cli->mem, &watched->archive, NULL);
}

/* The expected total: while the listing is not complete, the number from the server;
 * afterwards what is stored plus the messages in jobs. */
static void take_total(const struct mail_watched *watched, struct mail_live *live)
{
    const struct tide_mail_look *look = &watched->look;
    const uint64_t since = live->stored > watched->stored_looked
                               ? live->stored - watched->stored_looked
                               : 0; /* stored since the last full count */
    uint64_t left = look->messages_left > since ? look->messages_left - since : 0;
    live->total = live->stored + left;
    if (look->listing && look->messages_total == 0)
        live->total = MAIL_LIVE_UNKNOWN;
    else if (look->listing && look->messages_total > live->total)
        live->total = look->messages_total;
    if (live->total != MAIL_LIVE_UNKNOWN)
        left = live->total - live->stored;
    const bool moves = live->total != MAIL_LIVE_UNKNOWN && (live->note[0] == '\0' || left == 0);
    live->left_ms = moves ? mail_live_left_ms(left, TIDE_GMAIL_GET_UNITS, live->quota_max,
                                              live->rate_known, live->messages_per_s)
                          : MAIL_LIVE_UNKNOWN;
}

static tide_status sample_one(struct mail_watch *watch, size_t index, const json_t *snapshot,
                              bool full, uint64_t now_ms)
{
    struct mail_watched *watched = &watch->accounts[index];
    struct mail_live *live = &watch->lives[index];
    struct cli *cli = watch->cli;
    tide_status rc =
        tide_mail_look(cli->ledger, watched->look.email, full, &watched->look, &cli->err);
    if (rc != TIDE_OK)
        return cli_hint(cli, rc, "`tidemark account list` shows the accounts.");
    take_snapshot(snapshot, watched, live);
    if (cli->shared != NULL)
        take_ledger(watch, watched, live);
    open_archive(watch, watched);
    /* A new archive may not be readable for a moment. */
    if (watched->archive != NULL)
        (void)tide_mail_kept(watched->archive, &watched->kept, NULL);
    live->stored = watched->kept.stored;
    /* An archive on another machine cannot be read: derive the count from what is left. */
    const struct tide_mail_look *look = &watched->look;
    if (watched->archive == NULL && cli->shared != NULL && look->archive[0] != '\0' &&
        !look->listing && look->messages_total > look->messages_left)
        live->stored = look->messages_total - look->messages_left;
    live->watermark_ms = watched->look.watermark_ms;
    live->bad = watched->look.bad + watched->look.owed + watched->look.retrying;
    if (full)
        watched->stored_looked = live->stored;
    if (!watch->looked) {
        watched->stored_first = live->stored;
        watched->failed_first = watched->failed;
        watched->bad_first = watched->bad;
    }
    mail_meter_add(&watched->meter, now_ms, live->stored, watched->kept.raw_bytes);
    live->rate_known = mail_meter_rate(&watched->meter, &live->messages_per_s, &live->bytes_per_s);
    if (watch->stopping)
        (void)snprintf(live->note, sizeof live->note, "stopping; fetched messages are stored");
    take_total(watched, live);
    return TIDE_OK;
}

bool mail_watched_stuck(const struct mail_watched *watched)
{
    return watched->stopped || watched->signed_out;
}

/* Whether no account has active jobs, except those that are stuck, according to the engine. */
static bool is_idle(const struct mail_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        if (watch->accounts[i].active > 0 && !mail_watched_stuck(&watch->accounts[i]))
            return false;
    return true;
}

static tide_status sample(struct mail_watch *watch, bool last, uint64_t now_ms)
{
    json_t *snapshot = mail_snapshot(watch->cli, watch->home);
    watch->gone = snapshot == NULL && watch->home->engine == NULL;
    bool full = last || !watch->looked || watch->gone || now_ms - watch->looked_ms >= LOOK_MS ||
                is_idle(watch);
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < watch->count; i++)
        rc = sample_one(watch, i, snapshot, full, now_ms);
    /* No active job means the end only if no job is left, and an earlier count cannot say that:
     * a plan job may have ended since, and its new jobs may not be in the window yet. */
    if (!full && is_idle(watch)) {
        full = true;
        for (size_t i = 0; rc == TIDE_OK && i < watch->count; i++)
            rc = sample_one(watch, i, snapshot, full, now_ms);
    }
    watch->sampled_ms = now_ms;
    if (full) {
        watch->looked = true;
        watch->looked_ms = now_ms;
    }
    json_decref(snapshot);
    return rc;
}

bool mail_watched_settled(const struct mail_watched *watched)
{
    const struct tide_mail_look *look = &watched->look;
    if (look->listing)
        return false;
    for (size_t i = 0; i < look->spans_count; i++)
        if (look->spans[i].jobs_left > 0)
            return false;
    return true;
}

bool mail_watch_settled(const struct mail_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++)
        if (!mail_watched_settled(&watch->accounts[i]))
            return false;
    return watch->looked;
}

/* ---- showing ---- */

static void screen_size(unsigned *columns_out, unsigned *rows_out)
{
    struct winsize size = {0};
    *columns_out = 80;
    *rows_out = 24;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0)
        return;
    if (size.ws_col > 0)
        *columns_out = size.ws_col;
    if (size.ws_row > 0)
        *rows_out = size.ws_row;
}

static void write_out(const char *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t wrote = write(STDERR_FILENO, data, bytes);
        if (wrote <= 0)
            return; /* the terminal is closed: the work continues */
        data += wrote;
        bytes -= (size_t)wrote;
    }
}

/* The rows that the last block takes on a terminal of this width: a terminal that became
 * narrower has wrapped its lines. */
static unsigned rows_drawn(const struct mail_watch *watch, unsigned columns)
{
    unsigned rows = 0;
    tide_text left = tide_buf_text(&watch->drawn);
    while (left.bytes > 0) {
        const char *end = memchr(left.data, '\n', left.bytes);
        const size_t bytes = end == NULL ? left.bytes : (size_t)(end - left.data);
        const unsigned width = mail_live_columns((tide_text){left.data, bytes});
        rows += width == 0 ? 1 : (width + columns - 1) / columns;
        const size_t used = end == NULL ? bytes : bytes + 1;
        left.data += used;
        left.bytes -= used;
    }
    return rows;
}

/* A single write: no flicker, and a kill leaves no partial output. */
static void draw(struct mail_watch *watch)
{
    unsigned columns = 0;
    unsigned rows = 0;
    unsigned lines = 0;
    tide_buf out;
    screen_size(&columns, &rows);
    const unsigned up = rows_drawn(watch, columns);
    tide_buf_init(&out, watch->cli->mem, BLOCK_BYTES_MAX);
    tide_buf_clear(&watch->drawn);
    if (mail_live_block(watch->lives, watch->count, columns, rows, watch->color, &watch->drawn,
                        &lines) == TIDE_OK) {
        (void)tide_buf_add_text(&out, "\033[?25l\r");
        if (up > 0)
            (void)tide_buf_print(&out, "\033[%uA", up);
        const tide_text text = tide_buf_text(&watch->drawn);
        for (size_t i = 0; i < text.bytes; i++) {
            if (text.data[i] == '\n')
                (void)tide_buf_add_text(&out, "\033[K");
            (void)tide_buf_add(&out, &text.data[i], 1);
        }
        (void)tide_buf_add_text(&out, "\033[J\033[?25h");
        write_out(tide_buf_cstr(&out), out.bytes);
    }
    watch->columns = columns;
    tide_buf_done(&out);
}

static void set_or_null(tide_json *json, const char *field, uint64_t number)
{
    if (number == MAIL_LIVE_UNKNOWN)
        tide_json_set_null(json, field);
    else
        tide_json_set_u64(json, field, number);
}

/* {"event":"progress",...} on standard error (cli.h C2). */
static void event(struct mail_watch *watch, const struct mail_live *live, tide_buf *out)
{
    tide_json json;
    tide_json_object(&json);
    tide_json_set_cstr(&json, "event", "progress");
    tide_json_set_u64(&json, "at_unix_ms", tide_world_now_unix_ms(watch->cli->world));
    tide_json_set_cstr(&json, "account", live->email);
    tide_json_set_u64(&json, "stored", live->stored);
    set_or_null(&json, "total", live->total);
    tide_json_set_u64(&json, "watermark_unix_ms", live->watermark_ms);
    if (json.value != NULL && live->rate_known) {
        (void)json_object_set_new(json.value, "messages_per_s", json_real(live->messages_per_s));
        (void)json_object_set_new(json.value, "bytes_per_s", json_real(live->bytes_per_s));
    } else {
        tide_json_set_null(&json, "messages_per_s");
        tide_json_set_null(&json, "bytes_per_s");
    }
    tide_json_set_u64(&json, "quota_used_units", live->quota_used);
    tide_json_set_u64(&json, "quota_max_units", live->quota_max);
    tide_json_set_u64(&json, "in_flight", live->in_flight);
    tide_json_set_u64(&json, "retried", live->retried);
    tide_json_set_u64(&json, "bad", live->bad);
    set_or_null(&json, "left_ms", live->left_ms);
    tide_json_set_cstr(&json, "note", live->note[0] == '\0' ? NULL : live->note);
    (void)tide_json_line(&json, out);
    tide_json_done(&json);
}

static void show(struct mail_watch *watch)
{
    tide_buf out;
    if (watch->terminal && !watch->cli->want_json) {
        draw(watch);
        return;
    }
    tide_buf_init(&out, watch->cli->mem, BLOCK_BYTES_MAX);
    for (size_t i = 0; i < watch->count; i++) {
        if (watch->cli->want_json)
            event(watch, &watch->lives[i], &out);
        else
            (void)mail_live_line(&watch->lives[i], &out);
    }
    write_out(tide_buf_cstr(&out), out.bytes);
    tide_buf_done(&out);
}

/* A terminal that changed its size is redrawn at once. */
static bool is_due(const struct mail_watch *watch, uint64_t now_ms, bool sampled)
{
    unsigned columns = 0;
    unsigned rows = 0;
    if (watch->cli->want_json)
        return now_ms - watch->shown_ms >= EVENT_MS;
    if (!watch->terminal)
        return now_ms - watch->shown_ms >= LINE_MS;
    screen_size(&columns, &rows);
    return sampled || columns != watch->columns;
}

tide_status mail_watch_tick(struct mail_watch *watch, bool last)
{
    const uint64_t now_ms = tide_world_now_ms(watch->cli->world);
    const bool sampled = last || !watch->looked || now_ms - watch->sampled_ms >= SAMPLE_MS;
    const tide_status rc = sampled ? sample(watch, last, now_ms) : TIDE_OK;
    if (rc == TIDE_OK && !watch->cli->quiet && (last || is_due(watch, now_ms, sampled))) {
        show(watch);
        watch->shown_ms = now_ms;
    }
    return rc;
}

/* ---- life ---- */

tide_status mail_watch_open(struct cli *cli, struct mail_home *home, const struct mail_names *names,
                            struct mail_watch *watch)
{
    const char *term = getenv("TERM");
    const char *no_color = getenv("NO_COLOR");
    *watch = (struct mail_watch){.cli = cli, .home = home, .count = names->count};
    tide_buf_init(&watch->drawn, cli->mem, BLOCK_BYTES_MAX);
    watch->terminal = isatty(STDERR_FILENO) == 1 && term != NULL && strcmp(term, "dumb") != 0;
    watch->color = watch->terminal && (no_color == NULL || no_color[0] == '\0');
    watch->shown_ms = tide_world_now_ms(cli->world);
    watch->accounts = tide_mem_array(cli->mem, names->count, sizeof *watch->accounts);
    watch->lives = tide_mem_array(cli->mem, names->count, sizeof *watch->lives);
    if (watch->accounts == NULL || watch->lives == NULL)
        return cli_fail(cli, TIDE_NO_MEMORY, "Free some memory.", "out of memory for %zu accounts",
                        names->count);
    memset(watch->accounts, 0, names->count * sizeof *watch->accounts);
    memset(watch->lives, 0, names->count * sizeof *watch->lives);
    for (size_t i = 0; i < names->count; i++) {
        tide_mail_look_init(&watch->accounts[i].look, cli->mem);
        memcpy(watch->accounts[i].look.email, names->email[i], sizeof names->email[i]);
        memcpy(watch->lives[i].email, names->email[i], sizeof names->email[i]);
        watch->lives[i].total = watch->lives[i].left_ms = MAIL_LIVE_UNKNOWN;
    }
    return mail_home_places(cli, home);
}

void mail_watch_close(struct mail_watch *watch)
{
    if (watch->cli == NULL)
        return;
    for (size_t i = 0; watch->accounts != NULL && i < watch->count; i++) {
        (void)tide_archive_close(watch->accounts[i].archive, NULL);
        tide_mail_look_done(&watch->accounts[i].look);
    }
    tide_mem_free(watch->cli->mem, watch->accounts, watch->count * sizeof *watch->accounts);
    tide_mem_free(watch->cli->mem, watch->lives, watch->count * sizeof *watch->lives);
    tide_buf_done(&watch->drawn);
    memset(watch, 0, sizeof *watch);
}
