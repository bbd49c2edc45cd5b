/* answers.h - what answers each request of the control socket (control.h). */
#ifndef TIDE_ENGINE_CONTROL_ANSWERS_H
#define TIDE_ENGINE_CONTROL_ANSWERS_H

#include "base/json.h"
#include "tidemark.h"

#define TIDE_CONTROL_ANSWER(name)                                                                  \
    tide_status name(tide_engine *engine, const struct json_t *request, tide_json *answer,         \
                     tide_error *err)
TIDE_CONTROL_ANSWER(tide_control_retry);
TIDE_CONTROL_ANSWER(tide_control_cancel);
TIDE_CONTROL_ANSWER(tide_control_accept);
TIDE_CONTROL_ANSWER(tide_control_pause);
TIDE_CONTROL_ANSWER(tide_control_resume);
TIDE_CONTROL_ANSWER(tide_control_halt);
TIDE_CONTROL_ANSWER(tide_control_account_resume);
TIDE_CONTROL_ANSWER(tide_control_purge);
TIDE_CONTROL_ANSWER(tide_control_bad_retry);
TIDE_CONTROL_ANSWER(tide_control_bad_accept);
TIDE_CONTROL_ANSWER(tide_control_enqueue);
TIDE_CONTROL_ANSWER(tide_control_signed_in);
TIDE_CONTROL_ANSWER(tide_control_series);
/* The account that the field "account" names. */
tide_status tide_control_account(tide_engine *engine, const struct json_t *request,
                                 uint32_t *id_out, tide_error *err);
#endif
