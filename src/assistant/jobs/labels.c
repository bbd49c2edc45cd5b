/* labels.c - the nine labels of a user in Gmail (J9): found or made when the user is onboarded, and again when
 * the user has deleted one since. */
#include "assistant/jobs/inside.h"

#include "base/check.h"

#include <stdio.h>
#include <string.h>

static bool is_listed(const json_t *list, const char *id)
{
    const json_t *labels = json_object_get(list, "labels");
    for (size_t i = 0; i < json_array_size(labels); i++) {
        const char *one = json_string_value(json_object_get(json_array_get(labels, i), "id"));
        if (one != NULL && strcmp(one, id) == 0)
            return true;
    }
    return false;
}

static tide_status ensure(struct tide_task *task, json_t **list, unsigned label, tide_error *err)
{
    tide_auto_buf id = tide_buf_in(task->jobs->mem, TIDE_ASSISTANT_ID_BYTES - 1);
    const char *name = tide_assistant_label_name((tide_assistant_label)label);
    TIDE_TRY(tide_gmail_label_ensure(task->gmail, task->job, list, tide_text_of(name), &id, err));
    (void)snprintf(task->labels.ids[label], TIDE_ASSISTANT_ID_BYTES, "%s", tide_buf_cstr(&id));
    return TIDE_OK;
}

tide_status tide_task_labels(struct tide_task *task, tide_error *err)
{
    json_t *list = NULL;
    tide_status rc = TIDE_OK;
    /* The parent first: below it Gmail makes only what has one. */
    for (unsigned label = 0; rc == TIDE_OK && label < TIDE_ASSISTANT_LABELS; label++)
        rc = ensure(task, &list, label, err);
    json_decref(list);
    return rc;
}

tide_status tide_task_labels_write(tide_rows db, const struct tide_task *task, tide_error *err)
{
    for (unsigned label = 0; label < TIDE_ASSISTANT_LABELS; label++)
        TIDE_TRY(tide_assistant_label_put(db, task->account, (tide_assistant_label)label,
                                          task->labels.ids[label], err));
    return TIDE_OK;
}

/* ---- again ---- */

static tide_status write_labels(tide_transaction *transaction, void *arg, tide_error *err)
{
    return tide_task_labels_write(tide_transaction_rows(transaction), arg, err);
}

tide_status tide_task_labels_again(struct tide_task *task, tide_error *err)
{
    json_t *list = NULL;
    bool made = false;
    tide_status rc = tide_gmail_labels(task->gmail, task->job, &list, err);
    /* A mailbox always has this one: a listing without it says nothing about the others. */
    const bool whole = rc == TIDE_OK && is_listed(list, "INBOX");
    for (unsigned label = 0; whole && rc == TIDE_OK && label < TIDE_ASSISTANT_LABELS; label++) {
        if (list != NULL && is_listed(list, task->labels.ids[label]))
            continue; /* also under another name: the user may call it as he likes */
        TIDE_SEEN("assistant: the user deleted a label");
        rc = ensure(task, &list, label, err);
        made = true;
    }
    json_decref(list);
    if (rc == TIDE_OK && made)
        rc = tide_transact(task->jobs->options.engine, write_labels, task, err);
    return rc;
}
