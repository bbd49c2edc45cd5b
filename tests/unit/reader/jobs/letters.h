/* letters.h - drafts of the fixture's first account: written here, looked at here and at the server. */
#ifndef TIDE_TESTS_READER_LETTERS_H
#define TIDE_TESTS_READER_LETTERS_H

#include "reader_jobs_fixture.h"

#include "ledger/rows.h"

#define LETTER "{\"to\":\"" YOU "\",\"subject\":\"Plan\",\"text\":\"Here it is.\"}"
#define FILE_A "0123456789abcdef0123456789abcdef"
#define FILE_B "fedcba9876543210fedcba9876543210"
#define SECOND "{\"to\":\"" YOU "\",\"subject\":\"Plan\",\"text\":\"A second thought.\"}"

struct drafts {
    uint32_t account;
    uint64_t count, sending;
};

struct last {
    uint32_t account;
    bool there, sending;
    char text[200];
};

tide_status save(struct fixture *f, const char *id, const char *json);
tide_status attach(struct fixture *f, const char *id, const char *file, const char *name,
                   tide_text content);
bool file_is_there(struct fixture *f, const char *file);
tide_status send_draft(struct fixture *f, const char *id, struct tide_reader_action *action);
uint32_t received(struct fixture *f);
uint32_t with_label(struct fixture *f, uint16_t label);
void assert_no_violation(struct fixture *f);
struct drafts drafts_of(struct fixture *f);
bool server_has(struct fixture *f, const char *text);
void assert_copied(struct fixture *f, const char *text);
void close_it(struct fixture *f, const char *id);
tide_status read_last(tide_transaction *transaction, void *arg, tide_error *err);
void check_writing(struct fixture *f, uint64_t steps, bool kept);

#endif
