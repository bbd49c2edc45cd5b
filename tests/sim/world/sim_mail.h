/* sim_mail.h - the mail system in the simulated world, and its mail as the server and as the
 * archive have it. */
#ifndef TIDE_SIM_MAIL_H
#define TIDE_SIM_MAIL_H

#include "cloudbox/mailbox/mailbox.h"
#include "mail/mail.h"
#include "settings/settings.h"
#include "sim_cloud.h"
#include "sim_world.h"

struct tide_sim_mail_options {
    tide_world *world;
    const char *state_dir, *archive_dir;
    const char *email, *token;
    const char *setting; /* "name=value"; NULL: none */
    uint32_t workers;
    bool no_sync;
    tide_log *log;
};

/* One process. */
struct tide_sim_mail {
    tide_engine *engine;
    tide_settings *settings;
    tide_secrets *secrets;
    tide_mail *mail;
};

/* Opens it with one account, signed in; does not start the engine.  After a failure it must be
 * closed too. */
tide_status tide_sim_mail_open(struct tide_sim_mail *self,
                               const struct tide_sim_mail_options *options, tide_error *err);
void tide_sim_mail_close(struct tide_sim_mail *self, tide_sim *sim);

uint64_t tide_sim_mail_hash(tide_text raw);
uint64_t tide_sim_mail_slot_hash(box_mailbox *mailbox, uint32_t slot);

/* "A B C": the ids of the labels, sorted. */
void tide_sim_mail_labels(const box_mailbox *mailbox, uint32_t slot, tide_buf *out);
tide_status tide_sim_mail_stored_labels(tide_archive *archive, const struct tide_stored *stored,
                                        tide_buf *out, tide_error *err);

#endif
