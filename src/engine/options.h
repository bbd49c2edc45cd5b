/* options.h - checks the structs of a program and turns them into what the engine uses.
 *
 * A struct of include/tidemark.h ends with fields called `reserved`.  They are zero until a
 * later version gives them a name, so that one layout serves old programs and new libraries.
 * A new program on an old library gets an error: a reserved field that is not zero is refused,
 * never ignored (docs/library.md). */
#ifndef TIDE_ENGINE_OPTIONS_H
#define TIDE_ENGINE_OPTIONS_H

#include "engine/engine.h"

/* Returns TIDE_INVALID; `what` names the struct in err's text. */
tide_status tide_reserved_refuse(const char *what, tide_error *err);

static inline bool tide_reserved_used(const uint8_t *flags, size_t flags_count,
                                      const uint64_t *words, size_t words_count)
{
    uint64_t used = 0;
    for (size_t i = 0; i < flags_count; i++)
        used |= flags[i];
    for (size_t i = 0; i < words_count; i++)
        used |= words[i];
    return used != 0;
}

#define TIDE_RESERVED_USED(given)                                                                  \
    tide_reserved_used((given)->reserved_flags, sizeof(given)->reserved_flags, (given)->reserved,  \
                       sizeof(given)->reserved / sizeof(given)->reserved[0])

/* Refuses fields that exclude each other, and reserved fields that are set. */
tide_status tide_options_check(const struct tide_engine_options *options, tide_error *err);
/* The settings of an engine that got none: from the file, the environment and `set`. */
tide_status tide_options_settings(tide_engine *engine, const struct tide_engine_options *options,
                                  tide_error *err);
/* The log: the caller's own, or lines to a descriptor or function, or none. */
void tide_options_log(tide_engine *engine, const struct tide_engine_options *options);

#endif
