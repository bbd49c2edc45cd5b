/* assistant_config.c - any bytes as assistant.yaml: read, or refused with file, line and column
 * (assistant/config/config.h CFG1, CFG2). */
#include "assistant/config/config.h"
#include "assistant/config/tree.h"
#include "fuzz.h"

#include <stdio.h>

/* libfyaml 0.7 loses 2 KiB when a text in single quotes contains many of them, also when all is
 * well.  That is a matter of one reload, not of the code under test. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libfyaml";
}

/* A file named in the configuration: its content is its name. */
static tide_status named_file(void *arg, tide_text name, size_t bytes_max, tide_buf *out,
                              tide_error *err)
{
    (void)arg;
    (void)bytes_max;
    TIDE_ASSERT(name.bytes > 0 && name.data[0] != '/');
    TIDE_ASSERT(memmem(name.data, name.bytes, "..", 2) == NULL || name.bytes > 2);
    if (name.data[0] == 'x')
        return tide_error_set(err, TIDE_NOT_FOUND, "no such file");
    return tide_buf_add(out, name.data, name.bytes);
}

static void check(const struct tide_assistant_config *config)
{
    TIDE_ASSERT(config->model_fast.bytes > 0 && config->model_better.bytes > 0);
    TIDE_ASSERT(config->default_style < config->styles_count);
    TIDE_ASSERT(config->full_sync_days >= 1 && config->rework_limit <= 10);
    for (size_t i = 0; i < config->senders_count; i++)
        TIDE_ASSERT(config->senders[i].style < config->styles_count);
    for (size_t i = 0; i < config->domains_count; i++)
        TIDE_ASSERT(config->domains[i].style < config->styles_count);
    for (size_t i = 0; i < config->rules_count; i++)
        TIDE_ASSERT(!config->rules[i].agent || config->rules[i].profile < config->profiles_count);
    for (size_t i = 0; i < config->profiles_count; i++) {
        const struct tide_profile *profile = &config->profiles[i];
        TIDE_ASSERT(profile->may_send || !(profile->builtins & 1u << TIDE_BUILTIN_SEND_REPLY));
        for (size_t j = 0; j < profile->tools_count; j++)
            TIDE_ASSERT(profile->tools[j] < config->tools_count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const char *const environment[] = {"GMA_MODELS_FAST=f", "GMA_MODELS_BETTER=b", NULL};
    const tide_text yaml = fuzz_exact((tide_text){(const char *)data, bytes});
    const struct tide_assistant_source source = {
        .path = "a.yaml", .yaml = yaml, .file = named_file, .environment = environment};
    struct tide_assistant_config *config = NULL;
    tide_error err = {TIDE_OK, 0, ""};
    const tide_status rc = tide_assistant_config_read(&source, tide_mem_heap(), &config, &err);
    if (rc == TIDE_OK) {
        check(config);
    } else {
        unsigned line = 0, column = 0;
        TIDE_ASSERT(rc == TIDE_INVALID && config == NULL);
        TIDE_ASSERT(sscanf(err.text, "a.yaml:%u:%u: ", &line, &column) == 2);
    }
    tide_assistant_config_free(config);
    free((void *)(uintptr_t)yaml.data);
    return 0;
}
