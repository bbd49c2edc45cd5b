/* config.h - assistant.yaml: what a user decides about the assistant (J20).
 *
 * Routing rules, styles and who gets which, agent profiles and their tools, prompts, intervals,
 * models.  A value comes from the environment, else from the file, else it is the default.  Wrong
 * configuration is refused as a whole: `err` has file, line, column and reason, or the variable;
 * an unknown name comes with the nearest known one.
 *
 * A configuration is immutable, so that threads can share it; a reload makes another one.
 *
 * Invariants:
 *   CFG1  every number is within its bounds, every text within its ceiling, every list too.
 *   CFG2  what refers to a profile, style or tool refers to one that exists.
 *   CFG3  a prompt file lies in the directory of the YAML file or below it, reached by no link.
 *   CFG4  a profile can send only if it says `may_send`, and has a tool only if it lists it.
 */
#ifndef TIDE_ASSISTANT_CONFIG_H
#define TIDE_ASSISTANT_CONFIG_H

#include "assistant/config/files.h"
#include "assistant/match/pattern.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/status.h"

enum {
    TIDE_ASSISTANT_PROMPT_BYTES_MAX = 64 << 10, /* one prompt or style */
    TIDE_ASSISTANT_NAME_BYTES_MAX = 64,         /* of a rule, style, profile, tool */
    TIDE_ASSISTANT_RULES_MAX = 200,
    TIDE_ASSISTANT_STYLES_MAX = 50,
    TIDE_ASSISTANT_CONTACTS_MAX = 2000, /* senders and domains, each */
    TIDE_ASSISTANT_GLOBS_MAX = 1000,    /* of the blacklist, of automated senders */
    TIDE_ASSISTANT_PROFILES_MAX = 50,
    TIDE_ASSISTANT_TOOLS_MAX = 50,
    TIDE_ASSISTANT_ARGS_MAX = 64,    /* of a command */
    TIDE_ASSISTANT_VALUES_MAX = 100, /* of one condition of a rule */
    TIDE_ASSISTANT_FILES_MAX = 200,  /* prompts and styles as files */
};

/* ---- values ---- */

struct tide_texts {
    const tide_text *at;
    size_t count;
};

/* A rule of the router (J8): each condition that is given must hold. */
struct tide_rule_header {
    tide_text name;
    tide_text source; /* of the pattern */
    const tide_pattern *pattern;
};
struct tide_rule {
    tide_text name;
    unsigned line;
    bool all; /* every message */
    struct tide_texts sender_email, sender_domain, subject_contains, forwarded_from;
    const struct tide_rule_header *headers; /* header_match; each must be found */
    size_t headers_count;
    bool agent;     /* else the pipeline */
    size_t profile; /* of an agent */
};

struct tide_style {
    tide_text name, text;
};
struct tide_contact {
    tide_text who; /* an address, or a glob of domains */
    size_t style;
};

/* The tools that act in the mailbox; `escalate` ends a run (J28). */
typedef enum tide_builtin {
    TIDE_BUILTIN_SEARCH_ARCHIVE,
    TIDE_BUILTIN_READ_THREAD,
    TIDE_BUILTIN_CREATE_DRAFT,
    TIDE_BUILTIN_SEND_REPLY,
    TIDE_BUILTIN_ADD_LABEL,
    TIDE_BUILTIN_ESCALATE,
    TIDE_BUILTINS,
} tide_builtin;
const char *tide_builtin_name(tide_builtin builtin);

/* A tool of the user's own: a command or an HTTP endpoint. */
struct tide_assistant_tool {
    tide_text name, description;
    tide_text schema;          /* of its arguments: a JSON object */
    struct tide_texts command; /* argument vector, no shell; none: `url` */
    tide_text url;
    tide_text method; /* GET or POST */
    uint32_t timeout_ms;
    uint32_t output_bytes_max;
};

typedef enum tide_preprocessor {
    TIDE_PREPROCESSOR_NONE,
    TIDE_PREPROCESSOR_CRISP,
} tide_preprocessor;

/* An agent (J15). */
struct tide_profile {
    tide_text name, model, system_prompt;
    uint32_t max_tokens;
    bool has_temperature;
    uint32_t temperature_milli; /* 0..2000 */
    uint32_t max_iterations;
    bool may_send;
    tide_preprocessor preprocessor;
    uint32_t builtins;   /* bits 1 << tide_builtin */
    const size_t *tools; /* of the user's own */
    size_t tools_count;
};

/* Texts that replace the built-in ones; "": built in. */
struct tide_assistant_prompts {
    tide_text classify, context, draft, rework;
};

struct tide_assistant_config {
    tide_text model_account; /* the chat account; "": the only one */
    tide_text model_fast, model_better;
    /* J4, J28 */
    uint32_t watch_renewal_hours;
    uint32_t fallback_interval_minutes;
    uint32_t full_sync_interval_hours;
    uint32_t full_sync_days;
    /* J11, J13 */
    uint32_t rework_limit;
    uint32_t draft_max_tokens;
    uint32_t context_searches, context_threads, context_chars;
    bool quote_original;     /* below the draft, as mail programs do */
    uint64_t tokens_per_day; /* J19; 0: no budget */

    struct tide_texts blacklist;         /* globs of addresses or domains (J10) */
    struct tide_texts automated_senders; /* local parts, or globs with an '@' (J10) */
    const struct tide_style *styles;
    size_t styles_count;
    size_t default_style;
    const struct tide_contact *senders, *domains;
    size_t senders_count, domains_count;
    const struct tide_profile *profiles;
    size_t profiles_count;
    const struct tide_assistant_tool *tools;
    size_t tools_count;
    const struct tide_rule *rules;
    size_t rules_count;
    struct tide_assistant_prompts prompts;

    tide_mem *mem;
    tide_arena arena; /* of all the above */
};

/* ---- reading ---- */

/* Appends the content of a file named in the configuration, a relative path without "..".
 * TIDE_NOT_FOUND; TIDE_FULL: longer than `bytes_max`. */
typedef tide_status tide_assistant_file(void *arg, tide_text name, size_t bytes_max, tide_buf *out,
                                        tide_error *err);

struct tide_assistant_source {
    const char *path; /* for messages */
    tide_text yaml;
    tide_assistant_file *file; /* NULL: no files can be read */
    void *file_arg;
    const char *const *environment; /* like environ; NULL: none */
};

/* TIDE_INVALID: refused.  The caller frees the result. */
tide_status tide_assistant_config_read(const struct tide_assistant_source *source, tide_mem *mem,
                                       struct tide_assistant_config **config_out, tide_error *err);
/* The same for a file on disk.  TIDE_NOT_FOUND: there is none. */
tide_status tide_assistant_config_load(const char *path, const char *const *environment,
                                       tide_mem *mem, struct tide_assistant_config **config_out,
                                       tide_error *err);
/* The same; adds the files that were read to `files`, which is initialized, also when it fails. */
tide_status tide_assistant_config_load_files(const char *path, const char *const *environment,
                                             tide_mem *mem, struct tide_assistant_files *files,
                                             struct tide_assistant_config **config_out,
                                             tide_error *err);
void tide_assistant_config_free(struct tide_assistant_config *config); /* NULL is fine */

/* Appends the configuration to begin with, with these names of a chat account and its models; NULL: none,
 * and the usual ones. */
tide_status tide_assistant_starter(const char *account, const char *model_fast,
                                   const char *model_better, tide_buf *yaml);

#endif
