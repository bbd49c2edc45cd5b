#include "assistant/config/inside.h"

#include "base/check.h"
#include "world/folder.h"

enum { CONFIG_BYTES_MAX = 32 << 20 };

/* ---- the whole ------------------------------------------------------------------- */

static tide_status read_prompts(struct tide_config_reader *reader, const struct tide_node *node)
{
    static const char *const known[] = {"classify", "context", "draft", "rework", NULL};
    struct tide_assistant_prompts *prompts = &reader->config->prompts;
    tide_text *const places[] = {&prompts->classify, &prompts->context, &prompts->draft,
                                 &prompts->rework};
    if (node == NULL)
        return TIDE_OK;
    TIDE_TRY(tide_config_map(reader, node, known));
    for (size_t i = 0; known[i] != NULL; i++) {
        const struct tide_node *one = tide_node_get(node, known[i]);
        if (one != NULL)
            TIDE_TRY(tide_config_prompt(reader, one, places[i]));
    }
    return TIDE_OK;
}

/* Models come before profiles, tools before profiles, profiles before rules, styles before
 * contacts: each refers to those before it (CFG2). */
static tide_status read_root(struct tide_config_reader *reader, const struct tide_node *root)
{
    static const char *const known[] = {"models", "sync",     "drafts",   "budget",
                                        "triage", "styles",   "contacts", "prompts",
                                        "tools",  "profiles", "rules",    NULL};
    if (root != NULL)
        TIDE_TRY(tide_config_map(reader, root, known));
    TIDE_TRY(tide_config_scalars(reader, root));
    TIDE_TRY(tide_config_triage(reader, tide_config_section(root, "triage")));
    TIDE_TRY(tide_config_styles(reader, root));
    TIDE_TRY(tide_config_contacts(reader, tide_config_section(root, "contacts")));
    TIDE_TRY(read_prompts(reader, tide_config_section(root, "prompts")));
    TIDE_TRY(tide_config_tools(reader, tide_config_section(root, "tools")));
    TIDE_TRY(tide_config_profiles(reader, tide_config_section(root, "profiles")));
    return tide_config_rules(reader, tide_config_section(root, "rules"));
}

tide_status tide_assistant_config_read(const struct tide_assistant_source *source, tide_mem *mem,
                                       struct tide_assistant_config **config_out, tide_error *err)
{
    TIDE_ASSERT(source != NULL && source->path != NULL && config_out != NULL);
    struct tide_assistant_config *config = tide_mem_new(mem, sizeof *config);
    if (config == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "out of memory while reading %s", source->path);
    config->mem = mem;
    tide_arena_init(&config->arena, mem, CONFIG_BYTES_MAX);
    struct tide_config_reader reader = {
        .source = source, .config = config, .arena = &config->arena, .err = err};
    const struct tide_node *root = NULL;
    tide_status rc = tide_tree_parse(source->path, source->yaml, &config->arena, &root, err);
    if (rc == TIDE_OK)
        rc = read_root(&reader, root);
    if (rc == TIDE_OK)
        *config_out = config;
    else
        tide_assistant_config_free(config);
    return rc;
}

void tide_assistant_config_free(struct tide_assistant_config *config)
{
    if (config == NULL)
        return;
    tide_arena_done(&config->arena);
    tide_mem_free(config->mem, config, sizeof *config);
}

/* ---- files ----------------------------------------------------------------------- */

struct taking {
    tide_buf *out;
    size_t bytes_max;
    tide_status rc;
};

static void take_bytes(const void *bytes, size_t count, void *arg)
{
    struct taking *taking = arg;
    if (taking->rc == TIDE_OK && taking->out->bytes + count > taking->bytes_max)
        taking->rc = TIDE_FULL;
    if (taking->rc == TIDE_OK)
        taking->rc = tide_buf_add(taking->out, bytes, count);
}

/* "a/b/c" below `root`, without following links (CFG3). */
static tide_status read_below(int root, tide_text name, size_t bytes_max, tide_buf *out,
                              tide_error *err)
{
    const char *slash = memrchr(name.data, '/', name.bytes);
    const size_t folder = slash == NULL ? 0 : (size_t)(slash - name.data);
    const size_t skipped = slash == NULL ? 0 : folder + 1;
    int dir = -1;
    TIDE_TRY(tide_folder_enter(root, (tide_text){name.data, folder}, &dir, err));
    const tide_text last = {name.data + skipped, name.bytes - skipped};
    struct taking taking = {out, bytes_max, TIDE_OK};
    struct tide_entry entry;
    tide_status rc = tide_folder_look(dir, last, &entry, err);
    if (rc == TIDE_OK && entry.kind != TIDE_ENTRY_FILE)
        rc = tide_error_set(err, TIDE_INVALID, "it is no plain file");
    if (rc == TIDE_OK && entry.bytes > bytes_max)
        rc = TIDE_FULL;
    if (rc == TIDE_OK)
        rc = tide_folder_read(dir, last, take_bytes, &taking, &entry, err);
    tide_folder_close(dir);
    return rc == TIDE_OK ? taking.rc : rc;
}

struct loading {
    int root;
    struct tide_assistant_files *files;
};

/* CFI1: noted, then read. */
static tide_status load_file(const struct loading *loading, tide_text name, size_t bytes_max,
                             tide_buf *out, tide_error *err)
{
    struct tide_assistant_file_seen *seen =
        tide_assistant_files_add(loading->files, loading->root, name);
    if (seen == NULL)
        return tide_error_set(err, TIDE_NO_MEMORY, "no memory for the name of a file");
    const tide_status rc = read_below(loading->root, name, bytes_max, out, err);
    seen->read = rc == TIDE_OK;
    return rc;
}

static tide_status prompt_file(void *arg, tide_text name, size_t bytes_max, tide_buf *out,
                               tide_error *err)
{
    return load_file(arg, name, bytes_max, out, err);
}

static tide_status load_root(struct loading *loading, const char *path, const char *name,
                             const char *const *environment, tide_mem *mem,
                             struct tide_assistant_config **config_out, tide_error *err)
{
    tide_auto_buf yaml = tide_buf_in(mem, TIDE_TREE_BYTES_MAX + 1);
    tide_error why = {TIDE_OK, 0, ""};
    const tide_status rc = load_file(loading, tide_text_of(name), TIDE_TREE_BYTES_MAX, &yaml, &why);
    if (rc != TIDE_OK)
        return tide_error_set(err, rc, "%s: %s", path,
                              rc == TIDE_FULL ? "the file is too large" : why.text);
    const struct tide_assistant_source source = {.path = path,
                                                 .yaml = tide_buf_text(&yaml),
                                                 .file = prompt_file,
                                                 .file_arg = loading,
                                                 .environment = environment};
    return tide_assistant_config_read(&source, mem, config_out, err);
}

tide_status tide_assistant_config_load_files(const char *path, const char *const *environment,
                                             tide_mem *mem, struct tide_assistant_files *files,
                                             struct tide_assistant_config **config_out,
                                             tide_error *err)
{
    struct loading loading = {.root = -1, .files = files};
    const char *name = NULL;
    tide_status rc = tide_assistant_files_root(path, &loading.root, &name, err);
    if (rc != TIDE_OK)
        return tide_assistant_files_add(files, -1, tide_text_of(name)) == NULL
                   ? tide_error_set(err, TIDE_NO_MEMORY, "no memory for the name of a file")
                   : rc;
    rc = load_root(&loading, path, name, environment, mem, config_out, err);
    tide_folder_close(loading.root);
    return rc;
}

tide_status tide_assistant_config_load(const char *path, const char *const *environment,
                                       tide_mem *mem, struct tide_assistant_config **config_out,
                                       tide_error *err)
{
    struct tide_assistant_files files;
    tide_assistant_files_init(&files, mem);
    const tide_status rc =
        tide_assistant_config_load_files(path, environment, mem, &files, config_out, err);
    tide_assistant_files_done(&files);
    return rc;
}
