/* pairing.h - lets a browser in, with the consent of the terminal.
 *
 *     browser                          server                          terminal
 *     POST pairings          ------>   code, ticket
 *     shows the code                   waiting   ------ list ------>   shows code and browser
 *     GET, Pairing TICKET    ------>   held      <----- approve -----  the person says yes
 *     stores the key         <------   key, once
 *
 * No secret is in a link, an argument or a log: the ticket and the key are in bodies and headers,
 * and the code is worth nothing without the terminal.
 *
 * Invariants:
 *   PAIR1  at most TIDE_PAIRINGS_MAX requests are pending; each ends after TIDE_PAIRING_LIFE_MS.
 *          One may begin a second.
 *   PAIR2  a key exists only after the terminal approved this code, and is given to the holder of
 *          that code's ticket once.
 *   PAIR3  approving waits until the browser has taken its key.  If it does not come, the key is
 *          revoked, and the terminal says so: no key that nobody has stays valid.
 *   PAIR4  of two requests with one ticket the newer one gets the key: the older one's browser may be
 *          gone.
 *
 * Any thread may call.  Times come from the caller, but for the waits.
 */
#ifndef TIDE_SERVE_ACCESS_PAIRING_H
#define TIDE_SERVE_ACCESS_PAIRING_H

#include "serve/access/keys.h"

enum {
    TIDE_PAIRINGS_MAX = 3,
    TIDE_PAIRING_LIFE_MS = 120000,
    TIDE_PAIRING_EVERY_MS = 1000,
    TIDE_PAIRING_TAKE_MS = 10000, /* for the browser to take an approved key */
    TIDE_PAIRING_AGENT_BYTES_MAX = 48,
};

typedef struct tide_pairings tide_pairings;

/* `wake` is called, without a lock, when a held request should look again. */
tide_status tide_pairings_new(tide_world *world, tide_mem *mem, tide_keys *keys,
                              void (*wake)(void *arg), void *wake_arg, tide_pairings **pairings_out,
                              tide_error *err);
/* The terminal's calls that wait return, and later ones do not wait: TIDE_STOPPED. */
void tide_pairings_stop(tide_pairings *pairings);
/* After the server has stopped and no call waits.  NULL is fine. */
void tide_pairings_free(tide_pairings *pairings);

uint64_t tide_pairings_now_ms(const tide_pairings *pairings);

/* ---- for the browser ---- */

struct tide_pairing_ask {
    char code[8]; /* "KT4-9QX" */
    char ticket[TIDE_KEY_TEXT_BYTES + 1];
};
/* `agent` names the browser to the person; a text of ours, never the browser's.
 *   TIDE_AGAIN  one began less than a second ago
 *   TIDE_FULL   TIDE_PAIRINGS_MAX are pending */
tide_status tide_pairing_begin(tide_pairings *pairings, const char *agent, uint64_t now_ms,
                               struct tide_pairing_ask *ask_out);

typedef enum tide_pairing_state {
    TIDE_PAIRING_UNKNOWN, /* never begun, over, or the key was taken */
    TIDE_PAIRING_WAITING,
    TIDE_PAIRING_REPLACED, /* a newer request waits with this ticket (PAIR4) */
    TIDE_PAIRING_REFUSED,
    TIDE_PAIRING_TAKEN, /* here is the key */
} tide_pairing_state;
/* *turn is 0 for a new request, and then identifies it. */
tide_pairing_state tide_pairing_take(tide_pairings *pairings, tide_text ticket, uint64_t now_ms,
                                     uint64_t *turn, char key_out[TIDE_KEY_TEXT_BYTES + 1]);

/* ---- for the terminal, through the control socket ---- */

struct tide_pairing_row {
    char code[8];
    char agent[TIDE_PAIRING_AGENT_BYTES_MAX];
    uint64_t age_ms;
};
/* Those that wait for the terminal, oldest first. */
size_t tide_pairing_list(tide_pairings *pairings, uint64_t now_ms,
                         struct tide_pairing_row rows_out[TIDE_PAIRINGS_MAX]);
/* Waits until there is one.  TIDE_TIMEOUT, TIDE_STOPPED. */
tide_status tide_pairing_wait(tide_pairings *pairings, uint64_t deadline_us);

/* Lets the browser with that code in; returns when it has its key, after `take_ms` at most (0:
 * TIDE_PAIRING_TAKE_MS).
 *   TIDE_NOT_FOUND  no such code waits
 *   TIDE_TIMEOUT    the browser did not come for its key; it was revoked
 *   TIDE_STOPPED    the same, because of tide_pairings_stop()
 * or what the store of keys says. */
tide_status tide_pairing_approve(tide_pairings *pairings, tide_text code, uint64_t lifetime_ms,
                                 uint32_t take_ms, uint64_t *key_id_out, tide_error *err);
tide_status tide_pairing_refuse(tide_pairings *pairings, tide_text code, tide_error *err);

#endif
