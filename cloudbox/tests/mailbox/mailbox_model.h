/* mailbox_model.h - a mailbox as plain arrays, and random changes done to both. */
#ifndef BOX_MAILBOX_MODEL_H
#define BOX_MAILBOX_MODEL_H

#include "base/rng.h"
#include "cloudbox/generate/generate.h"
#include "cloudbox/mailbox/mailbox.h"
#include "cloudbox/mailbox/mime.h"
#include "cloudbox/tests/owned.h"
#include "support/scale.h"
#include "support/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOW_MS  1780000000000u
#define KEEP_MS 600000u

enum { MESSAGES_MAX = 8000, LABELS_MAX = 400, RECORDS_MAX = 60000, OPS = 3000 };

/* ---- the model ---- */

struct labels {
    bool on[LABELS_MAX];
};

struct model_message {
    struct labels labels;
    uint64_t date_ms;
    uint64_t history_id;
    uint32_t root;  /* slot */
    int message_id; /* -1: none or generated */
    int subject;
    char raw[256];
    bool stored;
    bool gone;
};

struct model_record {
    uint64_t history_id;
    uint64_t at_ms;
    uint32_t slot;
    struct labels labels;
    struct labels changed;
    box_change change;
};

struct model_draft {
    uint32_t slot;
    bool gone;
};

struct world {
    uint64_t seed;
    struct box_mailbox_spec spec;
    box_mailbox *mailbox;
    tide_rng rng;
    uint64_t now_ms;
    uint64_t expired_ms; /* of the last expiry by time */
    uint64_t history_last;
    uint64_t forgotten;
    json_t *journal;

    struct model_message messages[MESSAGES_MAX];
    uint32_t messages_count;
    bool label_gone[LABELS_MAX];
    char label_name[LABELS_MAX][32];
    uint32_t labels_count;
    struct model_record records[RECORDS_MAX];
    uint32_t records_first, records_count;
    struct model_draft drafts[MESSAGES_MAX];
    uint32_t drafts_count;
};

uint32_t below(struct world *world, uint32_t bound);

/* The history id is the mailbox's choice; that it ascends in small steps is checked. */
void model_record(struct world *world, uint32_t slot, const struct labels *changed,
                  box_change change, uint64_t history_id);
struct world *world_new(uint64_t seed, uint32_t generated);
void world_free(struct world *world);

/* ---- picking ---- */

uint16_t pick_label(struct world *world);
size_t pick_labels(struct world *world, uint16_t labels_out[4]);
uint64_t pick_date(struct world *world);

/* ---- arrivals ---- */

struct arrival {
    struct box_insert insert;
    uint16_t labels[4];
    int message_id;
    int subject;
    uint32_t root; /* by the model; BOX_SLOT_NONE: its own */
    char raw[256];
    char thread_id[BOX_ID_TEXT_BYTES];
};

bool thread_lives(const struct world *world, uint32_t root);

/* ---- operations ---- */

void do_insert(struct world *world);
int compare_oldest(const void *a_void, const void *b_void, void *arg);
void change(struct world *world);

static const uint32_t sizes[] = {0, 1, 40, 300, 1500}; /* generated messages, by seed */

#endif
