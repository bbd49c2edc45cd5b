#include "cloudbox/serve/setup.h"

#include "base/check.h"
#include "base/clocktext.h"
#include "cloudbox/serve/corpus.h"
#include "cloudbox/services.h"

#include <inttypes.h>

enum { DEMO_MESSAGES = 1000, SITE_ROWS = 1000 };

/* ---- completing the settings ---- */

static bool has_mailbox(const struct box_settings *settings, tide_text email)
{
    for (size_t i = 0; i < settings->mailboxes.count; i++)
        if (tide_text_equal(settings->mailboxes.items[i].left, email))
            return true;
    return false;
}

/* The mailboxes a state was begun with; their texts live as long as the state. */
static void take_mailboxes(struct box_settings *settings, const json_t *header)
{
    size_t i;
    json_t *mailbox;
    json_array_foreach(json_object_get(header, "mailboxes"), i, mailbox)
    {
        const char *email = json_string_value(json_object_get(mailbox, "email"));
        if (email == NULL || settings->mailboxes.count == BOX_SETTINGS_MAX)
            continue;
        struct box_setting item = {
            .left = tide_text_of(email),
            .number = (uint32_t)json_integer_value(json_object_get(mailbox, "messages")),
            .size_bytes = (uint32_t)json_integer_value(json_object_get(mailbox, "size")),
        };
        box_settings_add(&settings->mailboxes, &item);
    }
}

static void add_demo(struct box_settings *settings, uint32_t messages)
{
    struct box_setting mailbox = {.left = TIDE_TEXT(BOX_DEMO_EMAIL), .number = messages};
    struct box_setting token = {TIDE_TEXT(BOX_DEMO_TOKEN), TIDE_TEXT(BOX_DEMO_EMAIL), 0, 0, false};
    box_settings_add(&settings->mailboxes, &mailbox);
    if (settings->tokens.count < BOX_SETTINGS_MAX)
        box_settings_add(&settings->tokens, &token);
}

static bool is_demo(const struct box_settings *settings)
{
    return settings->mailboxes.count == 1 &&
           tide_text_equal(settings->mailboxes.items[0].left, TIDE_TEXT(BOX_DEMO_EMAIL));
}

/* A corpus without an address goes to the first mailbox; every corpus has one. */
static void complete(struct box_settings *settings, const json_t *header)
{
    if (header != NULL && !settings->seed_given)
        settings->cloud.seed = (uint64_t)json_integer_value(json_object_get(header, "seed"));
    if (header != NULL && settings->demo)
        take_mailboxes(settings, header);
    if (settings->demo && settings->mailboxes.count == 0)
        add_demo(settings, DEMO_MESSAGES);
    else if (settings->demo && is_demo(settings)) {
        settings->mailboxes.count = 0;
        add_demo(settings, DEMO_MESSAGES);
    }
    for (size_t i = 0; i < settings->corpora.count; i++) {
        struct box_setting *corpus = &settings->corpora.items[i];
        if (corpus->left.data == NULL) {
            if (settings->mailboxes.count == 0)
                add_demo(settings, 0);
            corpus->left = settings->mailboxes.items[0].left;
        }
        if (!has_mailbox(settings, corpus->left)) {
            struct box_setting mailbox = {.left = corpus->left};
            box_settings_add(&settings->mailboxes, &mailbox);
        }
    }
}

/* ---- filling the cloud ---- */

static tide_status add_mailboxes(const struct box_settings *settings, box_cloud *cloud,
                                 uint64_t now_unix_ms, json_t *list, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < settings->mailboxes.count; i++) {
        const struct box_setting *item = &settings->mailboxes.items[i];
        struct box_mailbox_options options = {.messages = item->number,
                                              .size_bytes = (uint32_t)item->size_bytes,
                                              .now_unix_ms = now_unix_ms};
        rc = box_cloud_add_mailbox(cloud, item->left, &options, err);
        json_array_append_new(list, json_pack("{s:s%,s:i,s:i}", "email", item->left.data,
                                              item->left.bytes, "messages", (int)item->number,
                                              "size", (int)item->size_bytes));
    }
    return rc;
}

/* A header has "drives" only when there are some, as those of earlier versions. */
static tide_status add_drives(const struct box_settings *settings, box_cloud *cloud,
                              uint64_t now_unix_ms, json_t *header, tide_error *err)
{
    json_t *list = json_array();
    for (size_t i = 0; i < settings->drives.count; i++) {
        const struct box_setting *item = &settings->drives.items[i];
        struct box_user *user = box_cloud_user_need(cloud, item->left, err);
        if (user == NULL) {
            json_decref(list);
            return TIDE_INVALID;
        }
        json_t *drive = json_pack("{s:s%,s:i,s:I}", "email", item->left.data, item->left.bytes,
                                  "files", (int)item->number, "size", (json_int_t)item->size_bytes);
        if (item->business) {
            box_drive_business(box_user_drive(user));
            json_object_set_new(drive, "business", json_true());
        }
        box_drive_fill(box_user_drive(user), item->number, item->size_bytes, now_unix_ms);
        json_array_append_new(list, drive);
    }
    if (settings->drives.count > 0)
        json_object_set(header, "drives", list);
    json_decref(list);
    return TIDE_OK;
}

static tide_status add_corpora(const struct box_settings *settings, box_cloud *cloud, json_t *list,
                               tide_error *err)
{
    for (size_t i = 0; i < settings->corpora.count; i++) {
        const struct box_setting *item = &settings->corpora.items[i];
        struct box_corpus corpus;
        /* The directory ends its argument, hence is terminated. */
        tide_status rc = box_corpus_load(cloud, item->left, item->right.data, &corpus, err);
        if (rc != TIDE_OK)
            return rc;
        if (!settings->quiet)
            fprintf(stderr, "%s: %" PRIu64 " messages for %.*s%s\n", item->right.data,
                    corpus.messages, (int)item->left.bytes, item->left.data,
                    corpus.skipped > 0 ? ", some were skipped" : "");
        json_array_append_new(
            list, json_pack("{s:s%,s:I,s:s}", "email", item->left.data, item->left.bytes,
                            "messages", (json_int_t)corpus.messages, "sha256", corpus.digest));
    }
    return TIDE_OK;
}

static tide_status add_rest(const struct box_settings *settings, box_cloud *cloud, tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < settings->tokens.count; i++)
        rc = box_cloud_add_token(cloud, settings->tokens.items[i].left,
                                 settings->tokens.items[i].right, err);
    for (size_t i = 0; rc == TIDE_OK && i < settings->sites.count; i++) {
        const struct box_setting *site = &settings->sites.items[i];
        rc = box_cloud_add_site(cloud, site->left, site->right,
                                site->number == 0 ? SITE_ROWS : site->number, err);
    }
    for (size_t i = 0; rc == TIDE_OK && i < settings->topics.count; i++)
        rc = box_cloud_add_topic(cloud, settings->topics.items[i].left,
                                 settings->topics.items[i].right, err);
    return rc;
}

/* The last of all, so that no rule of chance depends on what was replayed. */
static tide_status add_faults(const struct box_settings *settings, box_cloud *cloud,
                              tide_error *err)
{
    tide_status rc = TIDE_OK;
    for (size_t i = 0; rc == TIDE_OK && i < settings->faults.count; i++) {
        tide_auto_buf json = tide_buf_heap(BOX_TARGET_BYTES_MAX);
        rc = box_settings_fault(&settings->faults.items[i], &json, err);
        if (rc == TIDE_OK)
            rc = box_cloud_add_fault(cloud, tide_buf_text(&json), err);
    }
    return rc;
}

/* ---- what a state was begun with ---- */

static void describe(const json_t *header, tide_buf *out)
{
    size_t i;
    json_t *item;
    box_print(out, "--seed %" PRIu64,
              (uint64_t)json_integer_value(json_object_get(header, "seed")));
    json_array_foreach(json_object_get(header, "mailboxes"), i, item)
    {
        json_int_t size = json_integer_value(json_object_get(item, "size"));
        if (i == 3) {
            box_add_cstr(out, " ...");
            break;
        }
        box_print(out, " --mailbox %.100s=%" JSON_INTEGER_FORMAT,
                  json_string_value(json_object_get(item, "email")),
                  json_integer_value(json_object_get(item, "messages")));
        if (size > 0)
            box_print(out, ",size=%" JSON_INTEGER_FORMAT, size);
    }
    if (json_array_size(json_object_get(header, "corpora")) > 0)
        box_add_cstr(out, " and the same --corpus");
    if (json_array_size(json_object_get(header, "drives")) > 0)
        box_add_cstr(out, " and the same --drive");
}

static tide_status check_header(const struct box_settings *settings, const json_t *header,
                                const json_t *made, tide_error *err)
{
    static const char *const names[] = {"seed", "mailboxes", "corpora", "drives"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const json_t *then = json_object_get(header, names[i]);
        const json_t *now = json_object_get(made, names[i]);
        if (json_equal(then, now) || (then == NULL && now == NULL))
            continue;
        tide_auto_buf text = tide_buf_heap(4096);
        describe(header, &text);
        return tide_error_set(
            err, TIDE_INVALID,
            "%s was begun with other options (%s differ%s): start with %s, or remove the file",
            settings->state, names[i], i == 0 ? "s" : "", tide_buf_cstr(&text));
    }
    return TIDE_OK;
}

/* The clock of a kept state continues where it stopped. */
static void settle_times(struct box_settings *settings, const struct box_shared *shared,
                         const json_t *header, uint64_t *made_unix_ms_out,
                         uint64_t *clock_unix_ms_out)
{
    uint64_t now_unix_ms = shared->start_unix_ms;
    *made_unix_ms_out = now_unix_ms;
    *clock_unix_ms_out = settings->cloud.start_unix_ms;
    if (header == NULL)
        return;
    *made_unix_ms_out = (uint64_t)json_integer_value(json_object_get(header, "made_unix_ms"));
    *clock_unix_ms_out = (uint64_t)json_integer_value(json_object_get(header, "clock_unix_ms"));
    uint64_t passed_ms = now_unix_ms > *made_unix_ms_out ? now_unix_ms - *made_unix_ms_out : 0;
    uint64_t reached_ms = *clock_unix_ms_out == 0 ? 0 : *clock_unix_ms_out + passed_ms;
    if (reached_ms > settings->cloud.start_unix_ms)
        settings->cloud.start_unix_ms = reached_ms;
}

static tide_status fill(const struct box_settings *settings, box_cloud *cloud, box_state *state,
                        uint64_t made_unix_ms, uint64_t clock_unix_ms, tide_error *err)
{
    json_auto_t *made =
        json_pack("{s:i,s:I,s:I,s:I,s:[],s:[]}", "tidemark-cloud", BOX_STATE_FORMAT, "seed",
                  (json_int_t)settings->cloud.seed, "made_unix_ms", (json_int_t)made_unix_ms,
                  "clock_unix_ms", (json_int_t)clock_unix_ms, "mailboxes", "corpora");
    TIDE_ASSERT(made != NULL);
    const json_t *header = state == NULL ? NULL : box_state_header(state);
    tide_status rc =
        add_mailboxes(settings, cloud, clock_unix_ms > 0 ? clock_unix_ms : made_unix_ms,
                      json_object_get(made, "mailboxes"), err);
    if (rc == TIDE_OK)
        rc = add_corpora(settings, cloud, json_object_get(made, "corpora"), err);
    if (rc == TIDE_OK)
        rc = add_drives(settings, cloud, clock_unix_ms > 0 ? clock_unix_ms : made_unix_ms, made,
                        err);
    if (rc == TIDE_OK)
        rc = add_rest(settings, cloud, err);
    if (rc == TIDE_OK && header != NULL)
        rc = check_header(settings, header, made, err);
    else if (rc == TIDE_OK && state != NULL)
        rc = box_state_begin(state, made, err);
    return rc;
}

tide_status box_setup(struct box_settings *settings, struct box_shared *shared, box_state *state,
                      tide_error *err)
{
    const json_t *header = state == NULL ? NULL : box_state_header(state);
    uint64_t made_unix_ms, clock_unix_ms, lines = 0;
    complete(settings, header);
    settle_times(settings, shared, header, &made_unix_ms, &clock_unix_ms);
    if (state != NULL) {
        settings->cloud.keep = box_state_keep;
        settings->cloud.keep_arg = state;
    }
    shared->state = state;
    settings->cloud.services = box_services_all;
    shared->cloud = box_cloud_new(&settings->cloud);
    tide_status rc = fill(settings, shared->cloud, state, made_unix_ms, clock_unix_ms, err);
    if (rc == TIDE_OK && state != NULL)
        rc = box_state_replay(state, shared->cloud, &lines, err);
    if (rc == TIDE_OK)
        rc = add_faults(settings, shared->cloud, err);
    if (rc != TIDE_OK)
        return rc;
    if (state != NULL)
        box_state_record(state);
    if (lines > 0 && !settings->quiet)
        fprintf(stderr, "%s: %" PRIu64 " changes taken up again\n", settings->state, lines);
    return TIDE_OK;
}
