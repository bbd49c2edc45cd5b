/* recent.c - keeps the bytes of just stored messages in memory for the indexer.
 *
 * A message is indexed soon after it was stored, and reading it back costs as much as parsing it.
 * So the writer keeps the bytes of committed messages here, up to a limit; other messages are read
 * from their shards.  Only durable messages are kept: their content ids are final.
 *
 * The content id determines the slot.  Ids ascend, so that a new message takes the slot of the
 * oldest one, and dropping slots in order drops the oldest messages first. */
#include "mail/archive/inside.h"
#include "base/check.h"

enum {
    PLACES = 2 * TIDE_INDEX_GROUP_MESSAGES,
    BYTES_MAX = TIDE_INDEX_GROUP_BYTES, /* of all of them together */
    RAW_BYTES_MAX = 1 << 20,            /* per message; larger ones are rare */
};

struct tide_recent {
    uint32_t shard;
    int64_t content; /* 0: empty */
    tide_buf raw;
};

static struct tide_recent *place_of(struct tide_writer *writer, uint32_t shard, int64_t content)
{
    TIDE_ASSERT(content > 0);
    return &writer->recent[((uint64_t)content + shard) % PLACES];
}

static void place_empty(struct tide_writer *writer, struct tide_recent *place)
{
    writer->recent_bytes -= place->raw.capacity;
    tide_buf_done(&place->raw);
    *place = (struct tide_recent){0};
}

tide_status tide_recent_init(tide_archive *archive)
{
    struct tide_writer *writer = archive->writer;
    writer->recent = tide_mem_array(archive->mem, PLACES, sizeof writer->recent[0]);
    return writer->recent == NULL ? TIDE_NO_MEMORY : TIDE_OK;
}

void tide_recent_done(tide_archive *archive)
{
    struct tide_writer *writer = archive->writer;
    if (writer->recent == NULL)
        return;
    for (size_t i = 0; i < PLACES; i++)
        place_empty(writer, &writer->recent[i]);
    TIDE_ASSERT(writer->recent_bytes == 0);
    tide_mem_free(archive->mem, writer->recent, PLACES * sizeof writer->recent[0]);
    writer->recent = NULL;
}

void tide_recent_keep(tide_archive *archive, uint32_t shard, int64_t content, tide_buf *raw)
{
    struct tide_writer *writer = archive->writer;
    if (writer->recent == NULL || content == 0 || raw->bytes == 0 || raw->capacity > RAW_BYTES_MAX)
        return;
    struct tide_recent *place = place_of(writer, shard, content);
    place_empty(writer, place);
    /* Terminates: when all are dropped, there is room. */
    for (; writer->recent_bytes + raw->capacity > BYTES_MAX; writer->recent_next++)
        place_empty(writer, &writer->recent[writer->recent_next % PLACES]);
    *place = (struct tide_recent){.shard = shard, .content = content, .raw = *raw};
    writer->recent_bytes += raw->capacity;
    *raw = (tide_buf){.mem = raw->mem, .bytes_max = raw->bytes_max};
}

bool tide_recent_take(tide_archive *archive, uint32_t shard, int64_t content, tide_buf *raw_out)
{
    struct tide_writer *writer = archive->writer;
    bool there = false;
    if (writer->recent == NULL || content <= 0)
        return false;
    tide_lock_take(archive->world, archive->lock);
    struct tide_recent *place = place_of(writer, shard, content);
    if (place->content == content && place->shard == shard) {
        *raw_out = place->raw;
        writer->recent_bytes -= place->raw.capacity;
        *place = (struct tide_recent){0};
        there = true;
    }
    tide_lock_drop(archive->world, archive->lock);
    return there;
}
