/* inside.h - private to this folder: reading one value of the tree, with its refusal. */
#ifndef TIDE_ASSISTANT_CONFIG_INSIDE_H
#define TIDE_ASSISTANT_CONFIG_INSIDE_H

#include "assistant/config/config.h"
#include "assistant/config/tree.h"

struct tide_config_reader {
    const struct tide_assistant_source *source;
    struct tide_assistant_config *config;
    tide_arena *arena; /* the configuration's */
    size_t files;      /* read so far */
    tide_error *err;
};

/* ---- values.c ---- */

/* "assistant.yaml:12:5: rules[2].route REASON" */
tide_status tide_config_refuse(const struct tide_config_reader *reader,
                               const struct tide_node *node, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
tide_status tide_config_no_memory(const struct tide_config_reader *reader);

/* The section with this name; NULL: it is not there, or empty. */
const struct tide_node *tide_config_section(const struct tide_node *root, const char *key);
/* A mapping all of whose names are in `known`, which NULL ends. */
tide_status tide_config_map(const struct tide_config_reader *reader, const struct tide_node *node,
                            const char *const *known);
/* UTF-8 without control characters but line ends and tabs. */
bool tide_config_is_text(tide_text text);
/* A text of 1 to `bytes_max` bytes on one line. */
tide_status tide_config_line(const struct tide_config_reader *reader, const struct tide_node *node,
                             size_t bytes_max, tide_text *text_out);
/* The same with lines and all. */
tide_status tide_config_text(const struct tide_config_reader *reader, const struct tide_node *node,
                             size_t bytes_max, tide_text *text_out);
/* A name of ours: letters, digits, '_', '-'. */
tide_status tide_config_name(const struct tide_config_reader *reader, const struct tide_node *node,
                             tide_text name);
tide_status tide_config_number(const struct tide_config_reader *reader,
                               const struct tide_node *node, uint64_t min, uint64_t max,
                               uint64_t *number_out);
tide_status tide_config_bool(const struct tide_config_reader *reader, const struct tide_node *node,
                             bool *flag_out);
/* One value or a list of them. */
tide_status tide_config_texts(const struct tide_config_reader *reader, const struct tide_node *node,
                              size_t count_max, size_t bytes_max, struct tide_texts *texts_out);
/* A prompt: a text, or {file: NAME}. */
tide_status tide_config_prompt(struct tide_config_reader *reader, const struct tide_node *node,
                               tide_text *text_out);
/* The nearest of `count` names, given by index; NULL: none is near. */
typedef const char *tide_config_named(const void *arg, size_t index);
const char *tide_config_nearest(tide_text name, tide_config_named *named, const void *arg,
                                size_t count);
/* Refuses an unknown name, with the nearest known one. */
tide_status tide_config_unknown(const struct tide_config_reader *reader,
                                const struct tide_node *node, const char *what, tide_text name,
                                const char *nearest);

/* ---- one section each; `node` NULL: it is not in the file ---- */

/* The single values of models, sync, drafts and budget, which the environment may give as well. */
tide_status tide_config_scalars(struct tide_config_reader *reader, const struct tide_node *root);
tide_status tide_config_triage(struct tide_config_reader *reader, const struct tide_node *node);
tide_status tide_config_styles(struct tide_config_reader *reader, const struct tide_node *node);
tide_status tide_config_contacts(struct tide_config_reader *reader, const struct tide_node *node);
tide_status tide_config_tools(struct tide_config_reader *reader, const struct tide_node *node);
tide_status tide_config_profiles(struct tide_config_reader *reader, const struct tide_node *node);
tide_status tide_config_rules(struct tide_config_reader *reader, const struct tide_node *node);

#endif
