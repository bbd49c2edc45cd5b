#include "tidemark.h"
#include <stdio.h>

static tide_status greet(tide_job *job, void *context, tide_error *err)
{
    (void)context;
    if (tide_job_attempt(job) == 1) /* tried again by itself, after about a second */
        return tide_error_set(err, TIDE_TIMEOUT, "nobody answered");
    return printf("heard %s\n", tide_job_payload(job).data) > 0 ? TIDE_OK : TIDE_IO;
}

int main(void)
{
    struct tide_engine_options options = {.state_dir = "first-state"};
    struct tide_kind kind = {.name = "greet", .handler = greet};
    struct tide_spec spec = {.payload = "{\"say\":\"ahoy\"}", .dedupe = "ahoy"};
    tide_engine *engine = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    if (tide_engine_open(&options, &engine, &err) != TIDE_OK ||
        tide_engine_kind(engine, &kind, &spec.kind, &err) != TIDE_OK ||
        tide_enqueue(engine, &spec, 1, NULL, &err) != TIDE_OK || /* from here on it is durable */
        tide_engine_start(engine, &err) != TIDE_OK ||
        tide_engine_wait(engine, TIDE_WAIT_FOREVER, &err) != TIDE_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    return tide_engine_close(engine) == TIDE_OK && err.status == TIDE_OK ? 0 : 1;
}
