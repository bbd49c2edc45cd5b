/* gather.c - from messages to scores, from the archive to the file. */
#include "mail/people/inside.h"

#include "base/hash.h"
#include "base/json.h"
#include "mail/mime/charset.h"

#include <math.h>
#include <stdio.h>

enum { PEOPLE_MAX = 1 << 20, DAY_MS = 86400000 };

/* Logarithms of the weights: 1000, 1 and 1/4. */
#define WROTE_TO 10.0
#define HEARD    0.0
#define BESIDE   (-2.0)

double tide_people_add_scores(double a, double b)
{
    const double high = a > b ? a : b, low = a > b ? b : a;
    return high - low > 60 ? high : high + log2(1 + exp2(low - high));
}

void tide_gathering_init(struct tide_gathering *gathering, tide_mem *mem)
{
    *gathering = (struct tide_gathering){.mem = mem};
    tide_map_init(&gathering->index, mem);
}

void tide_gathering_done(struct tide_gathering *gathering)
{
    tide_map_done(&gathering->index);
    tide_mem_free(gathering->mem, gathering->list, gathering->capacity * sizeof *gathering->list);
    *gathering = (struct tide_gathering){.mem = NULL};
}

/* Programs that send and do not read. */
static bool is_deaf(tide_text address)
{
    static const char *const fronts[] = {"noreply",       "no-reply",     "no_reply",
                                         "donotreply",    "do-not-reply", "bounce",
                                         "mailer-daemon", "notification"};
    for (size_t i = 0; i < sizeof fronts / sizeof fronts[0]; i++)
        if (tide_text_starts_nocase(address, fronts[i]))
            return true;
    return false;
}

static bool grow(struct tide_gathering *gathering)
{
    if (gathering->count < gathering->capacity)
        return true;
    const size_t wanted = gathering->capacity == 0 ? 256 : gathering->capacity * 2;
    if (wanted > PEOPLE_MAX)
        return false;
    struct tide_gathered *list = tide_mem_array(gathering->mem, wanted, sizeof *list);
    if (list == NULL)
        return false;
    if (gathering->count > 0)
        memcpy(list, gathering->list, gathering->count * sizeof *list);
    tide_mem_free(gathering->mem, gathering->list, gathering->capacity * sizeof *list);
    gathering->list = list;
    gathering->capacity = wanted;
    return true;
}

/* The entry of an address.  One of another address with the same hash is taken for it: a name that
 * is completed wrongly is chosen by a person or not. */
static struct tide_gathered *entry_of(struct tide_gathering *gathering, tide_text address)
{
    char lower[TIDE_MAILBOX_BYTES_MAX + 1];
    for (size_t i = 0; i < address.bytes; i++)
        lower[i] = (char)(address.data[i] >= 'A' && address.data[i] <= 'Z' ? address.data[i] | 0x20
                                                                           : address.data[i]);
    lower[address.bytes] = '\0';
    const uint64_t key = tide_hash_key((tide_text){lower, address.bytes});
    uint32_t at = 0;
    if (tide_map_get(&gathering->index, key, &at))
        return &gathering->list[at];
    at = (uint32_t)gathering->count;
    if (!grow(gathering) || !tide_map_put(&gathering->index, key, at)) {
        gathering->failed = true;
        return NULL;
    }
    struct tide_gathered *entry = &gathering->list[gathering->count++];
    *entry = (struct tide_gathered){.score = -INFINITY};
    memcpy(entry->address, lower, address.bytes + 1);
    return entry;
}

/* The name without the quotes of display; "" when it only repeats the address. */
static void take_name(struct tide_gathered *entry, tide_text name, int64_t internal_ms)
{
    name = tide_text_trimmed(name);
    if (name.bytes >= 2 && name.data[0] == '"' && name.data[name.bytes - 1] == '"')
        name = tide_text_trimmed((tide_text){name.data + 1, name.bytes - 2});
    if (name.bytes == 0 || memchr(name.data, '@', name.bytes) != NULL ||
        (entry->name[0] != '\0' && entry->name_ms > internal_ms))
        return;
    name = tide_utf8_cut(name, TIDE_PEOPLE_NAME_BYTES_MAX);
    memcpy(entry->name, name.data, name.bytes);
    entry->name[name.bytes] = '\0';
    entry->name_ms = internal_ms;
}

static void add_header(struct tide_gathering *gathering, const struct tide_parties *head,
                       tide_text header, double weight)
{
    struct tide_mailbox people[TIDE_MAILBOXES_MAX];
    const size_t count = tide_mailboxes_read(header, people, TIDE_MAILBOXES_MAX);
    const double at = (double)head->internal_ms / DAY_MS / TIDE_PEOPLE_HALF_DAYS;
    for (size_t i = 0; i < count; i++) {
        struct tide_gathered *entry =
            is_deaf(people[i].address) ? NULL : entry_of(gathering, people[i].address);
        if (entry == NULL)
            continue;
        entry->score = tide_people_add_scores(entry->score, at + weight);
        take_name(entry, people[i].name, head->internal_ms);
    }
}

void tide_gathering_add(struct tide_gathering *gathering, const struct tide_parties *head)
{
    if (head->draft || head->junk)
        return;
    if (!head->sent)
        add_header(gathering, head, head->from, HEARD);
    add_header(gathering, head, head->to, head->sent ? WROTE_TO : BESIDE);
    add_header(gathering, head, head->cc, head->sent ? WROTE_TO : BESIDE);
    add_header(gathering, head, head->bcc, head->sent ? WROTE_TO : BESIDE);
}

/* ---- from the archive ---- */

struct pass {
    tide_people *people;
    uint32_t shard;
    struct tide_gathering gathering;
    uint64_t ready;
    int64_t top;
    bool waits; /* a message is not ready yet */
    tide_status rc;
    tide_error *err;
};

/* A message that is not ready yet is waited for: what comes after it is taken in with it. */
static bool take_head(const struct tide_parties *head, void *arg)
{
    struct pass *pass = arg;
    pass->waits = !head->ready;
    if (pass->waits)
        return false;
    tide_gathering_add(&pass->gathering, head);
    pass->ready++;
    pass->top = head->rowid;
    if (pass->gathering.failed)
        pass->rc = tide_error_set(pass->err, TIDE_NO_MEMORY, "no memory for people");
    else if (pass->gathering.count > TIDE_GATHERING_MAX)
        pass->rc = tide_people_add(pass->people, pass->shard, &pass->gathering, pass->err);
    return pass->rc == TIDE_OK;
}

/* What the file knows of a shard. */
struct seen {
    bool same; /* as the archive: no other file in its place */
    uint64_t ready;
    int64_t top;
};

static tide_status seen_of(tide_people *people, const struct tide_shard_state *shard,
                           struct seen *seen, tide_error *err)
{
    bool there = false;
    tide_auto_stmt *row = tide_db_ask(&people->db, TIDE_PEOPLE_SEEN, shard->key);
    *seen = (struct seen){.same = false};
    TIDE_TRY(tide_db_step(&people->db, row, &there, err));
    if (!there || !tide_text_equal(tide_column_text(row, 0), tide_text_of(shard->id)))
        return TIDE_OK;
    seen->same = true;
    seen->ready = tide_column_u64(row, 1);
    seen->top = sqlite3_column_int64(row, 2);
    return TIDE_OK;
}

/* Reads one shard, from its beginning or from where it was read to. */
static tide_status read_shard(struct pass *pass, tide_archive *archive,
                              const struct tide_shard_state *shard, bool anew, tide_error *err)
{
    TIDE_TRY(tide_people_begin(pass->people, shard->key, anew, err));
    tide_status rc = tide_archive_parties(archive, shard->key, pass->top, take_head, pass, err);
    if (rc == TIDE_OK)
        rc = pass->rc;
    if (rc == TIDE_OK)
        rc = tide_people_add(pass->people, shard->key, &pass->gathering, err);
    if (rc == TIDE_OK)
        rc = tide_people_end(pass->people, shard->key, shard->id, pass->ready, pass->top, err);
    if (rc != TIDE_OK)
        tide_people_undo(pass->people);
    return rc;
}

/* The same; `pass_out` says how far it came. */
static tide_status pass_shard(tide_people *people, tide_archive *archive,
                              const struct tide_shard_state *shard, const struct seen *seen,
                              bool anew, struct pass *pass_out, tide_error *err)
{
    *pass_out = (struct pass){.people = people,
                              .shard = shard->key,
                              .ready = anew ? 0 : seen->ready,
                              .top = anew ? -1 : seen->top,
                              .err = err};
    tide_gathering_init(&pass_out->gathering, people->mem);
    const tide_status rc = read_shard(pass_out, archive, shard, anew, err);
    tide_gathering_done(&pass_out->gathering);
    return rc;
}

/* *did_out: the shard had something new. */
static tide_status update_shard(tide_people *people, tide_archive *archive,
                                const struct tide_shard_state *shard, bool all, bool *did_out,
                                tide_error *err)
{
    struct seen seen;
    struct pass pass;
    uint64_t ready = 0;
    TIDE_TRY(seen_of(people, shard, &seen, err));
    TIDE_TRY(tide_archive_ready(archive, shard->key, &ready, err));
    *did_out = false;
    if (seen.same && ready == seen.ready)
        return TIDE_OK;
    TIDE_TRY(pass_shard(people, archive, shard, &seen, !seen.same, &pass, err));
    /* Older messages came: below what was read.  While they come, a part of them may wait. */
    const uint64_t missing = ready > pass.ready && !pass.waits ? ready - pass.ready : 0;
    if (seen.same && missing > 0 && (all || missing * 4 >= ready))
        TIDE_TRY(pass_shard(people, archive, shard, &seen, true, &pass, err));
    *did_out = !seen.same || pass.ready != seen.ready;
    return TIDE_OK;
}

tide_status tide_people_update(tide_people *people, tide_archive *archive, bool all, bool *left_out,
                               tide_error *err)
{
    const size_t count = tide_archive_shards(archive);
    *left_out = false;
    for (size_t i = count; i > 0; i--) { /* the newest first */
        struct tide_shard_state shard;
        bool did = false;
        const tide_status rc = tide_archive_shard(archive, i - 1, &shard, err);
        if (rc == TIDE_NOT_FOUND)
            continue;
        TIDE_TRY(rc);
        TIDE_TRY(update_shard(people, archive, &shard, all, &did, err));
        if (did) {
            *left_out = i > 1;
            return TIDE_OK;
        }
    }
    return TIDE_OK;
}

/* ---- from elsewhere ---- */

/* No shard has this key. */
#define OTHERS UINT32_MAX

static tide_status read_others(struct pass *pass, const char *version,
                               tide_status (*read)(tide_people_take *take, void *taking, void *arg,
                                                   tide_error *err),
                               void *arg, tide_error *err)
{
    TIDE_TRY(tide_people_begin(pass->people, pass->shard, true, err));
    tide_status rc = read(take_head, pass, arg, err);
    if (rc == TIDE_OK)
        rc = pass->rc;
    if (rc == TIDE_OK)
        rc = tide_people_add(pass->people, pass->shard, &pass->gathering, err);
    if (rc == TIDE_OK)
        rc = tide_people_end(pass->people, pass->shard, version, pass->ready, pass->top, err);
    if (rc != TIDE_OK)
        tide_people_undo(pass->people);
    return rc;
}

tide_status tide_people_others(tide_people *people, const char *version,
                               tide_status (*read)(tide_people_take *take, void *taking, void *arg,
                                                   tide_error *err),
                               void *arg, tide_error *err)
{
    struct tide_shard_state state = {.key = OTHERS};
    struct pass pass = {.people = people, .shard = OTHERS, .err = err};
    struct seen seen;
    (void)snprintf(state.id, sizeof state.id, "%s", version);
    TIDE_TRY(seen_of(people, &state, &seen, err));
    if (seen.same)
        return TIDE_OK;
    tide_gathering_init(&pass.gathering, people->mem);
    const tide_status rc = read_others(&pass, state.id, read, arg, err);
    tide_gathering_done(&pass.gathering);
    return rc;
}
