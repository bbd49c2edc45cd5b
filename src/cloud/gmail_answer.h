/* gmail_answer.h - checks and reads answers of the Gmail API (gmail.h GML3).
 *
 * Each function takes a JSON value, checks every field that callers may use, and fills
 * a struct of gmail.h that borrows from it.  Missing and unknown fields are fine; a
 * wrong type is TIDE_SERVER with the field's name.  No I/O.
 */
#ifndef TIDE_CLOUD_GMAIL_ANSWER_H
#define TIDE_CLOUD_GMAIL_ANSWER_H

#include "cloud/gmail.h"

tide_status tide_gmail_answer_profile(const json_t *value, struct tide_gmail_profile *profile_out,
                                      tide_error *err);
/* On success the struct owns `value`, else the caller still does. */
tide_status tide_gmail_answer_page(json_t *value, struct tide_gmail_page *page_out,
                                   tide_error *err);
tide_status tide_gmail_answer_history(json_t *value, struct tide_gmail_history *history_out,
                                      tide_error *err);
/* Of the message `id` (GML4).  `raw` is unchanged. */
tide_status tide_gmail_answer_message(json_t *value, tide_text id,
                                      struct tide_gmail_message *message_out, tide_error *err);
tide_status tide_gmail_answer_labels(const json_t *value, tide_error *err);
/* The "id" of a created object; borrowed from `value`. */
tide_status tide_gmail_answer_id(const json_t *value, tide_text *id_out, tide_error *err);

/* A field of an object; absent or null leaves the output unchanged.  Borrowed from `object`. */
tide_status tide_gmail_field_text(const json_t *object, const char *key, tide_text *text_out,
                                  tide_error *err);
tide_status tide_gmail_field_array(const json_t *object, const char *key, const json_t **array_out,
                                   tide_error *err);
tide_status tide_gmail_field_object(const json_t *object, const char *key,
                                    const json_t **object_out, tide_error *err);

#endif
