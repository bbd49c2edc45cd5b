#include "sim_mail.h"

#include "base/check.h"
#include "base/hash.h"
#include "system/system.h"

#include <stdlib.h>
#include <string.h>

static tide_status signed_in(struct tide_sim_mail *self,
                             const struct tide_sim_mail_options *options, tide_error *err)
{
    char name[TIDE_SECRET_NAME_BYTES_MAX];
    char dir[120];
    tide_mail_secret_name(options->email, name);
    (void)snprintf(dir, sizeof dir, "%s/secrets", options->state_dir);
    return tide_sim_signed_in(options->world, dir, name, options->token, &self->secrets, err);
}

tide_status tide_sim_mail_open(struct tide_sim_mail *self,
                               const struct tide_sim_mail_options *options, tide_error *err)
{
    tide_status rc = tide_settings_new(tide_mem_heap(), &self->settings);
    if (rc == TIDE_OK && options->setting != NULL)
        rc = tide_settings_add_flag(self->settings, options->setting, err);
    const struct tide_engine_options engine = {.state_dir = options->state_dir,
                                               .world = options->world,
                                               .settings = self->settings,
                                               .workers = options->workers,
                                               .no_control_socket = true,
                                               .log = options->log};
    if (rc == TIDE_OK)
        rc = tide_engine_open(&engine, &self->engine, err);
    if (rc == TIDE_OK)
        rc = signed_in(self, options, err);
    const struct tide_mail_options mail = {.engine = self->engine,
                                           .world = options->world,
                                           .secrets = self->secrets,
                                           .archive_dir = options->archive_dir,
                                           .no_sync = options->no_sync};
    if (rc == TIDE_OK)
        rc = tide_mail_open(&mail, tide_mem_heap(), &self->mail, err);
    static const struct tide_system system = {.name = "mail",
                                              .provider = "gmail",
                                              .archive_path = tide_mail_dir,
                                              .account_put = tide_mail_account_put};
    const struct tide_account_request request = {.name = options->email,
                                                 .endpoint = "http://provider"};
    const struct tide_system_home home = {.world = options->world,
                                          .engine = self->engine,
                                          .secrets = self->secrets,
                                          .archive_dir = options->archive_dir};
    return rc == TIDE_OK ? tide_system_account_add(&system, &home, &request, err) : rc;
}

void tide_sim_mail_close(struct tide_sim_mail *self, tide_sim *sim)
{
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_engine_close(self->engine);
    if (rc != TIDE_OK)
        tide_sim_fail(sim, "the engine did not close: %s", tide_status_name(rc));
    (void)tide_mail_close(self->mail, &err);
    tide_secrets_close(self->secrets);
    tide_settings_free(self->settings);
    *self = (struct tide_sim_mail){.engine = NULL};
}

/* ---- bytes ---- */

uint64_t tide_sim_mail_hash(tide_text raw)
{
    return tide_hash(TIDE_HASH_START ^ raw.bytes, raw);
}

uint64_t tide_sim_mail_slot_hash(box_mailbox *mailbox, uint32_t slot)
{
    tide_buf scratch;
    tide_buf_init(&scratch, tide_mem_heap(), 64 << 20);
    const uint64_t hash = tide_sim_mail_hash(box_mailbox_raw(mailbox, slot, &scratch));
    tide_buf_done(&scratch);
    return hash;
}

/* ---- labels ---- */

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void join(const char **names, size_t count, tide_buf *out)
{
    qsort(names, count, sizeof *names, compare_text);
    tide_buf_clear(out);
    for (size_t i = 0; i < count; i++)
        TIDE_ASSERT(tide_buf_print(out, i == 0 ? "%s" : " %s", names[i]) == TIDE_OK);
}

void tide_sim_mail_labels(const box_mailbox *mailbox, uint32_t slot, tide_buf *out)
{
    const char *names[BOX_MESSAGE_LABELS_MAX];
    size_t count = 0;
    const uint16_t *labels =
        box_mailbox_labels(mailbox, box_mailbox_at(mailbox, slot)->label_set, &count);
    for (size_t i = 0; i < count; i++)
        names[i] = box_mailbox_label(mailbox, labels[i])->id;
    join(names, count, out);
}

tide_status tide_sim_mail_stored_labels(tide_archive *archive, const struct tide_stored *stored,
                                        tide_buf *out, tide_error *err)
{
    const char *names[BOX_MESSAGE_LABELS_MAX];
    size_t count = 0;
    char *save = NULL;
    tide_buf lines;
    tide_buf_init(&lines, tide_mem_heap(), 64 << 10);
    const tide_status rc = tide_archive_labels_of(archive, stored, &lines, err);
    TIDE_ASSERT(tide_buf_print(&lines, "%s", "") == TIDE_OK);
    for (char *name = strtok_r(lines.data, "\n", &save);
         name != NULL && count < BOX_MESSAGE_LABELS_MAX; name = strtok_r(NULL, "\n", &save))
        names[count++] = name;
    join(names, count, out);
    tide_buf_done(&lines);
    return rc;
}
