/* record.c - each user's drive, and what the referee keeps about it. */
#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/graph/inside.h"

struct box_graph_user {
    box_drive *drive;
    uint64_t files_sent; /* downloads that began */
    uint64_t bytes_sent;
    uint64_t bytes_again; /* more than the size of the content that was sent */
    uint64_t tokens_again;
    uint32_t token_line; /* where the latest round began; 0: none */
};

struct box_graph_user *box_graph_user(const struct box_user *user)
{
    return box_user_part(user, &box_graph);
}

box_drive *box_user_drive(const struct box_user *user)
{
    return box_graph_user(user)->drive;
}

/* ---- making ---- */

static void drive_changed(void *arg, json_t *change)
{
    box_user_changed(arg, change);
}

/* When a drive was made: now, or for users of a cloud that has not begun, its first moment. */
static uint64_t first_ms(const box_cloud *cloud)
{
    const uint64_t now_ms = box_cloud_now(cloud);
    const uint64_t start_ms = box_cloud_options(cloud)->start_unix_ms;
    return now_ms != 0 ? now_ms : start_ms != 0 ? start_ms : UINT64_C(1767225600000);
}

tide_status box_graph_user_open(struct box_user *user, json_t *settings, void **part_out,
                                tide_error *err)
{
    const struct box_options *options = box_cloud_options(user->cloud);
    struct box_drive_spec spec = {.keeps = options->keep != NULL,
                                  .files_max = options->mailbox_messages_max,
                                  .changed = drive_changed,
                                  .changed_arg = user};
    const uint64_t seed = (options->seed * 37 ^ tide_hash_key(tide_text_of(user->email))) >> 1;
    uint64_t business = 0;
    tide_status rc = box_user_setting(settings, "drive", "drive_bytes", BOX_DRIVE_TOTAL_BYTES,
                                      INT64_MAX, &spec.total_bytes, err);
    if (rc == TIDE_OK)
        rc = box_user_setting(settings, "drive", "drive_seed", seed, INT64_MAX, &spec.seed, err);
    if (rc == TIDE_OK)
        rc = box_user_setting(settings, "drive", "drive_now", first_ms(user->cloud),
                              BOX_CLOCK_MS_MAX, &spec.now_ms, err);
    if (rc == TIDE_OK)
        rc = box_user_setting(settings, "drive", "business", 0, 1, &business, err);
    if (rc != TIDE_OK)
        return rc;
    spec.business = business == 1;
    struct box_graph_user *part = tide_mem_new(tide_mem_heap(), sizeof *part);
    TIDE_ASSERT(part != NULL);
    part->drive = box_drive_new(&spec);
    *part_out = part;
    return TIDE_OK;
}

void box_graph_user_close(void *part)
{
    struct box_graph_user *user = part;
    box_drive_free(user->drive);
    tide_mem_free(tide_mem_heap(), user, sizeof *user);
}

/* ---- counting ---- */

void box_graph_bytes_sent(const struct box_call *call, box_drive *drive, uint32_t slot,
                          uint64_t bytes)
{
    struct box_graph_user *user = box_graph_user(call->user);
    const uint64_t size = box_drive_at(drive, slot)->content.bytes;
    const uint64_t before = box_drive_fetched(drive, slot, bytes);
    const uint64_t left = before < size ? size - before : 0;
    user->files_sent++;
    user->bytes_sent += bytes;
    user->bytes_again += bytes > left ? bytes - left : 0;
}

void box_graph_token_used(const struct box_call *call, const box_drive *drive, uint32_t line)
{
    struct box_graph_user *user = box_graph_user(call->user);
    /* Nothing was told since: asking again is what polling is. */
    if (user->token_line == line && line < box_drive_log_end(drive))
        user->tokens_again++;
    user->token_line = line < box_drive_log_end(drive) ? line : 0;
}

void box_graph_record(box_cloud *cloud, const struct box_user *user, bool details, json_t *object)
{
    (void)cloud;
    (void)details;
    if (user == NULL)
        return;
    const struct box_graph_user *part = box_graph_user(user);
    json_object_set_new(
        object, "drive",
        json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:I}", "items", (json_int_t)box_drive_slots(part->drive),
            "used", (json_int_t)box_drive_used(part->drive), "downloads",
            (json_int_t)part->files_sent, "bytes", (json_int_t)part->bytes_sent, "bytes_again",
            (json_int_t)part->bytes_again, "tokens_again", (json_int_t)part->tokens_again));
}

void box_graph_record_reset(box_cloud *cloud)
{
    const struct box_user *user = NULL;
    for (size_t i = 0; (user = box_cloud_user_at(cloud, i)) != NULL; i++) {
        struct box_graph_user *part = box_graph_user(user);
        box_drive *drive = part->drive;
        box_drive_fetched_reset(drive);
        *part = (struct box_graph_user){.drive = drive};
    }
}
