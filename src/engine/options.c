/* options.c - checks the options of an engine and makes its settings and log (options.h). */
#include "engine/options.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

extern char **environ;

const char *tide_version(void)
{
    return TIDE_VERSION;
}

tide_status tide_reserved_refuse(const char *what, tide_error *err)
{
    return tide_error_set(err, TIDE_INVALID,
                          "%s has reserved fields that are not zero: zero the struct first, or use "
                          "a libtidemark newer than %s",
                          what, TIDE_VERSION);
}

tide_status tide_options_check(const struct tide_engine_options *options, tide_error *err)
{
    if (TIDE_RESERVED_USED(options))
        return tide_reserved_refuse("struct tide_engine_options", err);
    if (options->settings != NULL && (options->settings_file != NULL || options->set != NULL))
        return tide_error_set(err, TIDE_INVALID,
                              "give `settings`, or `settings_file` and `set`, not both");
    if (options->log_fd < 0)
        return tide_error_set(err, TIDE_INVALID, "log_fd is %d, not a descriptor", options->log_fd);
    if ((options->log != NULL) + (options->log_line != NULL) + (options->log_fd != 0) > 1)
        return tide_error_set(err, TIDE_INVALID,
                              "give one log: a descriptor or a function, not both");
    return TIDE_OK;
}

tide_status tide_options_settings(tide_engine *engine, const struct tide_engine_options *options,
                                  tide_error *err)
{
    engine->settings = options->settings;
    if (engine->settings != NULL)
        return TIDE_OK;
    struct tide_settings_sources sources = {.file = options->settings_file,
                                            .environment = (const char *const *)environ,
                                            .flags = options->set};
    while (options->set != NULL && options->set[sources.flags_count] != NULL)
        sources.flags_count++;
    engine->settings_owned = true;
    return tide_settings_load(engine->world, &sources, engine->mem, &engine->settings, err);
}

/* One write() per line, so that lines of several threads never mix.  A line that cannot be
 * written is lost: the engine must not wait for its log. */
static void line_to_descriptor(void *arg, const char *line, size_t bytes)
{
    const int descriptor = (int)(intptr_t)arg;
    ssize_t written = 0;
    do
        written = write(descriptor, line, bytes);
    while (written < 0 && errno == EINTR);
}

void tide_options_log(tide_engine *engine, const struct tide_engine_options *options)
{
    engine->log = options->log;
    tide_log_run_set(engine->log, engine->run_id); /* the id on each job row (E9.2) */
    if (options->log_line == NULL && options->log_fd == 0)
        return;
    const bool ours = options->log_line == NULL;
    tide_log_init(&engine->log_owned, TIDE_LOG_INFO,
                  options->log_json ? TIDE_LOG_JSON : TIDE_LOG_PLAIN, engine->run_id,
                  ours ? line_to_descriptor : options->log_line,
                  ours ? (void *)(intptr_t)options->log_fd : options->log_arg);
    engine->log = &engine->log_owned;
}
