/* options.h - what the command line of tidemark-cloud asks for.
 *
 * One table names every option with its argument and its help; the parser, the
 * help, the completion and (by a test) the man page all follow it.  Parsing
 * opens nothing and starts nothing; it only understands.
 *
 * Invariants:
 *   BOPT1  texts are borrowed from argv, which is valid as long as the program runs.
 *   BOPT2  an address beyond loopback is accepted only with --public given twice.
 */
#ifndef BOX_SERVE_OPTIONS_H
#define BOX_SERVE_OPTIONS_H

#include "cloudbox/gate/cloud.h"

#include <stdio.h>

enum { BOX_SETTINGS_MAX = 10000 }; /* of one repeated option */

#define BOX_DEMO_EMAIL "demo@example.com"
#define BOX_DEMO_TOKEN "demo-token"

/* One "LEFT=RIGHT" with what follows it. */
struct box_setting {
    tide_text left;
    tide_text right;
    uint32_t number; /* messages of a mailbox, files of a drive, rows of a site */
    uint64_t size_bytes;
    bool business; /* a drive of work or school */
};

struct box_setting_list {
    struct box_setting *items;
    size_t count;
    size_t capacity;
};

struct box_settings {
    struct box_options cloud;
    char host[64]; /* numeric or "localhost" */
    uint16_t port;
    char *tls_cert; /* file names; NULL: no TLS */
    char *tls_key;
    struct box_setting_list mailboxes;        /* EMAIL, N, size */
    struct box_setting_list drives;           /* EMAIL, N, size, business */
    struct box_setting_list corpora;          /* EMAIL or nothing, DIR */
    struct box_setting_list tokens;           /* TOKEN, EMAIL */
    struct box_setting_list sites;            /* SITE, EMAIL, rows */
    struct box_setting_list topics;           /* TOPIC, URL */
    struct box_setting_list faults;           /* JSON, or METHOD and FAULT[@RATE] */
    struct box_setting_list service_accounts; /* EMAIL, FILE */
    const char *state;                        /* NULL: nothing is kept */
    uint32_t public_count;
    bool seed_given;
    bool demo; /* nothing was said about mailboxes: there is one */
    bool quiet;
    bool verbose;
    bool help;
    bool version;
    bool completion;
};

/* TIDE_INVALID with a text for the user.  `settings` is filled from scratch and
 * needs box_settings_done() in any case. */
tide_status box_settings_parse(int argc, char *const *argv, struct box_settings *settings,
                               tide_error *err);
void box_settings_done(struct box_settings *settings);
void box_settings_add(struct box_setting_list *list, const struct box_setting *item);

/* One fault as the JSON of cloudbox/gate/faults.h. */
tide_status box_settings_fault(const struct box_setting *fault, tide_buf *json_out,
                               tide_error *err);

void box_settings_help(FILE *out);
void box_settings_completion(FILE *out);

#endif
