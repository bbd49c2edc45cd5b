/* person_cloud.c - the server: mailboxes, what happens in them, and when it lies. */
#include "person.h"

#include <inttypes.h>
#include <string.h>

#define LIST    "gmail.users.messages.list"
#define HISTORY "gmail.users.history.list"
#define GET     "gmail.users.messages.get"

/* The rule of each trouble of the server.  NULL: it is made otherwise. */
static const struct {
    const char *method;
    const char *fault;
    const char *more;
} rules[PERSON_TROUBLES] = {
    [PERSON_LIST_EMPTY] = {LIST, "list-empty", ""},
    [PERSON_LIST_SHORT] = {LIST, "list-short", ""},
    [PERSON_LIST_FAILS] = {LIST, "500", ""},
    [PERSON_LIST_LOOPS] = {LIST, "page-loop", ""},
    [PERSON_LIST_RESTARTS] = {LIST, "page-restart", ""},
    [PERSON_HISTORY_FAILS] = {HISTORY, "500", ""},
    [PERSON_HISTORY_LOOPS] = {HISTORY, "page-loop", ""},
    [PERSON_HISTORY_GARBLED] = {"gmail.*", "history-garbled", ""},
    [PERSON_HISTORY_AHEAD] = {"gmail.*", "history-ahead", ""},
    [PERSON_ID_GARBLED] = {"gmail.*", "id-garbled", ""},
    [PERSON_GET_403] = {GET, "403", ""},
    [PERSON_GET_404] = {GET, "404", ""},
    [PERSON_RAW_HALF] = {GET, "raw-half", ""},
    [PERSON_RAW_EMPTY] = {GET, "raw-empty", ""},
    [PERSON_HIDDEN] = {"gmail.*", "hidden", ",\"rate\":0.3"},
    [PERSON_RETRY_AFTER] = {"gmail.*", "429", ",\"retry_after\":999999999"},
    [PERSON_SIGN_IN] = {"gmail.*", "401", ""},
    [PERSON_UNREACHABLE] = {"gmail.*", "reset-before", ""},
    [PERSON_ALL_403] = {"gmail.*", "403", ""},
};

static json_t *control(struct person *self, const char *method, const char *path, tide_text body)
{
    return tide_sim_cloud_control(self->cloud, self->sim, method, path, body);
}

static void add_rule(struct person *self, const char *json)
{
    json_decref(control(self, "POST", "/_cloud/faults", tide_text_of(json)));
}

/* ---- mailboxes ---- */

/* `age_ms`: how long ago it came. */
static void arrives(struct person *self, struct person_account *account, uint64_t age_ms)
{
    const uint32_t slot = box_mailbox_slots(account->mailbox);
    char path[160];
    tide_buf raw;
    if (slot == PERSON_MESSAGES_MAX)
        return;
    tide_buf_init(&raw, tide_mem_heap(), 1 << 20);
    TIDE_ASSERT(tide_buf_print(&raw,
                               "From: x@example.org\r\nTo: %s\r\nMessage-ID: <%u@sim>\r\n"
                               "Subject: number %u\r\n\r\n",
                               account->email, slot, slot) == TIDE_OK);
    for (uint64_t left = 5 + tide_rng_below(&self->rng, 30); left > 0; left--)
        TIDE_ASSERT(tide_buf_print(&raw, "%" PRIx64 "\r\n", tide_rng_next(&self->rng)) == TIDE_OK);
    (void)snprintf(path, sizeof path, "/_cloud/mail?user=%s&date=%" PRIu64, account->email,
                   tide_sim_net_unix_ms(self->sim) - age_ms);
    if (age_ms == 0)
        account->facts[slot].arrived_ms = tide_world_now_unix_ms(self->world);
    json_decref(control(self, "POST", path, tide_buf_text(&raw)));
    person_check_hash(account, slot);
    tide_buf_done(&raw);
}

static void changes(struct person *self, struct person_account *account, bool deletes)
{
    static const char *const labels[] = {"STARRED", "UNREAD", "INBOX", "IMPORTANT"};
    const uint32_t slots = box_mailbox_slots(account->mailbox);
    const uint32_t slot = (uint32_t)tide_rng_below(&self->rng, slots);
    char id[BOX_ID_TEXT_BYTES];
    char body[200];
    if (slots == 0 || box_mailbox_at(account->mailbox, slot)->gone)
        return;
    box_id_text(box_mailbox_at(account->mailbox, slot)->id, id);
    person_check_hash(account, slot);
    if (deletes)
        (void)snprintf(body, sizeof body, "{\"user\":\"%s\",\"ids\":[\"%s\"]}", account->email, id);
    else
        (void)snprintf(body, sizeof body, "{\"user\":\"%s\",\"ids\":[\"%s\"],\"%s\":[\"%s\"]}",
                       account->email, id, tide_rng_chance(&self->rng, 1, 2) ? "add" : "remove",
                       labels[tide_rng_below(&self->rng, 4)]);
    account->facts[slot].deleted = account->facts[slot].deleted || deletes;
    json_decref(control(self, "POST", deletes ? "/_cloud/mail/delete" : "/_cloud/mail/label",
                        tide_text_of(body)));
}

void person_cloud_news(struct person *self, struct person_account *account)
{
    for (uint64_t left = tide_rng_below(&self->rng, 5); left > 0; left--) {
        const uint64_t what = tide_rng_below(&self->rng, 10);
        if (what < 6)
            arrives(self, account, 0);
        else
            changes(self, account, what == 9);
    }
}

/* A mailbox without an account here; its token may come by mistake. */
static void make_foreign_mailbox(struct person *self)
{
    (void)tide_sim_cloud_user(self->cloud, self->sim, "mallory@example.com", "tok-mallory",
                              (struct box_mailbox_options){
                                  .messages = 3, .size_bytes = 1000, .seed = self->plan.seed + 99});
}

void person_cloud_make(struct person *self)
{
    static const char *const names[PERSON_ACCOUNTS_MAX] = {"ada", "bob", "eve"};
    make_foreign_mailbox(self);
    for (uint32_t i = 0; i < self->plan.accounts; i++) {
        struct person_account *account = &self->accounts[i];
        (void)snprintf(account->email, sizeof account->email, "%s@example.com", names[i]);
        (void)snprintf(account->token, sizeof account->token, "tok-%s", names[i]);
        account->mailbox =
            tide_sim_cloud_user(self->cloud, self->sim, account->email, account->token,
                                (struct box_mailbox_options){.seed = self->plan.seed * 8 + i});
        /* Of this year and the one before: each year is a file of the archive. */
        for (uint32_t slot = 0; slot < self->plan.messages[i]; slot++)
            arrives(self, account, 1 + tide_rng_below(&self->rng, UINT64_C(300) * 86400000));
    }
}

/* ---- troubles ---- */

/* Histories end: what comes next is a complete listing. */
static void expire(struct person *self, struct person_account *account)
{
    char body[80];
    (void)snprintf(body, sizeof body, "{\"user\":\"%s\"}", account->email);
    json_decref(control(self, "POST", "/_cloud/history/expire", tide_text_of(body)));
    account->blind = true;
}

static void poison(struct person *self, struct person_account *account)
{
    for (uint32_t slot = 0; slot < box_mailbox_slots(account->mailbox); slot++) {
        char id[BOX_ID_TEXT_BYTES];
        char rule[200];
        if (!account->facts[slot].poison)
            continue;
        box_id_text(box_mailbox_at(account->mailbox, slot)->id, id);
        (void)snprintf(rule, sizeof rule,
                       "{\"method\":\"gmail.users.messages.get\",\"user\":\"%s\",\"id\":\"%s\","
                       "\"fault\":\"500\"}",
                       account->email, id);
        add_rule(self, rule);
    }
}

static void begin(struct person *self, struct person_account *account, int trouble)
{
    char rule[300];
    self->totals.troubles[trouble]++;
    if (trouble == PERSON_POISON) {
        for (int i = 0; i < 3; i++)
            account->facts[tide_rng_below(&self->rng, box_mailbox_slots(account->mailbox))].poison =
                true;
        poison(self, account);
    }
    if (rules[trouble].method == NULL)
        return;
    (void)snprintf(rule, sizeof rule, "{\"method\":\"%s\",\"user\":\"%s\",\"fault\":\"%s\"%s}",
                   rules[trouble].method, account->email, rules[trouble].fault,
                   rules[trouble].more);
    add_rule(self, rule);
    const bool of_lists = trouble <= PERSON_LIST_RESTARTS || trouble == PERSON_ID_GARBLED;
    if (trouble == PERSON_HISTORY_GARBLED || trouble == PERSON_HISTORY_AHEAD)
        account->blind = true;
    if (trouble == PERSON_HIDDEN || (of_lists && tide_rng_chance(&self->rng, 1, 2)))
        expire(self, account);
}

void person_cloud_trouble(struct person *self, struct person_account *account, uint64_t troubles)
{
    json_t *list = control(self, "GET", "/_cloud/faults", TIDE_TEXT_NONE);
    size_t index = 0;
    const json_t *rule = NULL;
    json_array_foreach(json_is_array(list) ? list : json_object_get(list, "faults"), index, rule)
    {
        char path[60];
        const char *user = json_string_value(json_object_get(rule, "user"));
        if (user == NULL || strcmp(user, account->email) != 0)
            continue;
        (void)snprintf(path, sizeof path, "/_cloud/faults/%" JSON_INTEGER_FORMAT,
                       json_integer_value(json_object_get(rule, "rule")));
        json_decref(control(self, "DELETE", path, TIDE_TEXT_NONE));
    }
    json_decref(list);
    /* What was denied is there again, and a listing shows it. */
    if ((account->troubles >> PERSON_HIDDEN & 1) != 0)
        expire(self, account);
    account->troubles = troubles;
    for (int trouble = 0; trouble < PERSON_TROUBLES; trouble++)
        if ((troubles >> trouble & 1) != 0)
            begin(self, account, trouble);
}
