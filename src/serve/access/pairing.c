#include "serve/access/pairing.h"

#include "base/buf.h"
#include "base/check.h"
#include "base/encode.h"

#include <assert.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

/* free --begin--> WAITING --approve--> APPROVING (the key is being stored) --> READY --take--> free
 *                         `--refuse--> REFUSED --take or its end--> free */
typedef enum state { FREE, WAITING, REFUSED, APPROVING, READY } state;

struct pairing {
    state state;
    uint64_t number; /* of all pairings ever; tells two apart that use the same slot */
    uint64_t begun_ms;
    uint64_t turn; /* of the newest request that waits */
    char code[8];
    char agent[TIDE_PAIRING_AGENT_BYTES_MAX];
    char ticket[TIDE_KEY_TEXT_BYTES + 1];
    char key[TIDE_KEY_TEXT_BYTES + 1]; /* READY only */
};

struct tide_pairings {
    tide_world *world;
    tide_mem *mem;
    tide_keys *keys;
    void (*wake)(void *arg);
    void *wake_arg;
    tide_lock *lock;
    tide_cond *changed; /* one began, or a key was taken */
    uint64_t numbers;
    uint64_t turns;
    uint64_t last_begun_ms;
    bool any_begun;
    bool stopped;
    struct pairing slots[TIDE_PAIRINGS_MAX];
};

tide_status tide_pairings_new(tide_world *world, tide_mem *mem, tide_keys *keys,
                              void (*wake)(void *arg), void *wake_arg, tide_pairings **pairings_out,
                              tide_error *err)
{
    tide_pairings *pairings = tide_mem_new(mem, sizeof *pairings);
    if (pairings == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for pairing");
    pairings->world = world;
    pairings->mem = mem;
    pairings->keys = keys;
    pairings->wake = wake;
    pairings->wake_arg = wake_arg;
    tide_status rc = tide_lock_new(world, &pairings->lock);
    if (rc == TIDE_OK)
        rc = tide_cond_new(world, &pairings->changed);
    if (rc != TIDE_OK) {
        tide_pairings_free(pairings);
        return tide_error_set(err, rc, "no memory for pairing");
    }
    *pairings_out = pairings;
    return TIDE_OK;
}

void tide_pairings_stop(tide_pairings *pairings)
{
    tide_lock_take(pairings->world, pairings->lock);
    pairings->stopped = true;
    tide_cond_wake_all(pairings->world, pairings->changed);
    tide_lock_drop(pairings->world, pairings->lock);
}

void tide_pairings_free(tide_pairings *pairings)
{
    if (pairings == NULL)
        return;
    if (pairings->changed != NULL)
        tide_cond_free(pairings->world, pairings->changed);
    if (pairings->lock != NULL)
        tide_lock_free(pairings->world, pairings->lock);
    explicit_bzero(pairings->slots, sizeof pairings->slots);
    tide_mem_free(pairings->mem, pairings, sizeof *pairings);
}

uint64_t tide_pairings_now_ms(const tide_pairings *pairings)
{
    return tide_world_now_ms(pairings->world);
}

/* ---- under the lock ---- */

/* APPROVING and READY end by approve() alone, which has a key to revoke. */
static void expire(tide_pairings *pairings, uint64_t now_ms)
{
    for (size_t i = 0; i < TIDE_PAIRINGS_MAX; i++) {
        struct pairing *one = &pairings->slots[i];
        if ((one->state == WAITING || one->state == REFUSED) &&
            now_ms - one->begun_ms >= TIDE_PAIRING_LIFE_MS)
            explicit_bzero(one, sizeof *one);
    }
}

static struct pairing *by_code(tide_pairings *pairings, tide_text code)
{
    for (size_t i = 0; i < TIDE_PAIRINGS_MAX; i++)
        if (pairings->slots[i].state == WAITING &&
            tide_text_equal(tide_text_of(pairings->slots[i].code), code))
            return &pairings->slots[i];
    return NULL;
}

static struct pairing *by_ticket(tide_pairings *pairings, tide_text ticket)
{
    struct pairing *found = NULL;
    if (ticket.bytes != TIDE_KEY_TEXT_BYTES)
        return NULL;
    for (size_t i = 0; i < TIDE_PAIRINGS_MAX; i++)
        if (pairings->slots[i].state != FREE &&
            CRYPTO_memcmp(pairings->slots[i].ticket, ticket.data, TIDE_KEY_TEXT_BYTES) == 0)
            found = &pairings->slots[i];
    return found;
}

static struct pairing *by_number(tide_pairings *pairings, uint64_t number)
{
    for (size_t i = 0; i < TIDE_PAIRINGS_MAX; i++)
        if (pairings->slots[i].state != FREE && pairings->slots[i].number == number)
            return &pairings->slots[i];
    return NULL;
}

/* ---- for the browser ---- */

/* Six characters that cannot be mistaken for each other; one of 2^30. */
static void make_code(tide_pairings *pairings, char code_out[8])
{
    static const char letters[] = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";
    static_assert(sizeof letters - 1 == 32, "five bits each");
    unsigned char random[6];
    tide_world_random(pairings->world, random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        code_out[i + (i >= 3)] = letters[random[i] & 31];
    code_out[3] = '-';
    code_out[7] = '\0';
}

static void make_ticket(tide_pairings *pairings, char ticket_out[TIDE_KEY_TEXT_BYTES + 1])
{
    unsigned char random[TIDE_KEY_TEXT_BYTES];
    tide_world_random(pairings->world, random, sizeof random);
    for (size_t i = 0; i < sizeof random; i++)
        ticket_out[i] = tide_base64_url[random[i] & 63];
    ticket_out[TIDE_KEY_TEXT_BYTES] = '\0';
}

tide_status tide_pairing_begin(tide_pairings *pairings, const char *agent, uint64_t now_ms,
                               struct tide_pairing_ask *ask_out)
{
    struct pairing *slot = NULL;
    tide_status rc = TIDE_OK;
    tide_lock_take(pairings->world, pairings->lock);
    expire(pairings, now_ms);
    for (size_t i = 0; i < TIDE_PAIRINGS_MAX && slot == NULL; i++)
        if (pairings->slots[i].state == FREE)
            slot = &pairings->slots[i];
    if (pairings->any_begun && now_ms - pairings->last_begun_ms < TIDE_PAIRING_EVERY_MS)
        rc = TIDE_AGAIN;
    else if (slot == NULL)
        rc = TIDE_FULL;
    if (rc == TIDE_OK) {
        pairings->any_begun = true;
        pairings->last_begun_ms = now_ms;
        do
            make_code(pairings, slot->code);
        while (by_code(pairings, tide_text_of(slot->code)) != NULL);
        make_ticket(pairings, slot->ticket);
        slot->state = WAITING;
        slot->number = ++pairings->numbers;
        slot->begun_ms = now_ms;
        (void)snprintf(slot->agent, sizeof slot->agent, "%s", agent);
        memcpy(ask_out->code, slot->code, sizeof slot->code);
        memcpy(ask_out->ticket, slot->ticket, sizeof slot->ticket);
        tide_cond_wake_all(pairings->world, pairings->changed);
    }
    tide_lock_drop(pairings->world, pairings->lock);
    return rc;
}

tide_pairing_state tide_pairing_take(tide_pairings *pairings, tide_text ticket, uint64_t now_ms,
                                     uint64_t *turn, char key_out[TIDE_KEY_TEXT_BYTES + 1])
{
    tide_pairing_state result = TIDE_PAIRING_WAITING;
    bool replaces = false;
    tide_lock_take(pairings->world, pairings->lock);
    expire(pairings, now_ms);
    struct pairing *one = by_ticket(pairings, ticket);
    if (one != NULL && *turn == 0) {
        replaces = one->turn != 0;
        one->turn = *turn = ++pairings->turns;
    }
    if (one == NULL) {
        result = TIDE_PAIRING_UNKNOWN;
    } else if (one->turn != *turn) {
        result = TIDE_PAIRING_REPLACED;
    } else if (one->state == REFUSED) {
        result = TIDE_PAIRING_REFUSED;
        explicit_bzero(one, sizeof *one);
    } else if (one->state == READY) {
        result = TIDE_PAIRING_TAKEN;
        memcpy(key_out, one->key, sizeof one->key);
        explicit_bzero(one, sizeof *one);
        tide_cond_wake_all(pairings->world, pairings->changed);
    }
    tide_lock_drop(pairings->world, pairings->lock);
    if (replaces)
        pairings->wake(pairings->wake_arg);
    return result;
}

/* ---- for the terminal ---- */

size_t tide_pairing_list(tide_pairings *pairings, uint64_t now_ms,
                         struct tide_pairing_row rows_out[TIDE_PAIRINGS_MAX])
{
    size_t count = 0;
    uint64_t after = 0;
    tide_lock_take(pairings->world, pairings->lock);
    expire(pairings, now_ms);
    for (;;) {
        const struct pairing *next = NULL;
        for (size_t i = 0; i < TIDE_PAIRINGS_MAX; i++) {
            const struct pairing *one = &pairings->slots[i];
            if (one->state == WAITING && one->number > after &&
                (next == NULL || one->number < next->number))
                next = one;
        }
        if (next == NULL)
            break;
        struct tide_pairing_row *row = &rows_out[count++];
        memcpy(row->code, next->code, sizeof row->code);
        memcpy(row->agent, next->agent, sizeof row->agent);
        row->age_ms = now_ms - next->begun_ms;
        after = next->number;
    }
    tide_lock_drop(pairings->world, pairings->lock);
    return count;
}

static bool any_waits(const tide_pairings *pairings)
{
    for (size_t i = 0; i < TIDE_PAIRINGS_MAX; i++)
        if (pairings->slots[i].state == WAITING)
            return true;
    return false;
}

/* Waits for a change; under the lock. */
static tide_status wait_changed(tide_pairings *pairings, uint64_t deadline_us)
{
    return pairings->stopped
               ? TIDE_STOPPED
               : tide_cond_wait(pairings->world, pairings->changed, pairings->lock, deadline_us);
}

tide_status tide_pairing_wait(tide_pairings *pairings, uint64_t deadline_us)
{
    tide_status rc = TIDE_OK;
    tide_lock_take(pairings->world, pairings->lock);
    while (rc == TIDE_OK && !any_waits(pairings))
        rc = wait_changed(pairings, deadline_us);
    tide_lock_drop(pairings->world, pairings->lock);
    return rc;
}

static tide_status no_such_code(tide_error *err)
{
    return tide_error_set(err, TIDE_NOT_FOUND,
                          "no browser waits with that code; load the page again");
}

/* Gives the key to the slot and waits until it is taken. */
static tide_status hand_over(tide_pairings *pairings, uint64_t number,
                             const char key[TIDE_KEY_TEXT_BYTES + 1], uint32_t take_ms)
{
    const uint64_t deadline_us = tide_world_now_us(pairings->world) +
                                 UINT64_C(1000) * (take_ms == 0 ? TIDE_PAIRING_TAKE_MS : take_ms);
    tide_lock_take(pairings->world, pairings->lock);
    struct pairing *one = by_number(pairings, number);
    TIDE_ASSERT(one != NULL && one->state == APPROVING); /* nobody else ends it */
    memcpy(one->key, key, sizeof one->key);
    one->state = READY;
    tide_lock_drop(pairings->world, pairings->lock);
    pairings->wake(pairings->wake_arg);
    tide_status rc = TIDE_OK;
    tide_lock_take(pairings->world, pairings->lock);
    while (rc == TIDE_OK && by_number(pairings, number) != NULL)
        rc = wait_changed(pairings, deadline_us);
    one = by_number(pairings, number);
    if (one != NULL)
        explicit_bzero(one, sizeof *one); /* too late */
    else
        rc = TIDE_OK; /* taken, perhaps at the last moment */
    tide_lock_drop(pairings->world, pairings->lock);
    return rc;
}

static void drop(tide_pairings *pairings, uint64_t number)
{
    tide_lock_take(pairings->world, pairings->lock);
    struct pairing *one = by_number(pairings, number);
    if (one != NULL)
        one->state = WAITING; /* the person may try again */
    tide_lock_drop(pairings->world, pairings->lock);
}

tide_status tide_pairing_approve(tide_pairings *pairings, tide_text code, uint64_t lifetime_ms,
                                 uint32_t take_ms, uint64_t *key_id_out, tide_error *err)
{
    char key[TIDE_KEY_TEXT_BYTES + 1];
    char agent[TIDE_PAIRING_AGENT_BYTES_MAX] = "";
    uint64_t number = 0, id = 0;
    const uint64_t now_ms = tide_world_now_ms(pairings->world);
    tide_lock_take(pairings->world, pairings->lock);
    expire(pairings, now_ms);
    struct pairing *one = by_code(pairings, code);
    if (one != NULL) {
        one->state = APPROVING;
        number = one->number;
        memcpy(agent, one->agent, sizeof agent);
    }
    tide_lock_drop(pairings->world, pairings->lock);
    if (number == 0)
        return no_such_code(err);
    tide_status rc = tide_keys_add(pairings->keys, tide_text_of(agent), TIDE_HTTPD_PAGE,
                                   lifetime_ms, key, &id, err);
    if (rc != TIDE_OK) {
        drop(pairings, number);
        return rc;
    }
    rc = hand_over(pairings, number, key, take_ms);
    explicit_bzero(key, sizeof key);
    if (rc != TIDE_OK) {
        const tide_status revoked = tide_keys_revoke(pairings->keys, id, err);
        return revoked != TIDE_OK ? revoked
                                  : tide_error_set(err, rc,
                                                   "the browser did not come for its key, which "
                                                   "is revoked; load the page again");
    }
    *key_id_out = id;
    return TIDE_OK;
}

tide_status tide_pairing_refuse(tide_pairings *pairings, tide_text code, tide_error *err)
{
    tide_lock_take(pairings->world, pairings->lock);
    struct pairing *one = by_code(pairings, code);
    if (one != NULL)
        one->state = REFUSED;
    tide_lock_drop(pairings->world, pairings->lock);
    if (one == NULL)
        return no_such_code(err);
    pairings->wake(pairings->wake_arg);
    return TIDE_OK;
}
