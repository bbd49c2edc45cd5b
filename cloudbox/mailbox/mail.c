#include "cloudbox/mailbox/mail.h"

#include "base/check.h"
#include "base/hash.h"
#include "base/json.h"
#include "cloudbox/gate/clock.h"
#include "cloudbox/mailbox/mime.h"

#include <assert.h>

enum { CORPUS_STEP_MS = 60000 };
static_assert((int)BOX_ACTS_NAME_BYTES == (int)BOX_ID_TEXT_BYTES, "an id is a name");

/* A user's part. */
struct mail {
    box_mailbox *mailbox;
    uint32_t real_messages; /* added by box_cloud_add_message() */
    uint8_t *fetched;       /* by message slot: how often its body was given out, at most 255 */
    size_t fetched_capacity;
    struct box_acts acts;
};

static struct mail *mail_of(const struct box_user *user)
{
    return box_user_part(user, &box_mail);
}

box_mailbox *box_user_mailbox(const struct box_user *user)
{
    return mail_of(user)->mailbox;
}

static void *open_mail(box_cloud *cloud)
{
    (void)cloud;
    box_mime_start();
    return NULL;
}

/* ---- a user's mailbox ---- */

static void mailbox_changed(void *arg, json_t *change)
{
    box_user_changed(arg, change);
}

static tide_status user_open(struct box_user *user, json_t *settings, void **part_out,
                             tide_error *err)
{
    const struct box_options *options = box_cloud_options(user->cloud);
    /* Within an int64_t, which is what JSON keeps. */
    const uint64_t seed = (options->seed * 31 ^ tide_hash_key(tide_text_of(user->email))) >> 1;
    struct box_mailbox_options settled = {0};
    uint64_t messages = 0, size = 0;
    const uint64_t messages_max = options->mailbox_messages_max > 0 ? options->mailbox_messages_max
                                                                    : BOX_MAILBOX_MESSAGES_MAX;
    tide_status rc =
        box_user_setting(settings, "mailbox", "messages", 0, messages_max, &messages, err);
    if (rc == TIDE_OK)
        rc = box_user_setting(settings, "mailbox", "size", 0, BOX_MAILBOX_SIZE_MAX, &size, err);
    if (rc == TIDE_OK)
        rc = box_user_setting(settings, "mailbox", "seed", seed, INT64_MAX, &settled.seed, err);
    if (rc == TIDE_OK)
        rc = box_user_setting(settings, "mailbox", "now", box_cloud_now(user->cloud),
                              BOX_CLOCK_MS_MAX, &settled.now_unix_ms, err);
    if (rc == TIDE_OK && size != 0 && size < BOX_MAILBOX_SIZE_MIN)
        rc = tide_error_set(err, TIDE_INVALID, "messages of %llu bytes are too small",
                            (unsigned long long)size);
    if (rc != TIDE_OK)
        return rc;
    struct mail *mail = tide_mem_new(tide_mem_heap(), sizeof *mail);
    TIDE_ASSERT(mail != NULL);
    mail->mailbox = box_mailbox_new(&(struct box_mailbox_spec){
        .seed = settled.seed,
        .generated = (uint32_t)messages,
        .size_bytes = (uint32_t)size,
        .now_ms = settled.now_unix_ms,
        .history_keep_ms = options->history_keep_ms,
        .email = user->email,
        .changed = mailbox_changed,
        .changed_arg = user,
    });
    box_acts_init(&mail->acts);
    *part_out = mail;
    return TIDE_OK;
}

static void user_close(void *part)
{
    struct mail *mail = part;
    box_mailbox_free(mail->mailbox);
    box_acts_done(&mail->acts);
    tide_mem_free(tide_mem_heap(), mail->fetched, mail->fetched_capacity);
    tide_mem_free(tide_mem_heap(), mail, sizeof *mail);
}

static void user_now(struct box_user *user, uint64_t now_ms)
{
    box_mailbox *mailbox = box_user_mailbox(user);
    box_mailbox_clock(mailbox, now_ms);
    box_mailbox_history_expire(mailbox, now_ms);
}

tide_status box_cloud_add_mailbox(box_cloud *cloud, tide_text email,
                                  const struct box_mailbox_options *options, tide_error *err)
{
    if (options->seed > INT64_MAX || options->now_unix_ms > BOX_CLOCK_MS_MAX)
        return tide_error_set(err, TIDE_INVALID, "a mailbox with an impossible seed or time");
    json_t *settings =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I}", "op", "user", "email", "", "messages",
                  (json_int_t)options->messages, "size", (json_int_t)options->size_bytes, "seed",
                  (json_int_t)options->seed, "now", (json_int_t)options->now_unix_ms);
    TIDE_ASSERT(settings != NULL);
    return box_cloud_user_add(cloud, email, settings, err);
}

/* Corpus messages are older than everything generated, a minute apart, so that the
 * first file is the newest of them. */
tide_status box_cloud_add_message(box_cloud *cloud, tide_text email, tide_text raw, tide_error *err)
{
    struct box_user *user = box_cloud_user(cloud, email);
    if (user == NULL)
        return tide_error_set(err, TIDE_NOT_FOUND, "there is no user %.*s", (int)email.bytes,
                              email.data);
    struct mail *mail = mail_of(user);
    const uint32_t slots = box_mailbox_slots(mail->mailbox);
    uint64_t oldest_ms = box_cloud_now(cloud);
    if (slots > 0) /* the last corpus message, else the first generated one */
        oldest_ms = box_mailbox_at(mail->mailbox, mail->real_messages > 0 ? slots - 1 : 0)->date_ms;
    const uint16_t inbox = BOX_LABEL_INBOX;
    const struct box_insert insert = {
        .raw = raw,
        .date_ms = oldest_ms > CORPUS_STEP_MS ? oldest_ms - CORPUS_STEP_MS : 1,
        .labels = &inbox,
        .labels_count = 1,
    };
    (void)box_mailbox_insert(mail->mailbox, &insert);
    mail->real_messages++;
    user->changed = false; /* there are no watches yet */
    return TIDE_OK;
}

static tide_status replay(box_cloud *cloud, const json_t *change, tide_error *err)
{
    tide_text email;
    const tide_status rc = tide_json_get_text(change, "user", &email, err);
    if (rc != TIDE_OK)
        return rc;
    const struct box_user *user = box_cloud_user(cloud, email);
    if (user == NULL)
        return tide_error_set(err, TIDE_CORRUPT, "a change of %.*s, who does not exist",
                              (int)email.bytes, email.data);
    return box_mailbox_replay(box_user_mailbox(user), change, err);
}

/* ---- the record: how often each message was fetched, which threads were changed ---- */

void box_mail_fetched(const struct box_user *user, uint32_t slot)
{
    struct mail *mail = mail_of(user);
    if (slot >= mail->fetched_capacity) {
        size_t wanted = box_mailbox_slots(mail->mailbox);
        if (wanted <= slot)
            wanted = (size_t)slot + 1;
        TIDE_ASSERT(TIDE_GROW(mail->fetched, mail->fetched_capacity, wanted, UINT32_MAX));
    }
    if (mail->fetched[slot] < UINT8_MAX)
        mail->fetched[slot]++;
}

void box_mail_acted(const struct box_user *user, uint32_t slot, box_act act)
{
    struct mail *mail = mail_of(user);
    box_acts_add(&mail->acts, box_mailbox_at(mail->mailbox, slot)->thread_id, act);
}

/* {"messages": distinct, "total": n, "most": n, "ids": {"ID": n}}; exact up to 255
 * fetches of one message.  "changed" is that of acts.h. */
static void record(box_cloud *cloud, const struct box_user *user, bool details, json_t *object)
{
    (void)cloud;
    if (user == NULL)
        return;
    const struct mail *mail = mail_of(user);
    json_int_t messages = 0, total = 0;
    uint8_t most = 0;
    json_t *ids = json_object();
    for (size_t slot = 0; slot < mail->fetched_capacity; slot++) {
        const uint8_t count = mail->fetched[slot];
        if (count == 0)
            continue;
        messages++;
        total += count;
        most = count > most ? count : most;
        char id[BOX_ID_TEXT_BYTES];
        box_id_text(box_mailbox_at(mail->mailbox, (uint32_t)slot)->id, id);
        if (details)
            json_object_set_new(ids, id, json_integer(count));
    }
    json_t *fetched =
        json_pack("{s:I, s:I, s:i}", "messages", messages, "total", total, "most", (int)most);
    if (details)
        json_object_set(fetched, "ids", ids);
    json_decref(ids);
    json_object_set_new(object, "fetched", fetched);
    if (details)
        json_object_set_new(object, "changed", box_acts_json(&mail->acts, box_id_text));
}

static void record_reset(box_cloud *cloud)
{
    const struct box_user *user = NULL;
    for (size_t i = 0; (user = box_cloud_user_at(cloud, i)) != NULL; i++) {
        struct mail *mail = mail_of(user);
        tide_mem_free(tide_mem_heap(), mail->fetched, mail->fetched_capacity);
        mail->fetched = NULL;
        mail->fetched_capacity = 0;
        box_acts_done(&mail->acts);
        box_acts_init(&mail->acts);
    }
}

const struct box_service box_mail = {
    .name = "mail",
    .open = open_mail,
    .user_open = user_open,
    .user_close = user_close,
    .user_now = user_now,
    .record = record,
    .record_reset = record_reset,
    .ops = "", /* the changes that no other service has */
    .replay = replay,
};
