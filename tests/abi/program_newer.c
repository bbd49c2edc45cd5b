/* program_newer.c DIR NUMBER: a program compiled with the header of a version to come, in which
 * struct tide_spec has a field more (tests/e2e/library_test.sh makes that header). */
#include <stdio.h>
#include <stdlib.h>
#include <tidemark.h>

static tide_status nothing(tide_job *job, void *context, tide_error *err)
{
    (void)job;
    (void)context;
    (void)err;
    return TIDE_OK;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    struct tide_engine_options options = {.state_dir = argv[1]};
    struct tide_kind kind = {.name = "kind", .handler = nothing};
    struct tide_spec spec = {.to_come = strtoull(argv[2], NULL, 10)};
    tide_engine *engine = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    tide_status rc = tide_engine_open(&options, &engine, &err);
    if (rc == TIDE_OK)
        rc = tide_engine_kind(engine, &kind, &spec.kind, &err);
    if (rc == TIDE_OK)
        rc = tide_enqueue(engine, &spec, 1, NULL, &err);
    (void)tide_engine_close(engine);
    (void)printf("%s: %s\n", tide_status_name(rc), rc == TIDE_OK ? "enqueued" : err.text);
    return rc == TIDE_OK ? 0 : 1;
}
