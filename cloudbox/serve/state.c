#include "cloudbox/serve/state.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { SUM_BYTES = 9 }; /* eight digits and a space */

struct box_state {
    char *file;
    int fd;
    FILE *in; /* the same file, for reading */
    json_t *header;
    bool quiet;
    bool recording;
    uint32_t sum;      /* over all lines so far */
    uint64_t line;     /* number of the line read last */
    off_t bytes;       /* of whole lines */
    char *text;        /* the line read last */
    size_t text_bytes; /* its room */
    tide_buf out;
    atomic_bool dirty;
    pthread_mutex_t lock; /* of `failure` */
    tide_error failure;
};

/* ---- reading ---- */

static uint32_t sum_of(uint32_t before, const char *bytes, size_t count)
{
    uLong sum = before;
    while (count > 0) {
        uInt part = count > (1u << 30) ? (1u << 30) : (uInt)count;
        sum = crc32(sum, (const Bytef *)bytes, part);
        bytes += part;
        count -= part;
    }
    return (uint32_t)sum;
}

static tide_status damaged(box_state *state, const char *how, tide_error *err)
{
    return tide_error_set(err, TIDE_CORRUPT,
                          "%s is damaged in line %" PRIu64 ": %s; restore it from a copy, or "
                          "remove it to start again",
                          state->file, state->line, how);
}

/* Cuts off what a crash left of the last line (BSTA3). */
static tide_status cut_torn(box_state *state, ssize_t torn_bytes, tide_error *err)
{
    if (!state->quiet)
        fprintf(stderr, "%s: the last line, %" PRIu64 ", was not finished (%zd bytes): cut off\n",
                state->file, state->line, torn_bytes);
    if (ftruncate(state->fd, state->bytes) != 0)
        return tide_error_os(err, errno, "shorten %s", state->file);
    state->line--;
    return TIDE_OK;
}

/* The JSON of the next line, borrowed until the next call; data == NULL at the end. */
static tide_status next_line(box_state *state, tide_text *json_out, tide_error *err)
{
    errno = 0;
    ssize_t bytes = getline(&state->text, &state->text_bytes, state->in);
    if (bytes < 0) {
        if (ferror(state->in))
            return tide_error_os(err, errno, "read %s", state->file);
        *json_out = TIDE_TEXT_NONE;
        return TIDE_OK;
    }
    state->line++;
    if (state->text[bytes - 1] != '\n') {
        tide_status rc = cut_torn(state, bytes, err);
        if (rc == TIDE_OK)
            *json_out = TIDE_TEXT_NONE;
        return rc;
    }
    char sum_text[SUM_BYTES + 1];
    if (bytes <= SUM_BYTES + 1)
        return damaged(state, "it is too short", err);
    const char *json = state->text + SUM_BYTES;
    size_t json_bytes = (size_t)bytes - SUM_BYTES - 1;
    uint32_t sum = sum_of(state->sum, json, json_bytes);
    (void)snprintf(sum_text, sizeof sum_text, "%08" PRIx32 " ", sum);
    if (memcmp(sum_text, state->text, SUM_BYTES) != 0)
        return damaged(state, "it is not what was written there", err);
    state->sum = sum;
    state->bytes += bytes;
    *json_out = (tide_text){json, json_bytes};
    return TIDE_OK;
}

static tide_status read_header(box_state *state, tide_error *err)
{
    tide_text text;
    tide_status rc = next_line(state, &text, err);
    if (rc == TIDE_CORRUPT)
        return tide_error_set(err, TIDE_CORRUPT, "%s is no state of tidemark-cloud", state->file);
    if (rc != TIDE_OK || text.data == NULL)
        return rc;
    state->header = json_loadb(text.data, text.bytes, 0, NULL);
    const json_t *format = json_object_get(state->header, "tidemark-cloud");
    if (!json_is_integer(format))
        return tide_error_set(err, TIDE_CORRUPT, "%s is no state of tidemark-cloud", state->file);
    if (json_integer_value(format) != BOX_STATE_FORMAT)
        return tide_error_set(err, TIDE_NEWER,
                              "%s has format %" JSON_INTEGER_FORMAT "; this program knows %d",
                              state->file, json_integer_value(format), BOX_STATE_FORMAT);
    return TIDE_OK;
}

/* ---- opening ---- */

/* A new file's name must be as durable as its content. */
static void sync_directory(const char *file)
{
    char *copy = strdup(file);
    TIDE_ASSERT(copy != NULL);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
    free(copy);
}

static tide_status open_files(box_state *state, tide_error *err)
{
    struct stat info;
    state->fd = open(state->file, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
    if (state->fd < 0)
        return tide_error_os(err, errno, "open %s", state->file);
    if (fstat(state->fd, &info) != 0 || !S_ISREG(info.st_mode))
        return tide_error_set(err, TIDE_INVALID, "%s is not a file", state->file);
    if (flock(state->fd, LOCK_EX | LOCK_NB) != 0)
        return tide_error_set(err, TIDE_BUSY, "%s is in use by another tidemark-cloud",
                              state->file);
    int in = dup(state->fd);
    state->in = in < 0 ? NULL : fdopen(in, "re");
    if (state->in == NULL)
        return tide_error_os(err, errno, "open %s", state->file);
    return read_header(state, err);
}

tide_status box_state_open(const char *file, bool quiet, box_state **state_out, tide_error *err)
{
    box_state *state = tide_mem_new(tide_mem_heap(), sizeof *state);
    TIDE_ASSERT(state != NULL);
    state->file = strdup(file);
    TIDE_ASSERT(state->file != NULL);
    state->fd = -1;
    state->quiet = quiet;
    tide_buf_init(&state->out, tide_mem_heap(), BOX_STATE_LINE_BYTES_MAX);
    atomic_init(&state->dirty, false);
    (void)pthread_mutex_init(&state->lock, NULL);
    tide_status rc = open_files(state, err);
    if (rc != TIDE_OK) {
        box_state_close(state);
        return rc;
    }
    *state_out = state;
    return TIDE_OK;
}

void box_state_close(box_state *state)
{
    if (state == NULL)
        return;
    if (state->fd >= 0) {
        box_state_sync(state);
        (void)close(state->fd);
    }
    if (state->in != NULL)
        (void)fclose(state->in);
    json_decref(state->header);
    tide_buf_done(&state->out);
    (void)pthread_mutex_destroy(&state->lock);
    free(state->text);
    free(state->file);
    tide_mem_free(tide_mem_heap(), state, sizeof *state);
}

const json_t *box_state_header(const box_state *state)
{
    return state->header;
}

tide_status box_state_replay(box_state *state, box_cloud *cloud, uint64_t *lines_out,
                             tide_error *err)
{
    uint64_t lines = 0;
    for (;;) {
        tide_text text;
        tide_error why = {.status = TIDE_OK};
        tide_status rc = next_line(state, &text, err);
        if (rc != TIDE_OK)
            return rc;
        if (text.data == NULL)
            break;
        if (box_cloud_replay(cloud, text, &why) != TIDE_OK)
            return damaged(state, why.text, err);
        lines++;
    }
    *lines_out = lines;
    return TIDE_OK;
}

/* ---- writing ---- */

static tide_status append(box_state *state, tide_text json, tide_error *err)
{
    if (json.bytes > BOX_STATE_LINE_BYTES_MAX - SUM_BYTES - 2)
        return tide_error_set(err, TIDE_FULL, "a change is too large for %s", state->file);
    uint32_t sum = sum_of(state->sum, json.data, json.bytes);
    tide_buf_clear(&state->out);
    box_print(&state->out, "%08" PRIx32 " ", sum);
    box_add(&state->out, json.data, json.bytes);
    box_add(&state->out, "\n", 1);
    atomic_store(&state->dirty, true);
    for (size_t at = 0; at < state->out.bytes;) {
        ssize_t written = write(state->fd, state->out.data + at, state->out.bytes - at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            int os_error = errno;
            if (ftruncate(state->fd, state->bytes) != 0) /* no half line stays behind */
                return tide_error_os(err, os_error, "write %s, or take the half line back",
                                     state->file);
            return tide_error_os(err, os_error, "write %s", state->file);
        }
        at += (size_t)written;
    }
    state->sum = sum;
    state->bytes += (off_t)state->out.bytes;
    return TIDE_OK;
}

tide_status box_state_begin(box_state *state, const json_t *header, tide_error *err)
{
    TIDE_ASSERT(state->header == NULL);
    char *text = json_dumps(header, JSON_COMPACT);
    TIDE_ASSERT(text != NULL);
    tide_status rc = append(state, tide_text_of(text), err);
    free(text);
    if (rc != TIDE_OK)
        return rc;
    box_state_sync(state);
    sync_directory(state->file);
    return box_state_error(state, err);
}

static void fail(box_state *state, const tide_error *why)
{
    (void)pthread_mutex_lock(&state->lock);
    bool first = state->failure.status == TIDE_OK;
    if (first)
        state->failure = *why;
    (void)pthread_mutex_unlock(&state->lock);
    if (first)
        (void)kill(getpid(), SIGTERM);
}

tide_status box_state_error(box_state *state, tide_error *err)
{
    (void)pthread_mutex_lock(&state->lock);
    tide_status rc = state->failure.status;
    if (rc != TIDE_OK && err != NULL)
        *err = state->failure;
    (void)pthread_mutex_unlock(&state->lock);
    return rc;
}

void box_state_record(box_state *state)
{
    state->recording = true;
}

void box_state_keep(void *arg, tide_text line)
{
    box_state *state = arg;
    tide_error err;
    if (!state->recording || box_state_error(state, NULL) != TIDE_OK)
        return;
    if (append(state, line, &err) != TIDE_OK)
        fail(state, &err);
}

/* A failed sync is final: asking again may succeed although the bytes are lost. */
void box_state_sync(box_state *state)
{
    if (!atomic_exchange(&state->dirty, false))
        return;
    if (fdatasync(state->fd) != 0) {
        tide_error err;
        (void)tide_error_os(&err, errno, "write %s to the disk", state->file);
        fail(state, &err);
    }
}
