#include "reader_jobs_fixture.h"

#include "cloudbox/gate/service.h"
#include "cloudbox/gate/user.h"
#include "cloudbox/mailbox/mime.h"
#include "ledger/rows.h"
#include "mail/mail.h"
#include "mail/rows.h"

static const char *const emails[USERS] = {ME, YOU};
static const char *const tokens[USERS] = {"me-0", "you-0"};

/* ---- the network ---- */

static unsigned user_of(const struct tide_request *request)
{
    for (size_t i = 0; i < request->headers_count; i++)
        for (unsigned user = 0; user < USERS; user++)
            if (memmem(request->headers[i].value.data, request->headers[i].value.bytes,
                       tokens[user], strlen(tokens[user])) != NULL)
                return user;
    return 0;
}

static void provide(void *arg, const struct tide_request *request, uint64_t now_unix_ms,
                    tide_rng *rng, struct tide_sim_answer *answer)
{
    struct fixture *f = arg;
    const char *path = strstr(request->url, "/users/me/");
    if (f->calls_count < CALLS_MAX) {
        struct call *call = &f->calls[f->calls_count++];
        call->user = user_of(request);
        call->at_ms = now_unix_ms;
        (void)snprintf(call->what, sizeof call->what, "%s %s", request->method,
                       path == NULL ? request->url : path + 10);
    }
    tide_sim_cloud_call(f->cloud, request, now_unix_ms, rng, answer);
    answer->think_us += f->think_us;
}

/* ---- lives ---- */

static tide_status put_rows(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct fixture *f = arg;
    const tide_rows db = tide_transaction_rows(transaction);
    TIDE_TRY(tide_mail_tables(db, err));
    for (unsigned i = 0; i < USERS; i++) {
        struct tide_mail_row row = {.account = f->accounts[i], .epoch = 1};
        (void)snprintf(row.email, sizeof row.email, "%s", emails[i]);
        (void)snprintf(row.endpoint, sizeof row.endpoint, ORIGIN);
        TIDE_TRY(tide_mail_row_put(db, &row, err));
    }
    return TIDE_OK;
}

static tide_status engine_begin(struct fixture *f, tide_error *err)
{
    tide_world *world = tide_sim_world(f->sim);
    const struct tide_engine_options options = {.state_dir = "/state",
                                                .world = world,
                                                .set = f->settings,
                                                .no_control_socket = true,
                                                .workers = 4};
    TIDE_TRY(tide_engine_open(&options, &f->engine, err));
    for (unsigned i = 0; i < USERS; i++)
        TIDE_TRY(tide_engine_account(f->engine, emails[i], "gmail", &f->accounts[i], err));
    TIDE_TRY(tide_transact(f->engine, put_rows, f, err));
    const struct tide_reader_options reader = {.engine = f->engine,
                                               .world = world,
                                               .secrets = f->secrets,
                                               .archive_dir = "/archive",
                                               .cache_dir = "/cache"};
    TIDE_TRY(tide_reader_open(&reader, tide_mem_heap(), &f->reader, err));
    return tide_engine_start(f->engine, err);
}

tide_status life_begin(struct fixture *f)
{
    tide_world *world = tide_sim_world(f->sim);
    tide_error err = {TIDE_OK, 0, ""};
    tide_secrets *again = NULL;
    tide_status rc =
        tide_sim_signed_in(world, "/secrets", "gmail/" ME, tokens[0], &f->secrets, &err);
    if (rc == TIDE_OK)
        rc = tide_sim_signed_in(world, "/secrets", "gmail/" YOU, tokens[1], &again, &err);
    tide_secrets_close(again);
    if (rc == TIDE_OK)
        rc = engine_begin(f, &err);
    if (rc != TIDE_OK && !f->may_die)
        fail_msg("a life did not begin: %s", err.text);
    return rc;
}

void life_end(struct fixture *f)
{
    const tide_status rc = tide_engine_close(f->engine);
    if (!f->may_die)
        assert_int_equal(rc, TIDE_OK);
    f->engine = NULL;
    tide_reader_close(f->reader);
    f->reader = NULL;
    tide_secrets_close(f->secrets);
    f->secrets = NULL;
}

tide_status settle(struct fixture *f)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_engine_wait(f->engine, TIDE_WAIT_FOREVER, &err);
    if (rc != TIDE_OK && !f->may_die)
        fail_msg("settle: %s", err.text);
    return rc;
}

void pass(struct fixture *f, uint64_t ms)
{
    tide_world *world = tide_sim_world(f->sim);
    (void)tide_world_sleep_until(world, tide_world_now_us(world) + ms * 1000, NULL);
}

uint64_t now_ms(struct fixture *f)
{
    return tide_sim_net_unix_ms(f->sim);
}

void poll_now(struct fixture *f, unsigned user)
{
    OK(tide_reader_begin(f->reader, f->accounts[user], err));
}

struct fixture *begin_in(uint64_t seed, const struct tide_sim_options *options)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    box_mime_start();
    f->cloud = tide_sim_cloud_new(
        &(struct box_options){.seed = 3, .quota = BOX_QUOTA_2026, .concurrency_max = 10});
    struct tide_sim_options world = *options;
    world.net.provide = provide;
    world.net.provide_arg = f;
    f->sim = tide_sim_new(seed, &world);
    for (unsigned i = 0; i < USERS; i++)
        f->mailboxes[i] = tide_sim_cloud_user(f->cloud, f->sim, emails[i], tokens[i],
                                              (struct box_mailbox_options){.messages = 0});
    return f;
}

struct fixture *begin(void)
{
    const struct tide_sim_options options = {.net = {.latency_us_max = 20000}};
    struct fixture *f = begin_in(11, &options);
    OK(life_begin(f));
    return f;
}

void finish(struct fixture *f)
{
    life_end(f);
    tide_sim_free(f->sim);
    tide_sim_cloud_free(f->cloud);
    free(f);
}

/* ---- the server ---- */

static const char *insert(struct fixture *f, unsigned user, uint64_t age_ms, tide_text raw)
{
    static const uint16_t labels[] = {BOX_LABEL_INBOX, BOX_LABEL_UNREAD};
    const struct box_insert message = {.raw = raw,
                                       .date_ms = tide_sim_net_unix_ms(f->sim) - age_ms,
                                       .thread_id = TIDE_TEXT_NONE,
                                       .labels = labels,
                                       .labels_count = 2};
    char id[BOX_ID_TEXT_BYTES];
    const uint32_t slot = box_mailbox_insert(f->mailboxes[user], &message);
    box_id_text(box_mailbox_at(f->mailboxes[user], slot)->id, id);
    return textf("%s", id);
}

const char *deliver_big(struct fixture *f, unsigned user, uint64_t age_ms, size_t bytes)
{
    char *raw = malloc(bytes + 400);
    assert_non_null(raw);
    const int head = snprintf(raw, 400,
                              "From: Anna <anna@example.com>\r\nTo: %s\r\nSubject: =?utf-8?q?Gr=C3="
                              "BC=C3=9Fe?= %u\r\nMessage-ID: <%u@example.com>\r\n\r\nHello %u\r\n",
                              emails[user], f->delivered, f->delivered, f->delivered);
    f->delivered++;
    uint64_t chance =
        f->delivered; /* letters that do not pack: the cache is as full as they are long */
    for (size_t i = 0; i < bytes; i++) {
        chance = chance * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        raw[(size_t)head + i] = i % 76 == 75 ? '\n' : (char)('0' + (char)((chance >> 40) % 64));
    }
    const char *id = insert(f, user, age_ms, (tide_text){raw, (size_t)head + bytes});
    free(raw);
    return id;
}

const char *deliver(struct fixture *f, unsigned user, uint64_t age_ms)
{
    return deliver_big(f, user, age_ms, 0);
}

static uint32_t slot_of(struct fixture *f, unsigned user, const char *id)
{
    const uint32_t slot = box_mailbox_find(f->mailboxes[user], tide_text_of(id));
    assert_int_not_equal(slot, BOX_SLOT_NONE);
    return slot;
}

bool labeled(struct fixture *f, unsigned user, const char *id, uint16_t label)
{
    return box_mailbox_has_label(f->mailboxes[user], slot_of(f, user, id), label);
}

void relabel(struct fixture *f, unsigned user, const char *id, uint16_t label, bool on)
{
    box_mailbox_relabel(f->mailboxes[user], slot_of(f, user, id), &label, on, &label, !on);
}

size_t calls_with(struct fixture *f, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < f->calls_count; i++)
        count += strstr(f->calls[i].what, part) != NULL;
    return count;
}

const struct call *call_with(struct fixture *f, const char *part)
{
    for (size_t i = 0; i < f->calls_count; i++)
        if (strstr(f->calls[i].what, part) != NULL)
            return &f->calls[i];
    return NULL;
}

/* ---- the person ---- */

struct listing {
    struct fixture *f;
    unsigned user;
    const char *label;
    char *text;
    size_t text_bytes;
    size_t count;
    tide_cache *cache;
    tide_archive *archive;
};

static void day_key(int64_t day, char key[24])
{
    (void)snprintf(key, 24, "%" PRId64, day);
}

static void day_take(int64_t day, uint64_t count, void *arg)
{
    json_t *left = arg;
    char key[24];
    day_key(day, key);
    const json_int_t listed = json_integer_value(json_object_get(left, key));
    if (listed != (json_int_t)count)
        fail_msg("day %s: %" JSON_INTEGER_FORMAT " are listed, %" PRIu64 " are counted", key,
                 listed, count);
    (void)json_object_del(left, key);
}

/* What is counted is what is listed, day by day. */
static tide_status days_check(const struct tide_reader_mailbox *mailbox, const char *label,
                              json_t *listed, tide_error *err)
{
    TIDE_TRY(tide_reader_days(mailbox, tide_text_of(label), day_take, listed, err));
    if (json_object_size(listed) > 0)
        fail_msg("%s: %zu days are not counted", label, json_object_size(listed));
    return TIDE_OK;
}

/* The same in one number, where nothing that is known is held back. */
static tide_status total_check(const struct tide_reader_mailbox *mailbox, const char *label,
                               size_t listed, size_t unread, tide_error *err)
{
    json_auto_t *totals = json_object();
    json_auto_t *unreads = json_object();
    int64_t bottom = 0;
    bool online = false;
    TIDE_TRY(tide_reader_bottom(mailbox, tide_text_of(label), &bottom, &online, err));
    TIDE_TRY(tide_reader_totals(mailbox, totals, unreads, err));
    const json_int_t total = json_integer_value(json_object_get(totals, label));
    if (total < (json_int_t)listed || (bottom == INT64_MIN && total != (json_int_t)listed))
        fail_msg("%s: %zu are listed, the total is %" JSON_INTEGER_FORMAT, label, listed, total);
    const json_int_t counted = json_integer_value(json_object_get(unreads, label));
    if (counted < (json_int_t)unread || (bottom == INT64_MIN && counted != (json_int_t)unread))
        fail_msg("%s: %zu are unread, %" JSON_INTEGER_FORMAT " are counted", label, unread,
                 counted);
    return TIDE_OK;
}

/* Reads in a transaction of the ledger, as commands read a ledger of their own. */
static tide_status list_all(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct listing *listing = arg;
    const struct tide_reader_mailbox mailbox = {.mem = tide_mem_heap(),
                                                .account = listing->f->accounts[listing->user],
                                                .cache = listing->cache,
                                                .archive = listing->archive,
                                                .db = tide_transaction_rows(transaction),
                                                .has_overlay = true};
    tide_auto_buf after = tide_buf_heap(1000);
    json_auto_t *days = json_object();
    size_t unread = 0;
    listing->count = 0;
    listing->text[0] = '\0';
    do {
        const struct tide_listing page = {.label = tide_text_of(listing->label),
                                          .after = tide_buf_text(&after),
                                          .before_ms = INT64_MAX,
                                          .limit = 7};
        struct tide_listed listed = {.next = tide_buf_heap(1000)};
        tide_json items;
        size_t at = 0;
        const json_t *one = NULL;
        tide_json_array(&items);
        const tide_status rc = tide_reader_list(&mailbox, &page, &items, &listed, err);
        json_array_foreach(items.value, at, one)
        {
            const size_t used = strlen(listing->text);
            (void)snprintf(listing->text + used, listing->text_bytes - used, "%s%s",
                           used == 0 ? "" : " ", json_string_value(json_object_get(one, "id")));
            listing->count++;
            unread += json_is_true(json_object_get(one, "unread"));
            char day[24];
            day_key(json_integer_value(json_object_get(one, "internal_unix_ms")) / (int64_t)DAY_MS,
                    day);
            (void)json_object_set_new(
                days, day, json_integer(json_integer_value(json_object_get(days, day)) + 1));
        }
        tide_json_done(&items);
        tide_buf_rest(&after);
        if (rc == TIDE_OK)
            (void)tide_buf_add(&after, tide_buf_cstr(&listed.next), listed.next.bytes);
        tide_buf_done(&listed.next);
        TIDE_TRY(rc);
    } while (after.bytes > 0);
    TIDE_TRY(days_check(&mailbox, listing->label, days, err));
    return total_check(&mailbox, listing->label, listing->count, unread, err);
}

static void list_with(struct listing *listing,
                      tide_status (*how)(tide_transaction *transaction, void *arg, tide_error *err))
{
    struct fixture *f = listing->f;
    struct tide_reader_user *user = NULL;
    OK(tide_reader_cache_take(f->reader, f->accounts[listing->user], &user, &listing->cache, err));
    listing->archive = tide_reader_archive(f->reader, user);
    OK(tide_transact(f->engine, how, listing, err));
    if (listing->archive != NULL)
        tide_shelf_give(f->reader->shelf, listing->archive);
    tide_reader_cache_give(f->reader, user, listing->cache);
}

/* Reads pages of three, so that they are continued. */
static tide_status find_all(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct listing *listing = arg;
    const struct tide_reader_mailbox mailbox = {.mem = tide_mem_heap(),
                                                .account = listing->f->accounts[listing->user],
                                                .cache = listing->cache,
                                                .archive = listing->archive,
                                                .db = tide_transaction_rows(transaction),
                                                .has_overlay = true};
    tide_query *query = NULL;
    char after[300] = "";
    listing->text[0] = '\0';
    TIDE_TRY(tide_query_parse(tide_text_of(listing->label), (int64_t)now_ms(listing->f), 0,
                              tide_mem_heap(), &query, err));
    tide_status rc = TIDE_OK;
    do {
        const struct tide_finding finding = {.query = query,
                                             .email = emails[listing->user],
                                             .after = tide_text_of(after),
                                             .limit = 3};
        tide_auto_buf next = tide_buf_heap(sizeof after - 1);
        tide_json items;
        size_t at = 0;
        const json_t *one = NULL;
        tide_json_array(&items);
        rc = tide_reader_find(&mailbox, &finding, &items, &next, err);
        json_array_foreach(items.value, at, one)
        {
            const size_t used = strlen(listing->text);
            (void)snprintf(listing->text + used, listing->text_bytes - used, "%s%s",
                           used == 0 ? "" : " ", json_string_value(json_object_get(one, "id")));
        }
        tide_json_done(&items);
        (void)snprintf(after, sizeof after, "%s", tide_buf_cstr(&next));
    } while (rc == TIDE_OK && after[0] != '\0');
    tide_query_free(query);
    if (rc == TIDE_INVALID && strstr(err->text, "no label") != NULL) {
        (void)snprintf(listing->text, listing->text_bytes, "no label");
        rc = TIDE_OK;
    }
    return rc;
}

const char *found(struct fixture *f, unsigned user, const char *query)
{
    static char text[64 << 10];
    struct listing listing = {f, user, query, text, sizeof text, 0, NULL, NULL};
    list_with(&listing, find_all);
    return text;
}

const char *shown(struct fixture *f, unsigned user, const char *label)
{
    static char text[64 << 10];
    struct listing listing = {f, user, label, text, sizeof text, 0, NULL, NULL};
    list_with(&listing, list_all);
    return text;
}

size_t count_shown(struct fixture *f, unsigned user, const char *label)
{
    static char text[64 << 10];
    struct listing listing = {f, user, label, text, sizeof text, 0, NULL, NULL};
    list_with(&listing, list_all);
    return listing.count;
}

static bool see_body(const struct tide_cached *cached, void *arg)
{
    *(bool *)arg = cached->body;
    return false;
}

bool has_body(struct fixture *f, unsigned user, const char *id)
{
    struct tide_reader_user *of = NULL;
    tide_cache *cache = NULL;
    bool body = false;
    OK(tide_reader_cache_take(f->reader, f->accounts[user], &of, &cache, err));
    (void)tide_cache_find(cache, tide_text_of(id), see_body, &body, NULL);
    tide_reader_cache_give(f->reader, of, cache);
    return body;
}

uint64_t refused_here(struct fixture *f, unsigned user)
{
    struct tide_reader_user *of = NULL;
    tide_cache *cache = NULL;
    uint64_t count = 0;
    OK(tide_reader_cache_take(f->reader, f->accounts[user], &of, &cache, err));
    OK(tide_cache_refused_count(cache, &count, err));
    tide_reader_cache_give(f->reader, of, cache);
    return count;
}

struct tide_reader_action act(struct fixture *f, unsigned user, const char *what, const char *id)
{
    const tide_text message = tide_text_of(id);
    const struct tide_reader_wish wish = {.what = what, .messages = &message, .messages_count = 1};
    struct tide_reader_action action = {.id = 0};
    OK(tide_reader_act(f->reader, f->accounts[user], &wish, &action, err));
    return action;
}

struct looking {
    uint32_t account;
    struct tide_reader_action action;
};

static tide_status look(tide_transaction *transaction, void *arg, tide_error *err)
{
    struct looking *looking = arg;
    return tide_action_get(tide_transaction_rows(transaction), looking->account, looking->action.id,
                           &looking->action, err);
}

struct tide_reader_action action_of(struct fixture *f, unsigned user, uint64_t id)
{
    struct looking looking = {f->accounts[user], {.id = id}};
    OK(tide_transact(f->engine, look, &looking, err));
    return looking.action;
}

static tide_status count_failed(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_rows_number(tide_transaction_rows(transaction), "jobs", arg, err,
                            "SELECT count(*) FROM job WHERE state >= 3");
}

uint64_t failed_jobs(struct fixture *f)
{
    uint64_t count = 0;
    OK(tide_transact(f->engine, count_failed, &count, err));
    return count;
}

/* ---- the mirror ---- */

void archive(struct fixture *f, unsigned user, const char *id)
{
    static const tide_text labels[] = {{"INBOX", 5}, {"UNREAD", 6}};
    char dir[300];
    tide_archive *archive = NULL;
    uint64_t ticket = 0;
    tide_buf scratch = heap_buf(1 << 22);
    const uint32_t slot = slot_of(f, user, id);
    tide_mail_dir("/archive", emails[user], dir, sizeof dir);
    const struct tide_archive_options options = {
        .dir = dir, .account = emails[user], .world = tide_sim_world(f->sim)};
    OK(tide_archive_open(&options, tide_mem_heap(), &archive, err));
    const struct tide_incoming message = {
        .gmail_id = tide_text_of(id),
        .thread_id = tide_text_of(id),
        .history_id = TIDE_TEXT("1"),
        .internal_ms = (int64_t)box_mailbox_at(f->mailboxes[user], slot)->date_ms,
        .labels = labels,
        .labels_count = 2,
        .raw = box_mailbox_raw(f->mailboxes[user], slot, &scratch)};
    OK(tide_archive_put(archive, &message, NULL, &ticket, err));
    OK(tide_archive_sync(archive, ticket, NULL, err));
    OK(tide_archive_close(archive, err));
    tide_buf_done(&scratch);
}
